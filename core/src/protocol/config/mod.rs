//! The configuration of a locker: the masters, and how long to wait for them.

mod builder;
#[cfg(feature = "serde")]
mod deserialize;
mod error;
mod sources;

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

pub use builder::ConfigBuilder;
pub use error::ConfigError;

use super::{
    Cause, EvictionPolicy, Fleet, MasterId, Provider, Quorum, Resource, Security, Target, Targets, Ttl,
};
use crate::endpoint::{Address, Endpoint, Failover};
use crate::wire::ServerError;

/// A checked configuration: every value of this type is valid.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) masters: Arc<[Endpoint]>,
    pub(crate) quorum: Quorum,
    pub(crate) ttl: Ttl,
    pub(crate) timeout: Option<Duration>,
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
    /// Its number of replicas is not set here, because it differs between masters.
    pub(crate) fleet: Option<Fleet>,
    pub(crate) allowed_evictions: Vec<EvictionPolicy>,
    pub(crate) wake_ups: bool,
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) credentials: Option<Provider>,
    pub(crate) first_alone: bool,
    pub(crate) settles_splits: bool,
    pub(crate) security: Option<Arc<dyn Security>>,
    pub(crate) address_map: Option<AddressMap>,
}

/// Maps reported addresses to those that are reachable from here.
#[derive(Clone)]
pub(crate) struct AddressMap(pub(crate) Arc<dyn Fn(&Address) -> Address + Send + Sync>);

impl fmt::Debug for AddressMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddressMap(..)")
    }
}

impl Config {
    /// Starts a configuration for these masters: URLs such as `redis://user:password@host:6379/0`
    /// or `unix:///run/redis.sock?db=1`.
    pub fn builder<U: AsRef<str>>(masters: impl IntoIterator<Item = U>) -> ConfigBuilder {
        ConfigBuilder::new(masters.into_iter().map(|url| url.as_ref().parse()).collect())
    }

    /// Returns a configuration for these masters, with every other setting at its default.
    ///
    /// # Errors
    /// See [`ConfigBuilder::build`].
    pub fn new<U: AsRef<str>>(masters: impl IntoIterator<Item = U>) -> Result<Self, ConfigError> {
        Self::builder(masters).build()
    }

    /// Returns the masters, in the order in which votes are reported.
    pub fn masters(&self) -> &[Endpoint] {
        &self.masters
    }

    /// Returns the numbers of the masters, in the same order.
    pub fn master_ids(&self) -> impl Iterator<Item = MasterId> + use<> {
        MasterId::all(self.masters.len())
    }

    /// Returns how many votes decide.
    pub fn quorum(&self) -> Quorum {
        self.quorum
    }

    /// Returns the TTL of locks that do not name their own.
    pub fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// Returns how long a request waits for a lock if it does not set its own timeout; `None` for
    /// no limit.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns for how long a lock is renewed if its request asks for renewal and sets no limit;
    /// `None` for no limit.
    pub fn longest_hold(&self) -> Option<Duration> {
        (self.longest_hold != Duration::MAX).then_some(self.longest_hold)
    }

    /// Returns how long a master may take to answer before it counts as silent.
    pub fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// Returns how long a round waits for a connection that is being opened.
    pub fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// Returns the bounds of the random pause before another attempt.
    pub fn retry_delay(&self) -> RangeInclusive<Duration> {
        self.retry_delay.clone()
    }

    /// Returns the shortest and the longest pause before a lost connection is opened again.
    pub fn reconnect_delay(&self) -> RangeInclusive<Duration> {
        self.reconnect_delay.clone()
    }

    /// Returns how many requests may be in flight to one master.
    pub fn max_in_flight_requests(&self) -> usize {
        self.max_in_flight_requests
    }

    /// Returns how many bytes of requests may be in flight to one master.
    pub fn max_in_flight_bytes(&self) -> usize {
        self.max_in_flight_bytes
    }

    /// Returns how many locks may be requested and held at once.
    pub fn max_locks(&self) -> usize {
        self.max_locks
    }

    /// Returns the name of the connections in the masters' `CLIENT LIST`, if they have one.
    pub fn client_name(&self) -> Option<&str> {
        self.client_name.as_deref()
    }

    /// Returns the prefix that all keys on the masters have before the name of a resource.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the resource of this name, with the prefix of this configuration in its key.
    ///
    /// # Errors
    /// [`ConfigError::EmptyResource`], [`ConfigError::OversizedResource`] and
    /// [`ConfigError::ReservedResource`].
    pub fn resource(&self, name: impl AsRef<[u8]>) -> Result<Resource, ConfigError> {
        Resource::with_prefix(&self.prefix, name.as_ref())
    }

    /// The targets of a lock of one resource.
    pub(crate) fn one(&self, name: impl AsRef<[u8]>) -> Result<Targets, ConfigError> {
        self.resource(name).map(Into::into)
    }

    /// Returns these targets for one lock, with the prefix of this configuration in their keys.
    ///
    /// # Errors
    /// The errors of [`Config::resource`], [`ConfigError::NoTarget`],
    /// [`ConfigError::TooManyTargets`] and [`ConfigError::ConflictingGroups`].
    pub fn targets(&self, targets: impl IntoIterator<Item = Target>) -> Result<Targets, ConfigError> {
        Targets::new(&self.prefix, targets)
    }

    /// Returns the target of a lock that takes one of a semaphore's permits.
    ///
    /// # Errors
    /// The errors of [`Config::resource`], and [`ConfigError::UnusablePermits`].
    pub fn permits(&self, name: impl AsRef<[u8]>, permits: u32) -> Result<Targets, ConfigError> {
        Targets::permit(self.resource(name)?, permits)
    }

    /// Returns the target of a lock that takes `at_once` of a semaphore's permits.
    ///
    /// # Errors
    /// The errors of [`Config::permits`], and [`ConfigError::UnusablePermitsAtOnce`].
    pub fn permits_at_once(
        &self,
        name: impl AsRef<[u8]>,
        permits: u32,
        at_once: u32,
    ) -> Result<Targets, ConfigError> {
        self.permits(name, permits)?.permits(at_once)
    }

    /// Returns the longest TTL of all clients, if the restart guard is on.
    pub fn restart_guard(&self) -> Option<Duration> {
        self.fleet.map(|fleet| fleet.longest_ttl.as_duration())
    }

    /// Returns the eviction policies that are accepted although the restart guard is on.
    pub fn allowed_evictions(&self) -> &[EvictionPolicy] {
        &self.allowed_evictions
    }

    /// Returns whether masters notify this client when a lock that it waits for becomes free.
    pub fn wake_ups(&self) -> bool {
        self.wake_ups
    }

    /// Returns what encrypts the connections to masters whose URLs ask for TLS.
    pub fn security(&self) -> Option<&Arc<dyn Security>> {
        self.security.as_ref()
    }

    /// Returns this configuration with the transport's TLS, if a master's URL asks for TLS and the
    /// configuration has no TLS of its own.
    #[must_use]
    pub fn or_security(mut self, make: impl FnOnce() -> Arc<dyn Security>) -> Self {
        if self.security.is_none() && self.masters.iter().any(|master| master.tls().is_some()) {
            self.security = Some(make());
        }
        self
    }

    /// Returns after how long without traffic a `PING` is sent to a master; `None` for never.
    pub fn keep_alive(&self) -> Option<Duration> {
        self.keep_alive
    }

    /// Returns what all clients of this master must agree on, if the restart guard is on.
    pub fn fleet(&self, master: MasterId) -> Option<Fleet> {
        self.fleet_at(self.masters.get(master.index())?)
    }

    /// The same, for one of the masters.
    pub(crate) fn fleet_at(&self, master: &Endpoint) -> Option<Fleet> {
        self.fleet.map(|fleet| Fleet { replicas: master.replicas().map(u16::from), ..fleet })
    }

    /// The longest TTL that any client may have given a key, as far as is known.
    pub(crate) fn longest_ttl(&self) -> Ttl {
        self.fleet.map_or(Ttl::LONGEST, |fleet| fleet.longest_ttl)
    }

    /// The cause for a refused login. If the login comes from a password file or a provider, the
    /// cause is no configuration error, because the next login may be another one.
    pub(crate) fn refused_login(&self, master: &Endpoint, error: ServerError) -> Cause {
        if self.credentials.is_some() || master.password_file().is_some() {
            Cause::LoginRefused(error)
        } else {
            Cause::Server(error)
        }
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

    /// Whether locks may have fencing tokens.
    pub(crate) fn check_fenced(&self) -> Result<(), ConfigError> {
        let loses = |master: &&Endpoint| master.failover() == Some(Failover::MayLoseLocks);
        match self.masters.iter().find(loses) {
            Some(master) => Err(ConfigError::FencedThoughLost { master: master.to_string() }),
            None => Ok(()),
        }
    }

    /// Whether the restart guard accepts this eviction policy.
    pub(crate) fn allows_eviction(&self, policy: EvictionPolicy) -> bool {
        policy == EvictionPolicy::NoEviction || self.allowed_evictions.contains(&policy)
    }
}

/// A TTL must outlast its own drift and the slowest answer that counts, or no grant could ever be
/// used.
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
