//! The common parts of scripts for several targets: their arguments, and one read target.

use super::{Body, NO_ARGUMENT, NO_COUNTER};
use crate::master::number::{lua_integer, lua_max, lua_number};
use crate::master::reply::{Failure, OUT_OF_MEMORY};
use crate::master::sharers;

/// The arguments of such a script.
#[derive(Clone, Copy)]
pub(super) struct Many<'b> {
    pub(super) token: &'b [u8],
    pub(super) life: f64,
    pub(super) number: f64,
    flags: &'b [u8],
    pub(super) written: usize,
    pub(super) read: usize,
    /// The last key before the want marks, and the last one before the counters.
    pub(super) marks: usize,
    pub(super) counters: usize,
    /// The server's time at the beginning, if a target is shared.
    pub(super) now: f64,
}

/// A read target as a script has found it.
#[derive(Default)]
pub(super) struct Looked {
    pub(super) held: Option<Vec<u8>>,
    /// When our entry ends, if it has not ended.
    pub(super) end: Option<f64>,
}

impl Many<'_> {
    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags.contains(&flag)
    }

    /// The number of a read target's key; that of its mark follows.
    pub(super) fn place(&self, target: usize) -> usize {
        self.written + 2 * target - 1
    }
}

impl<'b> Body<'_, 'b> {
    pub(super) fn many(&self) -> Result<Many<'b>, Failure> {
        let number = |place: usize| self.value(place).and_then(lua_number).ok_or(NO_ARGUMENT);
        let count = |place: usize| usize::try_from(lua_integer(number(place)?)).map_err(|_| NO_ARGUMENT);
        let (flags, written, read) = (self.worth(4)?, count(5)?, count(6)?);
        let marks = written + 2 * read;
        let counters = marks + if flags.contains(&b'm') { written } else { 0 };
        let (token, life, number) = (self.worth(1)?, number(2)?, number(3)?);
        Ok(Many { token, life, number, flags, written, read, marks, counters, now: 0.0 })
    }

    /// The same with the server's time.
    pub(super) fn many_now(&mut self) -> Result<Many<'b>, Failure> {
        let many = self.many()?;
        Ok(self.at_this_time(many))
    }

    pub(super) fn at_this_time(&mut self, many: Many<'b>) -> Many<'b> {
        let now = if many.read > 0 { self.clock() as f64 } else { 0.0 };
        Many { now, ..many }
    }

    pub(super) fn sentinel(&self, target: usize) -> Result<&'b [u8], Failure> {
        self.worth(6 + target)
    }

    pub(super) fn look(&mut self, many: &Many<'b>, target: usize) -> Result<Looked, Failure> {
        let held = self.get(self.key(many.place(target)))?;
        let entries = held.as_deref().unwrap_or_default().strip_prefix(self.sentinel(target)?);
        let end = entries.and_then(|entries| sharers::end_of(entries, many.token));
        let end = end.map(|end| end as f64).filter(|end| *end > many.now);
        Ok(Looked { held, end })
    }

    /// Puts our entry into a read target, or moves its end later.
    pub(super) fn share(&mut self, many: &Many<'b>, target: usize, found: &Looked) -> Result<(), Failure> {
        let (key, sentinel) = (self.named(many.place(target))?, self.sentinel(target)?);
        let mut ends = (many.now + many.life).max(found.end.unwrap_or_default());
        let Some(held) = &found.held else {
            let (ends, whole) = end_and_life(ends, many.now);
            let value = [sentinel, &sharers::entry(ends, many.token)].concat();
            return self.set_with_end(key, &value, rounded(whole).as_bytes());
        };
        let left = self.pttl_of(key) as f64;
        if *held == many.token {
            ends = ends.max(many.now + left);
        }
        let (ends, whole) = end_and_life(ends, many.now);
        let own = sharers::entry(ends, many.token);
        let Some(entries) = held.strip_prefix(sentinel) else {
            return self.put_sharers(key, &[sentinel, &own].concat(), ends, many.now);
        };
        let place = sharers::place_of(entries, many.token).or_else(|| sharers::free_place(entries));
        if found.end.is_some() {
            if left >= 0.0 && left < whole {
                self.pexpire(key, rounded(whole).as_bytes())?;
            }
            return self.replace(key, place.map(|place| sentinel.len() + place), &own, left);
        }
        if place.is_none() && (entries.len() / sharers::ENTRY).is_power_of_two() {
            let (others, most) = sharers::alive(entries, many.now, &[]);
            if others.len() < entries.len() {
                let whole = rounded(most.max(ends) + 1.0 - many.now);
                return self.set_with_end(key, &[sentinel, &others, &own].concat(), whole.as_bytes());
            }
        }
        self.set_range(key, place.map(|place| sentinel.len() + place), &own)?;
        if left >= 0.0 && left < whole {
            self.pexpire(key, rounded(whole).as_bytes())?;
        }
        Ok(())
    }

    /// `put(x, value, most)`
    pub(super) fn put_sharers(
        &mut self,
        key: &[u8],
        value: &[u8],
        most: f64,
        now: f64,
    ) -> Result<(), Failure> {
        let whole = rounded(most + 1.0 - now);
        self.pexpire(key, whole.as_bytes())?;
        self.set_with_end(key, value, whole.as_bytes())
    }

    /// `replace(x, at, entry, left)`
    pub(super) fn replace(
        &mut self,
        key: &[u8],
        place: Option<usize>,
        entry: &[u8],
        left: f64,
    ) -> Result<(), Failure> {
        match self.set_range(key, place, entry) {
            Err(error) if error == OUT_OF_MEMORY && left > 0.0 => {
                self.pexpire(key, rounded(left).as_bytes())?;
                self.set_range(key, place, entry)
            }
            done => done,
        }
    }

    /// `SETRANGE`, or without a place `APPEND`: writes an entry into a value.
    pub(super) fn set_range(
        &mut self,
        key: &[u8],
        place: Option<usize>,
        entry: &[u8],
    ) -> Result<(), Failure> {
        self.may_write()?;
        let database = self.call.session.database;
        let Some(held) = self.call.master.keyspace.get(database, key, self.call.now) else { return Ok(()) };
        let (mut value, end) = (held.text()?.to_vec(), held.end);
        let place = place.unwrap_or(value.len());
        value.resize(value.len().max(place + entry.len()), 0);
        if let Some(part) = value.get_mut(place..place + entry.len()) {
            part.copy_from_slice(entry);
        }
        self.put(key, &value, end);
        Ok(())
    }

    /// `lengthen(key)`
    pub(super) fn lengthen_by(&mut self, many: &Many<'b>, key: &[u8]) -> Result<(), Failure> {
        let left = self.pttl_of(key);
        if left < 0 {
            return Ok(());
        }
        let left = left as f64;
        if left < many.life {
            self.pexpire(key, self.worth(2)?)?;
        } else {
            self.pexpire(key, written(left).as_bytes())?;
        }
        Ok(())
    }

    /// `count(i)`
    pub(super) fn counter_of(&mut self, many: &Many<'b>, target: usize) -> Result<f64, Failure> {
        let counter = self.get(self.key(many.counters + target))?;
        let counter = counter.map_or(Some(0.0), |counter| lua_number(&counter));
        counter.filter(|counter| !counter.is_nan()).ok_or(NO_COUNTER)
    }

    /// `raise()`: the largest counter of the written targets.
    pub(super) fn raise_all_counters(&mut self, many: &Many<'b>) -> Result<f64, Failure> {
        let mut largest = 0.0;
        for target in 1..=many.written + many.read {
            let mut counter = self.counter_of(many, target)?;
            if counter < many.number {
                self.set(self.key(many.counters + target), self.value(3))?;
                counter = many.number;
            }
            if target <= many.written {
                largest = lua_max(largest, counter);
            }
        }
        Ok(largest)
    }
}

/// When an entry ends, and how long its key lives with it. A double holds larger integers only
/// roughly.
fn end_and_life(ends: f64, now: f64) -> (f64, f64) {
    let ends = ends.min(9_007_199_254_740_991.0);
    (ends, ends + 1.0 - now)
}

/// A number as `string.format('%.0f', …)` writes it.
pub(super) fn rounded(number: f64) -> String {
    format!("{number:.0}")
}

/// A number as a script gives it to a command: with a fraction, or with 18 digits or more, it is no
/// integer.
pub(super) fn written(number: f64) -> String {
    if number.abs() < 1e17 { number.to_string() } else { format!("{number:e}") }
}
