//! The format of names in errors and reports.

use std::fmt;

/// Prints a name as text, or escaped if it is not text or has control characters.
pub(super) struct Printed<'a>(pub(super) &'a [u8]);

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(self.0) {
            Ok(text) if !text.contains(char::is_control) => f.write_str(text),
            _ => write!(f, "{}", self.0.escape_ascii()),
        }
    }
}
