//! Real servers, each a process with its own port and directory.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tempfile::TempDir;

use crate::client::{RawClient, Value};
use crate::eventually::poll;
use crate::options::{HARNESS_PASSWORD, HARNESS_USER, ServerOptions};
use crate::ports::PortLease;
use crate::spawn;

/// A server on a busy machine takes its time; a working one takes 10 ms.
const START_WITHIN: Duration = Duration::from_secs(15);
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);
const SHUTDOWN_WITHIN: Duration = Duration::from_secs(10);
const START_TRIES: usize = 5;

/// A real redis-server or valkey-server. Dropping it kills the process and removes its directory.
///
/// What looks into the server (`get`, `command`, …) opens a connection for each call, under an account of its
/// own that is not counted by [`RedisServer::connected_clients`], and panics when no answer comes within 5 s.
#[derive(Debug)]
pub struct RedisServer {
    options: ServerOptions,
    lease: PortLease,
    directory: TempDir,
    child: Mutex<Option<Child>>,
}

impl RedisServer {
    /// Starts a server with the default options and waits until it answers.
    ///
    /// # Panics
    /// With the server's log when it does not start, with instructions when none is installed.
    #[track_caller]
    pub fn start() -> Self {
        ServerOptions::new().start()
    }

    #[track_caller]
    pub(crate) fn with(options: &ServerOptions) -> Self {
        let mut failure = String::new();
        // A port that was free may be taken when the server binds it, by a process that knows nothing of
        // leases.
        for _ in 0..START_TRIES {
            let directory =
                tempfile::Builder::new().prefix("quorlock-").tempdir().expect("a temporary directory");
            let server = Self {
                options: options.clone(),
                lease: PortLease::take(),
                directory,
                child: Mutex::default(),
            };
            match server.launch() {
                Ok(()) => return server,
                Err(error) => failure = error,
            }
        }
        panic!("no server started in {START_TRIES} tries: {failure}");
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.lease.number()
    }

    /// The address for connections.
    pub fn address(&self) -> SocketAddr {
        self.lease.address()
    }

    /// `redis://127.0.0.1:port`, with the password if there is one.
    pub fn url(&self) -> String {
        let login =
            self.options.password.as_deref().map(|password| format!(":{}@", percent_encoded(password)));
        format!("redis://{}{}", login.unwrap_or_default(), self.address())
    }

    /// `unix:///…`, without the password, for which such URLs have no place.
    ///
    /// # Panics
    /// When the server was started without [`ServerOptions::unix_socket`].
    #[track_caller]
    pub fn unix_url(&self) -> String {
        assert!(self.options.unix_socket, "this server was started without a unix socket");
        format!("unix://{}", self.socket().display())
    }

    /// The process id, while there is a process.
    pub fn pid(&self) -> Option<u32> {
        self.child().as_ref().map(Child::id)
    }

    /// Whether the process exists, stopped or not.
    pub fn is_running(&self) -> bool {
        self.child().as_mut().is_some_and(|child| child.try_wait().is_ok_and(|status| status.is_none()))
    }

    /// SIGSTOP, and waits until the process stands still. The system goes on accepting connections and bytes
    /// for it.
    #[track_caller]
    pub fn stop(&self) {
        let pid = self.signal(Signal::STOP);
        // Without NOWAIT the news would be used up; with EXITED this ends also when the server has died.
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), options)).expect("the server is our child");
    }

    /// SIGCONT: the server executes what has arrived in the meantime.
    #[track_caller]
    pub fn cont(&self) {
        self.signal(Signal::CONT);
    }

    /// SIGKILL, and waits for the end. Nothing happens when the server is not running.
    pub fn kill(&self) {
        if let Some(mut child) = self.child().take() {
            // An error means that the process has ended by itself; it still has to be waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// SIGTERM, and waits for an orderly end.
    #[track_caller]
    pub fn shutdown(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
        if poll(SHUTDOWN_WITHIN, || (!self.is_running()).then_some(())).is_none() {
            panic!("the server did not end within {SHUTDOWN_WITHIN:?}:\n{}", self.log());
        }
        self.child().take();
    }

    /// Starts the server again on the same port and in the same directory, killing it before if it runs, and
    /// waits until it answers. Without [`ServerOptions::append_only`] it has forgotten everything.
    #[track_caller]
    pub fn restart(&self) {
        self.kill();
        if let Err(error) = self.launch() {
            panic!("the server did not come back: {error}");
        }
    }

    /// A connection under the harness's own account, for more than one command.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn client(&self) -> io::Result<RawClient> {
        let mut client = RawClient::try_connect(self.address())?;
        match client.try_command(&["AUTH", HARNESS_USER, HARNESS_PASSWORD])? {
            reply if reply.is_ok() => Ok(client),
            reply => Err(io::Error::other(format!("the harness may not log in: {reply:?}"))),
        }
    }

    /// Executes a command; the reply may be an error of the server.
    #[track_caller]
    pub fn command(&self, args: &[&str]) -> Value {
        self.client()
            .and_then(|mut client| client.try_command(args))
            .unwrap_or_else(|error| panic!("no reply to {args:?} from {}: {error}", self.address()))
    }

    /// The string at this key, if any.
    #[track_caller]
    pub fn get(&self, key: &str) -> Option<String> {
        match self.command(&["GET", key]) {
            Value::Nil => None,
            Value::Bulk(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            reply => panic!("GET {key}: {reply:?}"),
        }
    }

    /// The remaining life of this key in milliseconds; -1 without an end, -2 without the key.
    #[track_caller]
    pub fn pttl(&self, key: &str) -> i64 {
        self.int(&["PTTL", key])
    }

    /// Whether this key exists.
    #[track_caller]
    pub fn exists(&self, key: &str) -> bool {
        self.int(&["EXISTS", key]) == 1
    }

    /// `SET key value NX`, without an end: whether the key was free.
    #[track_caller]
    pub fn set_nx(&self, key: &str, value: &str) -> bool {
        match self.command(&["SET", key, value, "NX"]) {
            Value::Nil => false,
            reply if reply.is_ok() => true,
            reply => panic!("SET {key} {value} NX: {reply:?}"),
        }
    }

    /// Deletes this key: whether it existed.
    #[track_caller]
    pub fn del(&self, key: &str) -> bool {
        self.int(&["DEL", key]) == 1
    }

    /// How many clients are connected, without the harness's own connections and without replication links.
    #[track_caller]
    pub fn connected_clients(&self) -> usize {
        let list = self.command(&["CLIENT", "LIST"]);
        let list = list.text().expect("CLIENT LIST answers text");
        let own = format!("user={HARNESS_USER}");
        let is_replication =
            |field: &str| field.strip_prefix("flags=").is_some_and(|flags| flags.contains(['S', 'M']));
        list.lines()
            .filter(|line| !line.split(' ').any(|field| field == own || is_replication(field)))
            .count()
    }

    /// What the server has logged since it was first started.
    pub fn log(&self) -> String {
        fs::read(self.directory.path().join("log")).map_or_else(
            |error| format!("(no log: {error})"),
            |log| String::from_utf8_lossy(&log).into_owned(),
        )
    }

    /// Starts the process and waits until it answers; the error carries the log.
    fn launch(&self) -> Result<(), String> {
        let directory = self.directory.path();
        let file = self.options.file(self.port(), &self.socket());
        fs::write(directory.join("redis.conf"), file).expect("the server's directory is writable");
        let log = File::options().create(true).append(true).open(directory.join("log"));
        let log = log.expect("the server's directory is writable");
        let mut command = spawn::server_command();
        command
            .arg("redis.conf")
            .args(&self.options.args)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stderr(log.try_clone().expect("a file descriptor is left"))
            .stdout(log);
        *self.child() =
            Some(spawn::spawn(command).map_err(|error| format!("it cannot be executed: {error}"))?);

        match poll(
            START_WITHIN,
            || if self.is_running() { self.answers().then_some(true) } else { Some(false) },
        ) {
            Some(true) => Ok(()),
            Some(false) => Err(format!("it ended at once:\n{}", self.log())),
            None => Err(format!("it did not answer within {START_WITHIN:?}:\n{}", self.log())),
        }
    }

    /// Whether it answers anything, be it that a password is needed, except that it is still reading its
    /// data.
    fn answers(&self) -> bool {
        let ping = || {
            let mut client = RawClient::try_connect(self.address())?;
            client.set_timeout(PROBE_TIMEOUT)?;
            client.try_command(&["PING"])
        };
        ping().is_ok_and(|reply| !reply.error().is_some_and(|error| error.starts_with("LOADING")))
    }

    #[track_caller]
    fn signal(&self, signal: Signal) -> Pid {
        let child = self.child();
        // The child is waited for under this lock only, so the id is not another process's.
        let pid = Pid::from_child(child.as_ref().expect("the server has been started and not killed"));
        kill_process(pid, signal).expect("the server is our child");
        pid
    }

    #[track_caller]
    fn int(&self, args: &[&str]) -> i64 {
        let reply = self.command(args);
        reply.int().unwrap_or_else(|| panic!("{args:?}: {reply:?}"))
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("redis.sock")
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        // A panic elsewhere must not keep the process alive.
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // SIGKILL ends a stopped process too.
        self.kill();
    }
}

fn percent_encoded(text: &str) -> String {
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if unreserved(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
