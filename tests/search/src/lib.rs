//! An exhaustive search of the shipped lock: every interleaving of clients, connections, masters
//! and clocks, for three masters.
//!
//! ```
//! use quorlock_search::{Scenario, Search};
//!
//! let scenario = Scenario { ttl: 3, losses: Some(0), ..Scenario::ALONE };
//! let report = Search::new(scenario).run(|_depth, _states| {});
//! assert!(report.complete && report.counterexample.is_none());
//! ```
//!
//! # What is the shipped code, and what is a model
//!
//! Locks are the shipped ones: every answer, command and deadline is an input of the code in
//! `lock`, whose reports are inputs of the bid in `waiting`, with the tally and the arithmetic of
//! `protocol`. The resulting orders and reports are the next steps. A lock is deterministic, so
//! each of its steps is run once and remembered. Connections are a model without bytes, which
//! handles one request at a time and follows `connection` function by function (`links.rs`).
//! Masters are a model of `SET NX PX` and of the scripts in `wire` (`scripts.rs`).
//!
//! Between any two steps, any other step may come: a request is executed, an answer arrives, a
//! connection ends or is given up, requests that were left behind on it are executed late, twice or
//! never, the next one opens or fails, a key expires, a master crashes, a timer fires in time or
//! late, a caller takes, extends, releases or gives up, and the clocks tick.
//!
//! # What is checked after every step
//!
//! The properties are the variants of [`Violation`]. The strongest one is that a valid guard has a
//! quorum of unexpired keys. The checker computes the quorum, the end of validity, and the guard
//! that the caller trusts, independently of the code under test.
//!
//! # Why the search is complete
//!
//! None of these simplifications loses a behaviour; some add behaviours. So a search that finds
//! nothing has not missed anything.
//!
//! - *Time* is counted in ticks of 2 ms, and any number of steps happen within one tick. With TTL =
//!   n ticks, TTL − drift lies a little before tick n − 1. So a guard is valid at ticks 0 to n − 2
//!   after its first send, and its keys may expire from tick n − 1 on: `early` is one tick, exactly
//!   as much as the drift allows. With two ticks there are two holders ([`Scenario::DRIFT`]).
//!   Clocks that differ are modelled as keys that end early or late by their client's clock, each
//!   key independently. Clients' clocks are never compared with each other, so a client's clock
//!   counts from its own beginning, and stops when nothing depends on it.
//! - *Timeouts* happen at any time, earlier or later than configured.
//! - *Tokens* are identified by their client and attempt, and rounds by their number within the
//!   lock.
//! - *A connection that is not ready* keeps requests until it is open or until they are refused,
//!   both at any time. A master that is known to be down refuses at once, which is the earliest
//!   case of the second.
//! - *With unbounded loss*, a connection on which nothing is on its way may have ended, so it
//!   counts as opening.
//! - *Requests that were left behind* on a connection keep their order there; between connections
//!   there is no order. A release that was left behind twice may be executed any number of times.
//!   If a token can never be on a master again, its releases and extensions there are forgotten.
//! - *A client that has ended* receives its answers at once, without effect. This loses only
//!   further releases of a token that is no longer used, on connections that ended before an answer
//!   came.
//! - *A client that will never hold the lock again* is examined separately. In the state of the
//!   other client, it becomes absent: on each master where its key is or may still arrive, it may
//!   refuse the other client at any time. In another state it runs alone to its end, while the
//!   other client may refuse it on every master at any time. This depends on one fact, which is
//!   checked at every executed request: no request touches a key with another token. Counters are
//!   changed by all clients' requests, so if grants are numbered, no client is examined separately.
//!   For the same reason a scenario with one client `alone` among such others covers any number of
//!   clients: a client with a quorum of keys that no other touches excludes all of them.
//! - *Names*: masters may be exchanged, and clients that are alike. The representative is the
//!   smallest of all renamings; a lock is renamed by repeating its inputs. [`Report::named`] counts
//!   the states with names, and a search [without symmetry](Search::without_symmetry) must find the
//!   same number.
//! - *Fingerprints* of 64 bits represent states: see [`Report::states`].
//!
//! # What it leaves out
//!
//! Waiting without a queue on the masters: notifications, a first master, and precedence. Every
//! attempt asks all masters at once here, and the next comes when its timer fires; what attempts
//! send, undo and count is the shipped code. Simulated worlds cover waiting.
//!
//! # Numbers, without any assumption about time
//!
//! In an asynchronous scenario a key may vanish at any time, a request of an attempt that is over
//! may be executed at any later time, an acquisition may be refused, and an answer may never come.
//! Counters survive. Nothing is said about validity there, and only the numbers of grants are
//! checked: no two are the same, and one that was decided before another's first send is smaller.
//! None of these simplifications loses a behaviour; some add behaviours:
//!
//! - *Clocks* do not advance, so a grant never comes too late. A grant that came too late would not
//!   be reported. A reported grant has the same effect on the masters, and stricter conditions.
//! - *Releases* are not sent. A key that was released is one that vanishes, and the result of a
//!   release is only reported.
//! - *A lock that was granted* and is not to be extended is left at once; its client starts again
//!   if it requests more than one.
//! - *Requests of attempts that are over* count as left behind on their own connections.
//!   Their answers are lost.
//! - *A key of an attempt that is over*, with no request of it on its way, is removed: it could
//!   only cause refusals, which may happen anyway.
//! - *A connection that is lost* is followed by the next one at once.
//! - *Numbers that were granted* are forgotten once no later grant is compared with them.
//!
//! # Several resources, and shared ones
//!
//! A claim is of up to three resources, each written or read. [`Aim`] says what two clients must
//! not hold at once, independently of the code under test.
//!
//! - *Keys of one batch* end independently of each other within the drift, although a script gives
//!   them one expiry.
//! - *Entries* of sharers end independently of each other. The key with the sentinel ends with the
//!   entry that lives longest, or outlives it within the drift.
//! - *Entries that have ended* are gone at once. A script refuses if it finds its own entry
//!   expired; here it continues.
//! - *A crowd* is any number of readers: one arrives and the last one leaves at any time, and the
//!   key lives while one is there. Readers affect each other only through the key, so a reader and
//!   a writer beside a crowd cover any number of readers.
//! - *A downgrade* changes the holder's own view at once. Requests on their way keep the form in
//!   which they were sent.
//! - *Numbers*: a writer's number is larger than every number granted before its first send. A
//!   reader's number is at least as large as every such writer's.
//! - *Three clients* are never examined separately.
//! - *Permits*: the seats are the resources, and the first master assigns them to all clients.
//!   Clients are not examined separately, and masters are not exchanged. Two valid guards must not
//!   have the same seat, and no more guards may be valid than there are seats.
//!
//! A [`Flaw`] breaks the masters, or a caller, so that tests can show that the search finds it.
//!
//! # Masters that lose their keys
//!
//! Without quarantine this is outside the assumptions. With it, a master refuses acquisitions after
//! its crash for the longest life of any key, or a little less, because clocks may differ. It
//! accepts keys that are restored. It counts as holding a guard's keys, because it gives no vote.
//!
//! # Failovers
//! Two separate searches go through every order of replication, promotions and requests in a group
//! of a primary with replicas. [`Failover`] has two whole machines, from the bytes up, and model
//! servers that execute those bytes. [`Group`] is a model alone, smaller, and so goes further.
//!
//! # Fair waiting
//!
//! [`Fair`] searches shipped locks with their bids and models of the masters' queues, with timers
//! and notifications in any order. It also checks the order, and that no waiter is stuck.
//!
//! # What it does not cover
//!
//! Bytes and how they are split; answers that are errors, and scripts that must be sent again; full
//! pipelines; one server behind two addresses; want marks, groups, windows of several seats, and
//! entries that are lost while their key stays; other numbers of masters than three; more than two
//! attempts; TTLs of more than a few ticks. Pauses and renewals happen at only one of the instants
//! that their spread allows. The table of what was searched is in `tests/PROOFS.md`.

mod actions;
mod book;
mod canon;
mod client;
mod failover;
mod fair;
mod group;
mod input;
mod item;
mod kinds;
mod links;
mod masters;
mod named;
mod places;
mod properties;
mod row;
mod scenario;
mod scripts;
mod state;
mod story;
mod tidy;
mod visited;
mod world;

use std::fmt;

use self::actions::enabled;
use self::canon::{Canon, Symmetry};
pub use self::failover::{Failover, FailoverReport};
pub use self::fair::{Fair, FairFlaw, FairReport, FairViolation};
pub use self::group::{Group, GroupFlaw, GroupReport};
pub use self::properties::Violation;
pub use self::scenario::{Aim, Flaw, Scenario};
use self::state::State;
use self::story::Story;
use self::visited::{Origins, Seen, fingerprint};
use self::world::World;

/// A search that has not run yet.
#[derive(Clone, Debug)]
#[must_use = "a search does nothing until `run`"]
pub struct Search {
    scenario: Scenario,
    states: usize,
    symmetry: Symmetry,
}

/// The result of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Different visited states, one for each class of states that differ only in names. They are
    /// distinguished by fingerprints of 64 bits. The probability that any two of n states have the
    /// same fingerprint is below n²/2⁶⁵, which is 3 in a million for ten million states.
    pub states: usize,
    /// How many states they represent, with every master and every client distinguished by name.
    pub named: u64,
    /// Steps between them.
    pub steps: u64,
    /// How many steps the furthest state is away from the beginning.
    pub depth: usize,
    /// Whether every state was visited.
    pub complete: bool,
    /// How many states of a single lock were visited.
    pub locks: usize,
    /// How many steps of the shipped lock were run, each once.
    pub lock_steps: usize,
    /// The shortest path to a violation, if there is one.
    pub counterexample: Option<Counterexample>,
}

/// The shortest path to a violation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counterexample {
    violation: Violation,
    steps: usize,
    story: Story,
}

impl Counterexample {
    /// The violated property.
    pub fn violation(&self) -> Violation {
        self.violation
    }

    /// How many steps it takes.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// As a Mermaid sequence diagram.
    pub fn as_mermaid(&self) -> String {
        self.story.as_mermaid()
    }
}

/// As a timeline: one line for each event, with the time, the actor and a text.
impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.story.as_text(&self.violation))
    }
}

impl Search {
    /// A search of this scenario, without a bound.
    pub fn new(scenario: Scenario) -> Self {
        // One master assigns the permits: for a lock without a machine that is always the first.
        let symmetry = Symmetry { masters: !scenario.permits, clients: scenario.clients_are_alike() };
        Self { scenario, states: usize::MAX, symmetry }
    }

    /// Ends the search when `bound` states have been visited.
    pub fn states(mut self, bound: usize) -> Self {
        self.states = bound;
        self
    }

    /// Distinguishes masters and clients by name. The same states are then visited once for each
    /// naming.
    pub fn without_symmetry(mut self) -> Self {
        self.symmetry = Symmetry { masters: false, clients: false };
        self
    }

    /// Goes through the states, nearest first, until there are none left, a violation is found, or
    /// the bound is reached.
    ///
    /// `progress` is called occasionally with the depth and the number of states so far.
    pub fn run(&self, mut progress: impl FnMut(usize, usize)) -> Report {
        let mut world = World::new(&self.scenario);
        let mut canon = Canon::default();
        let (mut seen, mut origins) = (Seen::new(), Origins::new());
        let mut actions = Vec::new();
        let initial = world.initial();
        let shape = initial.shape;
        let mut level = Level::default();
        let bytes = canon.bytes(&initial, self.symmetry, &mut world.book);
        seen.insert(fingerprint(bytes));
        level.push(bytes);
        let (mut found, mut named) = (None, canon.names(self.symmetry));
        let (mut steps, mut depth, mut number) = (0u64, 0, 0u32);
        let (mut complete, mut after) = (true, initial);
        'search: while level.len() > 0 {
            let mut next = Level::default();
            for bytes in level.iter() {
                let state = State::read(bytes, shape);
                enabled(&state, &self.scenario, &world.book, &mut actions);
                for (ordinal, action) in (0u8..).step_by(2).zip(actions.iter().copied()) {
                    steps += 1;
                    if let Err(violation) = world.step(&state, action, &mut after) {
                        let mut path = origins.steps_to(number);
                        path.push(ordinal);
                        found = Some((path, violation));
                        complete = false;
                        depth += 1;
                        break 'search;
                    }
                    let alone = world.part(&mut after);
                    for (ordinal, part) in (ordinal..).zip(std::iter::once(&after).chain(&alone)) {
                        let bytes = canon.bytes(part, self.symmetry, &mut world.book);
                        if seen.insert(fingerprint(bytes)) {
                            origins.push(number, ordinal);
                            next.push(bytes);
                            named += canon.names(self.symmetry);
                        }
                    }
                }
                if origins.len() >= self.states {
                    complete = false;
                    break 'search;
                }
                number += 1;
            }
            if next.len() > 0 {
                depth += 1;
            }
            progress(depth, origins.len());
            level = next;
        }
        let (locks, lock_steps, states) = (world.book.locks(), world.book.steps(), origins.len());
        let counterexample =
            found.map(|(path, violation)| self.retell(&mut world, &mut canon, &path, violation));
        Report { states, named, steps, depth, complete, locks, lock_steps, counterexample }
    }

    /// Repeats the path with the names that the parties had at the beginning.
    fn retell(
        &self,
        world: &mut World,
        canon: &mut Canon,
        path: &[u8],
        violation: Violation,
    ) -> Counterexample {
        let mut actions = Vec::new();
        // The states on the way, each as the representative that the search visited.
        let mut marks = Vec::new();
        let mut state = world.initial();
        for &ordinal in path {
            let bytes = canon.bytes(&state, self.symmetry, &mut world.book);
            let representative = State::read(bytes, state.shape);
            enabled(&representative, &self.scenario, &world.book, &mut actions);
            let Some(&action) = actions.get(usize::from(ordinal / 2)) else { break };
            // The last step is the violation.
            if world.step(&representative, action, &mut state).is_ok() {
                let alone = world.part(&mut state);
                state = alone.filter(|_| ordinal % 2 == 1).unwrap_or(state);
            }
            marks.push(canon.bytes(&state, self.symmetry, &mut world.book).to_vec());
        }
        world.story.listen();
        let mut state = world.initial();
        let mut after = state;
        for mark in &marks {
            enabled(&state, &self.scenario, &world.book, &mut actions);
            for &action in &actions {
                let (lines, tick) = (world.story.mark(), world.story.ticks());
                let done = world.step(&state, action, &mut after);
                let alone = done.is_ok().then(|| world.part(&mut after)).flatten();
                let mut parts = std::iter::once(after).chain(alone);
                let is_meant =
                    |part: &State| canon.bytes(part, self.symmetry, &mut world.book) == mark.as_slice();
                if let Some(part) = parts.find(is_meant) {
                    state = part;
                    break;
                }
                world.story.back_to(lines, tick);
            }
        }
        Counterexample { violation, steps: path.len(), story: world.story.stop() }
    }
}

/// The states of one depth as bytes, one after the other.
#[derive(Default)]
struct Level {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Level {
    fn push(&mut self, state: &[u8]) {
        self.bytes.extend_from_slice(state);
        self.ends.push(self.bytes.len());
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| self.bytes.get(start..end).unwrap_or_default())
    }
}
