//! The errors of a configuration, with texts that say what to do.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::endpoint::EndpointError;
use crate::protocol::units::Span;
use crate::protocol::{Group, Quorum, Resource, Targets, Ttl};

/// An invalid setting of a configuration, or an invalid value of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// No master was named.
    NoMasters,
    /// More masters than [`Quorum::MAX_MASTERS`].
    TooManyMasters {
        /// How many.
        masters: usize,
    },
    /// One address is in the list twice, so that the master would vote twice.
    SameMasterTwice {
        /// The address.
        master: String,
    },
    /// A master's URL cannot be used. The URL is not repeated, because it may contain a password.
    Endpoint {
        /// Its place in the list, counted from 1.
        place: usize,
        /// The number of masters in the list.
        masters: usize,
        /// What is wrong with it.
        error: EndpointError,
    },
    /// The resource's name is empty.
    EmptyResource,
    /// The resource's name is longer than [`Resource::MAX_BYTES`].
    OversizedResource {
        /// Its length.
        bytes: usize,
    },
    /// A lock of several resources names none.
    NoTarget,
    /// A lock names more than [`Targets::MAX_WRITTEN`] resources that are written, more than
    /// [`Targets::MAX_READ`] that are read, or resources whose keys together are longer than
    /// [`Targets::MAX_BYTES`].
    TooManyTargets,
    /// A lock would share a resource with two groups at once.
    ConflictingGroups {
        /// The resource.
        resource: Resource,
    },
    /// The request to resume or release a lock that was handed over does not match that lock: it
    /// names other resources, shares them in another way, or asks for another number of permits.
    /// Another name for one exclusive resource is not noticed here: it ends as a lock that is not
    /// held ([`AcquireError::NotHeld`](crate::AcquireError::NotHeld),
    /// [`ReleaseError::NotOurs`](crate::front::ReleaseError::NotOurs)).
    ResumedAsAnother,
    /// Fair waiting was requested for several resources, shared ones or permits. It is for an
    /// exclusive lock of one resource.
    FairOfSeveral,
    /// A semaphore has no permit, or more than [`Targets::MAX_PERMITS`].
    UnusablePermits {
        /// How many.
        permits: u32,
    },
    /// A request names no permit, more than the semaphore has, or more than
    /// [`Targets::MAX_PERMITS_AT_ONCE`].
    UnusablePermitsAtOnce {
        /// How many.
        permits: u32,
        /// The most that may be requested.
        most: u32,
    },
    /// A group's name is empty or longer than [`Group::MAX_BYTES`].
    UnusableGroup {
        /// Its length.
        bytes: usize,
    },
    /// The TTL is less than a millisecond.
    ZeroTtl,
    /// The TTL is more than [`Ttl::MAX`].
    OversizedTtl {
        /// The requested value.
        ttl: Duration,
    },
    /// The TTL leaves no validity once the drift and one request timeout are subtracted.
    TtlTooShort {
        /// The requested value.
        ttl: Duration,
        /// What it must exceed.
        more_than: Duration,
    },
    /// A span is zero. It would end every request before its answer, or retry without a pause.
    ZeroSpan {
        /// The name of the setting.
        setting: &'static str,
    },
    /// A span is longer than [`Ttl::MAX`].
    EndlessSpan {
        /// The name of the setting.
        setting: &'static str,
        /// The requested value.
        span: Duration,
    },
    /// A limit is longer than [`Ttl::MAX`]. The setting may also be `None`, for no limit.
    EndlessLimit {
        /// The name of the setting.
        setting: &'static str,
        /// The requested value.
        limit: Duration,
    },
    /// A setting's lower bound is above its upper one.
    ReversedBounds {
        /// The name of the setting.
        setting: &'static str,
    },
    /// A limit is zero. It would refuse everything.
    ZeroLimit {
        /// The name of the setting.
        setting: &'static str,
    },
    /// A TTL is longer than the restart guard's longest TTL.
    TtlAboveFleet {
        /// The requested value.
        ttl: Duration,
        /// The restart guard's longest TTL.
        longest: Duration,
    },
    /// A master's URL has `replicas=`, but the restart guard is off. Without the guard, a promoted
    /// replica would vote at once, although keys may have ended too early there.
    ReplicasWithoutGuard {
        /// The address.
        master: String,
    },
    /// A master's server is discovered through Sentinels or in a cluster, so it changes with each
    /// failover, and the URL does not say what a failover may do to locks.
    FailoverUnguarded {
        /// The master.
        master: String,
    },
    /// A fenced lock was requested, but one of the masters may lose its counters at a failover
    /// ([`Failover::MayLoseLocks`](crate::Failover::MayLoseLocks)).
    FencedThoughLost {
        /// The master.
        master: String,
    },
    /// The resource's name begins like one of Quorlock's own keys.
    ReservedResource,
    /// The prefix is longer than 1,024 bytes.
    OversizedPrefix {
        /// Its length.
        bytes: usize,
    },
    /// With this prefix a resource's key could collide with one of Quorlock's own keys.
    ReservedPrefix,
    /// A required environment variable is not set, or is empty.
    UnsetVariable {
        /// Its name.
        variable: &'static str,
    },
    /// An environment variable is not valid UTF-8.
    VariableNotText {
        /// Its name.
        variable: &'static str,
    },
    /// A client name that Redis would refuse: empty, or with a space, a line break or a character
    /// outside ASCII.
    UnusableClientName,
}

impl ConfigError {
    /// Returns a word for this kind of error, for the labels of metrics. It is the same in every
    /// version.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoMasters => "no_masters",
            Self::TooManyMasters { .. } => "too_many_masters",
            Self::SameMasterTwice { .. } => "same_master_twice",
            Self::Endpoint { .. } => "endpoint",
            Self::EmptyResource => "empty_resource",
            Self::OversizedResource { .. } => "oversized_resource",
            Self::NoTarget => "no_target",
            Self::TooManyTargets => "too_many_targets",
            Self::ConflictingGroups { .. } => "conflicting_groups",
            Self::ResumedAsAnother => "resumed_as_another",
            Self::FairOfSeveral => "fair_of_several",
            Self::UnusablePermits { .. } => "unusable_permits",
            Self::UnusablePermitsAtOnce { .. } => "unusable_permits_at_once",
            Self::UnusableGroup { .. } => "unusable_group",
            Self::ZeroTtl => "zero_ttl",
            Self::OversizedTtl { .. } => "oversized_ttl",
            Self::TtlTooShort { .. } => "ttl_too_short",
            Self::ZeroSpan { .. } => "zero_span",
            Self::EndlessSpan { .. } => "endless_span",
            Self::EndlessLimit { .. } => "endless_limit",
            Self::ReversedBounds { .. } => "reversed_bounds",
            Self::ZeroLimit { .. } => "zero_limit",
            Self::TtlAboveFleet { .. } => "ttl_above_fleet",
            Self::ReplicasWithoutGuard { .. } => "replicas_without_guard",
            Self::FailoverUnguarded { .. } => "failover_unguarded",
            Self::FencedThoughLost { .. } => "fenced_though_lost",
            Self::ReservedResource => "reserved_resource",
            Self::OversizedPrefix { .. } => "oversized_prefix",
            Self::ReservedPrefix => "reserved_prefix",
            Self::UnsetVariable { .. } => "unset_variable",
            Self::VariableNotText { .. } => "variable_not_text",
            Self::UnusableClientName => "unusable_client_name",
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMasters => {
                f.write_str("no master is named; name at least one, for example redis://127.0.0.1:6379")
            }
            Self::TooManyMasters { masters } => {
                write!(f, "{masters} masters are named, but at most {} are possible", Quorum::MAX_MASTERS)
            }
            Self::SameMasterTwice { master } => {
                write!(f, "{master} is named twice; each master has one vote, so name it once")
            }
            Self::Endpoint { place, masters, error } => write!(f, "master {place} of {masters}: {error}"),
            Self::EmptyResource => f.write_str("the resource's name is empty; name what is to be locked"),
            Self::OversizedResource { bytes } => {
                write!(
                    f,
                    "the resource's name has {bytes} bytes, but at most {} are possible",
                    Resource::MAX_BYTES
                )
            }
            Self::NoTarget => f.write_str("no resource is named; name what is to be locked"),
            Self::TooManyTargets => write!(
                f,
                "one lock has at most {} resources that are written, {} that are read, and {} KiB of names; take several locks, or one for all of them",
                Targets::MAX_WRITTEN,
                Targets::MAX_READ,
                Targets::MAX_BYTES / 1024
            ),
            Self::ConflictingGroups { resource } => {
                write!(f, "{resource} would be shared with two groups, which exclude each other; name one")
            }
            Self::FairOfSeveral => f.write_str(
                "only an exclusive lock of one resource can be waited for fairly: leave out `fair` for several resources, readers and permits",
            ),
            Self::ResumedAsAnother => f.write_str(
                "the handed-over lock is of other resources, of another kind or of another number of permits; name exactly what it locks",
            ),
            Self::UnusablePermitsAtOnce { permits, most } => {
                write!(f, "{permits} permits cannot be requested at once: request 1 to {most} of this semaphore")
            }
            Self::UnusablePermits { permits } => {
                write!(f, "the semaphore has {permits} permits; use 1 to {}", Targets::MAX_PERMITS)
            }
            Self::UnusableGroup { bytes } => {
                write!(f, "the group's name has {bytes} bytes; use 1 to {}", Group::MAX_BYTES)
            }
            Self::ZeroTtl => {
                f.write_str("the TTL is zero; masters count whole milliseconds, so use 1 ms or more")
            }
            Self::OversizedTtl { ttl } => {
                f.write_str(&too_long("the TTL", *ttl, "the longest possible", Ttl::MAX))
            }
            Self::TtlTooShort { ttl, more_than } => write!(
                f,
                "a TTL of {} leaves no validity; it must be more than {} (TTL × 0.01 + 2 ms for drift, and one request timeout)",
                Span(*ttl),
                Span(*more_than)
            ),
            Self::ZeroSpan { setting } => write!(f, "{setting} is zero; use 1 ms or more"),
            Self::EndlessSpan { setting, span } => {
                f.write_str(&too_long(setting, *span, "the longest possible", Ttl::MAX))
            }
            Self::EndlessLimit { setting, limit } => write!(
                f,
                "{}; for no limit use {setting}(None)",
                too_long(setting, *limit, "the longest possible", Ttl::MAX)
            ),
            Self::ReversedBounds { setting } => {
                write!(f, "{setting} has its lower bound above its upper one; swap them")
            }
            Self::ZeroLimit { setting } => write!(f, "{setting} is zero; use 1 or more"),
            Self::TtlAboveFleet { ttl, longest } => write!(
                f,
                "{}; use a shorter TTL, or set a longer restart_guard in all clients",
                too_long("the TTL", *ttl, "the restart guard's longest TTL", *longest)
            ),
            Self::FailoverUnguarded { master } => write!(
                f,
                "a failover of {master} would lose locks, and nothing prevents two holders: set a restart guard and \
                 replicas=K, the number of all its replicas, 0 if it has none; or write failover=durable if the service loses no write that it \
                 has acknowledged; or write failover=may-lose-locks if no harm is done when two clients now and then hold one lock"
            ),
            Self::FencedThoughLost { master } => write!(
                f,
                "no fencing tokens with failover=may-lose-locks: a failover of {master} loses their counters, which \
                 would start again; use a restart guard and replicas=K"
            ),
            Self::ReplicasWithoutGuard { master } => write!(
                f,
                "replicas= of {master} needs the restart guard: set restart_guard (--restart-guard) to \
                 the longest TTL of all clients"
            ),
            Self::ReservedResource => write!(
                f,
                "resource names that begin with {} are reserved for Quorlock's own keys; use another name",
                Resource::RESERVED
            ),
            Self::OversizedPrefix { bytes } => {
                write!(
                    f,
                    "the prefix has {bytes} bytes, but at most {} are possible",
                    Resource::MAX_PREFIX_BYTES
                )
            }
            Self::ReservedPrefix => write!(
                f,
                "with this prefix a key could begin with {}, which is reserved for Quorlock's own keys; use another prefix",
                Resource::RESERVED
            ),
            Self::UnsetVariable { variable } => {
                write!(f, "{variable} is not set; set it to the masters' URLs, separated by commas")
            }
            Self::VariableNotText { variable } => {
                write!(f, "{variable} is not valid UTF-8; percent-encode the bytes of its URLs that are not UTF-8 (%XX)")
            }
            Self::UnusableClientName => {
                f.write_str("the client name must be printable ASCII without spaces, as CLIENT SETNAME requires")
            }
        }
    }
}

/// Says that a span is longer than it may be. [`Span`] rounds: if both print alike, only the
/// longest possible one is printed.
fn too_long(what: &str, span: Duration, than: &str, longest: Duration) -> String {
    let [span, longest] = [span, longest].map(|span| Span(span).to_string());
    let of = if span == longest { String::new() } else { format!(" of {span}") };
    format!("{what}{of} is longer than {than}, {longest}")
}

impl Error for ConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Endpoint { error, .. } => Some(error),
            _ => None,
        }
    }
}
