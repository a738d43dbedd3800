//! `--shared`, `--permits` and `--also`.

use quorlock_blocking::Target;

use super::tests::refused;
use super::*;

fn read(words: &[&str]) -> Result<Subcommand, Instead> {
    let environment = Environment { masters: Some("redis://:hunter2@a".into()), ..Environment::default() };
    parse(std::iter::once("quorlock").chain(words.iter().copied()).map(OsString::from), &environment)
}

/// What `run` locks with these options.
#[track_caller]
fn claim(words: &[&str]) -> Claim {
    match read(&[&["run"], words, &["--", "true"]].concat()) {
        Ok(Subcommand::Run(run)) => run.seek.claim,
        other => panic!("{words:?}: {other:?}"),
    }
}

#[test]
fn the_options_say_what_is_locked_and_how() {
    let plain = claim(&["job"]);
    assert_eq!(
        (plain.targets(), plain.permits(), plain.is_plain()),
        (vec![Target::write("job")], None, true)
    );
    let reader = claim(&["--shared", "job"]);
    assert_eq!((reader.targets(), reader.is_plain()), (vec![Target::read("job")], false));
    let several = claim(&["--also=b", "--also", "c", "job"]);
    assert_eq!(several.targets(), ["job", "b", "c"].map(Target::write));
    assert!(!several.is_plain());
    let all_read = claim(&["--also=b", "--shared", "job"]);
    assert_eq!(all_read.targets(), ["job", "b"].map(Target::read));
    let permit = claim(&["--permits", "1024", "job"]);
    assert_eq!((permit.permits(), permit.is_plain()), (Some(1024), false));
}

#[test]
fn a_name_that_is_given_twice_counts_once() {
    let twice = claim(&["--also=job", "--also=b", "--also=b", "job"]);
    assert_eq!(twice.names(), [b"job".as_slice(), b"b"]);
    assert!(claim(&["--also=job", "job"]).is_plain());
}

#[test]
fn extend_and_release_take_the_same_lock_options_as_acquire() {
    for options in [&["--shared", "--also=b", "job"][..], &["--permits=4", "job"]] {
        let of = |subcommand| match read(&[&[subcommand], options].concat()) {
            Ok(Subcommand::Acquire(acquire)) => acquire.seek.claim,
            Ok(Subcommand::Extend(extend)) => extend.claim,
            Ok(Subcommand::Release(release)) => release.claim,
            other => panic!("{subcommand}: {other:?}"),
        };
        assert!(
            ["acquire", "extend", "release"].into_iter().all(|subcommand| of(subcommand) == claim(options))
        );
    }
}

#[test]
fn events_tell_what_is_locked_and_how() {
    for (words, name, fields) in [
        (&["job"][..], "job", r#"{"resource":"job"}"#),
        (&["--shared", "job"], "job", r#"{"resource":"job","shared":true}"#),
        (&["--permits=4", "job"], "job", r#"{"resource":"job","permits":4}"#),
        // As the library names it.
        (&["--also=a", "job"], "a and 1 more", r#"{"resource":"job","also":["a"]}"#),
        (
            &["--also=b", "--also=a", "--shared", "job"],
            "a and 2 more",
            r#"{"resource":"job","also":["b","a"],"shared":true}"#,
        ),
    ] {
        let subject = claim(words).subject();
        assert_eq!(subject.name, name, "{words:?}");
        let told = subject.fields([]).into_iter();
        let told = told.map(|(field, value)| (field.to_owned(), serde_json::to_value(value).expect("JSON")));
        let expected: serde_json::Value = serde_json::from_str(fields).expect("JSON");
        assert_eq!(serde_json::Value::Object(told.collect()), expected, "{words:?}");
    }
}

#[test]
fn contradicting_options_are_refused_with_the_remedy() {
    for (words, says) in [
        (&["run", "--shared", "--permits=4", "job", "x"][..], "--shared and --permits contradict each other"),
        (&["run", "--permits=4", "--also=b", "job", "x"], "--permits and --also contradict each other"),
        (&["run", "--fair", "--shared", "job", "x"], "--fair and --shared contradict each other"),
        (&["run", "--fair", "--permits=4", "job", "x"], "--fair and --permits contradict each other"),
        (&["acquire", "--fair", "--also=b", "job"], "--fair and --also contradict each other"),
        (&["run", "--permits=0", "job", "x"], "--permits needs a number of permits from 1 to 1024"),
        (&["run", "--permits=1025", "job", "x"], "--permits needs a number of permits from 1 to 1024"),
        (&["run", "--permits=hunter2", "job", "x"], "--permits needs a number of permits from 1 to 1024"),
        (&["run", "--also=", "job", "x"], "--also is empty"),
        (&["run", "--also"], "--also needs a value"),
        (&["release", "--keep-for=1m", "--shared", "job"], "--keep-for is for one lock that is not shared"),
        (&["release", "--keep-for=1m", "--also=b", "job"], "--keep-for is for one lock that is not shared"),
        (&["acquire", "--permits=0", "job"], "--permits needs a number of permits from 1 to 1024"),
        (&["release", "--keep-for=1m", "--permits=4", "job"], "--keep-for is for one lock"),
        (
            &["status", "--shared", "job"],
            "--shared is an option of run, acquire, extend and release, not of status",
        ),
    ] {
        let said = refused(read(words));
        assert!(said.contains(says), "{words:?}: {said}");
    }
}
