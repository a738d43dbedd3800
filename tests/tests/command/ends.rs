//! How it ends when the program ends, or when it is told to.

use std::time::Duration;

use quorlock_tests::masters;
use rustix::process::Signal;

use super::process::{gone, on, run, start};

#[test]
fn a_program_that_dies_of_a_signal_shows_as_in_a_shell() {
    let masters = masters(3);
    assert_eq!(run(&masters, &[], "kill -9 $$").end().code(), 137);
    gone(&masters);
}

#[test]
fn a_program_that_cannot_be_started_is_126_or_127_and_leaves_no_key() {
    let masters = masters(3);
    for (program, code) in [("/etc/hostname", 126), ("no-such-program-anywhere", 127)] {
        let mut arguments = on(&masters);
        arguments.extend(["job", "--", program].map(str::to_owned));
        let ended = start(&arguments, &[]).end();
        assert_eq!(ended.code(), code, "{}", ended.err);
        gone(&masters);
    }
}

#[test]
fn a_signal_is_passed_on_and_the_lock_released_behind_the_program() {
    let masters = masters(3);
    for (signal, name, code) in
        [(Signal::TERM, "TERM", 143), (Signal::INT, "INT", 130), (Signal::HUP, "HUP", 129)]
    {
        let script =
            format!("trap 'echo got {name}; exit {code}' {name}; echo ready; while :; do sleep 0.05; done");
        let mut quorlock = run(&masters, &[], &script);
        quorlock.ready();

        quorlock.signal(signal);
        let ended = quorlock.end();

        assert_eq!((ended.code(), ended.out.as_str()), (code, format!("got {name}\n").as_str()));
        gone(&masters);
    }
}

#[test]
fn told_to_end_while_it_waits_it_starts_nothing_and_leaves_no_key() {
    let masters = masters(3);
    assert!(masters.iter().all(|master| master.set_nx("job", "x")));
    let waiter = run(&masters, &[], "echo no");
    std::thread::sleep(Duration::from_millis(300));

    waiter.signal(Signal::TERM);
    let ended = waiter.end();

    assert_eq!((ended.code(), ended.out.as_str()), (143, ""));
    assert!(masters.iter().all(|master| master.get("job").as_deref() == Some("x")));
}
