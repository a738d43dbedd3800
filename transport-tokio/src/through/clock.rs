//! A host that reads the clock of a runtime.

use std::path::Path;
use std::task::{Context, Poll};

use quorlock_core::front::Host;
use quorlock_core::{EntropyFailed, Instant, Unavailable};
use quorlock_host::System;
use tokio::runtime::Handle;

use crate::runtime::OutsideOfAsync;

/// The system, except for the clock, which is a runtime's and may be simulated.
pub(crate) struct InTimeOf {
    runtime: Handle,
    origin: tokio::time::Instant,
    system: System<OutsideOfAsync>,
}

impl InTimeOf {
    pub(crate) fn new(runtime: Handle, system: System<OutsideOfAsync>) -> Self {
        let origin = now(&runtime);
        Self { runtime, origin, system }
    }
}

/// Callers read the clock on any thread; tokio's clock depends on the runtime of that thread.
fn now(runtime: &Handle) -> tokio::time::Instant {
    let _inside = runtime.enter();
    tokio::time::Instant::now()
}

impl Host for InTimeOf {
    fn now(&self) -> Instant {
        Instant::ORIGIN + now(&self.runtime).duration_since(self.origin)
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        self.system.fill_random(bytes)
    }

    fn is_forked(&self) -> bool {
        self.system.is_forked()
    }

    fn may_wait(&self) -> bool {
        self.system.may_wait()
    }

    fn read_password(&self, file: &Path) -> Result<Vec<u8>, Unavailable> {
        self.system.read_password(file)
    }

    fn block_on(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
        self.system.block_on(poll);
    }
}
