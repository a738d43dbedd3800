//! What stands in for `observe` without the feature `tracing`: nothing, at no cost.

use std::time::Duration;

use super::host::Host;
use crate::machine::Machine;
use crate::protocol::{Acquire, AcquireError, Event, LockId, Resource};

pub(super) struct Subject;

impl Subject {
    pub(super) fn none() -> Self {
        Self
    }

    pub(super) fn of(_: &Resource) -> Self {
        Self
    }
}

pub(super) struct Acquisition;

impl Acquisition {
    pub(super) fn begin(_: &Acquire) -> Self {
        Self
    }

    pub(super) fn granted(&mut self, _: &Grant) {}

    pub(super) fn reentered(&mut self) {}

    pub(super) fn refused(&mut self, _: &AcquireError) {}
}

pub(super) struct Grant;

impl Grant {
    pub(super) fn of<E>(_: &Machine<E>, _: LockId, _: Duration) -> Self {
        Self
    }
}

pub(super) struct Told;

impl Told {
    pub(super) fn nothing() -> Self {
        Self
    }
}

pub(super) struct Notices;

impl Notices {
    pub(super) fn gather() -> Self {
        Self
    }

    pub(super) fn event(&mut self, _: &Subject, _: &Event) {}

    pub(super) fn masters<E>(&mut self, _: &Machine<E>, _: &mut Told) {}

    pub(super) fn tell(self, _: &dyn Host) {}
}
