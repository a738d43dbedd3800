//! On systems other than Linux, what the command starts cannot be found. Only its process group is
//! known, and there are no values of these types.

use std::convert::Infallible;
use std::fmt::{Display, Formatter};

use rustix::process::{Pid, Signal};

/// The processes below `quorlock`.
#[derive(Debug)]
pub(crate) struct Descendants(Infallible);

/// One of them.
#[derive(Debug, Clone)]
pub(crate) struct Process(Infallible);

/// Processes that were stopped.
pub(crate) type Frozen = ();

/// Whether the system can refuse a signal. That is not found out here.
pub(crate) fn can_be_refused() -> bool {
    false
}

impl Descendants {
    pub(crate) fn begin() -> Option<Self> {
        None
    }

    pub(crate) fn has_earlier(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn living(&self) -> Vec<Process> {
        match self.0 {}
    }

    pub(crate) fn send(&self, _: &[Signal], _: Option<Pid>) -> Vec<Process> {
        match self.0 {}
    }

    pub(crate) fn freeze(&self) -> Frozen {
        match self.0 {}
    }

    pub(crate) fn thaw(&self, (): &Frozen) {
        match self.0 {}
    }

    pub(crate) fn kill(&self) -> Vec<Process> {
        match self.0 {}
    }

    pub(crate) fn refusing(&mut self) -> Vec<Process> {
        match self.0 {}
    }
}

impl Process {
    pub(crate) fn has_number(&self, _: u32) -> bool {
        match self.0 {}
    }
}

impl Display for Process {
    fn fmt(&self, _: &mut Formatter<'_>) -> std::fmt::Result {
        match self.0 {}
    }
}
