//! The scripts of the queue of fair waiters.

use super::claim::{rounded, written};
use super::fleet::Standing;
use super::plain::digest;
use super::{Body, LAST_FENCE, NO_ARGUMENT, NO_COUNTER, USED_UP};
use crate::master::number::{lua_integer, lua_max, lua_number};
use crate::master::reply::Failure;

/// The first place of a queue after places that have ended were dropped.
struct Head {
    place: Vec<u8>,
    /// How long its turn is; `None` if it is our own, or there are too many to drop.
    turn: Option<Vec<u8>>,
}

/// The member of the largest number.
const LARGEST: &[u8] = b"~";
/// How many places a script drops.
const MOST_DROPPED: usize = 100;

impl Body<'_, '_> {
    /// The key of a place in our queue.
    fn key_of_place(&self, place: &[u8]) -> Result<Vec<u8>, Failure> {
        let (own, ours) = (self.named(2)?, self.worth(3)?);
        let prefix = own.get(..own.len().saturating_sub(ours.len())).unwrap_or_default();
        Ok([prefix, place].concat())
    }

    /// `head()`. Sets `dropped` if it drops a place.
    fn head(&mut self, dropped: &mut bool) -> Result<Option<Head>, Failure> {
        let (queue, ours) = (self.named(3)?, self.worth(3)?);
        for left in (0..=MOST_DROPPED).rev() {
            let Some(place) = self.in_order(queue)?.into_iter().next() else { return Ok(None) };
            if place == LARGEST {
                return Ok(None);
            }
            if place == ours {
                return Ok(Some(Head { place, turn: None }));
            }
            if let Some(turn) = self.turn_of(&place)? {
                return Ok(Some(Head { place, turn: Some(turn) }));
            }
            if left == 0 {
                return Ok(Some(Head { place: b"?".to_vec(), turn: None }));
            }
            self.zrem(queue, &place)?;
            *dropped = true;
        }
        Ok(None)
    }

    /// `GET` of a place's key.
    fn turn_of(&mut self, place: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let key = self.key_of_place(place)?;
        self.read(&[&key]);
        let held = self.call.master.keyspace.text(self.call.session.database, &key, self.call.now)?;
        Ok(held.map(<[u8]>::to_vec))
    }

    /// The members of a sorted set, smallest score first.
    fn in_order(&mut self, key: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        let scores = self.scores(key)?.into_iter().flatten();
        let mut all: Vec<_> = scores.map(|(member, score)| (*score, member.clone())).collect();
        all.sort_unstable();
        Ok(all.into_iter().map(|(_, member)| member).collect())
    }

    pub(super) fn enter_queue(&mut self) -> Result<(), Failure> {
        let (queue, own, place) = (self.named(3)?, self.named(2)?, self.worth(3)?);
        let (lease, flags) = (self.worth(4)?, self.worth(7)?);
        let given = self.value(6).and_then(lua_number).ok_or(NO_ARGUMENT)?;
        let has = |flag| flags.contains(&flag);
        let lives = lua_number(lease).ok_or(NO_ARGUMENT)?;
        let long = rounded(10.0 * lives);
        let is_there = self.pexpire(queue, long.as_bytes())?;
        let known = self.score_by_write(queue, place)?;
        let (mut number, mut was_first, mut dropped) = (known.unwrap_or(given), false, false);
        if known.is_none() || number < given || number > given && given > 0.0 && has(b'x') {
            let largest = self.score_by_write(queue, LARGEST)?.unwrap_or(0.0);
            if known.is_some() {
                let head = self.head(&mut dropped).ok().flatten();
                was_first = head.is_some_and(|head| head.place == place);
            }
            number = if given > 0.0 { given } else { largest + 1.0 };
            if number > LAST_FENCE {
                if given == 0.0 {
                    let _ = self.delete_all(&[queue]);
                }
                return Err(Failure::new("ERR the numbers of the queue are used up"));
            }
            let largest = lua_integer(lua_max(largest, number));
            self.zadd(queue, &[(lua_integer(number), place), (largest, LARGEST)])?;
            if !is_there {
                self.pexpire(queue, long.as_bytes())?;
            }
        }
        self.set_with_end(own, self.worth(5)?, lease)?;
        let _ = self.get(Some(own));
        let mut floor = 0.0;
        if has(b'g') {
            match self.check_marker()? {
                Standing::Votes { opens } => floor = opens * 1024.0,
                Standing::Answered => return Ok(()),
            }
        }
        if let Some(head) = self.head(&mut dropped)?.filter(|head| head.place != place) {
            let is_looked_at = known.is_some() || dropped;
            let ends = if is_looked_at { self.tell_behind(&head, was_first || dropped)? } else { None };
            let lives = if head.place == b"?" { 1.0 } else { lives };
            let whole = sha1_smol::Sha1::from(&head.place).digest().to_string();
            return self.queued(whole.as_bytes(), lua_integer(ends.unwrap_or(lives)), number, false);
        }
        if let Some(held) = self.get(self.key(1))? {
            let left = self.pttl();
            return self.queued(digest(&held).as_bytes(), left, number, true);
        }
        if has(b's') {
            return self.queued(b"free", 0, number, true);
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

    /// A waiter behind the first place looks whether that place's turn has come. Returns how long
    /// it lasts then.
    fn tell_behind(&mut self, head: &Head, is_new: bool) -> Result<Option<f64>, Failure> {
        let Some(turn) = &head.turn else { return Ok(None) };
        let key = self.key_of_place(&head.place)?;
        let (left, is_free) = (self.pttl_of(&key), matches!(self.get(self.key(1)), Ok(None)));
        if is_free {
            let ends = (left as f64).min(lua_number(turn).unwrap_or(0.0));
            if left as f64 > ends {
                let _ = self.pexpire(&key, turn);
            }
            return Ok(Some(ends));
        }
        if left > 0 && is_new {
            let _ = self.pexpire(&key, written(left as f64).as_bytes());
        }
        Ok(None)
    }

    fn queued(&mut self, ahead: &[u8], left: i64, number: f64, is_first: bool) -> Result<(), Failure> {
        self.call.reply.array(4);
        self.call.reply.bulk(ahead);
        self.call.reply.integer(left);
        self.number(number)?;
        self.number(if is_first { 1.0 } else { 0.0 })
    }

    pub(super) fn leave_queue(&mut self) -> Result<(), Failure> {
        let before = self.call.reply.length();
        let said = self.release();
        self.leave_place(said, before)
    }

    pub(super) fn keep_leaving(&mut self) -> Result<(), Failure> {
        let before = self.call.reply.length();
        let said = self.keep();
        self.leave_place(said, before)
    }

    /// The end of a script that gives a lock up, whose reply began after `before`. No error of it
    /// matters.
    fn leave_place(&mut self, said: Result<(), Failure>, before: usize) -> Result<(), Failure> {
        let reply = self.call.reply.take_behind(before);
        self.call.reply.put_back(&reply);
        let (own, queue, place) = (self.named(2)?, self.named(3)?, self.worth(3)?);
        let mut dropped = false;
        let mut tells = reply == b":1\r\n";
        if !tells {
            let head = self.head(&mut dropped).ok().flatten();
            tells = head.is_some_and(|head| head.place == place);
        }
        let _ = self.zrem(queue, place);
        let _ = self.delete_all(&[own]);
        if let Ok(Some(Head { place: first, turn: Some(turn) })) = self.head(&mut dropped) {
            if tells || dropped {
                let key = self.key_of_place(&first)?;
                let left = match self.get(self.key(1)) {
                    Ok(None) => lua_number(&turn),
                    _ => Some(self.pttl_of(&key) as f64),
                };
                if let Some(left) = left.filter(|left| *left > 0.0) {
                    let _ = self.pexpire(&key, written(left).as_bytes());
                }
            }
        }
        said
    }
}
