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
        if own.is_none() {
            for (place, value) in held.iter().enumerate() {
                let key = keys.get(place..=place).unwrap_or_default();
                if value.is_none() && self.exists(key) == 0 {
                    let fence =
                        if flags.contains(&b'f') { self.count_seat(seats + place + 1, floor)? } else { 0.0 };
                    self.set_with_end(self.named(place + 1)?, token, self.worth(2)?)?;
                    self.call.reply.array(3);
                    self.call.reply.bulk(b"seat");
                    self.call.reply.integer(i64::try_from(place + 1).unwrap_or(i64::MAX));
                    return self.number(fence);
                }
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
            // None of them is a lock.
            None => drop(self.get(self.key(1))?),
        }
        Ok(())
    }

    fn count_seat(&mut self, place: usize, floor: f64) -> Result<f64, Failure> {
        let counter = self.get(self.key(place))?;
        let counter = counter.map_or(Some(0.0), |counter| lua_number(&counter));
        let counter = counter.filter(|counter| !counter.is_nan()).ok_or(NO_COUNTER)?;
        let fence = lua_max(counter, floor) + 1.0;
        if fence > LAST_FENCE {
            return Err(USED_UP);
        }
        self.set(self.key(place), Some(format!("{fence:.0}").as_bytes()))?;
        Ok(fence)
    }
}
