//! The script of a release that keeps the key for a while.

use super::Body;
use super::claim::Many;
use super::plain::no_wrong_type;
use crate::master::number::lua_number;
use crate::master::reply::Failure;
use crate::master::sharers;

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
                self.number(0.0)
            }
            Ok(_) => self.number(0.0),
            Err(error) => {
                no_wrong_type(error)?;
                self.number(0.0)
            }
        }
    }

    pub(super) fn keep_all(&mut self) -> Result<(), Failure> {
        let many = self.many_now()?;
        let kept = sha1_smol::Sha1::from(many.token).digest().to_string();
        let keys = self.keys_between(1, many.written)?;
        let mut is_complete = true;
        for portion in keys.chunks(1000) {
            for (key, value) in portion.iter().zip(self.mget(portion)) {
                is_complete &= self.stay(&many, key, value.as_deref(), &kept)?;
            }
        }
        for target in 1..=many.read {
            match self.remain(&many, target, &kept) {
                Ok(was_ours) => is_complete &= was_ours,
                Err(error) => {
                    no_wrong_type(error)?;
                    is_complete = false;
                }
            }
        }
        self.number(if is_complete { 1.0 } else { 0.0 })
    }

    /// Keeps a key that holds our token. Returns whether it did.
    fn stay(
        &mut self,
        many: &Many<'_>,
        key: &[u8],
        value: Option<&[u8]>,
        kept: &str,
    ) -> Result<bool, Failure> {
        let life = self.worth(2)?;
        if value == Some(many.token) {
            self.pexpire(key, life)?;
            let _ = self.set_with_end(key, kept.as_bytes(), life);
            return Ok(true);
        }
        if value != Some(kept.as_bytes()) {
            return Ok(false);
        }
        if self.pttl_of(key) as f64 > many.life {
            self.pexpire(key, life)?;
        }
        Ok(false)
    }

    /// Keeps our part of a read target. Returns whether there was one.
    fn remain(&mut self, many: &Many<'_>, target: usize, kept: &str) -> Result<bool, Failure> {
        let (key, sentinel) = (self.named(many.place(target))?, self.sentinel(target)?);
        let held = self.get(Some(key))?;
        let Some(entries) = held.as_deref().and_then(|held| held.strip_prefix(sentinel)) else {
            return self.stay(many, key, held.as_deref(), kept);
        };
        let [own, last] = [many.token, kept.as_bytes()].map(|name| sharers::end_of(entries, name));
        let Some(known) = own.or(last).filter(|end| *end as f64 > many.now) else { return Ok(false) };
        let until = many.now + many.life;
        let ends = if own.is_some() { until } else { until.min(known as f64) };
        let (others, most) = sharers::alive(entries, many.now, &[many.token, kept.as_bytes()]);
        let value = [sentinel, &others, &sharers::entry(ends, kept.as_bytes())].concat();
        self.put_sharers(key, &value, most.max(ends), many.now)?;
        Ok(own.is_some())
    }

    /// `if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then redis.pcall('PEXPIRE', KEYS[1],
    /// ARGV[2]) end`
    fn shorten(&mut self) -> Result<(), Failure> {
        let left = self.pttl();
        let Some(life) = self.value(2).and_then(lua_number) else {
            return Err(self.stopped("if redis.call('PTTL'", "attempt to compare nil with number"));
        };
        if left as f64 > life {
            // Whether the server accepts it is not checked.
            let _ = self.pexpire(self.named(1)?, self.worth(2)?);
        }
        Ok(())
    }

    /// `PEXPIRE KEYS[1] ARGV[2]`, and `SET` with the same life, whose error is not checked. After
    /// its first write, a script is not refused for memory.
    fn let_live(&mut self, kept: &[u8]) -> Result<(), Failure> {
        let (key, life) = (self.named(1)?, self.worth(2)?);
        self.pexpire(key, life)?;
        let _ = self.set_with_end(key, kept, life);
        Ok(())
    }
}
