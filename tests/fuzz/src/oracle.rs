//! The guard's rules in a second, simpler implementation: recursive, and from the start at every
//! call.

/// What a buffer starts with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// A reply of this length.
    Reply(usize),
    /// The beginning of a reply.
    More,
    /// Bytes that cannot become a reply.
    Bad,
}

const MAX_BYTES: usize = 64 * 1024;
const MAX_ELEMENTS: usize = 512;
const MAX_DEPTH: usize = 4;

pub(crate) fn judge(bytes: &[u8]) -> Verdict {
    let mut reader = Reader { bytes, at: 0, elements: 0 };
    match reader.value(0) {
        Ok(()) => Verdict::Reply(reader.at),
        Err(Stop::More) => Verdict::More,
        Err(Stop::Bad) => Verdict::Bad,
    }
}

enum Stop {
    More,
    Bad,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    elements: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, Stop> {
        let byte = *self.bytes.get(self.at).ok_or(Stop::More)?;
        if self.at == MAX_BYTES {
            return Err(Stop::Bad);
        }
        self.at += 1;
        Ok(byte)
    }

    fn exactly(&mut self, wanted: u8) -> Result<(), Stop> {
        if self.byte()? == wanted { Ok(()) } else { Err(Stop::Bad) }
    }

    fn line_end(&mut self) -> Result<(), Stop> {
        self.exactly(b'\r')?;
        self.exactly(b'\n')
    }

    fn value(&mut self, depth: usize) -> Result<(), Stop> {
        match self.byte()? {
            b'+' | b'-' | b':' | b',' | b'#' | b'(' => self.line(),
            b'$' => self.string(true),
            b'!' | b'=' => self.string(false),
            b'*' => self.list(depth, true, 1),
            b'~' | b'>' => self.list(depth, false, 1),
            b'%' => self.list(depth, false, 2),
            b'_' => self.line_end(),
            _ => Err(Stop::Bad),
        }
    }

    fn line(&mut self) -> Result<(), Stop> {
        loop {
            match self.byte()? {
                b'\r' => return self.exactly(b'\n'),
                b'\n' => return Err(Stop::Bad),
                _ => {}
            }
        }
    }

    fn string(&mut self, is_nullable: bool) -> Result<(), Stop> {
        let Some(length) = self.length(is_nullable, MAX_BYTES)? else { return Ok(()) };
        if self.at + length + 2 > MAX_BYTES {
            return Err(Stop::Bad);
        }
        if self.bytes.len() < self.at + length {
            return Err(Stop::More);
        }
        self.at += length;
        self.line_end()
    }

    fn list(&mut self, depth: usize, is_nullable: bool, values_each: usize) -> Result<(), Stop> {
        let Some(length) = self.length(is_nullable, MAX_ELEMENTS)? else { return Ok(()) };
        self.elements += length * values_each;
        if depth == MAX_DEPTH || self.elements > MAX_ELEMENTS {
            return Err(Stop::Bad);
        }
        (0..length * values_each).try_for_each(|_| self.value(depth + 1))
    }

    /// `None` for -1.
    fn length(&mut self, is_nullable: bool, limit: usize) -> Result<Option<usize>, Stop> {
        let mut length = None;
        loop {
            length = match (self.byte()?, length) {
                (b'-', None) if is_nullable => {
                    self.exactly(b'1')?;
                    return self.line_end().map(|()| None);
                }
                (digit @ b'0'..=b'9', None) => Some(usize::from(digit - b'0')),
                // No leading zeros.
                (digit @ b'0'..=b'9', Some(before @ 1..)) => Some(before * 10 + usize::from(digit - b'0')),
                (b'\r', Some(length)) => return self.exactly(b'\n').map(|()| Some(length)),
                _ => return Err(Stop::Bad),
            };
            if length > Some(limit) {
                return Err(Stop::Bad);
            }
        }
    }
}
