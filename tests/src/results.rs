//! What a program of the tests found, as data. `cargo xtask` names a file for it, and keeps what
//! the program has written in `tests/results`, with the commit, the machine and the date.

use std::fmt::{Display, Write as _};
use std::{env, fs, io};

use crate::master;

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

    /// The servers on which the program ran.
    pub fn servers(&mut self) {
        self.line("server", [&version()]);
    }

    /// A figure for the page, with what it should be; empty if there is no target.
    pub fn figure(&mut self, what: &str, value: impl Display, target: &str) {
        self.line("figure", [what, &value.to_string(), target]);
    }

    /// A detail that only the file has.
    pub fn detail(&mut self, what: &str, value: impl Display) {
        self.line("detail", [what, &value.to_string()]);
    }

    fn line<const N: usize>(&mut self, kind: &str, fields: [&str; N]) {
        let fields = fields.map(|field| field.replace(['\t', '\n'], " "));
        // Writing to a string does not fail.
        let _ = writeln!(self.lines, "{kind}\t{}", fields.join("\t"));
    }

    /// Writes the file, if one is named.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self) -> io::Result<()> {
        env::var_os(FILE).map_or(Ok(()), |file| fs::write(file, &self.lines))
    }
}

/// The name and version of the servers that tests start.
fn version() -> String {
    let server = master();
    let told = server.command(&["INFO", "server"]);
    let info = told.text().unwrap_or_default();
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    match field("valkey_version") {
        Some(version) => format!("valkey {}", version.trim()),
        None => format!("redis {}", field("redis_version").unwrap_or_default().trim()),
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
        let expected = "figure\tbroken promises\t0\tnone\ndetail\tattempts\t12\n";
        assert_eq!(results.lines, expected);
    }
}
