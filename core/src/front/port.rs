//! The front as a driver sees it.

use std::fmt;
use std::io::Write;
use std::mem;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::host::Host;
use super::locker::Locker;
use super::shared::{Handle, Shared};
use crate::protocol::{Cause, Config, MasterId};
#[cfg(feature = "internals")]
use crate::protocol::{LockId, Resource, Resumption};
use crate::time::Instant;

/// A sleep while a lock is held is no longer than this. Timers of most systems stand still while the machine sleeps, and a holder must
/// learn soon after that its lock has run out.
const LONGEST_SLEEP_WHILE_HOLDING: Duration = Duration::from_secs(1);

/// What a driver is to do with its connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Demand {
    /// Open a connection, then call [`Port::opened`] or [`Port::closed`].
    Connect {
        /// Whom to.
        master: MasterId,
        /// The number of the connection to be.
        generation: u32,
    },
    /// Close a connection, or give up opening it.
    Close {
        /// Whose.
        master: MasterId,
        /// The connection's number.
        generation: u32,
    },
}

/// The I/O loop's end of a locker.
///
/// A turn of the loop is, in this order: [`register`](Self::register) a waker; read every socket that has something and
/// hand it in with [`received`](Self::received) and [`closed`](Self::closed); [`tick`](Self::tick); carry out every
/// [`next_demand`](Self::next_demand); let those run whom the tick has woken, if they can only run when the loop does not; sleep until a socket is readable, one that [`is_blocked`](Self::is_blocked) is writable (then
/// [`retry_write`](Self::retry_write)), the waker is woken, or the time that [`sleep`](Self::sleep) tells has passed. It ends when
/// [`is_finished`](Self::is_finished). Reading comes before the time is told, or answers that wait in a socket would count as silence.
///
/// The page `docs/driving.md` in this crate's folder tells why it is so, with a whole transport.
///
/// When a port is dropped, everybody who waits is told that the driver has ended.
pub struct Port {
    shared: Arc<Shared>,
    finishing_since: Option<Instant>,
}

impl Port {
    /// A locker and the port that its driver must serve.
    pub fn new(config: Config, host: Arc<dyn Host>) -> (Locker, Self) {
        let config = Arc::new(config);
        let shared = Shared::new(Arc::clone(&config), host);
        let locker = Locker::new(Handle::new(&shared), config);
        (locker, Self { shared, finishing_since: None })
    }

    /// Begins a turn, and has this waker woken when there is a demand, a full socket or an earlier deadline.
    ///
    /// A master is silent only up to this instant: what comes in later may miss this turn's reading.
    pub fn register(&self, waker: &Waker) {
        self.shared.end_gathering();
        self.shared.driver.register(waker, self.shared.host.now());
    }

    /// The connection that a demand asked for stands. `sink` writes to it without waiting.
    pub fn opened(&self, master: MasterId, generation: u32, sink: impl Write + Send + 'static) {
        self.shared.with_writer(|writer| writer.open(master, generation, Box::new(sink)));
        let now = self.shared.host.now();
        {
            let mut core = self.shared.core();
            core.figures.opened(master);
            core.machine.connected(master, generation, now);
        }
        self.shared.flush_now();
    }

    /// Bytes came in. Nothing happens because of them until [`Port::tick`].
    pub fn received(&self, master: MasterId, generation: u32, bytes: &[u8]) {
        let now = self.shared.host.now();
        self.shared.core().machine.received(master, generation, bytes, now);
    }

    /// A connection ended, or could not be opened.
    ///
    /// It may be called anywhere in a turn: what follows is carried out by the next [`tick`](Self::tick), or by [`sleep`](Self::sleep), which
    /// then asks for another turn if that brought demands.
    pub fn closed(&self, master: MasterId, generation: u32, cause: Cause) {
        self.shared.with_writer(|writer| writer.close(master, generation));
        let now = self.shared.host.now();
        self.shared.core().machine.closed(master, generation, cause, now);
        self.shared.changed_in_turn();
    }

    /// Whether the next [`tick`](Self::tick) may find that something has taken too long, so that what waits in the sockets must be read before it, by
    /// whatever means: a runtime's reactor may not have run since it came.
    pub fn is_due(&self) -> bool {
        self.shared.driver.deadline().is_some_and(|at| at <= self.shared.host.now())
    }

    /// Whether the last connection to this master came to be used for requests. If not, another address of its name may do better:
    /// [`Addresses::avoid_last`](super::Addresses::avoid_last).
    pub fn has_served(&self, master: MasterId) -> bool {
        let core = self.shared.core();
        core.machine.connections().any(|(id, connection)| id == master && connection.has_served())
    }

    /// Tells the machine the time, and carries out what has come about since the last turn. Returns whether that woke somebody.
    ///
    /// What is asked for from here on is gathered until [`sleep`](Self::sleep), or the next turn, and goes out in one write for each master.
    /// So a loop that shares its thread with those whom it has woken lets them run first.
    pub fn tick(&self) -> bool {
        let now = self.shared.host.now();
        let looked = self.shared.driver.turn_began();
        self.shared.core().machine.time_passed_since_look(looked, now);
        self.shared.begin_gathering()
    }

    /// Ends what [`tick`](Self::tick) has begun, where neither [`sleep`](Self::sleep) nor another turn follows soon.
    pub fn end_turn(&self) {
        self.shared.end_gathering();
    }

    /// The next thing to do with a connection.
    pub fn next_demand(&self) -> Option<Demand> {
        self.shared.driver.next_demand()
    }

    /// Whether bytes wait for room in a socket.
    pub fn is_blocked(&self, master: MasterId) -> bool {
        self.shared.is_blocked(master)
    }

    /// A blocked socket has room again. Returns whether it took everything.
    pub fn retry_write(&self, master: MasterId) -> bool {
        self.shared.with_writer(|writer| {
            writer.retry(master);
            writer.write();
            !writer.is_blocked(master)
        })
    }

    /// How long to sleep at most; `None` for as long as nothing else happens. Call it last in a turn.
    pub fn sleep(&self) -> Option<Duration> {
        self.shared.end_gathering();
        let holding = self.shared.core().machine.holds_locks();
        let now = self.shared.host.now();
        let deadline = self.shared.driver.arm(now);
        if self.shared.driver.has_demands() {
            return Some(Duration::ZERO);
        }
        let until_deadline = deadline.map(|at| at.since(now));
        let longest = holding.then_some(LONGEST_SLEEP_WHILE_HOLDING);
        until_deadline.into_iter().chain(longest).min()
    }

    /// Shows every lock that its holder's guard may call valid, with the end of that.
    #[cfg(feature = "internals")]
    pub(crate) fn each_guard(&self, mut look: impl FnMut(LockId, &Resource, Resumption, Instant)) {
        self.shared.core().each_guard(&mut look);
    }

    /// Whether this process is a forked child of the one that opened the locker. A driver that finds itself there must touch neither
    /// its sockets nor this port any more: they are the parent's.
    pub fn is_forked(&self) -> bool {
        self.shared.is_forked()
    }

    /// Whether nobody uses the locker any more, and what was sent has been answered or waited for long enough.
    pub fn is_finished(&mut self) -> bool {
        if self.shared.driver.has_users() {
            return false;
        }
        let now = self.shared.host.now();
        let since = *self.finishing_since.get_or_insert(now);
        let core = self.shared.core();
        core.machine.is_idle() || now >= since + core.machine.config().request_timeout
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        if self.shared.is_forked() {
            mem::forget(Arc::clone(&self.shared));
        } else {
            self.shared.driver_ended();
        }
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").finish_non_exhaustive()
    }
}
