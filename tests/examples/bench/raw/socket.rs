//! One socket of the floor, with the bytes to write and the requests without a reply.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

/// The size of the buffer for replies. Usually all replies that are on their way at once are
/// shorter.
const INBOX: usize = 64 * 1024;

/// A request without a reply.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) worker: usize,
    pub(super) phase: u64,
}

pub(super) struct Socket {
    stream: TcpStream,
    out: Vec<u8>,
    flight: VecDeque<Asked>,
    inbox: Box<[u8]>,
    /// How many bytes of the inbox are the beginning of a reply.
    rest: usize,
}

impl Socket {
    pub(super) fn connect(address: &SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).expect("a socket has this option");
        stream.set_nonblocking(true).expect("a socket has this option");
        let inbox = vec![0; INBOX].into_boxed_slice();
        Self { stream, out: Vec::new(), flight: VecDeque::new(), inbox, rest: 0 }
    }

    /// Whether every reply has arrived.
    pub(super) fn is_idle(&self) -> bool {
        self.flight.is_empty()
    }

    /// Whether the system has not accepted all bytes.
    pub(super) fn is_full(&self) -> bool {
        !self.out.is_empty()
    }

    pub(super) fn push(&mut self, asked: Asked, command: &[u8]) {
        self.out.extend_from_slice(command);
        self.flight.push_back(asked);
    }

    pub(super) fn write(&mut self) {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(length) if length == self.out.len() => self.out.clear(),
                Ok(length) => drop(self.out.drain(..length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("the server takes bytes: {error}"),
            }
        }
    }

    /// Adds all replies that have arrived.
    pub(super) fn read(&mut self, replies: &mut Vec<Asked>) {
        loop {
            let free = self.inbox.get_mut(self.rest..).unwrap_or_default();
            let room = free.len();
            let length = match self.stream.read(free) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("the server answers: {error}"),
            };
            assert!(length > 0, "the server has closed the connection");
            let filled = self.rest + length;
            let mut whole = 0;
            for line in self.inbox.get(..filled).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
                if line.last() == Some(&b'\n') {
                    whole += line.len();
                    let asked = self.flight.pop_front().expect("a reply that was asked for");
                    // There is no other client, so each request is granted and each release
                    // succeeds.
                    assert!(line == b"+OK\r\n" || line == b":1\r\n", "{}", line.escape_ascii());
                    replies.push(asked);
                }
            }
            self.inbox.copy_within(whole..filled, 0);
            self.rest = filled - whole;
            if length < room {
                return;
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
