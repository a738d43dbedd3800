//! What a program of the tests found, as data, and the servers on which it ran.

#[path = "../shared/results.rs"]
mod written;

use crate::master;
pub use written::Results;

impl Results {
    /// The servers on which the program ran.
    pub fn servers(&mut self) {
        self.line("server", &mut [version().as_str()].into_iter());
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
