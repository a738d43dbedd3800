//! A lock as `run` and `acquire` see it, and waiting for it.
//!
//! They use only [`Lock`] and [`Hold`], so that their behaviour can be tested without masters.

use std::task::Poll;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGCHLD, SIGINT, SIGTSTP};

use crate::arguments::Seek;
use crate::child::Ending;
use crate::ending::{Finish, Refusal};
use crate::output::{JsonValue, Level, Output};
use crate::printer;
use crate::reaping::reap_orphans;
use crate::signals::{self, Happening, Signals};
use crate::subject::Subject;
use crate::terminal::{self, Terminal};

/// How often a wait checks whether a quorum of masters can vote. Smaller: masters that are only
/// being restarted are reported. Larger: a wrong address stays unnoticed for longer.
const LOOKS_EACH: Duration = Duration::from_secs(5);
/// How often a missing quorum is reported again. Smaller: long logs. Larger: a log's last lines may
/// not have it.
const REPORTS_EACH: Duration = Duration::from_secs(60);

/// The longest sleep while the lock is held. [`Instant`] does not count the time in which the
/// machine is suspended, so no single sleep may be long: after a resume the lock's own clock must
/// be read soon.
pub(crate) const NAP: Duration = Duration::from_secs(1);

/// The message of the lock's threads to the deciding thread: something has changed, check again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Changed;

/// A lock that is being acquired.
pub(crate) trait Lock {
    /// The type of the held lock.
    type Hold: Hold;

    /// Checks whether it is acquired, without blocking. Whenever another check is worthwhile,
    /// [`Changed`] is sent. Not called again after it was ready.
    fn poll(&mut self) -> Poll<Result<Self::Hold, Refusal>>;

    /// Why the lock cannot be acquired at present, if too few masters can vote.
    fn obstacle(&self) -> Option<String> {
        None
    }

    /// Gives up, or has got no lock: leaves no key behind on masters that answer soon.
    fn give_up(self);
}

/// A lock that is held.
pub(crate) trait Hold {
    /// What a child process needs to prove that the lock is held.
    fn token(&self) -> String;

    /// What a process needs to resume it. Waits for a moment for masters that have not answered
    /// yet.
    fn proof(&self) -> String;

    /// The fencing token of the grant, if it is fenced.
    fn fence(&self) -> Option<u64>;

    /// The index of the permit, if it is one.
    fn permit(&self) -> Option<u32>;

    /// Tells what the masters have warned of.
    fn tell_cautions(&self, _output: &Output) {}

    /// Whether it is still held, and for how long. After the first call, [`Changed`] is sent when
    /// the lock is lost.
    fn standing(&mut self) -> Standing;

    /// Stops renewal; the lock stays valid for the remaining time.
    fn stop_renewal(&self);

    /// Leaves it to a process that has the token. The error is the sentence to print if it is not
    /// held any more.
    fn hand_over(self) -> Result<(), String>;

    /// Releases it within a bounded time. Others are kept out until this time since the grant has
    /// passed.
    fn release(self, at_least: Option<Duration>) -> Released;
}

/// How well a lock is held.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    /// Whether the masters said that it is not ours any more.
    pub(crate) lost: bool,
    /// How long no other client can hold it; zero once that is over.
    pub(crate) remaining: Duration,
}

/// The result of a release.
#[derive(Debug)]
pub(crate) enum Released {
    /// It was ours until then on a quorum of masters.
    Ours,
    /// The same, and they keep others out for this long.
    Kept(Duration),
    /// It was not ours any more; with the sentence to print.
    NotOurs(String),
    /// Too few masters answered to know; with the sentence to print.
    Unknown(String),
}

/// Waits for `lock` while handling signals, and reports that it is held.
pub(crate) fn wait_for<L: Lock>(
    seek: &Seek,
    mut lock: L,
    signals: &Signals<Changed>,
    terminal: &Terminal,
    output: &Output,
) -> Result<L::Hold, Finish> {
    let subject = seek.claim.subject();
    let name = &subject.name;
    let begun = Instant::now();
    let mut looks_at = LOOKS_EACH;
    loop {
        if let Poll::Ready(outcome) = lock.poll() {
            output.clear_progress();
            return match outcome {
                Ok(mut hold) => {
                    // The request to end may have come before the grant, and is looked at last.
                    if let Some(signal) = signals.asked_to_end() {
                        let _ = hold.release(None);
                        return Err(interrupted(signal, &subject, terminal, output));
                    }
                    hold.tell_cautions(output);
                    tell_acquired(&subject, &mut hold, output);
                    Ok(hold)
                }
                Err(refusal) => {
                    let code = refusal.tell_about(&subject.fields([]), output);
                    lock.give_up();
                    Err(Finish::Code(code))
                }
            };
        }
        let waited = begun.elapsed();
        if waited >= looks_at {
            let obstacle = lock.obstacle();
            looks_at = waited + if obstacle.is_some() { REPORTS_EACH } else { LOOKS_EACH };
            if let Some(obstacle) = obstacle {
                let text = format!("still waiting for {name}: {obstacle}");
                output.record(Level::Warning, "no_quorum_yet", &text, &subject.fields([]));
            }
        }
        let waited = waited.as_secs();
        if waited >= 1 {
            output.progress(&format!("waiting for {name} ({waited} s)"));
        }
        let next = if output.shows_progress() { Duration::from_secs(waited + 1) } else { looks_at };
        match signals.next(Some(begun + next.min(looks_at))) {
            // There is no command yet, but as process 1 we get the orphans of others.
            Some(Happening::Signal(SIGCHLD)) => reap_orphans(),
            Some(Happening::Signal(SIGTSTP)) => {
                output.clear_progress();
                if terminal.has_job_control() {
                    // The shell writes where the progress line is. This does not wait for long.
                    printer::finish();
                    terminal::stop_self();
                }
            }
            Some(Happening::Signal(signal)) if signals::asks_to_end(signal) => {
                output.clear_progress();
                lock.give_up();
                return Err(interrupted(signal, &subject, terminal, output));
            }
            _ => {}
        }
    }
}

/// Reports that `signal` ended the wait. Returns how to end.
fn interrupted(signal: i32, subject: &Subject, terminal: &Terminal, output: &Output) -> Finish {
    let text = format!("{} while waiting for {}", signals::name(signal), subject.name);
    output.record(Level::Info, "interrupted", &text, &subject.fields([]));
    // The terminal sent it to our whole group, so we need not pass it on.
    if signal == SIGINT && terminal.is_ours() {
        Finish::Interrupted { group: false }
    } else {
        Finish::Code(Ending::Signalled(signal).exit_code())
    }
}

fn tell_acquired(subject: &Subject, hold: &mut impl Hold, output: &Output) {
    let Subject { name, is_shared, .. } = subject;
    let permit = hold.permit();
    let mut text = match permit {
        Some(index) => format!("acquired permit {index} of {name}"),
        None if *is_shared => format!("acquired {name} for reading"),
        None => format!("acquired {name}"),
    };
    let fence = hold.fence();
    if let Some(fence) = fence {
        text.push_str(&format!(" with fencing token {fence}"));
    }
    let permit = permit.map(|index| ("permit", JsonValue::Number(index.into())));
    let fence = fence.map(|fence| ("fence", JsonValue::Number(fence)));
    let valid = ("valid_ms", milliseconds(hold.standing().remaining));
    let fields = subject.fields(permit.into_iter().chain([valid]).chain(fence));
    output.record(Level::Info, "acquired", &text, &fields);
}

/// A span as a field of an event.
pub(crate) fn milliseconds(span: Duration) -> JsonValue<'static> {
    JsonValue::Number(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
#[path = "waiting_tests.rs"]
mod tests;
