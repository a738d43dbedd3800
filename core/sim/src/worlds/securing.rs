//! Worlds in which masters are reached over channels and require a password that changes.

use std::error::Error;
use std::fmt;

use quorlock_core::{
    Address, Cause, Channel, ChannelState, Endpoint, Login, Security, TlsFault, Unavailable,
};

use super::channel::{Side, Stage};
use super::client::{SharedState, lock};
use super::event::Event;
use super::link::LinkId;
use super::state::State;
use super::violation::Violation;

/// The content of an alert which says that a certificate is required. Any other content is another
/// reason.
const REQUIRED: u8 = 1;

/// The channels of one connection beside its client's.
#[derive(Debug)]
pub(super) struct Sides {
    master: Side,
    /// The bytes that the client has sent, for the observer.
    seen: Side,
}

impl State {
    /// From now on masters are reached over channels, and require a password.
    pub(super) fn secure(&mut self) {
        self.passwords = Some(0);
        self.set_passwords();
    }

    /// The password of the masters, if they have one.
    pub(super) fn password(&self) -> Option<String> {
        self.passwords.map(|number| format!("password {number}"))
    }

    /// The masters get another password. Connections that have logged in stay logged in.
    pub(super) fn change_password(&mut self) {
        self.passwords = self.passwords.map(|number| number + 1);
        self.set_passwords();
    }

    fn set_passwords(&mut self) {
        let password = self.password();
        for node in &mut self.masters {
            node.model.set_password(password.as_deref());
        }
    }

    /// The login of a client: sometimes wrong or missing, until all faults have ended.
    pub(super) fn login(&mut self) -> Result<Login, Unavailable> {
        let (has_none, is_wrong) =
            (!self.is_calm && self.random.one_in(30), !self.is_calm && self.random.one_in(15));
        match self.password() {
            Some(_) if has_none => Err(Unavailable::Because("no password has been set")),
            Some(password) if !is_wrong => Ok(Login::new(password)),
            _ => Ok(Login::new("a wrong one")),
        }
    }

    /// The masters' sides of a new connection, if it is to be encrypted.
    pub(super) fn sides(&mut self) -> Option<Box<Sides>> {
        self.passwords?;
        let room = self.record_room();
        Some(Box::new(Sides { master: Side::master(room), seen: Side::master(room) }))
    }

    fn record_room(&mut self) -> usize {
        let rooms = [16_384, 16_384, 1_000, 100, 7];
        rooms.get(self.random.below(rooms.len())).copied().unwrap_or(1)
    }

    /// The observer reads the bytes that a client has sent.
    pub(super) fn read_along(&mut self, id: LinkId, bytes: &[u8]) {
        let Some(link) = self.links.get_mut(id.0) else { return };
        let mut plain = Vec::new();
        let read = match &mut link.sides {
            None => return link.sent.feed(bytes),
            Some(sides) => sides.seen.open(bytes, &mut plain, &mut Vec::new()),
        };
        link.sent.feed(&plain);
        if let Err(broken) = read {
            let text = format!("client{} sent {}", link.client, broken.0);
            self.observer.report(Violation::Reported(text));
        }
    }

    /// The decrypted contents of received bytes; `None` if the connection ends with them.
    pub(super) fn decrypt(&mut self, id: LinkId, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let sides = self.links.get_mut(id.0)?.sides.as_mut();
        let Some(Sides { master, .. }) = sides.map(|sides| &mut **sides) else { return Some(bytes) };
        let (mut plain, mut wire) = (Vec::new(), Vec::new());
        let read = master.open(&bytes, &mut plain, &mut wire);
        let rarely = if master.is_established() { 300 } else { 25 };
        if read.is_err() || !self.is_calm && self.random.one_in(rarely) {
            master.alert(u8::from(self.random.one_in(4)), &mut wire);
            self.travel(id, &wire, Event::Down);
            self.hang_up(id);
            return None;
        }
        self.travel(id, &wire, Event::Down);
        Some(plain)
    }

    /// Sends bytes of a master.
    pub(super) fn say(&mut self, id: LinkId, plain: &[u8]) {
        let Some(link) = self.links.get_mut(id.0) else { return };
        let Some(sides) = link.sides.as_mut().filter(|_| !plain.is_empty()) else {
            return self.travel(id, plain, Event::Down);
        };
        let mut wire = Vec::new();
        if self.random.one_in(20) {
            sides.master.ask(&mut wire);
        }
        sides.master.seal(plain, &mut wire);
        // An answer is known with the last byte of its record.
        let said = link.said;
        for (end, _) in link.unheard.iter_mut().filter(|(end, _)| *end > said) {
            *end = said + wire.len();
        }
        self.travel(id, &wire, Event::Down);
    }

    /// The master ends its channel.
    pub(super) fn end_channel(&mut self, id: LinkId) {
        let sides = self.links.get_mut(id.0).and_then(|link| link.sides.as_mut());
        let Some(sides) = sides.filter(|sides| sides.master.is_established()) else { return };
        let mut wire = Vec::new();
        sides.master.end(&mut wire);
        self.travel(id, &wire, Event::Down);
    }
}

/// Makes the channels of one client.
pub(super) struct Channels {
    pub(super) client: usize,
    pub(super) state: SharedState,
}

impl Security for Channels {
    fn prepare(&self, _: &[Endpoint]) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }

    fn channel(&self, _: &Endpoint, _: &Address) -> Result<Box<dyn Channel>, Cause> {
        let mut state = lock(&self.state);
        let round_trips = if state.random.one_in(2) { 1 } else { 2 };
        let room = state.record_room();
        let worn_at = 20 + state.random.below(400);
        drop(state);
        Ok(Box::new(ClientSide {
            side: Side::client(round_trips, room),
            client: self.client,
            state: SharedState::clone(&self.state),
            has_begun: false,
            sealed: 0,
            worn_at,
        }))
    }
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channels").field("client", &self.client).finish_non_exhaustive()
    }
}

/// A client's side of a channel, as its front uses it.
struct ClientSide {
    side: Side,
    client: usize,
    state: SharedState,
    has_begun: bool,
    /// How many records were encrypted, and the limit.
    sealed: usize,
    worn_at: usize,
}

impl ClientSide {
    fn report(&self, what: &str) {
        let text = format!("client{} {what}", self.client);
        lock(&self.state).observer.report(Violation::Reported(text));
    }
}

impl Channel for ClientSide {
    fn open(&mut self, wire: &[u8], plain: &mut Vec<u8>, reply: &mut Vec<u8>) -> Result<ChannelState, Cause> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.side.begin(reply);
        }
        match self.side.open(wire, plain, reply) {
            Ok(Stage::Opening) => Ok(ChannelState::Opening),
            Ok(Stage::Established) => Ok(ChannelState::Established),
            Ok(Stage::Ended) => Ok(ChannelState::Ended),
            Ok(Stage::Refused(REQUIRED)) => Err(Cause::Tls(TlsFault::ClientCertificateRequired)),
            Ok(Stage::Refused(_)) => Err(Cause::Tls(TlsFault::Other)),
            Err(broken) => {
                self.report(&format!("was handed {}", broken.0));
                Err(Cause::Tls(TlsFault::Other))
            }
        }
    }

    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> Result<(), Cause> {
        if !self.side.is_established() {
            self.report("encrypted something before the handshake was done");
        }
        self.sealed += 1;
        if self.sealed > 2 * self.worn_at {
            return Err(Cause::Closed);
        }
        self.side.seal(plain, wire);
        Ok(())
    }

    fn close(&mut self, wire: &mut Vec<u8>) {
        self.side.end(wire);
    }

    fn is_worn(&self) -> bool {
        self.sealed > self.worn_at
    }
}
