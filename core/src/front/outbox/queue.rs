//! The bytes on their way to the masters, and the channels that encrypt them.

use std::io::{self, Write};
use std::mem;

use super::super::securing::Secured;
use crate::protocol::{Cause, Channel, ChannelState, MasterId, MasterSet};

/// A backlog buffer larger than this is freed once it is empty. Larger: memory stays allocated
/// after a burst. Smaller: a busy connection allocates for each burst.
const KEPT_BACKLOG_BYTES: usize = 16 * 1024;

/// A socket that takes bytes without waiting, or says [`io::ErrorKind::WouldBlock`].
pub(in crate::front) type Sink = Box<dyn Write + Send>;

/// The bytes on their way to every master.
pub(in crate::front) struct Queue {
    outlets: Vec<Outlet>,
    /// Masters with something to write or to close.
    pending: Vec<MasterId>,
    /// Masters whose socket took less than there was; the driver waits for room.
    full: MasterSet,
    troubles: Vec<Trouble>,
}

/// An encrypted connection that cannot continue, or should not.
pub(in crate::front) struct Trouble {
    pub(in crate::front) master: MasterId,
    pub(in crate::front) generation: u32,
    /// `None` if the channel only needs a fresh connection.
    pub(in crate::front) cause: Option<Cause>,
}

/// The bytes on their way to one master.
#[derive(Default)]
struct Outlet {
    generation: u32,
    sink: Option<Sink>,
    /// The bytes as the socket gets them. Encrypted bytes are never dropped while the connection is
    /// open, and never encrypted twice: the other side counts records.
    backlog: Vec<u8>,
    channel: Option<Box<dyn Channel>>,
    /// Bytes that are yet to be encrypted; only with a channel.
    plain: Vec<u8>,
    /// Its channel has asked for a fresh connection in its place.
    is_worn: bool,
    /// The connection closes after the bytes that the socket still takes.
    closing: bool,
}

impl Queue {
    pub(super) fn new(masters: usize) -> Self {
        let outlets = (0..masters).map(|_| Outlet::default()).collect();
        Self { outlets, pending: Vec::new(), full: MasterSet::EMPTY, troubles: Vec::new() }
    }

    pub(super) fn full(&self) -> MasterSet {
        self.full
    }

    pub(super) fn has_troubles(&self) -> bool {
        !self.troubles.is_empty()
    }

    pub(super) fn take_troubles(&mut self) -> Vec<Trouble> {
        mem::take(&mut self.troubles)
    }

    pub(super) fn open(&mut self, master: MasterId, generation: u32, sink: Sink) {
        if let Some(outlet) = self.outlets.get_mut(master.index()) {
            *outlet = Outlet { generation, sink: Some(sink), ..Outlet::default() };
            self.full.remove(master);
        }
    }

    pub(super) fn open_secured(&mut self, master: MasterId, generation: u32, secured: Secured) {
        let Secured { channel, sink, backlog } = secured;
        self.open(master, generation, sink);
        if let Some(outlet) = self.outlets.get_mut(master.index()) {
            outlet.channel = Some(channel);
            outlet.backlog = backlog;
            self.pending.push(master);
        }
    }

    /// Takes bytes for a connection. Usually the backlog is empty: then the buffers are swapped,
    /// not copied.
    pub(in crate::front) fn append(&mut self, master: MasterId, generation: u32, bytes: &mut Vec<u8>) {
        let Some(outlet) = self.outlets.get_mut(master.index()) else { return };
        if outlet.generation == generation && outlet.sink.is_some() {
            let behind = if outlet.channel.is_none() { &mut outlet.backlog } else { &mut outlet.plain };
            if behind.is_empty() {
                mem::swap(behind, bytes);
            } else {
                behind.extend_from_slice(bytes);
            }
            // The driver tries a full socket again when it has room.
            if !self.full.contains(master) {
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

    /// Decrypts what came in on this connection. An answer of the channel itself, such as to a key
    /// update, is written at once.
    pub(super) fn decrypt(
        &mut self,
        master: MasterId,
        generation: u32,
        wire: &[u8],
        plain: &mut Vec<u8>,
    ) -> Option<Result<ChannelState, Cause>> {
        let outlet = self.outlets.get_mut(master.index())?;
        // Late bytes of an earlier connection would break the channel of this one.
        let channel = outlet.channel.as_mut().filter(|_| outlet.generation == generation)?;
        let queued = outlet.backlog.len();
        let state = channel.open(wire, plain, &mut outlet.backlog);
        if outlet.backlog.len() > queued && !self.full.contains(master) {
            self.pending.push(master);
            self.write();
        }
        Some(state)
    }

    pub(super) fn retry(&mut self, master: MasterId) -> bool {
        self.pending.push(master);
        self.write();
        !self.full.contains(master)
    }

    /// Writes what the sockets take. Returns whether one of them has become full.
    ///
    /// A socket's error is not handled here: the driver's read side also gets it, and passes it to
    /// the machine in order.
    pub(super) fn write(&mut self) -> bool {
        let mut became_full = false;
        while let Some(master) = self.pending.pop() {
            let Some(outlet) = self.outlets.get_mut(master.index()) else { continue };
            let generation = outlet.generation;
            if outlet.channel.is_some() {
                match outlet.seal() {
                    Ok(false) => {}
                    Ok(true) => self.troubles.push(Trouble { master, generation, cause: None }),
                    Err(cause) => self.troubles.push(Trouble { master, generation, cause: Some(cause) }),
                }
            }
            if !outlet.write() {
                self.full.remove(master);
            } else if !self.full.contains(master) {
                self.full.insert(master);
                became_full = true;
            }
        }
        became_full
    }
}

impl Outlet {
    /// Encrypts the plain bytes. Returns `true` once if a fresh connection should replace this one.
    fn seal(&mut self) -> Result<bool, Cause> {
        let Some(channel) = &mut self.channel else { return Ok(false) };
        let sealed =
            if self.plain.is_empty() { Ok(()) } else { channel.seal(&self.plain, &mut self.backlog) };
        self.plain.clear();
        self.plain.shrink_to(KEPT_BACKLOG_BYTES);
        if self.closing {
            channel.close(&mut self.backlog);
        }
        let was_worn = mem::replace(&mut self.is_worn, channel.is_worn());
        if sealed.is_err() {
            // Without its channel, the connection reports no second fault.
            self.channel = None;
            self.sink = None;
        }
        sealed.map(|()| self.is_worn && !was_worn)
    }

    /// Returns whether the driver must wait for room.
    fn write(&mut self) -> bool {
        let Some(sink) = &mut self.sink else { return false };
        let is_full = write(sink, &mut self.backlog) && !self.closing;
        if self.backlog.is_empty() {
            self.backlog.shrink_to(KEPT_BACKLOG_BYTES);
        }
        if self.closing {
            *self = Self::default();
        }
        is_full
    }
}

/// Writes what the socket takes of a backlog. Returns whether the socket is full. After an error
/// the backlog is empty.
pub(in crate::front) fn write(sink: &mut Sink, backlog: &mut Vec<u8>) -> bool {
    let (mut written, mut is_full) = (0, false);
    while let Some(rest) = backlog.get(written..).filter(|rest| !rest.is_empty()) {
        match sink.write(rest) {
            Ok(0) => break,
            Ok(bytes) => written += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                is_full = true;
                break;
            }
            Err(_) => {
                written = backlog.len();
                break;
            }
        }
    }
    if written == backlog.len() {
        backlog.clear();
    } else {
        backlog.drain(..written);
    }
    is_full
}

#[cfg(test)]
mod tests;
