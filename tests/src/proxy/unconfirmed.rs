//! Requests without `WAIT`: how a test removes the confirmation by replicas.

use crate::client::encode;

/// The requests of a client on one connection, with each `WAIT` replaced by a script that returns
/// the requested number of replicas. The number and the order of replies stay the same.
#[derive(Debug, Default)]
pub(super) struct Unconfirmed {
    /// The beginning of a command.
    partial: Vec<u8>,
}

impl Unconfirmed {
    /// Takes sent bytes, and returns whole commands to pass on.
    pub(super) fn pass(&mut self, sent: &[u8]) -> Vec<u8> {
        self.partial.extend_from_slice(sent);
        let mut passed = Vec::new();
        while let Some((length, words)) = command(&self.partial) {
            match words.as_slice() {
                [b"WAIT", replicas, _] => {
                    let script = [b"return ", *replicas].concat();
                    passed.extend_from_slice(&encode(&[b"EVAL", script.as_slice(), b"0"]));
                }
                _ => passed.extend_from_slice(self.partial.get(..length).unwrap_or_default()),
            }
            self.partial.drain(..length);
        }
        passed
    }
}

/// The first command, if it is complete: its length and its words. Our clients send only arrays of
/// bulk strings.
fn command(bytes: &[u8]) -> Option<(usize, Vec<&[u8]>)> {
    let mut at = 0;
    let count = number(bytes, &mut at, b'*')?;
    let mut words = Vec::new();
    for _ in 0..count {
        let length = number(bytes, &mut at, b'$')?;
        words.push(bytes.get(at..at + length)?);
        at += length + 2;
    }
    (at <= bytes.len()).then_some((at, words))
}

/// The number of a line that begins with `kind`; `at` moves after the line.
fn number(bytes: &[u8], at: &mut usize, kind: u8) -> Option<usize> {
    let rest = bytes.get(*at..)?;
    let length = rest.windows(2).position(|end| end == b"\r\n")?;
    let (first, digits) = rest.get(..length)?.split_first()?;
    assert_eq!(*first, kind, "a request that is no array of bulk strings");
    *at += length + 2;
    Some(std::str::from_utf8(digits).ok()?.parse().expect("a length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_becomes_a_script_wherever_the_bytes_are_split() {
        let set = encode(&["SET", "WAIT", "a\r\nb"]);
        let sent = [&*set, &encode(&["WAIT", "2", "50"]), &set].concat();
        let expected = [&*set, &encode(&["EVAL", "return 2", "0"]), &set].concat();
        for split in 0..=sent.len() {
            let mut unconfirmed = Unconfirmed::default();
            let mut passed = unconfirmed.pass(&sent[..split]);
            passed.extend(unconfirmed.pass(&sent[split..]));
            assert_eq!(passed, expected, "split at {split}");
        }
    }
}
