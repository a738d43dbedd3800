//! What a server reports about itself.

use std::fmt::Write;

use super::call::{Call, Role};
use super::keyspace::{Keyspace, Millis};
use super::reply::Failure;
use super::{Master, replicas};

/// The version of the model.
const VERSION: &str = "7.0.15";

/// The version that it reports.
pub(super) fn version(master: &Master) -> &'static str {
    master.conditions.version.unwrap_or(VERSION)
}

/// A section of INFO: how it is asked for, its title and what writes its fields.
type Section = (&'static str, &'static str, fn(&Master, Millis) -> Vec<(&'static str, String)>);

const SECTIONS: [Section; 6] = [
    ("server", "Server", server),
    ("clients", "Clients", clients),
    ("memory", "Memory", memory),
    ("persistence", "Persistence", persistence),
    ("stats", "Stats", stats),
    ("replication", "Replication", replication),
];

/// The fields that clients look at. A real server writes many more.
pub(super) fn info(call: &mut Call<'_>) -> Result<(), Failure> {
    let text = text(call, call.arguments_from(1));
    call.reply.verbatim(&text);
    Ok(())
}

/// The sections that are asked for.
pub(super) fn text<W: AsRef<[u8]>>(call: &Call<'_>, asked: &[W]) -> String {
    let is_asked = |name: &str| {
        let all = ["default", "all", "everything"];
        let is = |word: &W, name: &str| word.as_ref().eq_ignore_ascii_case(name.as_bytes());
        asked.is_empty() || asked.iter().any(|word| is(word, name) || all.iter().any(|all| is(word, all)))
    };
    let mut texts = Vec::new();
    for (name, title, fields) in SECTIONS {
        if is_asked(name) {
            let mut text = format!("# {title}\r\n");
            for (field, value) in fields(call.master, call.now) {
                // Writing to a string does not fail.
                let _ = write!(text, "{field}:{value}\r\n");
                if field == "connected_slaves" {
                    text += &replicas::lines(call.master, call.now);
                }
            }
            texts.push(text);
        }
    }
    if is_asked("keyspace") {
        texts.push(keyspace(&call.master.keyspace, call.now));
    }
    texts.join("\r\n")
}

fn server(master: &Master, now: Millis) -> Vec<(&'static str, String)> {
    let uptime = now.saturating_sub(master.started.unwrap_or(now)).max(0) / 1000;
    vec![
        ("redis_version", version(master).to_owned()),
        ("run_id", master.run_id.clone()),
        ("server_time_usec", now.saturating_mul(1000).to_string()),
        ("uptime_in_seconds", uptime.to_string()),
        ("uptime_in_days", (uptime / 86_400).to_string()),
    ]
}

fn clients(_: &Master, _: Millis) -> Vec<(&'static str, String)> {
    vec![("maxclients", "10000".to_owned()), ("blocked_clients", "0".to_owned())]
}

fn memory(master: &Master, _: Millis) -> Vec<(&'static str, String)> {
    vec![
        ("used_memory", master.used_memory().to_string()),
        ("maxmemory", master.settings.max_memory.to_string()),
        ("maxmemory_policy", master.settings.policy.to_owned()),
    ]
}

fn persistence(master: &Master, _: Millis) -> Vec<(&'static str, String)> {
    let loading = u8::from(master.conditions.loading).to_string();
    vec![("loading", loading), ("aof_enabled", "0".to_owned())]
}

fn stats(master: &Master, _: Millis) -> Vec<(&'static str, String)> {
    vec![("total_commands_processed", master.executed.to_string()), ("evicted_keys", "0".to_owned())]
}

fn replication(master: &Master, _: Millis) -> Vec<(&'static str, String)> {
    let mut fields = match master.conditions.role {
        Role::Master => vec![("role", "master".to_owned())],
        Role::Replica => vec![
            ("role", "slave".to_owned()),
            ("master_link_status", "up".to_owned()),
            ("slave_read_only", "1".to_owned()),
        ],
    };
    let former = &master.former_replication_id;
    fields.extend([
        ("connected_slaves", master.conditions.replicas.connected().to_string()),
        ("master_failover_state", "no-failover".to_owned()),
        ("master_replid", master.replication_id.clone()),
        ("master_replid2", former.clone().unwrap_or_else(|| "0".repeat(40))),
        ("master_repl_offset", "0".to_owned()),
        ("second_repl_offset", if former.is_some() { "1" } else { "-1" }.to_owned()),
    ]);
    if !master.conditions.dialect.tells_replication_id() {
        fields.retain(|(name, _)| !name.starts_with("master_replid"));
    }
    fields
}

fn keyspace(keyspace: &Keyspace, now: Millis) -> String {
    let mut text = "# Keyspace\r\n".to_owned();
    for database in keyspace.databases() {
        let keys = keyspace.live(database, now).count();
        let with_end = keyspace.live(database, now).filter(|(_, entry)| entry.end.is_some()).count();
        if keys > 0 {
            // Writing to a string does not fail.
            let _ = write!(text, "db{database}:keys={keys},expires={with_end},avg_ttl=0\r\n");
        }
    }
    text
}

/// Seconds and microseconds since the Unix epoch. The model's clock has milliseconds.
pub(super) fn time(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.array(2);
    call.reply.bulk((call.now / 1000).to_string().as_bytes());
    call.reply.bulk((call.now % 1000 * 1000).to_string().as_bytes());
    Ok(())
}

/// Tools ask for all commands when they connect, and accept an empty list.
pub(super) fn command(call: &mut Call<'_>) -> Result<(), Failure> {
    call.reply.array(0);
    Ok(())
}
