//! Whether two replies are the same, except for what must differ between any two servers.

use std::collections::BTreeMap;

use quorlock_sim::{Command, CommandKind};

use crate::commands::KEYS;
use crate::frames::parts;
use crate::versions::Version;

/// Fields of INFO about the server's state, not its identity.
const SAME_FIELDS: [&str; 8] = [
    "role",
    "loading",
    "maxmemory",
    "maxmemory_policy",
    "connected_slaves",
    "master_replid",
    "second_repl_offset",
    "master_failover_state",
];

pub(crate) fn fits(version: Version, command: &Command, model: &[u8], real: &[u8]) -> bool {
    if model == real || version.words_it_so(model, real) {
        return true;
    }
    if command.kind() == CommandKind::Inspect {
        return same_inspection(model, real);
    }
    let name = command.name().to_ascii_uppercase();
    let subcommand = command.arguments().get(1).map(|word| word.to_ascii_uppercase());
    let both_start = |start: &[u8]| model.starts_with(start) && real.starts_with(start);
    match (name.as_slice(), subcommand.as_deref()) {
        (b"HELLO", _) => same_greeting(version, model, real),
        (b"CLIENT", Some(b"ID")) => both_start(b":"),
        (b"CLIENT", Some(b"INFO")) => both_start(b"$") || both_start(b"="),
        (b"TIME", _) => both_start(b"*2\r\n$10\r\n"),
        (b"INFO", _) => (both_start(b"$") || both_start(b"=")) && same_info(model, real),
        (b"DBSIZE", _) => between(model, real),
        _ => false,
    }
}

/// Compares inspections, except for the microseconds of the clock.
fn same_inspection(model: &[u8], real: &[u8]) -> bool {
    let told = |reply: &[u8]| {
        let mut parts = parts(reply);
        let about_server = if parts.len() == 10 { parts.split_off(8) } else { Vec::new() };
        if let Some(micros) = parts.get_mut(6) {
            micros.truncate(micros.len().saturating_sub(3));
        }
        (parts, about_server)
    };
    let ((model, of_model), (real, of_real)) = (told(model), told(real));
    let is_same = of_model.iter().zip(&of_real).all(|(model, real)| same_info(model, real));
    model == real && of_model.len() == of_real.len() && is_same
}

/// Compares greetings, except for the name, the version and the number of the connection.
fn same_greeting(version: Version, model: &[u8], real: &[u8]) -> bool {
    let masked = |reply: &[u8]| {
        let mut parts = parts(reply);
        if !version.is_modelled() {
            // The built-in modules depend on the server.
            let modules = parts.iter().position(|part| part == b"modules");
            parts.truncate(modules.expect("every server names its modules"));
        }
        for place in 1..parts.len() {
            let is_own = match parts[place - 1].as_slice() {
                b"id" => true,
                b"server" | b"version" => !version.is_modelled(),
                _ => false,
            };
            if is_own {
                parts[place].clear();
            }
        }
        parts
    };
    let is_map = |reply: &[u8]| reply.starts_with(b"%7\r\n") || reply.starts_with(b"*14\r\n");
    is_map(model) && masked(model) == masked(real)
}

/// Compares INFO. The model writes fewer fields; the server must have each of them, and those about
/// the state must be equal.
fn same_info(model: &[u8], real: &[u8]) -> bool {
    let fields = |reply: &[u8]| -> BTreeMap<String, String> {
        let text = String::from_utf8_lossy(reply).into_owned();
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.map(|(field, value)| (field.to_owned(), value.to_owned())).collect()
    };
    let (model, real) = (fields(model), fields(real));
    model.iter().filter(|(field, _)| !field.starts_with("db")).all(|(field, value)| {
        let is_same = !SAME_FIELDS.contains(&field.as_str());
        real.get(field).is_some_and(|real| is_same || real == value)
    })
}

/// Compares the numbers of keys. A server also counts expired keys until it deletes them.
fn between(model: &[u8], real: &[u8]) -> bool {
    let number =
        |reply: &[u8]| std::str::from_utf8(reply).ok()?.trim().strip_prefix(':')?.parse::<usize>().ok();
    match (number(model), number(real)) {
        (Some(model), Some(real)) => model <= real && real <= KEYS.len(),
        _ => false,
    }
}
