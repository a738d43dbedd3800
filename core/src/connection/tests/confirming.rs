//! A master with replicas: votes that they have yet to confirm, and a primary that lacks them.

use super::discovery::{Guided, greeting_with};
use super::*;

/// A master with one replica.
fn replicated() -> Alone {
    let settings = Config::builder(["redis://a?replicas=1"]).request_timeout(ms(50));
    let mut alone = Alone::greeting(settings.restart_guard(ms(20_000)).ttl(ms(10_000)));
    alone.hear(&greeting_with(&crate::wire::ACQUIRE_REPLICATED, &crate::wire::EXTEND_REPLICATED));
    alone.written();
    alone.hear(b":1\r\n");
    assert!(alone.connection.is_ready());
    alone
}

#[test]
fn a_vote_is_followed_by_a_wait_although_an_earlier_one_is_not_confirmed_yet() {
    let mut alone = replicated();
    for number in 1..=3 {
        alone.submit(Action::Acquire, number);
        assert!(alone.written().contains("WAIT"), "{number}");
        if number == 1 {
            alone.hear(b":1\r\n");
        }
    }
    assert_eq!(alone.answered(), []);
}

#[test]
fn a_vote_whose_confirmation_takes_too_long_is_reported_once() {
    let mut alone = replicated();
    alone.submit(Action::Acquire, 1);
    alone.written();
    alone.pass(ms(10));
    alone.submit(Action::Acquire, 2);
    alone.written();
    alone.pass(ms(20));
    alone.hear(b":1\r\n");
    for (later, round) in [(20, 1), (10, 2)] {
        assert_eq!(alone.answered(), []);
        alone.pass(ms(later));
        assert_eq!(alone.rounds(), [round]);
        let no_answer = Cause::NoAnswer { waited: ms(50) };
        let reported: Vec<_> = alone.answered().into_iter().map(failed).collect();
        assert_eq!(reported, [Some((no_answer, Fate::Unknown))]);
        alone.hear(SIGN_OF_LIFE);
    }
    let Alone { connection, answers, now } = &mut alone;
    connection.closed(1, Cause::Closed, *now, answers);
    assert_eq!(alone.answered(), []);
}

#[test]
fn a_primary_without_its_replicas_is_left_for_a_moment_to_look_for_another() {
    for declared in [0, 1] {
        left_without_its_replicas(declared);
    }
}

/// A primary that a Sentinel has named, before it says whether it votes.
fn primary_with(declared: u8) -> Guided {
    let mut guided = Guided::new(&format!("redis+sentinel://a/m?replicas={declared}"));
    guided.told();
    guided.named("7");
    guided.told();
    guided.stands();
    guided.told();
    guided.0.hear(&greeting_with(&crate::wire::ACQUIRE_REPLICATED, &crate::wire::EXTEND_REPLICATED));
    guided.told();
    guided
}

fn left_without_its_replicas(declared: u8) {
    let mut guided = primary_with(declared);
    guided.0.hear(b"*3\r\n$5\r\nalone\r\n:0\r\n:0\r\n");
    // The last search was just now.
    assert!(guided.0.connection.is_ready());
    assert_eq!(guided.told(), [""; 0]);
    guided.0.now = guided.0.now + ms(1000);
    guided.0.submit(Action::Acquire, 1);
    guided.0.submit(Action::Acquire, 2);
    guided.told();
    guided.0.hear(b"*3\r\n$5\r\nalone\r\n:0\r\n:0\r\n");
    // Outstanding answers are awaited.
    assert_eq!(guided.told(), [""; 0]);
    guided.0.hear(b"*3\r\n$5\r\nalone\r\n:0\r\n:0\r\n");
    assert_eq!(guided.told(), ["close 2", "open 3 a:26379"]);
    assert_eq!(guided.0.answered().len(), 2);
}

#[test]
fn a_primary_without_replicas_that_votes_again_is_not_left() {
    let mut guided = primary_with(0);
    guided.0.hear(b"*3\r\n$5\r\nalone\r\n:0\r\n:1\r\n");
    guided.0.now = guided.0.now + ms(1000);
    guided.0.submit(Action::Acquire, 1);
    guided.told();
    guided.0.hear(b":1\r\n");
    assert_eq!((guided.0.answered(), guided.told()), (vec![Answer::Yes], vec![]));
    assert!(guided.0.connection.is_ready());
}
