//! SET, GET, MGET and INCR.

use super::call::Call;
use super::expiry::{Unit, end_of_set};
use super::keyspace::{Entry, Millis, Value};
use super::number::integer;
use super::reply::{Failure, NOT_AN_INTEGER, SYNTAX};

pub(super) fn get(call: &mut Call<'_>) -> Result<(), Failure> {
    call.come_by(call.argument(1));
    match call.master.keyspace.text(call.session.database, call.argument(1), call.now)? {
        Some(text) => call.reply.bulk(text),
        None => call.reply.null(),
    }
    Ok(())
}

/// A key of another type counts as none.
pub(super) fn mget(call: &mut Call<'_>) -> Result<(), Failure> {
    let keys = call.arguments_from(1);
    call.reply.array(keys.len());
    for key in keys {
        call.come_by(key);
        match call.master.keyspace.text(call.session.database, key, call.now) {
            Ok(Some(text)) => call.reply.bulk(text),
            _ => call.reply.null(),
        }
    }
    Ok(())
}

pub(super) fn set(call: &mut Call<'_>) -> Result<(), Failure> {
    let (database, key) = (call.session.database, call.argument(1));
    let options = Options::read(call.arguments_from(3))?;
    let end = options.end(call.now)?;
    call.come_by(key);
    let held = call.master.keyspace.get(database, key, call.now);
    if options.get {
        match held.map(Entry::text).transpose()? {
            Some(text) => call.reply.bulk(text),
            None => call.reply.null(),
        }
    }
    let is_wanted = match options.only_if {
        None => true,
        Some(OnlyIf::Absent) => held.is_none(),
        Some(OnlyIf::Present) => held.is_some(),
    };
    if !is_wanted {
        if !options.get {
            call.reply.null();
        }
        return Ok(());
    }
    let kept = held.and_then(|entry| entry.end).filter(|_| options.keeps_end);
    let value = Value::Text(call.argument(2).to_vec());
    call.master.keyspace.put(database, key, Entry { value, end: end.or(kept) }, call.now);
    if !options.get {
        call.reply.ok();
    }
    Ok(())
}

pub(super) fn incr(call: &mut Call<'_>) -> Result<(), Failure> {
    let (database, key) = (call.session.database, call.argument(1));
    call.come_by(key);
    let held = call.master.keyspace.get(database, key, call.now);
    let end = held.and_then(|entry| entry.end);
    let before = match held.map(Entry::text).transpose()? {
        Some(text) => integer(text).ok_or(NOT_AN_INTEGER)?,
        None => 0,
    };
    let overflow = Failure::new("ERR increment or decrement would overflow");
    let after = before.checked_add(1).ok_or(overflow)?;
    let value = Value::Text(after.to_string().into_bytes());
    call.master.keyspace.put(database, key, Entry { value, end }, call.now);
    call.reply.integer(after);
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum OnlyIf {
    Absent,
    Present,
}

/// The options after `SET key value`.
#[derive(Default)]
struct Options<'a> {
    only_if: Option<OnlyIf>,
    get: bool,
    keeps_end: bool,
    life: Option<(Unit, &'a [u8])>,
}

impl<'a> Options<'a> {
    /// As in Redis, a word may occur twice, and the last of two expiries in the same unit counts.
    fn read(words: &'a [Vec<u8>]) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" if options.only_if != Some(OnlyIf::Present) => options.only_if = Some(OnlyIf::Absent),
                b"XX" if options.only_if != Some(OnlyIf::Absent) => options.only_if = Some(OnlyIf::Present),
                b"GET" => options.get = true,
                b"KEEPTTL" if options.life.is_none() => options.keeps_end = true,
                name => {
                    let unit = Unit::of_set(name).ok_or(SYNTAX)?;
                    let is_fresh =
                        options.life.is_none_or(|(before, _)| before == unit) && !options.keeps_end;
                    let life = words.next().filter(|_| is_fresh).ok_or(SYNTAX)?;
                    options.life = Some((unit, life));
                }
            }
        }
        Ok(options)
    }

    fn end(&self, now: Millis) -> Result<Option<Millis>, Failure> {
        self.life.map(|(unit, life)| end_of_set(unit, life, now)).transpose()
    }
}
