//! Places in a queue: requests that wait for the connection, or reach a server that must not vote.

use super::*;
use crate::protocol::QueuePlace;
use crate::wire::{KEEP, ServerError};

/// A request for the same place, with a new token for each attempt.
fn of_place(action: Action, attempt: u8) -> Request {
    let (resource, place) = (Resource::new("r").unwrap(), QueuePlace::from_bytes([9; QueuePlace::BYTES]));
    let token = Token::from_bytes([attempt; Token::BYTES]);
    let request =
        Request { claim: Claim::queued(&resource, token, false, place), ..request(action, attempt) };
    if action == Action::Undo { request.without_place() } else { request }
}

impl Alone {
    fn ask(&mut self, action: Action, attempt: u8) {
        let request = of_place(action, attempt);
        self.connection.submit(&request, &mut Wording::default(), self.now, &mut self.answers);
    }
}

#[test]
fn a_release_removes_all_unsent_requests_of_its_place_and_is_sent() {
    let mut alone = Alone::greeting(one());
    alone.ask(Action::Acquire, 1);
    alone.ask(Action::Undo, 1);
    alone.ask(Action::Stay, 1);
    alone.ask(Action::Acquire, 2);
    alone.ask(Action::Release, 2);
    assert_eq!(alone.answered(), [Answer::No], "the undo");
    alone.hear(&greeting(RELEASE.sha1_hex));
    // The place may be there since an earlier connection.
    let written = alone.written();
    assert!(written.contains("return said"), "{written}");
}

#[test]
fn a_lock_that_leaves_the_queue_with_another_token_keeps_its_unsent_acquisition() {
    let mut alone = Alone::greeting(one());
    alone.ask(Action::Acquire, 1);
    alone.ask(Action::Stay, 1);
    alone.ask(Action::Release, 2);
    let left = alone.connection.queued.iter().map(|queued| queued.request.action);
    assert!(left.eq([Action::Acquire, Action::Release]));
}

#[test]
fn local_waiters_are_told_of_each_request_that_may_have_removed_a_place() {
    for (action, answer, is_told) in [
        (Action::Release, Answer::Yes, true),
        (Action::Release, Answer::No, true),
        (Action::Keep, Answer::Yes, true),
        (Action::Keep, Answer::No, true),
        (Action::Keep, Answer::Failed { cause: Cause::Closed, fate: Fate::NotSent, stale: false }, false),
        (Action::Stay, Answer::Yes, false),
        (Action::Extend, Answer::Yes, false),
    ] {
        let mut alone = Alone::ready(one());
        alone.connection.tell_own_changes(&of_place(action, 1), answer, &mut alone.answers);
        let told = std::iter::from_fn(|| alone.answers.next());
        let left = told.filter(|(_, told)| matches!(told, Upward::News(News::LeftByUs(_)))).count();
        assert_eq!(left > 0, is_told, "{action:?}, {answer:?}");
    }
}

const DENIED: &str = "-NOPERM this user has no permissions to run the 'zadd' command\r\n";

#[test]
fn what_is_refused_because_of_its_place_is_asked_again_without_it() {
    let busy = "-BUSY Redis is busy running a script\r\n";
    for (action, refusal, again) in [
        (Action::Acquire, DENIED, Some("SET")),
        (Action::Acquire, "-ERR unknown command 'EVALSHA'\r\n", Some("SET")),
        (Action::Acquire, busy, None),
        (Action::Release, DENIED, Some(RELEASE.text)),
        (Action::Keep, DENIED, Some(KEEP.text)),
        // It is about nothing but the place.
        (Action::Stay, DENIED, None),
        // It has no place.
        (Action::Undo, DENIED, None),
    ] {
        let mut alone = Alone::ready(one());
        alone.ask(action, 1);
        alone.written();
        alone.hear(refusal.as_bytes());
        let (written, is_answered) = (alone.written(), !alone.answered().is_empty());
        let command = again.map(|again| again.as_bytes().escape_ascii().to_string());
        assert_eq!(is_answered, again.is_none(), "{action:?}, {refusal}: {written}");
        assert!(command.is_none_or(|command| written.contains(&command)), "{action:?}: {written}");
        assert!(!written.contains("quorlock:place"), "{action:?}: {written}");
    }
}

#[test]
fn a_refused_acquisition_is_not_asked_again_behind_its_release() {
    let mut alone = Alone::ready(one());
    alone.ask(Action::Acquire, 1);
    alone.ask(Action::Release, 1);
    alone.written();
    alone.hear(DENIED.as_bytes());
    assert_eq!((alone.written().as_str(), alone.answered().len()), ("", 1));
    alone.hear(DENIED.as_bytes());
    let written = alone.written();
    assert!(written.contains(&RELEASE.text.as_bytes().escape_ascii().to_string()), "{written}");
}

#[test]
fn queues_are_denied_only_if_the_same_lock_without_a_place_is_not() {
    for (answer, is_denied) in [
        ("+OK\r\n", true),
        ("_\r\n", true),
        (DENIED, false),
        ("-BUSY Redis is busy running a script\r\n", false),
    ] {
        let mut alone = Alone::ready(one());
        alone.ask(Action::Acquire, 1);
        // The answer to another lock says nothing.
        alone.submit(Action::Acquire, 2);
        alone.hear(format!("{DENIED}+OK\r\n{answer}").as_bytes());
        alone.written();
        alone.ask(Action::Acquire, 3);
        let asks_for_place = alone.written().contains("quorlock:place");
        assert_eq!(asks_for_place, !is_denied, "{answer}");
        assert_eq!(alone.connection.warnings().contains(&Warning::QueueDenied), is_denied, "{answer}");
    }
}

#[test]
fn a_connection_that_keeps_no_places_asks_for_none_and_the_next_one_does() {
    let mut alone = Alone::ready(one());
    alone.ask(Action::Acquire, 1);
    alone.hear(format!("{DENIED}+OK\r\n").as_bytes());
    assert_eq!(alone.answered(), [Answer::Yes]);
    alone.written();
    for action in [Action::Acquire, Action::Stay, Action::Keep, Action::Release] {
        alone.ask(action, 2);
    }
    let written = alone.written();
    assert!(written.contains("SET") && !written.contains("quorlock:place"), "{written}");
    let refused =
        Answer::Failed { cause: Cause::Server(ServerError::NoPerm), fate: Fate::NotSent, stale: false };
    assert_eq!(alone.answered(), [refused], "the renewal");
    assert_eq!(alone.connection.warnings(), [Warning::QueueDenied]);
    let generation = alone.connection.generation;
    alone.connection.closed(generation, Cause::Closed, alone.now, &mut alone.answers);
    alone.pass(ms(5_000));
    alone.written();
    alone.connection.connected(generation + 1, None, alone.now);
    alone.hear(&greeting(RELEASE.sha1_hex));
    alone.written();
    alone.ask(Action::Acquire, 3);
    let written = alone.written();
    assert!(written.contains("quorlock:place"), "{written}");
    assert_eq!(alone.connection.warnings(), []);
}

#[test]
fn a_release_forgets_no_request_for_another_place() {
    let mut alone = Alone::greeting(one());
    alone.ask(Action::Acquire, 1);
    let (resource, place) = (Resource::new("r").unwrap(), QueuePlace::from_bytes([8; QueuePlace::BYTES]));
    let claim = Claim::queued(&resource, Token::from_bytes([2; Token::BYTES]), false, place);
    let release = Request { claim, ..request(Action::Release, 2) };
    alone.connection.submit(&release, &mut Wording::default(), alone.now, &mut alone.answers);
    assert_eq!(alone.answered(), []);
    assert_eq!(alone.connection.queued.len(), 2);
}

#[test]
fn a_release_whose_acquisition_was_sent_on_an_earlier_connection_is_sent() {
    let mut alone = Alone::greeting(one());
    alone.ask(Action::Stay, 1);
    alone.ask(Action::Release, 1);
    assert_eq!(alone.answered(), []);
    alone.hear(&greeting(RELEASE.sha1_hex));
    let written = alone.written();
    assert!(written.contains("return said"), "{written}");
}

#[test]
fn a_server_that_must_not_vote_yet_still_keeps_places_in_the_queue() {
    let mut alone = Alone::ready(one());
    alone.connection.other_server_until = Some(alone.now + ms(1_000));
    alone.ask(Action::Acquire, 1);
    assert!(matches!(
        alone.answered()[..],
        [Answer::Failed { cause: Cause::Quarantined { .. }, fate: Fate::NotSent, .. }]
    ));
    alone.ask(Action::Stay, 1);
    assert_eq!(alone.answered(), []);
    assert!(alone.written().contains("EVAL"));
}
