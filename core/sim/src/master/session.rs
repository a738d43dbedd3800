//! One connection as the server sees it: bytes that have not been read yet, and what was
//! negotiated.

use std::{error::Error, fmt};

use super::command::Command;
use super::inline::split_arguments;
use super::number::integer;

/// One connection to a [`Master`](super::Master).
///
/// `Debug` shows the number of unread bytes, not the bytes.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Session {
    unread: Vec<u8>,
    /// How many bytes at the front of `unread` have been read.
    read: usize,
    /// How many bytes behind `read` hold no line end.
    searched: usize,
    /// The command whose arguments are being read.
    partial: Option<Partial>,
    pub(super) resp3: bool,
    /// Decided by the first command: a connection that was opened while no password was set stays
    /// trusted.
    pub(super) trusted: Option<bool>,
    /// Whether a password is required that the connection has not given. Small limits apply to its
    /// commands then.
    pub(super) is_limited: bool,
    pub(super) database: u32,
    pub(super) name: Vec<u8>,
    /// The offset after its last write, until all replicas have confirmed it; otherwise 0.
    pub(super) written: u64,
    /// 0 before the first command.
    pub(super) id: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Partial {
    arguments: Vec<Vec<u8>>,
    missing: usize,
    /// The declared length of the next argument, once its header has been read.
    length: Option<usize>,
    cost: usize,
}

/// An error: the bytes are not a command. The server answers with this error and closes the
/// connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProtocolError {
    /// A line of arguments is longer than 64 KiB.
    LongInline,
    /// The quotes in a line of arguments are not balanced.
    Quotes,
    /// The text of the number of arguments is longer than 64 KiB.
    LongCount,
    /// The number of arguments is not a number, or above the limit.
    Count,
    /// There are more than ten arguments before authentication.
    UntrustedCount,
    /// An argument is not a bulk string but starts with this byte.
    NotBulk(u8),
    /// The text of an argument's length is longer than 64 KiB.
    LongLength,
    /// The length of an argument is not a number, or above the limit.
    Length,
    /// An argument is longer than 16 KiB before authentication.
    UntrustedLength,
}

impl Session {
    /// The size of the largest command in bytes, with 32 bytes of overhead for each argument.
    ///
    /// A real server accepts 512 MB for each string; this model lives in the process of a test.
    pub const MAX_COMMAND_BYTES: usize = 1 << 20;

    /// Creates the session of a new connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends received bytes, split in any way. [`Session::next_command`] reads them.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.unread.drain(..self.read);
        self.read = 0;
        self.unread.extend_from_slice(bytes);
    }

    /// Returns the next complete command, or `None` if its end has not been received yet.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a command. The connection can no longer be used then.
    pub fn next_command(&mut self) -> Result<Option<Command>, ProtocolError> {
        loop {
            if let Some(partial) = self.partial.take() {
                return self.read_arguments(partial);
            }
            match self.rest().first() {
                None => return Ok(None),
                Some(b'*') => {
                    let Some(line) = self.take_line(b'\r', ProtocolError::LongCount)? else {
                        return Ok(None);
                    };
                    self.partial = self.begin(&line)?;
                }
                Some(_) => {
                    let Some(line) = self.take_line(b'\n', ProtocolError::LongInline)? else {
                        return Ok(None);
                    };
                    let arguments = split_arguments(&line).ok_or(ProtocolError::Quotes)?;
                    if !arguments.is_empty() {
                        return Ok(Some(Command::new(arguments)));
                    }
                }
            }
        }
    }

    /// Returns its number among the master's connections since the last start; 0 until the master
    /// knows it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns whether the connection speaks RESP 3.
    pub fn is_resp3(&self) -> bool {
        self.resp3
    }

    /// Returns the database that the connection has selected.
    pub fn database(&self) -> u32 {
        self.database
    }

    /// Returns the name that the client has set; empty if none.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns the number of bytes that are not a complete command yet.
    pub fn unread_bytes(&self) -> usize {
        self.rest().len()
    }

    /// An array of no arguments is skipped.
    fn begin(&self, line: &[u8]) -> Result<Option<Partial>, ProtocolError> {
        let count = line.get(1..).and_then(integer).ok_or(ProtocolError::Count)?;
        let Ok(missing) = usize::try_from(count) else { return Ok(None) };
        if missing > Self::MAX_COMMAND_BYTES / ARGUMENT_BYTES {
            return Err(ProtocolError::Count);
        }
        if missing > MAX_UNTRUSTED_ARGUMENTS && self.is_limited {
            return Err(ProtocolError::UntrustedCount);
        }
        Ok((missing > 0).then_some(Partial { arguments: Vec::new(), missing, length: None, cost: 0 }))
    }

    fn read_arguments(&mut self, mut partial: Partial) -> Result<Option<Command>, ProtocolError> {
        while partial.missing > 0 {
            let Some(argument) = self.take_argument(&mut partial)? else {
                self.partial = Some(partial);
                return Ok(None);
            };
            partial.arguments.push(argument);
            partial.missing -= 1;
        }
        Ok(Some(Command::new(partial.arguments)))
    }

    fn take_argument(&mut self, partial: &mut Partial) -> Result<Option<Vec<u8>>, ProtocolError> {
        let length = match partial.length {
            Some(length) => length,
            None => {
                let Some(line) = self.take_line(b'\r', ProtocolError::LongLength)? else { return Ok(None) };
                let length = self.declared_length(&line)?;
                partial.cost = partial.cost.saturating_add(ARGUMENT_BYTES).saturating_add(length);
                if partial.cost > Self::MAX_COMMAND_BYTES {
                    return Err(ProtocolError::Length);
                }
                partial.length = Some(length);
                length
            }
        };
        // As in Redis, the two bytes after an argument are not checked.
        if self.rest().len() < length + LINE_END_BYTES {
            return Ok(None);
        }
        let argument = self.rest().get(..length).unwrap_or_default().to_vec();
        self.skip(length + LINE_END_BYTES);
        partial.length = None;
        Ok(Some(argument))
    }

    fn declared_length(&self, line: &[u8]) -> Result<usize, ProtocolError> {
        let Some((b'$', digits)) = line.split_first() else {
            return Err(ProtocolError::NotBulk(line.first().copied().unwrap_or(b'\r')));
        };
        let length = integer(digits).and_then(|length| usize::try_from(length).ok());
        let length =
            length.filter(|length| *length <= Self::MAX_COMMAND_BYTES).ok_or(ProtocolError::Length)?;
        if length > MAX_UNTRUSTED_BYTES && self.is_limited {
            return Err(ProtocolError::UntrustedLength);
        }
        Ok(length)
    }

    /// Reads a line without its end, which is `end` and a carriage return before it, if there is
    /// one.
    fn take_line(&mut self, end: u8, too_long: ProtocolError) -> Result<Option<Vec<u8>>, ProtocolError> {
        let rest = self.rest();
        let unsearched = rest.get(self.searched..).unwrap_or_default();
        let Some(place) = unsearched.iter().position(|byte| *byte == end).map(|place| self.searched + place)
        else {
            let length = rest.len();
            self.searched = length;
            return if length > MAX_LINE_BYTES { Err(too_long) } else { Ok(None) };
        };
        // A real server checks after each read, which may be a little later. Here the result does
        // not depend on how the bytes are split.
        if place > MAX_LINE_BYTES {
            return Err(too_long);
        }
        let line_end = if end == b'\r' { LINE_END_BYTES } else { 1 };
        if rest.len() < place + line_end {
            return Ok(None);
        }
        let line = rest.get(..place).unwrap_or_default().to_vec();
        self.skip(place + line_end);
        Ok(Some(line))
    }

    fn rest(&self) -> &[u8] {
        self.unread.get(self.read..).unwrap_or_default()
    }

    fn skip(&mut self, bytes: usize) {
        self.read += bytes;
        self.searched = 0;
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id)
            .field("unread_bytes", &self.unread_bytes())
            .field("resp3", &self.resp3)
            .field("trusted", &self.trusted)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LongInline => "too big inline request",
            Self::Quotes => "unbalanced quotes in request",
            Self::LongCount => "too big mbulk count string",
            Self::Count => "invalid multibulk length",
            Self::UntrustedCount => "unauthenticated multibulk length",
            Self::NotBulk(byte) => return write!(f, "expected '$', got '{}'", char::from(*byte)),
            Self::LongLength => "too big bulk count string",
            Self::Length => "invalid bulk length",
            Self::UntrustedLength => "unauthenticated bulk length",
        })
    }
}

impl Error for ProtocolError {}

/// The overhead of an argument in bytes.
const ARGUMENT_BYTES: usize = 32;
const LINE_END_BYTES: usize = 2;
/// Redis's `PROTO_INLINE_MAX_SIZE`.
const MAX_LINE_BYTES: usize = 64 << 10;
const MAX_UNTRUSTED_ARGUMENTS: usize = 10;
const MAX_UNTRUSTED_BYTES: usize = 16 << 10;
