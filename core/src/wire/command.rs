//! Turns commands into bytes.
//!
//! A command is an array of strings, even if an argument is a number. [`encode`] appends one to a
//! buffer, whose space it reserves once. Nothing here knows a command's destination or its reply.

use bytes::BufMut;

/// Appends one command with its arguments.
pub(crate) fn encode(out: &mut Vec<u8>, arguments: &[&[u8]]) {
    let payload: usize = arguments.iter().map(|argument| MAX_OVERHEAD_BYTES + argument.len()).sum();
    out.reserve(MAX_HEADER_BYTES + payload);
    put_header(out, b'*', arguments.len());
    for argument in arguments {
        put_argument(out, argument);
    }
}

/// Appends one argument of a command whose header has been written.
pub(crate) fn put_argument(out: &mut impl BufMut, argument: &[u8]) {
    put_header(out, b'$', argument.len());
    out.put_slice(argument);
    out.put_slice(CRLF);
}

pub(super) fn put_header(out: &mut impl BufMut, kind: u8, length: usize) {
    // The header is built from its end, so that it can be appended in one piece.
    let mut header = [kind; MAX_HEADER_BYTES];
    let (front, end) = header.split_at_mut(MAX_HEADER_BYTES - CRLF.len());
    end.copy_from_slice(CRLF);
    // No platform of Rust has addresses of more than 64 bits.
    let start = put_digits(front, length as u64);
    out.put_slice(header.get(start - 1..).unwrap_or_default());
}

/// Writes the digits of `value` at the end of `room`, and returns where they begin.
fn put_digits(room: &mut [u8], mut value: u64) -> usize {
    let mut start = room.len();
    for digit in room.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
        start -= 1;
        if value == 0 {
            break;
        }
    }
    start
}

/// A number in decimal digits, kept on the stack: a command's argument such as a TTL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal {
    digits: [u8; MAX_DIGITS],
    start: usize,
}

impl Decimal {
    /// The digits of `value`.
    pub(crate) fn new(value: u64) -> Self {
        let mut digits = [b'0'; MAX_DIGITS];
        let start = put_digits(&mut digits, value);
        Self { digits, start }
    }

    /// The digits, without leading zeros.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.digits.get(self.start..).unwrap_or_default()
    }
}

const CRLF: &[u8] = b"\r\n";
/// The digits of the largest `u64`.
const MAX_DIGITS: usize = 20;
/// A type byte, a length and CR LF.
const MAX_HEADER_BYTES: usize = 1 + MAX_DIGITS + CRLF.len();
/// The maximum overhead of an argument besides its bytes.
pub(crate) const MAX_OVERHEAD_BYTES: usize = MAX_HEADER_BYTES + CRLF.len();

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn commands_are_appended_behind_one_another() {
        let both = written(|out| {
            encode(out, &[b"PING"]);
            encode(out, &[b"ECHO", b""]);
        });
        assert_eq!(both, "*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$0\r\n\r\n");
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_the_standard_library_writes_them(value: u64) {
            for value in [value, value % 1000, 0, u64::MAX] {
                let digits = Decimal::new(value);
                let expected = value.to_string();
                prop_assert_eq!(digits.as_bytes(), expected.as_bytes());
            }
        }
    }
}
