//! What all clients of a set of masters must agree on for the restart guard.

use std::fmt;

use super::units::Span;
use super::{Action, Ttl};
#[cfg(doc)]
use crate::endpoint::Endpoint;
use crate::wire::{Decimal, put_argument};

/// The settings that all clients of a set of masters must agree on. Each master keeps them in its
/// marker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fleet {
    /// The longest TTL that any client gives a lock. A master that has lost its data does not vote
    /// for that time.
    pub longest_ttl: Ttl,
    /// How many masters there are.
    pub masters: u32,
    /// How many replicas this master has and how many confirm each of its votes, if its URL
    /// declares that ([`Endpoint::with_replicas`]).
    pub replicas: Option<u16>,
}

impl Fleet {
    /// The key under which every master keeps its marker, in the database of the locks.
    ///
    /// It holds five values: the server's replication id; the time at which the marker was written;
    /// the time from which the master votes; the longest TTL; and the number of masters, plus 1,000
    /// for this master and 1,000 for each of its replicas if its URL declares them. The times are
    /// in milliseconds of the server's clock since 1970, the TTL is in milliseconds. A later
    /// version may add values: then the marker is that of another fleet for this one.
    pub const MARKER: &str = "quorlock:restart-guard";

    /// What each server of a declared group, the master and its replicas, adds to the last number
    /// of the marker. There are always fewer masters than this, so one number holds both counts,
    /// and a client that declares no replicas notices the mismatch, also if there are none.
    const PER_SERVER: u32 = 1000;

    /// Returns the last number of the marker.
    pub fn marked(self) -> u64 {
        let servers = self.replicas.map_or(0, |replicas| 1 + u64::from(replicas));
        u64::from(self.masters) + u64::from(Self::PER_SERVER) * servers
    }

    /// Returns the fleet of a marker from its last two numbers.
    pub fn of_marker(longest_ttl: Ttl, marked: u32) -> Self {
        let (masters, servers) = (marked % Self::PER_SERVER, marked / Self::PER_SERVER);
        let replicas = servers.checked_sub(1).map(|many| u16::try_from(many).unwrap_or(u16::MAX));
        Self { longest_ttl, masters, replicas }
    }
}

/// The fleet's settings that a script gets, as the last of its values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Terms {
    Nothing,
    /// The longest TTL and the marker's last number. The script checks the marker.
    Marker(Fleet),
    /// The marker's last number alone. The script gives no new vote, and only counts replicas.
    Replicas(Fleet),
}

impl Terms {
    pub(crate) fn of(action: Action, fleet: Option<Fleet>) -> Self {
        let Some(fleet) = fleet else { return Self::Nothing };
        match action {
            Action::Raise if fleet.replicas.is_some() => Self::Replicas(fleet),
            Action::Raise => Self::Nothing,
            action if action.votes() => Self::Marker(fleet),
            _ => Self::Nothing,
        }
    }

    /// Whether the script checks the marker.
    pub(crate) fn are_of_marker(self) -> bool {
        matches!(self, Self::Marker(_))
    }

    /// The number of values.
    pub(crate) fn values(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Marker(_) => 2,
            Self::Replicas(_) => 1,
        }
    }

    pub(crate) fn put(self, out: &mut Vec<u8>) {
        let (Self::Marker(fleet) | Self::Replicas(fleet)) = self else { return };
        if self.are_of_marker() {
            put_argument(out, Decimal::new(fleet.longest_ttl.as_millis()).as_bytes());
        }
        put_argument(out, Decimal::new(fleet.marked()).as_bytes());
    }
}

impl fmt::Display for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} master{}", self.masters, if self.masters == 1 { "" } else { "s" })?;
        if let Some(replicas) = self.replicas {
            write!(f, ", replicas={replicas}")?;
        }
        write!(f, " and a longest TTL of {}", Span(self.longest_ttl.as_duration()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_script_gets_only_the_settings_of_the_fleet_that_it_needs() {
        let longest_ttl = Ttl::new(Duration::from_secs(10)).unwrap();
        let fleet = Fleet { longest_ttl, masters: 3, replicas: None };
        let replicated = Fleet { replicas: Some(1), ..fleet };
        for (action, alone, beside_replicas) in [
            (Action::Acquire, Terms::Marker(fleet), Terms::Marker(replicated)),
            (Action::Extend, Terms::Marker(fleet), Terms::Marker(replicated)),
            // The marker was checked when the lock was acquired.
            (Action::Raise, Terms::Nothing, Terms::Replicas(replicated)),
            (Action::Release, Terms::Nothing, Terms::Nothing),
        ] {
            assert_eq!(Terms::of(action, None), Terms::Nothing, "{action:?}");
            assert_eq!(Terms::of(action, Some(fleet)), alone, "{action:?}");
            assert_eq!(Terms::of(action, Some(replicated)), beside_replicas, "{action:?}");
        }
    }

    #[test]
    fn the_last_number_of_the_marker_encodes_masters_and_replicas() {
        let longest_ttl = Ttl::new(Duration::from_secs(10)).unwrap();
        for (masters, replicas, marked) in
            [(3, None, 3), (3, Some(0), 1003), (1, Some(2), 3001), (64, Some(16), 17_064)]
        {
            let fleet = Fleet { longest_ttl, masters, replicas };
            assert_eq!(fleet.marked(), u64::from(marked));
            assert_eq!(Fleet::of_marker(longest_ttl, marked), fleet);
        }
    }
}
