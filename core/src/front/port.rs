//! The driver's side of the front.

use std::fmt;
use std::io::Write;
use std::mem;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::host::Host;
use super::locker::Locker;
use super::mailbox::Demand;
use super::securing::Securing;
use super::shared::{Handle, Shared};
use super::sync::contain;
use crate::protocol::{AddressMap, Cause, ChannelState, Config, MasterId};
#[cfg(feature = "internals")]
use crate::protocol::{LockId, Resumption, Targets};
use crate::time::Instant;

/// The longest sleep of the driver while a lock is held. On most systems timers stop while the
/// computer is suspended, and a holder must learn soon after waking up that its lock has run out.
const LONGEST_SLEEP_WHILE_HOLDING: Duration = Duration::from_secs(1);

/// The I/O loop's end of a locker.
///
/// A turn of the loop has these steps:
///
/// 1. [`register`](Self::register) a waker.
/// 2. Read every socket that has something, and hand it in with [`received`](Self::received) or
///    [`closed`](Self::closed).
/// 3. [`tick`](Self::tick).
/// 4. Carry out every [`next_demand`](Self::next_demand).
/// 5. If the tasks that the tick has woken share the loop's thread, let them run.
/// 6. Sleep until a socket is readable, a socket that [`is_blocked`](Self::is_blocked) is writable
///    (then [`retry_write`](Self::retry_write)), the waker is woken, or the time that
///    [`sleep`](Self::sleep) returns has passed.
///
/// The loop ends when [`is_finished`](Self::is_finished). Reading comes before the tick, because
/// answers that wait in a socket would otherwise count as silence.
///
/// [`guide::driving`](crate::guide::driving) explains each step, and has a complete transport.
///
/// When a port is dropped, all callers that wait for a lock get the error that the driver has
/// ended.
pub struct Port {
    shared: Arc<Shared>,
    securing: Securing,
    finishing_since: Option<Instant>,
}

impl Port {
    /// Returns a locker and the port that its driver must serve.
    pub fn new(config: Config, host: Arc<dyn Host>) -> (Locker, Self) {
        let config = Arc::new(config);
        let shared = Shared::new(Arc::clone(&config), host);
        let securing = Securing::new(&config);
        let locker = Locker::new(Handle::new(&shared), config);
        (locker, Self { shared, securing, finishing_since: None })
    }

    /// Begins a turn. `waker` is woken when there is a demand, a full socket or an earlier
    /// deadline.
    ///
    /// A master's silence counts only up to this instant, because bytes that come later may miss
    /// this turn's reading.
    pub fn register(&self, waker: &Waker) {
        self.shared.outbox.end_gathering(&*self.shared);
        self.shared.mailbox.register(waker, self.shared.host.now());
    }

    /// The connection that a demand asked for is open. `sink` writes to it without waiting.
    ///
    /// If the master's URL asks for TLS, the port opens its own channel over the connection, and
    /// notifies the machine once that is done.
    ///
    /// This call gets the login: it may read a password file, or call the configuration's
    /// [`Credentials`](crate::Credentials).
    pub fn opened(&self, master: MasterId, generation: u32, sink: impl Write + Send + 'static) {
        let sink = Box::new(sink);
        if self.securing.is_for(master) {
            self.shared.change(|engine, _| engine.machine.securing(master, generation));
            if let Err(cause) = self.securing.begin(master, generation, sink) {
                self.closed(master, generation, cause);
            }
        } else {
            self.shared.outbox.open(master, generation, sink, &*self.shared);
            self.greet(master, generation, false);
        }
    }

    /// Has the machine begin the greeting, with the present login.
    fn greet(&self, master: MasterId, generation: u32, has_outdated_files: bool) {
        let asks_sentinel = self.shared.engine().machine.asks_sentinel(master);
        let login = if asks_sentinel { Ok(None) } else { self.shared.login(master) };
        self.shared.change(|engine, now| {
            if !asks_sentinel {
                engine.figures.opened(master);
            }
            match login {
                Ok(login) => {
                    engine.machine.connected_as(master, generation, login, now);
                    if has_outdated_files {
                        engine.machine.note_outdated_files(master, generation);
                    }
                }
                Err(why) => engine.machine.closed(master, generation, Cause::NoLogin(why), now),
            }
        });
        self.shared.outbox.flush_now(&*self.shared);
    }

    /// Hands in bytes that were read. What follows from them is carried out by [`Port::tick`], or
    /// by a caller that flushes before it.
    pub fn received(&self, master: MasterId, generation: u32, bytes: &[u8]) {
        if self.securing.is_for(master) {
            self.securing.with_plain(|plain| self.received_secured(master, generation, bytes, plain));
        } else {
            self.shared.change(|engine, now| engine.machine.received(master, generation, bytes, now));
        }
    }

    /// Only decrypted content counts as received: the channel's own messages do not show that a
    /// master is behind it.
    fn received_secured(&self, master: MasterId, generation: u32, bytes: &[u8], plain: &mut Vec<u8>) {
        let state = match self.securing.received(master, generation, bytes, plain) {
            Some(Ok(None)) => return,
            Some(Ok(Some(secured))) => {
                let has_outdated_files = secured.channel.has_outdated_files();
                self.shared.outbox.open_secured(master, generation, secured, &*self.shared);
                self.greet(master, generation, has_outdated_files);
                Ok(ChannelState::Established)
            }
            Some(Err(cause)) => Err(cause),
            None => {
                let shared = &*self.shared;
                let Some(state) = shared.outbox.decrypt(master, generation, bytes, plain, shared) else {
                    return;
                };
                state
            }
        };
        if !plain.is_empty() {
            self.shared.change(|engine, now| engine.machine.received(master, generation, plain, now));
        }
        match state {
            Ok(ChannelState::Opening | ChannelState::Established) => {}
            Ok(ChannelState::Ended) => self.closed(master, generation, Cause::Closed),
            Err(cause) => self.closed(master, generation, cause),
        }
    }

    /// A connection ended, or could not be opened.
    ///
    /// It may be called at any point of a turn. The next [`tick`](Self::tick) carries out what
    /// follows, or [`sleep`](Self::sleep), which then asks for another turn if there are demands.
    pub fn closed(&self, master: MasterId, generation: u32, cause: Cause) {
        self.securing.forget(master, generation);
        self.shared.outbox.close(master, generation, &*self.shared);
        self.shared.change(|engine, now| engine.machine.closed(master, generation, cause, now));
        self.shared.outbox.changed_in_turn();
    }

    /// Whether the next [`tick`](Self::tick) may find that something has taken too long. Then the
    /// driver must read the sockets themselves before the tick, because a runtime's reactor may not
    /// have run since bytes came.
    pub fn is_due(&self) -> bool {
        self.shared.mailbox.is_due()
    }

    /// Whether the last connection to this master became usable for requests. If not, another
    /// address of its name may work better:
    /// [`Addresses::avoid_last`](super::Addresses::avoid_last).
    pub fn has_served(&self, master: MasterId) -> bool {
        let engine = self.shared.engine();
        engine.machine.connections().any(|(id, connection)| id == master && connection.has_served())
    }

    /// Passes the time to the machine, and carries out everything that has become due. Returns
    /// whether that woke callers.
    ///
    /// Requests that follow are gathered until [`sleep`](Self::sleep), or the next turn, and go out
    /// in one write for each master. So a loop that shares its thread with the woken callers lets
    /// them run first.
    pub fn tick(&self) -> bool {
        let looked = self.shared.mailbox.turn_began();
        self.shared.change(|engine, now| engine.machine.time_passed_since_look(looked, now));
        self.shared.outbox.begin_gathering(&*self.shared)
    }

    /// Ends the gathering that [`tick`](Self::tick) has begun, if neither [`sleep`](Self::sleep)
    /// nor another turn follows soon.
    pub fn end_turn(&self) {
        self.shared.outbox.end_gathering(&*self.shared);
    }

    /// The next demand about a connection.
    pub fn next_demand(&self) -> Option<Demand> {
        let mut demand = self.shared.mailbox.next_demand()?;
        match &mut demand {
            Demand::Close { master, generation } => self.securing.forget(*master, *generation),
            Demand::Connect { master, address, .. } => {
                if let Some(AddressMap(map)) = &self.shared.config.address_map {
                    *address = contain(|| map(address)).unwrap_or_else(|| address.clone());
                }
                self.securing.heads_for(*master, address);
            }
        }
        Some(demand)
    }

    /// Whether bytes wait for room in a socket.
    pub fn is_blocked(&self, master: MasterId) -> bool {
        self.shared.outbox.is_full(master) || self.securing.is_full(master)
    }

    /// A blocked socket has room again. Returns whether it took everything.
    pub fn retry_write(&self, master: MasterId) -> bool {
        self.securing.retry(master) && self.shared.outbox.retry(master, &*self.shared)
    }

    /// How long to sleep at most; `None` means until something else wakes the loop. Call it last in
    /// a turn.
    pub fn sleep(&self) -> Option<Duration> {
        let (now, wake_at) = self.wake_at();
        wake_at.map(|at| at.since(now))
    }

    /// The present time and the latest time to sleep until: [`Port::sleep`] in instants.
    pub(super) fn wake_at(&self) -> (Instant, Option<Instant>) {
        self.shared.outbox.end_gathering(&*self.shared);
        let holding = self.shared.engine().machine.holds_locks();
        let now = self.shared.host.now();
        let deadline = self.shared.mailbox.arm(now);
        let longest = holding.then(|| now + LONGEST_SLEEP_WHILE_HOLDING);
        (now, deadline.into_iter().chain(longest).min())
    }

    /// Shows every lock that a guard may report as valid, with the end of its validity.
    #[cfg(feature = "internals")]
    pub(crate) fn each_guard(&self, mut look: impl FnMut(LockId, &Targets, Resumption, Instant)) {
        self.shared.engine().each_guard(&mut look);
    }

    /// Whether this process is a forked child of the one that opened the locker. A driver in a
    /// child must no longer touch its sockets or this port: they are the parent's.
    pub fn is_forked(&self) -> bool {
        self.shared.is_forked()
    }

    /// Whether the locker has no users left, and everything sent was answered or has timed out. A
    /// request over a connection that was forgotten while it was idle is sent again over the next.
    pub fn is_finished(&mut self) -> bool {
        if self.shared.mailbox.has_users() {
            return false;
        }
        let now = self.shared.host.now();
        let since = *self.finishing_since.get_or_insert(now);
        let engine = self.shared.engine();
        let config = engine.machine.config();
        let longest = config.request_timeout * 2 + config.connect_timeout;
        engine.machine.is_idle() || now >= since + longest
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
