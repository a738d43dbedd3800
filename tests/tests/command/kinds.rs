//! `--shared`, `--permits` and `--also`: readers, permits, and several resources at once.

use quorlock_tests::{Fleet, eventually, masters};

use crate::running::{Ended, HOLD, JOB, Running, SHOW, SOON, call, exported, quorlock, run, start};

/// A command that prints the index of its permit, and holds it.
const PERMIT: [&str; 3] = ["sh", "-c", "echo $QUORLOCK_PERMIT; exec cat"];

/// A run whose command prints that it runs, and holds the lock.
#[track_caller]
fn hold(masters: &Fleet, options: &[&str]) -> Running {
    let mut running = start(masters, options, &HOLD);
    running.first_line();
    running
}

#[track_caller]
pub(crate) fn assert_refused(refused: &Ended, says: &str) {
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{}", refused.err);
    assert!(refused.err.contains(says), "{}", refused.err);
}

#[track_caller]
fn assert_runs(ended: &Ended) {
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(0), "runs\n", ""));
}

/// Waits until none of these keys is left anywhere.
#[track_caller]
pub(crate) fn assert_gone(masters: &Fleet, keys: &[&str]) {
    eventually(SOON, "no key is left", || {
        keys.iter().all(|key| masters.iter().all(|master| !master.exists(key)))
    });
}

#[test]
fn readers_run_beside_each_other_and_keep_others_out() {
    let masters = masters(3);
    let first = hold(&masters, &["--shared", "--ttl", "1m"]);
    let second = hold(&masters, &["--shared", "--ttl", "1m"]);
    for options in [&["-n"][..], &["-n", "--also", "other"], &["-w", "200ms"]] {
        assert_refused(&run(&masters, options, &SHOW), " shared by others for ");
    }
    assert_runs(&run(&masters, &["--shared"], &SHOW));
    assert_eq!(first.end().code, Some(0));
    // One reader is left.
    assert_refused(&run(&masters, &["-n", "-E", "1"], &SHOW), " shared by others for ");
    assert_eq!(second.end().code, Some(0));
    assert_runs(&run(&masters, &["-w", "20s"], &SHOW));
    assert_gone(&masters, &[JOB, "other"]);
}

#[test]
fn a_lock_that_is_not_shared_keeps_readers_out() {
    let masters = masters(3);
    let held = hold(&masters, &[]);
    assert_refused(&run(&masters, &["-n", "--shared"], &SHOW), " held by another for ");
    let refused = run(&masters, &["-n", "--shared", "--also", "b", "-E", "42"], &SHOW);
    assert_eq!(refused.code, Some(42), "{}", refused.err);
    assert!(refused.err.starts_with("quorlock: b and 1 more not acquired: "), "{}", refused.err);
    let waiting = start(&masters, &["--shared"], &SHOW);
    assert_eq!(held.end().code, Some(0));
    assert_runs(&waiting.end());
    assert_gone(&masters, &[JOB, "b"]);
}

#[test]
fn permits_are_taken_up_to_their_number_and_each_tells_which_it_is() {
    let masters = masters(3);
    let mut holders: Vec<_> =
        (0..3).map(|_| start(&masters, &["--permits", "3", "--ttl", "1m"], &PERMIT)).collect();
    let mut indexes: Vec<_> = holders.iter_mut().map(Running::first_line).collect();
    indexes.sort_unstable();
    assert_eq!(indexes, ["0", "1", "2"]);

    let refused = run(&masters, &["-n", "--permits", "3"], &SHOW);
    assert_refused(&refused, "permits held by others for ");
    assert!(refused.err.starts_with("quorlock: job not acquired: "), "{}", refused.err);
    // A lock of the same name is independent.
    assert_runs(&run(&masters, &["-n"], &SHOW));

    let freed = holders.pop().map(Running::end).expect("a holder");
    assert_eq!(freed.code, Some(0), "{}", freed.err);
    let next = run(&masters, &["-w", "20s", "--permits", "3"], &["sh", "-c", "echo $QUORLOCK_PERMIT"]);
    assert_eq!((next.code, next.out), (Some(0), freed.out), "{}", next.err);
    for holder in holders {
        assert_eq!(holder.end().code, Some(0));
    }
    assert_gone(&masters, &[JOB]);
}

#[test]
fn each_permit_is_numbered_by_itself_and_others_have_none() {
    let masters = masters(3);
    let tell = ["sh", "-c", "echo ${QUORLOCK_FENCE-none} ${QUORLOCK_PERMIT-none}"];
    let of = |options: &[&str]| {
        let mut command = quorlock(&[&["run", "--permits=1"], options, &[JOB, "--"], &tell].concat());
        command.env("QUORLOCK_MASTERS", masters.urls().join(",")).env("QUORLOCK_PERMIT", "7");
        let ended = Running::of(&mut command).end();
        let (number, permit) = ended.out.trim_end().split_once(' ').expect("two words");
        assert_eq!((ended.code, permit), (Some(0), "0"), "{}", ended.err);
        number.to_owned()
    };
    assert_eq!(of(&[]), "none");
    let numbers =
        [of(&["--fenced"]), of(&["--fenced", "--heal"])].map(|number| number.parse::<u64>().unwrap());
    assert!(numbers[0] < numbers[1], "{numbers:?}");

    let mut plain = quorlock(&[&["run", JOB, "--"], &tell[..]].concat());
    plain.env("QUORLOCK_MASTERS", masters.urls().join(",")).env("QUORLOCK_PERMIT", "7");
    assert_eq!(Running::of(&mut plain).end().out, "none none\n");
}

#[test]
fn several_resources_are_locked_together_or_not_at_all() {
    let masters = masters(3);
    let both = hold(&masters, &["--also", "b", "--also", "c"]);
    for name in ["b", "c"] {
        let single = call(&masters, &["acquire", "-n", name], None);
        assert_refused(&single, " held by another for ");
        assert!(single.err.starts_with(&format!("quorlock: {name} not acquired: ")), "{}", single.err);
    }
    assert_refused(&run(&masters, &["-n"], &SHOW), " held by another for ");
    let overlap = call(&masters, &["run", "-n", "--also", "d", "c", "--", "echo", "runs"], None);
    assert_refused(&overlap, "c and 1 more not acquired: ");
    assert_gone(&masters, &["d"]);
    assert_eq!(both.end().code, Some(0));
    assert_gone(&masters, &[JOB, "b", "c"]);

    // Now the other way around.
    let single = call(&masters, &["acquire", "--ttl", "1m", "c"], None);
    assert_eq!(single.code, Some(0), "{}", single.err);
    assert_refused(&run(&masters, &["-n", "--also", "c"], &SHOW), "c and 1 more not acquired: ");
    assert_gone(&masters, &[JOB]);
    let token = exported(&single.out, "QUORLOCK_TOKEN");
    assert_eq!(call(&masters, &["release", "c"], token.as_deref()).code, Some(0));
    assert_runs(&run(&masters, &["-n", "--also", "c"], &SHOW));
}

#[test]
fn the_number_of_several_resources_is_above_those_of_each() {
    let masters = masters(3);
    let number = |options: &[&str], name: &str| -> u64 {
        let words =
            [&["run", "--fenced"], options, &[name, "--", "sh", "-c", "echo $QUORLOCK_FENCE"]].concat();
        let ended = call(&masters, &words, None);
        ended.out.trim_end().parse().unwrap_or_else(|_| panic!("{}{}", ended.out, ended.err))
    };
    let singles = [number(&[], "a"), number(&[], "b"), number(&[], "b")];
    let both = number(&["--also", "a"], "b");
    assert!(singles.iter().all(|single| both > *single), "{both} after {singles:?}");
    let reader = number(&["--shared"], "a");
    assert!(reader >= both && number(&[], "a") > reader && number(&[], "b") > both);
}

#[test]
fn a_program_inside_a_run_extends_its_lock_with_the_variables_that_it_gets() {
    let masters = masters(3);
    for options in KINDS {
        let extend = format!("exec \"$0\" extend {} \"$QUORLOCK_RESOURCE\"", options.join(" "));
        let program = crate::binary::quorlock().to_str().expect("text");
        let words = [&["run"], options, &[JOB, "--", "sh", "-c", &extend, program]].concat();
        let ended = call(&masters, &words, None);
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{options:?}");
    }
}

#[test]
fn events_tell_what_is_locked_and_how() {
    let masters = masters(3);
    for (options, text, fields) in [
        (&["--shared"][..], "acquired job for reading", r#""resource":"job","shared":true,"valid_ms":"#),
        (&["--also", "b"], "acquired b and 1 more", r#""resource":"job","also":["b"],"valid_ms":"#),
        (
            &["--permits", "1"],
            "acquired permit 0 of job",
            r#""resource":"job","permits":1,"permit":0,"valid_ms":"#,
        ),
    ] {
        let told = run(&masters, &[options, &["--json"]].concat(), &SHOW);
        assert_eq!(told.code, Some(0), "{}", told.err);
        let acquired =
            told.err.lines().find(|line| line.contains(r#""event":"acquired""#)).expect("an event");
        assert!(acquired.contains(&format!("\"text\":\"{text}\",{fields}")), "{acquired}");
        let (kind, _) = fields.split_once(",\"valid_ms").expect("fields");
        let kind = kind.split(",\"permit\"").next().expect("fields");
        let all = told.err.lines().all(|line| line.contains(kind));
        assert!(all && told.err.contains(r#""event":"released""#), "{}", told.err);
    }
}

#[test]
fn a_signal_ends_the_wait_of_each_kind_and_leaves_no_key() {
    let masters = masters(3);
    for (holder, waiter) in [
        (&["--also", "b"][..], &["--shared", "--also", "c"][..]),
        (&["--shared"], &["--also", "c"]),
        (&["--permits=1"], &["--permits=1"]),
    ] {
        let held = hold(&masters, &[holder, &["--ttl", "1m"]].concat());
        let before = masters[0].connected_clients();
        let waiting = start(&masters, waiter, &SHOW);
        eventually(SOON, "it has come", || masters[0].connected_clients() > before);
        waiting.signal(rustix::process::Signal::TERM);
        let ended = waiting.end_by_itself();
        assert_eq!((ended.code, ended.out.as_str()), (Some(143), ""), "{}", ended.err);
        assert_eq!(held.end().code, Some(0));
        assert_gone(&masters, &[JOB, "b", "c"]);
    }
}

/// All kinds, as options.
const KINDS: [&[&str]; 4] =
    [&["--shared"], &["--also", "b"], &["--shared", "--also", "b"], &["--permits", "2"]];

#[test]
fn the_other_options_of_a_run_do_the_same_for_each_kind() {
    for kind in KINDS {
        let (plain, guarded) = (masters(3), masters(3));
        let told = call(&guarded, &["bootstrap", "--restart-guard", "1m"], None);
        assert_eq!(told.code, Some(0), "{}", told.err);
        for options in [
            &["-n"][..],
            &["-w", "20s", "--ttl", "5s", "--grace", "1s"],
            &["--fenced"],
            &["--heal", "--fenced"],
            &["--no-renew", "--max-hold", "1m"],
            &["--prefix", "app:"],
            &["--restart-guard", "1m"],
            &["--restart-guard", "1m", "--fenced", "--heal"],
        ] {
            let masters = if options.contains(&"--restart-guard") { &guarded } else { &plain };
            let ended = run(masters, &[kind, options].concat(), &SHOW);
            let said = (ended.code, ended.out.as_str(), ended.err.as_str());
            assert_eq!(said, (Some(0), "runs\n", ""), "{kind:?} {options:?}");
        }
        // Clients with another guard are kept out of everything.
        let other = run(&guarded, &[kind, &["-n", "--restart-guard", "2m"]].concat(), &SHOW);
        assert_eq!((other.code, other.out.as_str()), (Some(64), ""), "{kind:?}: {}", other.err);
        for masters in [&plain, &guarded] {
            assert_gone(masters, &[JOB, "b", "app:job", "app:b", "quorlock:seat:0/{job}"]);
        }
    }
}

#[test]
fn others_are_kept_out_for_the_minimum_hold_time_of_each_kind() {
    for (kind, others) in KINDS.into_iter().zip([&["-n"][..], &["-n"], &["-n"], &["-n", "--permits", "1"]]) {
        let masters = masters(3);
        let kind = if kind.contains(&"--permits") { &["--permits", "1"] } else { kind };
        let first = run(&masters, &[kind, &["-v", "--at-least", "1m"]].concat(), &SHOW);
        assert_eq!((first.code, first.out.as_str()), (Some(0), "runs\n"), "{}", first.err);
        assert!(first.err.contains("and others are kept out for 5"), "{}", first.err);
        assert_refused(&run(&masters, others, &SHOW), " for ");
        if kind.contains(&"--shared") {
            assert_runs(&run(&masters, kind, &SHOW));
        }
    }
}

#[test]
fn a_command_ends_when_its_lock_of_any_kind_is_lost() {
    for (kind, key) in KINDS.into_iter().zip([JOB, "b", "b", "quorlock:seat:0/{job}"]) {
        let masters = masters(3);
        let held = hold(&masters, &[kind, &["--ttl", "2s"]].concat());
        eventually(SOON, "all masters have it", || masters.iter().all(|master| master.exists(key)));
        // The lock is lost if one of its several keys is gone.
        masters.iter().for_each(|master| assert!(master.del(key)));
        let ended = held.end_by_itself();
        assert_eq!(ended.code, Some(75), "{kind:?}: {}", ended.err);
        assert!(ended.err.contains("so the command is ended"), "{}", ended.err);
        assert_gone(&masters, &[JOB, "b"]);
    }
}

#[test]
fn a_healing_lock_of_each_kind_comes_back_to_masters_that_lost_it() {
    for (kind, key) in KINDS.into_iter().zip([JOB, "b", "b", "quorlock:seat:0/{job}"]) {
        let masters = masters(3);
        let held = hold(&masters, &[kind, &["--heal", "--ttl", "2s"]].concat());
        for master in masters.iter() {
            eventually(SOON, "the key is there", || master.exists(key));
            assert!(master.del(key));
            eventually(SOON, "the key is back", || master.exists(key));
        }
        let ended = held.end();
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{kind:?}");
    }
}

#[test]
fn contradicting_options_exit_with_64_before_anything_is_locked() {
    let masters = masters(3);
    for (options, says) in [
        (&["--shared", "--permits", "2"][..], "--shared and --permits contradict each other"),
        (&["--permits", "2", "--also", "b"], "--permits and --also contradict each other"),
        (&["--permits", "0"], "from 1 to 1024"),
        (&["--permits", "1025"], "from 1 to 1024"),
        (&["--also", "quorlock:fence/x"], "another name"),
    ] {
        let refused = run(&masters, options, &SHOW);
        assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""), "{options:?}: {}", refused.err);
        assert!(refused.err.contains(says), "{options:?}: {}", refused.err);
    }
    let many: Vec<_> = (0..129).flat_map(|n| ["--also".to_owned(), n.to_string()]).collect();
    let many: Vec<_> = many.iter().map(String::as_str).chain(["--shared"]).collect();
    let refused = run(&masters, &many, &SHOW);
    assert_eq!(refused.code, Some(64), "{}", refused.err);
    assert!(refused.err.contains("128 that are read"), "{}", refused.err);
    assert_gone(&masters, &[JOB]);
}
