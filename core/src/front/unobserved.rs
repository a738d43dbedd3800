//! Replaces `observe` without the feature `tracing`: it does nothing, at no cost.

use std::time::Duration;

use super::host::Host;
use crate::lock::Lock;
use crate::machine::Machine;
use crate::protocol::{Acquire, AcquireError, Event, Quorum, Targets};

pub(super) struct Subject;

impl Subject {
    pub(super) fn none() -> Self {
        Self
    }

    pub(super) fn of(_: &Targets) -> Self {
        Self
    }
}

pub(super) struct Acquisition;

impl Acquisition {
    pub(super) fn begin(_: &Acquire) -> Self {
        Self
    }

    pub(super) fn granted(&mut self, _: &GrantFields) {}

    pub(super) fn reentered(&mut self) {}

    pub(super) fn refused(&mut self, _: &AcquireError) {}
}

pub(super) struct GrantFields;

impl GrantFields {
    pub(super) fn of(_: &Lock, _: Quorum, _: Duration) -> Self {
        Self
    }
}

pub(super) struct Told;

impl Told {
    pub(super) fn nothing() -> Self {
        Self
    }
}

#[derive(Default)]
pub(super) struct Notices;

impl Notices {
    pub(super) fn event(&mut self, _: &Subject, _: &Event) {}

    pub(super) fn masters<E>(&mut self, _: &Machine<E>, _: &mut Told) {}

    pub(super) fn tell(self, _: &dyn Host) {}
}
