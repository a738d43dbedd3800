//! The script of a release that keeps the key for a while.

use super::Body;
use super::plain::no_wrong_type;
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
        let Some(life) = self.value(2).and_then(lua_number) else {
            return Err(self.stopped("if redis.call('PTTL'", "attempt to compare nil with number"));
        };
        if left as f64 > life {
            // Whether the server takes it is not looked at.
            let _ = self.pexpire(self.named(1)?, self.worth(2)?);
        }
        Ok(())
    }

    /// `PEXPIRE KEYS[1] ARGV[2]`, and `SET` with the same life, whose error is not looked at. Behind
    /// the first write a script is not refused for memory.
    fn let_live(&mut self, kept: &[u8]) -> Result<(), Failure> {
        let (key, life) = (self.named(1)?, self.worth(2)?);
        self.pexpire(key, life)?;
        let _ = self.set_with_end(key, kept, life);
        Ok(())
    }
}
