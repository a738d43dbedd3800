//! The scripts of the queue of fair waiters.

use super::claim::{rounded, written};
use super::fleet::Standing;
use super::plain::{digest, no_wrong_type};
use super::{Body, LAST_FENCE, NO_ARGUMENT, NO_COUNTER, USED_UP};
use crate::master::number::{lua_integer, lua_max, lua_number};
use crate::master::reply::Failure;

/// The first place of a queue after expired places were dropped, and its remaining life. If the
/// place is our own, the life is not checked.
struct Head {
    place: Vec<u8>,
    left: Option<i64>,
}

impl Body<'_, '_> {
    /// The key of a place in our queue.
    fn key_of_place(&self, place: &[u8]) -> Result<Vec<u8>, Failure> {
        let (own, ours) = (self.named(2)?, self.worth(2)?);
        let prefix = own.get(..own.len().saturating_sub(ours.len())).unwrap_or_default();
        Ok([prefix, place].concat())
    }

    /// `head()`
    fn head(&mut self) -> Result<Option<Head>, Failure> {
        let (queue, ours) = (self.named(3)?, self.worth(2)?);
        loop {
            let Some(place) = self.in_order(queue)?.into_iter().next() else { return Ok(None) };
            if place == ours {
                return Ok(Some(Head { place, left: None }));
            }
            let left = self.pttl_of(&self.key_of_place(&place)?);
            if left != -2 {
                return Ok(Some(Head { place, left: Some(left) }));
            }
            self.zrem(queue, &place)?;
        }
    }

    /// The members of a sorted set, smallest score first.
    fn in_order(&mut self, key: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        let scores = self.scores(key)?.into_iter().flatten();
        let mut all: Vec<_> = scores.map(|(member, score)| (*score, member.clone())).collect();
        all.sort_unstable();
        Ok(all.into_iter().map(|(_, member)| member).collect())
    }

    pub(super) fn enter_queue(&mut self) -> Result<(), Failure> {
        let (queue, own, place) = (self.named(3)?, self.named(2)?, self.worth(2)?);
        let (lease, flags) = (self.worth(4)?, self.worth(6)?);
        let given = self.value(5).and_then(lua_number).ok_or(NO_ARGUMENT)?;
        let has = |flag| flags.contains(&flag);
        let long = rounded(10.0 * lua_number(lease).ok_or(NO_ARGUMENT)?);
        let is_there = self.pexpire(queue, long.as_bytes())?;
        let number = self.zscore(queue, place)?;
        let last = self.get(self.key(4))?;
        let last = last.map_or(Some(0.0), |last| lua_number(&last));
        let last = last.filter(|last| *last > 0.0 && *last <= LAST_FENCE).map_or(0.0, f64::floor);
        let (mut was_first, was) = (false, number.map(|number| number as f64));
        let moves = was.is_some_and(|was| was < given || has(b'x') && was > given && given > 0.0);
        if moves {
            was_first = self.head().ok().flatten().is_some_and(|head| head.place == place);
        }
        let number = match was {
            Some(_) if moves => given,
            Some(number) => number,
            None if given > 0.0 => given,
            None => lua_max(last, self.longest(queue)?.unwrap_or_default() as f64) + 1.0,
        };
        if number > LAST_FENCE {
            return Err(Failure::new("ERR the numbers of the queue are used up"));
        }
        let text = rounded(number);
        self.set_with_end(self.named(4)?, rounded(lua_max(last, number)).as_bytes(), long.as_bytes())?;
        self.zadd(queue, &[(lua_integer(number), place)])?;
        if !is_there {
            self.pexpire(queue, long.as_bytes())?;
        }
        self.set_with_end(own, text.as_bytes(), lease)?;
        let _ = self.get(Some(own));
        let mut floor = 0.0;
        if has(b'g') {
            match self.check_marker()? {
                Standing::Votes { opens } => floor = opens * 1024.0,
                Standing::Answered => return Ok(()),
            }
        }
        if let Some(Head { place: mut ahead, left }) = self.head()?.filter(|head| head.place != place) {
            let mut left = left.unwrap_or_default();
            if was_first && left > 0 {
                let _ = self.pexpire(&self.key_of_place(&ahead)?, written(left as f64).as_bytes());
            }
            let all = self.in_order(queue)?;
            let before = all.iter().take_while(|other| *other != place).skip(1);
            for other in before.collect::<Vec<_>>().into_iter().rev() {
                let lives = self.pttl_of(&self.key_of_place(other)?);
                if lives != -2 {
                    (ahead, left) = (other.clone(), lives);
                    break;
                }
            }
            let whole = sha1_smol::Sha1::from(&ahead).digest().to_string();
            return self.queued(whole.as_bytes(), left, number, false);
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
            let counter = self.get(self.key(5))?;
            let counter = counter.map_or(Some(0.0), |counter| lua_number(&counter));
            let counter = counter.filter(|counter| !counter.is_nan()).ok_or(NO_COUNTER)?;
            fence = lua_max(counter, floor) + 1.0;
            if fence > LAST_FENCE {
                return Err(USED_UP);
            }
            self.set(self.key(5), Some(rounded(fence).as_bytes()))?;
        }
        self.set_with_end(self.named(1)?, self.worth(1)?, self.worth(3)?)?;
        self.number(fence)
    }

    fn queued(&mut self, ahead: &[u8], left: i64, number: f64, is_first: bool) -> Result<(), Failure> {
        self.call.reply.array(4);
        self.call.reply.bulk(ahead);
        self.call.reply.integer(left);
        self.number(number)?;
        self.number(if is_first { 1.0 } else { 0.0 })
    }

    pub(super) fn leave_queue(&mut self) -> Result<(), Failure> {
        let (key, own, queue, place) = (self.named(1)?, self.named(2)?, self.named(3)?, self.worth(2)?);
        let deleted = match self.get(Some(key)) {
            Ok(Some(held)) if Some(held.as_slice()) == self.value(1) => self.delete_all(&[key]).map(|()| 1.0),
            Ok(_) => Ok(0.0),
            Err(error) => no_wrong_type(error).map(|()| 0.0),
        };
        let was_first = self.head().ok().flatten().is_some_and(|head| head.place == place);
        let _ = self.zrem(queue, place);
        let _ = self.delete_all(&[own]);
        if was_first {
            if let Ok(Some(Head { place, left: Some(left) })) = self.head() {
                if left > 0 {
                    let _ = self.pexpire(&self.key_of_place(&place)?, written(left as f64).as_bytes());
                }
            }
        }
        self.number(deleted?)
    }
}
