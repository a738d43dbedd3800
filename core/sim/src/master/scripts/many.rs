//! The scripts of claims of several targets, written or read.

use super::claim::{Looked, Many};
use super::fleet::Standing;
use super::plain::no_wrong_type;
use super::{Body, LAST_FENCE, USED_UP};
use crate::master::number::lua_max;
use crate::master::reply::Failure;
use crate::master::sharers;

impl<'b> Body<'_, 'b> {
    pub(super) fn acquire_all(&mut self) -> Result<(), Failure> {
        let many = self.many()?;
        let mut floor = 0.0;
        if many.has(b'g') {
            match self.check_marker()? {
                Standing::Votes { opens } => floor = opens * 1024.0,
                Standing::Answered => return Ok(()),
            }
        }
        let many = self.at_this_time(many);
        let mut refused = self.first_written(&many)?;
        let (mut targets, mut wanted) = (Vec::new(), None);
        for target in 1..=if refused.is_some() { 0 } else { many.read } {
            let place = many.place(target);
            let held = self.get(self.key(place)).map_err(|error| error.at_target(many.written + target))?;
            let sentinel = self.sentinel(target)?;
            let entries = held.as_deref().map(|held| held.strip_prefix(sentinel));
            let may_enter = |entries: &[u8]| sharers::end_of(entries, many.token).is_none();
            if entries.is_some_and(|entries| !entries.is_some_and(may_enter)) {
                refused = Some(place);
                break;
            }
            if !many.has(b'i') {
                let left = self.pttl_of(self.named(place + 1)?);
                wanted = wanted.or((left != -2).then_some(left));
            }
            targets.push(Looked { held, end: None });
        }
        if let Some(place) = refused {
            return self.tell_place(place, None).map(drop);
        }
        if let Some(left) = wanted {
            self.call.reply.array(2);
            self.call.reply.bulk(b"wanted");
            self.call.reply.integer(left);
            return Ok(());
        }
        let fence = if many.has(b'f') { self.number_all(&many, floor)? } else { 1.0 };
        for key in self.keys_between(1, many.written)? {
            self.set_with_end(key, many.token, self.worth(2)?)?;
        }
        self.share_all(&many, &targets)?;
        self.number(fence)
    }

    pub(super) fn raise_all(&mut self) -> Result<(), Failure> {
        let many = self.many_now()?;
        if self.ours(&many)?.is_none() {
            return self.number(0.0);
        }
        let largest = self.raise_all_counters(&many)?;
        self.number(if many.written > 0 { largest } else { many.number })
    }

    pub(super) fn extend_all(&mut self) -> Result<(), Failure> {
        let many = self.many_now()?;
        let targets = match self.ours(&many) {
            Ok(targets) => targets,
            Err(error) => {
                no_wrong_type(error)?;
                None
            }
        };
        let Some(targets) = targets else { return self.number(0.0) };
        if many.has(b'f') && many.number > 0.0 {
            self.raise_all_counters(&many)?;
        }
        for key in self.keys_between(1, many.written)? {
            self.lengthen_by(&many, key)?;
        }
        self.share_all(&many, &targets)?;
        self.number(1.0)
    }

    pub(super) fn heal_all(&mut self) -> Result<(), Failure> {
        let many = self.many_now()?;
        let found = match self.unless_another_holds(&many) {
            Ok(found) => found,
            Err(error) => {
                no_wrong_type(error)?;
                None
            }
        };
        let Some((values, targets)) = found else { return self.number(0.0) };
        let is_lost = |target: &Looked| target.end.is_none() && target.held.as_deref() != Some(many.token);
        if values.iter().all(Option::is_some) && !targets.iter().any(is_lost) {
            return self.number(0.0);
        }
        if many.has(b'f') && many.number > 0.0 {
            self.raise_all_counters(&many)?;
        }
        for (key, value) in self.keys_between(1, many.written)?.iter().zip(values) {
            match value {
                Some(_) => self.lengthen_by(&many, key)?,
                None => self.set_with_end(key, many.token, self.worth(2)?)?,
            }
        }
        self.share_all(&many, &targets)?;
        self.number(1.0)
    }

    pub(super) fn release_any(&mut self) -> Result<(), Failure> {
        let held = match self.get(self.key(1)) {
            Ok(held) => held.unwrap_or_default(),
            Err(error) => return no_wrong_type(error).and_then(|()| self.number(0.0)),
        };
        let sentinel = sharers::read(&held).and_then(|(_, entries)| held.strip_suffix(entries));
        let Some(token) = self.value(1) else {
            let what = "attempt to get length of upvalue 'token' (a nil value)";
            return if sentinel.is_some() {
                Err(self.stopped("#token == 40", what))
            } else {
                self.number(0.0)
            };
        };
        let key = self.named(1)?;
        let was_ours = self.leave_key(key, sentinel, token)?;
        self.number(f64::from(u8::from(was_ours)))
    }

    pub(super) fn release_all(&mut self) -> Result<(), Failure> {
        let many = self.many()?;
        let keys = self.keys_between(1, many.written)?;
        let values = self.mget(keys);
        let mut is_complete = values.iter().all(|value| value.as_deref() == Some(many.token));
        let holds = |value: &Option<Vec<u8>>, ours: &[u8]| value.as_deref() == Some(ours);
        let gone = keys.iter().zip(&values).filter(|(_, value)| holds(value, many.token));
        let mut gone: Vec<&[u8]> = gone.map(|(key, _)| key.as_slice()).collect();
        if many.has(b'm') {
            let (marks, wait) =
                (self.keys_between(many.marks + 1, many.counters)?, self.worth(7 + many.read)?);
            let values = self.mget(marks);
            let ours = marks.iter().zip(&values).filter(|(_, value)| holds(value, wait));
            gone.extend(ours.map(|(key, _)| key.as_slice()));
        }
        self.delete_all(&gone)?;
        for target in 1..=many.read {
            match self.leave(&many, target) {
                Ok(was_ours) => is_complete &= was_ours,
                Err(error) => {
                    no_wrong_type(error)?;
                    is_complete = false;
                }
            }
        }
        if is_complete {
            return self.number(1.0);
        }
        if many.has(b't') {
            let written = if self.exists(keys) > 0 { many.written } else { 0 };
            for place in 1..=written {
                if self.tell_place(place, None)? {
                    return Ok(());
                }
            }
            for target in 1..=many.read {
                if self.tell_place(many.place(target), Some(self.sentinel(target)?))? {
                    return Ok(());
                }
            }
        }
        self.number(0.0)
    }

    /// The first written target that is held. A mark of the waiting writer is left at those that
    /// are shared.
    fn first_written(&mut self, many: &Many<'b>) -> Result<Option<usize>, Failure> {
        let mut found = self.exists(self.keys_between(1, many.written)?);
        let mut refused = None;
        for place in 1..=if found > 0 { many.written } else { 0 } {
            if let Some(held) = self.get(self.key(place)).map_err(|error| error.at_target(place))? {
                refused = refused.or(Some(place));
                found -= 1;
                if many.has(b'm') && held.starts_with(SHARED) {
                    let (mark, wait) = (self.named(many.marks + place)?, self.worth(7 + many.read)?);
                    self.set_with_end(mark, wait, b"1000")?;
                }
            }
            if found == 0 || refused.is_some() && !many.has(b'm') {
                break;
            }
        }
        Ok(refused)
    }

    /// The number of a grant, which all counters are raised to.
    fn number_all(&mut self, many: &Many<'b>, floor: f64) -> Result<f64, Failure> {
        let (mut counters, mut most) = (Vec::new(), floor);
        for target in 1..=many.written + many.read {
            let counter = self.counter_of(many, target)?;
            most = lua_max(most, counter);
            counters.push(counter);
        }
        let fence = if many.written > 0 { most + 1.0 } else { lua_max(most, 1.0) };
        if fence > LAST_FENCE {
            return Err(USED_UP);
        }
        for (target, _) in (1..).zip(counters).filter(|(_, counter)| *counter < fence) {
            self.set(self.key(many.counters + target), Some(format!("{fence:.0}").as_bytes()))?;
        }
        Ok(fence)
    }

    /// All read targets, if all targets are ours.
    fn ours(&mut self, many: &Many<'b>) -> Result<Option<Vec<Looked>>, Failure> {
        let keys = self.keys_between(1, many.written)?;
        for (key, value) in keys.iter().zip(self.mget(keys)) {
            if value.as_deref() != Some(many.token) {
                if value.is_none() {
                    self.get(Some(key))?;
                }
                return Ok(None);
            }
        }
        let mut targets = Vec::new();
        for target in 1..=many.read {
            let found = self.look(many, target)?;
            if found.end.is_none() && found.held.as_deref() != Some(many.token) {
                return Ok(None);
            }
            targets.push(found);
        }
        Ok(Some(targets))
    }

    /// The state of all targets, if none belongs to another client.
    fn unless_another_holds(&mut self, many: &Many<'b>) -> Result<Option<Found>, Failure> {
        let keys = self.keys_between(1, many.written)?;
        let values = self.mget(keys);
        if values.iter().flatten().any(|value| value != many.token) {
            return Ok(None);
        }
        if self.exists(keys) != values.iter().flatten().count() {
            return Ok(None);
        }
        let mut targets = Vec::new();
        for target in 1..=many.read {
            let found = self.look(many, target)?;
            let sentinel = self.sentinel(target)?;
            if found.held.as_ref().is_some_and(|held| *held != many.token && !held.starts_with(sentinel)) {
                return Ok(None);
            }
            targets.push(found);
        }
        Ok(Some((values, targets)))
    }

    fn share_all(&mut self, many: &Many<'b>, targets: &[Looked]) -> Result<(), Failure> {
        (1..).zip(targets).try_for_each(|(target, found)| self.share(many, target, found))
    }

    /// Removes our part of a read target. Returns whether there was one.
    fn leave(&mut self, many: &Many<'b>, target: usize) -> Result<bool, Failure> {
        let (key, sentinel) = (self.named(many.place(target))?, self.sentinel(target)?);
        self.leave_key(key, Some(sentinel), many.token)
    }

    /// `leave(x, sentinel)`
    fn leave_key(&mut self, key: &'b [u8], sentinel: Option<&[u8]>, token: &[u8]) -> Result<bool, Failure> {
        let held = self.get(Some(key))?;
        if held.as_deref() == Some(token) {
            return self.delete_all(&[key]).map(|()| true);
        }
        let Some(sentinel) = sentinel else { return Ok(false) };
        let entries = held.as_deref().and_then(|held| held.strip_prefix(sentinel)).unwrap_or_default();
        let Some(own) = sharers::end_of(entries, token) else { return Ok(false) };
        let others = sharers::each(entries).filter(|(_, other)| *other != token);
        let most = others.map(|(end, _)| end).max().unwrap_or_default();
        let left = if most >= own { self.pttl_of(key) } else { most + 1 - self.clock() };
        if most < own {
            if left <= 1 {
                return self.delete_all(&[key]).map(|()| true);
            }
            self.pexpire(key, left.to_string().as_bytes())?;
        }
        let place = sharers::place_of(entries, token).map(|place| sentinel.len() + place);
        self.replace(key, place, sharers::FREE, left as f64).map(|()| true)
    }

    /// `tell(place, sentinel)`: whether it is held, by others than the group of the sentinel.
    fn tell_place(&mut self, place: usize, sentinel: Option<&[u8]>) -> Result<bool, Failure> {
        let key = self.named(place)?;
        let Some(held) = self.get(Some(key))? else { return Ok(false) };
        if sentinel.is_some_and(|sentinel| held.starts_with(sentinel)) {
            return Ok(false);
        }
        let left = self.pttl_of(key);
        self.tell(&held, left);
        Ok(true)
    }
}

/// The beginning of every sentinel, which is all that the scripts check.
pub(super) const SHARED: &[u8] = b"quorlock:shared:";

/// The keys of the written targets, and of the read ones.
type Found = (Vec<Option<Vec<u8>>>, Vec<Looked>);
