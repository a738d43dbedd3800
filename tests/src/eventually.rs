//! Waiting for a condition, the only kind of waiting that tests do.

use std::fmt::Debug;
use std::thread;
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(16);

/// Calls `holds` repeatedly until it returns true.
///
/// # Panics
/// With `what` and the time spent, at the caller's line, when `within` is over. The condition is
/// checked at least once, and once more at the end.
#[track_caller]
pub fn eventually(within: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    if poll(within, || holds().then_some(())).is_none() {
        panic!("not within {within:?}: {what}");
    }
}

/// Repeats an observation until it returns `expected`. If it never does, the failure shows the last
/// observation.
///
/// # Panics
/// With `what`, the last observation and the expected one, at the caller's line, when `within` is
/// over.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "callers write what they expect as a literal")]
pub fn eventually_equals<T: PartialEq + Debug>(
    within: Duration,
    what: &str,
    expected: T,
    mut observe: impl FnMut() -> T,
) {
    let mut last = None;
    let equal = poll(within, || {
        let observed = observe();
        let equal = observed == expected;
        last = Some(observed);
        equal.then_some(())
    });
    if equal.is_none() {
        let last = last.expect("the condition is asked at least once");
        panic!("not within {within:?}: {what}: last seen {last:?}, expected {expected:?}");
    }
}

/// The first `Some` that `ask` returns, or `None` when the time is over.
pub(crate) fn poll<T>(within: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + within;
    let mut pause = FIRST_PAUSE;
    loop {
        // The time is read before the question, so that the last question is asked after the
        // deadline.
        let over = Instant::now() >= deadline;
        let answer = ask();
        if answer.is_some() || over {
            return answer;
        }
        thread::sleep(pause.min(deadline.saturating_duration_since(Instant::now())));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
