//! Starting server processes so that none outlives the test process, even one that is killed.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;

const SERVER_VARIABLE: &str = "QUORLOCK_TEST_SERVER";
/// The value of the variable that selects embedded masters.
const EMBEDDED: &str = "embedded";

/// The kind of server for tests that do not need real servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Servers {
    /// Processes of a redis-server or valkey-server: the one that `QUORLOCK_TEST_SERVER` names, or
    /// the redis-server on `PATH`.
    Real,
    /// Masters inside the test's process: if there is no redis-server, or `QUORLOCK_TEST_SERVER` is
    /// `embedded`.
    Embedded,
}

impl Servers {
    /// The choice for this process. It is printed once if it is not real servers.
    pub fn chosen() -> Self {
        static CHOSEN: OnceLock<Servers> = OnceLock::new();
        *CHOSEN.get_or_init(|| {
            let named = named_server();
            let why = match &named {
                Some(named) if named == EMBEDDED => "as QUORLOCK_TEST_SERVER says",
                None if server_on_path().is_none() => "for there is no redis-server on PATH",
                _ => return Self::Real,
            };
            // Not with `eprintln!`, because the test harness hides that output for tests that pass.
            // Errors are ignored, because standard error may have no reader.
            let _ = writeln!(
                io::stderr().lock(),
                "these tests run on embedded masters, {why}; what needs real servers is called so, see tests/README.md"
            );
            Self::Embedded
        })
    }
}

type Order = (Command, mpsc::SyncSender<io::Result<Child>>);

/// A command that starts this server, or else the one that all tests run on. The server dies with
/// this process if the system supports that.
pub(crate) fn server_command(program: Option<&Path>) -> Command {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();

    tied_command(program.unwrap_or_else(|| BINARY.get_or_init(find_server)))
}

/// A command for this program, which dies with this process if the system supports that.
pub(crate) fn tied_command(binary: &Path) -> Command {
    static HAS_SETPRIV: OnceLock<bool> = OnceLock::new();

    // util-linux's setpriv asks for the signal and then becomes the server, so the process id stays
    // that of our child. Asking for it ourselves, between fork and exec, would need unsafe code.
    if *HAS_SETPRIV.get_or_init(setpriv_works) {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(binary);
        command
    } else {
        Command::new(binary)
    }
}

/// Starts the command from a thread that lives as long as the process: the system sends the signal
/// when the *thread* that started the child ends, and servers are started from threads of all
/// kinds.
pub(crate) fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<mpsc::Sender<Order>> = OnceLock::new();

    let spawner = SPAWNER.get_or_init(|| {
        let (orders, received) = mpsc::channel::<Order>();
        thread::Builder::new()
            .name("spawner".into())
            .spawn(move || {
                for (mut command, answer) in received {
                    // The caller waits for the answer, so the channel is open.
                    let _ = answer.send(command.spawn());
                }
            })
            .expect("a thread can be started");
        orders
    });
    let (answer, answered) = mpsc::sync_channel(1);
    spawner.send((command, answer)).expect("the spawner lives as long as the process");
    answered.recv().expect("the spawner answers every order")
}

/// The server that the environment names, if any.
fn named_server() -> Option<OsString> {
    std::env::var_os(SERVER_VARIABLE).filter(|named| !named.is_empty())
}

fn server_on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = std::env::split_paths(&path).map(|directory| directory.join("redis-server"));
    candidates.find(|file| file.is_file())
}

fn find_server() -> PathBuf {
    if let Some(named) = named_server().filter(|named| named != EMBEDDED) {
        let named = PathBuf::from(named);
        assert!(named.is_file(), "{SERVER_VARIABLE} names {}, which is no file", named.display());
        // Servers run in their own directory, so a relative path would be looked for there.
        // Symbolic links are not resolved: Debian's redis-server is a link to a program that
        // behaves differently under its own name.
        return std::path::absolute(&named)
            .unwrap_or_else(|error| panic!("{SERVER_VARIABLE} names {}: {error}", named.display()));
    }
    server_on_path().unwrap_or_else(|| {
        panic!(
            "this needs real servers, and there is no redis-server on PATH. Install it \
             (Debian, Ubuntu: apt-get install redis-server; Fedora: dnf install redis; macOS: brew install \
             redis), or set {SERVER_VARIABLE} to the path of a redis-server or valkey-server"
        )
    })
}

fn setpriv_works() -> bool {
    let mut probe = Command::new("setpriv");
    probe
        .args(["--pdeathsig", "KILL", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}
