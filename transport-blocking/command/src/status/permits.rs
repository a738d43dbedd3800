//! `quorlock status --permits`: the same for the permits of a semaphore.

use quorlock_blocking::Locker;
use quorlock_core::{
    Cause, Endpoint, Holding, KeyState, LockState, PermitsAnswer, SemaphoreInspection, Standing, Token,
};
use serde::Serialize;

use super::{
    FREE, NO_QUORUM, Refusal, SPLIT, ServerReport, USAGE, complaint, has_answered, is_misconfigured, left,
    millis, objection, row, server_report, table, warning,
};
use crate::json;
use crate::output::without_control;

/// What the masters report about a semaphore.
pub(crate) fn inspect(
    locker: &Locker,
    name: &[u8],
    permits: u32,
    token: Option<Token>,
) -> Result<SemaphoreInspection, Refusal> {
    let semaphore = locker.semaphore(name, permits);
    let inspecting = semaphore.map_err(|error| Refusal::Configuration(error.to_string()))?.inspect();
    let inspecting = token.into_iter().fold(inspecting, |inspecting, token| inspecting.token(token));
    inspecting.wait().map_err(|error| Refusal::NoQuorum(error.to_string()))
}

/// Returns the text about it and the exit code.
pub(super) fn told(
    seen: &SemaphoreInspection,
    name: &[u8],
    token: Option<Token>,
    as_json: bool,
) -> (String, u8) {
    let (state, code) = state(seen);
    let name = String::from_utf8_lossy(name);
    let text =
        if as_json { json::line(&report(&name, seen, state, token.is_some())) } else { text(&name, seen) };
    (text, code)
}

/// Whether a permit is held. As for a lock, the exit code reports it.
fn state(seen: &SemaphoreInspection) -> (&'static str, u8) {
    let some = |wanted: LockState| seen.states().any(|(_, state)| state == wanted);
    if seen.held().next().is_some() {
        ("held", 0)
    } else if some(LockState::Unknown) {
        let causes = seen.masters().filter_map(|(_, answer)| answer.err());
        ("unknown", if is_misconfigured(causes, seen.quorum()) { USAGE } else { NO_QUORUM })
    } else if some(LockState::Free) {
        ("free", FREE)
    } else {
        ("split", SPLIT)
    }
}

fn text(name: &str, seen: &SemaphoreInspection) -> String {
    let all = seen.quorum().masters();
    let mut first = format!("{}: {seen}", without_control(name));
    for (index, Holding { holder, on, remaining, .. }) in seen.held() {
        let holder = if holder.is_ours() { "ours" } else { "held" };
        first
            .push_str(&format!("\n  permit {index}: {holder} on {on} of {all} masters, {}", left(remaining)));
    }
    let endpoints: Vec<_> = seen.masters().map(|(master, _)| master).collect();
    let masters = seen.masters().map(|(master, answer)| {
        let words = answer.map_or_else(|cause| complaint(cause, master, &endpoints), words);
        (master.to_string(), words)
    });
    table(&first, &masters.collect::<Vec<_>>())
}

fn words(answer: &PermitsAnswer) -> String {
    let keys = match answer.keys.len() {
        0 => "no permit".to_owned(),
        1 => "1 permit".to_owned(),
        many => format!("{many} permits"),
    };
    let remarks =
        [Some(keys), objection(answer.standing), warning(&answer.server, answer.has_undeclared_replicas())];
    row(&remarks.into_iter().flatten().collect::<Vec<_>>().join("; "), &answer.server)
}

/// What is printed with `--json`; `quorlock status --help` documents the fields.
#[derive(Serialize)]
struct Report<'a> {
    resource: &'a str,
    state: &'static str,
    text: String,
    quorum: usize,
    answered: usize,
    permits: u32,
    held: Vec<PermitReport>,
    free: Vec<u32>,
    masters: Vec<MasterReport>,
}

/// One permit that is held.
#[derive(Serialize)]
struct PermitReport {
    index: u32,
    ours: Option<bool>,
    held_on: usize,
    left_ms: Option<u128>,
}

/// One master.
#[derive(Serialize)]
struct MasterReport {
    address: String,
    answered: bool,
    votes: bool,
    error: Option<String>,
    keys: Option<Vec<KeyReport>>,
    #[serde(flatten)]
    server: ServerReport,
}

/// The key of one permit on one master.
#[derive(Serialize)]
struct KeyReport {
    index: u32,
    key: &'static str,
    holder: Option<String>,
    left_ms: Option<u128>,
}

fn report<'a>(name: &'a str, seen: &SemaphoreInspection, state: &'static str, has_token: bool) -> Report<'a> {
    let permit = |(index, Holding { holder, on, remaining, .. }): (u32, Holding)| PermitReport {
        index,
        ours: has_token.then(|| holder.is_ours()),
        held_on: on,
        left_ms: millis(remaining),
    };
    let endpoints: Vec<_> = seen.masters().map(|(master, _)| master).collect();
    Report {
        resource: name,
        state,
        text: seen.to_string(),
        quorum: seen.quorum().needed(),
        answered: seen.answered(),
        permits: seen.permits(),
        held: seen.held().map(permit).collect(),
        free: seen.free().collect(),
        masters: seen.masters().map(|(master, answer)| master_report(master, answer, &endpoints)).collect(),
    }
}

fn master_report(
    master: &Endpoint,
    answer: Result<&PermitsAnswer, Cause>,
    masters: &[&Endpoint],
) -> MasterReport {
    let said = answer.ok();
    let standing = said.map(|said| said.standing);
    let warning = said.and_then(|said| warning(&said.server, said.has_undeclared_replicas()));
    let key = |(index, key): &(u32, KeyState)| match *key {
        KeyState::Held { holder, remaining } => {
            let holder = Some(holder.to_string());
            KeyReport { index: *index, key: "held", holder, left_ms: millis(remaining) }
        }
        _ => KeyReport { index: *index, key: "other_type", holder: None, left_ms: None },
    };
    MasterReport {
        address: master.to_string(),
        answered: has_answered(answer.err()),
        votes: standing == Some(Standing::Votes),
        error: answer.err().map(|cause| complaint(cause, master, masters)).or(standing.and_then(objection)),
        keys: said.map(|said| said.keys.iter().map(key).collect()),
        server: server_report(said.map(|said| &said.server), standing, answer.err(), warning),
    }
}
