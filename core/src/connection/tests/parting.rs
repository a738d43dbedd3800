//! The releases that are written behind the requests of a connection that is given up.

use super::*;
use crate::protocol::{Resource, Seats, Targets};

/// The claim of a downgraded lock of `r`, with the token of this number.
fn shared(number: u8) -> Claim {
    let targets = Targets::from(Resource::new("r").unwrap()).downgraded();
    Claim::new(&targets, Token::from_bytes([number; Token::BYTES]), false, None)
}

#[test]
fn a_parting_release_names_the_claim_that_the_lock_has_after_its_downgrade() {
    let mut alone = Alone::ready(one());
    alone.submit(Action::Acquire, 1);
    alone.submit(Action::Acquire, 2);
    let extension = Request { claim: shared(1), ..request(Action::Extend, 1) };
    alone.connection.submit(&extension, &mut Wording::default(), alone.now, &mut alone.answers);
    alone.submit(Action::Acquire, 3);
    alone.written();
    alone.pass(ms(50));
    let mut expected = Vec::new();
    let downgraded = Request { claim: shared(1), ..request(Action::Release, 1) };
    downgraded.encode(Form::ByText, None, &mut expected);
    // Each script's text is sent once.
    request(Action::Release, 2).encode(Form::ByText, None, &mut expected);
    request(Action::Release, 3).encode(Form::BySha, None, &mut expected);
    assert_eq!(alone.written(), expected.escape_ascii().to_string());
}

#[test]
fn a_parting_release_names_all_permits_of_a_window_although_the_lock_has_some_of_them() {
    for take in [1, 2] {
        let mut alone = Alone::ready(one());
        let (name, token) = (Resource::new("r").unwrap(), Token::from_bytes([1; Token::BYTES]));
        let seats: Vec<_> = (0..4).map(|index| name.seat(index)).collect();
        let window = Claim::of_seats(&name, &seats, take, token, false, None);
        let chosen = Targets::of_seats(&name, Seats::new(0, 4, (1 << take) - 1).unwrap());
        let chosen = Claim::new(&chosen, token, false, None);
        for (action, claim) in [(Action::Acquire, &window), (Action::Extend, &chosen)] {
            let request = Request { claim: claim.clone(), ..request(action, 1) };
            alone.connection.submit(&request, &mut Wording::default(), alone.now, &mut alone.answers);
        }
        alone.written();
        alone.pass(ms(50));
        let mut expected = Vec::new();
        Request { claim: window, ..request(Action::Release, 1) }.encode(Form::ByText, None, &mut expected);
        assert_eq!(alone.written(), expected.escape_ascii().to_string(), "{take}");
    }
}

#[test]
fn a_request_on_a_silent_connection_is_undone_only_if_its_release_is_written() {
    for (action, is_copied, fate) in [
        (Action::Acquire, false, Fate::Undone),
        (Action::Heal, false, Fate::Undone),
        // Another locker may count the key, so it is not released.
        (Action::Heal, true, Fate::Unknown),
    ] {
        let mut alone = Alone::ready(one());
        let sent = Request { is_copied, ..request(action, 1) };
        alone.connection.submit(&sent, &mut Wording::default(), alone.now, &mut alone.answers);
        alone.written();
        alone.pass(ms(50));
        let cause = Cause::NoAnswer { waited: ms(50) };
        assert_eq!(failed(alone.answered()[0]), Some((cause, fate)), "{action:?}");
        assert_eq!(alone.written().contains("EVAL"), fate == Fate::Undone, "{action:?}");
    }
}
