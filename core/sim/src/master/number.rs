//! Numbers as servers read them.

/// A decimal integer, strictly: no spaces, no plus sign, no leading zeros, no `-0`.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_strict = match digits {
        b"0" => digits.len() == text.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !is_strict {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The result of Lua 5.1's `tonumber` for a text: decimal or hexadecimal, with spaces around. It
/// ends at the first NUL, as C strings do.
pub(super) fn lua_number(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = std::str::from_utf8(text).ok()?.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let unsigned = text.trim_start_matches(['+', '-']);
    if let Some(digits) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        let magnitude = u64::from_str_radix(digits, 16).ok()? as f64;
        return Some(if text.starts_with('-') { -magnitude } else { magnitude });
    }
    text.parse().ok()
}

/// The integer that a server makes of a script's number: a number that does not fit becomes the
/// smallest integer, as on x86-64 processors.
#[allow(
    clippy::cast_possible_truncation,
    reason = "what comes after the point is cut off, and the rest is looked at"
)]
pub(super) fn lua_integer(number: f64) -> i64 {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if (-END..END).contains(&number) { number as i64 } else { i64::MIN }
}

/// `math.max`: the first number if the two cannot be compared.
pub(super) fn lua_max(first: f64, second: f64) -> f64 {
    if second > first { second } else { first }
}

/// The result of `%s` in `string.format`: up to the first NUL, if the text is short.
pub(super) fn lua_text(text: &[u8]) -> &[u8] {
    if text.len() >= 100 { text } else { text.split(|byte| *byte == 0).next().unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_strictly() {
        for (text, value) in
            [("0", 0), ("-1", -1), ("9223372036854775807", i64::MAX), ("-9223372036854775808", i64::MIN)]
        {
            assert_eq!(integer(text.as_bytes()), Some(value));
        }
        for text in ["", "-", "-0", "01", "+1", " 1", "1 ", "1.0", "0x1", "9223372036854775808", "१"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn scripts_read_numbers_more_freely() {
        for (text, value) in
            [(" 10 ", 10.0), ("1e3", 1000.0), ("0x10", 16.0), ("-0x10", -16.0), ("+1.5", 1.5)]
        {
            assert_eq!(lua_number(text.as_bytes()), Some(value));
        }
        assert!(["", "1a", "0x", "--1"].iter().all(|text| lua_number(text.as_bytes()).is_none()));
    }
}
