//! The scripts of the queue of fair waiters.

use super::claim::rounded;
use super::fleet::Standing;
use super::plain::digest;
use super::{Body, LAST_FENCE, NO_ARGUMENT, NO_COUNTER, USED_UP};
use crate::master::number::{lua_integer, lua_max, lua_number};
use crate::master::places::{KNOWS, Place, Places, WAITS};
use crate::master::reply::Failure;

impl Body<'_, '_> {
    /// Reads the queue, as each of its scripts does first, and its value.
    fn places(&mut self) -> Result<(Places, Vec<u8>), Failure> {
        let lease = self.value(4).and_then(lua_number).ok_or(NO_ARGUMENT)?;
        let now = self.time();
        let value = self.get(Some(self.named(3)?))?;
        let places = Places::read(&value.unwrap_or_default(), now, lease);
        let value = places.value();
        Ok((places, value))
    }

    /// `tell(at, free)`
    fn tell_turn(&mut self, places: &mut Places, at: usize, is_free: bool) -> Result<(), Failure> {
        let Some(name) = places.tell(at, is_free) else { return Ok(()) };
        let (own, ours) = (self.named(2)?, self.worth(3)?);
        let prefix = own.get(..own.len().saturating_sub(ours.len())).unwrap_or_default();
        let bell = [prefix, name.as_slice()].concat();
        let _ = self.set_with_end(&bell, b"1", b"1");
        let _ = self.delete_all(&[&bell]);
        Ok(())
    }

    /// `not call('GET', KEYS[1])`
    fn is_free(&mut self) -> bool {
        matches!(self.get(self.key(1)), Ok(None))
    }

    fn put_places(&mut self, places: &Places) -> Result<(), Failure> {
        let long = rounded(10.0 * places.lease);
        self.set_with_end(self.named(3)?, &places.value(), long.as_bytes())
    }

    pub(super) fn enter_queue(&mut self) -> Result<(), Failure> {
        let (mut places, _) = self.places()?;
        let (name, flags) = (self.worth(3)?, self.worth(7)?);
        let given = self.value(6).and_then(lua_number).ok_or(NO_ARGUMENT)?;
        let mut long = self.value(5).and_then(lua_number).ok_or(NO_ARGUMENT)?;
        let has = |flag| flags.contains(&flag);
        let (at, mut from) = (places.position(name), None);
        let mut mine = given;
        if let Some(at) = at {
            let place = places.all.remove(at);
            (mine, long) = (place.number, long.min(places.next_turn(&place)));
            if mine < given || has(b'x') && mine > given && given > 0.0 {
                mine = given;
            } else {
                from = Some(at);
            }
        } else if given == 0.0 {
            mine = places.largest + 1.0;
        }
        if mine > LAST_FENCE {
            return Err(Failure::new("ERR the numbers of the queue are used up"));
        }
        let swept = places.sweep();
        let is_before =
            |place: &Place| place.number < mine || place.number == mine && place.name.as_slice() < name;
        let mut from = match from {
            Some(from) => from.saturating_sub(swept),
            None => places.all.iter().rposition(is_before).map_or(0, |before| before + 1),
        };
        let (head, _) = places.first(from);
        let mut grants = false;
        let (ahead, left);
        if let Some(head) = head {
            if at.is_some() || swept > 0 {
                let is_free = self.is_free();
                self.tell_turn(&mut places, head, is_free)?;
            }
            let mut before = from - 1;
            while before > head
                && from - before < MOST_DROPPED
                && places.all.get(before).is_some_and(|place| !places.lives(place))
            {
                before -= 1;
            }
            places.all.drain(before + 1..from);
            from = before + 1;
            let next = places.all.get(before).filter(|place| places.lives(place));
            let next = next.or_else(|| places.all.get(head)).ok_or(NO_ARGUMENT)?;
            ahead = sha1_smol::Sha1::from(&next.name).digest().to_string().into_bytes();
            left = lua_integer(next.ends - places.now);
        } else if let Some(held) = self.get(self.key(1))? {
            (ahead, left) = (digest(&held).into_bytes(), self.pttl());
        } else {
            (ahead, left) = (b"free".to_vec(), 0);
            grants = !has(b's');
        }
        let state = if head.is_some() { WAITS } else { KNOWS };
        let own = Place { number: mine, ends: places.now + places.lease, state, long, name: name.to_vec() };
        places.all.insert(from, own);
        places.largest = lua_max(places.largest, mine);
        if grants {
            let now = places.now;
            let told = places.all.iter_mut().skip(from + 1).take_while(|place| place.state < KNOWS);
            told.filter(|place| place.state > now).for_each(|place| place.state = WAITS);
        }
        self.put_places(&places)?;
        if !grants || has(b'g') {
            let _ = self.get(Some(self.named(2)?));
        }
        let mut floor = 0.0;
        if has(b'g') {
            match self.check_marker()? {
                Standing::Votes { opens } => floor = opens * 1024.0,
                Standing::Answered => return Ok(()),
            }
        }
        if !grants {
            self.call.reply.array(4);
            self.call.reply.bulk(&ahead);
            self.call.reply.integer(left);
            self.number(mine)?;
            return self.number(if head.is_some() { 0.0 } else { 1.0 });
        }
        let mut fence = 1.0;
        if has(b'f') {
            let counter = self.get(self.key(4))?;
            let counter = counter.map_or(Some(0.0), |counter| lua_number(&counter));
            let counter = counter.filter(|counter| !counter.is_nan()).ok_or(NO_COUNTER)?;
            fence = lua_max(counter, floor) + 1.0;
            if fence > LAST_FENCE {
                return Err(USED_UP);
            }
            self.set(self.key(4), Some(rounded(fence).as_bytes()))?;
        }
        self.set_lock()?;
        self.number(fence)
    }

    pub(super) fn leave_queue(&mut self) -> Result<(), Failure> {
        let said = self.release();
        self.leave_places()?;
        said
    }

    pub(super) fn keep_leaving(&mut self) -> Result<(), Failure> {
        let said = self.keep();
        self.leave_places()?;
        said
    }

    /// The end of a script that gives a lock up. No error of it matters.
    fn leave_places(&mut self) -> Result<(), Failure> {
        let Ok((mut places, found)) = self.places() else { return Ok(()) };
        if let Some(at) = places.position(self.worth(3)?) {
            places.all.remove(at);
        }
        places.sweep();
        let (head, any) = places.first(places.all.len());
        if let Some(head) = head.or(any) {
            let is_free = self.is_free();
            self.tell_turn(&mut places, head, is_free)?;
        }
        if places.value() != found {
            let _ = self.put_places(&places);
        }
        Ok(())
    }
}

/// How many places that have ended are dropped before ours.
const MOST_DROPPED: usize = 100;
