//! Finds where a reply ends, before anything interprets it.
//!
//! The scanner reads only the skeleton of a reply: type bytes, lengths, line ends. It keeps no
//! reference to the buffer and no copy of its bytes, and does not know what a reply means.

use super::WireFault;

/// The longest reply that is accepted. The longest that Quorlock asks for is the report on a
/// semaphore of 1,024 permits, about 40 KiB. The answer to HELLO is a few KiB long with many
/// modules.
pub(crate) const MAX_REPLY_BYTES: usize = 64 * 1024;

/// The maximum number of elements in one reply, over all its levels. The answer of a Redis 8 with
/// its modules to HELLO has about a hundred.
pub(crate) const MAX_ELEMENTS: usize = 512;

/// The maximum nesting depth of arrays and maps. The answer to HELLO needs all four levels: its
/// map, the list of modules, a module's map, and that module's arguments.
pub(crate) const MAX_DEPTH: usize = 4;

/// A resumable search for the end of the first reply in a buffer that grows at its end.
///
/// It remembers where it stopped, so it looks at every byte once, however the bytes were split on
/// their way.
#[derive(Clone, Debug)]
pub(crate) struct Scanner {
    /// The place of the byte to look at next. It may be beyond the end of the buffer, because the
    /// contents of strings are skipped.
    position: usize,
    state: State,
    /// For each open array or map, the outermost first, how many values are still missing.
    missing: [usize; MAX_DEPTH],
    depth: usize,
    elements: usize,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The next byte is the type of a value.
    Type,
    /// Inside the digits of a declared length.
    Length { of: Declared, value: Option<usize> },
    /// The `-` of a null of RESP 2, `$-1` or `*-1`, has been read.
    Minus,
    /// The CR after a declared length has been read.
    LengthLineFeed { of: Declared, value: usize },
    /// Inside a value that is one line.
    Line,
    /// The CR at the end of such a line has been read.
    LineLineFeed,
    /// CR LF must come next: a string or a null ends here.
    CarriageReturn,
    /// The CR at the end of a string or a null has been read, and its LF must come next.
    LineFeed,
    /// A fault has been found; nothing after it can be understood.
    Broken(WireFault),
}

/// What a declared length counts.
#[derive(Clone, Copy, Debug)]
enum Declared {
    Bytes { nullable: bool },
    Elements { nullable: bool },
    Pairs,
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

impl Scanner {
    /// A scanner at the first byte of a reply.
    pub(crate) const fn new() -> Self {
        Self { position: 0, state: State::Type, missing: [0; MAX_DEPTH], depth: 0, elements: 0 }
    }

    /// Scans to the end of `buffer`, or of the first reply in it, and returns the length of that
    /// reply once it is complete. Until then `buffer` must start with the same bytes at every call.
    /// Afterwards the caller drops the reply's bytes, and the next call starts at the byte after
    /// them.
    ///
    /// # Errors
    ///
    /// The first fault in the bytes. It is returned as soon as the buffer has the byte that shows
    /// it, and again at every later call.
    pub(crate) fn advance(&mut self, buffer: &[u8]) -> Result<Option<usize>, WireFault> {
        match self.walk(buffer) {
            Ok(true) => {
                let length = self.position;
                *self = Self::new();
                Ok(Some(length))
            }
            Ok(false) => Ok(None),
            Err(fault) => {
                self.state = State::Broken(fault);
                Err(fault)
            }
        }
    }

    /// Reads on until the reply is complete, which returns true, or until the buffer ends, which
    /// returns false.
    fn walk(&mut self, buffer: &[u8]) -> Result<bool, WireFault> {
        loop {
            match self.state {
                State::Broken(fault) => return Err(fault),
                State::Line => {
                    if !self.skip_line(buffer)? {
                        return Ok(false);
                    }
                }
                _ => {
                    let Some(&byte) = buffer.get(self.position) else { return Ok(false) };
                    if self.position >= MAX_REPLY_BYTES {
                        return Err(WireFault::TooLong);
                    }
                    self.position += 1;
                    if self.step(byte)? {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Skips past the CR of a line; false if the buffer ends before it.
    fn skip_line(&mut self, buffer: &[u8]) -> Result<bool, WireFault> {
        let window = buffer.get(self.position..buffer.len().min(MAX_REPLY_BYTES)).unwrap_or_default();
        let end = window.iter().enumerate().find(|(_, byte)| matches!(byte, b'\r' | b'\n'));
        match end {
            Some((offset, b'\r')) => {
                self.position += offset + 1;
                self.state = State::LineLineFeed;
                Ok(true)
            }
            Some(_) => Err(WireFault::LineEnding),
            None if buffer.len() > MAX_REPLY_BYTES => Err(WireFault::TooLong),
            None => {
                self.position += window.len();
                Ok(false)
            }
        }
    }

    /// Takes one byte of the skeleton. True if it completes the reply.
    fn step(&mut self, byte: u8) -> Result<bool, WireFault> {
        self.state = match self.state {
            State::Type => match byte {
                b'+' | b'-' | b':' | b',' | b'#' | b'(' => State::Line,
                b'$' => State::Length { of: Declared::Bytes { nullable: true }, value: None },
                b'!' | b'=' => State::Length { of: Declared::Bytes { nullable: false }, value: None },
                b'*' => State::Length { of: Declared::Elements { nullable: true }, value: None },
                b'~' | b'>' => State::Length { of: Declared::Elements { nullable: false }, value: None },
                b'%' => State::Length { of: Declared::Pairs, value: None },
                b'_' => State::CarriageReturn,
                b'|' => return Err(WireFault::Attribute),
                b';' | b'.' => return Err(WireFault::Streamed),
                _ => return Err(WireFault::UnknownType),
            },
            State::Length { of, value } => match (byte, value) {
                (b'0'..=b'9', _) => State::Length { of, value: Some(of.append(value, byte - b'0')?) },
                (b'\r', Some(value)) => State::LengthLineFeed { of, value },
                (b'-', None) if of.nullable() => State::Minus,
                (b'?', None) => return Err(WireFault::Streamed),
                _ => return Err(WireFault::BadLength),
            },
            State::Minus if byte == b'1' => State::CarriageReturn,
            State::Minus => return Err(WireFault::BadLength),
            State::LengthLineFeed { of, value } if byte == b'\n' => return self.declare(of, value),
            State::CarriageReturn if byte == b'\r' => State::LineFeed,
            State::LineLineFeed | State::LineFeed if byte == b'\n' => return Ok(self.complete_value()),
            State::LengthLineFeed { .. } | State::LineLineFeed => return Err(WireFault::LineEnding),
            State::CarriageReturn | State::LineFeed => return Err(WireFault::Terminator),
            // `walk` does not pass these bytes.
            State::Line | State::Broken(_) => self.state,
        };
        Ok(false)
    }

    /// Acts on a declared length, whose line has ended. True if that completes the reply.
    fn declare(&mut self, of: Declared, value: usize) -> Result<bool, WireFault> {
        let elements = match of {
            Declared::Bytes { .. } => {
                // Too long a string is refused here, before any of its bytes has been received.
                let end = self.position + value;
                if end + 2 > MAX_REPLY_BYTES {
                    return Err(WireFault::TooLong);
                }
                self.position = end;
                self.state = State::CarriageReturn;
                return Ok(false);
            }
            Declared::Elements { .. } => value,
            Declared::Pairs => value * 2,
        };
        let Some(missing) = self.missing.get_mut(self.depth) else { return Err(WireFault::TooDeep) };
        self.elements += elements;
        if self.elements > MAX_ELEMENTS {
            return Err(WireFault::TooManyElements);
        }
        if elements == 0 {
            return Ok(self.complete_value());
        }
        *missing = elements;
        self.depth += 1;
        self.state = State::Type;
        Ok(false)
    }

    /// Closes a value, and each array or map that it completes. True if nothing remains open.
    fn complete_value(&mut self) -> bool {
        self.state = State::Type;
        while let Some(outer) = self.depth.checked_sub(1) {
            if let Some(missing) = self.missing.get_mut(outer) {
                *missing = missing.saturating_sub(1);
                if *missing > 0 {
                    return false;
                }
            }
            self.depth = outer;
        }
        true
    }
}

impl Declared {
    fn nullable(self) -> bool {
        matches!(self, Self::Bytes { nullable: true } | Self::Elements { nullable: true })
    }

    /// Appends a digit. The limit is checked at each one, so that the number cannot overflow, and a
    /// leading zero is refused, so that the line cannot grow.
    fn append(self, value: Option<usize>, digit: u8) -> Result<usize, WireFault> {
        let value = match value {
            None => usize::from(digit),
            Some(0) => return Err(WireFault::BadLength),
            Some(value) => value * 10 + usize::from(digit),
        };
        match self {
            Self::Bytes { .. } if value > MAX_REPLY_BYTES => Err(WireFault::TooLong),
            Self::Elements { .. } | Self::Pairs if value > MAX_ELEMENTS => Err(WireFault::TooManyElements),
            _ => Ok(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_continues_where_it_stopped_and_starts_again_after_a_frame() {
        let mut scanner = Scanner::new();
        assert_eq!(scanner.advance(b"$5\r\nhel"), Ok(None));
        assert_eq!(scanner.advance(b"$5\r\nhello\r\n+OK\r\n"), Ok(Some(11)));
        assert_eq!(scanner.advance(b"+OK\r\n"), Ok(Some(5)));
    }

    #[test]
    fn each_type_of_resp_2_and_resp_3_ends_where_the_protocol_says() {
        for frame in [
            "+OK\r\n",
            "+\r\n",
            "-ERR no\r\n",
            ":-12\r\n",
            "$0\r\n\r\n",
            "$2\r\n\r\n\r\n",
            "$-1\r\n",
            "*-1\r\n",
            "*0\r\n",
            "*2\r\n:1\r\n$-1\r\n",
            "_\r\n",
            "#t\r\n",
            ",1.5\r\n",
            "(123456789012345678901234567890\r\n",
            "!5\r\nERR x\r\n",
            "=7\r\ntxt:abc\r\n",
            "~2\r\n:1\r\n:2\r\n",
            "%1\r\n+a\r\n:1\r\n",
            "%0\r\n",
            ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n",
            "*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
            "*2\r\n*0\r\n*1\r\n*0\r\n",
        ] {
            let followed = format!("{frame}+next\r\n");
            assert_eq!(Scanner::new().advance(followed.as_bytes()), Ok(Some(frame.len())), "{frame:?}");
        }
    }

    #[test]
    fn each_fault_is_found_at_its_first_byte() {
        use WireFault::*;
        for (bytes, fault) in [
            ("H", UnknownType),
            ("\r", UnknownType),
            ("*1\r\nx", UnknownType),
            ("$?", Streamed),
            ("*?", Streamed),
            ("%?", Streamed),
            (";", Streamed),
            (".", Streamed),
            ("|", Attribute),
            ("*1\r\n|", Attribute),
            ("$\r", BadLength),
            ("$+", BadLength),
            ("$ ", BadLength),
            ("$00", BadLength),
            ("$1?", BadLength),
            ("$-2", BadLength),
            ("$--", BadLength),
            ("%-", BadLength),
            ("~-", BadLength),
            (">-", BadLength),
            ("!-", BadLength),
            ("=-", BadLength),
            ("$-11", Terminator),
            ("$1\n", BadLength),
            ("$1\r\r", LineEnding),
            ("+a\n", LineEnding),
            ("+a\rb", LineEnding),
            ("+a\r\r", LineEnding),
            ("$1\r\nab", Terminator),
            ("$1\r\na\rb", Terminator),
            ("=4\r\ntxt:\n", Terminator),
            ("!1\r\na\n", Terminator),
            ("_x", Terminator),
            ("$65537", TooLong),
            ("$65536\r\n", TooLong),
            ("$65529\r\n", TooLong),
            ("$99999", TooLong),
            ("*513", TooManyElements),
            ("%257\r\n", TooManyElements),
            ("*1\r\n*1\r\n*1\r\n*1\r\n*0\r\n", TooDeep),
        ] {
            let earlier = bytes.len() - 1;
            let mut scanner = Scanner::new();
            assert_eq!(scanner.advance(&bytes.as_bytes()[..earlier]), Ok(None), "{bytes:?} too early");
            assert_eq!(scanner.advance(bytes.as_bytes()), Err(fault), "{bytes:?}");
            assert_eq!(scanner.advance(bytes.as_bytes()), Err(fault), "{bytes:?} again");
        }
    }

    #[test]
    fn elements_are_counted_over_all_levels() {
        let within = "*2\r\n*300\r\n".to_owned() + &":1\r\n".repeat(300) + "*210\r\n";
        assert_eq!(Scanner::new().advance(within.as_bytes()), Ok(None));
        assert_eq!(Scanner::new().advance(b"*512\r\n"), Ok(None));
        let beyond = "*2\r\n*300\r\n".to_owned() + &":1\r\n".repeat(300) + "*211\r\n";
        assert_eq!(Scanner::new().advance(beyond.as_bytes()), Err(WireFault::TooManyElements));
    }

    #[test]
    fn the_longest_reply_is_accepted_and_one_byte_more_is_not() {
        let string = format!("$65526\r\n{}\r\n", "x".repeat(65_526));
        assert_eq!(Scanner::new().advance(string.as_bytes()), Ok(Some(MAX_REPLY_BYTES)));
        assert_eq!(Scanner::new().advance(b"$65527\r\n"), Err(WireFault::TooLong));
        let line = format!("+{}\r\n", "x".repeat(MAX_REPLY_BYTES - 3));
        assert_eq!(Scanner::new().advance(line.as_bytes()), Ok(Some(MAX_REPLY_BYTES)));
        let line = format!("+{}\r\n", "x".repeat(MAX_REPLY_BYTES - 2));
        assert_eq!(Scanner::new().advance(line.as_bytes()), Err(WireFault::TooLong));
    }

    #[test]
    fn a_hundred_thousand_nested_arrays_are_refused_at_the_fifth() {
        let mut scanner = Scanner::new();
        assert_eq!(scanner.advance("*1\r\n".repeat(100_000).as_bytes()), Err(WireFault::TooDeep));
        assert_eq!(scanner.position, 5 * 4);
    }

    #[test]
    fn an_endless_line_is_refused_after_64_kib_and_each_byte_is_looked_at_once() {
        let endless = "x".repeat(MAX_REPLY_BYTES + 1);
        let endless = format!("+{endless}");
        let mut scanner = Scanner::new();
        for received in 1..=MAX_REPLY_BYTES {
            assert_eq!(scanner.advance(&endless.as_bytes()[..received]), Ok(None));
            assert_eq!(scanner.position, received);
        }
        assert_eq!(scanner.advance(&endless.as_bytes()[..=MAX_REPLY_BYTES]), Err(WireFault::TooLong));
    }
}
