//! The lock over the masters, as `run` sees it.

use std::task::Poll;

use crate::arguments::RunArguments;
use crate::run::{Changed, Hold, Lock, Refusal, Released, Standing};
use crate::signals::Notifier;

/// A lock of which there is no value: this build cannot acquire one, and no command runs without.
#[derive(Debug)]
pub(crate) enum Acquisition {}

/// Begins to acquire the lock that `arguments` name. `changed` is told whenever polling it again is worthwhile.
pub(crate) fn begin(_arguments: &RunArguments, _changed: Notifier<Changed>) -> Result<Acquisition, Refusal> {
    Err(Refusal::NoQuorum("this build has no lock in it yet, so it runs nothing".to_owned()))
}

impl Lock for Acquisition {
    type Hold = Self;

    fn poll(&mut self) -> Poll<Result<Self, Refusal>> {
        match *self {}
    }

    fn cancel(self) {
        match self {}
    }
}

impl Hold for Acquisition {
    fn token(&self) -> String {
        match *self {}
    }

    fn standing(&self) -> Standing {
        match *self {}
    }

    fn stop_renewal(&self) {
        match *self {}
    }

    fn release(self) -> Released {
        match self {}
    }
}
