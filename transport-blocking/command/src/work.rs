//! What runs under the lock, and its end.

use std::time::{Duration, Instant};

use crate::child::Supervisor;
use crate::descendants::can_be_refused;
use crate::reports::Report;
use crate::waiting::{Changed, NAP};

/// How often the descendants are looked at for other users' processes, if there may be any: each is
/// reported within a second of its start. Smaller: more system calls.
const LOOKS_EACH: Duration = Duration::from_millis(500);

/// The pause between two attempts to kill what is left. What was started during one is found by the
/// next.
const KILLS_EACH: Duration = Duration::from_millis(5);

/// How long the attempts go on at least, even if the lock is over by then: time for the system to
/// end processes that are busy in it.
const KILLS_FOR: Duration = Duration::from_secs(1);

/// The command and what it started, with what is said about it.
pub(crate) struct Work<'a> {
    pub(crate) supervisor: Supervisor<'a, Changed>,
    pub(crate) report: Report<'a>,
    /// When other users' processes are looked for next, if there may be any.
    looks_at: Option<Instant>,
    kills: Option<Kills>,
}

/// All is being killed.
struct Kills {
    begun: Instant,
    /// When the next attempt is due.
    next: Instant,
}

impl<'a> Work<'a> {
    pub(crate) fn new(supervisor: Supervisor<'a, Changed>, report: Report<'a>) -> Self {
        Self { supervisor, report, looks_at: can_be_refused().then(Instant::now), kills: None }
    }

    /// Whether all is being killed.
    pub(crate) fn is_killing(&self) -> bool {
        self.kills.is_some()
    }

    /// Looks for what cannot be ended, if that is due. Returns how long until this or
    /// [`Work::kill`] has something to do.
    pub(crate) fn look(&mut self) -> Duration {
        let now = Instant::now();
        if self.looks_at.is_some_and(|due| now >= due) {
            self.looks_at = Some(now + LOOKS_EACH);
            self.report.refusing(&self.supervisor.refusing());
        }
        let kills_at = self.kills.as_ref().map(|kills| kills.next);
        let due = [self.looks_at, kills_at].into_iter().flatten().min();
        due.map_or(Duration::MAX, |due| due.saturating_duration_since(now))
    }

    /// Kills all, unless that has just been tried.
    pub(crate) fn kill(&mut self) {
        let now = Instant::now();
        if self.kills.as_ref().is_some_and(|kills| now < kills.next) {
            return;
        }
        let refused = self.supervisor.kill();
        let took = now.elapsed();
        let begun = match &self.kills {
            Some(kills) => kills.begun,
            None => {
                if !self.supervisor.has_ended() {
                    self.report.killed(self.supervisor.id(), &refused);
                }
                now
            }
        };
        self.report.refused(&refused);
        // What is left after a while refuses, or the system cannot end it.
        let pause = if now < begun + KILLS_FOR { KILLS_EACH.max(took) } else { NAP };
        self.kills = Some(Kills { begun, next: now + took + pause });
    }

    /// Kills all until nothing is left, or until `ends` has come and the attempts have gone on for
    /// long enough. Then this says what is left.
    pub(crate) fn end_rest(&mut self, ends: Instant) {
        let ends = ends.max(Instant::now() + KILLS_FOR);
        loop {
            self.kill();
            if self.supervisor.is_alone() {
                return;
            }
            let now = Instant::now();
            if now >= ends {
                return self.report.not_ended(&self.supervisor.living());
            }
            let next = self.kills.as_ref().map_or(now, |kills| kills.next);
            // A signal that comes now asks for nothing more.
            let _ = self.supervisor.wait_for_rest(Some(next.min(ends)));
        }
    }
}
