//! Signals that reach `quorlock` itself.

use std::fs;
use std::process::Command;
use std::time::Duration;

use quorlock_tests::{Calls, eventually, masters};
use rustix::process::Signal;

use crate::binary;
use crate::running::{HOLD, JOB, Running, SHOW, SOON, assert_free, start, start_over};

/// The signals that end a process, without those that the process that started the tests had
/// ignored, as `nohup` does: ignored signals stay ignored, so such runs cannot test them.
fn asking_to_end() -> Vec<Signal> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap());
    let all = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];
    all.into_iter().filter(|signal| ignored >> (signal.as_raw() - 1) & 1 == 0).collect()
}

#[test]
fn a_signal_goes_on_to_the_command_and_the_lock_is_released_behind_it() {
    let masters = masters(3);
    for signal in asking_to_end() {
        let mut run = start(&masters, &["--ttl", "1m"], &HOLD);
        run.first_line();
        run.signal(signal);

        let ended = run.end_by_itself();

        assert_eq!((ended.code, ended.err.as_str()), (Some(128 + signal.as_raw()), ""), "{signal:?}");
        assert_free(&masters);
    }
}

/// Nothing answers at the master's address: its certificates are read first.
#[test]
fn a_pipe_of_certificates_without_a_writer_ends_with_an_error_and_swallows_no_signal() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let url = format!("rediss://127.0.0.1:1/?cacert={}", pipe.display());
    for options in [&[][..], &["-n"]] {
        let ended = start_over(&[&url], options, &SHOW).end_by_itself();
        assert_eq!((ended.code, ended.out.as_str()), (Some(64), ""), "{}", ended.err);
        let said = format!("{} cannot be read for a certificate of an issuer", pipe.display());
        assert!(ended.err.contains(&said), "{}", ended.err);
        assert!(ended.err.contains("nothing was written to this pipe"), "{}", ended.err);

        let mut run = start_over(&[&url], options, &SHOW);
        run.signal(Signal::TERM);
        eventually(SOON, "the wait ends", || !run.goes_on());
    }
}

#[test]
fn a_command_that_handles_a_signal_keeps_the_lock_until_it_ends_and_gives_its_code() {
    let masters = masters(3);
    // The loop ends in time even if it is not ended from outside.
    let script = "trap 'echo asked; cat >/dev/null; exit 5' TERM; echo runs; \
                  n=0; while [ $n -lt 1500 ]; do sleep 0.02; n=$((n + 1)); done";
    let mut run = start(&masters, &["--ttl", "1m"], &["sh", "-c", script]);
    run.first_line();
    run.signal(Signal::TERM);
    eventually(SOON, "the command hears the signal", || run.out().contains("asked"));

    assert!(masters.holding(JOB) >= 2);
    let ended = run.end();

    assert_eq!(ended.code, Some(5));
    assert_free(&masters);
}

#[test]
fn signals_for_the_commands_own_use_go_on_to_it() {
    let masters = masters(3);
    let script = "trap 'echo one' USR1; trap 'echo two; exit 0' USR2; echo runs; \
                  n=0; while [ $n -lt 1500 ]; do sleep 0.02; n=$((n + 1)); done";
    let mut run = start(&masters, &[], &["sh", "-c", script]);
    run.first_line();
    run.signal(Signal::USR1);
    eventually(SOON, "the command hears the first", || run.out().contains("one"));
    run.signal(Signal::USR2);
    assert_eq!(run.end_by_itself().out, "runs\none\ntwo\n");
}

#[test]
fn a_signal_that_ends_the_wait_leaves_no_key() {
    let masters = masters(3);
    // The third master grants the lock and gets its release, again and again.
    assert!(masters[0].set_nx(JOB, "x") && masters[1].set_nx(JOB, "x"));
    for signal in asking_to_end() {
        let before = masters[2].calls(Calls::Set);
        let mut run = start(&masters, &["--ttl", "1m"], &SHOW);
        eventually(SOON, "it tries", || masters[2].calls(Calls::Set) > before);
        assert!(run.goes_on());
        run.signal(signal);

        let ended = run.end_by_itself();

        assert_eq!((ended.code, ended.out.as_str()), (Some(128 + signal.as_raw()), ""), "{signal:?}");
        assert_eq!(ended.err, "", "{signal:?}");
        assert_free(&masters[2..]);
    }
}

#[test]
fn a_signal_ends_the_wait_for_masters_that_do_not_answer() {
    let masters = masters(3);
    masters.iter().for_each(quorlock_tests::RedisServer::stop);
    let run = start(&masters, &[], &SHOW);
    std::thread::sleep(Duration::from_millis(500));
    run.signal(Signal::TERM);

    let ended = run.end_by_itself();

    assert_eq!((ended.code, ended.out.as_str()), (Some(143), ""), "{}", ended.err);
    assert!(ended.took < Duration::from_secs(5), "{:?}", ended.took);
    masters.iter().for_each(quorlock_tests::RedisServer::cont);
    assert_free(&masters);
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let masters = masters(3);
    let mut nohup = Command::new("sh");
    nohup
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(binary::quorlock())
        .args(["run", JOB, "sh", "-c", "echo runs; read -r line; echo \"$line\""])
        .env("QUORLOCK_MASTERS", masters.urls().join(","));
    let mut run = Running::of(&mut nohup);
    run.first_line();
    run.signal(Signal::HUP);
    std::thread::sleep(Duration::from_millis(300));

    assert!(run.goes_on());
    run.say("still here\n");
    let ended = run.end();

    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "runs\nstill here\n"));
}

/// Whether the binary names no loader of libraries in its first bytes: the static one, of
/// `cargo xtask dist`.
#[cfg(target_os = "linux")]
fn is_static() -> bool {
    let loader = b"/ld-";
    let mut start = [0; 4096];
    let mut file = fs::File::open(binary::quorlock()).unwrap();
    std::io::Read::read_exact(&mut file, &mut start).unwrap();
    !start.windows(loader.len()).any(|part| part == loader)
}

/// Signals that end a process that does not expect them, by number: SIGALRM, SIGVTALRM, SIGXCPU,
/// SIGIO, SIGPWR, and the first and the last real-time signal. musl keeps the first one of the GNU
/// library for itself.
#[cfg(target_os = "linux")]
fn unexpected() -> [i32; 7] {
    [14, 26, 24, 29, 30, if is_static() { 35 } else { 34 }, 64]
}

#[cfg(target_os = "linux")]
#[track_caller]
fn send(run: &Running, signal: i32) {
    let status = Command::new("sh").args(["-c", &format!("kill -{signal} {}", run.id())]).status().unwrap();
    assert!(status.success(), "signal {signal}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_that_nobody_expects_goes_on_to_the_command() {
    let masters = masters(3);
    for signal in unexpected() {
        let mut run = start(&masters, &["--ttl", "1m"], &HOLD);
        run.first_line();
        send(&run, signal);

        let ended = run.end_by_itself();

        assert_eq!((ended.code, ended.err.as_str()), (Some(128 + signal), ""), "{signal}");
        assert_free(&masters);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_that_nobody_expects_ends_the_wait() {
    let masters = masters(3);
    assert!(masters.iter().all(|master| master.set_nx(JOB, "x")));
    for signal in unexpected() {
        let mut run = start(&masters, &[], &SHOW);
        eventually(SOON, "it waits", || masters[0].connected_clients() > 0 && run.goes_on());
        std::thread::sleep(Duration::from_millis(100));
        send(&run, signal);
        let ended = run.end_by_itself();
        assert_eq!((ended.code, ended.out.as_str()), (Some(128 + signal), ""), "{signal}");
    }
}
