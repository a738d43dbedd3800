//! The scripts of every lock.

use super::{Body, Holder};
use crate::master::reply::{Failure, WRONG_TYPE};

impl Body<'_, '_> {
    pub(super) fn release(&mut self) -> Result<(), Failure> {
        match self.holder() {
            Ok(Holder::We) => return self.delete(),
            Ok(_) => {}
            Err(error) => no_wrong_type(error)?,
        }
        self.number(0.0)
    }

    pub(super) fn extend(&mut self) -> Result<(), Failure> {
        match self.holder() {
            Ok(Holder::We) => {
                self.lengthen()?;
                return self.number(1.0);
            }
            Ok(_) => {}
            Err(error) => no_wrong_type(error)?,
        }
        self.number(0.0)
    }

    pub(super) fn undo(&mut self) -> Result<(), Failure> {
        match self.holder()? {
            Holder::We => return self.delete(),
            Holder::Nobody => self.call.reply.integer(0),
            Holder::Another(held) => self.tell_holder(&held),
        }
        Ok(())
    }

    pub(super) fn acquire_reading(&mut self) -> Result<(), Failure> {
        if let Some(held) = self.get(self.key(1))? {
            self.tell_holder(&held);
            return Ok(());
        }
        self.set_lock()?;
        self.number(1.0)
    }

    pub(super) fn tell_holder(&mut self, held: &[u8]) {
        let left = self.pttl();
        self.tell(held, left);
    }

    /// The SHA-1 of the shown part of a value, and how long its key lives.
    pub(super) fn tell(&mut self, held: &[u8], left: i64) {
        let digest = digest(held);
        self.call.reply.array(2);
        self.call.reply.bulk(digest.as_bytes());
        self.call.reply.integer(left);
    }

    /// `return redis.call('DEL', KEYS[1])`
    pub(super) fn delete(&mut self) -> Result<(), Failure> {
        let may = self.call.master.takes_writes();
        may.map_err(|failure| self.raised("redis.call('DEL'", &failure))?;
        let Some(key) = self.key(1) else { return Ok(()) };
        let removed = self.call.master.keyspace.remove(self.call.session.database, key, self.call.now);
        self.call.reply.integer(removed.into());
        Ok(())
    }
}

/// The fingerprint that distinguishes holders.
pub(super) fn digest(held: &[u8]) -> String {
    let shown = held.get(..SHOWN_BYTES).unwrap_or(held);
    sha1_smol::Sha1::from(shown).digest().to_string()
}

/// A key of another type is not our lock; any other error stays an error.
pub(super) fn no_wrong_type(failure: Failure) -> Result<(), Failure> {
    if failure == WRONG_TYPE { Ok(()) } else { Err(failure) }
}

/// How many bytes of a value the digest covers.
const SHOWN_BYTES: usize = 64;
