//! What a program of the tests found, as data. `cargo xtask` names a file for it, and keeps what
//! the program has written in `tests/results`, with the commit, the machine and the date.

use std::fmt::{Display, Write as _};
use std::{env, fs, io};

/// The variable with the path of the file. Without it nothing is written.
const FILE: &str = "QUORLOCK_RESULTS";

/// Results that are being collected: lines of fields that are separated by tabs, of which the first
/// says what the line is.
#[derive(Debug, Default)]
pub struct Results {
    lines: String,
}

impl Results {
    /// Creates results without any line.
    pub fn new() -> Self {
        Self::default()
    }

    /// A figure for the page, with what it should be; empty if there is no target.
    pub fn figure(&mut self, what: &str, value: impl Display, target: &str) {
        self.line("figure", &mut [what, &value.to_string(), target].into_iter());
    }

    /// A detail that only the file has.
    pub fn detail(&mut self, what: &str, value: impl Display) {
        self.line("detail", &mut [what, &value.to_string()].into_iter());
    }

    /// A row of a table that only the file has. The first row of a table has the names of its
    /// columns.
    pub fn row<'a>(&mut self, table: &'a str, cells: impl IntoIterator<Item = &'a str>) {
        self.line("row", &mut [table].into_iter().chain(cells));
    }

    pub(super) fn line(&mut self, kind: &str, fields: &mut dyn Iterator<Item = &str>) {
        self.lines.push_str(kind);
        for field in fields {
            // Writing to a string does not fail.
            let _ = write!(self.lines, "\t{}", field.replace(['\t', '\n'], " "));
        }
        self.lines.push('\n');
    }

    /// Writes the file, if one is named.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self) -> io::Result<()> {
        env::var_os(FILE).map_or(Ok(()), |file| fs::write(file, &self.lines))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_result_is_one_line_of_fields() {
        let mut results = Results::new();
        results.figure("broken\tpromises", 0, "none");
        results.detail("attempts", 12);
        results.row("waits", ["3 masters", "1.5"]);
        let expected = "figure\tbroken promises\t0\tnone\ndetail\tattempts\t12\nrow\twaits\t3 masters\t1.5\n";
        assert_eq!(results.lines, expected);
    }
}
