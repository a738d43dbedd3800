//! JSON output, for programs.

use std::fmt::Write as _;

use serde::Serialize;

/// A value as one line.
///
/// JSON escapes the control characters below U+0020 only. The others, DEL and the C1 controls,
/// would still move a terminal's cursor; they occur only in strings, so they can be escaped
/// afterwards.
pub(crate) fn line(value: &impl Serialize) -> String {
    // Serialization fails only for keys that are not strings, and there are none here.
    let json = serde_json::to_string(value).unwrap_or_default();
    let mut line = String::with_capacity(json.len() + 1);
    for character in json.chars() {
        if character.is_control() {
            // Writing to a string does not fail.
            let _ = write!(line, "\\u{:04x}", u32::from(character));
        } else {
            line.push(character);
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_is_left() {
        let text = "a \"b\" \\ \n\x1b[2J\u{7f}\u{9b}\u{e9}\u{1f512}";
        let expected = "\"a \\\"b\\\" \\\\ \\n\\u001b[2J\\u007f\\u009b\u{e9}\u{1f512}\"\n";
        assert_eq!(line(&text), expected);
    }
}
