//! The guard in front of RESP: the scanner and the decoder behind it.
//!
//! An input is a number that says how the bytes are split, and the bytes.

use super::input::{expanded, pieces};
use super::oracle::{Verdict, judge};
use crate::wire::{Dialect, Reply, Scanner, ServerError, WireFault, decode};

/// Panics if the guard lets anything through that it should not, or if its result depends on how
/// the bytes were split. Returns the number of bytes.
pub(crate) fn run(input: &[u8]) -> usize {
    let Some((number, bytes)) = input.split_first() else { return 0 };
    let bytes = expanded(bytes);
    let whole = receive(&bytes, 7, |_| {});
    assert_eq!(receive(&bytes, *number, |_| {}), whole);
    let mut replies = 0;
    let each = |frame: &[u8]| {
        replies += 1;
        // Checking thousands of similar replies would only take time.
        if replies < 200 {
            check(frame);
        }
    };
    assert_eq!(receive(&bytes, 0, each), whole);
    bytes.len()
}

/// What was found in a stream.
#[derive(PartialEq, Eq, Debug)]
struct Found {
    lengths: Vec<usize>,
    fault: Option<WireFault>,
}

/// Receives bytes as a connection does.
fn receive(bytes: &[u8], number: u8, mut take: impl FnMut(&[u8])) -> Found {
    let (mut scanner, mut start, mut lengths) = (Scanner::new(), 0, Vec::new());
    for piece in pieces(bytes.len(), number) {
        loop {
            let rest = &bytes[start..piece.end];
            match scanner.advance(rest) {
                Ok(None) => break,
                Ok(Some(length)) => {
                    assert_eq!(judge(rest), Verdict::Reply(length));
                    take(&rest[..length]);
                    lengths.push(length);
                    start += length;
                }
                Err(fault) => {
                    assert_eq!(judge(rest), Verdict::Bad, "{fault:?}");
                    assert_eq!(scanner.advance(rest), Err(fault), "a fault stays");
                    if piece.len() == 1 {
                        assert_eq!(judge(&rest[..rest.len() - 1]), Verdict::More, "{fault:?} is told late");
                    }
                    return Found { lengths, fault: Some(fault) };
                }
            }
        }
    }
    assert_eq!(judge(&bytes[start..]), Verdict::More);
    Found { lengths, fault: None }
}

/// Decodes a frame and checks its contents.
fn check(frame: &[u8]) {
    let [old, new] = [Dialect::Resp2, Dialect::Resp3].map(|dialect| {
        let reply = decode(dialect, frame).ok()?;
        let written = written(&reply);
        let again = decode(dialect, frame).map(|reply| self::written(&reply));
        assert_eq!(again.as_ref(), Ok(&written), "the same bytes are the same reply");
        let size = Size::of(&reply, 0);
        assert!(size.depth <= 4 && size.elements <= 512 && size.bytes <= frame.len(), "{size:?}");
        // The reply written in the other form must be decoded alike, unless that form is longer
        // than a reply may be.
        if judge(&written) == Verdict::Reply(written.len()) {
            let again = decode(Dialect::Resp3, &written).map(|reply| self::written(&reply));
            assert_eq!(again.as_ref(), Ok(&written), "{reply:?} in other words");
        }
        Some(written)
    });
    if let (Some(old), Some(new)) = (old, new) {
        assert_eq!(old, new, "both dialects read it, but differently");
    }
}

#[derive(Debug)]
struct Size {
    depth: usize,
    elements: usize,
    bytes: usize,
}

impl Size {
    fn of(reply: &Reply<'_>, depth: usize) -> Self {
        let leaf = |bytes| Self { depth, elements: 0, bytes };
        let list = |replies: &mut dyn Iterator<Item = &Reply<'_>>| {
            let mut size = Self { depth: depth + 1, elements: 0, bytes: 0 };
            for reply in replies {
                let inner = Self::of(reply, depth + 1);
                size.depth = size.depth.max(inner.depth);
                size.elements += 1 + inner.elements;
                size.bytes += inner.bytes;
            }
            size
        };
        match reply {
            Reply::Simple(text) | Reply::Bulk(text) | Reply::BigNumber(text) => leaf(text.len()),
            Reply::Error(text) => {
                // Any error is accepted, known or not.
                let _ = ServerError::classify(text);
                leaf(text.len())
            }
            Reply::Integer(_) | Reply::Null | Reply::Boolean(_) | Reply::Number(_) => leaf(0),
            Reply::Array(replies) | Reply::Push(replies) => list(&mut replies.iter()),
            Reply::Map(pairs) => list(&mut pairs.iter().flat_map(|(key, value)| [key, value])),
        }
    }
}

/// A reply in RESP 3, with one way to write each value.
fn written(reply: &Reply<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    write(reply, &mut out);
    out
}

fn write(reply: &Reply<'_>, out: &mut Vec<u8>) {
    let mut put = |start: String, text: &[u8]| {
        out.extend_from_slice(start.as_bytes());
        out.extend_from_slice(text);
        out.extend_from_slice(b"\r\n");
    };
    match reply {
        Reply::Simple(text) => put("+".to_owned(), text),
        Reply::Error(text) => put(format!("!{}\r\n", text.len()), text),
        Reply::Integer(value) => put(format!(":{value}"), b""),
        Reply::Bulk(text) => put(format!("${}\r\n", text.len()), text),
        Reply::Null => put("_".to_owned(), b""),
        Reply::Boolean(value) => put(if *value { "#t" } else { "#f" }.to_owned(), b""),
        Reply::Number(value) => put(format!(",{value:e}"), b""),
        Reply::BigNumber(digits) => put("(".to_owned(), digits),
        Reply::Array(replies) => {
            put(format!("*{}", replies.len()), b"");
            replies.iter().for_each(|reply| write(reply, out));
        }
        Reply::Push(replies) => {
            put(format!(">{}", replies.len()), b"");
            replies.iter().for_each(|reply| write(reply, out));
        }
        Reply::Map(pairs) => {
            put(format!("%{}", pairs.len()), b"");
            pairs.iter().for_each(|(key, value)| {
                write(key, out);
                write(value, out);
            });
        }
    }
}
