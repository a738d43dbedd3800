//! Requests over a connection that had been quiet for long, and then ended.

use super::*;

/// Ends the connection while the request is under way on it. Returns whether the request waits for
/// the next connection; if not, it was answered.
fn waits_for_the_next(request: &Request) -> bool {
    let mut alone = Alone::ready(one());
    alone.pass(ms(7_000));
    let Alone { connection, answers, now } = &mut alone;
    connection.submit(request, &mut Wording::default(), *now, answers);
    connection.closed(1, Cause::Closed, *now, answers);
    let queued: Vec<_> = connection.queued.iter().map(|queued| queued.request.clone()).collect();
    let answered = alone.answered();
    match &queued[..] {
        [] => assert!(matches!(answered[..], [Answer::Failed { stale: true, .. }]), "{answered:?}"),
        [second] => {
            assert_eq!(second, &Request { is_second_try: true, ..request.clone() });
            assert_eq!(answered, []);
        }
        more => panic!("{more:?}"),
    }
    !queued.is_empty()
}

/// Late, an acquisition may come behind its release, and the end of a quarantine behind the loss of
/// other votes.
#[test]
fn only_requests_that_do_no_harm_when_they_are_late_are_repeated() {
    let actions = [
        (Action::Acquire, false),
        (Action::Stay, false),
        (Action::Heal, false),
        (Action::Open, false),
        (Action::Raise, true),
        (Action::Extend, true),
        (Action::Release, true),
        (Action::Undo, true),
        (Action::Keep, true),
        (Action::Inspect, true),
        (Action::ForceRelease, true),
        (Action::Attend, true),
    ];
    for (action, is_repeated) in actions {
        assert_eq!(waits_for_the_next(&request(action, 1)), is_repeated, "{action:?}");
    }
}

#[test]
fn a_request_is_repeated_once_and_only_if_somebody_waits_for_its_answer() {
    let second = Request { is_second_try: true, ..request(Action::Extend, 1) };
    assert!(!waits_for_the_next(&second));
    let mut alone = Alone::ready(one());
    alone.pass(ms(7_000));
    let unasked = Request { ticket: None, ..request(Action::Release, 1) };
    let Alone { connection, answers, now } = &mut alone;
    connection.submit(&unasked, &mut Wording::default(), *now, answers);
    connection.closed(1, Cause::Closed, *now, answers);
    assert_eq!((connection.queued.len(), connection.debts.len()), (0, 1), "it is owed");
}

#[test]
fn a_request_on_a_connection_that_was_in_use_is_answered_when_that_ends() {
    let mut alone = Alone::ready(one());
    alone.submit(Action::Acquire, 1);
    alone.hear(b"+OK\r\n");
    assert_eq!(alone.answered(), [Answer::Yes]);
    // The connection has carried an answer, so another one is opened at once.
    alone.submit(Action::Extend, 2);
    let Alone { connection, answers, now } = &mut alone;
    connection.closed(1, Cause::Closed, *now, answers);
    let failed = Answer::Failed { cause: Cause::Closed, fate: Fate::Unknown, stale: false };
    assert_eq!((alone.connection.queued.len(), alone.answered()), (0, vec![failed]));
}
