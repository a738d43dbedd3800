//! One connection to an embedded master.
//!
//! Its memory is bounded: the session holds one command of a limited size. While the other end
//! leaves too many bytes unread, no further command is executed and no byte is read. A client that
//! does not read its pushes is disconnected.

use std::io::{self, Read, Write};

use mio::net::TcpStream;
use quorlock_sim::{Flow, Session};

use super::server::Executor;

pub(super) struct Client {
    stream: TcpStream,
    session: Session,
    /// Replies that the socket has not taken yet.
    output: Vec<u8>,
    /// Nothing more is read, and the connection ends once the output is sent.
    is_closing: bool,
    /// More pushes are waiting than allowed.
    is_overrun: bool,
    /// The poll has reported an event for it, or its last turn was not enough.
    pub(super) is_ready: bool,
}

/// What follows a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// The client needs another turn, after the turns of the other clients.
    Again,
    /// The client waits for an event.
    Wait,
    /// The connection has ended.
    Gone,
}

impl Client {
    pub(super) fn new(stream: TcpStream, session: Session) -> Self {
        // A client may have written before its socket was registered with the poll.
        Self { stream, session, output: Vec::new(), is_closing: false, is_overrun: false, is_ready: true }
    }

    pub(super) fn name(&self) -> String {
        String::from_utf8_lossy(self.session.name()).into_owned()
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// Queues these bytes for its next turn, after all earlier replies.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.is_overrun |= self.output.len() + bytes.len() > MAX_PUSHED_BYTES;
        if !self.is_overrun {
            self.output.extend_from_slice(bytes);
        }
        self.is_ready = true;
    }

    pub(super) fn turn(&mut self, executor: &mut Executor<'_>, buffer: &mut [u8]) -> Next {
        if self.is_overrun {
            return Next::Gone;
        }
        for _ in 0..STEPS_PER_TURN {
            let all_executed = self.execute(executor);
            if self.flush().is_err() {
                return Next::Gone;
            }
            if self.output.len() >= MAX_OUTPUT_BYTES {
                return Next::Wait;
            }
            if !all_executed {
                continue;
            }
            if self.is_closing {
                return if self.output.is_empty() { Next::Gone } else { Next::Wait };
            }
            match self.stream.read(buffer) {
                Ok(0) => self.is_closing = true,
                Ok(bytes) => self.session.feed(buffer.get(..bytes).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Next::Wait,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Next::Gone,
            }
        }
        Next::Again
    }

    /// Executes what has been read, while there is room for replies. Returns whether all of it has
    /// been executed.
    fn execute(&mut self, executor: &mut Executor<'_>) -> bool {
        while !self.is_closing {
            if self.output.len() >= MAX_OUTPUT_BYTES {
                return false;
            }
            match executor.execute(&mut self.session, &mut self.output) {
                Some(Flow::Open) => {}
                Some(Flow::Close) => self.is_closing = true,
                None => break,
            }
        }
        true
    }

    /// Sends as much as the socket accepts at once.
    fn flush(&mut self) -> io::Result<()> {
        let mut sent = 0;
        while let Some(rest @ [_, ..]) = self.output.get(sent..) {
            match self.stream.write(rest) {
                Ok(0) => break,
                Ok(bytes) => sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.output.drain(..sent);
        if self.output.is_empty() {
            // A single large reply must not occupy memory for as long as the connection lives.
            self.output.shrink_to(MAX_OUTPUT_BYTES);
        }
        Ok(())
    }
}

/// While this many bytes wait to be sent, no command is executed. The reply to one command may be
/// added: it is at most as large as the largest value, which is a command's argument.
const MAX_OUTPUT_BYTES: usize = 64 << 10;
/// Nothing is pushed beyond this limit, which is larger than a reply and a push. Other clients may
/// cause any number of pushes.
const MAX_PUSHED_BYTES: usize = 4 << 20;
/// How many reads one connection gets before it is the turn of the others.
const STEPS_PER_TURN: usize = 8;
