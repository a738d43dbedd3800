//! `quorlock status`: what each master says about a lock, and what that amounts to. Nothing is
//! changed.

use std::time::Duration;

use quorlock_blocking::Locker;
use quorlock_core::{
    Cause, Endpoint, Holder, Inspection, KeyState, LockState, MasterAnswer, ServerFacts, Standing, Token,
};
use serde::Serialize;

use crate::arguments::{StatusArguments, Terms};
use crate::duration::spoken;
use crate::ending::{FREE, NO_QUORUM, Refusal, SPLIT, USAGE};
use crate::output::{Output, Verbosity, print, without_control};
use crate::{json, lock};

/// Prints it. `token` is the one that the environment has for the lock, if there is one. The exit
/// code.
pub(crate) fn status(arguments: &StatusArguments, token: Option<Token>) -> u8 {
    let name = arguments.resource.as_bytes();
    let terms = Terms::plain(&arguments.masters, &arguments.resource);
    let seen = lock::ask(terms, name, "quorlock-status").and_then(|locker| inspect(&locker, name, token));
    let seen = match seen {
        Ok(seen) => seen,
        Err(refusal) => {
            let verbosity = if arguments.quiet { Verbosity::Quiet } else { Verbosity::Normal(0) };
            return refusal.tell(Some(name), &Output::new(verbosity, arguments.json));
        }
    };
    let code = match seen.state() {
        LockState::Held(_) => 0,
        LockState::Free => FREE,
        LockState::Split => SPLIT,
        _ if is_misconfigured(&seen) => USAGE,
        _ => NO_QUORUM,
    };
    let name = String::from_utf8_lossy(name);
    match (arguments.json, arguments.quiet) {
        (true, _) => print(&json::line(&report(&name, &seen, token.is_some())), code),
        (false, true) => code,
        (false, false) => print(&text(&name, &seen), code),
    }
}

/// What the masters say of a lock.
pub(crate) fn inspect(locker: &Locker, name: &[u8], token: Option<Token>) -> Result<Inspection, Refusal> {
    let inspecting = locker.inspect(name);
    let inspecting = token.into_iter().fold(inspecting, |inspecting, token| inspecting.token(token));
    inspecting.wait().map_err(|error| Refusal::NoQuorum(error.to_string()))
}

/// Whether no quorum can answer before somebody changes a configuration.
fn is_misconfigured(seen: &Inspection) -> bool {
    // Of one server behind two addresses, one has answered.
    let is_wrong = |cause: &Cause| cause.is_configuration() && !matches!(cause, Cause::SameServer { .. });
    let wrong = seen.masters().filter_map(|(_, answer)| answer.err()).filter(is_wrong).count();
    seen.quorum().masters() - wrong < seen.quorum().needed()
}

/// What a holder is called.
fn called(holder: Holder) -> String {
    if holder.is_ours() { "ours".to_owned() } else { format!("holder {holder}") }
}

/// Why a master that answered has no vote, if that is so.
fn objection(standing: Standing) -> Option<String> {
    match standing {
        Standing::Quarantined { remaining } => Some(format!("quarantined for {} more", spoken(remaining))),
        Standing::Unnoticed { quarantine } => {
            Some(format!("came back without its data: will be quarantined for {}", spoken(quarantine)))
        }
        _ => None,
    }
}

/// What the operator of a master that answered should know.
fn warning(answer: &MasterAnswer) -> Option<String> {
    answer.has_undeclared_replicas().then(|| match answer.server.replicas {
        Some(replicas) if replicas > 1 => {
            format!("has {replicas} replicas, whose promotion the restart guard does not cover")
        }
        _ => "has a replica, whose promotion the restart guard does not cover".to_owned(),
    })
}

fn text(name: &str, seen: &Inspection) -> String {
    let mut text = format!("{}: {seen}\n", without_control(name));
    let masters: Vec<_> = seen.masters().map(|(master, answer)| (master.to_string(), answer)).collect();
    let widest = masters.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, answer) in &masters {
        let words = match answer {
            Err(cause) => complaint(*cause, seen),
            Ok(answer) => words(answer),
        };
        let line = format!("  {name:widest$}  {words}");
        text.push_str(&without_control(line.trim_end()));
        text.push('\n');
    }
    text
}

/// Why a master has no vote, with the name of another one where that is the reason.
fn complaint(cause: Cause, seen: &Inspection) -> String {
    match cause {
        Cause::SameServer { other } => match seen.masters().nth(other.index()) {
            Some((other, _)) => format!("is the same server as {other}"),
            None => cause.to_string(),
        },
        cause => cause.to_string(),
    }
}

fn words(answer: &MasterAnswer) -> String {
    let key = match answer.key {
        KeyState::Free => "free".to_owned(),
        KeyState::Held { holder, remaining: Some(left) } => {
            format!("{}, {} left", called(holder), spoken(left))
        }
        KeyState::Held { holder, remaining: None } => format!("{}, never expires", called(holder)),
        KeyState::OtherType => "not a lock: the key is no string".to_owned(),
        _ => "held in a way that this version does not know".to_owned(),
    };
    let remarks = [Some(key), objection(answer.standing), warning(answer)];
    let key = remarks.into_iter().flatten().collect::<Vec<_>>().join("; ");
    let ServerFacts { kind, version, role, uptime, .. } = &answer.server;
    let mut server = Vec::new();
    if let (Some(kind), Some(version)) = (kind, version) {
        server.push(format!("{kind} {version}"));
    }
    server.extend(role.clone());
    if let Some(uptime) = *uptime {
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

fn report<'a>(name: &'a str, seen: &Inspection, has_token: bool) -> Report<'a> {
    let is_ours = |holder: Option<Holder>| has_token.then_some(holder.is_some_and(Holder::is_ours));
    let (state, held) = match seen.state() {
        LockState::Held(holding) => ("held", Some(holding)),
        LockState::Free => ("free", None),
        LockState::Split => ("split", None),
        _ => ("unknown", None),
    };
    let holder = held.map(|held| held.holder);
    let masters = seen.masters();
    Report {
        resource: name,
        state,
        text: seen.to_string(),
        quorum: seen.quorum().needed(),
        answered: seen.answered(),
        holder: holder.map(|holder| holder.to_string()),
        ours: is_ours(holder),
        held_on: held.map(|held| held.on),
        left_ms: millis(seen.remaining()),
        masters: masters.map(|(master, answer)| master_report(master, answer, seen, is_ours)).collect(),
    }
}

fn master_report(
    master: &Endpoint,
    answer: Result<&MasterAnswer, Cause>,
    seen: &Inspection,
    is_ours: impl Fn(Option<Holder>) -> Option<bool>,
) -> MasterReport {
    let said = answer.ok();
    let (key, holder, left) = match said.map(|said| said.key) {
        Some(KeyState::Free) => (Some("free"), None, None),
        Some(KeyState::Held { holder, remaining }) => (Some("held"), Some(holder), remaining),
        Some(KeyState::OtherType) => (Some("other_type"), None, None),
        _ => (None, None, None),
    };
    let standing = said.map(|said| said.standing);
    let server = said.map(|said| said.server.clone()).unwrap_or_default();
    // Both are found out by what the server said when it was connected.
    let has_answered =
        !matches!(answer, Err(cause) if !matches!(cause, Cause::Replica | Cause::SameServer { .. }));
    MasterReport {
        address: master.to_string(),
        answered: has_answered,
        votes: standing == Some(Standing::Votes),
        error: answer.err().map(|cause| complaint(cause, seen)).or(standing.and_then(objection)),
        key,
        holder: holder.map(|holder| holder.to_string()),
        ours: is_ours(holder),
        left_ms: millis(left),
        quarantined_ms: match standing {
            Some(Standing::Quarantined { remaining: left } | Standing::Unnoticed { quarantine: left }) => {
                millis(Some(left))
            }
            _ => None,
        },
        server: server.version.is_some().then_some(server.kind).flatten(),
        version: server.version,
        role: if answer == Err(Cause::Replica) { Some("slave".to_owned()) } else { server.role },
        replicas: server.replicas,
        warning: said.and_then(warning),
        uptime_s: server.uptime.map(|uptime| uptime.as_secs()),
        clock_ms: millis(server.clock),
    }
}

fn millis(span: Option<Duration>) -> Option<u128> {
    span.map(|span| span.as_millis())
}
