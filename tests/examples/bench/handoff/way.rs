//! The ways to get a lock that take turns here, each behind the same two calls.

use std::net::SocketAddr;
use std::time::Duration;

use quorlock_core::front::{Guard, Locker};
use quorlock_core::{Config, ConfigBuilder};
use quorlock_tests::{Direction, FaultProxy, Transport};

use super::raw::Raw;

/// The longest wait of a worker, so that a way which never gets the lock ends.
const WITHIN: Duration = Duration::from_secs(15);
/// The default `request_timeout`. A master that needs longer to answer would have no vote.
const NEAR: Duration = Duration::from_millis(200);

/// Ours on the blocking transport, with the default settings.
pub(crate) const PLAIN: &str = "blocking";
/// The way of fair waiters.
pub(crate) const FAIR: &str = "fair";

/// One way.
pub(crate) struct Way {
    pub(crate) name: &'static str,
    client: Client,
}

enum Client {
    /// The floor, for threads of one process only.
    Raw,
    /// Ours, on a transport, with these changes to the default settings.
    Quorlock { transport: &'static str, settings: fn(ConfigBuilder) -> ConfigBuilder, fair: bool },
    /// rslock on tokio, with its default pauses or with others.
    #[cfg(feature = "peers")]
    Rslock { pauses: Option<Duration> },
}

pub(crate) const WAYS: &[Way] = &[
    Way { name: "raw", client: Client::Raw },
    Way {
        name: PLAIN,
        client: Client::Quorlock { transport: "blocking", settings: |config| config, fair: false },
    },
    Way {
        name: "smol",
        client: Client::Quorlock { transport: "smol", settings: |config| config, fair: false },
    },
    #[cfg(feature = "tokio")]
    Way {
        name: "tokio",
        client: Client::Quorlock { transport: "tokio", settings: |config| config, fair: false },
    },
    Way {
        name: FAIR,
        client: Client::Quorlock { transport: "blocking", settings: |config| config, fair: true },
    },
    Way {
        name: "polling",
        client: Client::Quorlock {
            transport: "blocking",
            settings: |config| config.wake_ups(false),
            fair: false,
        },
    },
    Way {
        name: "polling-fast",
        client: Client::Quorlock {
            transport: "blocking",
            settings: |config| {
                config.wake_ups(false).retry_delay(Duration::from_millis(1)..=Duration::from_millis(5))
            },
            fair: false,
        },
    },
    #[cfg(feature = "peers")]
    Way { name: "rslock", client: Client::Rslock { pauses: None } },
    // rslock pauses for a random number of whole milliseconds below this one, so zero is not
    // allowed.
    #[cfg(feature = "peers")]
    Way { name: "rslock-eager", client: Client::Rslock { pauses: Some(Duration::from_millis(1)) } },
];

impl Way {
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        WAYS.iter().find(|way| way.name == name)
    }

    /// Whether workers of several processes can take turns, and tasks of one thread wait.
    pub(crate) fn is_a_client(&self) -> bool {
        !matches!(self.client, Client::Raw)
    }

    /// Connects to these masters.
    pub(crate) fn open(&self, masters: &[SocketAddr]) -> Opened {
        self.open_with(masters, |config| config)
    }

    /// Connects to these masters over lines of this process with this round trip.
    pub(crate) fn open_far(&self, masters: &[SocketAddr], round_trip: Duration) -> Opened {
        if round_trip.is_zero() {
            return self.open(masters);
        }
        let line = |master: &SocketAddr| {
            let line = FaultProxy::start(*master);
            line.delay(Direction::Both, round_trip / 2);
            line
        };
        let lines: Vec<_> = masters.iter().map(line).collect();
        let addresses: Vec<_> = lines.iter().map(FaultProxy::address).collect();
        let opened = self.open_with(&addresses, |config| config.request_timeout(NEAR.max(round_trip * 4)));
        Opened { _lines: lines, ..opened }
    }

    fn open_with(
        &self,
        masters: &[SocketAddr],
        distance: impl FnOnce(ConfigBuilder) -> ConfigBuilder,
    ) -> Opened {
        let urls = || masters.iter().map(|address| format!("redis://{address}"));
        match &self.client {
            Client::Raw => {
                let locks = Locks::Raw(Raw::open(masters));
                Opened { transport: Transport::named("blocking"), locks, _lines: Vec::new() }
            }
            Client::Quorlock { transport, settings, fair } => {
                let transport = Transport::named(transport);
                let config = distance(settings(Config::builder(urls()))).build().expect("usable settings");
                let locks = Locks::Quorlock(transport.open(config), *fair);
                Opened { transport, locks, _lines: Vec::new() }
            }
            #[cfg(feature = "peers")]
            Client::Rslock { pauses } => {
                let mut manager = rslock::LockManager::new(urls().collect());
                if let Some(pauses) = pauses {
                    // Three attempts for each request are the default of rslock. A waiter then
                    // makes another request.
                    manager.set_retry(3, *pauses);
                }
                let locks = Locks::Rslock(manager);
                Opened { transport: Transport::named("tokio"), locks, _lines: Vec::new() }
            }
        }
    }
}

/// A way with its connections.
pub(crate) struct Opened {
    transport: Transport,
    locks: Locks,
    /// What delays the bytes of a far client.
    _lines: Vec<FaultProxy>,
}

enum Locks {
    Raw(Raw),
    /// Our locker, and whether its requests have a place in one queue of all processes.
    Quorlock(Locker, bool),
    #[cfg(feature = "peers")]
    Rslock(rslock::LockManager),
}

/// A lock that is held.
pub(crate) enum Held {
    Raw {
        resource: String,
        token: u64,
        ttl: Duration,
    },
    Quorlock(Guard),
    #[cfg(feature = "peers")]
    Rslock(rslock::Lock),
}

impl Opened {
    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Our locker, and whether its requests have a place in one queue of all processes.
    pub(crate) fn ours(&self) -> (&Locker, bool) {
        match &self.locks {
            Locks::Quorlock(locker, fair) => (locker, *fair),
            _ => panic!("a way of ours"),
        }
    }

    /// Blocks this thread until it has the lock. Async ways run their futures on it.
    pub(crate) fn lock(&self, resource: &str, ttl: Duration) -> Held {
        match (&self.locks, &self.transport) {
            (Locks::Raw(raw), _) => {
                Held::Raw { resource: resource.to_owned(), token: raw.lock(resource, ttl), ttl }
            }
            (Locks::Quorlock(locker, fair), Transport::Blocking) => {
                let request = locker.lock(resource).ttl(ttl).timeout(WITHIN);
                let request = if *fair { request.fair() } else { request };
                Held::Quorlock(request.wait().expect("a turn in time"))
            }
            _ => self.transport.block_on(self.seek(resource, ttl, WITHIN)).expect("a turn in time"),
        }
    }

    /// Releases it, and blocks this thread until that is done.
    pub(crate) fn release(&self, held: Held) {
        match (held, &self.locks, &self.transport) {
            (Held::Raw { resource, token, ttl }, Locks::Raw(raw), _) => raw.release(&resource, token, ttl),
            // If the machine is too busy to answer the release, the lock is free only when its TTL
            // is over, and the figures show that.
            (Held::Quorlock(guard), _, Transport::Blocking) => drop(guard.release().wait()),
            (held, ..) => self.transport.block_on(self.give_back(held)),
        }
    }

    /// Requests the lock in a task. Returns `None` if the timeout has passed.
    pub(crate) async fn seek(&self, resource: &str, ttl: Duration, timeout: Duration) -> Option<Held> {
        match &self.locks {
            Locks::Raw(_) => None,
            Locks::Quorlock(locker, fair) => {
                let request = locker.lock(resource).ttl(ttl).timeout(timeout);
                let request = if *fair { request.fair() } else { request };
                request.await.ok().map(Held::Quorlock)
            }
            #[cfg(feature = "peers")]
            Locks::Rslock(manager) => {
                // Retries as rslock's own `acquire` does, but not forever.
                let end = std::time::Instant::now() + timeout;
                loop {
                    match manager.lock(resource, ttl).await {
                        Ok(lock) => return Some(Held::Rslock(lock)),
                        Err(_) if std::time::Instant::now() < end => {}
                        Err(_) => return None,
                    }
                }
            }
        }
    }

    /// Releases it, for tasks.
    pub(crate) async fn give_back(&self, held: Held) {
        match held {
            Held::Raw { .. } => {}
            Held::Quorlock(guard) => drop(guard.release().await),
            #[cfg(feature = "peers")]
            Held::Rslock(lock) => lock.release().await,
        }
    }
}
