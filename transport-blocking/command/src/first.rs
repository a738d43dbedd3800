//! The first process: `quorlock` started by itself, which becomes the command.
//!
//! The command must end if `quorlock` is killed, and must not run before it has the terminal. For
//! both, something has to happen in the child before `exec`. In this program's own code, that needs
//! `unsafe`; in a process of its own, it does not. That process
//!
//! 1. asks for SIGKILL when its parent ends, which stays in force after `exec`, unless the program
//!    gets another user's rights;
//! 2. waits for the parent, which first gives it the terminal;
//! 3. takes the standard input of the command, and becomes the command.
//!
//! Its own standard input is a socket. Through it, it receives the command's, and reports why the
//! command cannot be executed. `exec` closes the socket: then the parent knows that the command
//! runs. Nothing else is inherited, so the command sees no trace of this.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use rustix::stdio::dup2_stdin;

use crate::ending::SYSTEM;

/// What marks the first process in its arguments. No subcommand has such a name.
const WORD: &str = "//first-process";

/// Our own program, even if its file has been replaced or deleted.
const OURSELVES: &str = "/proc/self/exe";

/// A first process that waits.
#[derive(Debug)]
pub(crate) struct First {
    child: Child,
    socket: UnixStream,
}

impl First {
    /// Starts the first process of `command` with what `prepare` adds to it. An error means that
    /// `quorlock` could not start itself.
    pub(crate) fn start(command: &[&OsStr], prepare: impl FnOnce(&mut Command)) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut first = Command::new(OURSELVES);
        first.arg0("quorlock").arg(WORD).arg(getpid().as_raw_pid().to_string()).args(command);
        first.stdin(Stdio::from(OwnedFd::from(theirs)));
        prepare(&mut first);
        let child = first.spawn()?;
        // With `first`, our copy of its end of the socket is closed.
        Ok(Self { child, socket: ours })
    }

    /// The number of the process, which becomes that of the command.
    pub(crate) fn id(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Lets it become the command, and waits until it has. An error means that the command cannot
    /// be executed.
    pub(crate) fn go(mut self) -> io::Result<Child> {
        // If it has been killed, nobody receives this, and the child's end says so.
        let _ = send(&self.socket);
        let mut error = [0; size_of::<i32>()];
        if self.socket.read_exact(&mut error).is_ok() {
            let _ = self.child.wait();
            return Err(io::Error::from_raw_os_error(i32::from_ne_bytes(error)));
        }
        Ok(self.child)
    }
}

/// Sends our standard input.
fn send(socket: &UnixStream) -> rustix::io::Result<()> {
    let input = io::stdin();
    let descriptors = [input.as_fd()];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    message.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(socket, &[IoSlice::new(&[0])], &mut message, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// If this is a first process, becomes the command. Returns the exit code if that failed.
pub(crate) fn become_command(mut words: impl Iterator<Item = OsString>) -> Option<u8> {
    if words.nth(1)? != WORD {
        return None;
    }
    // If even the socket is missing, this is no child of ours, and has no parent to tell.
    if let Ok(socket) = io::stdin().as_fd().try_clone_to_owned() {
        let mut socket = UnixStream::from(socket);
        let Err(error) = become_it(words, &socket);
        // An error without a number is one of the standard library, about an argument. The parent
        // reports it, with an exit code of its own.
        let number = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
        let _ = socket.write_all(&number.to_ne_bytes());
    }
    Some(SYSTEM)
}

fn become_it(mut words: impl Iterator<Item = OsString>, socket: &UnixStream) -> io::Result<Infallible> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // If the parent has ended before that, nobody sends the signal any more.
    let parent = getppid().map(|parent| OsString::from(parent.as_raw_pid().to_string()));
    if words.next() != parent {
        return Err(Errno::SRCH.into());
    }
    let input = receive(socket)?;
    dup2_stdin(&input)?;
    drop(input);
    Err(Command::new(words.next().unwrap_or_default()).args(words).exec())
}

/// Waits for the standard input of the command.
fn receive(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut message, RecvFlags::CMSG_CLOEXEC)?;
    let mut received = message.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    received.next().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
