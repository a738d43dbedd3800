//! The value of a key that a group shares: the group's sentinel, then an entry for each sharer.

use quorlock_core::internals::Sentinel;

use super::keyspace::Millis;

/// An entry's bytes: 16 digits, `:`, and a token of 40 digits.
pub(super) const ENTRY: usize = 57;
/// The digits of an entry's end.
const DIGITS: usize = 16;
/// An entry that is free.
pub(super) const FREE: &[u8] = b"0000000000000000:----------------------------------------";

/// The name of the group that shares a key with this value, and its entries; `None` if it is not
/// shared.
pub(crate) fn read(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = value.strip_prefix(Sentinel::COMMON.as_bytes())?;
    let colon = rest.iter().position(|byte| *byte == b':')?;
    let length: usize = std::str::from_utf8(rest.get(..colon)?).ok()?.parse().ok()?;
    rest.get(colon + 1..)?.split_at_checked(length)
}

/// Each entry, also those that have ended or are free: the end of its life on the server's clock,
/// and the token.
pub(crate) fn each(entries: &[u8]) -> impl DoubleEndedIterator<Item = (Millis, &[u8])> {
    entries.chunks_exact(ENTRY).filter_map(|entry| {
        let end = std::str::from_utf8(entry.get(..DIGITS)?).ok()?.parse().ok()?;
        Some((end, entry.get(DIGITS + 1..)?))
    })
}

/// The end of the token's entry.
pub(crate) fn end_of(entries: &[u8], token: &[u8]) -> Option<Millis> {
    each(entries).find(|(_, other)| *other == token).map(|(end, _)| end)
}

/// Where an entry with this token begins.
pub(super) fn place_of(entries: &[u8], token: &[u8]) -> Option<usize> {
    each(entries).position(|(_, other)| other == token).map(|before| before * ENTRY)
}

/// Where an entry begins that is free.
pub(super) fn free_place(entries: &[u8]) -> Option<usize> {
    entries.chunks_exact(ENTRY).position(|entry| entry == FREE).map(|before| before * ENTRY)
}

/// `alive(value, from, name, another)`
pub(super) fn alive(entries: &[u8], now: f64, names: &[&[u8]]) -> (Vec<u8>, f64) {
    let (mut all, mut most) = (Vec::new(), 0.0_f64);
    for (entry, (end, token)) in entries.chunks_exact(ENTRY).zip(each(entries)) {
        if end as f64 > now && !names.contains(&token) {
            all.extend_from_slice(entry);
            most = most.max(end as f64);
        }
    }
    (all, most)
}

/// An entry with this end.
pub(super) fn entry(end: f64, token: &[u8]) -> Vec<u8> {
    [format!("{end:016.0}:").as_bytes(), token].concat()
}
