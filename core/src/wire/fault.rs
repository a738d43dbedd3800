//! Faults in bytes from a server. A fault contains none of the bytes.

use std::{error::Error, fmt};

/// Why bytes from a server are not a reply. Their connection is no longer usable: it is unknown
/// where its next reply would start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WireFault {
    /// A value starts with a byte that names no type of RESP 2 or RESP 3.
    UnknownType,
    /// A value of unknown length, sent in pieces. No server sends one unasked.
    Streamed,
    /// An attribute in front of a value. Quorlock never asks for one.
    Attribute,
    /// A length that is not plain decimal digits.
    BadLength,
    /// A line that does not end with CR LF, or contains a CR or an LF before its end.
    LineEnding,
    /// A string that is not followed by CR LF after its declared length, or a null that does not
    /// end with CR LF.
    Terminator,
    /// A reply of more than 64 KiB.
    TooLong,
    /// A reply of more than 512 elements.
    TooManyElements,
    /// A reply nested more than 4 deep.
    TooDeep,
    /// A complete reply with a value in it that does not match its type.
    Refused,
}

impl fmt::Display for WireFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownType => "a value of an unknown type (is this a Redis or Valkey server?)",
            Self::Streamed => "a value of unknown length",
            Self::Attribute => "an attribute that was not asked for",
            Self::BadLength => "a length that is not a number",
            Self::LineEnding => "a line that does not end with CR LF",
            Self::Terminator => "a string or null without CR LF where it should end",
            Self::TooLong => "a reply of more than 64 KiB",
            Self::TooManyElements => "a reply of more than 512 elements",
            Self::TooDeep => "a reply nested more than four deep",
            Self::Refused => "a value that does not fit its type",
        })
    }
}

impl Error for WireFault {}
