//! A server of its own for a program or a test.

use std::error::Error;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::binaries;

/// The longest start of a server, which usually takes a second, on a busy machine.
const START_WITHIN: Duration = Duration::from_secs(60);
/// After this time a server that was asked to end is killed.
const END_WITHIN: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);
/// The user that Debian's packages create. PostgreSQL refuses to run as root.
const USER: &str = "postgres";

/// A PostgreSQL server with an empty database, on a Unix socket in a temporary directory.
///
/// Dropping it ends the server and removes its directory. If this process is killed, the server
/// ends, too, but its directory stays.
#[derive(Debug)]
pub struct Postgres {
    directory: TempDir,
    child: Child,
}

impl Postgres {
    /// Starts a server, and waits until it accepts connections.
    ///
    /// Keep it in the thread that has called this: on Linux the server ends with that thread.
    ///
    /// # Errors
    ///
    /// If there is no PostgreSQL, or if it does not start. The error has what it has printed.
    pub fn start() -> Result<Self, Box<dyn Error + Send + Sync>> {
        let programs = binaries::folder().ok_or(
            "there is no PostgreSQL: initdb and postgres are neither in /usr/lib/postgresql nor on PATH \
             (Debian, Ubuntu: apt-get install postgresql)",
        )?;
        let directory = tempfile::Builder::new().prefix("quorlock-postgres-").tempdir()?;
        if geteuid().is_root() {
            chown(directory.path(), Some(id_of_user("-u")?), Some(id_of_user("-g")?))?;
        }
        let data = directory.path().join("data");
        let created = tied(&programs.join("initdb"), directory.path())
            .args(["--no-sync", "--no-locale", "--encoding=UTF8", "--auth=trust", "--username=postgres"])
            .arg("--pgdata")
            .arg(&data)
            .output()?;
        if !created.status.success() {
            return Err(format!("initdb failed: {}", String::from_utf8_lossy(&created.stderr)).into());
        }
        let log = File::create(directory.path().join("log"))?;
        let child = tied(&programs.join("postgres"), directory.path())
            // No address of the network: several servers may run, and only this user reaches it.
            .args(["-c", "listen_addresses=", "-c", "fsync=off", "-p", "5432", "-D"])
            .arg(&data)
            .arg("-k")
            .arg(directory.path())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut server = Self { directory, child };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// How `tokio_postgres` connects to it.
    pub fn config(&self) -> String {
        format!("host={} user=postgres dbname=postgres", self.directory.path().display())
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let began = Instant::now();
        let printed = |path: &Path| fs::read_to_string(path.join("log")).unwrap_or_default();
        loop {
            // The server writes there how far it is; pg_ctl looks there, too.
            let file = fs::read_to_string(self.directory.path().join("data/postmaster.pid"));
            if file.is_ok_and(|file| file.lines().nth(7).is_some_and(|status| status.trim() == "ready")) {
                return Ok(());
            }
            if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return Err(format!("PostgreSQL ended at once: {}", printed(self.directory.path())));
            }
            if began.elapsed() > START_WITHIN {
                let log = printed(self.directory.path());
                return Err(format!("PostgreSQL did not start within {START_WITHIN:?}: {log}"));
            }
            sleep(POLL);
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGQUIT ends the sessions, too, and waits for no client. After SIGKILL, shared memory
        // would stay.
        let _ = kill_process(Pid::from_child(&self.child), Signal::QUIT);
        let asked = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if asked.elapsed() > END_WITHIN {
                // An error means that the process has ended by itself.
                let _ = self.child.kill();
            }
            sleep(POLL);
        }
    }
}

/// A command for a program of PostgreSQL. On Linux it ends with this thread, and root runs it as
/// the user of PostgreSQL.
fn tied(program: &Path, directory: &Path) -> Command {
    let mut command = if cfg!(target_os = "linux") {
        // util-linux's setpriv becomes the program, so the process id stays that of our child.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "QUIT"]);
        if geteuid().is_root() {
            command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
        }
        command.arg(program);
        command
    } else {
        Command::new(program)
    };
    // The user of PostgreSQL may not be allowed to be in the present directory.
    command.current_dir(directory).stdin(Stdio::null());
    command
}

/// The number of the user of PostgreSQL (`-u`), or of its group (`-g`).
fn id_of_user(which: &str) -> io::Result<u32> {
    let printed = Command::new("id").args([which, USER]).output()?.stdout;
    String::from_utf8_lossy(&printed).trim().parse().map_err(|_| {
        io::Error::other(format!("PostgreSQL refuses to run as root, and there is no user {USER:?}"))
    })
}
