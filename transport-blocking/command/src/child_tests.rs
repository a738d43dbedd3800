//! Real processes, without a terminal.

use std::time::Duration;

use signal_hook::consts::{SIGKILL, SIGTERM};

use super::*;

fn shell(script: &str) -> [&OsStr; 3] {
    ["sh", "-c", script].map(OsStr::new)
}

fn start<'a>(command: &[&OsStr], signals: &'a Signals<u8>) -> Supervisor<'a, u8> {
    Supervisor::start(command, &[("LOCKED", Some(OsStr::new("yes")))], signals, Terminal::none(), None)
        .expect("started")
}

/// How the command ends. Signals of other tests' children arrive too; they are ignored.
fn ending(supervisor: &mut Supervisor<'_, u8>) -> Ending {
    let deadline = Instant::now() + Duration::from_secs(20);
    match supervisor.wait(Some(deadline)) {
        Step::Ended(ending) => ending,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_ending_of_a_command_has_its_exit_code() {
    let signals = Signals::install().expect("signals");
    for (script, expected, code) in [
        ("exit 0", Ending::Exited(0), 0),
        ("exit 255", Ending::Exited(255), 255),
        ("[ \"$LOCKED\" = yes ] && exit 7", Ending::Exited(7), 7),
        ("kill -KILL $$", Ending::Signalled(SIGKILL), 137),
        ("kill -TERM $$", Ending::Signalled(SIGTERM), 143),
    ] {
        let mut supervisor = start(&shell(script), &signals);
        let ending = ending(&mut supervisor);
        assert_eq!((ending, ending.exit_code()), (expected, code), "{script}");
        assert!(!supervisor.interrupted_at_terminal());
        assert!(matches!(supervisor.wait(None), Step::Ended(again) if again == ending), "said again");
    }
}

#[test]
fn a_command_that_cannot_be_started_is_reported_as_by_a_shell() {
    let signals = Signals::<u8>::install().expect("signals");
    for (program, code) in
        [("/nonexistent/program", 127), ("no-such-program-anywhere", 127), ("/etc/passwd", 126), ("/", 126)]
    {
        let error = Supervisor::start(&[OsStr::new(program)], &[], &signals, Terminal::none(), None)
            .expect_err(program);
        assert_eq!(error.exit_code(), code, "{program}: {error}");
    }
}

#[test]
fn deadlines_and_messages_interrupt_the_wait() {
    let signals = Signals::install().expect("signals");
    let mut supervisor = start(&shell("sleep 60"), &signals);
    assert!(matches!(supervisor.wait(Some(Instant::now())), Step::Deadline));
    let notifier = signals.notifier();
    std::thread::spawn(move || notifier.send(42));
    assert!(matches!(supervisor.wait(Some(Instant::now() + Duration::from_secs(20))), Step::Message(42)));
    supervisor.terminate();
    assert_eq!(ending(&mut supervisor), Ending::Signalled(SIGTERM));
}

#[test]
fn a_stopped_command_gets_the_request_to_terminate() {
    let signals = Signals::install().expect("signals");
    let mut supervisor = start(&shell("kill -STOP $$; sleep 60"), &signals);
    assert!(matches!(supervisor.wait(Some(Instant::now() + Duration::from_millis(200))), Step::Deadline));
    supervisor.terminate();
    assert_eq!(ending(&mut supervisor), Ending::Signalled(SIGTERM));
}

#[test]
fn a_command_that_will_not_terminate_is_killed() {
    let signals = Signals::install().expect("signals");
    let mut supervisor = start(&shell("trap '' TERM; while :; do sleep 0.05; done"), &signals);
    assert!(matches!(supervisor.wait(Some(Instant::now() + Duration::from_millis(200))), Step::Deadline));
    supervisor.terminate();
    assert!(matches!(supervisor.wait(Some(Instant::now() + Duration::from_millis(200))), Step::Deadline));
    supervisor.kill();
    assert_eq!(ending(&mut supervisor), Ending::Signalled(SIGKILL));
}

#[test]
fn after_the_end_a_kill_still_reaches_the_rest_of_the_group() {
    let signals = Signals::install().expect("signals");
    let directory = std::env::temp_dir().join(format!("quorlock-left-{}", std::process::id()));
    let script = format!("(while :; do sleep 0.02; : > {}; done) & exit 3", directory.display());
    let mut supervisor = start(&shell(&script), &signals);
    assert_eq!(ending(&mut supervisor), Ending::Exited(3));
    let appears = || {
        (0..50).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            directory.exists()
        })
    };
    assert!(appears(), "it continues after the command's end");
    supervisor.kill();
    std::thread::sleep(Duration::from_millis(100));
    let _ = std::fs::remove_file(&directory);
    assert!(!appears(), "and is ended with the group");
}
