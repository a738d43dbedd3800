//! A channel that protects nothing but has the parts of a real one: a handshake of one or two round
//! trips, records with an overhead of 22 bytes, control messages, and alerts.
//!
//! A record is its kind, its number, the length of its contents, the contents, and a tag. Both
//! sides count records, so each detects a record that is lost, repeated or out of order. Bytes that
//! were not encrypted are detected too.

/// As in TLS 1.3 with AES-GCM: five bytes before the contents, and a type and a tag after them.
const HEADER: usize = 5;
const TAG: [u8; 17] = *b"seventeen bytes..";

/// The next message of the handshake. Its contents are the number of round trips.
const HELLO: u8 = b'H';
const DATA: u8 = b'D';
/// Requests an answer outside the carried data, like an update of keys.
const ASK: u8 = b'A';
const ANSWER: u8 = b'N';
/// The sender has ended the channel.
const END: u8 = b'E';
/// The connection has failed, for this reason.
const ALERT: u8 = b'!';

/// The state of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Opening,
    Established,
    /// The other side sends no more.
    Ended,
    /// The other side has refused, for this reason.
    Refused(u8),
}

/// The received bytes are not valid: the sender's fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Broken(pub(super) &'static str);

/// One side of a channel.
#[derive(Debug)]
pub(super) struct Side {
    is_client: bool,
    inbound: Vec<u8>,
    sent: u16,
    received: u16,
    /// How many messages of the handshake have arrived, and how many will.
    greeted: u8,
    round_trips: u8,
    /// The most bytes of one record.
    room: usize,
    stage: Stage,
}

impl Side {
    /// Returns a client's side, whose handshake takes `round_trips`.
    pub(super) fn client(round_trips: u8, room: usize) -> Self {
        Self { is_client: true, round_trips, ..Self::master(room) }
    }

    pub(super) fn master(room: usize) -> Self {
        Self {
            is_client: false,
            inbound: Vec::new(),
            sent: 0,
            received: 0,
            greeted: 0,
            round_trips: 0,
            room: room.max(1),
            stage: Stage::Opening,
        }
    }

    fn put(&mut self, kind: u8, contents: &[u8], wire: &mut Vec<u8>) {
        for part in contents.chunks(self.room).chain(contents.is_empty().then_some(contents)) {
            // A record has 16 bits for its length.
            let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
            wire.push(kind);
            wire.extend(self.sent.to_be_bytes());
            wire.extend(length.to_be_bytes());
            wire.extend(part);
            wire.extend(TAG);
            self.sent = self.sent.wrapping_add(1);
        }
    }

    /// The client's first message.
    pub(super) fn begin(&mut self, wire: &mut Vec<u8>) {
        self.put(HELLO, &[self.round_trips], wire);
    }

    /// Reads received bytes. Appends the decrypted contents to `plain`, and any answer to `reply`.
    pub(super) fn open(
        &mut self,
        wire: &[u8],
        plain: &mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<Stage, Broken> {
        self.inbound.extend(wire);
        while let Some((&[kind, n1, n2, l1, l2], rest)) = self.inbound.split_first_chunk::<HEADER>() {
            let length = usize::from(u16::from_be_bytes([l1, l2]));
            if !matches!(kind, HELLO | DATA | ASK | ANSWER | END | ALERT) {
                return Err(Broken("what was not encrypted"));
            }
            let Some(body) = rest.get(..length + TAG.len()) else { break };
            let (contents, tag) = body.split_at(length);
            if tag != TAG {
                return Err(Broken("a record with a part of another one"));
            }
            if u16::from_be_bytes([n1, n2]) != self.received {
                return Err(Broken("a record twice, or not in its turn"));
            }
            let contents = contents.to_vec();
            self.received = self.received.wrapping_add(1);
            self.inbound.drain(..HEADER + length + TAG.len());
            self.take(kind, &contents, plain, reply)?;
        }
        Ok(self.stage)
    }

    fn take(
        &mut self,
        kind: u8,
        contents: &[u8],
        plain: &mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        let is_established = self.stage != Stage::Opening;
        match kind {
            HELLO if is_established => return Err(Broken("a second handshake")),
            HELLO => {
                self.greeted += 1;
                if !self.is_client {
                    self.round_trips = contents.first().copied().unwrap_or(1);
                }
                let is_last = self.greeted >= self.round_trips;
                if !self.is_client || !is_last {
                    self.put(HELLO, &[self.round_trips], reply);
                }
                if is_last {
                    self.stage = Stage::Established;
                }
            }
            ALERT => self.stage = Stage::Refused(contents.first().copied().unwrap_or(0)),
            END => self.stage = Stage::Ended,
            _ if !is_established => return Err(Broken("a record before the handshake was done")),
            DATA => plain.extend(contents),
            ASK => self.put(ANSWER, &[], reply),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn is_established(&self) -> bool {
        self.stage != Stage::Opening
    }

    pub(super) fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) {
        self.put(DATA, plain, wire);
    }

    pub(super) fn ask(&mut self, wire: &mut Vec<u8>) {
        self.put(ASK, &[], wire);
    }

    pub(super) fn end(&mut self, wire: &mut Vec<u8>) {
        self.put(END, &[], wire);
    }

    pub(super) fn alert(&mut self, reason: u8, wire: &mut Vec<u8>) {
        self.put(ALERT, &[reason], wire);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both sides, once their handshake is done, and how often the client had to wait for the
    /// master.
    fn opened(round_trips: u8) -> (Side, Side, usize) {
        let (mut client, mut master) = (Side::client(round_trips, 8), Side::master(8));
        let (mut up, mut trips) = (Vec::new(), 0);
        client.begin(&mut up);
        while !client.is_established() {
            let (mut down, mut next) = (Vec::new(), Vec::new());
            master.open(&up, &mut Vec::new(), &mut down).unwrap();
            client.open(&down, &mut Vec::new(), &mut next).unwrap();
            (up, trips) = (next, trips + 1);
        }
        assert!(up.is_empty() && master.is_established());
        (client, master, trips)
    }

    #[test]
    fn a_handshake_takes_the_configured_round_trips() {
        for round_trips in 1..=3 {
            assert_eq!(opened(round_trips).2, usize::from(round_trips));
        }
    }

    #[test]
    fn records_arrive_in_any_pieces_and_each_adds_22_bytes() {
        let (mut client, mut master, _) = opened(1);
        let mut wire = Vec::new();
        client.seal(b"nineteen bytes here", &mut wire);
        assert_eq!(wire.len(), 19 + 3 * 22);
        let mut plain = Vec::new();
        for byte in wire {
            master.open(&[byte], &mut plain, &mut Vec::new()).unwrap();
        }
        assert_eq!(plain, b"nineteen bytes here");
    }

    #[test]
    fn repeated_missing_or_unencrypted_records_are_found() {
        let broken = |change: fn(&mut Vec<u8>)| {
            let (mut client, mut master, _) = opened(2);
            let mut wire = Vec::new();
            client.seal(b"one", &mut wire);
            client.seal(b"two", &mut wire);
            change(&mut wire);
            master.open(&wire, &mut Vec::new(), &mut Vec::new()).is_err()
        };
        assert!(!broken(|_| {}));
        assert!(broken(|wire| wire.extend_from_within(..25)));
        assert!(broken(|wire| drop(wire.drain(..25))));
        assert!(broken(|wire| wire.extend(b"*1\r\n$4\r\nPING\r\n")));
        assert!(broken(|wire| drop(wire.drain(10..12))));
        let mut early = Vec::new();
        Side::client(1, 8).seal(b"one", &mut early);
        assert!(Side::master(8).open(&early, &mut Vec::new(), &mut Vec::new()).is_err());
    }
}
