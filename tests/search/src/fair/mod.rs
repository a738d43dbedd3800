//! Fair waiting by the shipped code: locks that are waited for in one queue (`lock/queueing.rs`,
//! `waiting/fair.rs`), connections between them and the masters, and models of the queues.
//!
//! A waiter here is a lock with its bid, and each of its steps is the shipped code's. A master is a
//! model of the scripts of the queue (`wire/script/queue.rs`); a test compares it with the model of
//! a whole server. The search covers every order of:
//!
//! - *Requests and answers*, each connection in order, with any delay.
//! - *The release of the first holder*, on each master separately, and the releases of waiters that
//!   were granted the lock.
//! - *Timers*: a round that is lost is closed at any time. If waiters are `patient`, a place is
//!   renewed once a quorum has answered; otherwise at any time.
//! - *Notifications*: a master notifies a waiter of its turn at any time while it is first.
//! - *Waiters that die or give up*, connections that end or are given up, with requests that are
//!   executed late or never, and masters that forget the largest number, each as often as the
//!   scenario allows.
//! - *Places that are not renewed*: a place ends at any time once its waiter has left it or is
//!   gone, and so does a lock that its waiter does not know any more. If `lapses` is set, so does
//!   the place of a holder.
//!
//! # What is checked
//!
//! - *Exclusion*: no two waiters hold the lock.
//! - *Order*: a waiter whose number is settled is not passed over by one that drew its place
//!   afterwards. There are two exceptions: a waiter without a place, and a waiter that gave up a
//!   connection on which its place was requested, because a master may have forgotten that place.
//! - *Never stuck*: whenever nothing is under way and only the first holder has the lock, it
//!   releases the lock, and one of the waiters must get it. This must hold with all masters, and
//!   while any one is down if the others are a quorum. From that state on, notifications are lost,
//!   messages take no time, and timers fire when they are due. The shipped code runs under these
//!   conditions until a waiter is granted the lock.
//!
//! # Simplifications that lose no behaviour
//!
//! - *A grant is taken at once*, and a lock that is released is over: its waiter gets no further
//!   inputs.
//! - *A connection that ends* is followed by the next one at once.
//! - *Places that are renewed do not end*: the order is promised only for such places.
//! - *Masters may be exchanged*, as in the other searches. Waiters are distinguished, because the
//!   bytes of two places with the same number decide their order: here the place of the first
//!   waiter is before the second's.
//! - *What a master does* happens directly before the step that depends on it: the arrival of its
//!   answer, or another step on that master. No other step can tell whether it happened earlier.
//! - *Attempts*: a step by which a waiter would make more attempts than the scenario allows is not
//!   taken. In the state before that step, all waiters must be served as well.

mod book;
mod canon;
mod item;
mod onward;
mod queue;
#[cfg(test)]
mod queue_tests;
mod state;
mod steps;
mod world;

use std::fmt;

use self::canon::Canon;
use self::state::{MASTERS, State, WAITERS};
use self::steps::Step;
use self::world::{Next, World};
use crate::Level;
use crate::visited::{Seen, fingerprint};

/// The scenario of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fair {
    /// How many masters there are, up to three.
    pub masters: usize,
    /// How many waiters there are, up to three.
    pub waiters: usize,
    /// The largest number that each master had given before the first holder came.
    pub numbers: [u8; MASTERS],
    /// On which masters the first holder has the lock and its place, a bit for each.
    pub held: u8,
    /// Which masters each waiter reaches, a bit for each.
    pub reach: [u8; WAITERS],
    /// How many attempts each waiter makes.
    pub attempts: [u8; WAITERS],
    /// How often each waiter renews its place, or tries again without one, because its timer fires.
    pub renewals: u8,
    /// Whether places are renewed in time.
    pub patient: bool,
    /// Whether the place of a holder may end before its release, as it does after a second.
    pub lapses: bool,
    /// How many waiters die.
    pub deaths: u8,
    /// How many waiters give up.
    pub cancels: u8,
    /// How many connections end.
    pub losses: u8,
    /// How often a master forgets the largest number.
    pub forgets: u8,
    /// A fault that the search must find.
    pub flaw: Option<FairFlaw>,
    /// Whether masters are distinguished by name. Then the same states are visited several times.
    pub named: bool,
    /// The largest number of states.
    pub bound: usize,
}

/// A fault of the masters, which a search must find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FairFlaw {
    /// Each master keeps its waiters in the order of their arrival there.
    ByArrival,
    /// A grant removes the place from the queue.
    GrantRemovesPlace,
    /// The undo of a lost attempt removes the place from the queue.
    UndoRemovesPlace,
    /// A new place gets the number after the largest that a master remembers, even while other
    /// waiters have larger ones.
    NumbersBeginAnew,
}

/// A violation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FairViolation {
    /// Two waiters hold the lock.
    TwoHolders,
    /// A waiter whose number was settled was passed by one that came afterwards.
    Overtaken,
    /// The lock is free, and no waiter gets it.
    Stuck {
        /// The master that is down from here on.
        down: Option<usize>,
    },
}

/// The result of a search of fair waiting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FairReport {
    /// How many different states were visited. Those that differ only in the names of masters count
    /// once. They are distinguished by 64 bits, as in [`Report::states`](crate::Report::states).
    pub states: usize,
    /// How many states they represent with every master distinguished, if all are alike at the
    /// beginning.
    pub named: u64,
    /// How many steps the furthest state is away from the beginning.
    pub depth: usize,
    /// Whether every state was visited.
    pub complete: bool,
    /// How many states of a waiter there were.
    pub waiters: usize,
    /// From how many states the waiters were run on until a grant.
    pub ends: u64,
    /// The violation, if one was found.
    pub violation: Option<FairViolation>,
    /// The shortest path to it, a line for each step.
    pub story: Vec<String>,
}

impl fmt::Display for FairViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoHolders => f.write_str("two waiters hold the lock"),
            Self::Overtaken => f.write_str("a waiter was passed by one that came after it"),
            Self::Stuck { down: None } => f.write_str("no waiter gets the lock any more"),
            Self::Stuck { down: Some(master) } => {
                write!(f, "no waiter gets the lock any more while m{master} is down")
            }
        }
    }
}

impl Fair {
    /// Two waiters and a holder, on three masters.
    pub const PAIR: Self = Self {
        masters: 3,
        waiters: 2,
        numbers: [0; MASTERS],
        held: 0b111,
        reach: [0b111; WAITERS],
        attempts: [1; WAITERS],
        renewals: 0,
        patient: true,
        lapses: false,
        deaths: 0,
        cancels: 0,
        losses: 0,
        forgets: 0,
        flaw: None,
        named: false,
        bound: usize::MAX,
    };

    /// Goes through every state, nearest first, until a violation is found or the bound is reached.
    ///
    /// `progress` is called occasionally with the depth and the number of states so far.
    pub fn search(&self, mut progress: impl FnMut(usize, usize)) -> FairReport {
        let mut world = World::new(self);
        let mut canon = Canon::default();
        // How each state was first reached: from which state, and by which of its steps.
        let (mut seen, mut origins) = (Seen::new(), vec![(0u32, 0u16)]);
        let initial = world.initial();
        let shape = initial.shape;
        let mut level = Level::default();
        let bytes = canon.bytes(&initial, !self.named, &mut world.book);
        seen.insert(fingerprint(bytes));
        level.push(bytes);
        let mut found = None;
        // States with further steps that are not searched.
        let (mut cut_off, mut ends) = (Seen::new(), 0);
        let mut named = canon.names(self.masters, !self.named);
        let (mut depth, mut number, mut complete) = (0, 0u32, true);
        'search: while level.len() > 0 {
            let mut next = Level::default();
            for bytes in level.iter() {
                let state = State::read(bytes, shape);
                let mut ordinal = 0u16;
                let stuck = world.stuck(&state, false, &mut ends);
                let mut violation = stuck.map(|violation| (None, violation));
                world.each_next(&state, &mut |world, _, it| {
                    let after = match it {
                        _ if violation.is_some() => return false,
                        Next::State(after) => after,
                        Next::Violation(found) => {
                            violation = Some((Some(ordinal), found));
                            return false;
                        }
                        Next::CutOff(before) => {
                            let bytes = canon.bytes(before, !self.named, &mut world.book);
                            if cut_off.insert(fingerprint(bytes)) {
                                let stuck = world.stuck(before, true, &mut ends);
                                violation = stuck.map(|found| (Some(ordinal), found));
                            }
                            ordinal += 1;
                            return violation.is_none();
                        }
                    };
                    let bytes = canon.bytes(after, !self.named, &mut world.book);
                    if seen.insert(fingerprint(bytes)) {
                        origins.push((number, ordinal));
                        next.push(bytes);
                        named += canon.names(self.masters, !self.named);
                    }
                    ordinal += 1;
                    true
                });
                if let Some((ordinal, violation)) = violation {
                    let mut path = way_to(&origins, number);
                    path.extend(ordinal);
                    found = Some((path, violation));
                    break 'search;
                }
                if origins.len() >= self.bound {
                    complete = false;
                    break 'search;
                }
                number += 1;
            }
            depth += usize::from(next.len() > 0);
            progress(depth, origins.len());
            level = next;
        }
        let story = found.as_ref().map_or_else(Vec::new, |(path, violation)| {
            let mut story = self.retell(&mut world, &mut canon, path);
            story.push(violation.to_string());
            story
        });
        FairReport {
            states: origins.len(),
            named,
            depth,
            complete: complete && found.is_none(),
            waiters: world.book.len(),
            ends,
            violation: found.map(|(_, violation)| violation),
            story,
        }
    }

    /// Repeats the path with the names that the masters had at the beginning.
    fn retell(&self, world: &mut World, canon: &mut Canon, path: &[u16]) -> Vec<String> {
        let mut story = Vec::new();
        let mut state = world.initial();
        let mut ghost = state;
        for ordinal in path {
            // In the representative that the search has visited, the masters have other names.
            let bytes = canon.bytes(&ghost, !self.named, &mut world.book);
            ghost = State::read(bytes, ghost.shape);
            let (mut left, mut mark) = (*ordinal, None);
            world.each_next(&ghost.clone(), &mut |world, _, it| {
                if left > 0 {
                    left -= 1;
                    return true;
                }
                if let Next::State(after) = it {
                    ghost = *after;
                    mark = Some(canon.bytes(after, !self.named, &mut world.book).to_vec());
                }
                false
            });
            world.each_next(&state.clone(), &mut |world, steps, it| {
                let is_meant = match it {
                    Next::State(after) => mark.as_ref().is_some_and(|mark| {
                        state = *after;
                        canon.bytes(after, !self.named, &mut world.book) == mark
                    }),
                    Next::Violation(_) => mark.is_none(),
                    Next::CutOff(before) => mark.is_none() && world.stuck(before, true, &mut 0).is_some(),
                };
                if is_meant {
                    story.extend(steps.iter().map(Step::to_string));
                }
                !is_meant
            });
        }
        story
    }
}

/// The steps that lead from the first state to this one.
fn way_to(origins: &[(u32, u16)], state: u32) -> Vec<u16> {
    let (mut ways, mut at) = (Vec::new(), state);
    while let Some(&(before, way)) = origins.get(at as usize).filter(|_| at > 0) {
        ways.push(way);
        at = before;
    }
    ways.reverse();
    ways
}

impl World {
    /// Whether the waiters are stuck in this state. `is_cut_off` says that it has further steps
    /// that are not searched.
    fn stuck(&self, state: &State, is_cut_off: bool, ends: &mut u64) -> Option<FairViolation> {
        let masters = (0..self.fair.masters).map(Some);
        for down in std::iter::once(None).chain(masters) {
            let is_end = is_cut_off || Self::is_idle(state, down);
            if is_end && self.is_to_get_on(state, down) {
                if !self.gets_on(state, down) {
                    return Some(FairViolation::Stuck { down });
                }
                *ends += 1;
            }
        }
        None
    }
}
