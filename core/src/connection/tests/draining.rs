//! A connection that a fresh one will replace.

use super::*;

#[test]
fn an_owed_release_sets_no_deadline_while_the_connection_drains_and_is_sent_on_the_next() {
    let mut alone = Alone::ready(one().max_in_flight_requests(1));
    alone.submit(Action::Acquire, 1);
    alone.submit(Action::Release, 2);
    // There is no room for it.
    alone.submit(Action::Release, 3);
    assert_eq!(alone.connection.debts.len(), 1);
    alone.written();

    let Alone { connection, answers, now } = &mut alone;
    connection.renew(1, *now, answers);
    alone.now = alone.now + ms(10);
    alone.hear(b"+OK\r\n");
    // Now there is room, but nothing may be sent: only the answer to the first release is awaited.
    assert!(!alone.connection.has_task());
    assert_eq!(alone.connection.deadline(), Some(alone.now + ms(40)));
    alone.pass(ms(10));
    assert_eq!(alone.connection.deadline(), Some(alone.now + ms(30)));
    alone.hear(b":1\r\n");

    let bytes = &mut Vec::new();
    assert_eq!(alone.connection.next_task(bytes, None), Some(DriverTask::Close { generation: 1 }));
    let task = alone.connection.next_task(bytes, None);
    assert!(matches!(task, Some(DriverTask::Open { generation: 2, .. })));
    alone.connection.connected(2, None, alone.now);
    alone.written();
    alone.hear(&greeting(RELEASE.sha1_hex));
    assert!(alone.connection.is_ready());
    let mut expected = Vec::new();
    request(Action::Release, 3).encode(Form::BySha, None, &mut expected);
    assert_eq!(alone.written(), expected.escape_ascii().to_string());
    assert!(alone.connection.debts.is_empty());
}

/// A connection that drains: acquisition 1 is on its way, and number 2 waits for the next one.
fn draining() -> Alone {
    let mut alone = Alone::ready(one());
    alone.submit(Action::Acquire, 1);
    alone.written();
    let Alone { connection, answers, now } = &mut alone;
    connection.renew(1, *now, answers);
    alone.submit(Action::Acquire, 2);
    assert_eq!(alone.written(), "");
    alone
}

#[test]
fn only_the_present_connection_is_replaced_and_only_once_it_is_open() {
    for (mut alone, generation) in [(Alone::greeting(one()), 1), (Alone::ready(one()), 0)] {
        let Alone { connection, answers, now } = &mut alone;
        let before = connection.is_ready();
        connection.renew(generation, *now, answers);
        assert_eq!((connection.is_ready(), connection.has_task()), (before, false), "{generation}");
    }
}

#[test]
fn what_waits_for_the_next_connection_is_answered_if_the_draining_one_is_silent() {
    let mut alone = draining();
    alone.pass(ms(50));
    assert_eq!(alone.rounds(), [1, 2]);
    assert!(alone.answered().into_iter().all(|answer| failed(answer).is_some()));
}

#[test]
fn what_waits_for_the_next_connection_is_answered_if_the_draining_one_is_slow_but_never_silent() {
    let mut alone = Alone::ready(one());
    for number in 1..=4 {
        alone.submit(Action::Acquire, number);
    }
    alone.written();
    alone.pass(ms(40));
    alone.hear(b"+OK\r\n");
    // The others are overdue, so only the silence of the master still counts.
    alone.pass(ms(10));
    assert_eq!(alone.rounds(), [1, 2, 3, 4]);
    let Alone { connection, answers, now } = &mut alone;
    connection.renew(1, *now, answers);
    alone.submit(Action::Acquire, 5);
    for _ in 0..2 {
        alone.pass(ms(20));
        alone.hear(b"+OK\r\n");
    }
    assert!(!alone.rounds().contains(&5));
    alone.pass(ms(10));
    assert!(alone.rounds().contains(&5));
}

#[test]
fn a_paused_process_waits_for_a_draining_connection_since_it_has_written() {
    let mut alone = Alone::ready(one());
    alone.submit(Action::Acquire, 1);
    let Alone { connection, answers, now } = &mut alone;
    connection.renew(1, *now, answers);
    let written_at = *now + ms(60);
    assert!(connection.next_task(&mut Vec::new(), Some(written_at)).is_some());
    alone.pass(ms(60));
    assert_eq!(alone.connection.deadline(), Some(written_at + ms(50)));
    alone.pass(ms(40));
    assert_eq!(alone.rounds(), [0; 0], "the master has had 40 ms");
    alone.pass(ms(10));
    assert_eq!(alone.rounds(), [1]);
}

#[test]
fn no_acquisition_is_sent_behind_its_release_after_a_draining_connection_was_silent() {
    let mut alone = draining();
    alone.pass(ms(50));
    alone.submit(Action::Release, 2);
    // The first connection ends with a release of what is on its way.
    while alone.connection.has_task() {
        alone.written();
    }
    alone.connection.connected(2, None, alone.now);
    alone.written();
    alone.hear(&greeting(RELEASE.sha1_hex));
    assert!(alone.connection.is_ready());
    let mut expected = Vec::new();
    request(Action::Release, 2).encode(Form::BySha, None, &mut expected);
    assert_eq!(alone.written(), expected.escape_ascii().to_string());
}
