//! What `quorlock` prints, and what it never prints.

use quorlock_tests::{eventually, masters};

use crate::running::{JOB, SHOW, SOON, TELL, run, start};

/// The fields of a line that is one JSON object of strings and whole numbers.
fn fields(line: &str) -> Vec<(String, String)> {
    let mut rest =
        line.strip_prefix('{').and_then(|line| line.strip_suffix('}')).unwrap_or_else(|| panic!("{line}"));
    let mut fields = Vec::new();
    loop {
        let (name, after) = string(rest);
        let after = after.strip_prefix(':').unwrap_or_else(|| panic!("{line}"));
        let (value, after) = if after.starts_with('"') {
            string(after)
        } else {
            let end = after.find(|character: char| !character.is_ascii_digit()).unwrap_or(after.len());
            assert!(end > 0, "{line}");
            (after[..end].to_owned(), &after[end..])
        };
        fields.push((name, value));
        if after.is_empty() {
            return fields;
        }
        rest = after.strip_prefix(',').unwrap_or_else(|| panic!("{line}"));
    }
}

/// The string that `text` begins with, its escapes unchanged, and the rest.
fn string(text: &str) -> (String, &str) {
    let inner = text.strip_prefix('"').unwrap_or_else(|| panic!("{text}"));
    let mut escaped = false;
    let end = inner.find(|character: char| {
        assert!(!character.is_control(), "{text}");
        let ends = character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        ends
    });
    let end = end.unwrap_or_else(|| panic!("{text}"));
    (inner[..end].to_owned(), &inner[end + 1..])
}

/// The events of a run with JSON output, each with its level.
fn events(err: &str) -> Vec<(String, String)> {
    err.lines()
        .map(|line| {
            let fields = fields(line);
            let field = |wanted: &str| {
                let mut found = fields.iter().filter(|(name, _)| name == wanted);
                let field = found.next().unwrap_or_else(|| panic!("no {wanted} in {line}"));
                assert!(found.next().is_none(), "{wanted} twice in {line}");
                field.1.clone()
            };
            assert_eq!(field("resource"), JOB);
            assert!(!field("text").is_empty());
            (field("event"), field("level"))
        })
        .collect()
}

fn pairs(events: &[(&str, &str)]) -> Vec<(String, String)> {
    events.iter().map(|(event, level)| ((*event).to_owned(), (*level).to_owned())).collect()
}

#[test]
fn json_is_one_object_a_line() {
    let masters = masters(3);
    let ended = run(&masters, &["--json"], &["sh", "-c", "exit 2"]);
    assert_eq!(ended.code, Some(2));
    assert_eq!(
        events(&ended.err),
        pairs(&[("acquired", "info"), ("started", "info"), ("ended", "info"), ("released", "info")])
    );

    masters.iter().for_each(|master| assert!(master.set_nx(JOB, "x")));
    let refused = run(&masters, &["--json", "-n"], &SHOW);
    assert_eq!(events(&refused.err), pairs(&[("held_by_another", "error")]));

    masters[0].kill();
    masters[1].kill();
    let refused = run(&masters, &["--json", "-n"], &SHOW);
    assert_eq!(events(&refused.err), pairs(&[("no_quorum", "error")]));
}

#[test]
fn json_of_a_lost_lock_tells_why_the_command_was_ended() {
    let masters = masters(3);
    let ended = run(&masters, &["--json", "--ttl", "1500ms", "--no-renew"], &["sleep", "20"]);
    assert_eq!(ended.code, Some(75));
    let told = events(&ended.err);
    assert!(told.contains(&("runs_out".to_owned(), "error".to_owned())), "{told:?}");
}

#[test]
fn a_quiet_run_says_errors_only() {
    let masters = masters(3);
    let ended = run(&masters, &["-q"], &SHOW);
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(0), "runs\n", ""));
    let ended = run(&masters, &["-q", "--json"], &SHOW);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));

    masters.iter().for_each(|master| assert!(master.set_nx(JOB, "x")));
    let refused = run(&masters, &["-q", "-n"], &SHOW);
    assert_eq!((refused.code, refused.err.lines().count()), (Some(1), 1), "{}", refused.err);
}

#[test]
fn a_long_wait_says_nothing_in_a_pipe_until_it_is_over() {
    let masters = masters(3);
    masters.iter().for_each(|master| assert!(master.set_nx(JOB, "x")));
    let refused = run(&masters, &["-w", "2500ms"], &SHOW);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert_eq!(refused.err.lines().count(), 1, "{}", refused.err);
    assert!(!refused.err.contains(['\r', '\u{1b}']), "{:?}", refused.err);
}

#[test]
fn more_messages_are_printed_with_each_v() {
    let masters = masters(3);
    let lines = |options: &[&str]| run(&masters, options, &SHOW).err.lines().count();
    assert_eq!((lines(&[]), lines(&["-v"])), (0, 4));
    assert!(lines(&["-vv"]) >= 4);
}

#[test]
fn the_token_is_never_printed_in_messages() {
    let masters = masters(3);
    for options in [&["-vvv"][..], &["-vvv", "--json"]] {
        // All messages about a lock with a token: refused, ended in order, lost.
        let mut held = start(&masters, &[options, &["--ttl", "2s"]].concat(), &TELL);
        let token = held.first_line();
        assert_eq!(token.len(), 40);
        let refused = run(&masters, &[options, &["-n"]].concat(), &SHOW);
        assert_eq!(refused.code, Some(1), "{}", refused.err);
        assert!(!refused.err.contains(&token), "{}", refused.err);
        eventually(SOON, "the key is on every master", || masters.holding(JOB) == 3);
        assert!(masters[0].del(JOB) && masters[1].del(JOB));
        let lost = held.end_by_itself();
        assert_eq!(lost.code, Some(75), "{}", lost.err);
        assert!(!lost.err.contains(&token), "{}", lost.err);

        let mut held = start(&masters, options, &TELL);
        let token = held.first_line();
        let ended = held.end();
        assert_eq!(ended.code, Some(0));
        assert!(!ended.err.is_empty() && !ended.err.contains(&token), "{}", ended.err);
    }
}
