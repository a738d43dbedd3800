//! `quorlock acquire`, `extend` and `release` of readers, permits, and several resources at once.

use quorlock_tests::{Fleet, eventually, masters};

use crate::kinds::{assert_gone, assert_refused};
use crate::running::{Ended, JOB, Running, SHOW, SOON, call, exported, quorlock, run};

/// Runs the subcommand with these words, and with the lines of `quorlock acquire` in its
/// environment.
#[track_caller]
fn call_with(masters: &Fleet, words: &[&str], lines: &str) -> Ended {
    let mut command = quorlock(words);
    command.env("QUORLOCK_MASTERS", masters.urls().join(","));
    for line in lines.lines() {
        if let Some((name, value)) = line.strip_prefix("export ").and_then(|line| line.split_once('=')) {
            command.env(name, value.trim_end_matches(';'));
        }
    }
    Running::of(&mut command).end()
}

#[test]
fn readers_and_several_resources_are_extended_and_released_as_they_were_acquired() {
    let masters = masters(3);
    for (options, other) in [
        (&["--shared"][..], &["--shared", "--also", "b"][..]),
        (&["--also", "b"], &["--shared", "--also", "b"]),
        (&["--shared", "--also", "b"], &["--also", "b"]),
    ] {
        let words = |subcommand, options: &[&'static str]| [&[subcommand], options, &[JOB]].concat();
        let taken =
            call(&masters, &words("acquire", &[options, &["--ttl", "1m", "--fenced"]].concat()), None);
        assert_eq!((taken.code, taken.err.as_str()), (Some(0), ""), "{options:?}");
        let extended =
            call_with(&masters, &words("extend", &[options, &["--ttl", "10m"]].concat()), &taken.out);
        assert_eq!((extended.code, extended.err.as_str()), (Some(0), ""), "{options:?}");
        eventually(SOON, "the key lives longer", || {
            masters.iter().filter(|master| master.pttl(JOB) > 60_000).count() >= 2
        });

        for subcommand in ["extend", "release"] {
            for wrong in [&[][..], other] {
                let refused = call_with(&masters, &words(subcommand, wrong), &taken.out);
                assert_eq!(refused.code, Some(64), "{options:?} {wrong:?}: {}", refused.err);
                assert!(refused.err.contains("taken with other options; give "), "{}", refused.err);
            }
        }
        let kept = call_with(&masters, &["release", "--keep-for", "1m", JOB], &taken.out);
        assert_eq!(kept.code, Some(64), "{options:?}: {}", kept.err);
        assert!(kept.err.contains("leave --keep-for out"), "{}", kept.err);
        assert_refused(&run(&masters, &["-n"], &SHOW), " for ");

        let released = call_with(&masters, &words("release", &[options, &["-v"]].concat()), &taken.out);
        let name = if options.contains(&"--also") { "b and 1 more" } else { JOB };
        assert_eq!((released.code, released.err), (Some(0), format!("quorlock: released {name}\n")));
        assert_gone(&masters, &[JOB, "b"]);
        // A semaphore and a lock may have the same name.
        let refused = call_with(&masters, &words("release", &["--permits", "4"]), &taken.out);
        assert_eq!(refused.code, Some(64), "{}", refused.err);
        for subcommand in ["extend", "release"] {
            let late = call_with(&masters, &words(subcommand, options), &taken.out);
            assert_eq!(late.code, Some(75), "{options:?}: {}", late.err);
            assert!(late.err.starts_with(&format!("quorlock: {name} not {subcommand}")), "{}", late.err);
        }
    }
}

#[test]
fn a_permit_is_extended_and_released_as_it_was_acquired() {
    let masters = masters(3);
    let acquire = |more: &[&'static str]| {
        let words = [&["acquire", "--permits", "2", "--ttl", "1m"], more, &[JOB]].concat();
        call(&masters, &words, None)
    };
    let taken = [acquire(&["--fenced"]), acquire(&[])];
    let mut indexes = taken.each_ref().map(|taken| {
        assert_eq!((taken.code, taken.err.as_str()), (Some(0), ""));
        exported(&taken.out, "QUORLOCK_PERMIT").expect("a permit")
    });
    indexes.sort_unstable();
    assert_eq!(indexes, ["0", "1"]);
    assert_refused(&acquire(&["-n"]), "permits held by others for ");

    let [first, second] = taken.map(|taken| taken.out);
    let key = |lines: &str| {
        format!("quorlock:seat:{}/{{job}}", exported(lines, "QUORLOCK_PERMIT").expect("a permit"))
    };
    // Another number of permits is the same semaphore.
    for permits in ["2", "4"] {
        let words = ["extend", "--permits", permits, "--ttl", "10m", JOB];
        let extended = call_with(&masters, &words, &first);
        assert_eq!((extended.code, extended.err.as_str()), (Some(0), ""));
    }
    eventually(SOON, "the permit lives longer", || {
        masters.iter().filter(|master| master.pttl(&key(&first)) > 60_000).count() >= 2
    });
    assert!(masters.iter().all(|master| master.pttl(&key(&second)) <= 60_000));

    for words in
        [&["extend", JOB][..], &["release", JOB], &["extend", "--shared", JOB], &["release", "--also=b", JOB]]
    {
        let refused = call_with(&masters, words, &first);
        assert_eq!(refused.code, Some(64), "{words:?}: {}", refused.err);
        assert!(refused.err.contains("taken with other options; give "), "{}", refused.err);
    }

    let release = ["release", "--permits", "2", JOB];
    let released = call_with(&masters, &release, &first);
    assert_eq!((released.code, released.err.as_str()), (Some(0), ""));
    assert_gone(&masters, &[&key(&first)]);
    assert!(masters.iter().filter(|master| master.exists(&key(&second))).count() >= 2);
    let late = call_with(&masters, &release, &first);
    assert_eq!(late.code, Some(75), "{}", late.err);
    let next = acquire(&["-w", "20s"]);
    assert_eq!(exported(&next.out, "QUORLOCK_PERMIT"), exported(&first, "QUORLOCK_PERMIT"), "{}", next.err);
    for lines in [&second, &next.out] {
        assert_eq!(call_with(&masters, &release, lines).code, Some(0));
    }
    assert_gone(&masters, &[&key(&first), &key(&second)]);
}

#[test]
fn extend_and_release_accept_several_resources_in_any_order() {
    let masters = masters(3);
    let taken = call(&masters, &["acquire", "--also", "b", "--also", "c", JOB], None);
    let token = exported(&taken.out, "QUORLOCK_TOKEN");
    assert_eq!(exported(&taken.out, "QUORLOCK_TOKEN_c"), token);
    let extended = call_with(&masters, &["extend", "--also", JOB, "--also", "b", "c"], &taken.out);
    assert_eq!((extended.code, extended.err.as_str()), (Some(0), ""));
    let released = call_with(&masters, &["release", "--also", "c", "--also", JOB, "b"], &taken.out);
    assert_eq!((released.code, released.err.as_str()), (Some(0), ""));
    assert_gone(&masters, &[JOB, "b", "c"]);
}

#[test]
fn one_reader_ends_and_leaves_the_others() {
    let masters = masters(3);
    let [first, second] =
        [(); 2].map(|()| call(&masters, &["acquire", "--shared", "--ttl", "1m", JOB], None).out);
    assert_eq!(call_with(&masters, &["release", "--shared", JOB], &first).code, Some(0));
    assert_eq!(call_with(&masters, &["release", "--shared", JOB], &first).code, Some(75));
    assert_refused(&run(&masters, &["-n"], &SHOW), " shared by others for ");
    assert_eq!(call_with(&masters, &["extend", "--shared", JOB], &second).code, Some(0));
    assert_eq!(call_with(&masters, &["release", "--shared", JOB], &second).code, Some(0));
    assert_gone(&masters, &[JOB]);
}
