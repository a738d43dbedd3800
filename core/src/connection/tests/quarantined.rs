//! Answers of a quarantined master.

use super::discovery::guarded_greeting;
use super::*;

/// The extension uses up the registration of a waiter on the same connection (`NOLOOP`).
#[test]
fn an_extension_by_a_quarantined_master_is_a_change_by_this_connection() {
    let mut alone = Alone::greeting(one().restart_guard(ms(10_000)));
    alone.hear(&guarded_greeting());
    alone.hear(b":1\r\n");
    let waiting = Request { watch: true, ..request(Action::Acquire, 1) };
    alone.connection.submit(&waiting, &mut Wording::default(), alone.now, &mut alone.answers);
    let holder = "0".repeat(40);
    alone.hear(format!("+OK\r\n*2\r\n$40\r\n{holder}\r\n:9\r\n").as_bytes());
    alone.submit(Action::Extend, 2);
    alone.answered();
    alone.hear(b"*2\r\n$4\r\nours\r\n:5\r\n");
    let told: Vec<_> = std::iter::from_fn(|| alone.answers.next()).map(|(_, upward)| upward).collect();
    let [answer, Upward::News(News::ChangedByUs(key))] = told.as_slice() else { panic!("{told:?}") };
    let answer = as_answer(answer).map(|(_, answer)| answer);
    assert_eq!(answer, Some(Answer::OursInQuarantine { remaining: ms(5) }));
    assert_eq!(key, "r");
}
