//! What fake masters do: ready-made behaviours for [`FakeMaster::start`](super::FakeMaster::start).
//! All but [`hangs_up`] keep the connection open until the peer closes it.

use std::io::Write;

use super::Peer;

const CHUNK_BYTES: usize = 64 << 10;

/// Accepts, reads and sends nothing.
pub fn silent() -> impl Fn(&mut Peer, usize) + Send + Sync + 'static {
    |peer, _| peer.listen_to_the_end()
}

/// Accepts and closes.
pub fn hangs_up() -> impl Fn(&mut Peer, usize) + Send + Sync + 'static {
    |_, _| {}
}

/// Sends these bytes at once, unsolicited.
pub fn says(bytes: impl Into<Vec<u8>>) -> impl Fn(&mut Peer, usize) + Send + Sync + 'static {
    let bytes = bytes.into();
    move |peer, _| {
        if peer.write_all(&bytes).is_ok() {
            peer.listen_to_the_end();
        }
    }
}

/// Sends these bytes after the first received bytes, and nothing after them.
pub fn answers(bytes: impl Into<Vec<u8>>) -> impl Fn(&mut Peer, usize) + Send + Sync + 'static {
    let bytes = bytes.into();
    move |peer, _| {
        if peer.hear().is_ok_and(|heard| !heard.is_empty()) && peer.write_all(&bytes).is_ok() {
            peer.listen_to_the_end();
        }
    }
}

/// After the first received bytes, a simple string that does not end, until the peer closes or
/// `limit_bytes` are written.
pub fn endless_line(limit_bytes: usize) -> impl Fn(&mut Peer, usize) + Send + Sync + 'static {
    endless("+".to_owned(), vec![b'x'; CHUNK_BYTES], limit_bytes)
}

/// After the first received bytes, unsolicited replies until the peer closes or
/// `limit_bytes` are written.
pub fn endless_ok(limit_bytes: usize) -> impl Fn(&mut Peer, usize) + Send + Sync + 'static {
    endless(String::new(), b"+OK\r\n".repeat(CHUNK_BYTES / 5), limit_bytes)
}

/// After the first received bytes, the header of a bulk string of `length_bytes`, and then its
/// bytes, until the peer closes or `limit_bytes` of them are written.
pub fn huge_bulk(length_bytes: u64, limit_bytes: usize) -> impl Fn(&mut Peer, usize) + Send + Sync + 'static {
    endless(format!("${length_bytes}\r\n"), vec![b'x'; CHUNK_BYTES], limit_bytes)
}

/// After the first received bytes, `depth` arrays of one element within each other, and within
/// the last an integer.
pub fn nested_arrays(depth: usize) -> impl Fn(&mut Peer, usize) + Send + Sync + 'static {
    answers([b"*1\r\n".repeat(depth).as_slice(), b":1\r\n"].concat())
}

/// `count` unsolicited replies, at once and in one write.
pub fn unsolicited_ok(count: usize) -> impl Fn(&mut Peer, usize) + Send + Sync + 'static {
    says(b"+OK\r\n".repeat(count))
}

fn endless(
    head: String,
    chunk: Vec<u8>,
    limit_bytes: usize,
) -> impl Fn(&mut Peer, usize) + Send + Sync + 'static {
    move |peer, _| {
        if !peer.hear().is_ok_and(|heard| !heard.is_empty()) || peer.write_all(head.as_bytes()).is_err() {
            return;
        }
        let mut left_bytes = limit_bytes;
        while left_bytes > 0 {
            let part = chunk.get(..left_bytes).unwrap_or(&chunk);
            if peer.write_all(part).is_err() {
                return;
            }
            left_bytes -= part.len();
        }
        peer.listen_to_the_end();
    }
}
