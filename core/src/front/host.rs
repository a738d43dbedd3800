//! What a transport lends to the front.

use std::sync::Arc;
use std::task::{Context, Poll};

use crate::protocol::{Entropy, EntropyFailed};
use crate::time::Instant;

/// The clock, the entropy and the way of waiting that belong to a transport.
pub trait Host: Send + Sync + 'static {
    /// The time on a clock that goes on while the machine sleeps, where the system has one: keys expire meanwhile.
    fn now(&self) -> Instant;

    /// Fills `bytes` with random bytes of the operating system.
    ///
    /// # Errors
    /// [`EntropyFailed`] where it has none to give.
    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), EntropyFailed>;

    /// Whether this process is a forked child of the one that opened the locker. It is asked whenever a guard is, so it makes no
    /// system call where that can be helped.
    ///
    /// The child has copies of the sockets, of which every byte would be missing in the parent, and of mutexes whose holders it has
    /// not. So the front touches neither of them there.
    fn is_forked(&self) -> bool {
        false
    }

    /// Whether the calling thread may be kept waiting. In a thread that runs async code for the runtime that drives the locker it may
    /// not: it would wait for itself. Then whatever waits panics.
    fn may_wait(&self) -> bool {
        true
    }

    /// Keeps the calling thread until `poll` is ready. It is called once at first, and again after each wake-up.
    fn block_on(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>);
}

/// A host as the machine's source of tokens.
#[derive(Clone)]
pub(super) struct HostEntropy(pub(super) Arc<dyn Host>);

impl Entropy for HostEntropy {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        self.0.fill_random(bytes)
    }
}
