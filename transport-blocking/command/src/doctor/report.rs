//! What is printed: for people, and as JSON.

use serde::Serialize;

use super::Survey;
use super::clock::Standing;
use super::encryption::Encryption;
use super::facts::Facts;
use super::permissions::Way;
use super::promises::Promise;
use crate::asking::{Info, Marker};
use crate::json;
use crate::output::without_control;

/// Lines for people: what each master reported, and then the promises.
pub(super) fn text(survey: &Survey, promises: &[Promise]) -> String {
    let mut lines = vec![summary(survey)];
    let all = survey.masters.iter().zip(&survey.answers).enumerate();
    for (place, (master, answer)) in all {
        lines.push(String::new());
        lines.push(master.to_string());
        let told = match answer {
            Ok(facts) => about(survey, place, facts),
            Err(cause) => vec![cause.at(master).to_string()],
        };
        lines.extend(told.into_iter().map(|line| format!("  {line}")));
    }
    lines.push(String::new());
    let widest = promises.iter().map(|promise| promise.name.len()).max().unwrap_or(0);
    for Promise { name, holds, text, cures } in promises {
        let holds = match holds {
            Some(true) => "holds",
            Some(false) => "DOES NOT HOLD",
            None => "not known",
        };
        for (place, reason) in text.iter().enumerate() {
            let begin =
                if place == 0 { format!("{name:widest$}  {holds}: ") } else { format!("{:widest$}  ", "") };
            lines.push(format!("{begin}{reason}"));
        }
        lines.extend(cures.iter().map(|cure| format!("{:widest$}  - {cure}", "")));
    }
    let plain = lines.iter().map(|line| without_control(line.trim_end()) + "\n");
    plain.collect()
}

fn summary(survey: &Survey) -> String {
    let (answered, masters) = (survey.answered(), survey.quorum.masters());
    format!("{answered} of {masters} masters answered (quorum {})", survey.quorum.needed())
}

/// The lines about a master that answered.
fn about(survey: &Survey, place: usize, facts: &Facts) -> Vec<String> {
    let mut lines: Vec<String> = survey.no_vote(place, facts).into_iter().collect();
    lines.extend(facts.found_at.as_ref().map(|address| format!("is at {address} now")));
    match &facts.info {
        Some(info) => {
            lines.push(server(info));
            lines.push(format!("{}; {}", facts.persistence(), memory(info)));
            let id = info.replication_id.as_deref().unwrap_or("not reported");
            lines.push(format!("replication id {id}; {}", marker(&facts.marker)));
        }
        None => lines.push(format!("INFO is not reported; {}", facts.persistence())),
    }
    lines.extend(facts.encryption.as_ref().map(encryption));
    lines.push(clock(facts, survey.standings.get(place).copied().flatten()));
    let user = facts.permissions.user.as_ref().map(|user| format!("user {user}, ")).unwrap_or_default();
    let way = match facts.permissions.way {
        Some(Way::DryRun) => "permissions by ACL DRYRUN",
        Some(Way::Script) => "permissions by a script",
        Some(Way::Queue) => "permissions by MULTI and DISCARD",
        Some(Way::NoLists) => "no lists of permissions",
        None => "permissions not known",
    };
    let tracking = match facts.tracking {
        Ok(()) => "notifies waiters (CLIENT TRACKING)".to_owned(),
        Err(error) => format!("does not notify waiters: {error}"),
    };
    lines.push(format!("{user}{way}; {tracking}"));
    lines
}

fn server(info: &Info) -> String {
    let version = match (&info.kind, &info.version) {
        (Some(kind), Some(version)) => format!("{kind} {version}"),
        _ => "a server of unknown version".to_owned(),
    };
    let role = info.role.as_deref().unwrap_or("role not reported");
    let replicas = match info.replicas {
        None => "replicas not reported".to_owned(),
        Some(0) => "no replicas".to_owned(),
        Some(1) => "1 replica".to_owned(),
        Some(many) => format!("{many} replicas"),
    };
    format!("{version}, {role}, {replicas}")
}

fn encryption(Encryption { version, end }: &Encryption) -> String {
    let Some(end) = end else { return format!("{version}; the end of its certificate cannot be read") };
    if end.is_over() {
        return format!("{version}; its certificate ended on {}: WARNING: renew it now", end.date());
    }
    let left = match end.days {
        0 => "in less than a day".to_owned(),
        1 => "in 1 day".to_owned(),
        days => format!("in {days} days"),
    };
    let renew = if end.is_soon() { ": WARNING: renew it now" } else { "" };
    format!("{version}; its certificate ends {left}, {}{renew}", end.date())
}

fn memory(info: &Info) -> String {
    match (info.max_memory, info.eviction.as_deref()) {
        (Some(0), _) => "no memory limit".to_owned(),
        (Some(limit), Some(policy)) => format!("memory limit of {} MiB, {policy}", limit >> 20),
        _ => "memory limit not reported".to_owned(),
    }
}

fn marker(marker: &Marker) -> String {
    match marker {
        Marker::Absent => "no restart guard".to_owned(),
        Marker::Unknown => "restart guard not reported".to_owned(),
        Marker::Present(mark) => {
            let life = if mark.is_own { "" } else { ", from before a restart" };
            let longest = crate::duration::spoken(mark.longest());
            let masters = mark.fleet.masters;
            let plural = if masters == 1 { "" } else { "s" };
            format!("restart guard of {masters} master{plural} and a longest TTL of {longest}{life}")
        }
    }
}

fn clock(facts: &Facts, standing: Option<Standing>) -> String {
    let trip = format!("round trip {} (p50)", span(facts.reading.round_trip.as_secs_f64()));
    match standing {
        None if facts.reading.clock.is_none() => format!("{trip}; TIME is denied"),
        None => trip,
        Some(Standing { ahead, error, rate, rate_error }) => {
            let side = if ahead < 0.0 { "behind" } else { "ahead of" };
            let pace = if rate < 0.0 { "slower" } else { "faster" };
            format!(
                "{trip}; clock {} {side} the median (± {}), {:.3} % {pace} (± {:.3} %)",
                span(ahead.abs()),
                span(error),
                rate.abs() * 100.0,
                rate_error * 100.0
            )
        }
    }
}

/// A time in seconds, in words.
fn span(seconds: f64) -> String {
    match seconds {
        short if short < 1e-3 => format!("{:.0} µs", short * 1e6),
        middle if middle < 1.0 => format!("{:.1} ms", middle * 1e3),
        long => format!("{long:.1} s"),
    }
}

/// What is printed with `--json`; `quorlock doctor --help` documents the fields.
#[derive(Serialize)]
struct Report<'a> {
    text: String,
    quorum: usize,
    answered: usize,
    promises: Vec<PromiseReport<'a>>,
    masters: Vec<MasterReport>,
}

/// One promise in a [`Report`].
#[derive(Serialize)]
struct PromiseReport<'a> {
    name: &'a str,
    holds: Option<bool>,
    text: String,
    cures: &'a [String],
}

/// One master in a [`Report`].
#[derive(Serialize, Default)]
struct MasterReport {
    address: String,
    server_address: Option<String>,
    answered: bool,
    votes: bool,
    error: Option<String>,
    server: Option<String>,
    version: Option<String>,
    role: Option<String>,
    replicas: Option<u64>,
    replication_id: Option<String>,
    appendonly: Option<bool>,
    appendfsync: Option<String>,
    snapshots: Option<bool>,
    maxmemory: Option<u64>,
    maxmemory_policy: Option<String>,
    tls: Option<&'static str>,
    certificate_ends: Option<String>,
    certificate_days: Option<u64>,
    tracking: Option<bool>,
    user: Option<String>,
    lacking: Option<Vec<String>>,
    repl_backlog_ttl: Option<u64>,
    guard_ms: Option<u128>,
    guard_masters: Option<u32>,
    round_trip_us: Option<u128>,
    clock_ahead_us: Option<f64>,
    clock_error_us: Option<f64>,
    clock_rate: Option<f64>,
    clock_rate_error: Option<f64>,
}

/// The same as one JSON object.
pub(super) fn json(survey: &Survey, promises: &[Promise]) -> String {
    let masters = survey.masters.iter().zip(&survey.answers).enumerate();
    json::line(&Report {
        text: summary(survey),
        quorum: survey.quorum.needed(),
        answered: survey.answered(),
        promises: promises
            .iter()
            .map(|Promise { name, holds, text, cures }| PromiseReport {
                name,
                holds: *holds,
                text: text.join("; "),
                cures,
            })
            .collect(),
        masters: masters
            .map(|(place, (master, answer))| MasterReport {
                address: master.to_string(),
                ..match answer {
                    Ok(facts) => reported(survey, place, facts),
                    Err(cause) => {
                        MasterReport { error: Some(cause.at(master).to_string()), ..Default::default() }
                    }
                }
            })
            .collect(),
    })
}

fn reported(survey: &Survey, place: usize, facts: &Facts) -> MasterReport {
    let objection = survey.no_vote(place, facts);
    let permissions = &facts.permissions;
    let lacking = || {
        let told = permissions.lacking.iter().map(|lack| match &lack.on {
            Some(on) => format!("{} {on}", lack.name),
            None => lack.name.clone(),
        });
        told.collect()
    };
    let mark = facts.marker.mark();
    let standing = survey.standings.get(place).copied().flatten();
    let info = facts.info.as_ref();
    let encryption = facts.encryption.as_ref();
    let end = encryption.and_then(|encryption| encryption.end);
    let told = |field: fn(&Info) -> Option<&String>| info.and_then(field).cloned();
    MasterReport {
        address: String::new(),
        server_address: facts.found_at.as_ref().map(ToString::to_string),
        answered: true,
        votes: objection.is_none(),
        error: objection,
        server: told(|info| info.kind.as_ref()),
        version: told(|info| info.version.as_ref()),
        role: told(|info| info.role.as_ref()),
        replicas: info.and_then(|info| info.replicas),
        replication_id: told(|info| info.replication_id.as_ref()),
        appendonly: info.and_then(|info| info.appends),
        appendfsync: facts.append_fsync.clone(),
        snapshots: facts.has_snapshots,
        maxmemory: info.and_then(|info| info.max_memory),
        maxmemory_policy: told(|info| info.eviction.as_ref()),
        tls: encryption.map(|encryption| encryption.version),
        certificate_ends: end.map(|end| end.date()),
        certificate_days: end.map(|end| end.days),
        tracking: Some(facts.tracking.is_ok()),
        user: permissions.user.clone(),
        lacking: permissions.way.map(|_| lacking()),
        repl_backlog_ttl: facts.backlog_ttl,
        guard_ms: mark.map(|mark| mark.longest().as_millis()),
        guard_masters: mark.map(|mark| mark.fleet.masters),
        round_trip_us: Some(facts.reading.round_trip.as_micros()),
        clock_ahead_us: standing.map(|standing| standing.ahead * 1e6),
        clock_error_us: standing.map(|standing| standing.error * 1e6),
        clock_rate: standing.map(|standing| standing.rate),
        clock_rate_error: standing.map(|standing| standing.rate_error),
    }
}
