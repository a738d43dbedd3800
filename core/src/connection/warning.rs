//! What an operator should know about a master that votes.

use super::tracking;

/// Something that the operator of a master should know, although the master votes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Warning {
    /// HELLO is denied: RESP2 is used.
    HelloDenied,
    /// CLIENT SETNAME is denied: the connection has no name in `CLIENT LIST`.
    ClientDenied,
    /// INFO is denied: one server behind two addresses, or a replica, cannot be recognized.
    InfoDenied,
    /// SCRIPT LOAD is denied: scripts are sent as text when the server does not know them yet.
    ScriptLoadDenied,
    /// CLIENT TRACKING is denied: waiters poll, because the master does not notify them.
    TrackingDenied,
    /// Waiters poll, because notifications of this version are no use to them: it also notifies
    /// them of what their own requests change (Redis 6.2.0 to 6.2.7 and 7.0.0 to 7.0.4, pull
    /// request 11052 of Redis). Update the server.
    TrackingEchoes,
    /// What a queue needs is denied or unknown: waiters that ask for a place in it wait here
    /// without one. `quorlock doctor` names what is missing. It is noticed at the first such
    /// request of a connection, and holds for that connection.
    QueueDenied,
    /// The restart guard is on, and the master had replicas when the connection was opened, which
    /// its URL does not declare. The guard alone does not cover a promotion while this master is
    /// still running (a split brain): both servers vote then, and two clients may hold one lock.
    /// Declare all replicas with `replicas=` in the URL
    /// ([`Endpoint::with_replicas`](crate::Endpoint::with_replicas)), or detach them.
    UndeclaredReplicas,
    /// Other clients use the restart guard on this master, and this client does not: the master had
    /// the guard's marker when the connection was opened. One client without the guard voids it for
    /// all, because a master in quarantine votes for it, so two clients may hold one lock. Turn the
    /// guard on in every client
    /// ([`ConfigBuilder::restart_guard`](crate::ConfigBuilder::restart_guard)). If no client uses
    /// it any more, delete the marker ([`Fleet::MARKER`](crate::Fleet::MARKER)) on all masters.
    ///
    /// A marker that is written later is noticed at the next connection. One that this user may not
    /// read is not noticed. A client with the guard does not notice clients without it.
    NoRestartGuard,
    /// Another server answers now, although the former one did not restart: both were up at the
    /// same time. Several servers behind one name are several masters, and clients that reach
    /// different ones do not exclude each other. Give each server its own name. After a failover,
    /// the new server may lack locks that the old one has granted.
    ///
    /// The master does not vote until those locks have expired: for the longest TTL of the restart
    /// guard, or without it for the longest TTL that this client has used.
    OtherServer,
    /// The files of `cacert=`, `cert=` or `key=` had changed when the connection was opened, and
    /// their new contents could not be used, for example because only one of a pair had been
    /// written: the earlier contents are in use, and may expire. They are read again at the next
    /// connection. `quorlock doctor` reads them, too, and says what is wrong with them.
    OutdatedFiles,
}

impl Warning {
    /// Returns what clients warn about on every master whose INFO reports this `redis_version`, for
    /// programs that look at servers themselves. Valkey reports the version of Redis that it is
    /// compatible with.
    ///
    /// ```
    /// # use quorlock_core::Warning;
    /// assert_eq!(Warning::of_version("7.0.4"), Some(Warning::TrackingEchoes));
    /// assert_eq!(Warning::of_version("7.0.15"), None);
    /// ```
    pub fn of_version(redis_version: &str) -> Option<Self> {
        tracking::echoes(Some(redis_version.as_bytes()))
    }
}
