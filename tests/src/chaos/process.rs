//! The handle of a client's process in the process that started it.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::client::Orders;
use super::history::{What, Writer};
use crate::spawn;

/// The program that contains [`client::main`](super::client::main), and the arguments that select
/// it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// The arguments before the orders.
    pub arguments: Vec<String>,
}

/// A client's process. Dropping it kills it.
#[derive(Debug)]
pub struct ClientProcess {
    name: String,
    child: Child,
}

impl ClientProcess {
    /// Starts a client.
    ///
    /// # Errors
    /// When the program cannot be executed.
    pub fn start(program: &Program, orders: &Orders) -> io::Result<Self> {
        let mut command = spawn::tied_command(&program.path);
        command.args(&program.arguments).args(orders.arguments()).stdin(Stdio::null());
        Ok(Self { name: orders.name.clone(), child: spawn::spawn(command)? })
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sends SIGSTOP, and waits until the process is stopped.
    pub fn pause(&self, history: &Writer) {
        let pid = self.signal(Signal::STOP);
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), options)).expect("the client is our child");
        history.note(What::Paused { client: self.name.clone() });
    }

    /// SIGCONT.
    pub fn resume(&self, history: &Writer) {
        history.note(What::Continued { client: self.name.clone() });
        self.signal(Signal::CONT);
    }

    /// Fails if the client has ended by itself, which no client does.
    ///
    /// # Errors
    /// When the client has ended.
    pub fn assert_alive(&mut self) -> io::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(io::Error::other(format!("client {} has ended: {status}", self.name))),
        }
    }

    fn signal(&self, signal: Signal) -> Pid {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("the client is our child and was not waited for");
        pid
    }
}

impl Drop for ClientProcess {
    fn drop(&mut self) {
        // An error means that the process has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
