//! Pace: how many grants stay in this process, how long it pauses then, and how patient it is while
//! others want the lock, too.

use std::time::Duration;

use crate::jitter::Jitter;
use crate::lock::Grant;
use crate::time::Instant;

/// Consecutive grants in this process while no other one is known to want the lock. Larger lets a
/// new contender wait for longer, smaller costs this process more pauses.
const LONGEST_RUN: u32 = 32;
/// The same while another process is known to want the lock: fewer would cost both a change of
/// processes more often, more would let the other wait.
const LONGEST_RUN_AMONG_OTHERS: u32 = 4;
/// The longest such run: where each holder takes long, a number of grants alone would keep others
/// out for that many times as long. A tenth of a second is what people do not notice. Longer would
/// let others wait for longer, shorter costs holders of some milliseconds more pauses.
const LONGEST_RUN_TIME: Duration = Duration::from_millis(100);
/// The shortest pause for others, which is how precise timers are: a shorter one would not be kept.
/// Longer leaves the lock idle where nobody else wants it.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// Up to this patience a process that comes back at once listens instead of sleeping. Patience is
/// three quarters of the usual wait; timers are late by up to 1.5 ms, which must be less than the
/// quarter that is left. Larger means more requests, smaller an idle lock.
const LONGEST_LISTENING: Duration = Duration::from_micros(4_500);
/// What a count of one rival is in [`Pace::rivals`]: averages of whole numbers need a finer unit.
const ONE_RIVAL: u32 = 64;
/// With this many rivals beside the first a process sleeps: a quarter of one, on the average.
/// Beside one rival listening costs a request a turn and gains a millisecond; beside more it would
/// meet each of their turns, and some other process is listening anyway. With a larger number many
/// processes would listen, with a smaller one a third process that looks in now and then would end
/// the listening of two.
const MOST_RIVALS: u32 = ONE_RIVAL / 4;
/// The most rivals that one turn tells of. More would only take longer to fade.
const MOST_RIVALS_TOLD: u32 = 2;
/// One in this many turns that begin with listening lets a third process come first. Without it a
/// process that listens wins each race against a third one that is told at the same time, and never
/// learns of it: turns go A, B, A, C forever. A smaller number costs two processes more requests,
/// a larger one keeps such an order for longer.
const YIELDS: u64 = 16;
/// The same for turns that begin with a pause. Where each process waits for as long as it is used
/// to, the same ones win each race: of four processes, whose turns go A, B, C, A, B, D, two have a
/// third each. A larger number keeps such an order for longer; with 1 the same ones win again. It
/// costs half a request a turn.
const YIELDS_BEHIND_A_PAUSE: u64 = 2;
/// Up to this patience pauses are planned shorter by what timers are late. Among four processes
/// whose turns take 1.3 ms an unlucky one waits for five turns, is patient for three quarters of
/// that, and would be later still. Larger has some of eight processes, which are patient for 6.5
/// ms, come earlier than others; smaller keeps unlucky ones of four unlucky.
const LATENESS_MATTERS: Duration = Duration::from_micros(5_250);
/// What is known of rivals fades by this fraction (1/n) with each turn that is slept through, so
/// that a rival that has gone is noticed after some twenty turns. Faster would mean more listening
/// among many, slower an idle lock among two.
const RIVALS_FADE: u32 = 32;
/// How long a process remembers that others wanted the lock. Longer keeps what it knows of
/// resources that nobody uses any more, shorter begins anew among processes that take turns.
pub(super) const REMEMBERED: Duration = Duration::from_secs(1);
/// How many other holders a waiter lets pass at the least until it insists. Fewer would split the
/// votes of those that take turns, more would have an unlucky client wait for longer.
pub(super) const LETS_PASS: u32 = 16;
/// And how many times as many as usual, if that is more: where many take turns, many others in
/// between are no bad luck. A larger number has an unlucky client wait for longer, a smaller one
/// makes clients insist that only wait for their turn, and split the votes.
const LETS_PASS_OF_USUAL: u32 = 6;
/// For how long one that waits for a permit lets others pass while no usual wait is known: some
/// turns of holders of milliseconds. Longer has a client that comes for the first time wait for
/// longer, with a shorter one permits are idle more often until the one comes whose turn it is.
const LETS_PASS_AT_FIRST: Duration = Duration::from_millis(30);
/// What a count of one other holder is in [`Pace::passed_over`]: averages of whole numbers need a
/// finer unit.
const ONE_PASSED_OVER: u32 = 16;
/// The most other holders that one turn tells of: far more than there are, and small enough for
/// averages in 32 bits.
const MOST_PASSED_OVER: u32 = 1 << 20;

/// How far a lock in front lets others pass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct LetsPass {
    /// After how many other holders it insists.
    pub(super) holders: u32,
    /// For how long. Of a permit, which has several holders at once.
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
    /// How long others get their turn first.
    pub(super) pause: Option<Duration>,
    /// Whether it listens for the others' turn during the pause.
    pub(super) listens: bool,
    /// Whether it lets a third process come first when its rival has had its turn.
    pub(super) yields: bool,
    /// Whether others are expected to want it too.
    pub(super) is_wary: bool,
    /// How long after it came to the front it lets others go first whenever the lock becomes free.
    pub(super) patience: Duration,
}

impl Start {
    /// How a lock begins to which both apply, for different resources.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            pause: self.pause.max(other.pause),
            listens: self.listens && other.listens,
            yields: self.yields && other.yields,
            is_wary: self.is_wary || other.is_wary,
            patience: self.patience.max(other.patience),
        }
    }

    /// Whether it asks at once, and expects no others.
    pub(crate) fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// What a process knows of those that had a lock here, and of those that want it, here and in other
/// processes.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Pace {
    /// Grants in a row, and since when.
    run: u32,
    run_since: Instant,
    let_go_at: Option<Instant>,
    /// The end of the last pause: a lock that comes to the front waits for it.
    not_before: Instant,
    /// How long the round took that was won last.
    took: Duration,
    was_handed: bool,
    /// After how long it is our turn again while others want the lock, on the average.
    wait: Duration,
    /// Whether the present turn began with listening.
    listened: bool,
    /// How many other processes beside the first took a turn before ours, on the average of turns
    /// that began with listening, in parts of [`ONE_RIVAL`].
    rivals: u32,
    /// How many others come before that, on the average, in parts of [`ONE_PASSED_OVER`].
    passed_over: u32,
    /// When another process was last found to hold the lock.
    met_others: Option<Instant>,
    /// How late timers end pauses, on the average.
    late: Duration,
}

impl Pace {
    /// The lock in front has found that another process holds the lock.
    pub(super) fn met_others(&mut self, at: Option<Instant>) {
        self.met_others = self.met_others.max(at);
    }

    /// A pause has ended, so much too late. Timers of whole milliseconds, as tokio's, would have a
    /// process sleep through its turn where turns are as short, and so be more patient from turn to
    /// turn: short pauses are planned shorter by what timers are late.
    pub(super) fn woke(&mut self, late: Option<Duration>) {
        if let Some(late) = late {
            // One long delay says nothing of the next.
            self.late = (3 * self.late + late.min(SHORTEST_PAUSE)) / 4;
        }
    }

    /// A lock that was granted here has been let go. `waited` is for how long it had been in front,
    /// and `passed_over` how many others it had met. Nobody lets others go first for longer than
    /// `longest_patience`: those that were there before may be gone.
    pub(super) fn let_go(
        &mut self,
        grant: Grant,
        waited: Duration,
        passed_over: u32,
        longest_patience: Duration,
        now: Instant,
    ) {
        self.let_go_at = Some(now);
        if self.run == 0 {
            self.run_since = grant.at;
        }
        self.took = grant.at.since(grant.asked_at);
        if self.was_handed {
            return;
        }
        // Moving averages: a new value counts for a quarter, so that some four turns tell of a
        // change, and for an eighth where single turns say little. One long wait makes nobody wait
        // for much longer: it counts for at most four times the usual.
        let waited = waited.min(4 * self.wait + self.took);
        self.wait = ((3 * self.wait + waited) / 4).min(longest_patience);
        self.passed_over = (7 * self.passed_over + ONE_PASSED_OVER * passed_over.min(MOST_PASSED_OVER)) / 8;
        if std::mem::take(&mut self.listened) {
            self.rivals = (3 * self.rivals + ONE_RIVAL * passed_over.min(MOST_RIVALS_TOLD)) / 4;
        }
    }

    pub(super) fn is_forgotten(&self, now: Instant) -> bool {
        self.let_go_at.is_none_or(|at| now.since(at) >= REMEMBERED)
    }

    /// A caller that comes back for what was released a moment ago leaves others no more time than
    /// one that is handed it. Where no others are known, one that has heard of its release before
    /// it comes back has left them as much as it has itself.
    pub(super) fn come(&mut self, jitter: &mut Jitter, now: Instant) -> Start {
        let away = self.let_go_at.map_or(Duration::MAX, |at| now.since(at));
        let a_moment = if self.is_contended(now) { 2 * self.least_pause() } else { self.took / 2 };
        if away <= a_moment {
            return self.take_turn(1, jitter, now);
        }
        (self.run, self.run_since) = (0, now);
        self.come_anew(now)
    }

    /// The next lock is handed what another of this process has let go.
    pub(super) fn hand_over(&mut self, jitter: &mut Jitter, now: Instant) -> Start {
        self.take_turn(LONGEST_RUN_AMONG_OTHERS, jitter, now)
    }

    fn take_turn(&mut self, longest_among_others: u32, jitter: &mut Jitter, now: Instant) -> Start {
        let is_contended = self.is_contended(now);
        let longest = if is_contended { longest_among_others } else { LONGEST_RUN };
        self.run += 1;
        if self.run < longest && now.since(self.run_since) < LONGEST_RUN_TIME {
            self.was_handed = true;
            return Start::default();
        }
        let pause = jitter.within(&(self.least_pause()..=2 * self.least_pause()));
        let patience = self.patience(now);
        let is_short = patience < LONGEST_LISTENING;
        let earlier = if patience < LATENESS_MATTERS { self.late } else { Duration::ZERO };
        let pause = pause.max(patience).saturating_sub(earlier);
        let listens = is_contended && is_short && self.rivals < MOST_RIVALS;
        if !listens {
            self.rivals -= self.rivals.div_ceil(RIVALS_FADE);
        }
        self.listened = listens;
        (self.run, self.run_since, self.not_before) = (0, now + pause, now + pause);
        self.was_handed = false;
        let one_in = if listens { YIELDS } else { YIELDS_BEHIND_A_PAUSE };
        let yields = is_contended && jitter.next() % one_in == 0;
        // Where nobody else is known, nobody is asked to tell of changes.
        let patience = if listens { patience } else { Duration::ZERO };
        Start { pause: Some(pause), listens, yields, is_wary: is_contended, patience }
    }

    /// A lock comes to the front behind one that was never granted, or after a while in which
    /// nobody here wanted it.
    pub(super) fn come_anew(&mut self, now: Instant) -> Start {
        self.was_handed = false;
        let pause = Some(self.not_before.since(now)).filter(|pause| !pause.is_zero());
        let (is_wary, patience) = (self.is_contended(now), self.patience(now));
        Start { pause, is_wary, patience, ..Start::default() }
    }

    /// Three quarters of the time after which it is our turn again, by experience. A client that
    /// has just come would only be in the way of those that have waited for longer; and where all
    /// do so they are served about in the order of their coming.
    fn patience(&self, now: Instant) -> Duration {
        if self.is_contended(now) { self.usual_patience() } else { Duration::ZERO }
    }

    fn usual_patience(&self) -> Duration {
        self.wait * 3 / 4
    }

    /// When a lock in front does not let others pass any more. For a permit that is when its
    /// patience is over: one whose usual wait is longer than that of others has waited for longer
    /// than they have by then, and so comes before them and waits for less the next time.
    pub(super) fn lets_pass(&self) -> LetsPass {
        let holders = LETS_PASS.max(self.passed_over * LETS_PASS_OF_USUAL / ONE_PASSED_OVER);
        let time = if self.wait.is_zero() { LETS_PASS_AT_FIRST } else { self.usual_patience() };
        LetsPass { holders, time }
    }

    fn is_contended(&self, now: Instant) -> bool {
        self.met_others.is_some_and(|at| now.since(at) < REMEMBERED)
    }

    /// Long enough for another process to hear of the release and to ask.
    fn least_pause(&self) -> Duration {
        self.took.max(SHORTEST_PAUSE)
    }
}
