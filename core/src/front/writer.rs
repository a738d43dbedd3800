//! The sockets' write side. Whoever has something to say writes it himself, without waiting.

use std::io::{self, Write};

use crate::protocol::{MasterId, MasterSet};

/// A socket that takes bytes without waiting, or says [`io::ErrorKind::WouldBlock`].
pub(super) type Sink = Box<dyn Write + Send>;

/// The bytes on their way to one master.
#[derive(Default)]
struct Outlet {
    generation: u32,
    sink: Option<Sink>,
    backlog: Vec<u8>,
    /// The connection is to be closed behind what the socket still takes.
    closing: bool,
    /// The socket took less than there was; the driver waits for room.
    blocked: bool,
}

/// The bytes on their way to every master.
pub(super) struct Writer {
    outlets: Vec<Outlet>,
    /// Masters with something to write or to close.
    pending: Vec<MasterId>,
}

impl Writer {
    pub(super) fn new(masters: usize) -> Self {
        Self { outlets: (0..masters).map(|_| Outlet::default()).collect(), pending: Vec::new() }
    }

    pub(super) fn open(&mut self, master: MasterId, generation: u32, sink: Sink) {
        if let Some(outlet) = self.outlets.get_mut(master.index()) {
            *outlet = Outlet { generation, sink: Some(sink), ..Outlet::default() };
        }
    }

    pub(super) fn append(&mut self, master: MasterId, generation: u32, bytes: &[u8]) {
        let Some(outlet) = self.outlets.get_mut(master.index()) else { return };
        if outlet.generation == generation && outlet.sink.is_some() {
            outlet.backlog.extend_from_slice(bytes);
            // A full socket is tried again when the driver finds room in it.
            if !outlet.blocked {
                self.pending.push(master);
            }
        }
    }

    pub(super) fn close(&mut self, master: MasterId, generation: u32) {
        let Some(outlet) = self.outlets.get_mut(master.index()) else { return };
        if outlet.generation == generation && outlet.sink.is_some() {
            outlet.closing = true;
            self.pending.push(master);
        }
    }

    pub(super) fn is_blocked(&self, master: MasterId) -> bool {
        self.outlets.get(master.index()).is_some_and(|outlet| outlet.blocked)
    }

    /// Masters whose sockets are full, one bit each.
    pub(super) fn blocked(&self) -> u64 {
        let mut blocked = MasterSet::EMPTY;
        for (master, outlet) in MasterId::all(self.outlets.len()).zip(&self.outlets) {
            if outlet.blocked {
                blocked.insert(master);
            }
        }
        blocked.bits()
    }

    /// Has the next [`Writer::write`] try a socket again that took less than there was.
    pub(super) fn retry(&mut self, master: MasterId) {
        self.pending.push(master);
    }

    /// Writes what the sockets take. Returns whether one of them has become full.
    ///
    /// An error is not handled here: the driver's read side learns of it too, and tells the machine in order.
    pub(super) fn write(&mut self) -> bool {
        let mut became_blocked = false;
        while let Some(master) = self.pending.pop() {
            let Some(outlet) = self.outlets.get_mut(master.index()) else { continue };
            let was_blocked = outlet.blocked;
            outlet.write();
            became_blocked |= outlet.blocked && !was_blocked;
        }
        became_blocked
    }
}

impl Outlet {
    fn write(&mut self) {
        self.blocked = false;
        let Some(sink) = &mut self.sink else { return };
        let mut written = 0;
        while let Some(rest) = self.backlog.get(written..).filter(|rest| !rest.is_empty()) {
            match sink.write(rest) {
                Ok(0) => break,
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked = !self.closing;
                    break;
                }
                Err(_) => {
                    written = self.backlog.len();
                    break;
                }
            }
        }
        if written == self.backlog.len() {
            self.backlog.clear();
            self.backlog.shrink_to(KEPT_BACKLOG_BYTES);
        } else {
            self.backlog.drain(..written);
        }
        if self.closing {
            *self = Self { generation: self.generation, ..Self::default() };
        }
    }
}

/// A backlog buffer larger than this is given back once it is empty.
const KEPT_BACKLOG_BYTES: usize = 16 * 1024;
