//! The encrypted channels of a port, until their handshakes are done. After that they belong to the
//! outbox, through which callers write.

use std::mem;
use std::sync::Arc;

use super::outbox::{Sink, write};
use super::sync::{Mutex, lock};
use crate::endpoint::Address;
use crate::protocol::{Cause, Channel, ChannelState, Config, MasterId, MasterSet, TlsFault};

/// A buffer for decrypted bytes that is larger than this is freed.
const KEPT_PLAIN_BYTES: usize = 64 * 1024;

/// Handshakes under way.
///
/// Only the driver uses them: the expensive parts of a handshake, the key exchange and the check of
/// a certificate chain, run under no mutex that a caller needs.
pub(super) struct Securing {
    config: Arc<Config>,
    /// Masters whose URLs ask for TLS.
    masters: MasterSet,
    own: Mutex<Own>,
}

#[derive(Default)]
struct Own {
    /// The handshake of each master, if one is under way.
    handshakes: Vec<Option<Handshake>>,
    /// Where the next connection of each master goes.
    destinations: Vec<Option<Address>>,
    /// The buffer for decrypted bytes, allocated once.
    plain: Vec<u8>,
}

struct Handshake {
    generation: u32,
    channel: Box<dyn Channel>,
    sink: Sink,
    /// Bytes that the socket has yet to take.
    backlog: Vec<u8>,
    is_full: bool,
}

/// A handshake that is done.
pub(super) struct Secured {
    pub(super) channel: Box<dyn Channel>,
    pub(super) sink: Sink,
    pub(super) backlog: Vec<u8>,
}

impl Securing {
    pub(super) fn new(config: &Arc<Config>) -> Self {
        let numbered = config.master_ids().zip(config.masters());
        let masters = numbered.filter(|(_, endpoint)| endpoint.tls().is_some());
        let masters = masters.fold(MasterSet::EMPTY, |mut masters, (master, _)| {
            masters.insert(master);
            masters
        });
        let handshakes = config.masters().iter().map(|_| None).collect();
        let destinations = vec![None; config.masters().len()];
        let own = Own { handshakes, destinations, plain: Vec::new() };
        Self { config: Arc::clone(config), masters, own: Mutex::new(own) }
    }

    /// Whether the connections to this master are encrypted.
    pub(super) fn is_for(&self, master: MasterId) -> bool {
        self.masters.contains(master)
    }

    /// The next connection of this master goes to this address.
    pub(super) fn heads_for(&self, master: MasterId, address: &Address) {
        if let Some(destination) = lock(&self.own).destinations.get_mut(master.index()) {
            *destination = Some(address.clone());
        }
    }

    /// Begins the handshake on a connection that has been opened.
    pub(super) fn begin(&self, master: MasterId, generation: u32, sink: Sink) -> Result<(), Cause> {
        let endpoint = self.config.masters.get(master.index()).ok_or(Cause::Closed)?;
        let security = self.config.security.as_ref().ok_or(Cause::Tls(TlsFault::NotBuiltIn))?;
        let destination = lock(&self.own).destinations.get(master.index()).cloned().flatten();
        let channel = security.channel(endpoint, destination.as_ref().unwrap_or(endpoint.address()))?;
        let mut handshake = Handshake { generation, channel, sink, backlog: Vec::new(), is_full: false };
        handshake.channel.open(&[], &mut Vec::new(), &mut handshake.backlog)?;
        handshake.write();
        if let Some(place) = lock(&self.own).handshakes.get_mut(master.index()) {
            *place = Some(handshake);
        }
        Ok(())
    }

    /// Takes what came from the socket, if this connection's handshake is under way. What came
    /// after the handshake goes to `plain`.
    pub(super) fn received(
        &self,
        master: MasterId,
        generation: u32,
        wire: &[u8],
        plain: &mut Vec<u8>,
    ) -> Option<Result<Option<Secured>, Cause>> {
        let mut own = lock(&self.own);
        let place = own.handshakes.get_mut(master.index())?;
        let handshake = place.as_mut().filter(|handshake| handshake.generation == generation)?;
        let state = handshake.channel.open(wire, plain, &mut handshake.backlog);
        // After an error, an alert for the other side may be left to write.
        handshake.write();
        let result = match state {
            Ok(ChannelState::Opening) => return Some(Ok(None)),
            Ok(ChannelState::Established) => Ok(()),
            Ok(ChannelState::Ended) => Err(Cause::Closed),
            Err(cause) => Err(cause),
        };
        let done = place.take()?;
        let secured = Secured { channel: done.channel, sink: done.sink, backlog: done.backlog };
        Some(result.map(|()| Some(secured)))
    }

    /// The connection has ended, or will be closed.
    pub(super) fn forget(&self, master: MasterId, generation: u32) {
        if self.is_for(master) {
            if let Some(place) = lock(&self.own).handshakes.get_mut(master.index()) {
                drop(place.take_if(|handshake| handshake.generation == generation));
            }
        }
    }

    /// Whether bytes of a handshake wait for room in the socket.
    pub(super) fn is_full(&self, master: MasterId) -> bool {
        let is_full = |handshake: &Handshake| handshake.is_full;
        self.is_for(master)
            && lock(&self.own)
                .handshakes
                .get(master.index())
                .is_some_and(|place| place.as_ref().is_some_and(is_full))
    }

    /// A full socket has room again. Returns whether it took everything.
    pub(super) fn retry(&self, master: MasterId) -> bool {
        match lock(&self.own).handshakes.get_mut(master.index()) {
            Some(Some(handshake)) => {
                handshake.write();
                !handshake.is_full
            }
            _ => true,
        }
    }

    /// Lends the buffer for decrypted bytes, empty.
    pub(super) fn with_plain<R>(&self, act: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let mut plain = mem::take(&mut lock(&self.own).plain);
        let result = act(&mut plain);
        plain.clear();
        plain.shrink_to(KEPT_PLAIN_BYTES);
        lock(&self.own).plain = plain;
        result
    }
}

impl Handshake {
    /// Writes what the socket takes. A read of the socket will show an error.
    fn write(&mut self) {
        self.is_full = write(&mut self.sink, &mut self.backlog);
    }
}
