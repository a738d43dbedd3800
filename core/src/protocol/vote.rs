//! A master's answer as a round sees it.

use std::fmt;
use std::io;
use std::time::Duration;

use super::units::Span;
use super::{ClusterFault, EvictionPolicy, Fleet, IoFault, MasterId, SentinelFault, TlsFault, Unavailable};
use crate::endpoint::Endpoint;
use crate::wire::{ServerError, WireFault};

/// A master's answer as one round sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Vote {
    /// The master was asked and has not answered yet.
    Outstanding,
    /// The master was not asked: the answers of others decided, or the time was over before.
    NotAsked,
    /// The master stored the token.
    Granted,
    /// The master's key already has another token.
    HeldByAnother {
        /// How long that key will live unless it is renewed; `None` if it never expires, or if the
        /// time is not known: then the holder is not known either.
        remaining: Option<Duration>,
        /// The first eight bytes of the SHA-1 of the other token. They are equal on all masters
        /// where the same holder has the key.
        holder: Option<u64>,
    },
    /// At an extension or release, the master had no key, or one with another token.
    NotHeld,
    /// The master has no vote, for this reason.
    Failed(Cause),
}

impl Vote {
    pub(crate) fn is_refusal(self) -> bool {
        matches!(self, Self::HeldByAnother { .. })
    }

    /// Whether the other token's key never expires: a master that names the holder also tells how
    /// long its key lives.
    pub(crate) fn never_ends(self) -> bool {
        matches!(self, Self::HeldByAnother { remaining: None, holder: Some(_) })
    }
}

/// Why a master has no vote.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The request was sent, and no answer came in time.
    NoAnswer {
        /// The time since the request was handed to the socket, or since its round began.
        waited: Duration,
    },
    /// No connection was opened in time.
    NoConnection {
        /// The time since the connection was requested.
        waited: Duration,
    },
    /// A connection was opened, but the TLS handshake was not done in time.
    NoHandshake {
        /// The time since the connection was requested.
        waited: Duration,
    },
    /// The encrypted connection could not be opened, or failed.
    Tls(TlsFault),
    /// The system refused the connection or ended it.
    Connect(IoFault),
    /// The caller's own connector panicked, or its stream did.
    ConnectorPanicked,
    /// The host name has no address.
    UnknownHost,
    /// No sentinel has named the master's server.
    Sentinel(SentinelFault),
    /// In a cluster, the owner of the master's slot does not vote, or was not found.
    Cluster(ClusterFault),
    /// The connection ended before the answer.
    Closed,
    /// The connection ended before the server had answered anything: TLS ports end plain
    /// connections in this way, and so do some proxies that do not know HELLO.
    HungUp,
    /// The master answered with an error.
    Server(ServerError),
    /// The key of one of several targets holds something that is not a lock (`WRONGTYPE`).
    OtherType {
        /// The place of that target, counted from zero: written ones come first, then shared ones,
        /// each in the order of their keys.
        target: u16,
    },
    /// The server, or a proxy in front of it, does not know this command: it was renamed or
    /// removed. Without a command of a plain lock it grants nothing; without others, certain kinds
    /// of locks get no vote.
    LacksCommand(&'static str),
    /// The master sent something that is not RESP.
    Garbage(WireFault),
    /// The master sent a well-formed reply that does not fit the command, or that no request was
    /// waiting for.
    UnexpectedReply,
    /// The master sent more messages than the few that are ignored, although no request had asked
    /// for them: notifications of keys that this client does not wait for, messages of channels, or
    /// of an unknown kind.
    UnaskedMessages,
    /// The server is a replica. Only masters vote: a write to a replica is refused or lost.
    Replica,
    /// Another address leads to the same server. It has one vote, not two.
    SameServer {
        /// The master that has the vote.
        other: MasterId,
    },
    /// Two tags of a cluster are on one server, which has one vote. Each tag has its own vote again
    /// once they are on different servers. `quorlock cluster-plan` finds such tags.
    SharedServer {
        /// The master that has the vote.
        other: MasterId,
    },
    /// Too many requests to this master are in flight.
    TooManyInFlight,
    /// The master has lost its data, or may have. It does not vote until every lock that it may
    /// have forgotten has expired. The cause is the same if another server answers in the master's
    /// place ([`Warning::OtherServer`](crate::Warning::OtherServer)).
    Quarantined {
        /// How long the master will still not vote.
        remaining: Duration,
    },
    /// Other clients use this master with another restart guard. No lock is granted until all
    /// clients agree: their quorum and ours may have no master in common.
    OtherFleet {
        /// This client's restart guard.
        ours: Fleet,
        /// The one in the master's marker. It is the same as ours if the marker also has settings
        /// that only later versions know.
        theirs: Fleet,
    },
    /// The master's replicas are not exactly those that its URL declares
    /// ([`Endpoint::with_replicas`](crate::Endpoint::with_replicas)), or one of them has not
    /// reported for a second. The master votes again once all of them follow it.
    Alone {
        /// How many replicas follow the master.
        following: u32,
        /// How many replicas are connected.
        connected: u32,
        /// How many are declared.
        declared: u32,
    },
    /// The master granted the request, but not all of its replicas confirmed it in time.
    Unconfirmed {
        /// How many replicas confirmed it.
        confirmed: u32,
        /// How many are declared.
        declared: u32,
    },
    /// The server may remove locks when its memory is full, which the restart guard does not
    /// notice.
    Evicts(EvictionPolicy),
    /// There was no login for the master: its password file cannot be read, or the
    /// [`Credentials`](crate::Credentials) have none. The next attempt reads the login again.
    NoLogin(Unavailable),
    /// The master refused a login from a password file or from [`Credentials`](crate::Credentials).
    /// The next attempt reads the login again.
    LoginRefused(ServerError),
}

/// The inner error of a stream that panicked.
#[derive(Debug)]
pub(crate) struct Panicked;

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Cause::ConnectorPanicked)
    }
}

impl std::error::Error for Panicked {}

impl From<&io::Error> for Cause {
    /// Distinguishes a connection that the other side ended from other socket errors.
    fn from(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::Other if error.get_ref().is_some_and(|inside| inside.is::<Panicked>()) => {
                Self::ConnectorPanicked
            }
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::WriteZero => Self::Closed,
            _ => Self::Connect(error.into()),
        }
    }
}

impl Cause {
    /// Returns the cause of a name that the system's resolver gave no address for. Errors of the
    /// system itself, such as too many open files, say nothing about the name.
    pub fn unresolved(error: &io::Error) -> Self {
        if error.raw_os_error().is_some() { Self::from(error) } else { Self::UnknownHost }
    }

    /// Whether a key holds something that is not a lock.
    pub(crate) fn is_other_type(self) -> bool {
        matches!(self, Self::Server(ServerError::WrongType) | Self::OtherType { .. })
    }

    /// Returns whether only a configuration change can solve it, here or on the server.
    pub fn is_configuration(self) -> bool {
        match self {
            Self::Server(error) => error.is_configuration(),
            Self::Tls(fault) => fault.is_configuration(),
            Self::Sentinel(fault) => fault.is_configuration(),
            Self::Cluster(fault) => fault.is_configuration(),
            Self::SameServer { .. } | Self::OtherFleet { .. } | Self::Evicts(_) | Self::LacksCommand(_) => {
                true
            }
            _ => false,
        }
    }

    /// Whether the master has answered, and will vote later.
    pub(crate) fn is_no_vote_yet(self) -> bool {
        matches!(self, Self::Quarantined { .. } | Self::Alone { .. } | Self::Unconfirmed { .. })
    }

    /// Returns the cause as text for this master: with the path of its password file if that is the
    /// reason.
    pub fn at(self, master: &Endpoint) -> impl fmt::Display {
        At(self, master)
    }

    /// The cause as text, with the names of the master and of all others.
    pub(crate) fn describe(
        self,
        master: Option<&Endpoint>,
        masters: &[Endpoint],
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        match self {
            Self::NoAnswer { waited } => write!(f, "no answer in {}", Span(waited)),
            Self::NoConnection { waited } => write!(f, "no connection in {}", Span(waited)),
            Self::NoHandshake { waited } => {
                write!(f, "no TLS handshake in {}: is this a TLS port?", Span(waited))
            }
            Self::Tls(fault) => write!(f, "{fault}"),
            Self::Sentinel(fault) => write!(f, "{fault}"),
            Self::Cluster(fault) => write!(f, "{fault}"),
            Self::Connect(fault) => match fault.kind() {
                io::ErrorKind::ConnectionRefused => f.write_str("connection refused"),
                io::ErrorKind::NotFound => f.write_str("no such socket"),
                _ => write!(f, "no connection: {fault}"),
            },
            Self::ConnectorPanicked => f.write_str("no connection: its connector panicked"),
            Self::UnknownHost => f.write_str("host name not found"),
            Self::Closed => f.write_str("connection closed"),
            Self::HungUp => {
                f.write_str("closed before any answer: is this a TLS port (use rediss://), or a proxy that hides the server?")
            }
            // Not in the errors' own texts, which sentinels and `quorlock doctor` share.
            Self::Server(error @ ServerError::NoAuth) => write!(f, "{error}: put it in the URL"),
            Self::Server(error @ ServerError::NoPerm) => {
                write!(f, "{error}: `quorlock doctor` lists what is missing")
            }
            Self::Server(error) => write!(f, "{error}"),
            Self::OtherType { target } => write!(
                f,
                "the key of target {} holds something that is not a lock (WRONGTYPE)",
                u32::from(target) + 1
            ),
            Self::LacksCommand(name) => {
                write!(f, "does not know the command {name}, which this lock needs: do not rename or remove it")
            }
            Self::Garbage(fault) => write!(f, "does not speak Redis's protocol: {fault}"),
            Self::UnexpectedReply => {
                f.write_str("does not speak Redis's protocol: an answer that was not asked for")
            }
            Self::UnaskedMessages => f.write_str(
                "sent too many messages that were not asked for: is this a Redis or Valkey server, without something in between?",
            ),
            Self::Replica => f.write_str("is a replica, and only masters vote"),
            Self::SameServer { other } => match masters.get(other.index()) {
                Some(name) => write!(f, "is the same server as {name}"),
                None => f.write_str("is the same server as another address"),
            },
            Self::SharedServer { other } => {
                match masters.get(other.index()) {
                    Some(name) => write!(f, "its tag is on the same server as {name}")?,
                    None => f.write_str("its tag is on the same server as another one")?,
                }
                f.write_str(", which has one vote: `quorlock cluster-plan` finds tags on different servers")
            }
            Self::TooManyInFlight => f.write_str("not asked: too many requests in flight"),
            Self::Quarantined { remaining } => {
                write!(f, "quarantined for {} more, because it is new or may have lost its data", Span(remaining))
            }
            Self::OtherFleet { ours, theirs } if ours == theirs => f.write_str(
                "its restart guard has settings that this version does not know: use the same version in all clients",
            ),
            Self::OtherFleet { ours, theirs } => write!(
                f,
                "its restart guard is for {theirs}, this client's for {ours}: use the same settings in all clients"
            ),
            Self::Alone { connected, declared, .. } if connected > declared => write!(
                f,
                "has {connected} replica{}, and its URL says replicas={declared}: give all clients the number of all replicas",
                if connected == 1 { "" } else { "s" }
            ),
            Self::Alone { following, declared, .. } => {
                write!(f, "replicas that follow it: {following} of {declared}")
            }
            Self::Unconfirmed { confirmed, declared } => {
                write!(f, "replicas that confirmed it in time: {confirmed} of {declared}")
            }
            Self::Evicts(policy) => write!(
                f,
                "may remove locks when its memory is full ({policy}): set maxmemory-policy to noeviction, or allow {policy}"
            ),
            Self::NoLogin(reason) => reason.describe(master.and_then(Endpoint::password_file), f),
            Self::LoginRefused(error) => write!(f, "refused the login: {error}; trying again with a new one"),
        }
    }
}

/// Displays the cause without the names of other masters.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(None, &[], f)
    }
}

/// Displays a cause for this master, with the path of its password file if that is the reason.
struct At<'a>(Cause, &'a Endpoint);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.describe(Some(self.1), &[], f)
    }
}

#[cfg(test)]
mod tests;
