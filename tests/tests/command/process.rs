//! Starts the command and looks at it from outside.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use quorlock_tests::{RedisServer, eventually};

/// More than any of these processes may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The binary, built like the tests themselves. It belongs to another package, so cargo does not tell its place.
fn binary() -> &'static PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let own = std::env::current_exe().unwrap();
        let profile =
            own.parent().and_then(|deps| deps.parent()).expect("tests run in target/<profile>/deps");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "-p", "quorlock-blocking", "--features", "cli", "--bin", "quorlock"]);
        build.args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml")]);
        build.arg("--target-dir").arg(profile.parent().expect("a profile's folder lies in target"));
        if profile.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success(), "quorlock can be built");
        profile.join("quorlock")
    })
}

/// A `quorlock run` that is ended with its owner.
pub(crate) struct Quorlock {
    child: Child,
}

/// What is left of it.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The arguments `-m URL` for each master.
pub(crate) fn on(masters: &[RedisServer]) -> Vec<String> {
    masters.iter().flat_map(|master| ["-m".into(), master.url()]).collect()
}

/// `quorlock run` with these arguments and a shell script as the program.
pub(crate) fn run(masters: &[RedisServer], arguments: &[&str], script: &str) -> Quorlock {
    let mut all: Vec<String> = on(masters);
    all.extend(arguments.iter().map(|&argument| argument.to_owned()));
    all.extend(["job", "--", "sh", "-c", script].map(str::to_owned));
    start(&all, &[])
}

/// `quorlock run` with exactly these arguments.
pub(crate) fn start(arguments: &[String], environment: &[(&str, &str)]) -> Quorlock {
    let mut command = Command::new(binary());
    command.arg("run").args(arguments).envs(environment.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Quorlock { child: command.spawn().unwrap() }
}

impl Quorlock {
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn stdin(&mut self) -> std::process::ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// Waits until the program has said `ready`, which it does once its traps are set. That the masters hold the key does not
    /// mean that quorlock has heard so.
    pub(crate) fn ready(&mut self) {
        let mut said = [0; 6];
        self.child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
        assert_eq!(&said, b"ready\n");
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "quorlock ends within {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(2));
        };
        let (mut out, mut err) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        Ended { status, out, err }
    }
}

impl Drop for Quorlock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("it exits: {}, {}", self.status, self.err))
    }
}

/// Waits until so many masters hold the key.
pub(crate) fn held_on(masters: &[RedisServer], count: usize) {
    eventually(PATIENCE, "the masters hold the key", || {
        masters.iter().filter(|master| master.exists("job")).count() == count
    });
}

/// Waits until no master that answers holds the key.
pub(crate) fn gone(masters: &[RedisServer]) {
    eventually(PATIENCE, "no master holds the key", || !masters.iter().any(|master| master.exists("job")));
}
