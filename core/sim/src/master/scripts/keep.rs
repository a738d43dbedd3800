//! The script of a release that keeps the key for a while.

use super::plain::no_wrong_type;
use super::{Body, LATER, NO_ARGUMENT};
use crate::master::expiry::{Unit, end_from_now};
use crate::master::number::lua_number;
use crate::master::reply::Failure;

impl Body<'_, '_> {
    pub(super) fn keep(&mut self) -> Result<(), Failure> {
        let token = self.value(1);
        let kept = sha1_smol::Sha1::from(token.unwrap_or_default()).digest().to_string();
        match self.get(self.key(1)) {
            Ok(Some(held)) if Some(held.as_slice()) == token => {
                self.let_live(kept.as_bytes())?;
                self.number(1.0)
            }
            Ok(Some(held)) if held == kept.as_bytes() => {
                self.shorten()?;
                self.number(1.0)
            }
            Ok(_) => self.number(0.0),
            Err(error) => {
                no_wrong_type(error)?;
                self.number(0.0)
            }
        }
    }

    /// `if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then redis.pcall('PEXPIRE', KEYS[1],
    /// ARGV[2]) end`
    fn shorten(&mut self) -> Result<(), Failure> {
        let left = self.pttl();
        let wanted = self.value(2);
        let Some(life) = wanted.and_then(lua_number) else {
            return Err(self.stopped("if redis.call('PTTL'", "attempt to compare nil with number"));
        };
        let now = self.later(LATER);
        let (Some(key), Some(wanted)) = (self.key(1).filter(|_| left as f64 > life), wanted) else {
            return Ok(());
        };
        let end = self.call.master.takes_writes();
        if let Ok(end) = end.and_then(|()| end_from_now(wanted, Unit::Millis, "pexpire", now)) {
            self.call.master.expire_at(self.call.session.database, key, end, now);
        }
        Ok(())
    }

    /// `PEXPIRE KEYS[1] ARGV[2]`, and `SET` with the same life. Behind the first write a script is
    /// not refused for memory.
    fn let_live(&mut self, kept: &[u8]) -> Result<(), Failure> {
        let (Some(key), Some(life)) = (self.key(1), self.value(2)) else { return Err(NO_ARGUMENT) };
        self.call.master.takes_writes()?;
        let now = self.later(LATER);
        let end = end_from_now(life, Unit::Millis, "pexpire", now)?;
        self.call.master.expire_at(self.call.session.database, key, end, now);
        // A life that is over is none for `SET`, whose error is not looked at.
        if end > now {
            self.put(key, kept, Some(end));
        }
        Ok(())
    }
}
