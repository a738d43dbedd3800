//! Collects the settings of a configuration one by one, and checks them together.

mod bounds;
mod masters;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::{AddressMap, Config, ConfigError};
use crate::endpoint::{Address, Endpoint, EndpointError};
use crate::protocol::{Credentials, EvictionPolicy, Fleet, Provider, Quorum, Resource, Security, Ttl};

/// Collects the settings of a configuration; [`ConfigBuilder::build`] checks them.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct ConfigBuilder {
    masters: Vec<Result<Endpoint, EndpointError>>,
    ttl: Duration,
    timeout: Option<Duration>,
    longest_hold: Option<Duration>,
    request_timeout: Duration,
    connect_timeout: Duration,
    retry_delay: RangeInclusive<Duration>,
    reconnect_delay: RangeInclusive<Duration>,
    max_in_flight_requests: usize,
    max_in_flight_bytes: usize,
    max_locks: usize,
    client_name: Option<String>,
    prefix: String,
    restart_guard: Option<Duration>,
    allowed_evictions: Vec<EvictionPolicy>,
    wake_ups: bool,
    keep_alive: Option<Duration>,
    credentials: Option<Provider>,
    first_alone: bool,
    settles_splits: bool,
    address_map: Option<AddressMap>,
    security: Option<Arc<dyn Security>>,
}

impl ConfigBuilder {
    pub(super) fn new(masters: Vec<Result<Endpoint, EndpointError>>) -> Self {
        Self {
            masters,
            ttl: Duration::from_secs(10),
            timeout: Some(Duration::from_secs(10)),
            longest_hold: Some(Duration::from_secs(3600)),
            request_timeout: Duration::from_millis(200),
            connect_timeout: Duration::from_millis(250),
            retry_delay: Duration::from_millis(50)..=Duration::from_millis(150),
            reconnect_delay: Duration::from_millis(10)..=Duration::from_secs(2),
            max_in_flight_requests: 16 * 1024,
            max_in_flight_bytes: 8 * 1024 * 1024,
            max_locks: 1_000_000,
            client_name: None,
            prefix: String::new(),
            restart_guard: None,
            allowed_evictions: Vec::new(),
            wake_ups: true,
            keep_alive: None,
            credentials: None,
            first_alone: true,
            settles_splits: true,
            address_map: None,
            security: None,
        }
    }

    /// Adds a master that is not given as a URL.
    pub fn master(mut self, master: Endpoint) -> Self {
        self.masters.push(Ok(master));
        self
    }

    /// Sets the TTL of locks that do not name their own. Default: 10 s.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets how long a request waits for a lock if it does not set its own timeout. Default: 10 s.
    ///
    /// `None` waits without a limit, and zero is a single try. More than [`Ttl::MAX`] is refused.
    pub fn timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.timeout = limit.into();
        self
    }

    /// Sets for how long [`Request::renew`](crate::front::Request::renew) renews a lock, from the
    /// beginning of the round that won it. Default: one hour.
    ///
    /// It changes nothing for a request without renewal, and
    /// [`Request::renew_for`](crate::front::Request::renew_for) sets another limit. When renewal
    /// has ended, the lock's validity runs out. So a holder that hangs excludes all other clients
    /// for at most this time plus one TTL. `None` renews the lock as long as the guard exists. Zero
    /// and more than [`Ttl::MAX`] are refused.
    pub fn longest_hold(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.longest_hold = limit.into();
        self
    }

    /// Sets how long a master may take to answer before it counts as silent. Default: 200 ms.
    ///
    /// Choose it well above the round trip and far below the TTL. A round does not wait for it
    /// while the other masters can decide, so a longer timeout costs time only if a majority is
    /// silent.
    ///
    /// The default is for busy hosts. Time in which this process cannot write or read does not
    /// count, but a server that waits for a processor looks like a silent one. We measured three
    /// servers and a client on 2 cores, next to up to 16 busy loops, writers to disk, or shells
    /// that start programs. Of 136,000 locks and releases, 31 took longer than 50 ms, the longest
    /// 143 ms (the median was 0.15 ms or less). A container that has used up its CPU quota is
    /// stopped for up to 100 ms, the period of the quota on Linux. With less than 200 ms, a release
    /// on such a host can end as [`Unknown`](crate::front::ReleaseError::Unknown) although nothing
    /// is wrong.
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.request_timeout = limit;
        self
    }

    /// Sets how long a round waits for a connection that is being opened. Default: 250 ms.
    ///
    /// A round does not wait for a master that is known to be down. If a master's name has several
    /// addresses, the next one is tried after a quarter of this time, in parallel with the earlier
    /// ones.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Sets the bounds of the random pause before another attempt when masters do not notify this
    /// client. Default: 50 to 150 ms.
    ///
    /// The upper bound also limits how long a process that has just had a lock lets other clients
    /// go first. The bounds may be equal, but not zero.
    ///
    /// "The client retries after a random delay in order to try to desynchronize multiple clients"
    /// (Redis distributed-locks page, "Retry on failure").
    pub fn retry_delay(mut self, bounds: RangeInclusive<Duration>) -> Self {
        self.retry_delay = bounds;
        self
    }

    /// Sets the shortest and the longest pause before a lost connection is opened again. Default:
    /// 10 ms to 2 s.
    ///
    /// Each failure doubles the pause, and up to a quarter is added at random.
    pub fn reconnect_delay(mut self, bounds: RangeInclusive<Duration>) -> Self {
        self.reconnect_delay = bounds;
        self
    }

    /// Sets how many requests may be in flight to one master. Default: 16,384.
    pub fn max_in_flight_requests(mut self, limit: usize) -> Self {
        self.max_in_flight_requests = limit;
        self
    }

    /// Sets how many bytes of requests may be in flight to one master. Default: 8 MiB.
    pub fn max_in_flight_bytes(mut self, limit: usize) -> Self {
        self.max_in_flight_bytes = limit;
        self
    }

    /// Sets how many locks may be requested and held at once. Default: one million.
    pub fn max_locks(mut self, limit: usize) -> Self {
        self.max_locks = limit;
        self
    }

    /// Sets the name of the connections in the masters' `CLIENT LIST`. Default: none.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = Some(name.into());
        self
    }

    /// Sets what the keys on the masters begin with, before the name of a resource. Default:
    /// nothing.
    ///
    /// It keeps the locks of applications that share masters apart: with the prefix `app:`, the
    /// resource `job` is the key `app:job`. Guards, errors, spans and events show `job`. A prefix
    /// has at most 1,024 bytes.
    ///
    /// All clients of a resource must use the same prefix: clients with different prefixes do not
    /// exclude each other. Fencing tokens belong to the key ([`Resource::counter_key`]), so a new
    /// prefix restarts them. The marker of the restart guard ([`Fleet::MARKER`]) has no prefix: a
    /// server that loses its data loses the keys of all applications. So all clients of a server
    /// must agree on the longest TTL and the number of masters, whatever their prefix.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Turns the restart guard on: a master that has lost its data does not vote before every lock
    /// that it may have forgotten has expired. Default: off.
    ///
    /// Such a master does not vote for `longest_ttl` after its return. This is the longest TTL that
    /// any client of these masters gives a lock. Without the guard, two clients may hold one lock
    /// after a master has come back empty (Redis distributed-locks page, "Performance, crash
    /// recovery and fsync": "delayed restarts").
    ///
    /// A master counts as new whenever it has a new replication id: after a restart, after a flush
    /// of the locks' database, after a promotion, when it gets its first replica, and when its last
    /// one has been away for `repl-backlog-ttl`. The guard does not notice single evicted keys, nor
    /// an old snapshot that was restored with its marker. It does not cover a split brain, where a
    /// replica is promoted while the old primary is still running: then both vote, unless the URL
    /// says how many replicas the master has ([`Endpoint::with_replicas`]). If the URL does not, a
    /// master with replicas has the warning [`Warning::UndeclaredReplicas`](crate::Warning).
    ///
    /// Every client of these masters must use the guard with the same TTL and the same number of
    /// masters. A master whose marker ([`Fleet::MARKER`]) says otherwise is a configuration error,
    /// and no lock is granted. One client without the guard voids it for all. That client has the
    /// warning [`Warning::NoRestartGuard`](crate::Warning), and the others do not notice it.
    ///
    /// Masters that are new to the guard do not vote for `longest_ttl` after the first connection
    /// either, unless [`Locker::bootstrap`](crate::front::Locker::bootstrap) declares that nothing
    /// can be locked yet.
    ///
    /// To change the TTL or the masters: end all clients, wait for the longest TTL that they used,
    /// delete the marker on every master, and start the clients with the new settings. They wait
    /// for the new TTL again.
    pub fn restart_guard(mut self, longest_ttl: Duration) -> Self {
        self.restart_guard = Some(longest_ttl);
        self
    }

    /// Accepts masters with this eviction policy although the restart guard is on. The guard does
    /// not notice keys that are evicted.
    pub fn allow_eviction(mut self, policy: EvictionPolicy) -> Self {
        self.allowed_evictions.push(policy);
        self
    }

    /// Sets whether masters notify this client when a lock that it waits for becomes free. Default:
    /// yes.
    ///
    /// This uses `CLIENT TRACKING` (Redis 6 and later, Valkey) on the existing connection, and only
    /// while a request waits. Without it, or with servers or proxies that do not support it, a
    /// waiter retries after the pause of [`Self::retry_delay`]. Turn it off behind a proxy that
    /// accepts the command but forwards no notifications: there a waiter waits until the key
    /// expires.
    pub fn wake_ups(mut self, wanted: bool) -> Self {
        self.wake_ups = wanted;
        self
    }

    /// Sets after how long without traffic a `PING` is sent to a master, so that nothing on the way
    /// closes the connection as idle. Default: never.
    ///
    /// It is for load balancers and managed services that close idle connections, or forget them:
    /// on a forgotten connection, the next request takes `request_timeout`. Choose a shorter time
    /// than their limit, such as four minutes for a limit of five. A master that does not answer is
    /// reconnected, as after any request. The answer to a `PING` is not a vote.
    ///
    /// TCP connections also use the system's keep-alive, after 60 s, which costs nothing and
    /// detects servers that are gone. Zero and more than [`Ttl::MAX`] are refused.
    pub fn keep_alive(mut self, quiet: Duration) -> Self {
        self.keep_alive = Some(quiet);
        self
    }

    /// Sets the provider of the user and the password for each login, in place of the URLs: for
    /// credentials that change. Default: those of the URLs.
    ///
    /// For a password in a file, `?password-file=` in the URL is simpler
    /// ([`Endpoint::with_password_file`]).
    pub fn credentials(mut self, credentials: impl Credentials) -> Self {
        self.credentials = Some(Provider(Arc::new(credentials)));
        self
    }

    /// Sets whether a retry asks one master before the others. This keeps clients that try at the
    /// same time from splitting the votes. Default: yes. It can be turned off to measure its
    /// effect.
    #[cfg(feature = "internals")]
    pub(crate) fn ask_one_first(mut self, wanted: bool) -> Self {
        self.first_alone = wanted;
        self
    }

    /// Sets whether a single try is repeated if clients that asked at the same instant split the
    /// votes. Default: yes. It can be turned off to measure its effect, and for an exhaustive
    /// search that ends with the first round.
    #[cfg(feature = "internals")]
    pub(crate) fn settle_splits(mut self, wanted: bool) -> Self {
        self.settles_splits = wanted;
        self
    }

    /// Sets how connections are encrypted to masters whose URLs ask for TLS (`rediss://`): usually
    /// a `Tls` of `quorlock-tls`, which transports re-export with their feature `tls`. Default: the
    /// URL's parameters and the system's settings.
    pub fn tls(mut self, security: impl Security) -> Self {
        self.security = Some(Arc::new(security));
        self
    }

    /// Sets a map from the addresses that servers report to those that are reachable from here.
    /// Sentinels and cluster nodes report addresses as they know them; behind NAT, or in
    /// containers, the addresses outside differ. Default: the reported address.
    ///
    /// The map is called before each connection is opened, also to the addresses of URLs, on the
    /// thread that drives the sockets. It must not block, and should return an address that it does
    /// not know unchanged. If it panics, the connection goes to the reported address.
    pub fn address_map(mut self, map: impl Fn(&Address) -> Address + Send + Sync + 'static) -> Self {
        self.address_map = Some(AddressMap(Arc::new(map)));
        self
    }

    /// Checks all settings.
    ///
    /// # Errors
    /// Settings that cannot work: no master, more than 64 masters, one master twice, an unusable
    /// URL, a user without a password or another source of logins, a duration of zero (except
    /// [`Self::timeout`], where it means a single try) or of more than [`Ttl::MAX`], a TTL that
    /// leaves no validity, replicas without the restart guard, masters behind Sentinels or in a
    /// cluster whose failovers no setting covers, and a prefix with which a key could collide with
    /// one that Quorlock needs itself.
    pub fn build(mut self) -> Result<Config, ConfigError> {
        let masters = self.take_masters()?;
        let Some(quorum) = Quorum::of(masters.len()) else {
            return Err(if masters.is_empty() {
                ConfigError::NoMasters
            } else {
                ConfigError::TooManyMasters { masters: masters.len() }
            });
        };
        self.check_bounds()?;
        // A Redis client name must not contain a space or a line break (CLIENT SETNAME).
        if let Some(name) = &self.client_name {
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(ConfigError::UnusableClientName);
            }
        }
        if self.prefix.len() > Resource::MAX_PREFIX_BYTES {
            return Err(ConfigError::OversizedPrefix { bytes: self.prefix.len() });
        }
        if Resource::is_prefix_reserved(&self.prefix) {
            return Err(ConfigError::ReservedPrefix);
        }
        let ttl = Ttl::new(self.ttl)?;
        let fleet = match self.restart_guard {
            Some(longest_ttl) => {
                let masters = u32::try_from(quorum.masters()).unwrap_or(u32::MAX);
                Some(Fleet { longest_ttl: Ttl::new(longest_ttl)?, masters, replicas: None })
            }
            None => match masters.iter().find(|master| master.replicas().is_some()) {
                Some(master) => return Err(ConfigError::ReplicasWithoutGuard { master: master.to_string() }),
                None => None,
            },
        };
        if let Some(master) =
            masters.iter().find(|master| masters::loses_locks_unsaid(master, fleet.is_some()))
        {
            return Err(ConfigError::FailoverUnguarded { master: master.to_string() });
        }
        let config = Config {
            masters: masters.into(),
            quorum,
            ttl,
            timeout: self.timeout,
            longest_hold: self.longest_hold.unwrap_or(Duration::MAX),
            request_timeout: self.request_timeout,
            connect_timeout: self.connect_timeout,
            retry_delay: self.retry_delay,
            reconnect_delay: self.reconnect_delay,
            max_in_flight_requests: self.max_in_flight_requests,
            max_in_flight_bytes: self.max_in_flight_bytes,
            max_locks: self.max_locks,
            client_name: self.client_name,
            prefix: self.prefix.into(),
            fleet,
            allowed_evictions: self.allowed_evictions,
            wake_ups: self.wake_ups,
            keep_alive: self.keep_alive,
            credentials: self.credentials,
            first_alone: self.first_alone,
            settles_splits: self.settles_splits,
            security: self.security,
            address_map: self.address_map,
        };
        config.check_ttl(ttl)?;
        Ok(config)
    }
}
