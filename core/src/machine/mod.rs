//! Many locks over N connections: routes inputs, gathers outputs, knows the next deadline.
//!
//! Orders go from locks down to connections, answers from connections up to locks, until there are
//! none left.
//!
//! Rules of this room: it decides only what a single lock or connection cannot see, such as one
//! server behind two addresses or how many callers are ahead of one that gives up.

/// The effects of a lock, borrowed beside the lock itself.
macro_rules! effects {
    ($machine:ident, $now:ident) => {
        Effects {
            now: $now,
            config: &$machine.config,
            entropy: &mut $machine.entropy,
            jitter: &mut $machine.jitter,
            orders: &mut $machine.orders,
            events: &mut $machine.events,
            ranks: &$machine.ranks,
            without_queue: $machine.without_queue,
        }
    };
}

mod asking;
mod commands;
mod due;
mod keeping;
mod locks;
mod output;
mod routing;
mod table;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

pub(crate) use keeping::kept_life;
pub use output::{MasterState, Output, Wake, WakeReason};

use self::due::Due;
use self::routing::Link;
use self::table::{Slab, Slot, Timers};
use crate::connection::{Answers, Connection, Wording};
use crate::endpoint::Login;
use crate::jitter::Jitter;
use crate::lock::{Lock, Order};
#[cfg(feature = "internals")]
use crate::protocol::Targets;
use crate::protocol::{
    Ballot, Cause, Config, Entropy, Event, LockId, MasterId, MasterSet, Resumption, Token,
};
use crate::time::Instant;
use crate::waiting::{Contenders, LetGo};

/// The protocol's whole state: all locks that are sought or held, and all masters' connections.
///
/// It does nothing on its own. A driver passes in inputs and commands, each with the time, and
/// after each drains [`Machine::poll_output`] until that says [`Output::Wake`]:
///
/// - *Commands*: [`acquire`](Self::acquire), [`take`](Self::take), [`extend`](Self::extend),
///   [`stop_renewal`](Self::stop_renewal), [`downgrade`](Self::downgrade),
///   [`hand_over`](Self::hand_over), [`release`](Self::release),
///   [`release_after`](Self::release_after), [`release_token`](Self::release_token),
///   [`cancel`](Self::cancel), [`bootstrap`](Self::bootstrap), [`inspect`](Self::inspect),
///   [`force_release`](Self::force_release), [`reauthenticate`](Self::reauthenticate).
/// - *Inputs*: [`connected`](Self::connected), [`connected_as`](Self::connected_as),
///   [`received`](Self::received), [`closed`](Self::closed), [`time_passed`](Self::time_passed).
/// - *Outputs*: [`poll_output`](Self::poll_output).
/// - *Getters*: [`config`](Self::config), [`token`](Self::token), [`resumption`](Self::resumption),
///   [`masters`](Self::masters), [`is_idle`](Self::is_idle), [`holds_locks`](Self::holds_locks).
///
/// The time must never run backwards, and the sockets should be read before the time is passed in,
/// or answers that have already arrived count as silence. The same calls give the same outputs,
/// byte for byte.
#[derive(Clone)]
pub struct Machine<E> {
    config: Arc<Config>,
    entropy: E,
    jitter: Jitter,
    connections: Vec<Link>,
    locks: Slab<Slot>,
    held: usize,
    extensions: u64,
    timers: Timers,
    due: Due,
    orders: VecDeque<Order>,
    /// The encoding of the current order.
    wording: Wording,
    answers: Answers,
    events: VecDeque<Event>,
    contenders: Contenders,
    /// The ballot of the last lock that gave up behind others at this instant.
    told_behind: Option<Arc<Ballot>>,
    /// Ended locks that the contenders do not know of yet.
    freed: VecDeque<LetGo>,
    /// Each connected master's rank, which is the same for all clients.
    ranks: Vec<Option<u64>>,
    /// Masters whose present connection has found that they keep no places in queues.
    without_queue: MasterSet,
    /// Masters with tasks for the driver, each at most once.
    busy: VecDeque<MasterId>,
    /// When the driver last began to write, if it reports that.
    written_at: Option<Instant>,
    /// The bytes of the last [`Output::Write`].
    shown: Vec<u8>,
}

impl<E: Entropy> Machine<E> {
    /// A machine that opens its connections at once.
    ///
    /// `entropy` provides the tokens, and the seed for the spread of pauses.
    pub fn new(config: impl Into<Arc<Config>>, mut entropy: E, now: Instant) -> Self {
        let config = config.into();
        let mut seed = [0; 8];
        // Without entropy no lock can be sought anyway, so it does not matter if connections are
        // opened in step.
        let _ = entropy.fill(&mut seed);
        let mut jitter = Jitter::new(u64::from_le_bytes(seed));
        let masters = config.masters.len();
        let connections = MasterId::all(masters)
            .map(|id| {
                let spread = Jitter::new(jitter.next());
                Link::new(Connection::new(Arc::clone(&config), id, spread, now))
            })
            .collect();
        let contenders = Contenders::new(*config.retry_delay.end());
        let mut machine = Self {
            config,
            entropy,
            jitter,
            connections,
            locks: Slab::new(),
            held: 0,
            extensions: 0,
            timers: Timers::default(),
            due: Due::nothing(now),
            orders: VecDeque::new(),
            wording: Wording::default(),
            answers: Answers::default(),
            events: VecDeque::new(),
            contenders,
            told_behind: None,
            freed: VecDeque::new(),
            ranks: vec![None; masters],
            without_queue: MasterSet::EMPTY,
            busy: VecDeque::new(),
            written_at: None,
            shown: Vec::new(),
        };
        for master in MasterId::all(machine.connections.len()) {
            machine.touched(master);
        }
        machine
    }

    // Inputs.

    /// The connection that [`Output::Connect`] asked for is open and being encrypted. This call is
    /// optional: it lets errors name the cause of a delay.
    pub fn securing(&mut self, master: MasterId, generation: u32) {
        if let Some(link) = self.connections.get_mut(master.index()) {
            link.connection.securing(generation);
        }
    }

    /// Replaces this connection by a fresh one as soon as it has no outstanding answers.
    pub fn renew_connection(&mut self, master: MasterId, generation: u32, now: Instant) {
        self.with_connection(master, now, |connection, answers| {
            connection.renew(generation, now, answers);
        });
    }

    /// The connection that [`Output::Connect`] asked for is open. It logs in with the user and the
    /// password of the master's URL.
    ///
    /// If there is a password file or a provider of [credentials](crate::Credentials), the driver
    /// reads that, and calls [`connected_as`](Self::connected_as).
    pub fn connected(&mut self, master: MasterId, generation: u32, now: Instant) {
        let login = self.config.masters.get(master.index()).and_then(|master| master.login(None));
        self.connected_as(master, generation, login, now);
    }

    /// The connection that [`Output::Connect`] asked for is open, with this login for it; `None` if
    /// there is no password.
    pub fn connected_as(&mut self, master: MasterId, generation: u32, login: Option<Login>, now: Instant) {
        self.with_connection(master, now, |connection, _| connection.connected(generation, login, now));
    }

    /// The connection that has just been opened is encrypted with earlier contents of files
    /// ([`Warning::OutdatedFiles`](crate::Warning::OutdatedFiles)).
    pub(crate) fn note_outdated_files(&mut self, master: MasterId, generation: u32) {
        if let Some(link) = self.connections.get_mut(master.index()) {
            link.connection.note_outdated_files(generation);
        }
    }

    /// Logs in again on the present connection, if there is one, while it is in use: other requests
    /// are not disturbed. If the master refuses the login, the connection is closed, and the driver
    /// provides a login for the next one.
    pub fn reauthenticate(&mut self, master: MasterId, login: Login, now: Instant) {
        self.with_connection(master, now, |connection, _| connection.reauthenticate(login, now));
    }

    /// Bytes came in on a connection.
    pub fn received(&mut self, master: MasterId, generation: u32, bytes: &[u8], now: Instant) {
        let mut was_ready = true;
        self.with_connection(master, now, |connection, answers| {
            was_ready = connection.is_ready();
            connection.received(generation, bytes, now, answers);
        });
        // It may have become ready. Until then it has no identity, and nothing is compared.
        if !was_ready {
            self.check_identity(master, now);
        }
    }

    /// A connection could not be opened, or has ended. Bytes that were received on it must have
    /// been passed in before.
    pub fn closed(&mut self, master: MasterId, generation: u32, cause: Cause, now: Instant) {
        self.with_connection(master, now, |connection, answers| {
            connection.closed(generation, cause, now, answers);
        });
    }

    /// The driver writes the outputs that [`poll_output`](Self::poll_output) returns from here on
    /// at the instant `now`. For a driver that may write long after the commands: the wait for
    /// answers begins at that instant.
    pub(crate) fn writes_begin(&mut self, now: Instant) {
        self.written_at = Some(now);
    }

    /// The bytes of the last [`Output::Write`], to take them as a whole.
    pub(crate) fn shown(&mut self) -> &mut Vec<u8> {
        &mut self.shown
    }

    // Getters.

    /// Returns the configuration.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// A lock that is sought or held, or whose last event has yet to be taken.
    pub(crate) fn lock(&self, id: LockId) -> Option<&Lock> {
        self.locks.get(id).and_then(|slot| slot.task.as_lock())
    }

    /// Returns the token of a lock's present attempt, which its keys hold once it is granted;
    /// `None` before the first.
    pub fn token(&self, lock: LockId) -> Option<Token> {
        self.lock(lock).and_then(Lock::token)
    }

    /// Returns the index of a lock's permit, counted from zero, once one is chosen. If it has
    /// several, this is one of them.
    pub fn seat(&self, lock: LockId) -> Option<u16> {
        self.lock(lock).and_then(Lock::seat)
    }

    /// Returns what another process needs to resume a lock while it is held here, too: its token,
    /// and its number if it has one.
    pub fn resumption(&mut self, lock: LockId) -> Option<Resumption> {
        let table::Task::Lock(lock) = &mut self.locks.get_mut(lock)?.task else { return None };
        lock.copied_resumption(self.config.masters.len())
    }

    /// The lock's targets, with the permits that it has of a semaphore, and what is needed to
    /// resume it.
    #[cfg(feature = "internals")]
    pub(crate) fn claim(&self, lock: LockId) -> Option<(Targets, Resumption)> {
        let lock = self.lock(lock)?;
        let targets = lock.targets().clone();
        let targets = lock.seats().map_or(targets, |seats| lock.targets().at_seats(seats));
        Some((targets, lock.resumption(self.config.masters.len())?))
    }

    /// Returns each master's state, in the order of the configuration.
    pub fn masters(&self) -> impl Iterator<Item = (MasterId, MasterState)> {
        self.connections().map(|(master, connection)| (master, MasterState::of(connection)))
    }

    /// Each master's connection, in the order of the configuration.
    pub(crate) fn connections(&self) -> impl Iterator<Item = (MasterId, &Connection)> {
        MasterId::all(self.connections.len()).zip(self.connections.iter().map(|link| &link.connection))
    }

    /// Returns whether the present connection for a master goes to a sentinel, to ask for the
    /// master's address. Such a connection does not need the master's login.
    pub fn asks_sentinel(&self, master: MasterId) -> bool {
        self.connections.get(master.index()).is_some_and(|link| link.connection.asks_sentinel())
    }

    /// How many locks are held.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Returns whether no lock is alive, no reply is outstanding, and no release waits for a
    /// connection that may still open: a driver that should end may do so now.
    pub fn is_idle(&self) -> bool {
        self.locks.len() == 0 && !self.connections.iter().any(|link| link.connection.is_in_flight())
    }

    /// Returns whether any lock is held. If so, a driver must read the clock from time to time:
    /// timers may stop while the computer is suspended.
    pub fn holds_locks(&self) -> bool {
        self.held > 0
    }
}

impl<E> fmt::Debug for Machine<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("connections", &self.connections.iter().map(|link| &link.connection).collect::<Vec<_>>())
            .field("locks", &self.locks.len())
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}
