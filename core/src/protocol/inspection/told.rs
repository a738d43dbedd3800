//! One master's answer to a client that only asks.

use std::fmt;
use std::time::Duration;

use crate::protocol::Group;

/// A holder, distinguished from the others of one inspection without its token. It displays as a
/// letter: `a` for the first holder that the masters name, `b` for the next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Holder {
    pub(crate) number: usize,
    pub(crate) fingerprint: u64,
    pub(crate) is_ours: bool,
}

impl Holder {
    /// Returns the holder's number among the holders of the inspection, from zero.
    pub fn number(self) -> usize {
        self.number
    }

    /// Returns the first eight bytes of the SHA-1 of its token, as
    /// [`Vote::HeldByAnother`](crate::Vote::HeldByAnother) has it. Equal fingerprints are one
    /// holder, even across inspections. It does not reveal the token.
    pub fn fingerprint(self) -> u64 {
        self.fingerprint
    }

    /// Returns whether its token is ours.
    pub fn is_ours(self) -> bool {
        self.is_ours
    }

    /// Its name in a sentence.
    pub(super) fn called(self) -> String {
        if self.is_ours { "ours".to_owned() } else { format!("holder {self}") }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match u8::try_from(self.number).ok().filter(|number| *number < 26) {
            Some(number) => write!(f, "{}", char::from(b'a' + number)),
            None => write!(f, "a{}", self.number),
        }
    }
}

/// One master's answer about a lock and itself.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MasterAnswer {
    /// The content of the lock's key.
    pub key: KeyState,
    /// The group that shares the key, if one does: [`Group::READERS`] for readers.
    pub group: Option<Group>,
    /// Whether the master votes.
    pub standing: Standing,
    /// What the server reports about itself.
    pub server: ServerFacts,
    pub(crate) marker: Marker,
}

/// The content of a lock's key on one master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum KeyState {
    /// No key.
    Free,
    /// A holder's token.
    Held {
        /// The holder.
        holder: Holder,
        /// The remaining life of the key; `None` if it never expires.
        remaining: Option<Duration>,
    },
    /// Entries of the holders that share the lock.
    Shared {
        /// How many holders have an entry that has not ended; `None` if the connection's user may
        /// not read the entries. A master names 1,000 at most.
        sharers: Option<usize>,
        /// How many of them have a token of ours.
        ours: usize,
        /// The remaining life of the key, which is that of the last entry. `None` if it never
        /// expires.
        remaining: Option<Duration>,
        /// How long the mark of a waiting writer keeps new holders out; `None` if there is no mark,
        /// or the user may not read it.
        wanted: Option<Duration>,
    },
    /// Something that is not a string, and so not a lock.
    OtherType,
}

/// Whether a master votes, according to its restart guard's marker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Standing {
    /// The master votes, or no restart guard is in use.
    Votes,
    /// The master is under the restart guard and does not vote yet.
    Quarantined {
        /// How long it will still not vote.
        remaining: Duration,
    },
    /// The master has lost its data, and no request under the restart guard has reached it since.
    /// The next one begins its quarantine.
    Unnoticed {
        /// How long it will not vote from then on.
        quarantine: Duration,
    },
}

/// What a server reports about itself. A field is `None` if the connection's user may not read it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct ServerFacts {
    /// The kind of server, such as `redis` or `valkey`.
    pub kind: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Its role, such as `master`.
    pub role: Option<String>,
    /// The number of connected replicas.
    pub replicas: Option<u64>,
    /// Whole seconds since its start.
    pub uptime: Option<Duration>,
    /// Its clock, since 1970.
    pub clock: Option<Duration>,
}

impl MasterAnswer {
    /// Returns whether the master has replicas that the clients' URLs do not declare although the
    /// clients use the restart guard: the guard alone does not cover a promotion.
    pub fn has_undeclared_replicas(&self) -> bool {
        self.marker.declares_none_of(&self.server)
    }
}

impl Marker {
    /// Whether the server has replicas, and the clients under the guard declare none.
    pub(super) fn declares_none_of(self, server: &ServerFacts) -> bool {
        matches!(self, Self::Present { replicas: None, .. }) && server.replicas > Some(0)
    }
}

/// The restart guard's marker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Marker {
    /// There is no marker, or the user may not read it.
    Absent,
    /// The server does not report enough to judge the marker.
    Unknown,
    Present {
        /// Whether the marker was written since the server started.
        is_own: bool,
        /// How long the master will not vote yet.
        left: Duration,
        /// The longest TTL of the clients under the guard.
        longest: Duration,
        /// How many replicas there are and confirm each vote, if the clients' URLs declare them.
        replicas: Option<u16>,
    },
}

#[cfg(test)]
mod tests {
    use super::super::PermitsAnswer;
    use super::*;

    #[test]
    fn replicas_are_undeclared_if_there_are_some_and_the_marker_declares_none() {
        let present = |replicas| {
            let longest = Duration::from_secs(60);
            Marker::Present { is_own: true, left: Duration::ZERO, longest, replicas }
        };
        let markers = [
            (Marker::Absent, false),
            (Marker::Unknown, false),
            (present(None), true),
            (present(Some(0)), false),
            (present(Some(1)), false),
        ];
        let (key, standing) = (KeyState::Free, Standing::Votes);
        for (marker, declares_none) in markers {
            for (replicas, has_some) in [(None, false), (Some(0), false), (Some(1), true), (Some(9), true)] {
                let server = ServerFacts { replicas, ..ServerFacts::default() };
                let permits = PermitsAnswer { keys: Vec::new(), standing, server: server.clone(), marker };
                let lock = MasterAnswer { key, group: None, standing, server, marker };
                let told = [lock.has_undeclared_replicas(), permits.has_undeclared_replicas()];
                assert_eq!(told, [declares_none && has_some; 2], "{marker:?}, {replicas:?}");
            }
        }
    }

    #[test]
    fn each_holder_has_its_own_number_and_name() {
        let holders = [0, 1, 25, 26, 27, 300].map(|number| Holder { number, fingerprint: 7, is_ours: false });
        assert_eq!(holders.map(Holder::number), [0, 1, 25, 26, 27, 300]);
        assert_eq!(holders.map(|it| it.to_string()), ["a", "b", "z", "a26", "a27", "a300"]);
    }
}
