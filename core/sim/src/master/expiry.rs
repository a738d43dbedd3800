//! How long keys live.

use super::call::Call;
use super::keyspace::Millis;
use super::number::integer;
use super::reply::{Failure, NOT_AN_INTEGER};

/// The unit and origin of a time in a command.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Unit {
    Seconds,
    Millis,
    /// Seconds since the Unix epoch.
    AtSeconds,
    /// Milliseconds since the Unix epoch.
    AtMillis,
}

impl Unit {
    /// The meaning of an option of SET.
    pub(super) fn of_set(word: &[u8]) -> Option<Self> {
        match word {
            b"EX" => Some(Self::Seconds),
            b"PX" => Some(Self::Millis),
            b"EXAT" => Some(Self::AtSeconds),
            b"PXAT" => Some(Self::AtMillis),
            _ => None,
        }
    }
}

/// The expiry that SET gives a key. It must be after the epoch, but may be in the past.
pub(super) fn end_of_set(unit: Unit, life: &[u8], now: Millis) -> Result<Millis, Failure> {
    let life = integer(life).ok_or(NOT_AN_INTEGER)?;
    let invalid = || Failure::new("ERR invalid expire time in 'set' command");
    if life <= 0 {
        return Err(invalid());
    }
    let end = match unit {
        Unit::Millis => life.checked_add(now),
        Unit::AtMillis => Some(life),
        Unit::Seconds => life.checked_mul(1000).and_then(|life| life.checked_add(now)),
        Unit::AtSeconds => life.checked_mul(1000),
    };
    end.ok_or_else(invalid)
}

pub(super) fn pttl(call: &mut Call<'_>) -> Result<(), Failure> {
    call.come_by(call.argument(1));
    let left = call.master.keyspace.pttl(call.session.database, call.argument(1), call.now);
    call.reply.integer(left);
    Ok(())
}

pub(super) fn ttl(call: &mut Call<'_>) -> Result<(), Failure> {
    call.come_by(call.argument(1));
    let left = call.master.keyspace.pttl(call.session.database, call.argument(1), call.now);
    call.reply.integer(if left < 0 { left } else { left.saturating_add(500) / 1000 });
    Ok(())
}

pub(super) fn pexpiretime(call: &mut Call<'_>) -> Result<(), Failure> {
    call.come_by(call.argument(1));
    let held = call.master.keyspace.get(call.session.database, call.argument(1), call.now);
    call.reply.integer(held.map_or(-2, |entry| entry.end.unwrap_or(-1)));
    Ok(())
}

pub(super) fn persist(call: &mut Call<'_>) -> Result<(), Failure> {
    let (database, key) = (call.session.database, call.argument(1));
    call.come_by(key);
    let had_end = call.master.keyspace.get(database, key, call.now).is_some_and(|entry| entry.end.is_some());
    if had_end {
        call.master.keyspace.set_end(database, key, None);
    }
    call.reply.integer(had_end.into());
    Ok(())
}

pub(super) fn pexpire(call: &mut Call<'_>) -> Result<(), Failure> {
    let limits = Limits::read(call.arguments_from(3))?;
    let has_changed = set_life(call, Unit::Millis, "pexpire", limits)?;
    call.reply.integer(has_changed.into());
    Ok(())
}

pub(super) fn expire(call: &mut Call<'_>) -> Result<(), Failure> {
    let limits = Limits::read(call.arguments_from(3))?;
    let has_changed = set_life(call, Unit::Seconds, "expire", limits)?;
    call.reply.integer(has_changed.into());
    Ok(())
}

fn set_life(call: &mut Call<'_>, unit: Unit, command: &str, limits: Limits) -> Result<bool, Failure> {
    let (database, key) = (call.session.database, call.argument(1));
    let end = end_from_now(call.argument(2), unit, command, call.now)?;
    call.come_by(key);
    let Some(entry) = call.master.keyspace.get(database, key, call.now) else { return Ok(false) };
    if !limits.allow(entry.end, end) {
        return Ok(false);
    }
    call.master.expire_at(database, key, end, call.now);
    Ok(true)
}

/// The expiry that EXPIRE or PEXPIRE gives a key; it may be in the past.
pub(super) fn end_from_now(life: &[u8], unit: Unit, command: &str, now: Millis) -> Result<Millis, Failure> {
    let life = integer(life).ok_or(NOT_AN_INTEGER)?;
    let life = if unit == Unit::Seconds { life.checked_mul(1000) } else { Some(life) };
    life.and_then(|life| life.checked_add(now))
        .ok_or_else(|| Failure::raw(format!("ERR invalid expire time in '{command}' command").into_bytes()))
}

impl super::Master {
    /// Sets the expiry of an existing key. An expiry that is not in the future deletes the key at
    /// once.
    pub(super) fn expire_at(&mut self, database: u32, key: &[u8], end: Millis, now: Millis) {
        if end <= now {
            self.keyspace.remove(database, key, now);
        } else {
            self.keyspace.set_end(database, key, Some(end));
        }
    }
}

/// The options after `PEXPIRE key life`.
#[derive(Clone, Copy, Default)]
struct Limits {
    only_without_end: bool,
    only_with_end: bool,
    only_later: bool,
    only_earlier: bool,
}

impl Limits {
    fn read(words: &[Vec<u8>]) -> Result<Self, Failure> {
        let mut limits = Self::default();
        for word in words {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => limits.only_without_end = true,
                b"XX" => limits.only_with_end = true,
                b"GT" => limits.only_later = true,
                b"LT" => limits.only_earlier = true,
                _ => return Err(Failure::of(&[b"ERR Unsupported option ", word])),
            }
        }
        if limits.only_without_end && (limits.only_with_end || limits.only_later || limits.only_earlier) {
            return Err(Failure::new("ERR NX and XX, GT or LT options at the same time are not compatible"));
        }
        if limits.only_later && limits.only_earlier {
            return Err(Failure::new("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(limits)
    }

    /// A key without an expiry counts as one whose expiry is infinitely far away.
    fn allow(self, before: Option<Millis>, after: Millis) -> bool {
        !(self.only_without_end && before.is_some()
            || self.only_with_end && before.is_none()
            || self.only_later && before.is_none_or(|before| after <= before)
            || self.only_earlier && before.is_some_and(|before| after >= before))
    }
}
