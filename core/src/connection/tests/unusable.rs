//! Replies that are no usable answers.

use super::discovery::guarded_greeting;
use super::*;
use crate::wire::ServerError;

#[test]
fn a_reply_that_cannot_answer_the_request_ends_the_connection() {
    for (action, reply) in [
        // A command without a script.
        (Action::Acquire, ":1"),
        (Action::Acquire, ":0"),
        (Action::Acquire, "*0"),
        (Action::Acquire, "$2\r\nOK"),
        // A script.
        (Action::Extend, "+OK"),
        (Action::Extend, "_"),
        (Action::Extend, ":2"),
        // Only a script of the restart guard reports a quarantine.
        (Action::Extend, "*2\r\n$4\r\nours\r\n:5"),
        (Action::Release, "+OK"),
    ] {
        let mut alone = Alone::ready(one());
        alone.submit(action, 1);
        alone.hear(format!("{reply}\r\n").as_bytes());
        assert_eq!(alone.connection.fault(), Some(Cause::UnexpectedReply), "{action:?}: {reply}");
        let answered: Vec<_> = alone.answered().into_iter().map(failed).collect();
        assert_eq!(answered, [Some((Cause::UnexpectedReply, Fate::Unknown))], "{action:?}: {reply}");
    }
}

#[test]
fn an_error_about_one_of_several_targets_is_reported_with_its_index() {
    let targets = Targets::new("", ["a", "b"].map(Target::write)).unwrap();
    let wrong_type = Cause::Server(ServerError::WrongType);
    for (end, cause) in [
        (" (target 2)", Cause::OtherType { target: 1 }),
        ("", wrong_type),
        (" (target 0)", wrong_type),
        (" (target x)", wrong_type),
    ] {
        let mut alone = Alone::ready(one());
        let claim = Claim::new(&targets, Token::from_bytes([1; Token::BYTES]), false, None);
        let request = Request { claim, ..request(Action::Acquire, 1) };
        alone.connection.submit(&request, &mut Wording::default(), alone.now, &mut alone.answers);
        alone.hear(format!("-WRONGTYPE A key holds another kind of value{end}\r\n").as_bytes());
        assert_eq!(failed(alone.answered()[0]), Some((cause, Fate::Unknown)), "{end}");
    }
}

#[test]
fn a_check_of_the_marker_that_calls_an_unknown_command_is_reported_with_its_name() {
    let mut alone = Alone::greeting(one().restart_guard(ms(10_000)));
    alone.hear(&guarded_greeting());
    alone.hear(b"-ERR unknown command 'EVAL', with args beginning with: 'x' \r\n");
    assert_eq!(alone.connection.fault(), Some(Cause::LacksCommand("EVAL")));
}

#[test]
fn only_a_server_that_ends_the_connection_without_any_answer_has_hung_up() {
    for (heard, cause) in [
        ("", Cause::HungUp),
        ("%1\r\n$4\r\n", Cause::Closed),
        ("%1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n", Cause::Closed),
    ] {
        let mut alone = Alone::greeting(one());
        alone.hear(heard.as_bytes());
        let Alone { connection, answers, now } = &mut alone;
        connection.closed(1, Cause::Closed, *now, answers);
        assert_eq!(connection.fault(), Some(cause), "{heard}");
    }
}
