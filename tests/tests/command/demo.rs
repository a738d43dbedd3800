//! `quorlock demo`, in a pipe.

use std::fs;
use std::path::Path;
use std::time::Duration;

use quorlock_tests::eventually;
use rustix::process::Signal;

use crate::running::{Ended, Running, SOON, quorlock};

/// The longest time of a demonstration. On an idle machine it takes a quarter of this.
const LONG: Duration = Duration::from_secs(60);

/// Runs the demonstration in this directory to its end.
#[track_caller]
fn demo(options: &[&str], directory: &Path) -> Ended {
    let words = [&["demo"], options].concat();
    let mut running = Running::of(quorlock(&words).current_dir(directory));
    eventually(LONG, "the demonstration ends by itself", || !running.goes_on());
    running.end_by_itself()
}

/// The names of the elements that a document opens, each of which it closes again.
#[track_caller]
fn elements(svg: &str) -> Vec<&str> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    let mut rest = svg;
    while let Some((_, tag)) = rest.split_once('<') {
        let (tag, behind) = tag.split_once('>').expect("a tag has an end");
        rest = behind;
        let name = tag.split([' ', '/', '\n']).find(|part| !part.is_empty()).expect("a tag has a name");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else {
            all.push(name);
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    all
}

#[test]
fn the_demo_shows_that_a_late_write_is_refused_and_draws_it() {
    let directory = tempfile::tempdir().unwrap();
    let ended = demo(&[], directory.path());
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{}", ended.out);
    for part in [
        "HANGS",
        "is KILLED",
        "is RESTARTED EMPTY",
        "quarantined by the restart guard",
        "votes again",
        "PAUSES",
        "has run out",
        "continues as if it held the lock",
        ": REFUSED, #",
        " 4 faults\nlate writes refused: 1, violations: 0\n",
        "the timeline is drawn in quorlock-demo.svg\n",
    ] {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
    // No escape codes, and each event has its time.
    assert!(!ended.out.contains('\x1b'), "{}", ended.out);
    let events: Vec<_> = ended.out.lines().take_while(|line| !line.is_empty()).collect();
    assert!(events.len() > 20 && events.iter().all(|line| line.get(7..10) == Some(" s ")), "{}", ended.out);
    assert!(ended.out.lines().all(|line| line.chars().count() <= 80), "{}", ended.out);

    let svg = fs::read_to_string(directory.path().join("quorlock-demo.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(elements(&svg).len() > 100, "{svg}");
    for part in ["worker-4", "master-5", ">hangs<", ">dead<", ">quarantined<", ">pauses<", ">refuses #"] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
}

#[test]
fn a_signal_ends_the_demo_and_nothing_is_left_behind() {
    let directory = tempfile::tempdir().unwrap();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut running = Running::of(quorlock(&["demo"]).current_dir(directory.path()));
        running.first_line();
        running.signal(signal);
        eventually(SOON, "the demonstration ends", || !running.goes_on());
        let ended = running.end_by_itself();
        assert_eq!((ended.code, ended.err.as_str()), (Some(code), ""), "{}", ended.out);
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn invalid_arguments_exit_with_64() {
    let directory = tempfile::tempdir().unwrap();
    for (options, says) in [
        (&["--svg"][..], "--svg needs a value"),
        (&["--svg", "x.svg", "--no-svg"], "contradict"),
        (&["-m", "redis://a"], "-m is an option of run"),
        (&["more"], "one argument too many"),
    ] {
        let refused = demo(options, directory.path());
        assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""), "{options:?}: {}", refused.err);
        assert!(refused.err.contains(says), "{options:?}: {}", refused.err);
    }
}
