//! How the bytes of a fuzzer become inputs. Changing, adding or removing a byte affects only a
//! small part of the input.

use std::ops::Range;

/// Separates two operations.
const END: u8 = 0xff;
/// Precedes a number n. The bytes before this mark, up to 16, are repeated 16·n times.
const AGAIN: u8 = 0xfe;
const AGAIN_BYTES: usize = 16;

/// Room for the longest reply, the longest line, and something behind them.
const MAX_BYTES: usize = 72 * 1024;

/// The operations that an input consists of.
pub(crate) fn operations(input: &[u8]) -> impl Iterator<Item = Operation<'_>> {
    input.split(|byte| *byte == END).filter(|bytes| !bytes.is_empty()).map(Operation)
}

/// The rest of an operation.
#[derive(Clone, Copy)]
pub(crate) struct Operation<'a>(&'a [u8]);

impl<'a> Operation<'a> {
    /// The next byte, or 0 if there are no more.
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit.max(1)
    }

    /// All remaining bytes, unchanged.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// The bytes to receive, with repetitions carried out, so that a short input can reach any limit.
pub(crate) fn expanded(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut bytes = bytes.iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.clone().next()) {
            (AGAIN, Some(count)) => {
                bytes.next();
                let repeated = out.get(out.len().saturating_sub(AGAIN_BYTES)..).unwrap_or_default().to_vec();
                out.extend(repeated.repeat(usize::from(count) * AGAIN_BYTES));
            }
            _ => out.push(byte),
        }
        if out.len() > MAX_BYTES {
            out.truncate(MAX_BYTES);
            break;
        }
    }
    out
}

/// Splits `length` bytes. The number decides how: into single bytes, into pieces of similar length,
/// or not at all.
pub(crate) fn pieces(length: usize, number: u8) -> impl Iterator<Item = Range<usize>> {
    let longest = [1, 2, 3, 7, 16, 100, 4_096, usize::MAX][usize::from(number % 8)];
    // There are a few thousand pieces at most, or the longest inputs would take too much of the
    // fuzzer's time.
    let (longest, shortest) = (longest.max(length / 512), length / 2_048 + 1);
    let (mut random, mut start) = (u64::from(number) + 1, 0);
    std::iter::from_fn(move || {
        if start == length {
            return None;
        }
        random = next_random(random);
        let spread = u64::try_from(longest).unwrap_or(u64::MAX);
        let piece = usize::try_from(random % spread).unwrap_or(usize::MAX).saturating_add(shortest);
        let end = length.min(start.saturating_add(if longest == usize::MAX { length } else { piece }));
        Some(std::mem::replace(&mut start, end)..end)
    })
}

/// The next number of a sequence (xorshift) that never comes to 0.
pub(crate) fn next_random(mut number: u64) -> u64 {
    number ^= number << 13;
    number ^= number >> 7;
    number ^ (number << 17)
}
