//! Failovers of one group, by the shipped code: two whole machines with their connections, and
//! models of servers that execute the bytes.
//!
//! A client here is a [`Machine`](quorlock_core::Machine) with its lock, its connection, and
//! `connection/confirming.rs`. A server is a [`Master`](quorlock_sim::Master), which a test
//! compares with real servers. The group is a primary and a replica. The search covers every order
//! of:
//!
//! - *Requests* of the clients, each to the server that it is connected to, which changes at any
//!   time.
//! - *Replication*: a write reaches the replica at any time, and the primary reads the replica's
//!   acknowledgement at any time, also after the replica was promoted. The end of the link is read
//!   last. Until then the primary counts it as a replica with a recent acknowledgement.
//! - *Waits* (`WAIT`): each ends when the replica has confirmed, or at any time without a
//!   confirmation.
//! - *A promotion* at any time while the primary continues, and the former primary's change of
//!   sides.
//! - *Ticks* of half a TTL, up to the horizon. Simplifications that lose no behaviour:
//!
//! - *A request* is executed when it is sent, and answered at once: validity counts from there, so
//!   anything later only shortens it. If the answer does not arrive, the connection ends.
//! - *A greeting* is one step: none of its requests is a vote.
//! - *Notifications of keys* are lost. No client waits for another one here.
//!
//! Two machines count as the same only if they had the same inputs, so a state may be counted
//! several times. A scenario bounds what each client may do.

mod client;
mod servers;
mod state;

use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use self::client::{Book, Input};
use self::state::State;

/// The scenario of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failover {
    /// The `replicas=` of clients; zero is the restart guard alone.
    pub declared: u8,
    /// How often each client requests the lock.
    pub attempts: [u8; CLIENTS],
    /// How often each client extends it.
    pub extensions: [u8; CLIENTS],
    /// How often each client opens a connection.
    pub moves: [u8; CLIENTS],
    /// How often a server that was promoted is followed by its former primary.
    pub changes: u8,
    /// The last tick.
    pub horizon: u8,
    /// By how many milliseconds the replica's clock is ahead.
    pub ahead: u16,
    /// Whether a quarantine begins with the first request, and not when the replicas are complete.
    pub early_quarantine: bool,
    /// The largest number of states.
    pub bound: usize,
}

/// The result of a search of failovers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailoverReport {
    /// How many different states were visited. They are distinguished by 128 bits.
    pub states: usize,
    /// How many steps the furthest state is away from the beginning.
    pub depth: usize,
    /// Whether every state was visited.
    pub complete: bool,
    /// How many states of a machine there were.
    pub machines: usize,
    /// Whether each client holds the lock in some state.
    pub holders: [bool; CLIENTS],
    /// The shortest path to two holders, a line for each step, if there is one.
    pub two_holders: Option<Vec<String>>,
}

/// Clients in the world.
const CLIENTS: usize = 2;
/// Servers of the group, of which the first one is the primary at the beginning.
const SERVERS: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Move {
        client: usize,
        server: usize,
    },
    Ask {
        client: usize,
    },
    Extend {
        client: usize,
    },
    /// A wait ends.
    Answer {
        client: usize,
    },
    Apply {
        server: usize,
    },
    Hear {
        server: usize,
    },
    Drop {
        server: usize,
    },
    Promote {
        server: usize,
    },
    Follow {
        server: usize,
    },
    Tick,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Move { client, server } => write!(f, "c{client} connects to s{server}"),
            Self::Ask { client } => write!(f, "c{client} asks for the lock"),
            Self::Extend { client } => write!(f, "c{client} asks for an extension"),
            Self::Answer { client } => write!(f, "c{client} hears how many replicas have confirmed"),
            Self::Apply { server } => write!(f, "the replica of s{server} applies a write"),
            Self::Hear { server } => write!(f, "s{server} reads what its replica acknowledged"),
            Self::Drop { server } => write!(f, "s{server} reads the end of its replica"),
            Self::Promote { server } => write!(f, "s{server} is promoted"),
            Self::Follow { server } => write!(f, "s{server} follows the other one"),
            Self::Tick => f.write_str("half a TTL passes"),
        }
    }
}

/// A visited state: the one before, and the step that led here.
type Origin = Option<(usize, Step)>;

impl Failover {
    /// Goes through every state, nearest first, until two clients hold the lock at once or the
    /// bound is reached.
    pub fn search(&self) -> FailoverReport {
        let mut book = Book::new(self.declared);
        let first = State::new(self);
        let mut seen = HashSet::from([fingerprint(&first)]);
        let mut origins: Vec<Origin> = vec![None];
        let mut level = vec![(0, first)];
        let (mut depth, mut complete, mut two_holders) = (0, true, None);
        let mut holders = [false; CLIENTS];
        'search: while !level.is_empty() {
            let mut next_level = Vec::new();
            for (number, state) in level {
                for step in state.steps(self, &book) {
                    let mut next = state.clone();
                    next.take(step, &mut book);
                    if !seen.insert(fingerprint(&next)) {
                        continue;
                    }
                    origins.push(Some((number, step)));
                    for (has_held, seat) in holders.iter_mut().zip(&next.clients) {
                        *has_held |= book.holds(seat.node);
                    }
                    if next.clients.iter().all(|seat| book.holds(seat.node)) {
                        two_holders = Some(story(&origins));
                        (depth, complete) = (depth + 1, false);
                        break 'search;
                    }
                    next_level.push((origins.len() - 1, next));
                }
                if origins.len() >= self.bound {
                    complete = false;
                    break 'search;
                }
            }
            depth += usize::from(!next_level.is_empty());
            level = next_level;
        }
        FailoverReport { states: origins.len(), depth, complete, machines: book.len(), holders, two_holders }
    }
}

/// 128 bits that represent a value.
fn fingerprint(value: &impl Hash) -> [u64; 2] {
    [0u8, 1].map(|salt| {
        let mut hasher = DefaultHasher::new();
        (salt, value).hash(&mut hasher);
        hasher.finish()
    })
}

/// The steps that lead to the last state.
fn story(origins: &[Origin]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut place = origins.len() - 1;
    while let Some(Some((before, step))) = origins.get(place) {
        lines.push(step.to_string());
        place = *before;
    }
    lines.reverse();
    lines
}
