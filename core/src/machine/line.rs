//! Locks of one machine that want the same resource: one line for each, first come, first served.
//!
//! Only the lock in front asks masters. When it lets go, the next one's request follows in the same write. Because nobody else can come between,
//! that is not done for ever: after a number of hand-overs, or a span of time, there is a pause in which other processes get
//! their turn. A caller who comes back at once for what he has just released counts as one who was handed it.
//!
//! Rules of this room: it knows who stands where and since when, not what a lock does.

use std::collections::BTreeMap;
use std::time::Duration;

use super::queue::{self, Queue};
use crate::jitter::Jitter;
use crate::lock::{Knowledge, Turn};
use crate::protocol::{Acquire, LockId, Resource};
use crate::time::Instant;

/// So many grants in a row stay in one process: while no other one is known to want the lock, and while one is.
const LONGEST_RUN: u32 = 32;
const LONGEST_RUN_AMONG_OTHERS: u32 = 4;
/// And for no longer than this.
const LONGEST_RUN_TIME: Duration = Duration::from_millis(100);
/// The least time that others get: that is how precise timers are.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// Up to this patience a process that comes back at once listens instead of sleeping. Patience is three quarters of the usual wait; timers
/// are late by up to 1.5 ms, which must be less than the quarter that is left. Larger means more requests, smaller an idle lock.
const LONGEST_LISTENING: Duration = Duration::from_micros(4_500);
/// With this many rivals a process sleeps, in sixty-fourths of a process. Beside one rival listening costs a request a turn and gains a
/// millisecond; beside more it would meet each of their turns, and some other process is listening anyway.
const MOST_RIVALS: u32 = 16;
/// What is known of rivals fades by this fraction with each turn that is slept through, so that a rival that has gone is noticed after some twenty
/// turns. Faster would mean more listening among many, slower an idle lock among two.
const RIVALS_FADE: u32 = 32;
/// For so long a line remembers whether others wanted its lock.
const REMEMBERED: Duration = Duration::from_secs(1);
/// After so many others at the least, and so many times as many as usual, one who waits insists.
const LETS_PASS: u32 = 16;
const LETS_PASS_OF_USUAL: u32 = 6;
/// So many lines in which nobody stands are kept before the old ones are looked for.
const KEPT: usize = 1024;

/// Where a lock stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// In no line: nobody waits for it.
    Outside,
    /// In front.
    Ahead { was_granted: bool },
    /// Behind others.
    Behind(queue::Place),
    /// It has let go.
    Gone,
}

/// Where a lock is to stand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Standing {
    Outside,
    Ahead(Turn),
    Behind(queue::Place),
    /// It would not wait.
    Refused {
        others: usize,
    },
}

impl Standing {
    pub(super) fn place(self) -> Place {
        match self {
            Self::Outside => Place::Outside,
            Self::Ahead(_) => Place::Ahead { was_granted: false },
            Self::Behind(place) => Place::Behind(place),
            Self::Refused { .. } => Place::Gone,
        }
    }
}

/// A lock in front has let go.
#[derive(Clone, Debug)]
pub(super) struct Freed {
    pub(super) resource: Resource,
    /// Since when it was held, if it was.
    pub(super) granted_at: Option<Instant>,
    /// When another process was last found to hold it.
    pub(super) met_others: Option<Instant>,
    /// How long the round took that granted it.
    pub(super) took: Duration,
    /// How long it was in front before that.
    pub(super) waited: Duration,
    /// How many others were met before that.
    pub(super) passed_over: u32,
    /// What it knew of the masters, if it was never granted.
    pub(super) knowledge: Option<Box<Knowledge>>,
}

/// Small, since every lock that is held has one.
#[derive(Clone, Debug)]
struct Line {
    ahead: Option<LockId>,
    /// Nothing before the first release, and as long as nobody else wants the lock.
    history: Option<Box<History>>,
}

/// What a line knows of those who had its lock here, and of those who want it, here and in other processes.
#[derive(Clone, Debug, Default)]
struct History {
    waiting: Queue,
    /// Grants in a row, and since when.
    run: u32,
    run_since: Instant,
    let_go_at: Option<Instant>,
    /// The end of the last pause: whoever comes to the front waits for it.
    not_before: Instant,
    took: Duration,
    was_handed: bool,
    /// After how long it is our turn again while others want the lock, on the average.
    wait: Duration,
    /// Whether the present turn began with listening.
    listened: bool,
    /// How many other processes beside the first took a turn before ours, on the average of turns that began with listening, in sixty-fourths.
    rivals: u32,
    /// How many others come before that, on the average, in sixteenths.
    passed_over: u32,
    /// When another process was last found to hold the lock.
    met_others: Option<Instant>,
}

/// Every line in which somebody stands, or did a short while ago.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    // In order, and without the system's random numbers that a `HashMap` begins with.
    by_resource: BTreeMap<Resource, Line>,
    tidy_at: usize,
    longest_patience: Duration,
}

impl Lines {
    /// Nobody lets others go first for longer than that: whoever was there before may be gone.
    pub(super) fn new(longest_patience: Duration) -> Self {
        Self { by_resource: BTreeMap::new(), tidy_at: KEPT, longest_patience }
    }

    /// Who is in front, if anybody is.
    pub(super) fn front(&self, resource: &[u8]) -> Option<LockId> {
        self.by_resource.get(resource)?.ahead
    }

    /// All who are in front.
    pub(super) fn fronts(&self) -> Vec<LockId> {
        self.by_resource.values().filter_map(|line| line.ahead).collect()
    }

    /// How many are ahead of a waiter: the one in front, and those that came before it.
    pub(super) fn ahead_of(&self, resource: &Resource, place: queue::Place) -> usize {
        1 + self.queue(resource).map_or(0, |queue| queue.ahead_of(place))
    }

    /// How many wait behind the one in front.
    pub(super) fn waiting(&self, resource: &Resource) -> usize {
        self.queue(resource).map_or(0, Queue::len)
    }

    fn queue(&self, resource: &Resource) -> Option<&Queue> {
        self.by_resource.get(resource)?.history.as_ref().map(|history| &history.waiting)
    }

    /// Puts a lock in front of a line in which nobody stands.
    ///
    /// # Errors
    /// Who is in front, if somebody is.
    pub(super) fn step_in(
        &mut self,
        wanted: &Acquire,
        id: LockId,
        jitter: &mut Jitter,
        now: Instant,
    ) -> Result<Turn, LockId> {
        let resource = &wanted.resource;
        if let Some(line) = self.by_resource.get_mut(resource) {
            if let Some(front) = line.ahead {
                return Err(front);
            }
            line.ahead = Some(id);
            // Who does not wait has no patience either.
            let history = line.history();
            return Ok(if wanted.is_single_try() { history.at_once() } else { history.step_in(jitter, now) });
        }
        if self.by_resource.len() >= self.tidy_at {
            self.by_resource.retain(|_, line| !line.is_forgotten(now));
            self.tidy_at = KEPT.max(2 * self.by_resource.len());
        }
        self.by_resource.insert(resource.clone(), Line { ahead: Some(id), history: None });
        Ok(History::default().at_once())
    }

    /// Puts a lock behind the others.
    pub(super) fn join(&mut self, resource: &Resource, id: LockId) -> Option<queue::Place> {
        Some(self.by_resource.get_mut(resource)?.history().waiting.push(id))
    }

    /// A lock that waited behind others has left. `moved` is told of each that has another place in the queue now.
    pub(super) fn leave(
        &mut self,
        resource: &Resource,
        place: queue::Place,
        moved: impl FnMut(LockId, queue::Place),
    ) {
        if let Some(line) = self.by_resource.get_mut(resource) {
            line.history().waiting.leave(place, moved);
        }
    }

    /// Nobody stands there after all.
    pub(super) fn leave_front(&mut self, resource: &Resource) {
        if let Some(line) = self.by_resource.get_mut(resource) {
            line.ahead = None;
        }
    }

    /// The lock that comes to the front, and how it begins. `moved` is told of each that has another place in the queue now.
    pub(super) fn advance(
        &mut self,
        freed: &Freed,
        moved: impl FnMut(LockId, queue::Place),
        jitter: &mut Jitter,
        now: Instant,
    ) -> Option<(LockId, Turn)> {
        let line = self.by_resource.get_mut(&freed.resource)?;
        line.ahead = None;
        // Where nobody was granted anything, nobody has met anybody and nobody waits, there is nothing to keep.
        if line.history.is_none() && freed.granted_at.is_none() && freed.met_others.is_none() {
            return None;
        }
        let history = line.history.get_or_insert_default();
        history.met_others = history.met_others.max(freed.met_others);
        if let Some(at) = freed.granted_at {
            history.let_go_at = Some(now);
            if history.run == 0 {
                history.run_since = at;
            }
            history.took = freed.took;
            if !history.was_handed {
                history.learn(freed, self.longest_patience);
            }
        }
        let next = history.waiting.pop(moved)?;
        line.ahead = Some(next);
        // Who failed has not kept anybody out.
        let turn = if freed.granted_at.is_some() {
            history.take_turn(LONGEST_RUN_AMONG_OTHERS, jitter, now)
        } else {
            history.come_anew(now)
        };
        Some((next, turn))
    }
}

impl Line {
    fn history(&mut self) -> &mut History {
        self.history.get_or_insert_default()
    }

    fn is_forgotten(&self, now: Instant) -> bool {
        let let_go_at = self.history.as_ref().and_then(|history| history.let_go_at);
        self.ahead.is_none() && let_go_at.is_none_or(|at| now.since(at) >= REMEMBERED)
    }
}

impl History {
    /// Whoever comes back for what was released a moment ago leaves others no more time than one who is handed it. Where no others are known, who
    /// has heard of his release before he comes back has left them as much as he has himself.
    fn step_in(&mut self, jitter: &mut Jitter, now: Instant) -> Turn {
        let away = self.let_go_at.map_or(Duration::MAX, |at| now.since(at));
        let a_moment = if self.is_contended(now) { 2 * self.least_pause() } else { self.took / 2 };
        if away <= a_moment {
            return self.take_turn(1, jitter, now);
        }
        (self.run, self.run_since) = (0, now);
        self.come_anew(now)
    }

    fn take_turn(&mut self, longest_among_others: u32, jitter: &mut Jitter, now: Instant) -> Turn {
        let longest = if self.is_contended(now) { longest_among_others } else { LONGEST_RUN };
        self.run += 1;
        if self.run < longest && now.since(self.run_since) < LONGEST_RUN_TIME {
            self.was_handed = true;
            return self.at_once();
        }
        let is_contended = self.is_contended(now);
        let pause = jitter.within(&(self.least_pause()..=2 * self.least_pause()));
        let patience = self.patience(now);
        let pause = pause.max(patience);
        let listens = is_contended && patience < LONGEST_LISTENING && self.rivals < MOST_RIVALS;
        if !listens {
            self.rivals -= self.rivals.div_ceil(RIVALS_FADE);
        }
        self.listened = listens;
        (self.run, self.run_since, self.not_before) = (0, now + pause, now + pause);
        self.was_handed = false;
        // Where nobody else is known, nobody is asked to tell of changes.
        Turn {
            pause: Some(pause),
            listens,
            is_wary: is_contended,
            patience: if listens { patience } else { Duration::ZERO },
            lets_pass: self.lets_pass(),
        }
    }

    fn come_anew(&mut self, now: Instant) -> Turn {
        self.was_handed = false;
        let patience = self.patience(now);
        let pause = Some(self.not_before.since(now)).filter(|pause| !pause.is_zero());
        Turn { pause, listens: false, is_wary: self.is_contended(now), patience, lets_pass: self.lets_pass() }
    }

    /// One long wait makes nobody wait for much longer.
    fn learn(&mut self, freed: &Freed, longest_patience: Duration) {
        let waited = freed.waited.min(4 * self.wait + freed.took);
        self.wait = ((3 * self.wait + waited) / 4).min(longest_patience);
        self.passed_over = (7 * self.passed_over + 16 * freed.passed_over.min(1 << 20)) / 8;
        if std::mem::take(&mut self.listened) {
            // More than two would only take longer to fade.
            self.rivals = (3 * self.rivals + 64 * freed.passed_over.min(2)) / 4;
        }
    }

    /// Three quarters of the time after which it is our turn again, by experience. Who has just come would only be in the way of those who
    /// have waited for longer; and where everybody does so they are served about in the order of their coming.
    fn patience(&self, now: Instant) -> Duration {
        if self.is_contended(now) { self.wait * 3 / 4 } else { Duration::ZERO }
    }

    fn at_once(&self) -> Turn {
        Turn { lets_pass: self.lets_pass(), ..Turn::AT_ONCE }
    }

    fn lets_pass(&self) -> u32 {
        LETS_PASS.max(self.passed_over * LETS_PASS_OF_USUAL / 16)
    }

    fn is_contended(&self, now: Instant) -> bool {
        self.met_others.is_some_and(|at| now.since(at) < REMEMBERED)
    }

    /// Long enough for somebody else to hear of the release and to ask.
    fn least_pause(&self) -> Duration {
        self.took.max(SHORTEST_PAUSE)
    }
}
