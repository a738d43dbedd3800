//! Where the output of a run goes, and who reads it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio as ProcessStdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Action, tcflow};

use super::cell::Stdio;

/// The other side of a run's output. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Reader {
    read: Arc<Mutex<Vec<u8>>>,
    is_read: bool,
    /// What stays open, unread.
    _kept: Vec<OwnedFd>,
}

impl Reader {
    /// Sets the standard streams of `command`. The error says why this machine cannot make them.
    pub(super) fn set(stdio: Stdio, command: &mut Command) -> Result<Self, String> {
        let read = Arc::new(Mutex::new(Vec::new()));
        let mut kept = Vec::new();
        command.stdin(ProcessStdio::null()).stdout(ProcessStdio::null()).stderr(ProcessStdio::null());
        match stdio {
            Stdio::Terminal | Stdio::TerminalStopped => {
                let (ours, theirs) = terminal().map_err(|error| format!("no terminal: {error}"))?;
                if stdio == Stdio::TerminalStopped {
                    tcflow(&theirs, Action::OOff)
                        .map_err(|error| format!("it cannot be stopped: {error}"))?;
                }
                read_on(File::from(ours), &read);
                for set in [Command::stdin, Command::stdout, Command::stderr] {
                    set(command, theirs.try_clone().expect("a descriptor"));
                }
                kept.push(theirs);
            }
            Stdio::PipeRead => {
                let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
                read_on(File::from(ours), &read);
                command.stdout(theirs.try_clone().expect("a descriptor")).stderr(theirs);
            }
            Stdio::PipeFull => {
                let (ours, theirs) = full_pipe();
                kept.push(ours);
                command.stdout(theirs.try_clone().expect("a descriptor")).stderr(theirs);
            }
            Stdio::DevFull => {
                let full = fs::OpenOptions::new().write(true).open("/dev/full");
                let full = full.map_err(|error| format!("no /dev/full: {error}"))?;
                command.stdout(full.try_clone().expect("a descriptor")).stderr(full);
            }
            // A shell closes them.
            Stdio::Closed => {}
        }
        Ok(Self { read, is_read: matches!(stdio, Stdio::Terminal | Stdio::PipeRead), _kept: kept })
    }

    /// What has been read, if anything could be.
    pub(super) fn text(&self) -> Option<String> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_read.then(|| String::from_utf8_lossy(&read).into_owned())
    }
}

/// A terminal: the end of the program that shows it, and the end of the programs in it.
///
/// # Errors
/// If the system has none.
pub fn terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let path = ptsname(&ours, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(path, flags, rustix::fs::Mode::empty())?;
    Ok((ours, theirs))
}

/// A pipe that is full: the end that would have to be read, and the end whose writers wait.
pub fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    fcntl_setfl(&writer, OFlags::NONBLOCK).expect("a pipe");
    while rustix::io::write(&writer, &[b'.'; 4096]).is_ok() {}
    while rustix::io::write(&writer, b".").is_ok() {}
    fcntl_setfl(&writer, OFlags::empty()).expect("a pipe");
    (reader, writer)
}

/// Reads on a thread until the other side is closed.
fn read_on(mut from: impl Read + Send + 'static, to: &Arc<Mutex<Vec<u8>>>) {
    let to = Arc::clone(to);
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(number) = from.read(&mut bytes) {
            let Some(read) = bytes.get(..number).filter(|read| !read.is_empty()) else { return };
            to.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(read);
        }
    });
}
