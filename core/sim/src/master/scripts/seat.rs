//! The script of semaphores.

use super::fleet::Standing;
use super::{Body, LAST_FENCE, NO_ARGUMENT, NO_COUNTER, USED_UP};
use crate::master::number::{lua_integer, lua_max, lua_number};
use crate::master::reply::Failure;

impl Body<'_, '_> {
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
        let (mut free, mut odd) = (Vec::new(), 1);
        for (place, value) in held.iter().enumerate().filter(|_| own.is_none()) {
            let is_free = value.is_none() && self.exists(keys.get(place..=place).unwrap_or_default()) == 0;
            if is_free {
                free.push(place + 1);
            } else if value.is_none() {
                odd = place + 1;
            }
            if free.len() == wanted {
                return self.take_all(&free, seats, floor, flags.contains(&b'f'));
            }
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
        }
        match first {
            Some((left, value)) => self.tell(value, if left == i64::MAX { -1 } else { left }),
            // None of them is a lock: of another type, or the window has fewer seats than are wanted.
            None => match self.get(self.key(odd))? {
                None => self.call.reply.null(),
                Some(held) => self.call.reply.bulk(&held),
            },
        }
        Ok(())
    }

    fn take_all(&mut self, free: &[usize], seats: usize, floor: f64, counts: bool) -> Result<(), Failure> {
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
        let places: Vec<_> = free.iter().map(ToString::to_string).collect();
        self.call.reply.array(3);
        self.call.reply.bulk(b"seats");
        self.call.reply.bulk(places.join(" ").as_bytes());
        self.number(fence)
    }
}
