//! When an opening, an answer or silence takes too long.

use super::discovery::Guided;
use super::*;
use crate::endpoint::Login;

#[test]
fn the_first_opening_has_half_of_the_time_if_there_is_another_one_to_follow() {
    let sentinels = "redis+sentinel://a,b/m?failover=durable";
    for (url, is_named, limit) in [
        // A sentinel is followed by the server that it names.
        ("redis+sentinel://a/m?failover=durable", false, 50),
        (sentinels, false, 50),
        (sentinels, true, 100),
        ("redis+cluster://a:1?tag=q0&failover=durable", false, 100),
        ("redis+cluster://a:1,b:2?tag=q0&failover=durable", false, 50),
    ] {
        let mut guided = Guided::new(url);
        guided.told();
        if is_named {
            guided.named("7");
            assert!(guided.told()[1].ends_with(" s:7"));
        }
        let deadline = guided.0.connection.deadline();
        assert_eq!(deadline, Some(guided.0.now + ms(limit)), "{url}, named: {is_named}");
    }
}

#[test]
fn a_request_that_is_written_late_has_all_of_its_time_and_a_repeated_one_has_no_more() {
    let mut alone = Alone::ready(one());
    let began = alone.now;
    let write = |alone: &mut Alone| {
        let task = alone.connection.next_task(&mut Vec::new(), Some(alone.now));
        assert!(matches!(task, Some(DriverTask::Write { .. })));
    };
    alone.submit(Action::Extend, 1);
    write(&mut alone);
    alone.pass(ms(10));
    alone.submit(Action::Extend, 2);
    write(&mut alone);
    alone.hear(b"-NOSCRIPT x\r\n");
    alone.submit(Action::Extend, 3);
    // The driver takes the first request's text and the third request later.
    alone.pass(ms(20));
    write(&mut alone);
    for (round, due) in [(1, 50), (2, 60), (3, 80)] {
        alone.hear(SIGN_OF_LIFE);
        assert_eq!(alone.connection.deadline(), Some(began + ms(due)), "round {round}");
        alone.pass((began + ms(due)).since(alone.now));
        assert_eq!(alone.rounds(), [round]);
        alone.answered();
    }
}

#[test]
fn the_size_of_what_is_in_flight_is_that_of_what_was_written() {
    let mut alone = Alone::ready(one());
    let mut bytes = Vec::new();
    alone.submit(Action::Extend, 1);
    alone.connection.next_task(&mut bytes, None);
    assert_eq!(alone.connection.flight.bytes, bytes.len());
    // The text of the script, and the login, are written behind another request.
    alone.submit(Action::Acquire, 2);
    alone.hear(b"-NOSCRIPT x\r\n");
    alone.connection.reauthenticate(Login::new("p"), alone.now);
    alone.connection.next_task(&mut bytes, None);
    let text = bytes.escape_ascii().to_string();
    assert!(text.contains("EVAL") && text.contains("AUTH"), "{text}");
    assert_eq!(alone.connection.flight.bytes, bytes.len());
}

#[test]
fn silence_is_looked_at_again_if_the_driver_looks_more_than_a_moment_late() {
    for (late, looks_again) in [(0, false), (1, false), (2, true)] {
        let mut alone = Alone::ready(one());
        alone.submit(Action::Acquire, 1);
        alone.pass(ms(50 + late));
        assert_eq!(alone.answered().is_empty(), looks_again, "{late} ms late");
    }
}

#[test]
fn each_silence_is_looked_at_again_once() {
    let mut alone = Alone::ready(one());
    for number in 1..=3 {
        alone.pass(ms(1));
        alone.submit(Action::Acquire, number);
        alone.pass(ms(100));
        assert_eq!(alone.answered(), [], "silence {number}");
        alone.hear(b"+OK\r\n");
        assert_eq!(alone.answered(), [Answer::Yes]);
    }
    alone.pass(ms(1));
    alone.submit(Action::Acquire, 4);
    alone.pass(ms(100));
    assert_eq!(alone.answered(), []);
    alone.pass(ms(100));
    assert_eq!(alone.answered().len(), 1);
}
