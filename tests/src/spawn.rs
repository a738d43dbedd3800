//! Starting server processes so that none outlives the test process, even one that is killed.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;

const SERVER_VARIABLE: &str = "QUORLOCK_TEST_SERVER";

type Order = (Command, mpsc::SyncSender<io::Result<Child>>);

/// A command for the server binary that dies with this process where the system offers it.
pub(crate) fn server_command() -> Command {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    static HAS_SETPRIV: OnceLock<bool> = OnceLock::new();

    let binary = BINARY.get_or_init(find_server);
    // util-linux's setpriv asks for the signal and then becomes the server, so the process id stays that of
    // our child. Asking for it ourselves, between fork and exec, would need unsafe code.
    if *HAS_SETPRIV.get_or_init(setpriv_works) {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(binary);
        command
    } else {
        Command::new(binary)
    }
}

/// Starts the command from a thread that lives as long as the process: the system sends the signal when the
/// *thread* that started the child ends, and servers are started from threads of all kinds.
pub(crate) fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<mpsc::Sender<Order>> = OnceLock::new();

    let spawner = SPAWNER.get_or_init(|| {
        let (orders, received) = mpsc::channel::<Order>();
        thread::Builder::new()
            .name("spawner".into())
            .spawn(move || {
                for (mut command, answer) in received {
                    // The asker waits for the answer, so the channel is open.
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

fn find_server() -> PathBuf {
    if let Some(named) = std::env::var_os(SERVER_VARIABLE) {
        let named = PathBuf::from(named);
        assert!(named.is_file(), "{SERVER_VARIABLE} names {}, which is no file", named.display());
        // Servers run in their own directory, so a relative path would be looked for there. Symbolic links stay: Debian's redis-server
        // is one, and what it leads to is another program under its own name.
        return std::path::absolute(&named)
            .unwrap_or_else(|error| panic!("{SERVER_VARIABLE} names {}: {error}", named.display()));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = std::env::split_paths(&path).map(|directory| directory.join("redis-server"));
    candidates.find(|file| file.is_file()).unwrap_or_else(|| {
        panic!(
            "these tests run against real servers, and there is no redis-server on PATH. Install it \
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
