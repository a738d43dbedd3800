//! What all clients of a set of masters must agree on for the restart guard.

use std::fmt;

use super::Ttl;
use super::units::Span;
#[cfg(doc)]
use crate::endpoint::Endpoint;

/// What all clients of a set of masters must agree on, and what each master keeps in its marker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fleet {
    /// The longest TTL that any client gives a lock. A master that has lost its data does not vote
    /// for that time.
    pub longest_ttl: Ttl,
    /// How many masters there are.
    pub masters: u32,
    /// How many replicas confirm each vote of this master ([`Endpoint::with_replicas`]); 0 for a
    /// master without replicas.
    pub replicas: u32,
}

impl Fleet {
    /// The key under which every master keeps its marker, in the database of the locks.
    ///
    /// It holds the server's replication id, the time at which it was written, the time from which
    /// the master votes (both in milliseconds of the server's clock since 1970), the longest TTL in
    /// milliseconds and the number of masters, plus 1,000 for each replica of this master.
    pub const MARKER: &str = "quorlock:restart-guard";

    /// What each replica adds to the last number of the marker. There are never so many masters, so
    /// both are in one number, and clients that know of no replicas are told that they disagree.
    const PER_REPLICA: u32 = 1000;

    /// The last number of the marker.
    pub(crate) fn marked(self) -> u64 {
        u64::from(self.masters) + u64::from(Self::PER_REPLICA) * u64::from(self.replicas)
    }

    /// Returns what a marker says whose last two numbers these are.
    pub fn of_marker(longest_ttl: Ttl, marked: u32) -> Self {
        Self { longest_ttl, masters: marked % Self::PER_REPLICA, replicas: marked / Self::PER_REPLICA }
    }
}

impl fmt::Display for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} master{}", self.masters, if self.masters == 1 { "" } else { "s" })?;
        if self.replicas > 0 {
            write!(f, ", replicas={}", self.replicas)?;
        }
        write!(f, " and a longest TTL of {}", Span(self.longest_ttl.as_duration()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_last_number_of_the_marker_is_both_masters_and_replicas() {
        let longest_ttl = Ttl::new(Duration::from_secs(10)).unwrap();
        for (masters, replicas, marked) in [(3, 0, 3), (1, 2, 2001), (64, 16, 16_064)] {
            let fleet = Fleet { longest_ttl, masters, replicas };
            assert_eq!(fleet.marked(), u64::from(marked));
            assert_eq!(Fleet::of_marker(longest_ttl, marked), fleet);
        }
    }
}
