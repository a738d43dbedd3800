//! A channel that protects nothing but has the parts of a real one: a handshake of one round trip,
//! records with numbers, and ends.
//!
//! A record is its length in two bytes, its number, its kind, and its contents. Both sides count,
//! so a record that is lost, sent twice or out of order ends the test.

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use quorlock_core::{Address, Cause, Channel, ChannelState, Endpoint, Security, TlsFault};

/// The settings of a test's clients.
#[derive(Debug, Default)]
pub struct Toy {
    /// How many channels were made.
    pub made: AtomicU32,
    /// From this many records on a fresh connection is wanted; 0 for never.
    pub worn_at: AtomicU32,
    /// Whether files have changed to something unusable.
    pub has_outdated_files: AtomicBool,
    /// To which addresses channels were made, in order.
    pub addresses: Mutex<Vec<String>>,
    /// The most records that a channel may send; 0 for no limit.
    pub most: AtomicU32,
}

/// The settings as a configuration takes them.
#[derive(Clone, Debug)]
pub struct Toys(pub Arc<Toy>);

impl Security for Toys {
    fn prepare(&self, _: &[Endpoint]) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }

    fn channel(&self, master: &Endpoint, address: &Address) -> Result<Box<dyn Channel>, Cause> {
        if master.to_string().starts_with("untrusted") {
            return Err(Cause::Tls(TlsFault::UnknownIssuer));
        }
        self.0.made.fetch_add(1, Ordering::SeqCst);
        self.0.addresses.lock().unwrap().push(address.to_string());
        Ok(Box::new(Side { toy: Some(Arc::clone(&self.0)), ..Side::default() }))
    }
}

/// One side of a channel.
#[derive(Default)]
pub struct Side {
    toy: Option<Arc<Toy>>,
    inbound: Vec<u8>,
    sent: u8,
    received: u8,
    records: u32,
    has_begun: bool,
    is_established: bool,
    has_ended: bool,
}

const HELLO: u8 = b'H';
const DATA: u8 = b'D';
/// Empty control messages of the channel; the first requests the second.
const ASK: u8 = b'A';
const ANSWER: u8 = b'N';
const END: u8 = b'E';

impl Side {
    fn put(&mut self, kind: u8, contents: &[u8], wire: &mut Vec<u8>) {
        for part in contents.chunks(1_000).chain(contents.is_empty().then_some(contents)) {
            wire.extend(u16::try_from(part.len()).unwrap().to_be_bytes());
            wire.extend([self.sent, kind]);
            wire.extend(part);
            self.sent = self.sent.wrapping_add(1);
        }
    }

    /// Sends the other side a control message that requests an answer.
    pub fn ask(&mut self, wire: &mut Vec<u8>) {
        self.put(ASK, &[], wire);
    }
}

impl Channel for Side {
    fn open(&mut self, wire: &[u8], plain: &mut Vec<u8>, reply: &mut Vec<u8>) -> Result<ChannelState, Cause> {
        let is_client = self.toy.is_some();
        if is_client && !self.has_begun {
            self.has_begun = true;
            self.put(HELLO, &[], reply);
        }
        self.inbound.extend(wire);
        while let Some((header, rest)) = self.inbound.split_first_chunk::<4>() {
            let length = usize::from(u16::from_be_bytes([header[0], header[1]]));
            let Some(contents) = rest.get(..length) else { break };
            assert_eq!(header[2], self.received, "records in their order, each once");
            self.received = self.received.wrapping_add(1);
            let kind = header[3];
            if kind == DATA {
                plain.extend(contents);
            }
            self.inbound.drain(..4 + length);
            match kind {
                HELLO => {
                    self.is_established = true;
                    if !is_client {
                        self.put(HELLO, &[], reply);
                    }
                }
                ASK => self.put(ANSWER, &[], reply),
                END => self.has_ended = true,
                _ => {}
            }
        }
        Ok(match (self.has_ended, self.is_established) {
            (true, _) => ChannelState::Ended,
            (false, true) => ChannelState::Established,
            (false, false) => ChannelState::Opening,
        })
    }

    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> Result<(), Cause> {
        assert!(self.is_established, "nothing is encrypted before the handshake is done");
        self.records += 1;
        let most = self.toy.as_ref().map_or(0, |toy| toy.most.load(Ordering::SeqCst));
        if most > 0 && self.records > most {
            return Err(Cause::Closed);
        }
        self.put(DATA, plain, wire);
        Ok(())
    }

    fn close(&mut self, wire: &mut Vec<u8>) {
        self.put(END, &[], wire);
    }

    fn has_outdated_files(&self) -> bool {
        self.toy.as_ref().is_some_and(|toy| toy.has_outdated_files.load(Ordering::SeqCst))
    }

    fn is_worn(&self) -> bool {
        let worn_at = self.toy.as_ref().map_or(0, |toy| toy.worn_at.load(Ordering::SeqCst));
        worn_at > 0 && self.records >= worn_at
    }
}
