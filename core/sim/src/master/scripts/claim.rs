//! The common parts of scripts for several targets: their arguments, and one read target.

use super::{Body, NO_ARGUMENT, NO_COUNTER};
use crate::master::number::{lua_integer, lua_max, lua_number};
use crate::master::reply::Failure;

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

    /// The number of a read target's key; those of its set and its mark follow.
    pub(super) fn place(&self, target: usize) -> usize {
        self.written + 3 * target - 2
    }
}

impl<'b> Body<'_, 'b> {
    pub(super) fn many(&self) -> Result<Many<'b>, Failure> {
        let number = |place: usize| self.value(place).and_then(lua_number).ok_or(NO_ARGUMENT);
        let count = |place: usize| usize::try_from(lua_integer(number(place)?)).map_err(|_| NO_ARGUMENT);
        let (flags, written, read) = (self.worth(4)?, count(5)?, count(6)?);
        let marks = written + 3 * read;
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
        let place = many.place(target);
        let held = self.get(self.key(place))?;
        let mut end = None;
        if held.as_deref() == Some(self.sentinel(target)?) {
            let score = self.zscore(self.named(place + 1)?, many.token)?;
            end = score.map(|score| score as f64).filter(|end| *end > many.now);
        }
        Ok(Looked { held, end })
    }

    /// Puts our entry into a read target, or moves its end later.
    pub(super) fn share(&mut self, many: &Many<'b>, target: usize, found: &Looked) -> Result<(), Failure> {
        let (place, sentinel) = (many.place(target), self.sentinel(target)?);
        let (key, set) = (self.named(place)?, self.named(place + 1)?);
        let mut last = (many.now + many.life).max(found.end.unwrap_or_default());
        let Some(held) = &found.held else {
            let whole = rounded(last + 1.0 - many.now);
            self.set_with_end(key, sentinel, whole.as_bytes())?;
            let entered = self.enter_first(set, whole.as_bytes(), (last, many.token));
            if entered.is_err() {
                let _ = self.delete_all(&[key]);
            }
            return entered;
        };
        let left = self.pttl_of(key) as f64;
        if *held == many.token {
            last = last.max(many.now + left);
            let whole = last + 1.0 - many.now;
            self.delete_all(&[set])?;
            self.enter(set, whole, &[(last, many.token)])?;
            return self.set_with_end(key, sentinel, written(whole).as_bytes());
        }
        let longest = self.longest(set)?.map(|longest| longest as f64);
        let lost = (longest.is_none() && left > 1.0).then_some(many.now + left - 1.0);
        let whole = last.max(longest.unwrap_or_default()).max(lost.unwrap_or_default()) + 1.0 - many.now;
        if left >= 0.0 && left < whole {
            self.pexpire(key, written(whole).as_bytes())?;
        }
        match lost {
            Some(end) => self.enter(set, whole, &[(last, many.token), (end, b"lost")]),
            None => {
                self.enter(set, whole, &[(last, many.token)])?;
                self.drop_until(set, lua_integer(many.now))
            }
        }
    }

    /// Puts an entry into a set whose present contents do not count.
    fn enter_first(&mut self, set: &[u8], whole: &[u8], (last, token): (f64, &[u8])) -> Result<(), Failure> {
        if self.pexpire(set, whole)? {
            self.delete_all(&[set])?;
        }
        self.zadd(set, &[(lua_integer(last), token)])?;
        self.pexpire(set, whole).map(drop)
    }

    fn enter(&mut self, set: &[u8], whole: f64, scored: &[(f64, &[u8])]) -> Result<(), Failure> {
        let whole = written(whole);
        let is_there = self.pexpire(set, whole.as_bytes())?;
        let scored: Vec<_> = scored.iter().map(|(score, member)| (lua_integer(*score), *member)).collect();
        self.zadd(set, &scored)?;
        if !is_there {
            self.pexpire(set, whole.as_bytes())?;
        }
        Ok(())
    }

    /// `lengthen(key)`
    pub(super) fn lengthen_by(&mut self, many: &Many<'b>, key: &[u8]) -> Result<(), Failure> {
        let left = self.pttl_of(key);
        if left >= 0 && (left as f64) < many.life {
            self.pexpire(key, self.worth(2)?)?;
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

/// A number as `string.format('%.0f', …)` writes it.
pub(super) fn rounded(number: f64) -> String {
    format!("{number:.0}")
}

/// A number as a script gives it to a command: with 18 digits or more it is not an integer any
/// more.
pub(super) fn written(number: f64) -> String {
    if number.abs() < 1e17 { format!("{number:.0}") } else { format!("{number:e}") }
}
