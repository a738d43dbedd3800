//! `quorlock status`: what each master reports about a lock, and what follows from it. It changes
//! nothing.

use std::time::Duration;

use quorlock_blocking::Locker;
use quorlock_core::{
    Cause, Endpoint, Group, Holder, Inspection, KeyState, LockState, MasterAnswer, Quorum, ServerFacts,
    Sharing, Standing, Token,
};
use serde::Serialize;

use crate::arguments::{StatusArguments, Terms};
use crate::duration::spoken;
use crate::ending::{FREE, NO_QUORUM, Refusal, SPLIT, USAGE};
use crate::output::{Output, Verbosity, print, without_control};
use crate::{json, lock};

mod permits;

pub(crate) use self::permits::inspect as inspect_permits;

/// Prints the state. `token` is the lock's token in the environment, if there is one. Returns the
/// exit code.
pub(crate) fn status(arguments: &StatusArguments, token: Option<Token>) -> u8 {
    let name = arguments.resource.as_bytes();
    let terms = Terms::plain(&arguments.masters, &arguments.resource);
    let told = lock::ask(terms, name, "quorlock-status").and_then(|locker| match arguments.permits {
        Some(permits) => {
            let seen = inspect_permits(&locker, name, permits, token)?;
            Ok(permits::told(&seen, name, token, arguments.json))
        }
        None => Ok(told(&inspect(&locker, name, token)?, name, token, arguments.json)),
    });
    match told {
        Ok((_, code)) if arguments.quiet && !arguments.json => code,
        Ok((text, code)) => print(&text, code),
        Err(refusal) => {
            let verbosity = if arguments.quiet { Verbosity::Quiet } else { Verbosity::Normal(0) };
            refusal.tell(Some(name), &Output::new(verbosity, arguments.json))
        }
    }
}

/// Returns the text about a lock and the exit code.
fn told(seen: &Inspection, name: &[u8], token: Option<Token>, as_json: bool) -> (String, u8) {
    let code = match seen.state() {
        LockState::Held(_) | LockState::Shared(_) => 0,
        LockState::Free => FREE,
        LockState::Split => SPLIT,
        _ if is_misconfigured(seen.masters().filter_map(|(_, answer)| answer.err()), seen.quorum()) => USAGE,
        _ => NO_QUORUM,
    };
    let name = String::from_utf8_lossy(name);
    let text = if as_json { json::line(&report(&name, seen, token.is_some())) } else { text(&name, seen) };
    (text, code)
}

/// What the masters report about a lock.
pub(crate) fn inspect(locker: &Locker, name: &[u8], token: Option<Token>) -> Result<Inspection, Refusal> {
    let inspecting = locker.inspect(name);
    let inspecting = token.into_iter().fold(inspecting, |inspecting, token| inspecting.token(token));
    inspecting.wait().map_err(|error| Refusal::NoQuorum(error.to_string()))
}

/// Whether no quorum can answer until a configuration is changed.
fn is_misconfigured(causes: impl Iterator<Item = Cause>, quorum: Quorum) -> bool {
    // One server behind two addresses counts as one answer.
    let is_wrong = |cause: &Cause| cause.is_configuration() && !matches!(cause, Cause::SameServer { .. });
    quorum.masters() - causes.filter(is_wrong).count() < quorum.needed()
}

/// The name of a holder.
fn called(holder: Holder) -> String {
    if holder.is_ours() { "ours".to_owned() } else { format!("holder {holder}") }
}

/// Why a master that answered has no vote, if it has none.
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
fn warning(server: &ServerFacts, has_undeclared_replicas: bool) -> Option<String> {
    has_undeclared_replicas.then(|| match server.replicas {
        Some(replicas) if replicas > 1 => {
            format!("has {replicas} replicas that its URL does not declare, so the restart guard does not cover their promotion: add replicas=")
        }
        _ => "has a replica that its URL does not declare, so the restart guard does not cover its promotion: add replicas=".to_owned(),
    })
}

fn text(name: &str, seen: &Inspection) -> String {
    let endpoints: Vec<_> = seen.masters().map(|(master, _)| master).collect();
    let masters = seen.masters().map(|(master, answer)| {
        let words = answer.map_or_else(|cause| complaint(cause, master, &endpoints), words);
        (master.to_string(), words)
    });
    table(&format!("{}: {seen}", without_control(name)), &masters.collect::<Vec<_>>())
}

/// A line for each master, below the first line.
fn table(first: &str, masters: &[(String, String)]) -> String {
    let widest = masters.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut text = format!("{first}\n");
    for (name, words) in masters {
        let line = format!("  {name:widest$}  {words}");
        text.push_str(&without_control(line.trim_end()));
        text.push('\n');
    }
    text
}

/// Why a master has no vote. If the reason is another master, it is named.
fn complaint(cause: Cause, master: &Endpoint, masters: &[&Endpoint]) -> String {
    match cause {
        Cause::SameServer { other } => match masters.get(other.index()) {
            Some(other) => format!("is the same server as {other}"),
            None => cause.to_string(),
        },
        Cause::SharedServer { other } => match masters.get(other.index()) {
            Some(other) => format!("its tag is on the same server as {other}"),
            None => cause.to_string(),
        },
        cause => cause.at(master).to_string(),
    }
}

fn words(answer: &MasterAnswer) -> String {
    let key = match answer.key {
        KeyState::Free => "free".to_owned(),
        KeyState::Held { holder, remaining } => format!("{}, {}", called(holder), left(remaining)),
        KeyState::Shared { sharers, ours, remaining, wanted } => {
            let who = crowd(answer.group.as_ref(), sharers);
            let ours = match ours {
                0 => String::new(),
                _ if sharers == Some(ours) => " (ours)".to_owned(),
                _ => format!(" ({ours} of them ours)"),
            };
            let waits = if wanted.is_some() { "; a writer waits" } else { "" };
            format!("{who}{ours}, {}{waits}", left(remaining))
        }
        KeyState::OtherType => "not a lock: the key is not a string".to_owned(),
        _ => "held in a way that this version does not recognize".to_owned(),
    };
    let remarks =
        [Some(key), objection(answer.standing), warning(&answer.server, answer.has_undeclared_replicas())];
    row(&remarks.into_iter().flatten().collect::<Vec<_>>().join("; "), &answer.server)
}

fn left(remaining: Option<Duration>) -> String {
    remaining.map_or_else(|| "never expires".to_owned(), |left| format!("{} left", spoken(left)))
}

/// The sharers of a lock.
fn crowd(group: Option<&Group>, sharers: Option<usize>) -> String {
    match (group.filter(|group| **group != Group::READERS), sharers) {
        (None, Some(1)) => "1 reader".to_owned(),
        (None, Some(many)) => format!("{many} readers"),
        (None, None) => "readers".to_owned(),
        (Some(group), Some(many)) => format!("{many} of group {group}"),
        (Some(group), None) => format!("group {group}"),
    }
}

/// The text about a master that answered: its key, and the server.
fn row(key: &str, server: &ServerFacts) -> String {
    let ServerFacts { kind, version, role, uptime, .. } = server;
    let mut server = Vec::new();
    if let (Some(kind), Some(version)) = (kind, version) {
        server.push(format!("{kind} {version}"));
    }
    server.extend(role.clone());
    if let Some(uptime) = *uptime {
        // Servers report whole seconds.
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
    group: Option<String>,
    sharers: Option<usize>,
    writer_waits: Option<bool>,
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
    sharers: Option<usize>,
    #[serde(flatten)]
    server: ServerReport,
}

/// What a master reports about itself, in each kind of report.
#[derive(Serialize)]
struct ServerReport {
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
    let (state, held, sharing) = match seen.state() {
        LockState::Held(holding) => ("held", Some(holding), None),
        LockState::Shared(sharing) => ("shared", None, Some(sharing)),
        LockState::Free => ("free", None, None),
        LockState::Split => ("split", None, None),
        _ => ("unknown", None, None),
    };
    let endpoints: Vec<_> = seen.masters().map(|(master, _)| master).collect();
    let on = |sharing: Sharing| sharing.on;
    Report {
        resource: name,
        state,
        text: seen.to_string(),
        quorum: seen.quorum().needed(),
        answered: seen.answered(),
        holder: held.map(|held| held.holder.to_string()),
        ours: has_token.then(|| seen.is_ours()),
        held_on: held.map(|held| held.on).or(sharing.map(on)),
        left_ms: millis(seen.remaining()),
        group: seen.group().filter(|group| **group != Group::READERS).map(Group::to_string),
        sharers: sharing.and_then(|sharing| sharing.sharers),
        writer_waits: sharing.map(|sharing| sharing.wanted_on > 0),
        masters: seen
            .masters()
            .map(|(master, answer)| master_report(master, answer, &endpoints, has_token))
            .collect(),
    }
}

fn master_report(
    master: &Endpoint,
    answer: Result<&MasterAnswer, Cause>,
    masters: &[&Endpoint],
    has_token: bool,
) -> MasterReport {
    let said = answer.ok();
    let (key, holder, ours, left, sharers) = match said.map(|said| said.key) {
        Some(KeyState::Free) => (Some("free"), None, false, None, None),
        Some(KeyState::Held { holder, remaining }) => {
            (Some("held"), Some(holder), holder.is_ours(), remaining, None)
        }
        Some(KeyState::Shared { sharers, ours, remaining, .. }) => {
            (Some("shared"), None, ours > 0, remaining, sharers)
        }
        Some(KeyState::OtherType) => (Some("other_type"), None, false, None, None),
        _ => (None, None, false, None, None),
    };
    let standing = said.map(|said| said.standing);
    let warning = said.and_then(|said| warning(&said.server, said.has_undeclared_replicas()));
    MasterReport {
        address: master.to_string(),
        answered: has_answered(answer.err()),
        votes: standing == Some(Standing::Votes),
        error: answer.err().map(|cause| complaint(cause, master, masters)).or(standing.and_then(objection)),
        key,
        holder: holder.map(|holder| holder.to_string()),
        ours: has_token.then_some(ours),
        left_ms: millis(left),
        sharers,
        server: server_report(said.map(|said| &said.server), standing, answer.err(), warning),
    }
}

/// Whether a master has answered: two causes follow from what the server said in the handshake.
fn has_answered(cause: Option<Cause>) -> bool {
    let is_told =
        |cause| matches!(cause, Cause::Replica | Cause::SameServer { .. } | Cause::SharedServer { .. });
    cause.is_none_or(is_told)
}

fn server_report(
    server: Option<&ServerFacts>,
    standing: Option<Standing>,
    cause: Option<Cause>,
    warning: Option<String>,
) -> ServerReport {
    let server = server.cloned().unwrap_or_default();
    ServerReport {
        quarantined_ms: match standing {
            Some(Standing::Quarantined { remaining: left } | Standing::Unnoticed { quarantine: left }) => {
                millis(Some(left))
            }
            _ => None,
        },
        server: server.version.is_some().then_some(server.kind).flatten(),
        version: server.version,
        role: if cause == Some(Cause::Replica) { Some("slave".to_owned()) } else { server.role },
        replicas: server.replicas,
        warning,
        uptime_s: server.uptime.map(|uptime| uptime.as_secs()),
        clock_ms: millis(server.clock),
    }
}

fn millis(span: Option<Duration>) -> Option<u128> {
    span.map(|span| span.as_millis())
}
