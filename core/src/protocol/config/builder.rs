//! The settings one by one, and the check of them all.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Config, ConfigError};
use crate::endpoint::{Endpoint, EndpointError};
use crate::protocol::{EvictionPolicy, Fleet, Quorum, Resource, Ttl};

/// Collects settings and checks them all in [`ConfigBuilder::build`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct ConfigBuilder {
    masters: Vec<Result<Endpoint, EndpointError>>,
    ttl: Duration,
    within: Option<Duration>,
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
    first_alone: bool,
    settles_splits: bool,
}

impl ConfigBuilder {
    pub(super) fn new(masters: Vec<Result<Endpoint, EndpointError>>) -> Self {
        Self {
            masters,
            ttl: Duration::from_secs(10),
            within: Some(Duration::from_secs(10)),
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
            first_alone: true,
            settles_splits: true,
        }
    }

    /// Adds a master that is not given as a URL.
    pub fn master(mut self, master: Endpoint) -> Self {
        self.masters.push(Ok(master));
        self
    }

    /// The TTL of locks that do not name their own; 10 s unless set.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How long a request waits for a lock unless it says so itself; 10 s unless set.
    ///
    /// `None` is for as long as it takes, and zero is one try. More than [`Ttl::MAX`] is refused.
    pub fn within(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.within = limit.into();
        self
    }

    /// How long after the grant renewal goes on for locks that are renewed without a bound of their own; one hour unless set.
    ///
    /// A holder that hangs keeps everybody else out for so long at most, plus one TTL. `None` is for as long as the guard exists.
    /// Zero and more than [`Ttl::MAX`] are refused: a lock that is not to be renewed is asked for without renewal.
    pub fn longest_hold(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.longest_hold = limit.into();
        self
    }

    /// How long a master may take to answer before it is counted as silent; 200 ms unless set.
    ///
    /// It should be well above the round trip and far below the TTL. It is never waited for while the other masters can decide, so a longer
    /// one costs only where a majority is silent.
    ///
    /// The default is for hosts that are busy. Time in which this process does not get to write or to read is not counted, but a server that
    /// waits for a processor looks like a silent one. Three servers and a client on 2 cores beside up to 16 busy loops, writers to disk, or shells that start
    /// one program after the other: 31 of 136,000 locks and releases took longer than 50 ms, the longest 143 ms (median 0.15 ms or less).
    /// A container that has used up its CPU quota is stopped for up to 100 ms, the period of the quota on Linux. Below 200 ms such a host makes
    /// a release end as [`Unknown`](crate::front::ReleaseError::Unknown) although nothing is wrong.
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.request_timeout = limit;
        self
    }

    /// How long a round waits for a connection that is being opened; 250 ms unless set. A master that is known to be down is not waited for.
    ///
    /// If a master's name has several addresses, the next one is tried beside those that take long after a quarter of this time.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// The bounds of the random pause before another attempt where no master tells when to make it; 50 to 150 ms unless set.
    ///
    /// The longest is also the longest time for which a process that has just had a lock lets others go first.
    ///
    /// "The client retries after a random delay in order to try to desynchronize multiple clients" (Redis distributed-locks page, "Retry
    /// on failure"). The bounds may be equal, but not zero.
    pub fn retry_delay(mut self, bounds: RangeInclusive<Duration>) -> Self {
        self.retry_delay = bounds;
        self
    }

    /// The shortest and the longest pause before a lost connection is opened again; 10 ms to 2 s unless set. Each
    /// failure doubles it, and up to a quarter is added at random.
    pub fn reconnect_delay(mut self, bounds: RangeInclusive<Duration>) -> Self {
        self.reconnect_delay = bounds;
        self
    }

    /// How many requests may be on their way to one master; 16,384 unless set.
    pub fn max_in_flight_requests(mut self, limit: usize) -> Self {
        self.max_in_flight_requests = limit;
        self
    }

    /// How many bytes of requests may be on their way to one master; 8 MiB unless set.
    pub fn max_in_flight_bytes(mut self, limit: usize) -> Self {
        self.max_in_flight_bytes = limit;
        self
    }

    /// How many locks may be sought and held at once; a million unless set.
    pub fn max_locks(mut self, limit: usize) -> Self {
        self.max_locks = limit;
        self
    }

    /// The name under which the connections stand in the masters' `CLIENT LIST`; none unless set.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = Some(name.into());
        self
    }

    /// What the keys on the masters begin with, before the name of a resource; nothing unless set.
    ///
    /// Applications that share masters keep their locks apart with it: with the prefix `app:`, the resource `job` is the key `app:job`.
    /// Guards, errors, spans and events show `job`. At most 1,024 bytes.
    ///
    /// All clients of a resource must use the same prefix: clients with different prefixes do not exclude each other. Fencing numbers belong to the
    /// key, so that each prefix has its own ([`Resource::counter_key`]), and a new prefix starts them again. The marker of the restart guard
    /// ([`Fleet::MARKER`]) has no prefix: a server that loses its data loses the keys of all applications, and its clients must agree on the
    /// longest TTL and the number of masters whatever their prefix.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Keeps masters that have lost their data from voting until every lock that they may have forgotten has run out:
    /// `longest_ttl` after their return, which is the longest TTL that any client of these masters gives a lock.
    ///
    /// Without it two clients may hold one lock after a master has come back empty (Redis distributed-locks page, "Performance, crash
    /// recovery and fsync": "delayed restarts"). A master counts as new after a restart, a flush of the locks' database, and a promotion, when it gets its first
    /// replica, and when its last one has been away for `repl-backlog-ttl`: each gives it a new replication id. It does not notice single evicted keys, nor an old snapshot that was put back with its marker.
    /// It does not cover a split brain, a promotion while the old primary goes on: both vote then. Replicas are [`Warning::UndeclaredReplicas`](crate::Warning).
    ///
    /// Every client of these masters must use it with the same TTL and the same number of masters; a master whose marker
    /// ([`Fleet::MARKER`]) says otherwise is a configuration error, and then nobody is granted anything. Masters that are new to
    /// it do not vote for `longest_ttl` after the first connection either, unless they are told that nothing can be locked yet
    /// ([`Locker::bootstrap`](crate::front::Locker::bootstrap)).
    ///
    /// To change the TTL or the masters: end all clients, wait for the longest TTL that they used, delete the marker on every master, start
    /// the clients with what is new. They wait for the new TTL once more.
    pub fn restart_guard(mut self, longest_ttl: Duration) -> Self {
        self.restart_guard = Some(longest_ttl);
        self
    }

    /// Takes masters that may remove keys in this way when their memory is full, although the restart guard is on. It does not notice such a loss.
    pub fn allow_eviction(mut self, policy: EvictionPolicy) -> Self {
        self.allowed_evictions.push(policy);
        self
    }

    /// Whether masters are asked to say when a lock that is waited for becomes free; yes unless set.
    ///
    /// That is `CLIENT TRACKING` (Redis 6 and later, Valkey), on the connection that is there already, only while somebody waits. Without it, and
    /// with servers or proxies that do not do it, a waiter asks again after the pause of [`Self::retry_delay`]. Behind a proxy that accepts the command and
    /// then tells nothing it waits until the key's life is over: switch it off there.
    pub fn wake_ups(mut self, wanted: bool) -> Self {
        self.wake_ups = wanted;
        self
    }

    /// Whether a further attempt asks one master before all others, which is what keeps clients that try at the same time from splitting
    /// the votes; yes unless set. For measuring what it does.
    #[cfg(feature = "internals")]
    pub(crate) fn ask_one_first(mut self, wanted: bool) -> Self {
        self.first_alone = wanted;
        self
    }

    /// Whether a single try whose votes were split among clients that asked at the same instant is made again; yes unless set. For measuring
    /// what it does, and for searches that end with the first round.
    #[cfg(feature = "internals")]
    pub(crate) fn settle_splits(mut self, wanted: bool) -> Self {
        self.settles_splits = wanted;
        self
    }

    /// Checks everything.
    ///
    /// # Errors
    /// Whatever could not work or would mislead: no master, more than 64, one master twice, an unusable URL, a span
    /// of zero (except [`Self::within`], where it is one try) or of more than [`Ttl::MAX`], a TTL that leaves no validity.
    pub fn build(self) -> Result<Config, ConfigError> {
        let named = self.masters.len();
        let numbered = (1..).zip(self.masters);
        let masters = numbered
            .map(|(place, master)| {
                master.map_err(|error| ConfigError::Endpoint { place, masters: named, error })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let Some(quorum) = Quorum::of(masters.len()) else {
            return Err(if masters.is_empty() {
                ConfigError::NoMasters
            } else {
                ConfigError::TooManyMasters { masters: masters.len() }
            });
        };
        for (place, master) in masters.iter().enumerate() {
            if masters.iter().take(place).any(|earlier| earlier.same_server(master)) {
                return Err(ConfigError::SameMasterTwice { master: master.to_string() });
            }
        }
        for (setting, span) in [
            ("request_timeout", self.request_timeout),
            ("connect_timeout", self.connect_timeout),
            ("retry_delay", *self.retry_delay.start()),
            ("reconnect_delay", *self.reconnect_delay.start()),
            // Without a value these two are not zero.
            ("longest_hold", self.longest_hold.unwrap_or(Ttl::MAX)),
            ("restart_guard", self.restart_guard.unwrap_or(Ttl::MAX)),
        ] {
            if span.is_zero() {
                return Err(ConfigError::ZeroSpan { setting });
            }
        }
        for (setting, span) in [
            ("request_timeout", self.request_timeout),
            ("connect_timeout", self.connect_timeout),
            ("retry_delay", *self.retry_delay.end()),
            ("reconnect_delay", *self.reconnect_delay.end()),
            ("restart_guard", self.restart_guard.unwrap_or_default()),
        ] {
            if span > Ttl::MAX {
                return Err(ConfigError::EndlessSpan { setting, span });
            }
        }
        for (setting, limit) in [("within", self.within), ("longest_hold", self.longest_hold)] {
            if let Some(limit) = limit.filter(|limit| *limit > Ttl::MAX) {
                return Err(ConfigError::EndlessLimit { setting, limit });
            }
        }
        for (setting, bounds) in
            [("retry_delay", &self.retry_delay), ("reconnect_delay", &self.reconnect_delay)]
        {
            if bounds.is_empty() {
                return Err(ConfigError::ReversedBounds { setting });
            }
        }
        for (setting, limit) in [
            ("max_in_flight_requests", self.max_in_flight_requests),
            ("max_in_flight_bytes", self.max_in_flight_bytes),
            ("max_locks", self.max_locks),
        ] {
            if limit == 0 {
                return Err(ConfigError::ZeroLimit { setting });
            }
        }
        // A Redis client name may hold no space and no line break (CLIENT SETNAME).
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
                Some(Fleet { longest_ttl: Ttl::new(longest_ttl)?, masters })
            }
            None => None,
        };
        let config = Config {
            masters: masters.into(),
            quorum,
            ttl,
            within: self.within,
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
            first_alone: self.first_alone,
            settles_splits: self.settles_splits,
        };
        config.check_ttl(ttl)?;
        Ok(config)
    }
}
