//! Replies as bytes: where each ends, and what it consists of.

use std::io::{self, BufRead, ErrorKind, Read};

/// Reads one whole reply of either protocol, and returns its bytes unchanged.
pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut frame = Vec::new();
    let mut missing = 1_usize;
    while missing > 0 {
        missing -= 1;
        let start = frame.len();
        if from.read_until(b'\n', &mut frame)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let line = std::str::from_utf8(&frame[start..]).unwrap_or_default().trim_end();
        let count = || line.get(1..).unwrap_or_default().parse::<i64>().map_err(|_| ErrorKind::InvalidData);
        match line.as_bytes().first() {
            Some(b'$' | b'=' | b'!') => {
                if let Ok(length) = u64::try_from(count()?) {
                    from.take(length + 2).read_to_end(&mut frame)?;
                }
            }
            Some(b'*' | b'~' | b'>') => missing += usize::try_from(count()?).unwrap_or_default(),
            Some(b'%') => missing += 2 * usize::try_from(count()?).unwrap_or_default(),
            _ => {}
        }
    }
    Ok(frame)
}

/// The parts of one reply, each header or value by itself: `%7`, `server`, `redis`, …, values of
/// strings without their header.
pub(crate) fn parts(frame: &[u8]) -> Vec<Vec<u8>> {
    let (mut parts, mut rest) = (Vec::new(), frame);
    while !rest.is_empty() {
        let mut line = Vec::new();
        rest.read_until(b'\n', &mut line).unwrap();
        let text = line.strip_suffix(b"\r\n").unwrap_or(&line);
        let length = std::str::from_utf8(&text[1..]).ok().and_then(|digits| digits.parse::<usize>().ok());
        match (text[0], length) {
            (b'$', Some(length)) => {
                parts.push(rest[..length].to_vec());
                rest = &rest[length + 2..];
            }
            _ => parts.push(text.to_vec()),
        }
    }
    parts
}

/// How many whole replies these bytes are.
pub(crate) fn count(mut bytes: &[u8]) -> usize {
    let mut frames = 0;
    while !bytes.is_empty() {
        read(&mut bytes).expect("the model writes whole replies");
        frames += 1;
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_delimited() {
        let replies = b"+OK\r\n$-1\r\n*2\r\n$3\r\na\r\n\r\n:1\r\n%1\r\n+k\r\n=5\r\ntxt:a\r\n_\r\n*-1\r\n";
        assert_eq!(count(replies), 6);
        let mut rest = &replies[..];
        let frames: Vec<Vec<u8>> = (0..6).map(|_| read(&mut rest).unwrap()).collect();
        assert_eq!(frames.concat(), replies);
        assert_eq!(parts(&frames[2]), [&b"*2"[..], b"a\r\n", b":1"]);
    }
}
