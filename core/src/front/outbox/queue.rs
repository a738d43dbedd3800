//! The bytes on their way to the sockets. The thread that has the queue writes them, without
//! waiting.

use std::io::{self, Write};

use crate::protocol::{MasterId, MasterSet};

/// A backlog buffer larger than this is given back once it is empty. Larger: memory stays taken
/// after a burst. Smaller: a busy connection allocates for each burst.
const KEPT_BACKLOG_BYTES: usize = 16 * 1024;

/// A socket that takes bytes without waiting, or says [`io::ErrorKind::WouldBlock`].
pub(in crate::front) type Sink = Box<dyn Write + Send>;

/// The bytes on their way to every master.
pub(in crate::front) struct Queue {
    outlets: Vec<Outlet>,
    /// Masters with something to write or to close.
    pending: Vec<MasterId>,
}

/// The bytes on their way to one master.
#[derive(Default)]
struct Outlet {
    generation: u32,
    sink: Option<Sink>,
    backlog: Vec<u8>,
    /// The connection is to be closed behind what the socket still takes.
    closing: bool,
    /// The socket took less than there was; the driver waits for room.
    is_full: bool,
}

impl Queue {
    pub(super) fn new(masters: usize) -> Self {
        Self { outlets: (0..masters).map(|_| Outlet::default()).collect(), pending: Vec::new() }
    }

    pub(in crate::front) fn open(&mut self, master: MasterId, generation: u32, sink: Sink) {
        if let Some(outlet) = self.outlets.get_mut(master.index()) {
            *outlet = Outlet { generation, sink: Some(sink), ..Outlet::default() };
        }
    }

    pub(in crate::front) fn append(&mut self, master: MasterId, generation: u32, bytes: &[u8]) {
        let Some(outlet) = self.outlets.get_mut(master.index()) else { return };
        if outlet.generation == generation && outlet.sink.is_some() {
            outlet.backlog.extend_from_slice(bytes);
            // A full socket is tried again when the driver finds room in it.
            if !outlet.is_full {
                self.pending.push(master);
            }
        }
    }

    pub(in crate::front) fn close(&mut self, master: MasterId, generation: u32) {
        let Some(outlet) = self.outlets.get_mut(master.index()) else { return };
        if outlet.generation == generation && outlet.sink.is_some() {
            outlet.closing = true;
            self.pending.push(master);
        }
    }

    pub(super) fn is_full(&self, master: MasterId) -> bool {
        self.outlets.get(master.index()).is_some_and(|outlet| outlet.is_full)
    }

    /// Masters whose sockets are full.
    pub(super) fn full(&self) -> MasterSet {
        let mut full = MasterSet::EMPTY;
        for (master, outlet) in MasterId::all(self.outlets.len()).zip(&self.outlets) {
            if outlet.is_full {
                full.insert(master);
            }
        }
        full
    }

    /// Has the next [`Queue::write`] try a socket again that took less than there was.
    pub(super) fn retry(&mut self, master: MasterId) {
        self.pending.push(master);
    }

    /// Writes what the sockets take. Returns whether one of them has become full.
    ///
    /// An error is not handled here: the driver's read side learns of it too, and tells the machine
    /// in order.
    pub(super) fn write(&mut self) -> bool {
        let mut became_full = false;
        while let Some(master) = self.pending.pop() {
            let Some(outlet) = self.outlets.get_mut(master.index()) else { continue };
            let was_full = outlet.is_full;
            outlet.write();
            became_full |= outlet.is_full && !was_full;
        }
        became_full
    }
}

impl Outlet {
    fn write(&mut self) {
        self.is_full = false;
        let Some(sink) = &mut self.sink else { return };
        let mut written = 0;
        while let Some(rest) = self.backlog.get(written..).filter(|rest| !rest.is_empty()) {
            match sink.write(rest) {
                Ok(0) => break,
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_full = !self.closing;
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
