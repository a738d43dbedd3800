//! The scripts of locks whose grants are numbered.

use super::plain::no_wrong_type;
use super::{Body, Holder, LAST_FENCE, NO_COUNTER, USED_UP};
use crate::master::number::{lua_max, lua_number};
use crate::master::reply::Failure;

impl Body<'_, '_> {
    pub(super) fn acquire_fenced(&mut self) -> Result<(), Failure> {
        self.grant_fenced(0.0)
    }

    pub(super) fn grant_fenced(&mut self, floor: f64) -> Result<(), Failure> {
        if let Some(held) = self.get(self.key(1))? {
            self.tell_holder(&held);
            return Ok(());
        }
        let fence = lua_max(self.counter()?, floor) + 1.0;
        if fence > LAST_FENCE {
            return Err(USED_UP);
        }
        self.set(self.key(2), Some(format!("{fence:.0}").as_bytes()))?;
        self.set_lock()?;
        self.number(fence)
    }

    pub(super) fn raise(&mut self) -> Result<(), Failure> {
        if !matches!(self.holder()?, Holder::We) {
            return self.number(0.0);
        }
        let fence = self.counter()?;
        let Some(wanted) = self.value(2).and_then(lua_number) else {
            return Err(self.stopped("if fence >= ", "attempt to compare nil with number"));
        };
        if fence >= wanted {
            return self.number(fence);
        }
        self.set(self.key(2), self.value(2))?;
        self.number(wanted)
    }

    pub(super) fn extend_fenced(&mut self) -> Result<(), Failure> {
        match self.holder() {
            Ok(Holder::We) => {
                self.raise_to_third()?;
                self.lengthen()?;
                return self.number(1.0);
            }
            Ok(_) => {}
            Err(error) => no_wrong_type(error)?,
        }
        self.number(0.0)
    }

    pub(super) fn heal_fenced(&mut self) -> Result<(), Failure> {
        let Some(key) = self.key(1) else { return self.number(0.0) };
        self.read(&[key]);
        if self.call.master.keyspace.get(self.call.session.database, key, self.call.now).is_some() {
            return self.number(0.0);
        }
        self.raise_to_third()?;
        self.set_lock()?;
        self.number(1.0)
    }

    /// `if fence < tonumber(ARGV[3]) then … SET KEYS[2] ARGV[3]`
    fn raise_to_third(&mut self) -> Result<(), Failure> {
        let fence = self.counter()?;
        let Some(wanted) = self.value(3).and_then(lua_number) else {
            return Err(self.stopped("if fence < ", "attempt to compare number with nil"));
        };
        if fence < wanted { self.set(self.key(2), self.value(3)) } else { Ok(()) }
    }

    fn counter(&mut self) -> Result<f64, Failure> {
        let counter = self.get(self.key(2))?;
        let fence = counter.map_or(Some(0.0), |counter| lua_number(&counter));
        fence.filter(|fence| !fence.is_nan()).ok_or(NO_COUNTER)
    }
}
