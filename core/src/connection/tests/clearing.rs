//! Releases that are owed, and those behind an acquisition that has to be repeated.

use super::*;
use crate::protocol::{Target, Targets};

#[test]
fn a_release_that_was_put_off_delays_no_other() {
    let mut alone = Alone::ready(one());
    let Alone { connection, now, .. } = &mut alone;
    let later = *now + ms(2_000);
    connection.owe(request(Action::Release, 1), later, *now);
    connection.owe(request(Action::Release, 2), *now, *now);
    assert_eq!(connection.next_payment(), Some(*now));
    alone.pass(ms(1));
    assert_eq!(alone.connection.next_payment(), Some(later));
    assert!(alone.written().contains(&"02".repeat(Token::BYTES)));
}

#[test]
fn a_key_is_kept_by_an_owed_request_only_while_there_is_time_left_to_keep_it() {
    let long = Ttl::new(ms(10_000)).unwrap();
    for (action, ttl, is_owed) in [
        (Action::Keep, long, true),
        (Action::Keep, Ttl::SHORTEST, false),
        (Action::Release, Ttl::SHORTEST, true),
    ] {
        let mut alone = Alone::ready(one());
        let Alone { connection, now, .. } = &mut alone;
        connection.owe(Request { ttl, ..request(action, 1) }, *now, *now);
        assert_eq!(connection.debts.len() == 1, is_owed, "{action:?}, {ttl:?}");
    }
}

#[test]
fn an_acquisition_by_script_is_repeated_unless_a_release_of_its_token_is_on_its_way() {
    let claim_of =
        |targets: &Targets, token| Claim::new(targets, Token::from_bytes([token; Token::BYTES]), true, None);
    let written = Targets::from(Resource::new("r").unwrap());
    let read = Config::new(["redis://a"]).unwrap().targets([Target::read("r")]).unwrap();
    let of = |targets, token, action| Request { claim: claim_of(targets, token), ..request(action, token) };
    for (behind, is_repeated) in [
        (None, true),
        // The release may have another form.
        (Some(of(&read, 1, Action::Release)), false),
        (Some(of(&written, 1, Action::Undo)), false),
        (Some(of(&written, 2, Action::Release)), true),
        (Some(of(&written, 1, Action::Extend)), true),
    ] {
        let mut alone = Alone::ready(one());
        // The first one sends the script's text. After that the server knows it.
        let first = of(&written, 9, Action::Acquire);
        alone.connection.submit(&first, &mut Wording::default(), alone.now, &mut alone.answers);
        alone.hear(b":1\r\n");
        let acquire = of(&written, 1, Action::Acquire);
        let Alone { connection, answers, now } = &mut alone;
        connection.submit(&acquire, &mut Wording::default(), *now, answers);
        if let Some(behind) = &behind {
            connection.submit(behind, &mut Wording::default(), *now, answers);
        }
        alone.written();
        alone.hear(b"-NOSCRIPT x\r\n");
        assert_eq!(!alone.written().is_empty(), is_repeated, "{:?}", behind.map(|behind| behind.action));
    }
}

#[test]
fn local_waiters_are_notified_of_keys_that_a_release_or_an_undo_may_have_deleted() {
    let config = Config::new(["redis://a"]).unwrap();
    let two = config.targets([Target::write("r"), Target::write("s")]).unwrap();
    let one_key = Targets::from(Resource::new("r").unwrap());
    let permit = Targets::from(Resource::new("r").unwrap().seat(0));
    let quarantined = Answer::OursInQuarantine { remaining: ms(1) };
    for (targets, action, answer, is_told) in [
        (&two, Action::Release, Answer::Yes, true),
        (&two, Action::Undo, Answer::Yes, true),
        // It may have found some of the keys.
        (&two, Action::Release, Answer::No, true),
        // Two local waiters would otherwise wake each other again and again.
        (&two, Action::Undo, Answer::No, false),
        (&one_key, Action::Release, Answer::Yes, true),
        (&one_key, Action::Release, Answer::No, false),
        // Only the lock in front asks for a single key.
        (&one_key, Action::Undo, Answer::Yes, false),
        // Locks of the other permits ask for the key, too.
        (&permit, Action::Release, Answer::No, true),
        (&permit, Action::Undo, Answer::Yes, true),
        (&one_key, Action::Extend, quarantined, true),
        (&one_key, Action::Keep, Answer::Yes, true),
        (&one_key, Action::ForceRelease, Answer::Yes, true),
        // They change no key of a held lock.
        (&one_key, Action::Acquire, Answer::Yes, false),
        (&one_key, Action::Raise, Answer::Yes, false),
        (&one_key, Action::Attend, Answer::Yes, false),
    ] {
        let mut alone = Alone::ready(one());
        let claim = Claim::new(targets, Token::from_bytes([1; Token::BYTES]), false, None);
        let request = Request { claim, ..request(action, 1) };
        alone.connection.tell_own_changes(&request, answer, &mut alone.answers);
        let news = std::iter::from_fn(|| alone.answers.next()).count();
        assert_eq!(news > 0, is_told, "{action:?}, {answer:?}");
    }
}

#[test]
fn the_release_of_a_downgraded_lock_forgets_an_acquisition_that_was_never_sent() {
    let mut alone = Alone::greeting(one());
    alone.submit(Action::Acquire, 1);
    let shared = Targets::from(Resource::new("r").unwrap()).downgraded();
    let claim = Claim::new(&shared, Token::from_bytes([1; Token::BYTES]), false, None);
    let release = Request { claim, ..request(Action::Release, 1) };
    alone.connection.submit(&release, &mut Wording::default(), alone.now, &mut alone.answers);
    assert_eq!(alone.answered(), [Answer::No]);
    assert!(alone.connection.queued.is_empty());
}

#[test]
fn the_undo_of_other_permits_forgets_a_window_that_was_never_sent() {
    let mut alone = Alone::greeting(one());
    let name = Resource::new("r").unwrap();
    let claim_of = |numbers: std::ops::Range<u16>| {
        let seats: Vec<_> = numbers.map(|number| name.seat(number.into())).collect();
        Claim::of_seats(&name, &seats, 1, Token::from_bytes([1; Token::BYTES]), false, None)
    };
    let window = Request { claim: claim_of(0..4), ..request(Action::Acquire, 1) };
    let others = Request { claim: claim_of(1..4), ticket: None, ..request(Action::Undo, 1) };
    let chosen = Request { claim: claim_of(0..1), ..request(Action::Undo, 1) };
    for request in [&window, &others, &chosen] {
        alone.connection.submit(request, &mut Wording::default(), alone.now, &mut alone.answers);
    }
    let queued = alone.connection.queued.iter().map(|queued| queued.request.clone());
    assert!(queued.eq([chosen]), "the window is not sent, and the caller's undo is answered");
}
