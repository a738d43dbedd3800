//! Turns a complete frame into a reply that borrows from it.
//!
//! The crate redis-protocol reads RESP. This file calls it on frames that the scanner has
//! delimited, drops its error texts, which print whole buffers, and turns its ranges into slices.
//! Nothing here knows the request.

use std::fmt;

use redis_protocol::{resp2, resp3};

use super::WireFault;

/// The version of the protocol on a connection, as decided by the answer to its HELLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Dialect {
    /// RESP 2: what every server speaks until HELLO says otherwise.
    Resp2,
    /// RESP 3, after a successful `HELLO 3`.
    Resp3,
}

/// A server's reply. Its `Debug` shows kinds and lengths, because the contents may include tokens.
#[derive(Clone, PartialEq)]
pub(crate) enum Reply<'a> {
    /// A status, such as `OK`.
    Simple(&'a [u8]),
    /// An error, as a line or as a string. Its text may echo arguments:
    /// [`ServerError::classify`](super::ServerError::classify) reads it, and it is never shown.
    Error(&'a [u8]),
    /// A whole number.
    Integer(i64),
    /// A string of any bytes, or a verbatim string without its format.
    Bulk(&'a [u8]),
    /// No value.
    Null,
    /// True or false.
    Boolean(bool),
    /// A floating-point number.
    Number(f64),
    /// A whole number beyond 64 bits, as its digits.
    BigNumber(&'a [u8]),
    /// A list, or a set. The strings of a set are in the order in which they were sent.
    Array(Vec<Reply<'a>>),
    /// Keys with their values. Keys that are strings are in the order in which they were sent.
    Map(Vec<(Reply<'a>, Reply<'a>)>),
    /// A message that answers no command.
    Push(Vec<Reply<'a>>),
}

/// The first reply in these bytes and its length, if it is one of the most frequent ones. They mean
/// the same in both dialects, and comparing their bytes costs a fiftieth of scanning and decoding.
#[inline]
pub(crate) fn common_reply(bytes: &[u8]) -> Option<(&'static Reply<'static>, usize)> {
    match bytes {
        [b'+', b'O', b'K', b'\r', b'\n', ..] => Some((&Reply::Simple(b"OK"), 5)),
        [b':', b'1', b'\r', b'\n', ..] => Some((&Reply::Integer(1), 4)),
        [b':', b'0', b'\r', b'\n', ..] => Some((&Reply::Integer(0), 4)),
        _ => None,
    }
}

/// Reads one complete frame.
///
/// `frame` must be exactly what [`Scanner`](super::Scanner) delimited: the decoder recurses as deep
/// as the bytes are nested, and only the scanner limits that.
///
/// # Errors
///
/// [`WireFault::Refused`] if a value in the frame does not match its type, such as an integer with
/// letters in it.
pub(crate) fn decode(dialect: Dialect, frame: &[u8]) -> Result<Reply<'_>, WireFault> {
    match dialect {
        Dialect::Resp2 => {
            let decoded = resp2::decode::decode_range(frame);
            from_resp2(frame, exactly_one(frame, decoded)?)
        }
        // RESP 3 has its own null, but some proxies still send the nulls of RESP 2, which the crate
        // refuses in RESP 3.
        Dialect::Resp3 if matches!(frame, b"$-1\r\n" | b"*-1\r\n") => Ok(Reply::Null),
        Dialect::Resp3 => {
            let decoded = resp3::decode::complete::decode_range(frame);
            from_resp3(frame, exactly_one(frame, decoded)?)
        }
    }
}

impl<'a> Reply<'a> {
    /// The bytes of a status or a string.
    pub(crate) fn as_bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Simple(bytes) | Self::Bulk(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The value of a named field, in a map or in the flat list of keys and values that RESP 2
    /// sends in its place.
    pub(crate) fn field(&self, name: &str) -> Option<&Reply<'a>> {
        let is_name = |key: &Reply<'_>| key.as_bytes() == Some(name.as_bytes());
        match self {
            Self::Map(pairs) => pairs.iter().find(|(key, _)| is_name(key)).map(|(_, value)| value),
            Self::Array(flat) => flat.chunks_exact(2).find_map(|pair| match pair {
                [key, value] if is_name(key) => Some(value),
                _ => None,
            }),
            _ => None,
        }
    }
}

impl fmt::Debug for Reply<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simple(bytes) => write!(f, "Simple({} bytes)", bytes.len()),
            Self::Error(bytes) => write!(f, "Error({} bytes)", bytes.len()),
            Self::Integer(_) => f.write_str("Integer"),
            Self::Bulk(bytes) => write!(f, "Bulk({} bytes)", bytes.len()),
            Self::Null => f.write_str("Null"),
            Self::Boolean(_) => f.write_str("Boolean"),
            Self::Number(_) => f.write_str("Number"),
            Self::BigNumber(digits) => write!(f, "BigNumber({} digits)", digits.len()),
            Self::Array(elements) => f.debug_tuple("Array").field(elements).finish(),
            Self::Map(pairs) => f.debug_tuple("Map").field(pairs).finish(),
            Self::Push(elements) => f.debug_tuple("Push").field(elements).finish(),
        }
    }
}

/// The decoded frame, if it is complete and nothing follows it.
fn exactly_one<T, E>(frame: &[u8], decoded: Result<Option<(T, usize)>, E>) -> Result<T, WireFault> {
    match decoded {
        Ok(Some((value, consumed))) if consumed == frame.len() => Ok(value),
        _ => Err(WireFault::Refused),
    }
}

fn slice(frame: &[u8], range: (usize, usize)) -> Result<&[u8], WireFault> {
    frame.get(range.0..range.1).ok_or(WireFault::Refused)
}

fn from_resp2(frame: &[u8], decoded: resp2::types::RangeFrame) -> Result<Reply<'_>, WireFault> {
    use resp2::types::RangeFrame;
    Ok(match decoded {
        RangeFrame::SimpleString(range) => Reply::Simple(slice(frame, range)?),
        RangeFrame::Error(range) => Reply::Error(slice(frame, range)?),
        RangeFrame::Integer(value) => Reply::Integer(value),
        RangeFrame::BulkString(range) => Reply::Bulk(slice(frame, range)?),
        RangeFrame::Array(elements) => Reply::Array(
            elements.into_iter().map(|element| from_resp2(frame, element)).collect::<Result<_, _>>()?,
        ),
        RangeFrame::Null => Reply::Null,
    })
}

fn from_resp3(frame: &[u8], decoded: resp3::types::RangeFrame) -> Result<Reply<'_>, WireFault> {
    use resp3::types::RangeFrame;
    Ok(match decoded {
        RangeFrame::SimpleString { data, .. } => Reply::Simple(slice(frame, data)?),
        RangeFrame::SimpleError { data, .. } | RangeFrame::BlobError { data, .. } => {
            Reply::Error(slice(frame, data)?)
        }
        RangeFrame::Number { data, .. } => Reply::Integer(data),
        RangeFrame::BlobString { data, .. } | RangeFrame::VerbatimString { data, .. } => {
            Reply::Bulk(slice(frame, data)?)
        }
        RangeFrame::Null => Reply::Null,
        RangeFrame::Boolean { data, .. } => Reply::Boolean(data),
        RangeFrame::Double { data, .. } => Reply::Number(data),
        RangeFrame::BigNumber { data, .. } => Reply::BigNumber(slice(frame, data)?),
        RangeFrame::Array { data, .. } => Reply::Array(list(frame, data)?),
        RangeFrame::Push { data, .. } => Reply::Push(list(frame, data)?),
        RangeFrame::Set { data, .. } => {
            let mut elements: Vec<_> = data.into_iter().collect();
            if elements.iter().any(is_double) {
                return Err(WireFault::Refused);
            }
            elements.sort_by_key(order);
            Reply::Array(list(frame, elements)?)
        }
        RangeFrame::Map { data, .. } => {
            let mut pairs: Vec<_> = data.into_iter().collect();
            if pairs.iter().any(|(key, _)| is_double(key)) {
                return Err(WireFault::Refused);
            }
            pairs.sort_by_key(|(key, _)| order(key));
            let read = |(key, value)| Ok((from_resp3(frame, key)?, from_resp3(frame, value)?));
            Reply::Map(pairs.into_iter().map(read).collect::<Result<_, WireFault>>()?)
        }
        // Streamed strings, and HELLO, which is a command: the scanner accepts neither.
        RangeFrame::ChunkedString(_) | RangeFrame::Hello { .. } => return Err(WireFault::Refused),
    })
}

fn list(frame: &[u8], elements: Vec<resp3::types::RangeFrame>) -> Result<Vec<Reply<'_>>, WireFault> {
    elements.into_iter().map(|element| from_resp3(frame, element)).collect()
}

/// Floating-point numbers cannot be keys. NaN differs from itself, and 0 and -0 are equal with
/// different hashes: how many of them a hash table holds, and in which order, depends on chance. No
/// server sends such keys.
fn is_double(key: &resp3::types::RangeFrame) -> bool {
    matches!(key, resp3::types::RangeFrame::Double { .. })
}

/// An order for the crate's maps and sets, which are hash tables with a different order in every
/// process: the same bytes must give the same reply. Strings are ordered by position, the rest by
/// kind and value.
fn order(key: &resp3::types::RangeFrame) -> (u8, usize, i64) {
    use resp3::types::RangeFrame;
    match key {
        RangeFrame::SimpleString { data, .. }
        | RangeFrame::SimpleError { data, .. }
        | RangeFrame::BlobString { data, .. }
        | RangeFrame::BlobError { data, .. }
        | RangeFrame::VerbatimString { data, .. }
        | RangeFrame::BigNumber { data, .. } => (0, data.0, 0),
        RangeFrame::Number { data, .. } => (1, 0, *data),
        RangeFrame::Boolean { data, .. } => (2, 0, i64::from(*data)),
        _ => (3, 0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::{Dialect::*, *};

    #[test]
    fn values_of_resp_2_are_read() {
        for (frame, reply) in [
            (&b"+OK\r\n"[..], Reply::Simple(b"OK")),
            (b"-ERR no\r\n", Reply::Error(b"ERR no")),
            (b":-12\r\n", Reply::Integer(-12)),
            (b"$3\r\na\r\n\r\n", Reply::Bulk(b"a\r\n")),
            (b"$-1\r\n", Reply::Null),
            (b"*-1\r\n", Reply::Null),
            (
                b"*2\r\n$-1\r\n*1\r\n:1\r\n",
                Reply::Array(vec![Reply::Null, Reply::Array(vec![Reply::Integer(1)])]),
            ),
        ] {
            assert_eq!(decode(Resp2, frame), Ok(reply));
        }
    }

    #[test]
    fn values_of_resp_3_are_read() {
        for (frame, reply) in [
            (&b"+OK\r\n"[..], Reply::Simple(b"OK")),
            (b"!6\r\nERR no\r\n", Reply::Error(b"ERR no")),
            (b"_\r\n", Reply::Null),
            (b"$-1\r\n", Reply::Null),
            (b"*-1\r\n", Reply::Null),
            (b"#t\r\n", Reply::Boolean(true)),
            (b",1.5\r\n", Reply::Number(1.5)),
            (b"(123456789012345678901\r\n", Reply::BigNumber(b"123456789012345678901")),
            (b"=7\r\ntxt:abc\r\n", Reply::Bulk(b"abc")),
            (b"=4\r\ntxt:\r\n", Reply::Bulk(b"")),
            (b"~2\r\n$1\r\nb\r\n$1\r\na\r\n", Reply::Array(vec![Reply::Bulk(b"b"), Reply::Bulk(b"a")])),
            (b">2\r\n+message\r\n_\r\n", Reply::Push(vec![Reply::Simple(b"message"), Reply::Null])),
        ] {
            assert_eq!(decode(Resp3, frame), Ok(reply));
        }
    }

    #[test]
    fn values_that_do_not_fit_their_type_are_refused() {
        for frame in [
            "#x\r\n",
            ":1a\r\n",
            ":\r\n",
            ",x\r\n",
            "=3\r\ntxt\r\n",
            "=4\r\nxxx:\r\n",
            "%1\r\n*0\r\n:1\r\n",
            "*1\r\n$-1\r\n",
            // Floating-point numbers cannot be keys: the crate's hash table would hold one or two
            // equal ones by chance.
            "%2\r\n,nan\r\n:1\r\n,nan\r\n:2\r\n",
            "~2\r\n,0\r\n,-0\r\n",
        ] {
            assert_eq!(decode(Resp3, frame.as_bytes()), Err(WireFault::Refused), "{frame:?}");
        }
        for frame in [":1a\r\n", "_\r\n", "%0\r\n", ":99999999999999999999\r\n"] {
            assert_eq!(decode(Resp2, frame.as_bytes()), Err(WireFault::Refused), "{frame:?}");
        }
    }

    #[test]
    fn a_frame_that_is_cut_or_followed_by_more_is_refused() {
        for dialect in [Resp2, Resp3] {
            assert_eq!(decode(dialect, b"+OK\r\n+OK\r\n"), Err(WireFault::Refused));
            assert_eq!(decode(dialect, b"+OK"), Err(WireFault::Refused));
            assert_eq!(decode(dialect, b""), Err(WireFault::Refused));
        }
    }

    #[test]
    fn fields_are_found_in_a_map_and_in_a_flat_list_and_keep_their_order() {
        let names = ["server", "version", "proto", "id", "mode", "role"];
        let pairs: String = names
            .iter()
            .enumerate()
            .map(|(n, name)| format!("${}\r\n{name}\r\n:{n}\r\n", name.len()))
            .collect();
        let (map, flat) = (format!("%6\r\n{pairs}"), format!("*12\r\n{pairs}"));
        let map = decode(Resp3, map.as_bytes()).unwrap();
        let flat = decode(Resp2, flat.as_bytes()).unwrap();
        for reply in [&map, &flat] {
            assert_eq!(reply.field("proto"), Some(&Reply::Integer(2)));
            assert_eq!(reply.field("modules"), None);
        }
        let Reply::Map(pairs) = map else { panic!("not a map") };
        assert!(pairs.iter().filter_map(|(key, _)| key.as_bytes()).eq(names.map(str::as_bytes)));
    }

    #[test]
    fn map_keys_of_any_type_are_decoded_in_the_same_order_every_time() {
        let keys = [":3", "#t", ":-1", "+a", "#f"];
        let pairs: String = keys.iter().map(|key| format!("{key}\r\n:0\r\n")).collect();
        let frame = format!("%5\r\n{pairs}");
        let frame = frame.as_bytes();
        let first = decode(Resp3, frame).unwrap();
        for _ in 0..50 {
            assert_eq!(decode(Resp3, frame).unwrap(), first);
        }
    }

    #[test]
    fn debug_shows_kinds_and_lengths_only() {
        let reply = decode(Resp3, b"*3\r\n$6\r\nsecret\r\n-ERR secret\r\n%1\r\n+secret\r\n:7\r\n").unwrap();
        assert_eq!(
            format!("{reply:?}"),
            "Array([Bulk(6 bytes), Error(10 bytes), Map([(Simple(6 bytes), Integer)])])"
        );
    }
}
