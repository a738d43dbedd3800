//! What all clients of a set of masters must agree on for the restart guard.

use std::fmt;

use super::Ttl;
use super::units::Span;

/// What all clients of a set of masters must agree on, and what each master keeps in its marker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fleet {
    /// The longest TTL that any client gives a lock. A master that has lost its data does not vote
    /// for that time.
    pub longest_ttl: Ttl,
    /// How many masters there are.
    pub masters: u32,
}

impl Fleet {
    /// The key under which every master keeps its marker, in the database of the locks.
    ///
    /// It holds the server's replication id, the time at which it was written, the time from which the master votes (both in
    /// milliseconds of the server's clock since 1970), the longest TTL in milliseconds and the number of masters.
    pub const MARKER: &str = "quorlock:restart-guard";
}

impl fmt::Display for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} masters and a longest TTL of {}", self.masters, Span(self.longest_ttl.as_duration()))
    }
}
