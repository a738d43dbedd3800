//! Keys of any type.

use super::call::Call;
use super::keyspace::{Entry, Value};
use super::reply::{Failure, WRONG_TYPE};

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
