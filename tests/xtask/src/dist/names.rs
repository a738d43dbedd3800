//! A name server for one name, at the place where a resolver asks: port 53 of 127.0.0.1.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The name that it knows. It leads to 127.0.0.1.
pub(super) const KNOWN: &str = "master.quorlock.test";

/// The record with an address of IPv4.
const A: [u8; 2] = [0, 1];
/// How long the header of a message is.
const HEADER: usize = 12;

/// A running name server. It serves until the process ends.
pub(super) struct Names {
    asked: Arc<AtomicUsize>,
}

impl Names {
    pub(super) fn serve() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 53))?;
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        thread::Builder::new().name("names".into()).spawn(move || {
            let mut buffer = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                let Some(reply) = buffer.get(..length).and_then(reply) else { continue };
                count.fetch_add(1, Ordering::Relaxed);
                // The resolver asks again if the reply is lost.
                let _ = socket.send_to(&reply, from);
            }
        })?;
        Ok(Self { asked })
    }

    /// How often it was asked for any name.
    pub(super) fn times_asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

/// The reply to a question about one name (RFC 1035, section 4.1).
fn reply(question: &[u8]) -> Option<Vec<u8>> {
    let id = question.get(..2)?;
    let (name, end) = name(question.get(HEADER..)?)?;
    let asked = question.get(HEADER..HEADER + end + 4)?;
    let is_known = name == KNOWN;
    let has_address = is_known && asked.get(end..end + 2)? == A;

    let mut reply = id.to_vec();
    // A reply, recursion desired and available; and whether there is such a name.
    reply.extend([0x81, if is_known { 0x80 } else { 0x83 }]);
    reply.extend([0, 1, 0, u8::from(has_address), 0, 0, 0, 0]);
    reply.extend(asked);
    if has_address {
        // The name is the one at the end of the header; the class, 60 s, four bytes.
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        reply.extend(Ipv4Addr::LOCALHOST.octets());
    }
    Some(reply)
}

/// The name at the beginning of these bytes, and where it ends.
fn name(bytes: &[u8]) -> Option<(String, usize)> {
    let (mut labels, mut at) = (Vec::new(), 0);
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        labels.push(String::from_utf8_lossy(bytes.get(at..at + length)?).to_lowercase());
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(name: &str, kind: u8) -> Vec<u8> {
        let mut bytes = vec![7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            bytes.push(u8::try_from(label.len()).unwrap());
            bytes.extend(label.as_bytes());
        }
        bytes.extend([0, 0, kind, 0, 1]);
        bytes
    }

    #[test]
    fn the_known_name_leads_to_this_machine() {
        let asked = question(KNOWN, 1);
        let reply = reply(&asked).unwrap();
        assert_eq!(reply[..8], [7, 9, 0x81, 0x80, 0, 1, 0, 1]);
        assert_eq!(reply[HEADER..asked.len()], asked[HEADER..]);
        assert_eq!(reply[reply.len() - 6..], [0, 4, 127, 0, 0, 1]);
    }

    #[test]
    fn other_names_and_other_records_have_no_address() {
        // The known name has no address of IPv6, and that is no error.
        assert_eq!(reply(&question(KNOWN, 28)).unwrap()[2..8], [0x81, 0x80, 0, 1, 0, 0]);
        assert_eq!(reply(&question("other.test", 1)).unwrap()[2..8], [0x81, 0x83, 0, 1, 0, 0]);
        assert_eq!(reply(&question(KNOWN, 1)[..20]), None);
    }
}
