//! One master: handshake, pipeline, script cache, timeouts, reconnects, generations.
//!
//! Rules of this room: a connection knows requests and answers, not locks. Every request with a
//! ticket gets one final answer. Before that it may get "no answer" once: when its timeout has
//! passed on a slow connection, or when the connection is given up with a release behind it. Only
//! an acquisition whose release comes while it waits for a connection is dropped. Writes, closes
//! and opens are tasks until the driver takes them. Each connection of the driver has a generation
//! number; inputs from an old generation are dropped.

mod cluster;
mod commands;
mod confirming;
mod discovery;
mod flight;
mod handshake;
mod info;
mod life;
mod memory;
mod pushes;
mod queues;
mod replies;
mod requests;
mod telling;
#[cfg(test)]
mod tests;
mod tracking;
mod upkeep;
mod warning;
mod wording;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use bytes::BytesMut;

pub(crate) use handshake::RunId;
pub(crate) use replies::{Answers, Upward};
pub(crate) use tracking::News;
pub use warning::Warning;
pub(crate) use wording::Wording;

use self::commands::Lacking;
use self::discovery::{Inquiry, Search};
use self::flight::Flight;
use self::handshake::Handshake;
use self::life::Backoff;
use self::pushes::Pushes;
use self::queues::Queues;
use self::requests::{Debt, Queued};
use self::tracking::Tracking;
use self::upkeep::Former;
use self::wording::NativeRelease;
use crate::endpoint::{Address, Login};
use crate::jitter::Jitter;
use crate::protocol::{Action, Cause, Config, Fleet, MasterId, Request, Ttl};
use crate::time::Instant;
use crate::wire::{Dialect, Scanner, ScriptSet};

/// A request buffer larger than this is freed once it has been written.
const KEPT_OUTBOUND_BYTES: usize = 64 * 1024;

/// What the driver must do for a master.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum DriverTask {
    Write { generation: u32 },
    Close { generation: u32 },
    Open { generation: u32, address: Address },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    /// No connection; the next one is opened at `until`.
    Resting { until: Instant },
    /// The driver was asked for a connection. `securing` once it is open and being encrypted.
    Opening { since: Instant, securing: bool },
    /// A sentinel is being asked for the master's address.
    Asking { since: Instant, inquiry: Box<Inquiry> },
    /// The connection is open, and the handshake is under way.
    Greeting { since: Instant, handshake: Box<Handshake> },
    /// Requests may be sent.
    Ready,
    /// A fresh connection replaces it as soon as all answers have come, or are overdue. Requests in
    /// the meantime wait for the new one.
    Draining { since: Instant },
}

/// One master as the machine sees it.
#[derive(Clone)]
pub(crate) struct Connection {
    config: Arc<Config>,
    id: MasterId,
    /// What all clients of this master must agree on, if the restart guard is on.
    fleet: Option<Fleet>,
    /// Whether the master last reported that not all of its replicas follow.
    alone: bool,
    state: State,
    generation: u32,
    /// `None` for a master whose URL gives its address.
    search: Option<Box<Search>>,
    /// The tag that its keys begin with, in a cluster.
    tag: Option<Arc<str>>,
    /// Why the master has no vote; `None` while it may have one.
    fault: Option<Cause>,
    dialect: Dialect,
    identity: Option<RunId>,
    /// The scripts that this connection has loaded on the server.
    known: ScriptSet,
    /// The commands that the server does not know.
    lacking: Lacking,
    /// The server's own command for a release, until it proves unavailable.
    native_release: Option<NativeRelease>,
    queues: Queues,
    warnings: Vec<Warning>,
    /// Until when the master does not vote, according to its last report.
    quarantined_until: Option<Instant>,
    /// The server of the last connection that was ready.
    former: Option<Former>,
    /// Until when the master does not vote because another server had its address before.
    other_server_until: Option<Instant>,
    /// The longest TTL that a request here has had, at least the configuration's.
    longest_asked: Ttl,
    flight: Flight,
    queued: VecDeque<Queued>,
    debts: VecDeque<Debt>,
    tracking: Tracking,
    pushes: Pushes,
    backoff: Backoff,
    /// Whether the present connection has carried an answer: then the next one probably works, too.
    proven: bool,
    /// Whether the last open connection ever became ready for requests.
    served: bool,
    last_received: Instant,
    /// When the driver found silence so late that the process may have been stopped.
    late_look: Option<Instant>,
    /// When the last answered request was sent: the server was up after that.
    heard_at: Instant,
    inbound: BytesMut,
    scanner: Scanner,
    outbound: Vec<u8>,
    to_close: Option<u32>,
    to_open: Option<u32>,
}

impl Connection {
    pub(crate) fn new(config: Arc<Config>, id: MasterId, jitter: Jitter, now: Instant) -> Self {
        let mut connection = Self {
            id,
            fleet: config.fleet(id),
            alone: false,
            state: State::Resting { until: now },
            generation: 0,
            search: config.masters.get(id.index()).and_then(|endpoint| Search::new(endpoint, now)),
            tag: config.masters.get(id.index()).and_then(cluster::tag_of).map(Arc::from),
            fault: None,
            dialect: Dialect::Resp3,
            identity: None,
            known: ScriptSet::default(),
            lacking: Lacking::default(),
            native_release: None,
            queues: Queues::default(),
            warnings: Vec::new(),
            quarantined_until: None,
            former: None,
            other_server_until: None,
            longest_asked: config.ttl,
            flight: Flight::default(),
            queued: VecDeque::new(),
            debts: VecDeque::new(),
            tracking: Tracking::default(),
            pushes: Pushes::default(),
            backoff: Backoff::new(&config.reconnect_delay, jitter),
            proven: false,
            served: false,
            last_received: now,
            late_look: None,
            heard_at: now,
            inbound: BytesMut::new(),
            scanner: Scanner::default(),
            outbound: Vec::new(),
            to_close: None,
            to_open: None,
            config,
        };
        connection.open(now);
        connection
    }

    // Getters.

    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready)
    }

    /// Why the master currently has no vote.
    pub(crate) fn fault(&self) -> Option<Cause> {
        self.fault
    }

    /// Whether the last open connection ever became ready for requests.
    pub(crate) fn has_served(&self) -> bool {
        self.served
    }

    /// The run id of the server behind a ready connection.
    pub(crate) fn identity(&self) -> Option<RunId> {
        self.identity.filter(|_| self.is_ready())
    }

    /// What the operator should know about the server behind the present connection.
    pub(crate) fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Until when the master does not vote because it may have forgotten locks.
    pub(crate) fn quarantined_until(&self) -> Option<Instant> {
        self.quarantined_until.max(self.other_server_until).filter(|_| self.is_ready())
    }

    /// Whether replies are outstanding, or requests wait for a connection that may still open.
    pub(crate) fn is_in_flight(&self) -> bool {
        let waits = !self.queued.is_empty() || !self.debts.is_empty();
        !self.flight.is_empty() || (waits && self.fault.is_none())
    }

    /// The instant at which [`Connection::time_passed`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Resting { until } => Some(until),
            State::Opening { since, .. } | State::Asking { since, .. } | State::Greeting { since, .. } => {
                Some(self.opening_deadline(since))
            }
            // Nothing more is sent here, so only answers are awaited.
            State::Draining { .. } => self.answers_deadline(),
            State::Ready => {
                let due = Instant::first_of(self.answers_deadline(), self.next_payment());
                if self.config.keep_alive.is_none() { due } else { Instant::first_of(due, self.next_ping()) }
            }
        }
    }

    /// When the answers that have not come by then are overdue.
    #[inline]
    fn answers_deadline(&self) -> Option<Instant> {
        let limit = self.config.request_timeout;
        let overdue = self.flight.deadline(limit, self.last_received);
        let overdue = Instant::first_of(overdue, self.drains_since().map(|since| since + limit))?;
        Some(self.late_look.map_or(overdue, |late| overdue.max(late + self.grace())))
    }

    // Commands.

    /// Sends a request, now or as soon as the connection is open.
    #[inline]
    pub(crate) fn submit(
        &mut self,
        request: &Request,
        wording: &mut Wording,
        now: Instant,
        answers: &mut Answers,
    ) {
        // A place in a queue grants nothing.
        let sets_key = request.action.creates() && request.action != Action::Stay;
        if !self.is_ready() {
            match self.fault {
                Some(fault) => self.refuse(request, fault, now, answers),
                None => self.queue(request, now, answers),
            }
        } else if let Some(until) = self.other_server_until.filter(|until| now < *until && sets_key) {
            let remaining = until.since(now);
            self.refuse(request, Cause::Quarantined { remaining }, now, answers);
        } else if let Some(cause) = self.denies_queues().filter(|_| request.action == Action::Stay) {
            self.refuse(request, cause, now, answers);
        } else if self.has_room_for(request) {
            self.send(request, wording, now, answers);
        } else {
            self.refuse(request, Cause::TooManyInFlight, now, answers);
        }
    }

    // Inputs.

    /// The requested connection is open and being encrypted.
    pub(crate) fn securing(&mut self, generation: u32) {
        if let State::Opening { securing, .. } = &mut self.state {
            *securing |= generation == self.generation;
        }
    }

    /// A fresh connection will replace this one, without losing requests.
    pub(crate) fn renew(&mut self, generation: u32, now: Instant, answers: &mut Answers) {
        if matches!(self.state, State::Ready) && generation == self.generation {
            self.state = State::Draining { since: now };
            self.renew_if_drained(now, answers);
        }
    }

    /// The requested connection is open, with this login for it.
    pub(crate) fn connected(&mut self, generation: u32, login: Option<Login>, now: Instant) {
        let State::Opening { since, .. } = self.state else { return };
        if generation != self.generation {
            return;
        }
        self.last_received = now;
        self.heard_at = now;
        self.served = false;
        if self.asks_sentinel() {
            self.inquire(since);
        } else if let Some(endpoint) = self.config.masters.get(self.id.index()) {
            let handshake = Handshake::begin(&self.config, endpoint, login, &mut self.outbound);
            self.dialect = handshake.dialect;
            self.state = State::Greeting { since, handshake: Box::new(handshake) };
        }
    }

    /// The connection ended, or could not be opened.
    pub(crate) fn closed(&mut self, generation: u32, cause: Cause, now: Instant, answers: &mut Answers) {
        if generation == self.generation && !matches!(self.state, State::Resting { .. }) {
            self.lose(cause, now, answers);
        }
    }

    /// Bytes came in.
    pub(crate) fn received(&mut self, generation: u32, bytes: &[u8], now: Instant, answers: &mut Answers) {
        if generation != self.generation
            || matches!(self.state, State::Resting { .. } | State::Opening { .. })
        {
            return;
        }
        self.last_received = now;
        let read = self.read(bytes, now, answers);
        if self.search.is_some() && self.follow(read.is_ok(), now, answers) {
            return;
        }
        match read {
            Ok(()) => {
                if !self.debts.is_empty() {
                    self.pay_debts(now, answers);
                }
                if matches!(self.state, State::Draining { .. }) {
                    self.renew_if_drained(now, answers);
                }
            }
            Err(cause) => self.lose(cause, now, answers),
        }
    }

    /// The time is `now`, and everything that the socket had at the instant `looked` has been
    /// received. Silence counts only until then: an answer may have come since.
    pub(crate) fn time_passed(&mut self, looked: Instant, now: Instant, answers: &mut Answers) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        match self.state {
            State::Resting { .. } => self.open(now),
            State::Opening { since, .. } | State::Asking { since, .. } | State::Greeting { since, .. } => {
                self.opening_takes_long(since, now, answers);
            }
            State::Ready | State::Draining { .. } => {
                let overdue = self.answers_deadline().filter(|deadline| *deadline <= looked);
                if overdue.is_some_and(|since| !self.looks_again(since, looked)) {
                    self.answers_take_long(looked, now, answers);
                }
                self.pay_debts(now, answers);
                self.ping_if_due(now);
            }
        }
    }

    // Outputs.

    pub(crate) fn has_task(&self) -> bool {
        !self.outbound.is_empty() || self.to_close.is_some() || self.to_open.is_some()
    }

    /// The next task for the driver. A write is for the present connection, or for the one that is
    /// closed next; its bytes are moved to `bytes`, and waiting for their answers begins at
    /// `written_at`, if given.
    #[inline]
    pub(crate) fn next_task(
        &mut self,
        bytes: &mut Vec<u8>,
        written_at: Option<Instant>,
    ) -> Option<DriverTask> {
        if !self.outbound.is_empty() {
            if let Some(at) = self.flight.unconfirmed {
                self.have_votes_confirmed(at);
            }
            bytes.clear();
            if bytes.capacity() > KEPT_OUTBOUND_BYTES {
                *bytes = Vec::new();
            }
            std::mem::swap(bytes, &mut self.outbound);
            self.flight.written(written_at);
            return Some(DriverTask::Write { generation: self.to_close.unwrap_or(self.generation) });
        }
        if let Some(generation) = self.to_close.take() {
            return Some(DriverTask::Close { generation });
        }
        let generation = self.to_open.take()?;
        Some(DriverTask::Open { generation, address: self.destination()? })
    }
}

impl fmt::Debug for Connection {
    /// Leaves out the buffers, the queues and the scripts: they contain passwords and tokens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("id", &self.id)
            .field("state", &self.state)
            .field("generation", &self.generation)
            .field("fault", &self.fault)
            .field("in_flight", &self.flight.requests())
            .field("queued", &self.queued.len())
            .field("owed", &self.debts.len())
            .finish_non_exhaustive()
    }
}
