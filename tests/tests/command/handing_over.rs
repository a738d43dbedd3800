//! `quorlock acquire`, `extend` and `release`: a lock that a script holds.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use quorlock_tests::{Fleet, eventually, masters};
use rustix::process::Signal;

use crate::binary;
use crate::running::{Ended, JOB, Running, SHOW, SOON, acquire, assert_free, call, exported, quorlock, run};

/// Runs a script for a POSIX shell over these masters. `$QUORLOCK` is the command.
#[track_caller]
fn shell(masters: &Fleet, script: &str, argument: &str) -> Ended {
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", argument]);
    command.env("QUORLOCK", binary::quorlock()).env("QUORLOCK_MASTERS", masters.urls().join(","));
    // These variables are set as if another lock had been taken before.
    command.env("QUORLOCK_RESOURCE", "other").env("QUORLOCK_TOKEN", "other").env("QUORLOCK_FENCE", "9");
    Running::of(&mut command).end()
}

/// Takes the lock for a minute, on every master, although `quorlock acquire` waits only for a
/// quorum. Returns the token.
#[track_caller]
fn acquire_everywhere(masters: &Fleet) -> String {
    let token = acquire(masters, &["--ttl", "1m"]);
    for master in masters.iter() {
        master.command(&["SET", JOB, &token, "PX", "60000", "NX"]);
    }
    token
}

#[test]
fn a_lock_that_was_acquired_stays_until_its_token_releases_it() {
    let masters = masters(3);
    let token = acquire(&masters, &["--ttl", "1m"]);
    let ours = masters.get(JOB).iter().filter(|held| held.as_deref() == Some(&token)).count();
    assert!(ours >= 2, "the key is on {ours} of 3 masters");
    assert_eq!(run(&masters, &["-n"], &SHOW).code, Some(1));

    let released = call(&masters, &["release", JOB], Some(&token));

    assert_eq!((released.code, released.out.as_str(), released.err.as_str()), (Some(0), "", ""));
    assert_free(&masters);
    assert_eq!(run(&masters, &["-n"], &SHOW).code, Some(0));
}

#[test]
fn a_second_acquisition_is_refused_with_the_exit_code_of_a_conflict() {
    let masters = masters(3);
    acquire(&masters, &["--ttl", "1m"]);
    for (options, code) in [(&["-n"][..], 1), (&["-n", "-E", "42"], 42), (&["-w", "200ms", "-E43"], 43)] {
        let refused = call(&masters, &[&["acquire"], options, &[JOB]].concat(), None);
        assert_eq!((refused.code, refused.out.as_str()), (Some(code), ""), "{}", refused.err);
        assert!(refused.err.contains("held by another"), "{}", refused.err);
    }
}

#[test]
fn a_shell_evaluates_what_acquire_prints() {
    let masters = masters(3);
    let script = r#"
        lock=$("$QUORLOCK" acquire --ttl 1m "$1") || exit
        eval "$lock"
        test "$QUORLOCK_RESOURCE" = "$1" && test "${QUORLOCK_FENCE-none}" = none || exit 2
        "$QUORLOCK" acquire -n "$1" && exit 3
        "$QUORLOCK" extend --ttl 2m "$QUORLOCK_RESOURCE" || exit
        "$QUORLOCK" release "$QUORLOCK_RESOURCE" && env | grep -c ^QUORLOCK_TOKEN="#;
    for name in [JOB, "it's", "a b  c", "$HOME `x` $(y) \\ \" ; &", "über uns: *"] {
        let ended = shell(&masters, script, name);
        assert_eq!((ended.code, ended.out.as_str()), (Some(0), "1\n"), "{name}: {}", ended.err);
    }

    let without_quotes = r#"
        eval $("$QUORLOCK" acquire --fenced --ttl 1m "$1") &&
        "$QUORLOCK" extend "$1" && "$QUORLOCK" release "$1" && echo "$QUORLOCK_RESOURCE $QUORLOCK_FENCE""#;
    let ended = shell(&masters, without_quotes, JOB);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    assert!(ended.out.starts_with("job ") && !ended.out.contains(" 9\n"), "{}", ended.out);

    let odd = r#"
        lock=$("$QUORLOCK" acquire --ttl 1m "$1") || exit
        eval "$lock"
        echo "${QUORLOCK_RESOURCE-none}" && "$QUORLOCK" release "$1""#;
    let ended = shell(&masters, odd, "a\tb");
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "none\n"), "{}", ended.err);

    assert!(masters[0].set_nx(JOB, "x") && masters[1].set_nx(JOB, "x"));
    let refused = shell(&masters, "lock=$(\"$QUORLOCK\" acquire -n -E 7 \"$1\") || exit; echo runs", JOB);
    assert_eq!((refused.code, refused.out.as_str()), (Some(7), ""), "{}", refused.err);
}

#[test]
fn two_locks_of_one_script_do_not_overwrite_each_other() {
    let masters = masters(3);
    for (first, second) in [(JOB, "invoice:42"), ("a b", "a_20b")] {
        let script = format!(
            r#"
            eval "$("$QUORLOCK" acquire --ttl 1m --fenced '{first}')"
            eval "$("$QUORLOCK" acquire --ttl 1m '{second}')"
            "$QUORLOCK" status '{first}' | grep -c ': ours on ' && "$QUORLOCK" status '{second}' | grep -c ': ours on ' || exit 2
            "$QUORLOCK" extend --ttl 2m '{first}' && "$QUORLOCK" extend --ttl 2m '{second}' || exit 3
            "$QUORLOCK" release '{first}' && "$QUORLOCK" release '{second}' || exit 4"#
        );
        let ended = shell(&masters, &script, "");
        assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(0), "1\n1\n", ""));
        for name in [first, second] {
            assert!(masters.iter().all(|master| !master.exists(name)), "{name}");
        }
    }

    // Each lock has its own number, or none without `--fenced`.
    let script = r#"
        eval "$("$QUORLOCK" acquire --ttl 1m --fenced one)"
        eval "$("$QUORLOCK" acquire --ttl 1m two)"
        test -n "$QUORLOCK_FENCE_one" && test -z "$QUORLOCK_FENCE_two$QUORLOCK_FENCE" || exit 2
        test "$QUORLOCK_TOKEN_two" = "$QUORLOCK_TOKEN" && test "$QUORLOCK_TOKEN_one" != "$QUORLOCK_TOKEN""#;
    let ended = shell(&masters, script, "");
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

#[test]
fn a_run_within_a_run_keeps_the_variables_of_the_outer_one() {
    let masters = masters(3);
    let script = r#""$QUORLOCK" run --fenced outer -- "$QUORLOCK" run inner -- sh -c '
        for lock in outer inner; do "$QUORLOCK" status $lock | grep -c ": ours on "; done
        test "$QUORLOCK_RESOURCE" = inner && test "$QUORLOCK_TOKEN" = "$QUORLOCK_TOKEN_inner" || exit 2
        test -z "$QUORLOCK_FENCE$QUORLOCK_FENCE_inner" && test -n "$QUORLOCK_FENCE_outer" || exit 3
        "$QUORLOCK" extend outer && "$QUORLOCK" extend inner'"#;
    let ended = shell(&masters, script, "");
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "1\n1\n"), "{}", ended.err);
}

#[test]
fn a_lock_whose_token_cannot_be_printed_is_released() {
    let masters = masters(3);
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(ours);
    let mut command = quorlock(&["acquire", "--ttl", "1m", JOB]);
    command.env("QUORLOCK_MASTERS", masters.urls().join(","));
    command.stdin(Stdio::null()).stdout(OwnedFd::from(theirs)).stderr(Stdio::piped());

    let ended = command.spawn().unwrap().wait_with_output().unwrap();

    let err = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(74), "{err}");
    assert!(err.contains("job is released") && err.lines().count() == 1, "{err}");
    assert_free(&masters);
}

#[test]
fn a_signal_ends_the_wait_and_leaves_no_key() {
    let masters = masters(3);
    assert!(masters[0].set_nx(JOB, "x") && masters[1].set_nx(JOB, "x"));
    let mut command = quorlock(&["acquire", JOB]);
    let waiting = Running::of(command.env("QUORLOCK_MASTERS", masters.urls().join(",")));
    eventually(SOON, "it has come", || masters[0].connected_clients() == 1);
    waiting.signal(Signal::TERM);
    let ended = waiting.end_by_itself();
    assert_eq!((ended.code, ended.out.as_str()), (Some(143), ""), "{}", ended.err);
    assert_free(&masters[2..]);
}

#[test]
fn an_extension_moves_the_end_and_says_nothing() {
    let masters = masters(3);
    let token = acquire_everywhere(&masters);

    let extended = call(&masters, &["extend", "--ttl", "10m", JOB], Some(&token));

    assert_eq!((extended.code, extended.out.as_str(), extended.err.as_str()), (Some(0), "", ""));
    let longer = || masters.iter().filter(|master| master.pttl(JOB) > 60_000).count();
    assert!(longer() >= 2, "{} of 3 keys live longer", longer());
    assert_eq!(masters.get(JOB), vec![Some(token.clone()); 3]);

    let shorter = call(&masters, &["extend", "-v", "--ttl", "1m", JOB], Some(&token));
    assert_eq!((shorter.code, shorter.err.as_str()), (Some(0), "quorlock: extended job\n"));
    assert!(longer() >= 2, "{} of 3 keys live longer", longer());
    let told = call(&masters, &["extend", "--json", JOB], Some(&token)).err;
    assert!(told.starts_with("{\"event\":\"extended\",\"level\":\"info\","), "{told}");
    assert!(told.contains(",\"resource\":\"job\",\"valid_ms\":"), "{told}");
}

#[test]
fn a_lock_that_is_gone_or_held_by_another_exits_with_75_and_stays_as_it_is() {
    let masters = masters(3);
    let token = acquire_everywhere(&masters);
    assert!(masters[0].del(JOB) && masters[2].del(JOB) && masters[2].set_nx(JOB, "x"));

    for subcommand in ["extend", "release", "extend", "release"] {
        let ended = call(&masters, &[subcommand, JOB], Some(&token));
        assert_eq!((ended.code, ended.out.as_str()), (Some(75), ""), "{subcommand}: {}", ended.err);
        assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
        assert!(ended.err.starts_with(&format!("quorlock: job not {subcommand}")), "{}", ended.err);
        assert!(!ended.err.contains(&token), "{}", ended.err);
    }
    assert_free(&masters[..2]);
    assert_eq!(masters[2].get(JOB).as_deref(), Some("x"));
}

#[test]
fn a_second_release_exits_with_75() {
    let masters = masters(3);
    let token = acquire(&masters, &["--ttl", "1m"]);
    let told = call(&masters, &["release", "-v", JOB], Some(&token));
    assert_eq!((told.code, told.err.as_str()), (Some(0), "quorlock: released job\n"));
    let again = call(&masters, &["release", "--json", JOB], Some(&token));
    assert_eq!(again.code, Some(75), "{}", again.err);
    assert!(again.err.starts_with("{\"event\":\"lost\",\"level\":\"error\","), "{}", again.err);
}

#[test]
fn too_few_masters_exit_with_69_and_a_dead_minority_makes_no_difference() {
    let masters = masters(3);
    let token = acquire_everywhere(&masters);
    masters[0].kill();
    assert_eq!(call(&masters, &["extend", "--ttl", "2m", JOB], Some(&token)).code, Some(0));
    masters[1].kill();
    for words in [&["acquire", "-n", "other"][..], &["extend", JOB], &["release", JOB]] {
        let ended = call(&masters, words, Some(&token));
        assert_eq!((ended.code, ended.out.as_str()), (Some(69), ""), "{words:?}: {}", ended.err);
        assert!(ended.err.contains("connection refused"), "{words:?}: {}", ended.err);
        assert!(!ended.err.contains(&token), "{words:?}: {}", ended.err);
    }
}

#[test]
fn invalid_arguments_exit_with_64_and_no_secret_is_shown() {
    let masters = Fleet::start(3, |options, _| options.password("right"));
    let token = "0123456789".repeat(4);
    let said = |words: &[&str], token: Option<&str>| {
        let ended = call(&masters, words, token);
        assert_eq!((ended.code, ended.out.as_str()), (Some(64), ""), "{words:?}: {}", ended.err);
        assert!(!ended.err.contains("hunter2") && !ended.err.contains("0123456789"), "{}", ended.err);
        ended.err
    };
    for subcommand in ["extend", "release"] {
        assert!(said(&[subcommand, JOB], None).contains("QUORLOCK_TOKEN is not set"));
        assert!(said(&[subcommand, JOB], Some("")).contains("QUORLOCK_TOKEN is not set"));
        assert!(said(&[subcommand, JOB], token.get(1..)).contains("40 hexadecimal digits"));
        assert!(said(&[subcommand, JOB, &token], Some(&token)).contains("QUORLOCK_TOKEN"));
        assert!(said(&[subcommand], Some(&token)).contains("RESOURCE is missing"));
        assert!(said(&[subcommand, "quorlock:fence/x"], Some(&token)).contains("another name"));
    }
    assert!(said(&["acquire", JOB, "true"], None).contains("use quorlock run"));
    assert!(said(&["acquire", "--heal", JOB], None).contains("an option of run"));
    for subcommand in ["acquire", "extend", "release"] {
        let mut words = vec![subcommand];
        let urls: Vec<_> =
            masters.iter().map(|master| format!("-mredis://:hunter2@{}", master.address())).collect();
        words.extend(urls.iter().map(String::as_str));
        words.push(JOB);
        assert!(said(&words, Some(&token)).contains("password"));
    }
}

#[test]
fn the_token_is_never_printed_in_messages() {
    let masters = masters(3);
    for options in [&["-vvv"][..], &["-vvv", "--json"]] {
        let taken = call(&masters, &[&["acquire", JOB], options].concat(), None);
        let token = exported(&taken.out, "QUORLOCK_TOKEN").unwrap();
        let mut said = taken.err;
        for subcommand in ["extend", "release", "extend", "release"] {
            said += &call(&masters, &[&[subcommand, JOB], options].concat(), Some(&token)).err;
        }
        assert!(said.lines().count() >= 5 && !said.contains(&token), "{said}");
    }
}

#[test]
fn every_subcommand_has_a_help_that_fits_80_columns() {
    for subcommand in ["acquire", "extend", "release", "bootstrap"] {
        for option in ["--help", "-h"] {
            let ended = Running::of(&mut quorlock(&[subcommand, option])).end_by_itself();
            assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{subcommand}");
            assert!(ended.out.contains(&format!("Usage: quorlock {subcommand} ")), "{}", ended.out);
            assert!(ended.out.contains("Exit codes:"), "{}", ended.out);
            assert!(ended.out.lines().all(|line| line.chars().count() <= 80), "{}", ended.out);
        }
    }
}
