//! The other end of a machine's connection: a master, or a sentinel that names it.

use std::time::Duration;

use quorlock_core::{Address, Entropy, EntropyFailed, MasterId};
use quorlock_sim::{Flow, Master, Session};

use super::input::next_random;

/// Random bytes for a machine: a plain sequence is enough here.
pub(crate) struct Sequence(pub(crate) u64);

impl Entropy for Sequence {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        for byte in bytes {
            self.0 = next_random(self.0);
            *byte = self.0.to_le_bytes()[3];
        }
        Ok(())
    }
}

/// A master and the connection that leads to it, or to its own sentinel.
pub(crate) struct Node {
    pub(crate) id: MasterId,
    pub(crate) generation: u32,
    pub(crate) model: Master,
    session: Session,
    /// The other end is a sentinel.
    is_sentinel: bool,
    /// The connection has been requested and is not reported as open yet.
    pub(crate) is_opening: bool,
    /// The bytes that were written to it and that it has not read.
    pub(crate) unread: Vec<u8>,
}

impl Node {
    pub(crate) fn new(id: MasterId, model: Master) -> Self {
        let (session, unread) = (Session::new(), Vec::new());
        Self { id, generation: 0, model, session, is_sentinel: false, is_opening: false, unread }
    }

    pub(crate) fn connect(&mut self, generation: u32, address: &Address) {
        self.generation = generation;
        self.session = self.model.accept();
        self.is_sentinel = matches!(address, Address::Tcp { port: 26379, .. });
        self.is_opening = true;
        self.unread.clear();
    }

    /// Returns its answers to everything that was written to it.
    pub(crate) fn serve(&mut self, now: Duration) -> (Vec<u8>, Flow) {
        let (mut replies, unread) = (Vec::new(), std::mem::take(&mut self.unread));
        if !self.is_sentinel {
            let flow = self.model.serve(&mut self.session, &unread, now, &mut replies);
            return (replies, flow);
        }
        if !unread.is_empty() {
            // The login, the master, and one other sentinel.
            replies.extend_from_slice(b"+OK\r\n*2\r\n$1\r\ns\r\n$4\r\n6379\r\n");
            replies.extend_from_slice(b"*1\r\n*4\r\n$2\r\nip\r\n$1\r\nc\r\n$4\r\nport\r\n$5\r\n26379\r\n");
        }
        (replies, Flow::Open)
    }
}
