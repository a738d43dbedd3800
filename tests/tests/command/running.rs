//! One run of the command, with its output.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use quorlock_tests::{Fleet, RedisServer, eventually, eventually_equals};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::binary;

/// Far longer than any quick operation takes, even on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// The name of the lock.
pub(crate) const JOB: &str = "job";

/// A command that prints that it runs, and then does nothing until its standard input is closed.
pub(crate) const HOLD: [&str; 3] = ["sh", "-c", "echo runs; exec cat"];

/// A command that prints that it runs, and then ticks for long; asked to terminate, it prints that
/// and still ticks.
pub(crate) const TICK_ON: [&str; 3] = [
    "sh",
    "-c",
    "trap 'echo asked' TERM; echo runs; n=0; while [ $n -lt 1500 ]; do echo .; sleep 0.02; n=$((n + 1)); done",
];

/// A command that prints its token, and whether it has the right resource.
pub(crate) const TELL: [&str; 3] =
    ["sh", "-c", "echo $QUORLOCK_TOKEN; test \"$QUORLOCK_RESOURCE\" = job && exec cat"];

/// A command that leaves a trace if it runs.
pub(crate) const SHOW: [&str; 2] = ["echo", "runs"];

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code, if there was one.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) took: Duration,
}

/// A run in progress. Its standard input is a pipe, its standard output and error are files.
/// Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    input: Option<ChildStdin>,
    directory: TempDir,
    begun: Instant,
}

/// `quorlock run -m … OPTIONS job -- COMMAND` over these masters.
#[track_caller]
pub(crate) fn start(masters: &Fleet, options: &[&str], command: &[&str]) -> Running {
    start_over(&masters.urls(), options, command)
}

/// The same over the masters with these URLs.
#[track_caller]
pub(crate) fn start_over<U: AsRef<str>>(masters: &[U], options: &[&str], command: &[&str]) -> Running {
    let named = masters.iter().flat_map(|url| ["-m", url.as_ref()]);
    let words: Vec<&str> =
        ["run"].into_iter().chain(named).chain(options.iter().copied()).chain([JOB, "--"]).collect();
    Running::of(quorlock(&words).args(command))
}

/// Runs to the end.
#[track_caller]
pub(crate) fn run(masters: &Fleet, options: &[&str], command: &[&str]) -> Ended {
    start(masters, options, command).end()
}

/// Runs a subcommand other than `run` with these arguments, over these masters, to the end. The
/// token of a lock that was left held is in its environment.
#[track_caller]
pub(crate) fn call(masters: &Fleet, words: &[&str], token: Option<&str>) -> Ended {
    let mut command = quorlock(words);
    command.env("QUORLOCK_MASTERS", masters.urls().join(","));
    if let Some(token) = token {
        command.env("QUORLOCK_TOKEN", token);
    }
    Running::of(&mut command).end()
}

/// Takes the lock and leaves it held. Returns the token.
#[track_caller]
pub(crate) fn acquire(masters: &Fleet, options: &[&str]) -> String {
    let ended = call(masters, &[&["acquire"], options, &[JOB]].concat(), None);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    exported(&ended.out, "QUORLOCK_TOKEN").unwrap_or_else(|| panic!("no token: {}", ended.out))
}

/// The value of `variable` in the lines for a shell.
pub(crate) fn exported(lines: &str, variable: &str) -> Option<String> {
    let start = format!("export {variable}=");
    lines.lines().find_map(|line| line.strip_prefix(&start)?.strip_suffix(';')).map(str::to_owned)
}

/// `quorlock` with these arguments, and none of its variables in the environment.
pub(crate) fn quorlock(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary::quorlock());
    for variable in ["MASTERS", "PREFIX", "RESOURCE", "TOKEN", "FENCE", "PERMIT"] {
        command.env_remove(format!("QUORLOCK_{variable}"));
    }
    command.args(arguments);
    command
}

impl Running {
    /// Starts `command`.
    #[track_caller]
    pub(crate) fn of(command: &mut Command) -> Self {
        let directory = tempfile::Builder::new().prefix("quorlock-").tempdir().unwrap();
        let file = |name| File::create(directory.path().join(name)).unwrap();
        let begun = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(file("out"))
            .stderr(file("err"))
            // If there is a terminal, the process is not in the group that has its foreground:
            // these tests are for runs without the foreground.
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} cannot be executed: {error}"));
        let input = child.stdin.take();
        Self { child, input, directory, begun }
    }

    /// What has been written to standard output until now.
    pub(crate) fn out(&self) -> String {
        self.written("out")
    }

    /// What has been written to standard error until now.
    pub(crate) fn err(&self) -> String {
        self.written("err")
    }

    fn written(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.directory.path().join(name)).unwrap()).into_owned()
    }

    /// Waits until the command has written a line, and returns it.
    #[track_caller]
    pub(crate) fn first_line(&mut self) -> String {
        eventually(SOON, "the command runs and says so", || self.out().contains('\n') || !self.goes_on());
        let out = self.out();
        let Some((line, _)) = out.split_once('\n') else {
            panic!("the command never ran: {:?}", self.err());
        };
        line.to_owned()
    }

    /// Whether `quorlock` has not ended yet.
    pub(crate) fn goes_on(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to `quorlock` alone.
    #[track_caller]
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Writes to standard input.
    #[track_caller]
    pub(crate) fn say(&mut self, text: &str) {
        self.input.as_mut().expect("standard input is open").write_all(text.as_bytes()).unwrap();
    }

    /// Waits until it ends by itself, with standard input left open.
    #[track_caller]
    pub(crate) fn end_by_itself(mut self) -> Ended {
        eventually(SOON, "the run ends", || !self.goes_on());
        let took = self.begun.elapsed();
        let status = self.child.wait().unwrap();
        assert_eq!(status.signal(), None, "quorlock died: {:?}", self.err());
        Ended { code: status.code(), out: self.out(), err: self.err(), took }
    }

    /// Closes standard input, which ends those commands that only hold the lock, and waits for the
    /// end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        self.input = None;
        self.end_by_itself()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The command reads standard input, so it also ends without `quorlock`; TERM lets
        // `quorlock` end it in order.
        self.input = None;
        if self.goes_on() {
            let id = Pid::from_child(&self.child);
            let _ = kill_process(id, Signal::TERM);
            let _ = kill_process(id, Signal::CONT);
            let give_up = Instant::now() + Duration::from_secs(5);
            while self.goes_on() && Instant::now() < give_up {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until no server has the key any more.
#[track_caller]
pub(crate) fn assert_free(servers: &[RedisServer]) {
    // The run waits only for a quorum of answers; the others come a moment later.
    eventually_equals(Duration::from_secs(5), "no key is left", 0, || {
        servers.iter().filter(|server| server.exists(JOB)).count()
    });
}
