//! Pace: how many grants stay in this process, how long it then pauses, and how patient it is while
//! others also want the lock.

use std::time::Duration;

use crate::jitter::Jitter;
use crate::lock::Grant;
use crate::time::Instant;

/// Consecutive grants in this process while no other one is known to want the lock. Larger: a new
/// contender waits longer. Smaller: this process pauses more often.
const LONGEST_RUN: u32 = 32;
/// The same while another process is known to want the lock. Smaller: more changes between
/// processes, which cost both. Larger: the other waits longer.
const LONGEST_RUN_AMONG_OTHERS: u32 = 4;
/// How many pauses in a row a process makes for a rival that it only knows from a master's refusal,
/// and does not meet. After them the key on that master counts as a leftover, for example of a
/// client that died. Larger: beside a leftover, a lone process pauses more often. Smaller: a rival
/// that loses this many races in a row waits for a run of [`LONGEST_RUN`].
const MOST_UNUSED_PAUSES: u32 = 8;
/// The longest such run in time: with long holds, the number of grants alone would keep others out
/// for too long. People do not notice a tenth of a second. Larger: others wait longer. Smaller:
/// holders of a few milliseconds pause more often.
const LONGEST_RUN_TIME: Duration = Duration::from_millis(100);
/// The shortest pause for others: the precision of timers, which could not keep a shorter one.
/// Larger: the lock is idle if no other process wants it.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// Up to this patience a process that returns at once listens instead of sleeping. Patience is
/// three quarters of the usual wait; timers are late by up to 1.5 ms, which must be less than the
/// remaining quarter. Larger: more requests. Smaller: an idle lock.
const LONGEST_LISTENING: Duration = Duration::from_micros(4_500);
/// The value of one rival in [`Pace::rivals`]: averages of whole numbers need a finer unit.
const ONE_RIVAL: u32 = 64;
/// From this number of additional rivals on a process sleeps: a quarter of one. With a single
/// rival, listening costs one request per turn and gains a millisecond; with more it would meet
/// each of their turns, and another process is listening anyway. Larger: many processes listen.
/// Smaller: an occasional third process ends the listening of two for longer.
const MOST_RIVALS: u32 = ONE_RIVAL / 4;
/// The maximum number of rivals that one turn counts. More would only take longer to fade.
const MOST_RIVALS_TOLD: u32 = 2;
/// One in this many turns that begin with listening lets a third process go first. Without it a
/// listening process wins each race against a third one that is notified at the same time, and
/// never learns of it: turns go A, B, A, C forever. Smaller: more requests for two processes.
/// Larger: such an order lasts longer.
const YIELDS: u64 = 16;
/// The same for turns that begin with a pause. If each process waits for its usual time, the same
/// ones win each race: of four processes with the turns A, B, C, A, B, D, two get a third each.
/// Larger: such an order lasts longer; with 1 the same ones win again. It costs a third of a
/// request per turn.
const YIELDS_BEHIND_A_PAUSE: u64 = 3;
/// A process that sleeps does so for this part of its usual wait, in percent. Smaller: more
/// processes are awake at the same time, the lucky ones too, and the same ones win each race.
/// Larger: the lock is idle if a wait is shorter than usual.
const SLEEPS_FOR: u32 = 85;
/// In one of this many turns a process sleeps for less. Otherwise an unfair order lasts: with the
/// turns A, B, A, C among three, B and C are used to two turns of A and one of the other, and are
/// not awake when A takes its second one. Smaller: more requests, and lucky ones among many.
/// Larger: such an order lasts longer.
const RETURNS_EARLY: u64 = 6;
/// Only up to a usual wait of this many of its own turns: among many such orders do not last.
/// Larger: lucky ones among many. Smaller: such an order lasts among few.
const RETURNS_EARLY_WITHIN: u32 = 6;
/// The part of its usual sleep, in percent. With [`SLEEPS_FOR`] it is less than two thirds of the
/// wait, so that C is awake before the second turn of A. Smaller: more requests.
const EARLY: u32 = 75;
/// The count of rivals fades by this fraction (1/n) with each turn of sleeping, so that a rival's
/// end is noticed after about twenty turns. Smaller (faster): more listening among many. Larger
/// (slower): an idle lock among two.
const RIVALS_FADE: u32 = 16;
/// How long a process remembers that others wanted the lock. Larger: keeps memory for unused
/// resources. Smaller: starts from scratch among processes that take turns.
pub(super) const REMEMBERED: Duration = Duration::from_secs(1);
/// The minimum number of other holders that a waiter lets go first before it insists. Smaller:
/// splits the votes of clients that take turns. Larger: an unlucky client waits longer.
pub(super) const LETS_PASS: u32 = 16;
/// The same as a multiple of the usual number, if that is more: among many clients, many others in
/// between are normal. Larger: an unlucky client waits longer. Smaller: clients that only wait for
/// their turn insist, and split the votes.
const LETS_PASS_OF_USUAL: u32 = 6;
/// How long a waiter for a permit lets others go first while no usual wait is known: some turns of
/// holders of milliseconds. Larger: a new client waits longer. Smaller: permits are more often idle
/// until the next waiter in turn takes them.
const LETS_PASS_AT_FIRST: Duration = Duration::from_millis(30);
/// The value of one other holder in [`Pace::passed_over`]: averages of whole numbers need a finer
/// unit.
const ONE_PASSED_OVER: u32 = 16;
/// The maximum number of other holders that one turn counts: far more than exist, and small enough
/// for averages in 32 bits.
const MOST_PASSED_OVER: u32 = 1 << 20;

/// How long, or for how many turns, a lock in front lets others go first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct LetsPass {
    /// The number of other holders after which it insists.
    pub(super) holders: u32,
    /// The time after which it insists, for a permit, which has several holders at once.
    pub(super) time: Duration,
}

impl Default for LetsPass {
    fn default() -> Self {
        Pace::default().lets_pass()
    }
}

/// How a lock in front begins.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Start {
    /// How long others get their turn before it.
    pub(super) pause: Option<Duration>,
    /// Whether it listens for the others' turn during the pause.
    pub(super) listens: bool,
    /// Whether it lets a third process go first when its rival has had its turn.
    pub(super) yields: bool,
    /// Whether others are expected to want it, too.
    pub(super) is_wary: bool,
    /// How long after it came to the front it lets others go first when the lock becomes free.
    pub(super) patience: Duration,
    /// The number of readers of this process beside which it waits.
    pub(super) readers_beside: usize,
}

impl Start {
    /// The start beside this many readers, if there are any: at once, and only to set a mark. Other
    /// processes get their turn when the readers have left.
    pub(crate) fn beside(self, readers: usize) -> Self {
        if readers == 0 {
            return self;
        }
        Self { is_wary: true, readers_beside: readers, ..Self::default() }
    }

    /// The start of a waiter that takes its turn in the masters' queues.
    pub(crate) fn of_queue(self) -> Self {
        Self::default().beside(self.readers_beside)
    }

    /// Combines the starts of one lock for different resources. It listens for none of them.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            pause: self.pause.max(other.pause),
            is_wary: self.is_wary || other.is_wary,
            patience: self.patience.max(other.patience),
            ..Self::default()
        }
    }

    /// Whether it asks at once, and expects no rivals.
    pub(crate) fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// What a process knows about past holders of a lock in it, and about contenders here and in other
/// processes.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Pace {
    /// Consecutive grants here, and their beginning.
    run: u32,
    run_since: Instant,
    let_go_at: Option<Instant>,
    /// The end of the last pause: a lock that comes to the front waits for it.
    not_before: Instant,
    /// How long the last won round took, as far as it says something about the next one.
    took: Duration,
    /// How long the last turn took, from the request to the release.
    turn: Duration,
    was_handed: bool,
    /// The average time until our next turn while others want the lock.
    wait: Duration,
    /// Whether the present turn began with listening.
    listened: bool,
    /// The number of additional rivals that took a turn before ours, over turns that began with
    /// listening: it rises at once and falls as an average, in units of 1/[`ONE_RIVAL`].
    rivals: u32,
    /// The average number of other holders before our turn, in units of 1/[`ONE_PASSED_OVER`].
    passed_over: u32,
    /// When another process was last found to hold the lock.
    met_others: Option<Instant>,
    /// When a lock that was granted here, but refused by a master, was last let go.
    refused_at: Option<Instant>,
    /// The pauses for that rival since another process was last met.
    unused_pauses: u32,
    /// The average lateness of timers that end pauses.
    late: Duration,
}

impl Pace {
    /// The lock in front has found that another process holds the lock.
    pub(super) fn met_others(&mut self, at: Option<Instant>) {
        if at > self.met_others {
            (self.met_others, self.unused_pauses) = (at, 0);
        }
    }

    /// A pause has ended, `late` by this much. With timers of whole milliseconds, such as tokio's,
    /// a process would sleep through its turn if turns are as short, and so become more patient
    /// from turn to turn: pauses are planned shorter by the usual lateness.
    pub(super) fn woke(&mut self, late: Option<Duration>) {
        if let Some(late) = late {
            // One long delay does not predict the next.
            self.late = (3 * self.late + late.min(SHORTEST_PAUSE)) / 4;
        }
    }

    /// A lock that was granted here has ended. `waited` is how long it had been in front, and
    /// `passed_over` how many other holders it had met. No lock lets others go first for longer
    /// than `longest_patience`: they may be gone.
    pub(super) fn let_go(
        &mut self,
        grant: Grant,
        waited: Duration,
        passed_over: u32,
        longest_patience: Duration,
        now: Instant,
    ) {
        self.let_go_at = Some(now);
        if grant.was_refused {
            if !is_remembered(self.refused_at, now) {
                self.unused_pauses = 0;
            }
            self.refused_at = Some(now);
        }
        if self.run == 0 {
            self.run_since = grant.at;
        }
        // A process that was stopped meanwhile would take that time for its masters'.
        self.took = grant.at.since(grant.asked_at).min(longest_patience);
        self.turn = now.since(grant.asked_at);
        if self.was_handed {
            return;
        }
        // Moving averages: a new value counts for a quarter, so that a change shows after about
        // four turns, and for an eighth where single turns say little. A single long wait counts
        // for at most four times the usual one.
        let waited = waited.min(4 * self.wait + self.took);
        self.wait = ((3 * self.wait + waited) / 4).min(longest_patience);
        self.passed_over = (7 * self.passed_over + ONE_PASSED_OVER * passed_over.min(MOST_PASSED_OVER)) / 8;
        if std::mem::take(&mut self.listened) {
            // More rivals than expected count at once. A process that listens wins the race against
            // each of them and rarely meets one, so an average would hardly rise.
            let met = ONE_RIVAL * passed_over.min(MOST_RIVALS_TOLD);
            self.rivals = met.max((3 * self.rivals + met) / 4);
        }
    }

    pub(super) fn is_forgotten(&self, now: Instant) -> bool {
        self.let_go_at.is_none_or(|at| now.since(at) >= REMEMBERED)
    }

    /// A caller that returns for a lock released a moment ago leaves others no more time than one
    /// that gets it handed over in this process. Without known rivals, a caller that returns after
    /// its release was confirmed has left others the same chance as itself.
    pub(super) fn come(&mut self, jitter: &mut Jitter, now: Instant) -> Start {
        let away = self.let_go_at.map_or(Duration::MAX, |at| now.since(at));
        let a_moment = if self.has_rival(now) { 2 * self.least_pause() } else { self.took / 2 };
        if away <= a_moment {
            return self.take_turn(1, jitter, now);
        }
        (self.run, self.run_since) = (0, now);
        self.come_anew(now)
    }

    /// The next lock gets what another of this process has released.
    pub(super) fn hand_over(&mut self, jitter: &mut Jitter, now: Instant) -> Start {
        self.take_turn(LONGEST_RUN_AMONG_OTHERS, jitter, now)
    }

    fn take_turn(&mut self, longest_among_others: u32, jitter: &mut Jitter, now: Instant) -> Start {
        let (is_contended, has_rival) = (self.is_contended(now), self.has_rival(now));
        let longest = if has_rival { longest_among_others } else { LONGEST_RUN };
        self.run += 1;
        if self.run < longest && now.since(self.run_since) < LONGEST_RUN_TIME {
            self.was_handed = true;
            return Start::default();
        }
        let patience = self.patience(now);
        let listens = is_contended && patience < LONGEST_LISTENING && self.rivals < MOST_RIVALS;
        let others_turn = if listens || !is_contended { patience } else { self.sleep(jitter) };
        if !listens {
            self.rivals -= self.rivals.div_ceil(RIVALS_FADE);
        }
        let pause = jitter.within(&(self.least_pause()..=2 * self.least_pause()));
        let pause = pause.max(others_turn).saturating_sub(self.late);
        self.unused_pauses += u32::from(has_rival && !is_contended);
        self.listened = listens;
        (self.run, self.run_since, self.not_before) = (0, now + pause, now + pause);
        self.was_handed = false;
        let one_in = if listens { YIELDS } else { YIELDS_BEHIND_A_PAUSE };
        let yields = is_contended && jitter.next() % one_in == 0;
        // Without known rivals, no notifications are requested.
        let patience = if listens { patience } else { Duration::ZERO };
        Start { pause: Some(pause), listens, yields, is_wary: is_contended, patience, readers_beside: 0 }
    }

    /// How long to sleep while others have their turns.
    fn sleep(&self, jitter: &mut Jitter) -> Duration {
        let usual = self.wait * SLEEPS_FOR / 100;
        let is_among_few = self.wait < RETURNS_EARLY_WITHIN * self.turn;
        if is_among_few && jitter.next() % RETURNS_EARLY == 0 { usual * EARLY / 100 } else { usual }
    }

    /// A lock comes to the front after one that was never granted, or after a time in which this
    /// process did not want it.
    pub(super) fn come_anew(&mut self, now: Instant) -> Start {
        self.was_handed = false;
        let pause = Some(self.not_before.since(now)).filter(|pause| !pause.is_zero());
        let (is_wary, patience) = (self.is_contended(now), self.patience(now));
        Start { pause, is_wary, patience, ..Start::default() }
    }

    /// Three quarters of the usual time until our next turn. A new client would only get in the way
    /// of those that have waited longer; if all clients do so, they are served roughly in the order
    /// of arrival.
    fn patience(&self, now: Instant) -> Duration {
        if self.is_contended(now) { self.usual_patience() } else { Duration::ZERO }
    }

    fn usual_patience(&self) -> Duration {
        self.wait * 3 / 4
    }

    /// When a lock in front stops letting others go first. A waiter for a permit stops after three
    /// quarters of its usual wait: from then on, a refused request leaves a mark with the time at
    /// which its wait began, and the earliest mark wins. A client whose usual wait is longer leaves
    /// its mark later, but with an earlier beginning. So it comes before the others, and its usual
    /// wait becomes shorter.
    pub(super) fn lets_pass(&self) -> LetsPass {
        let holders = LETS_PASS.max(self.passed_over * LETS_PASS_OF_USUAL / ONE_PASSED_OVER);
        let time = if self.wait.is_zero() { LETS_PASS_AT_FIRST } else { self.usual_patience() };
        LetsPass { holders, time }
    }

    /// Whether another process is known to want the lock. A rival that only a refusal tells of may
    /// not wait any more, so this process leaves it a turn, but neither listens nor sleeps for it.
    fn has_rival(&self, now: Instant) -> bool {
        let is_refused = is_remembered(self.refused_at, now) && self.unused_pauses < MOST_UNUSED_PAUSES;
        self.is_contended(now) || is_refused
    }

    /// Whether this process has met another one.
    fn is_contended(&self, now: Instant) -> bool {
        is_remembered(self.met_others, now)
    }

    /// Long enough for another process to learn of the release and to ask.
    fn least_pause(&self) -> Duration {
        self.took.max(SHORTEST_PAUSE)
    }
}

fn is_remembered(at: Option<Instant>, now: Instant) -> bool {
    at.is_some_and(|at| now.since(at) < REMEMBERED)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const LONGEST_PATIENCE: Duration = Duration::from_millis(150);

    proptest! {
        /// A process may be stopped at any time, so any span may be of any length.
        #[test]
        fn no_pause_is_longer_than_twice_the_longest_patience(
            turns in vec(((0u64..5_000_000, 0u64..5_000_000, 0u64..5_000), any::<[bool; 4]>(), 0u32..50), 1..80),
            seed: u64,
        ) {
            let (mut pace, mut jitter) = (Pace::default(), Jitter::new(seed));
            let mut now = Instant::ORIGIN;
            for ((round, held, away), [is_refused, met, was_late, returns], passed_over) in turns {
                let [round, held, away] = [round, held, away].map(Duration::from_micros);
                let asked_at = now;
                let at = asked_at + round;
                now = at + held;
                pace.met_others(met.then_some(asked_at));
                pace.woke(was_late.then_some(round));
                let grant = Grant { asked_at, at, was_refused: is_refused };
                pace.let_go(grant, now.since(asked_at), passed_over, LONGEST_PATIENCE, now);
                now = now + away;
                let start = if returns { pace.come(&mut jitter, now) } else { pace.hand_over(&mut jitter, now) };
                let pause = start.pause.unwrap_or_default();
                prop_assert!(pause <= 2 * LONGEST_PATIENCE, "{pause:?}");
                prop_assert!(start.patience <= LONGEST_PATIENCE);
            }
        }
    }
}
