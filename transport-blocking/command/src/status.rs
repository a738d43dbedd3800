//! `quorlock status`: what each master says about a lock, and what that amounts to. Nothing is changed.

use std::time::Duration;

use quorlock_core::{Cause, Endpoint, Token};
use serde::Serialize;

use crate::arguments::{StatusArguments, Terms};
use crate::duration::spoken;
use crate::ending::{FREE, NO_QUORUM, SPLIT, USAGE};
use crate::inspect::{Answer, Key, Said, Standing, State, Survey, Verdict, survey};
use crate::output::{Output, Verbosity, print, without_control};
use crate::{json, lock};

/// Prints it. `token` is the one that the environment has for the lock, if there is one. The exit code.
pub(crate) fn status(arguments: &StatusArguments, token: Option<Token>) -> u8 {
    let name = arguments.resource.as_bytes();
    let (config, resource) = match lock::checked(Terms::plain(&arguments.masters, &arguments.resource), name)
    {
        Ok(checked) => checked,
        Err(refusal) => {
            let verbosity = if arguments.quiet { Verbosity::Quiet } else { Verbosity::Normal(0) };
            return refusal.tell(Some(name), &Output::new(verbosity, arguments.json));
        }
    };
    let masters = config.masters();
    let survey = survey(masters, resource.key(), token);
    let verdict = Verdict::of(&survey.answers, config.quorum());
    let code = match verdict.state {
        State::Held { .. } => 0,
        State::Free => FREE,
        State::Split => SPLIT,
        State::Unknown if is_misconfigured(&survey.answers, &verdict) => USAGE,
        State::Unknown => NO_QUORUM,
    };
    let name = String::from_utf8_lossy(name);
    match (arguments.json, arguments.quiet) {
        (true, _) => print(&json::line(&report(&name, masters, &survey, &verdict, token.is_some())), code),
        (false, true) => code,
        (false, false) => print(&text(&name, masters, &survey, &verdict), code),
    }
}

/// Whether no quorum can answer before somebody changes a configuration.
fn is_misconfigured(answers: &[Answer<Said>], verdict: &Verdict) -> bool {
    let is_wrong = |answer: &&Answer<Said>| answer.as_ref().is_err_and(|cause| cause.is_configuration());
    verdict.quorum.masters() - answers.iter().filter(is_wrong).count() < verdict.quorum.needed()
}

/// The letter of a holder, without telling its token.
fn letter(holder: usize) -> String {
    let letter =
        u8::try_from(holder).ok().filter(|holder| *holder < 26).map(|holder| char::from(b'a' + holder));
    letter.map_or_else(|| format!("a{holder}"), String::from)
}

/// What a holder is called.
fn called(holder: usize, ours: Option<usize>) -> String {
    if Some(holder) == ours { "ours".to_owned() } else { format!("holder {}", letter(holder)) }
}

fn left_words(left: Option<Duration>) -> String {
    left.map_or_else(|| "never expires".to_owned(), |left| format!("{} left", spoken(left)))
}

/// What the answers amount to, in a sentence without the lock's name. `ours` is the number of the holder that we are.
pub(crate) fn sentence(verdict: &Verdict, ours: Option<usize>) -> String {
    let (all, needed) = (verdict.quorum.masters(), verdict.quorum.needed());
    match verdict.state {
        State::Held { holder, on, left } => {
            let held = if Some(holder) == ours { "ours" } else { "held by one holder" };
            format!("{held} on {on} of {all} masters (quorum {needed}), {}", left_words(left))
        }
        State::Free => {
            let leftover = match verdict.held.iter().sum() {
                0 => String::new(),
                keys => format!("; {keys} still {} a key", if keys == 1 { "has" } else { "have" }),
            };
            format!("free on {} of {all} masters (quorum {needed}){leftover}", verdict.free)
        }
        State::Split => format!("no quorum ({needed} of {all} needed), split: {}", shares(verdict, ours)),
        State::Unknown if verdict.answered < needed => {
            format!("not known, too few masters answered: {} of {all} (quorum {needed})", verdict.answered)
        }
        State::Unknown => {
            format!(
                "not known, it depends on masters that did not tell: {} (quorum {needed})",
                shares(verdict, ours)
            )
        }
    }
}

/// `ours on 1, holder b on 1, free on 1`.
fn shares(verdict: &Verdict, ours: Option<usize>) -> String {
    let holders = verdict.held.iter().enumerate().filter(|(_, on)| **on > 0);
    let mut shares: Vec<String> =
        holders.map(|(holder, on)| format!("{} on {on}", called(holder, ours))).collect();
    let silent = verdict.quorum.masters() - verdict.answered.min(verdict.quorum.masters());
    for (what, on) in [("free", verdict.free), ("not a lock", verdict.other_type), ("not told", silent)] {
        if on > 0 {
            shares.push(format!("{what} on {on}"));
        }
    }
    shares.join(", ")
}

/// Why a master that answered has no vote, if that is so.
fn objection(standing: Standing, masters: &[Endpoint]) -> Option<String> {
    Some(match standing {
        Standing::Votes => return None,
        Standing::Quarantined(left) => format!("quarantined for {} more", spoken(left)),
        Standing::Unnoticed(longest) => {
            format!("came back without its data: will be quarantined for {}", spoken(longest))
        }
        Standing::Replica => "is a replica, and only masters vote".to_owned(),
        Standing::SameAs(other) => {
            let other = masters.get(other).map(ToString::to_string).unwrap_or_default();
            format!("is the same server as {other}")
        }
    })
}

/// What the operator of a master that answered should know.
fn warning(said: &Said) -> Option<String> {
    said.has_undeclared_replicas().then(|| match said.replicas {
        1 => "has a replica, whose promotion the restart guard does not cover".to_owned(),
        replicas => format!("has {replicas} replicas, whose promotion the restart guard does not cover"),
    })
}

fn text(name: &str, masters: &[Endpoint], survey: &Survey, verdict: &Verdict) -> String {
    let mut text = format!("{}: {}\n", without_control(name), sentence(verdict, survey.ours));
    let names: Vec<String> = masters.iter().map(ToString::to_string).collect();
    let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for (name, answer) in names.iter().zip(&survey.answers) {
        let words = match answer {
            Err(cause) => cause.to_string(),
            Ok(said) => words(said, masters, survey.ours),
        };
        let line = format!("  {name:widest$}  {words}");
        text.push_str(&without_control(line.trim_end()));
        text.push('\n');
    }
    text
}

fn words(said: &Said, masters: &[Endpoint], ours: Option<usize>) -> String {
    let key = match said.key {
        Key::Free => "free".to_owned(),
        Key::Held { holder, left } => format!("{}, {}", called(holder, ours), left_words(left)),
        Key::OtherType => "not a lock: the key is no string".to_owned(),
    };
    let remarks = [Some(key), objection(said.standing, masters), warning(said)];
    let key = remarks.into_iter().flatten().collect::<Vec<_>>().join("; ");
    let mut server = Vec::new();
    if let Some((kind, version)) = &said.server {
        server.push(format!("{kind} {version}"));
    }
    if let Some(role) = &said.role {
        server.push(role.clone());
    }
    if let Some(uptime) = said.uptime {
        // Servers tell whole seconds.
        let up = if uptime.as_secs() < 120 { format!("{} s", uptime.as_secs()) } else { spoken(uptime) };
        server.push(format!("up {up}"));
    }
    format!("{key:<24}  {}", server.join(", "))
}

/// What is printed with `--json`; `quorlock status --help` documents the fields.
#[derive(Serialize)]
struct Report<'a> {
    resource: &'a str,
    state: &'static str,
    text: String,
    quorum: usize,
    answered: usize,
    holder: Option<String>,
    ours: Option<bool>,
    held_on: Option<usize>,
    left_ms: Option<u128>,
    masters: Vec<MasterReport>,
}

/// One master in a [`Report`].
#[derive(Serialize)]
struct MasterReport {
    address: String,
    answered: bool,
    votes: bool,
    error: Option<String>,
    key: Option<&'static str>,
    holder: Option<String>,
    ours: Option<bool>,
    left_ms: Option<u128>,
    quarantined_ms: Option<u128>,
    server: Option<String>,
    version: Option<String>,
    role: Option<String>,
    replicas: Option<u64>,
    warning: Option<String>,
    uptime_s: Option<u64>,
    clock_ms: Option<u128>,
}

fn report<'a>(
    name: &'a str,
    masters: &[Endpoint],
    survey: &Survey,
    verdict: &Verdict,
    has_token: bool,
) -> Report<'a> {
    let is_ours = |holder: Option<usize>| has_token.then_some(holder.is_some() && holder == survey.ours);
    let (state, holder, held_on, left) = match verdict.state {
        State::Held { holder, on, left } => ("held", Some(holder), Some(on), left),
        State::Free => ("free", None, None, None),
        State::Split => ("split", None, None, None),
        State::Unknown => ("unknown", None, None, None),
    };
    let each = masters.iter().zip(&survey.answers);
    Report {
        resource: name,
        state,
        text: sentence(verdict, survey.ours),
        quorum: verdict.quorum.needed(),
        answered: verdict.answered,
        holder: holder.map(letter),
        ours: is_ours(holder),
        held_on,
        left_ms: left.map(|left| left.as_millis()),
        masters: each.map(|(master, answer)| master_report(master, answer, masters, is_ours)).collect(),
    }
}

fn master_report(
    master: &Endpoint,
    answer: &Answer<Said>,
    masters: &[Endpoint],
    is_ours: impl Fn(Option<usize>) -> Option<bool>,
) -> MasterReport {
    let said = answer.as_ref().ok();
    let (key, holder, left) = match said.map(|said| &said.key) {
        None => (None, None, None),
        Some(Key::Free) => (Some("free"), None, None),
        Some(Key::Held { holder, left }) => (Some("held"), Some(*holder), *left),
        Some(Key::OtherType) => (Some("other_type"), None, None),
    };
    let standing = said.map(|said| said.standing);
    let objection = standing.and_then(|standing| objection(standing, masters));
    let (server, version) = said.and_then(|said| said.server.clone()).unzip();
    MasterReport {
        address: master.to_string(),
        answered: said.is_some(),
        votes: standing == Some(Standing::Votes),
        error: answer.as_ref().err().map(Cause::to_string).or(objection),
        key,
        holder: holder.map(letter),
        ours: is_ours(holder),
        left_ms: left.map(|left| left.as_millis()),
        quarantined_ms: match standing {
            Some(Standing::Quarantined(left) | Standing::Unnoticed(left)) => Some(left.as_millis()),
            _ => None,
        },
        server,
        version,
        role: said.and_then(|said| said.role.clone()),
        replicas: said.map(|said| said.replicas),
        warning: said.and_then(warning),
        uptime_s: said.and_then(|said| said.uptime).map(|uptime| uptime.as_secs()),
        clock_ms: said.and_then(|said| said.clock).map(|clock| clock.as_millis()),
    }
}
