//! One connection between a client and a master, as the network sees it.

use std::collections::{BTreeSet, VecDeque};

use super::clock::TrueTime;
use super::securing::Sides;
use crate::master::{Command, Session};

/// A connection's number in the world.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct LinkId(pub(super) usize);

/// Messages that a stopped master has not read yet.
#[derive(Clone, Debug)]
pub(super) enum Unread {
    Bytes(Vec<u8>),
    End,
}

/// One connection. Its two ends close at different times, and commands may be executed after the
/// client has closed its end.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) client: usize,
    /// The server at its other end.
    pub(super) master: usize,
    pub(super) generation: u32,
    /// The connection as the master sees it.
    pub(super) session: Session,
    /// The channel, if the connection is encrypted.
    pub(super) sides: Option<Box<Sides>>,
    /// The bytes that the client has sent, for the observer.
    pub(super) sent: Session,
    pub(super) client_end_open: bool,
    pub(super) master_end_open: bool,
    /// Everything on it vanishes.
    pub(super) forgotten: bool,
    /// When the last bytes on their way arrive: later ones do not overtake them.
    pub(super) last_up: TrueTime,
    pub(super) last_down: TrueTime,
    pub(super) unread: Vec<Unread>,
    /// A `WAIT` that has no answer yet. Nothing after it is executed.
    pub(super) waiting: Option<Command>,
    /// How many `WAIT`s there have been.
    pub(super) waits: u64,
    /// The socket has not accepted all bytes, so it may be closed.
    pub(super) is_full: bool,
    /// Tokens whose releases were sent on it and have not been executed.
    pub(super) parting: BTreeSet<Vec<u8>>,
    /// The timeline's entries for commands that were sent and not executed,
    pub(super) unexecuted: VecDeque<usize>,
    /// and for executed commands, with the number of bytes after which the answer is known.
    pub(super) unheard: VecDeque<(usize, usize)>,
    /// How many bytes the master has sent, and how many have arrived.
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

/// The network path between a client and a master, for all their connections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    /// Nothing arrives before this.
    pub(super) blocked_until: TrueTime,
    /// Nothing from the master arrives before this.
    pub(super) mute_until: TrueTime,
    /// The client's sockets accept no bytes before this.
    pub(super) clogged_until: TrueTime,
    /// No connection can be opened before this: the client's system refuses at once.
    pub(super) unreachable_until: TrueTime,
    pub(super) slow_until: TrueTime,
    /// The additional delay until then, in nanoseconds.
    pub(super) slowness: u64,
}
