//! Scripts whose texts consist of those of others.

/// The concatenated texts; `N` is the total length.
// An index beyond the end is a compile error, because every use is in a constant.
#[allow(clippy::indexing_slicing)]
pub(super) const fn joined<const N: usize>(texts: &[&str]) -> [u8; N] {
    let (mut text, mut which, mut from, mut place) = ([0; N], 0, 0, 0);
    while place < N {
        let part = texts[which].as_bytes();
        if place - from < part.len() {
            text[place] = part[place - from];
            place += 1;
        } else {
            (which, from) = (which + 1, place);
        }
    }
    text
}

/// A script of these parts.
macro_rules! script {
    ([$($part:expr),*], $number:literal, $name:literal, $sha1_hex:literal) => {{
        const BYTES: [u8; 0 $(+ $part.len())*] = $crate::wire::script::joined::joined(&[$($part),*]);
        const TEXT: &str = match std::str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => panic!("texts together are a text"),
        };
        Script { number: $number, name: $name, text: TEXT, sha1_hex: $sha1_hex }
    }};
}
pub(super) use script;
