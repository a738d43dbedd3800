//! Numbers for grants, and locks that outlive masters.

use quorlock_tests::{Fleet, eventually_equals, masters};

use crate::running::{JOB, Running, SOON, TELL, acquire, call, exported, quorlock, run, start};

/// A command that prints its number.
const NUMBER: [&str; 3] = ["sh", "-c", "echo ${QUORLOCK_FENCE-none}"];

fn number(text: &str) -> u64 {
    text.trim().parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

/// The number of the next grant.
#[track_caller]
fn next(masters: &Fleet) -> u64 {
    let ended = run(masters, &["--fenced"], &NUMBER);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    number(&ended.out)
}

#[test]
fn the_number_rises_from_grant_to_grant() {
    let masters = masters(3);
    let mut last = 0;
    for _ in 0..3 {
        let fence = next(&masters);
        assert!(fence > last, "{fence} after {last}");

        let taken = call(&masters, &["acquire", "--fenced", "--json", JOB], None);
        assert_eq!(taken.code, Some(0), "{}", taken.err);
        last = number(&exported(&taken.out, "QUORLOCK_FENCE").unwrap());
        assert!(last > fence, "{last} after {fence}");
        assert!(taken.err.trim_end().ends_with(&format!(",\"fence\":{last}}}")), "{}", taken.err);
        let token = exported(&taken.out, "QUORLOCK_TOKEN");
        assert_eq!(call(&masters, &["release", JOB], token.as_deref()).code, Some(0));
    }
}

#[test]
fn an_unfenced_run_does_not_inherit_an_outer_fencing_number() {
    let masters = masters(3);
    for (options, expected) in [(&[][..], true), (&["--fenced"], false)] {
        let words = [&["run"], options, &[JOB, "--"], &NUMBER].concat();
        let mut command = quorlock(&words);
        command.env("QUORLOCK_MASTERS", masters.urls().join(",")).env("QUORLOCK_FENCE", "outer");
        let ended = Running::of(&mut command).end();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert_eq!(ended.out == "none\n", expected, "{}", ended.out);
        assert_ne!(ended.out, "outer\n");
    }
    let taken = call(&masters, &["acquire", JOB], None);
    assert!(taken.out.contains("unset QUORLOCK_FENCE;\n"), "{}", taken.out);
}

#[test]
fn an_extension_takes_its_number_along_to_masters_that_lost_it() {
    let masters = masters(3);
    let before = next(&masters);
    let taken = call(&masters, &["acquire", "--fenced", "--ttl", "1m", JOB], None);
    let [token, fence] = ["QUORLOCK_TOKEN", "QUORLOCK_FENCE"].map(|name| exported(&taken.out, name).unwrap());
    assert!(number(&fence) > before);
    let lost = masters.iter().filter(|master| master.del("quorlock:fence/{job}")).count();
    assert!(lost >= 2, "the number was on {lost} of 3 masters");

    let mut command = quorlock(&["extend", JOB]);
    command.env("QUORLOCK_MASTERS", masters.urls().join(","));
    let extended = Running::of(command.env("QUORLOCK_TOKEN", &token).env("QUORLOCK_FENCE", &fence)).end();

    assert_eq!((extended.code, extended.err.as_str()), (Some(0), ""));
    assert_eq!(call(&masters, &["release", JOB], Some(&token)).code, Some(0));
    assert!(next(&masters) > number(&fence));
}

#[test]
fn an_invalid_fencing_number_exits_with_64() {
    let masters = masters(1);
    let token = acquire(&masters, &["--ttl", "1m"]);
    let mut command = quorlock(&["extend", JOB]);
    command.env("QUORLOCK_MASTERS", masters.urls().join(",")).env("QUORLOCK_TOKEN", token);
    let refused = Running::of(command.env("QUORLOCK_FENCE", "seven")).end();
    assert_eq!(refused.code, Some(64), "{}", refused.err);
    assert!(refused.err.contains("QUORLOCK_FENCE"), "{}", refused.err);
}

#[test]
fn a_healing_lock_comes_back_to_masters_that_lost_it() {
    let masters = masters(3);
    let mut held = start(&masters, &["--heal", "--ttl", "3s"], &TELL);
    let token = held.first_line();
    for master in masters.iter() {
        eventually_equals(SOON, "the key is there", Some(token.clone()), || master.get(JOB));
        assert!(master.del(JOB));
        eventually_equals(SOON, "the key is back", Some(token.clone()), || master.get(JOB));
    }
    let ended = held.end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
}
