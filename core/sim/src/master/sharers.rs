//! The value of a key that a group shares: the group's sentinel, then an entry for each sharer, the
//! one that ends first at the beginning.

use quorlock_core::internals::Sentinel;

use super::keyspace::Millis;

/// An entry's bytes: 16 digits, `:`, and a token of 40 digits.
const ENTRY: usize = 57;
/// The digits of an entry's end.
const DIGITS: usize = 16;
/// The largest end of an entry: doubles, the numbers of Lua, hold larger integers only roughly.
const LAST: f64 = 9_007_199_254_740_991.0;

/// The name of the group that shares a key with this value, and its entries; `None` if it is not
/// shared.
pub(crate) fn read(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = value.strip_prefix(Sentinel::COMMON.as_bytes())?;
    let colon = rest.iter().position(|byte| *byte == b':')?;
    let length: usize = std::str::from_utf8(rest.get(..colon)?).ok()?.parse().ok()?;
    rest.get(colon + 1..)?.split_at_checked(length)
}

/// Each entry: the end of its life on the server's clock, and the token.
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

/// The end of the entry that ends last.
pub(super) fn last(entries: &[u8]) -> Option<Millis> {
    each(entries).next_back().map(|(end, _)| end)
}

/// `without(entries, name)`
pub(super) fn without(entries: &[u8], token: &[u8]) -> (Vec<u8>, Option<Millis>) {
    let others = entries.chunks(ENTRY).filter(|entry| entry.get(DIGITS + 1..) != Some(token));
    (others.collect::<Vec<_>>().concat(), end_of(entries, token))
}

/// `with(entries, last, name)`
pub(super) fn with(entries: &[u8], last: f64, token: &[u8]) -> Vec<u8> {
    let last = last.min(LAST);
    let own = format!("{last:016.0}:");
    let before = each(entries).take_while(|(end, _)| *end as f64 <= last).count() * ENTRY;
    let (before, behind) = entries.split_at_checked(before).unwrap_or((entries, b""));
    [before, own.as_bytes(), token, behind].concat()
}

/// The entries without those that have ended, which are at the beginning.
pub(super) fn alive(entries: &[u8], now: f64) -> &[u8] {
    let ended = each(entries).take_while(|(end, _)| *end as f64 <= now).count();
    entries.get(ended * ENTRY..).unwrap_or_default()
}
