//! One connection alone: what it answers and how often, and how much it keeps.

mod answering;
mod clearing;
mod cluster;
mod confirming;
mod deadlines;
mod discovery;
mod draining;
mod idle;
mod native;
mod parting;
mod pushes;
mod quarantined;
mod queueing;
mod tracking;
mod unusable;

use std::time::Duration;

use super::wording::Form;
use super::*;
use crate::protocol::{
    Action, Answer, Claim, ConfigBuilder, Fate, LockId, Resource, Target, Targets, Ticket, Token, Ttl,
};
use crate::wire::{RELEASE, UNDO};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

struct Alone {
    connection: Connection,
    answers: Answers,
    now: Instant,
}

impl Alone {
    /// A connection that waits for the master's first reply.
    fn greeting(settings: ConfigBuilder) -> Self {
        let config = settings.build().unwrap();
        let id = config.master_ids().next().unwrap();
        let now = Instant::from_nanos(1);
        let mut connection = Connection::new(Arc::new(config), id, Jitter::new(1), now);
        let task = connection.next_task(&mut Vec::new(), None);
        assert!(matches!(task, Some(DriverTask::Open { generation: 1, .. })));
        connection.connected(1, None, now);
        assert_eq!(connection.next_task(&mut Vec::new(), None), Some(DriverTask::Write { generation: 1 }));
        assert!(!connection.has_task());
        Self { connection, answers: Answers::default(), now }
    }

    fn ready(settings: ConfigBuilder) -> Self {
        let mut alone = Self::greeting(settings);
        alone.hear(&greeting(RELEASE.sha1_hex));
        assert!(alone.connection.is_ready());
        alone
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.connection.received(self.connection.generation, bytes, self.now, &mut self.answers);
    }

    fn submit(&mut self, action: Action, number: u8) {
        let request = request(action, number);
        self.connection.submit(&request, &mut Wording::default(), self.now, &mut self.answers);
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
        self.connection.time_passed(self.now, self.now, &mut self.answers);
    }

    /// The answers since the last look.
    fn answered(&mut self) -> Vec<Answer> {
        std::iter::from_fn(|| self.answers.next())
            .filter_map(|(_, upward)| as_answer(&upward))
            .map(|(_, answer)| answer)
            .collect()
    }

    /// The rounds that were answered since the last look at the answers.
    fn rounds(&self) -> Vec<u32> {
        let mut answers = self.answers.clone();
        std::iter::from_fn(|| answers.next())
            .filter_map(|(_, upward)| as_answer(&upward))
            .map(|(ticket, _)| ticket.round)
            .collect()
    }

    fn written(&mut self) -> String {
        let mut bytes = Vec::new();
        self.connection.next_task(&mut bytes, None);
        bytes.escape_ascii().to_string()
    }
}

fn one() -> ConfigBuilder {
    Config::builder(["redis://a"]).request_timeout(ms(50))
}

/// All replies of a handshake in RESP 3, with this answer to the first script. There is no marker
/// of the restart guard.
fn greeting(first_sha: &str) -> Vec<u8> {
    format!("{}_\r\n", greeting_until_the_scripts(first_sha)).into_bytes()
}

fn greeting_until_the_scripts(first_sha: &str) -> String {
    let mut replies = "%1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$0\r\n\r\n$0\r\n\r\n".to_owned();
    replies += "-ERR unknown subcommand 'SETINFO'\r\n+OK\r\n*0\r\n-NOSCRIPT x\r\n";
    for sha in [first_sha, crate::wire::EXTEND.sha1_hex, UNDO.sha1_hex] {
        replies += &format!("$40\r\n{sha}\r\n");
    }
    replies
}

/// A request whose token and round are this number.
fn request(action: Action, number: u8) -> Request {
    let (resource, ttl) = (Resource::new("r").unwrap(), Ttl::new(ms(10_000)).unwrap());
    let lock = LockId { index: 0, generation: 0 };
    let claim = Claim::new(&resource.into(), Token::from_bytes([number; Token::BYTES]), false, None);
    Request::new(Some(Ticket { lock, round: u32::from(number) }), action, claim, ttl)
}

fn as_answer(upward: &Upward) -> Option<(Ticket, Answer)> {
    match upward {
        Upward::Answer(ticket, answer) => Some((*ticket, *answer)),
        Upward::Told(..) | Upward::News(_) => None,
    }
}

fn failed(answer: Answer) -> Option<(Cause, Fate)> {
    match answer {
        Answer::Failed { cause, fate, .. } => Some((cause, fate)),
        _ => None,
    }
}

const SIGN_OF_LIFE: &[u8] = b">1\r\n+push\r\n";

#[test]
fn a_request_that_was_reported_as_unanswered_is_not_reported_again_when_the_connection_ends() {
    let mut alone = Alone::ready(one());
    alone.submit(Action::Acquire, 1);
    alone.pass(ms(30));
    alone.submit(Action::Acquire, 2);
    alone.hear(SIGN_OF_LIFE);
    alone.pass(ms(20));
    let no_answer = Cause::NoAnswer { waited: ms(50) };
    assert_eq!(
        alone.answered().into_iter().map(failed).collect::<Vec<_>>(),
        [Some((no_answer, Fate::Unknown))]
    );
    let Alone { connection, answers, now } = &mut alone;
    connection.closed(1, Cause::Closed, *now, answers);
    let rounds = alone.rounds();
    assert_eq!(rounds, [2]);
    assert_eq!(failed(alone.answered()[0]), Some((Cause::Closed, Fate::Unknown)));
}

#[test]
fn an_unanswered_request_is_reported_again_once_its_release_is_written() {
    let mut alone = Alone::ready(one());
    alone.submit(Action::Acquire, 1);
    alone.pass(ms(30));
    alone.hear(SIGN_OF_LIFE);
    alone.pass(ms(20));
    assert_eq!(alone.answered().len(), 1);
    alone.pass(ms(30));
    let silent = Cause::NoAnswer { waited: ms(80) };
    assert_eq!(alone.answered().into_iter().map(failed).collect::<Vec<_>>(), [Some((silent, Fate::Undone))]);
}

#[test]
fn parting_releases_are_written_only_for_acquisitions_without_a_release() {
    let mut alone = Alone::ready(one());
    for number in 1..=3 {
        alone.submit(Action::Acquire, number);
    }
    alone.submit(Action::Undo, 2);
    alone.submit(Action::Extend, 1);
    alone.written();
    alone.pass(ms(50));
    let parting = alone.written();
    let mut expected = Vec::new();
    request(Action::Release, 1).encode(Form::ByText, None, &mut expected);
    request(Action::Release, 3).encode(Form::BySha, None, &mut expected);
    assert_eq!(parting, expected.escape_ascii().to_string());
}

#[test]
fn requests_and_bytes_in_flight_are_bounded_and_releases_have_twice_the_limit() {
    let [size, release] = [Action::Acquire, Action::Release].map(|action| {
        let (mut wording, request) = (Wording::default(), request(action, 1));
        wording.script(&request, None);
        wording.of(&request, Form::BySha).len()
    });
    for (settings, acquisitions, releases) in [
        (one().max_in_flight_requests(3), 3, 3),
        (one().max_in_flight_bytes(3 * size), 3, (3 * size).div_ceil(release)),
        (one().max_in_flight_bytes(3 * size + 1), 4, (2 * size + 2).div_ceil(release)),
    ] {
        let mut alone = Alone::ready(settings);
        (0..10).for_each(|number| alone.submit(Action::Acquire, number));
        assert_eq!(alone.connection.flight.requests(), acquisitions);
        (0..10).for_each(|number| alone.submit(Action::Release, number));
        assert_eq!(alone.connection.flight.requests(), acquisitions + releases);
        // Each reply makes the room that its request took.
        alone.answers = Answers::default();
        (0..acquisitions).for_each(|_| alone.hear(b"+OK\r\n"));
        let flight = &alone.connection.flight;
        assert_eq!(flight.bytes, flight.requests() * release);
        while !alone.connection.flight.is_empty() {
            alone.hear(b":1\r\n");
        }
        assert_eq!((alone.connection.flight.bytes, alone.connection.debts.len()), (0, 0));
    }
}

#[test]
fn owed_releases_are_bounded_and_the_newest_are_kept() {
    let mut alone = Alone::ready(one().max_in_flight_requests(2));
    let Alone { connection, answers, now } = &mut alone;
    connection.closed(1, Cause::Server(crate::wire::ServerError::Loading), *now, answers);
    (1..=3).for_each(|number| alone.submit(Action::Release, number));
    let owed: Vec<_> = alone.connection.debts.iter().map(|debt| debt.request.claim.clone()).collect();
    assert_eq!(owed, [request(Action::Release, 2).claim, request(Action::Release, 3).claim]);
}

#[test]
fn a_release_takes_back_only_its_own_acquisition_while_both_wait_for_the_connection() {
    let mut alone = Alone::greeting(one());
    alone.submit(Action::Acquire, 1);
    alone.submit(Action::Extend, 2);
    alone.submit(Action::Acquire, 2);
    alone.submit(Action::Release, 2);
    let left: Vec<_> = alone.connection.queued.iter().map(|queued| queued.request.action).collect();
    assert_eq!(left, [Action::Acquire, Action::Extend]);
    assert_eq!(alone.connection.queued[0].request.claim, request(Action::Acquire, 1).claim);
    assert_eq!(alone.answered(), [Answer::No]);
}

#[test]
fn an_undo_waits_behind_its_acquisition_and_is_not_owed_if_neither_was_sent() {
    let mut alone = Alone::greeting(one());
    alone.submit(Action::Acquire, 1);
    alone.submit(Action::Undo, 1);
    assert!(alone.answered().is_empty());
    let Alone { connection, answers, now } = &mut alone;
    connection.closed(1, Cause::Closed, *now, answers);
    let unsent = Answer::Failed { cause: Cause::HungUp, fate: Fate::NotSent, stale: false };
    assert_eq!(alone.answered(), [unsent; 2]);
    assert!(alone.connection.debts.is_empty());
}

#[test]
fn a_connection_counts_as_in_flight_while_an_owed_release_may_soon_be_sent() {
    let mut alone = Alone::ready(one());
    assert!(!alone.connection.is_in_flight());
    alone.submit(Action::Acquire, 1);
    alone.hear(b"+OK\r\n");
    alone.submit(Action::Release, 1);
    assert!(alone.connection.is_in_flight());
    let Alone { connection, answers, now } = &mut alone;
    connection.closed(1, Cause::Closed, *now, answers);
    assert!(alone.connection.is_in_flight(), "it carried an answer, so the next one is hoped for");
    let Alone { connection, answers, now } = &mut alone;
    connection.closed(2, Cause::UnknownHost, *now, answers);
    assert!(!alone.connection.is_in_flight());
}

#[test]
fn noscript_in_reply_to_a_plain_command_is_a_failed_answer() {
    let mut alone = Alone::ready(one());
    alone.submit(Action::Acquire, 1);
    alone.written();
    alone.hear(b"-NOSCRIPT x\r\n");
    let no_script = Cause::Server(crate::wire::ServerError::NoScript);
    assert_eq!(
        alone.answered().into_iter().map(failed).collect::<Vec<_>>(),
        [Some((no_script, Fate::Unknown))]
    );
    assert!(!alone.connection.has_task() && alone.connection.debts.is_empty());
}

#[test]
fn repeated_scripts_have_their_own_deadlines_behind_later_requests() {
    let mut alone = Alone::ready(one());
    alone.submit(Action::Extend, 1);
    alone.pass(ms(10));
    alone.submit(Action::Extend, 2);
    alone.pass(ms(10));
    alone.submit(Action::Acquire, 3);
    alone.hear(b"-NOSCRIPT x\r\n-NOSCRIPT x\r\n");
    alone.pass(ms(29));
    alone.hear(SIGN_OF_LIFE);
    assert_eq!(alone.answered(), []);
    for (later, round) in [(1, 1), (10, 2), (10, 3)] {
        assert_eq!(alone.connection.deadline(), Some(alone.now + ms(later)), "round {round}");
        alone.pass(ms(later));
        let rounds = alone.rounds();
        assert_eq!(rounds, [round]);
        let no_answer = Cause::NoAnswer { waited: ms(50) };
        let reported: Vec<_> = alone.answered().into_iter().map(failed).collect();
        assert_eq!(reported, [Some((no_answer, Fate::Unknown))]);
        alone.hear(SIGN_OF_LIFE);
    }
    // All are reported, and each reply still finds its own request.
    alone.hear(b"+OK\r\n:1\r\n:0\r\n");
    assert_eq!(alone.answered(), [Answer::Yes, Answer::Yes, Answer::No]);
    assert!(
        alone.connection.flight.is_empty() && alone.connection.flight.deadline(ms(50), alone.now).is_none()
    );
}

#[test]
fn the_answer_to_a_repeated_script_leaves_other_deadlines_unchanged() {
    let mut alone = Alone::ready(one());
    alone.submit(Action::Extend, 1);
    alone.pass(ms(10));
    alone.submit(Action::Acquire, 2);
    alone.hear(b"-NOSCRIPT x\r\n");
    alone.submit(Action::Acquire, 3);
    alone.hear(b"+OK\r\n:1\r\n");
    assert_eq!(alone.answered(), [Answer::Yes, Answer::Yes]);
    assert_eq!(alone.connection.deadline(), Some(alone.now + ms(50)));
}

#[test]
fn a_script_that_the_server_does_not_say_it_has_loaded_is_sent_as_text() {
    let replies = |loaded: &str| {
        let replies = String::from_utf8(greeting(RELEASE.sha1_hex)).unwrap();
        replies.replace(&format!("$40\r\n{}\r\n", RELEASE.sha1_hex), loaded).into_bytes()
    };
    for loaded in ["+OK\r\n", "_\r\n", ":1\r\n", "*0\r\n", "-ERR not supported here\r\n", "$2\r\nno\r\n"] {
        let mut alone = Alone::greeting(one());
        alone.hear(&replies(loaded));
        assert!(alone.connection.is_ready(), "{loaded}: {:?}", alone.connection.fault());
        alone.submit(Action::Release, 1);
        alone.submit(Action::Extend, 1);
        let mut expected = Vec::new();
        request(Action::Release, 1).encode(Form::ByText, None, &mut expected);
        request(Action::Extend, 1).encode(Form::BySha, None, &mut expected);
        assert_eq!(alone.written(), expected.escape_ascii().to_string(), "{loaded}");
    }
    // Some servers report it as a simple string.
    let mut alone = Alone::greeting(one());
    alone.hear(&replies(&format!("+{}\r\n", RELEASE.sha1_hex)));
    assert!(alone.connection.is_ready());
    alone.submit(Action::Release, 1);
    assert!(alone.written().contains("EVALSHA"));
}

#[test]
fn a_server_without_a_command_of_a_plain_lock_grants_nothing() {
    for (known, name) in [
        ("*1\r\n$3\r\nDEL\r\n-NOSCRIPT x\r\n", "DEL"),
        ("*2\r\n$4\r\nZADD\r\n$3\r\nGET\r\n-NOSCRIPT x\r\n", "GET"),
        ("*0\r\n-ERR unknown command 'EVALSHA', with args beginning with: '0'\r\n", "EVALSHA"),
        ("-ERR unknown command 'EVAL', with args beginning with: 'x'\r\n-NOSCRIPT x\r\n", "EVAL"),
    ] {
        let mut alone = Alone::greeting(one());
        alone.submit(Action::Acquire, 1);
        let greeting = String::from_utf8(greeting(RELEASE.sha1_hex)).unwrap();
        alone.hear(greeting.replace("*0\r\n-NOSCRIPT x\r\n", known).as_bytes());
        assert_eq!(alone.connection.fault(), Some(Cause::LacksCommand(name)));
        let refused = alone.answered().into_iter().map(failed).collect::<Vec<_>>();
        assert_eq!(refused, [Some((Cause::LacksCommand(name), Fate::NotSent))]);
    }
}

#[test]
fn a_server_that_refuses_to_tell_what_it_knows_votes() {
    for known in ["-NOPERM x\r\n-NOPERM x\r\n", "-ERR wrong number of keys\r\n+OK\r\n", "$1\r\nx\r\n_\r\n"] {
        let mut alone = Alone::greeting(one());
        let greeting = String::from_utf8(greeting(RELEASE.sha1_hex)).unwrap();
        alone.hear(greeting.replace("*0\r\n-NOSCRIPT x\r\n", known).as_bytes());
        assert!(alone.connection.is_ready(), "{known}");
    }
}

#[test]
fn a_command_that_another_kind_lacks_is_named_at_its_first_use() {
    let mut alone = Alone::greeting(one());
    let greeting = String::from_utf8(greeting(RELEASE.sha1_hex)).unwrap();
    alone.hear(greeting.replace("*0\r\n-NOSCRIPT x\r\n", "*1\r\n$4\r\nMGET\r\n-NOSCRIPT x\r\n").as_bytes());
    assert!(alone.connection.is_ready());
    let targets = Targets::new("", ["a", "b"].map(Target::write)).unwrap();
    let claim = Claim::new(&targets, Token::from_bytes([1; Token::BYTES]), false, None);
    let request = Request { claim, ..request(Action::Acquire, 1) };
    let Alone { connection, answers, now } = &mut alone;
    connection.submit(&request, &mut Wording::default(), *now, answers);
    alone.hear(b"-ERR Unknown Redis command called from script script: 0, on @user_script:1.\r\n");
    let refused = alone.answered().into_iter().map(failed).collect::<Vec<_>>();
    assert_eq!(refused, [Some((Cause::LacksCommand("MGET"), Fate::Unknown))]);
}

#[test]
fn after_garbage_a_connection_is_not_reopened_at_once_even_if_it_carried_an_answer() {
    let mut alone = Alone::ready(one());
    alone.submit(Action::Acquire, 1);
    alone.hear(b"+OK\r\n");
    alone.hear(b"garbage\r\n");
    assert!(matches!(alone.connection.state, State::Resting { until } if until > alone.now));
}

#[test]
fn a_large_read_buffer_is_freed_after_use_and_a_small_one_is_kept() {
    for (payload, kept) in [(100, true), (8 * 1024, true), (60 * 1024, false)] {
        let mut alone = Alone::ready(one());
        let mut push = format!(">1\r\n${payload}\r\n").into_bytes();
        push.resize(push.len() + payload, b'x');
        alone.hear(&push);
        assert_eq!(alone.connection.inbound.len(), push.len());
        alone.hear(b"\r\n");
        assert!(alone.connection.is_ready() && alone.connection.inbound.is_empty());
        assert_eq!(alone.connection.inbound.capacity() > payload, kept, "{payload} bytes");
        // The beginning of an incomplete reply is kept.
        alone.hear(&push);
        alone.hear(b"\r\n>1\r\n+pu");
        alone.submit(Action::Acquire, 1);
        alone.hear(b"sh\r\n+OK\r\n");
        assert_eq!(alone.answered(), [Answer::Yes]);
    }
}

#[test]
fn a_large_write_buffer_is_freed_after_use_and_a_small_one_is_kept() {
    let most = KEPT_OUTBOUND_BYTES;
    for (capacity, kept) in [(1, true), (most, true), (most + 1, false)] {
        let mut alone = Alone::ready(one());
        alone.submit(Action::Acquire, 1);
        let mut written = Vec::with_capacity(capacity);
        assert!(alone.connection.next_task(&mut written, None).is_some() && !written.is_empty());
        assert_eq!(alone.connection.outbound.capacity() > 0, kept, "{capacity} bytes");
    }
}

#[test]
fn a_late_clock_reading_reports_the_timeouts_that_were_due() {
    // The process may have been stopped, so silence is looked at once more.
    let mut alone = Alone::ready(one());
    alone.submit(Action::Acquire, 1);
    alone.pass(ms(500));
    assert_eq!(alone.answered(), []);
    alone.pass(alone.connection.grace());
    assert_eq!(alone.answered().len(), 1);
    let mut alone = Alone::greeting(one());
    alone.submit(Action::Acquire, 1);
    alone.pass(ms(500));
    assert_eq!(alone.answered().len(), 1);
}

#[test]
fn a_connection_has_served_from_its_greeting_until_the_next_connection_opens() {
    let mut alone = Alone::greeting(one());
    assert!(!alone.connection.has_served());
    alone.hear(&greeting(RELEASE.sha1_hex));
    assert!(alone.connection.has_served());
    alone.connection.closed(1, Cause::Closed, alone.now, &mut alone.answers);
    assert!(alone.connection.has_served() && !alone.connection.is_ready());
    alone.pass(ms(3_000));
    let generation = alone.connection.generation;
    alone.connection.connected(generation, None, alone.now);
    assert!(!alone.connection.has_served());
    // A replica answers, so another address of the name may work better.
    alone.hear(b"%1\r\n$4\r\nrole\r\n$7\r\nreplica\r\n");
    assert!(!alone.connection.has_served());
}
