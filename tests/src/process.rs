//! A real server's process, with its own directory.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tempfile::TempDir;

use crate::client::{RawClient, Value};
use crate::eventually::poll;
use crate::options::ServerOptions;
use crate::ports::PortLease;
use crate::spawn;

/// The longest start of a server, which usually takes 10 ms, on a busy machine.
const START_WITHIN: Duration = Duration::from_secs(15);
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);
const SHUTDOWN_WITHIN: Duration = Duration::from_secs(10);

/// A redis-server or valkey-server. Dropping it kills the process and removes its directory.
#[derive(Debug)]
pub(crate) struct Process {
    directory: TempDir,
    child: Mutex<Option<Child>>,
}

impl Process {
    /// Creates a slot for a process, which is not started yet.
    pub(crate) fn new() -> Self {
        let directory =
            tempfile::Builder::new().prefix("quorlock-").tempdir().expect("a temporary directory");
        Self { directory, child: Mutex::default() }
    }

    /// The process id, while there is a process.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child().as_ref().map(Child::id)
    }

    /// Whether the process exists, stopped or not.
    pub(crate) fn is_running(&self) -> bool {
        self.child().as_mut().is_some_and(|child| child.try_wait().is_ok_and(|status| status.is_none()))
    }

    /// Sends SIGSTOP, and waits until the process is stopped. The system still accepts connections
    /// and bytes for it.
    #[track_caller]
    pub(crate) fn stop(&self) {
        let pid = self.signal(Signal::STOP);
        // Without NOWAIT the status would be consumed; with EXITED this ends also when the server
        // has died.
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), options)).expect("the server is our child");
    }

    /// SIGCONT: the server executes what has arrived in the meantime.
    #[track_caller]
    pub(crate) fn cont(&self) {
        self.signal(Signal::CONT);
    }

    /// SIGKILL, and waits for the end. Nothing happens when the server is not running.
    pub(crate) fn kill(&self) {
        if let Some(mut child) = self.child().take() {
            // An error means that the process has ended by itself; it still has to be waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// SIGTERM, and waits for an orderly end.
    #[track_caller]
    pub(crate) fn shutdown(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
        if poll(SHUTDOWN_WITHIN, || (!self.is_running()).then_some(())).is_none() {
            panic!("the server did not end within {SHUTDOWN_WITHIN:?}:\n{}", self.log());
        }
        self.child().take();
    }

    /// What the server has logged since it was first started.
    pub(crate) fn log(&self) -> String {
        fs::read(self.directory.path().join("log")).map_or_else(
            |error| format!("(no log: {error})"),
            |log| String::from_utf8_lossy(&log).into_owned(),
        )
    }

    /// Starts the process and waits until it answers; the error carries the log.
    pub(crate) fn launch(&self, options: &ServerOptions, lease: &PortLease) -> Result<(), String> {
        let directory = self.directory.path();
        let file = options.file(lease.number(), &self.socket());
        fs::write(directory.join("redis.conf"), file).expect("the server's directory is writable");
        let log = File::options().create(true).append(true).open(directory.join("log"));
        let log = log.expect("the server's directory is writable");
        let mut command = spawn::server_command(options.program.as_deref());
        command
            .arg("redis.conf")
            .args(&options.args)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stderr(log.try_clone().expect("a file descriptor is left"))
            .stdout(log);
        *self.child() =
            Some(spawn::spawn(command).map_err(|error| format!("it cannot be executed: {error}"))?);

        match poll(START_WITHIN, || {
            if self.is_running() { self.answers(options, lease).then_some(true) } else { Some(false) }
        }) {
            Some(true) => Ok(()),
            Some(false) => Err(format!("it ended at once:\n{}", self.log())),
            None => Err(format!("it did not answer within {START_WITHIN:?}:\n{}", self.log())),
        }
    }

    /// Whether the server answers. Any answer counts, such as that a password is needed, except
    /// that it is still loading its data.
    fn answers(&self, options: &ServerOptions, lease: &PortLease) -> bool {
        let ping = || -> io::Result<Value> {
            let mut client = self.client(options, lease)?;
            client.set_timeout(PROBE_TIMEOUT)?;
            let reply = client.try_command(&["PING"])?;
            // QUIT, so that a later count of the server's clients does not include this one.
            client.try_command(&["QUIT"])?;
            let _ = client.receive();
            Ok(reply)
        };
        ping().is_ok_and(|reply| !reply.error().is_some_and(|error| error.starts_with("LOADING")))
    }

    /// A connection on which nothing has been sent.
    pub(crate) fn client(&self, options: &ServerOptions, lease: &PortLease) -> io::Result<RawClient> {
        if options.is_tls() {
            RawClient::try_connect_unix(&self.socket())
        } else {
            RawClient::try_connect(lease.address())
        }
    }

    #[track_caller]
    fn signal(&self, signal: Signal) -> Pid {
        let child = self.child();
        // The child is waited for under this lock only, so the id is not another process's.
        let pid = Pid::from_child(child.as_ref().expect("the server has been started and not killed"));
        kill_process(pid, signal).expect("the server is our child");
        pid
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("redis.sock")
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        // A panic elsewhere must not keep the process alive.
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL ends a stopped process too.
        self.kill();
    }
}
