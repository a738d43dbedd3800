//! What a locker is told once: the masters, and how patient to be with them.

mod builder;
#[cfg(feature = "serde")]
mod deserialize;
mod error;
mod sources;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

pub use builder::ConfigBuilder;
pub use error::ConfigError;

use super::{EvictionPolicy, Fleet, MasterId, Quorum, Resource, Ttl};
use crate::endpoint::Endpoint;

/// A checked configuration: whatever exists of this type can be used.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) masters: Arc<[Endpoint]>,
    pub(crate) quorum: Quorum,
    pub(crate) ttl: Ttl,
    pub(crate) within: Option<Duration>,
    /// `Duration::MAX` for no limit.
    pub(crate) longest_hold: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) retry_delay: RangeInclusive<Duration>,
    pub(crate) reconnect_delay: RangeInclusive<Duration>,
    pub(crate) max_in_flight_requests: usize,
    pub(crate) max_in_flight_bytes: usize,
    pub(crate) max_locks: usize,
    pub(crate) client_name: Option<String>,
    pub(crate) prefix: Arc<str>,
    pub(crate) fleet: Option<Fleet>,
    pub(crate) allowed_evictions: Vec<EvictionPolicy>,
    pub(crate) wake_ups: bool,
    pub(crate) first_alone: bool,
    pub(crate) settles_splits: bool,
}

impl Config {
    /// Starts a configuration for these masters: URLs such as `redis://user:password@host:6379/0` or
    /// `unix:///run/redis.sock?db=1`.
    pub fn builder<U: AsRef<str>>(masters: impl IntoIterator<Item = U>) -> ConfigBuilder {
        ConfigBuilder::new(masters.into_iter().map(|url| url.as_ref().parse()).collect())
    }

    /// A configuration for these masters with every other setting at its default.
    ///
    /// # Errors
    /// See [`ConfigBuilder::build`].
    pub fn new<U: AsRef<str>>(masters: impl IntoIterator<Item = U>) -> Result<Self, ConfigError> {
        Self::builder(masters).build()
    }

    /// The masters, in the order in which votes are reported.
    pub fn masters(&self) -> &[Endpoint] {
        &self.masters
    }

    /// The numbers that masters go by, in the same order.
    pub fn master_ids(&self) -> impl Iterator<Item = MasterId> + use<> {
        MasterId::all(self.masters.len())
    }

    /// How many votes decide.
    pub fn quorum(&self) -> Quorum {
        self.quorum
    }

    /// The TTL of locks that do not name their own.
    pub fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// How long a request waits for a lock unless it says so itself; `None` for no limit.
    pub fn within(&self) -> Option<Duration> {
        self.within
    }

    /// How long renewal goes on for locks that are renewed without a bound of their own; `None` for no limit.
    pub fn longest_hold(&self) -> Option<Duration> {
        (self.longest_hold != Duration::MAX).then_some(self.longest_hold)
    }

    /// How long a master may take to answer before it is counted as silent.
    pub fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// How long a round waits for a connection that is being opened.
    pub fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// The bounds of the random pause before another attempt where no master tells when to make it.
    pub fn retry_delay(&self) -> RangeInclusive<Duration> {
        self.retry_delay.clone()
    }

    /// The shortest and the longest pause before a lost connection is opened again.
    pub fn reconnect_delay(&self) -> RangeInclusive<Duration> {
        self.reconnect_delay.clone()
    }

    /// How many requests may be on their way to one master.
    pub fn max_in_flight_requests(&self) -> usize {
        self.max_in_flight_requests
    }

    /// How many bytes of requests may be on their way to one master.
    pub fn max_in_flight_bytes(&self) -> usize {
        self.max_in_flight_bytes
    }

    /// How many locks may be sought and held at once.
    pub fn max_locks(&self) -> usize {
        self.max_locks
    }

    /// The name of the connections in the masters' `CLIENT LIST`, if they have one.
    pub fn client_name(&self) -> Option<&str> {
        self.client_name.as_deref()
    }

    /// What the keys on the masters begin with, before the name of a resource.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The resource of this name, with the prefix of this configuration in its key.
    ///
    /// # Errors
    /// [`ConfigError::EmptyResource`], [`ConfigError::OversizedResource`] and [`ConfigError::ReservedResource`].
    pub fn resource(&self, name: impl AsRef<[u8]>) -> Result<Resource, ConfigError> {
        Resource::with_prefix(&self.prefix, name.as_ref())
    }

    /// The longest TTL of all clients that the restart guard was told, if it is on.
    pub fn restart_guard(&self) -> Option<Duration> {
        self.fleet.map(|fleet| fleet.longest_ttl.as_duration())
    }

    /// The eviction policies that are accepted although the restart guard is on.
    pub fn allowed_evictions(&self) -> &[EvictionPolicy] {
        &self.allowed_evictions
    }

    /// Whether masters are asked to notify this client when a lock that it waits for becomes free.
    pub fn wake_ups(&self) -> bool {
        self.wake_ups
    }

    /// What all clients must agree on, if the restart guard is on.
    pub fn fleet(&self) -> Option<Fleet> {
        self.fleet
    }

    /// The longest life that a key of any client may have been given, as far as is known.
    pub(crate) fn longest_ttl(&self) -> Ttl {
        self.fleet.map_or(Ttl::LONGEST, |fleet| fleet.longest_ttl)
    }

    /// Whether a lock may have this TTL.
    pub(crate) fn check_ttl(&self, ttl: Ttl) -> Result<(), ConfigError> {
        check_ttl(ttl, self.request_timeout)?;
        match self.fleet {
            Some(fleet) if ttl > fleet.longest_ttl => Err(ConfigError::TtlAboveFleet {
                ttl: ttl.as_duration(),
                longest: fleet.longest_ttl.as_duration(),
            }),
            _ => Ok(()),
        }
    }

    /// Whether a server may remove keys in this way.
    pub(crate) fn allows_eviction(&self, policy: EvictionPolicy) -> bool {
        self.fleet.is_none()
            || policy == EvictionPolicy::NoEviction
            || self.allowed_evictions.contains(&policy)
    }
}

/// A TTL must outlast its own drift and the slowest answer that counts, or no grant could ever be used.
fn check_ttl(ttl: Ttl, request_timeout: Duration) -> Result<(), ConfigError> {
    let at_least = ttl.drift() + request_timeout;
    if ttl.as_duration() > at_least {
        Ok(())
    } else {
        Err(ConfigError::TtlTooShort { ttl: ttl.as_duration(), more_than: at_least })
    }
}

#[cfg(test)]
mod tests;
