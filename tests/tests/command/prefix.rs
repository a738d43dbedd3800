//! Keys with a prefix, which only the masters see.

use quorlock_tests::{Fleet, RedisServer, masters};

use crate::running::{Ended, JOB, Running, call, exported, quorlock, run};

/// The key of [`JOB`] with the prefix of these tests.
const KEY: &str = "app:job";
const PREFIX: [&str; 2] = ["--prefix", "app:"];

/// `quorlock` with this prefix in the environment.
#[track_caller]
fn call_within(prefix: &str, masters: &Fleet, words: &[&str], token: Option<&str>) -> Ended {
    let mut command = quorlock(words);
    command.env("QUORLOCK_MASTERS", masters.urls().join(",")).env("QUORLOCK_PREFIX", prefix);
    if let Some(token) = token {
        command.env("QUORLOCK_TOKEN", token);
    }
    Running::of(&mut command).end()
}

#[test]
fn a_run_locks_the_key_with_the_prefix_and_shows_the_name_without_it() {
    let masters = masters(3);
    masters.iter().for_each(|master| assert!(master.set_nx(JOB, "x")));
    let show = ["sh", "-c", "echo $QUORLOCK_RESOURCE"];
    let ran = run(&masters, &[&PREFIX[..], &["-n", "-v", "--fenced"]].concat(), &show);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "job\n"), "{}", ran.err);
    assert!(ran.err.contains("acquired job") && !ran.err.contains("app:"), "{}", ran.err);
    // A third master may not have been reached before the end of the command.
    let counts = |master: &&RedisServer| master.exists("quorlock:fence/{app:job}");
    assert!(masters.iter().filter(counts).count() >= 2);

    masters.iter().for_each(|master| assert!(master.set_nx(KEY, "x")));
    let refused = run(&masters, &[&PREFIX[..], &["-n"]].concat(), &show);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(refused.err.contains("job") && !refused.err.contains("app:"), "{}", refused.err);
}

#[test]
fn a_lock_is_found_again_with_the_prefix_only() {
    let masters = masters(3);
    let taken = call_within("app:", &masters, &["acquire", JOB], None);
    assert_eq!(taken.code, Some(0), "{}", taken.err);
    assert_eq!(exported(&taken.out, "QUORLOCK_RESOURCE").as_deref(), Some("'job'"));
    let token = exported(&taken.out, "QUORLOCK_TOKEN").unwrap();
    assert_eq!((masters.holding(KEY), masters.holding(JOB)), (3, 0));

    assert_eq!(call(&masters, &["status", "-q", JOB], None).code, Some(3));
    let told = call_within("app:", &masters, &["status", JOB], Some(&token));
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.out.starts_with("job: ours on 3 of 3") && !told.out.contains("app:"), "{}", told.out);

    assert_eq!(call(&masters, &["extend", JOB], Some(&token)).code, Some(75));
    assert_eq!(call_within("app:", &masters, &["extend", JOB], Some(&token)).code, Some(0));
    // The option takes precedence over the variable.
    let released = call_within("other:", &masters, &["release", "--prefix", "app:", JOB], Some(&token));
    assert_eq!(released.code, Some(0), "{}", released.err);
    assert_eq!(masters.holding(KEY), 0);
}

#[test]
fn a_forced_release_deletes_the_key_with_the_prefix() {
    let masters = masters(3);
    for key in [JOB, KEY] {
        masters.iter().for_each(|master| assert!(master.set_nx(key, "x")));
    }
    let words = [&["force-release", "--yes-delete-it-whoever-holds-it"], &PREFIX[..], &[JOB]].concat();
    let told = call(&masters, &words, None);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.err.contains("deleted job on 3 of 3") && !told.err.contains("app:"), "{}", told.err);
    assert_eq!((masters.holding(KEY), masters.holding(JOB)), (0, 3));
}

#[test]
fn a_prefix_that_quorlock_needs_itself_exits_with_64() {
    let masters = masters(1);
    for words in [&["run", "--prefix", "quorlock:", JOB, "true"][..], &["status", "--prefix", "q", JOB]] {
        let refused = call(&masters, words, None);
        assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""), "{}", refused.err);
        assert!(refused.err.contains("use another prefix"), "{}", refused.err);
    }
}
