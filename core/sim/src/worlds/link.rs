//! One connection between a client and a master, as the network sees it.

use std::collections::{BTreeSet, VecDeque};

use super::clock::TrueTime;
use super::securing::Sides;
use crate::master::{Command, Session};

/// A connection's number in the world.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct LinkId(pub(super) usize);

/// What a stopped master has not looked at yet.
#[derive(Clone, Debug)]
pub(super) enum Unread {
    Bytes(Vec<u8>),
    End,
}

/// One connection. Its two ends close at different times, and what the client has sent may be
/// executed after it has closed its own.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) client: usize,
    /// The server at its other end.
    pub(super) master: usize,
    pub(super) generation: u32,
    /// The connection as the master sees it.
    pub(super) session: Session,
    /// Where the connection is encrypted.
    pub(super) sides: Option<Box<Sides>>,
    /// What the client has sent, for the observer to read along.
    pub(super) sent: Session,
    pub(super) client_end_open: bool,
    pub(super) master_end_open: bool,
    /// Whatever is on it vanishes.
    pub(super) forgotten: bool,
    /// When the last bytes arrive that are on their way: later ones do not overtake them.
    pub(super) last_up: TrueTime,
    pub(super) last_down: TrueTime,
    pub(super) unread: Vec<Unread>,
    /// A `WAIT` that has no answer yet. Nothing behind it is executed.
    pub(super) waiting: Option<Command>,
    /// How many there have been.
    pub(super) waits: u64,
    /// The socket has not taken all that was to be written; so it may be closed.
    pub(super) is_full: bool,
    /// Tokens whose releases were sent on it and have not been executed.
    pub(super) parting: BTreeSet<Vec<u8>>,
    /// Where the timeline has what was sent and not executed,
    pub(super) unexecuted: VecDeque<usize>,
    /// and what was executed, with how many bytes must have come before its answer is known.
    pub(super) unheard: VecDeque<(usize, usize)>,
    /// How many bytes the master has sent, and how many have come.
    pub(super) said: usize,
    pub(super) heard: usize,
}

impl Link {
    pub(super) fn new(client: usize, master: usize, generation: u32, sides: Option<Box<Sides>>) -> Self {
        Self {
            client,
            master,
            generation,
            session: Session::new(),
            sides,
            sent: Session::new(),
            client_end_open: true,
            master_end_open: false,
            forgotten: false,
            last_up: 0,
            last_down: 0,
            unread: Vec::new(),
            waiting: None,
            waits: 0,
            is_full: false,
            parting: BTreeSet::new(),
            unexecuted: VecDeque::new(),
            unheard: VecDeque::new(),
            said: 0,
            heard: 0,
        }
    }
}

/// The way between a client and a master, whatever the connections on it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    /// Nothing arrives before this.
    pub(super) blocked_until: TrueTime,
    /// Nothing from the master arrives before this.
    pub(super) mute_until: TrueTime,
    /// Nothing more is taken by the client's sockets before this.
    pub(super) clogged_until: TrueTime,
    /// No connection is opened before this: the client's system says so at once.
    pub(super) unreachable_until: TrueTime,
    pub(super) slow_until: TrueTime,
    /// How much longer everything takes until then, in nanoseconds.
    pub(super) slowness: u64,
}
