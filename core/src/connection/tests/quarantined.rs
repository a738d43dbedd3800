//! Answers of a quarantined master.

use super::discovery::guarded_greeting;
use super::*;

/// A master under the restart guard that has answered the check of its marker in this way.
fn attended(reply: &[u8]) -> Alone {
    let mut alone = Alone::greeting(one().restart_guard(ms(10_000)));
    alone.hear(&guarded_greeting());
    alone.hear(reply);
    assert!(alone.connection.is_ready());
    alone
}

/// The extension uses up the registration of a waiter on the same connection (`NOLOOP`).
#[test]
fn an_extension_by_a_quarantined_master_is_a_change_by_this_connection() {
    let mut alone = attended(b":1\r\n");
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

#[test]
fn a_master_is_in_quarantine_for_as_long_as_its_last_answer_says() {
    for (action, reply) in [
        (Action::Acquire, "*2\r\n$11\r\nquarantined\r\n:5\r\n"),
        (Action::Extend, "*2\r\n$4\r\nours\r\n:5\r\n"),
    ] {
        let mut alone = attended(b":1\r\n");
        alone.pass(ms(1_000));
        alone.submit(action, 1);
        alone.hear(reply.as_bytes());
        assert_eq!(alone.connection.quarantined_until(), Some(alone.now + ms(5)), "{action:?}");
    }
}

#[test]
fn a_quarantine_ends_early_only_with_a_new_vote() {
    let held = format!("*2\r\n$40\r\n{}\r\n:9\r\n", "0".repeat(40));
    for (action, reply, ends) in [
        (Action::Acquire, ":1\r\n", true),
        (Action::Acquire, held.as_str(), false),
        (Action::Release, ":1\r\n", false),
    ] {
        let mut alone = attended(b"*2\r\n$11\r\nquarantined\r\n:5000\r\n");
        let until = alone.now + ms(5_000);
        assert_eq!(alone.connection.quarantined_until(), Some(until));
        alone.submit(action, 1);
        alone.hear(reply.as_bytes());
        assert_eq!(alone.connection.quarantined_until(), (!ends).then_some(until), "{action:?}, {reply:?}");
    }
}
