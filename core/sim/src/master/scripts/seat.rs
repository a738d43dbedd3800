//! The script of semaphores.

use super::fleet::Standing;
use super::{Body, LAST_FENCE, NO_ARGUMENT, NO_COUNTER, USED_UP};
use crate::master::number::{lua_integer, lua_max, lua_number};
use crate::master::reply::Failure;

/// What the mark of the next waiter means for a request.
struct Next<'b> {
    mark: Option<&'b [u8]>,
    /// Since when the request has waited, if it says so.
    came: Option<f64>,
    is_ours: bool,
    /// Whether no other request has waited longer.
    is_earliest: bool,
    /// How many seats must stay free.
    spare: usize,
    is_marked: bool,
}

impl<'b> Body<'_, 'b> {
    fn next(&mut self, place: usize, has_waited: bool) -> Result<Next<'b>, Failure> {
        let mark = self.key(place);
        let text = match mark {
            Some(_) => self.get(mark).ok().flatten().unwrap_or_default(),
            None => Vec::new(),
        };
        let parts: Vec<&[u8]> = text.split(|byte| *byte == b' ').collect();
        let all = |part: &[u8], is: fn(&u8) -> bool| !part.is_empty() && part.iter().all(is);
        let found = match parts.as_slice() {
            [since, spare, name]
                if all(since, u8::is_ascii_digit)
                    && all(spare, u8::is_ascii_digit)
                    && all(name, u8::is_ascii_hexdigit) =>
            {
                Some((lua_number(since).unwrap_or_default(), lua_number(spare).unwrap_or_default(), *name))
            }
            _ => None,
        };
        let mut came = None;
        if has_waited {
            came = Some(self.time() - self.value(7).and_then(lua_number).ok_or(NO_ARGUMENT)?);
        }
        let is_ours = came.is_some() && found.is_some_and(|(.., name)| Some(name) == self.value(6));
        let is_earliest = found.is_none_or(|(since, ..)| is_ours || came.is_some_and(|came| came < since));
        let spare = found.filter(|_| !is_earliest).map_or(0.0, |(_, spare, _)| spare);
        let spare = usize::try_from(lua_integer(spare)).unwrap_or(usize::MAX);
        Ok(Next { mark, came, is_ours, is_earliest, spare, is_marked: found.is_some() })
    }

    /// After a refusal: how long the present mark lasts.
    fn mark_next(&mut self, next: &Next<'b>, is_known: bool) -> Result<i64, Failure> {
        let lasts = next.mark.filter(|_| next.is_marked).map_or(0, |mark| self.pttl_of(mark));
        let is_due = next.is_earliest && !is_known && (!next.is_ours || lasts < 500);
        if let (Some(came), Some(mark), true) = (next.came, next.mark, is_due) {
            let waited = self.value(7).and_then(lua_number).ok_or(NO_ARGUMENT)?;
            let life = format!("{:.0}", waited.clamp(20.0, 1000.0));
            let text = [format!("{came:.0} ").as_bytes(), self.worth(3)?, b" ", self.worth(6)?].concat();
            // The mark is optional: whether the server accepts it is not checked.
            let _ = self.set_with_end(mark, &text, life.as_bytes());
        }
        Ok(lasts)
    }

    pub(super) fn take(&mut self) -> Result<(), Failure> {
        let (token, flags) = (self.worth(1)?, self.worth(4)?);
        let seats = self.value(5).and_then(lua_number).ok_or(NO_ARGUMENT)?;
        let seats = usize::try_from(lua_integer(seats)).map_err(|_| NO_ARGUMENT)?;
        let mut floor = 0.0;
        if flags.contains(&b'g') {
            match self.check_marker()? {
                Standing::Votes { opens } => floor = opens * 1024.0,
                Standing::Answered => return Ok(()),
            }
        }
        let keys = self.keys_between(1, seats)?;
        let held = self.mget(keys);
        let own = held.iter().rposition(|value| value.as_deref() == Some(token));
        let wanted = self.value(3).and_then(lua_number).map_or(0, |wanted| lua_integer(wanted).max(0));
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let is_fenced = flags.contains(&b'f');
        let next = self.next(seats * if is_fenced { 2 } else { 1 } + 1, flags.contains(&b'm'))?;
        let needed = wanted.saturating_add(next.spare);
        let (mut free, mut odd) = (Vec::new(), 1);
        for (place, value) in held.iter().enumerate().filter(|_| own.is_none()) {
            let is_free = value.is_none() && self.exists(keys.get(place..=place).unwrap_or_default()) == 0;
            if is_free {
                free.push(place + 1);
            } else if value.is_none() {
                odd = place + 1;
            }
            if free.len() == needed {
                self.take_all(free.get(..wanted).unwrap_or_default(), seats, floor, is_fenced, &next)?;
                return Ok(());
            }
        }
        let lasts = self.mark_next(&next, own.is_some())?;
        if free.len() >= wanted {
            self.call.reply.array(2);
            self.call.reply.bulk(b"wanted");
            self.call.reply.integer(lasts);
            return Ok(());
        }
        let mut first: Option<(i64, &[u8])> = None;
        for (place, value) in held.iter().enumerate() {
            let Some(value) = value.as_ref().filter(|_| own.is_none_or(|own| own == place)) else { continue };
            let left = match self.pttl_of(self.named(place + 1)?) {
                -1 => i64::MAX,
                left => left,
            };
            if first.is_none_or(|(least, _)| left < least) {
                first = Some((left, value));
            }
            if flags.contains(&b'w') {
                break;
            }
        }
        match first {
            Some((left, value)) => self.tell(value, if left == i64::MAX { -1 } else { left }),
            // None of the keys is a lock: they have another type, or the window has fewer seats
            // than requested.
            None => match self.get(self.key(odd))? {
                None => self.call.reply.null(),
                Some(held) => self.call.reply.bulk(&held),
            },
        }
        Ok(())
    }

    fn take_all(
        &mut self,
        free: &[usize],
        seats: usize,
        floor: f64,
        counts: bool,
        next: &Next<'b>,
    ) -> Result<(), Failure> {
        let mut fence = 0.0;
        if counts {
            for place in free {
                let counter = self.get(self.key(seats + place))?;
                let counter = counter.map_or(Some(0.0), |counter| lua_number(&counter));
                let counter = counter.filter(|counter| !counter.is_nan()).ok_or(NO_COUNTER)?;
                fence = lua_max(fence, counter);
            }
            fence = lua_max(fence, floor) + 1.0;
            if fence > LAST_FENCE {
                return Err(USED_UP);
            }
            for place in free {
                self.set(self.key(seats + place), Some(format!("{fence:.0}").as_bytes()))?;
            }
        }
        for place in free {
            self.set_with_end(self.named(*place)?, self.worth(1)?, self.worth(2)?)?;
        }
        if let Some(mark) = next.mark.filter(|_| next.is_ours) {
            let _ = self.delete_all(&[mark]);
        }
        let places: Vec<_> = free.iter().map(ToString::to_string).collect();
        self.call.reply.array(3);
        self.call.reply.bulk(b"seats");
        self.call.reply.bulk(places.join(" ").as_bytes());
        self.number(fence)
    }
}
