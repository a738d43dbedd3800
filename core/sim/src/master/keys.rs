//! Keys of any type.

use super::call::Call;
use super::keyspace::{Entry, Value};
use super::number::integer;
use super::reply::{Failure, NOT_AN_INTEGER, SYNTAX, WRONG_TYPE};

pub(super) fn del(call: &mut Call<'_>) -> Result<(), Failure> {
    let mut removed = 0;
    for key in call.arguments_from(1) {
        removed += i64::from(call.master.keyspace.remove(call.session.database, key, call.now));
    }
    call.reply.integer(removed);
    Ok(())
}

/// A key that is named twice counts twice.
pub(super) fn exists(call: &mut Call<'_>) -> Result<(), Failure> {
    let mut found = 0;
    for key in call.arguments_from(1) {
        call.come_by(key);
        found += i64::from(call.master.keyspace.get(call.session.database, key, call.now).is_some());
    }
    call.reply.integer(found);
    Ok(())
}

pub(super) fn type_of(call: &mut Call<'_>) -> Result<(), Failure> {
    call.come_by(call.argument(1));
    let held = call.master.keyspace.get(call.session.database, call.argument(1), call.now);
    call.reply.simple(match held.map(|entry| &entry.value) {
        None => "none",
        Some(Value::Text(_)) => "string",
        Some(Value::List(_)) => "list",
        Some(Value::Scores(_)) => "zset",
    });
    Ok(())
}

/// Lists exist only as a type that no lock has, so only their length is stored.
pub(super) fn push(call: &mut Call<'_>) -> Result<(), Failure> {
    let (database, key) = (call.session.database, call.argument(1));
    call.come_by(key);
    let (before, end) = match call.master.keyspace.get(database, key, call.now) {
        None => (0, None),
        Some(Entry { value: Value::List(length), end }) => (*length, *end),
        Some(_) => return Err(WRONG_TYPE),
    };
    let length = before.saturating_add(call.arguments_from(2).len() as u64);
    call.master.keyspace.put(database, key, Entry { value: Value::List(length), end }, call.now);
    call.reply.integer(i64::try_from(length).unwrap_or(i64::MAX));
    Ok(())
}

/// A real server also counts expired keys until it deletes them.
pub(super) fn dbsize(call: &mut Call<'_>) -> Result<(), Failure> {
    let keys = call.master.keyspace.live(call.session.database, call.now).count();
    call.reply.integer(i64::try_from(keys).unwrap_or(i64::MAX));
    Ok(())
}

/// All keys come with the first answer, in the order of their bytes. In a pattern only `*` is
/// special.
pub(super) fn scan(call: &mut Call<'_>) -> Result<(), Failure> {
    integer(call.argument(1)).ok_or(Failure::new("ERR invalid cursor"))?;
    let mut pattern: &[u8] = b"*";
    for option in call.arguments_from(2).chunks(2) {
        match option {
            [name, value] if name.eq_ignore_ascii_case(b"MATCH") => pattern = value,
            [name, value] if name.eq_ignore_ascii_case(b"COUNT") => {
                let count = integer(value).ok_or(NOT_AN_INTEGER)?;
                if count < 1 {
                    return Err(SYNTAX);
                }
            }
            _ => return Err(SYNTAX),
        }
    }
    if pattern.iter().any(|byte| b"?[\\".contains(byte)) {
        return Err(Failure::new("ERR of the special characters in a pattern this server knows only *"));
    }
    let keys = call.master.keyspace.live(call.session.database, call.now);
    let keys: Vec<_> = keys.map(|(key, _)| key).filter(|key| matches(pattern, key)).collect();
    call.reply.array(2);
    call.reply.bulk(b"0");
    call.reply.array(keys.len());
    for key in keys {
        call.reply.bulk(key);
    }
    Ok(())
}

/// Whether a text has the parts of a pattern between its `*`, in their order.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts.filter(|part| !part.is_empty()) {
        let Some(found) = rest.windows(part.len()).position(|window| window == part) else { return false };
        rest = rest.get(found + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

pub(super) fn flushdb(call: &mut Call<'_>) -> Result<(), Failure> {
    call.accept_last_word(1, ["ASYNC", "SYNC"])?;
    call.master.keyspace.clear(call.session.database);
    call.reply.ok();
    Ok(())
}

pub(super) fn flushall(call: &mut Call<'_>) -> Result<(), Failure> {
    call.accept_last_word(1, ["ASYNC", "SYNC"])?;
    call.master.remove_all();
    call.reply.ok();
    Ok(())
}
