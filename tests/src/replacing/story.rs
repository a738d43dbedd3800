//! Short scenes, one for each order of steps.

use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use quorlock_core::front::Locker;
use quorlock_core::{AcquireError, Config, Fleet};

use crate::chaos::checker::Violation;
use crate::eventually::eventually;
use crate::failover::{Account, Holding};
use crate::fleet::Fleet as Servers;
use crate::transport::Transport;

/// The longest TTL of all clients, and that of their locks. A wrong order has two holders only
/// until the first lock runs out, so it is far longer than the steps until the second one.
const LONGEST: Duration = Duration::from_secs(3);
/// A bit more than a master's quarantine, once it has begun.
const QUARANTINE: Duration = Duration::from_millis(3_100);
/// Far longer than anything takes if it works, even on a busy machine.
const SOON: Duration = Duration::from_secs(20);
/// The lock for which the clients contend.
const JOB: &str = "job";

/// An order of steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Story {
    /// The right one, twice: the old master is off, the longest TTL passes, then one successor is
    /// named. Clients with all three lists go on.
    Right,
    /// A trial client has named the successor while the old master still voted.
    TriedBefore,
    /// The same, but the successor's marker is deleted once the old master is off.
    BegunAnew,
    /// The old master is started again, for clients that still have it.
    OldReturns,
    /// Two clients name different successors of one dead master, each in the right order.
    TwoSuccessors,
    /// All masters lose their data while a lock is held, and are bootstrapped.
    Bootstrapped,
}

/// What a story showed.
#[derive(Debug)]
pub struct Told {
    /// For how long two clients held the lock.
    pub overlap: Duration,
    /// What the checker says of the records.
    pub violations: Vec<Violation>,
}

impl Story {
    /// All orders.
    pub const ALL: &[Self] = &[
        Self::Right,
        Self::TriedBefore,
        Self::BegunAnew,
        Self::OldReturns,
        Self::TwoSuccessors,
        Self::Bootstrapped,
    ];

    /// Whether no lock has two holders.
    pub fn is_right(self) -> bool {
        matches!(self, Self::Right | Self::BegunAnew)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Right => "the right order",
            Self::TriedBefore => "the successor was tried before the old master was off",
            Self::BegunAnew => "the same, and its quarantine began anew",
            Self::OldReturns => "the old master comes back",
            Self::TwoSuccessors => "two successors of one master",
            Self::Bootstrapped => "a bootstrap after a loss of all masters",
        }
    }

    /// Tells the story on this transport, with the history in this file.
    ///
    /// # Errors
    /// When the history cannot be written or read.
    pub fn tell(self, transport: &Transport, history: &Path) -> io::Result<Told> {
        let scene = Scene { servers: Servers::start(5, |options, _| options), transport };
        let account = Account::open(history)?;
        let clients = Clients { account: &account };
        let overlap = match self {
            Self::Right => scene.right(&clients),
            Self::TriedBefore => scene.tried_before(&clients),
            Self::BegunAnew => scene.begun_anew(&clients),
            Self::OldReturns => scene.old_returns(&clients),
            Self::TwoSuccessors => scene.two_successors(&clients),
            Self::Bootstrapped => scene.bootstrapped(&clients),
        };
        Ok(Told { overlap, violations: account.violations()? })
    }
}

/// Three masters, 0 to 2, and two spare ones.
struct Scene<'a> {
    servers: Servers,
    transport: &'a Transport,
}

/// The list of clients before anything is replaced.
const OLD: [usize; 3] = [0, 1, 2];

impl Scene<'_> {
    fn right(&self, clients: &Clients<'_>) -> Duration {
        let old = self.bootstrapped_clients();
        let first = self.lock_without(2, || clients.lock("old", &old));
        self.servers[1].kill();
        sleep(LONGEST);
        assert!(!first.look(), "a lock that is not renewed outlives its TTL");

        // A lock is granted although the successor does not vote yet.
        let new = self.open([0, 3, 2]);
        let held = clients.lock("new", &new);
        clients.assert_refused("old", &old);
        drop(held);
        self.await_vote(3, &new);
        let held = self.lock_without(0, || clients.lock("new", &new));
        clients.assert_refused("old", &old);
        drop(held);
        self.await_free();
        let held = clients.lock("old", &old);
        clients.assert_refused("new", &new);
        drop(held);
        self.await_free();

        // Once more, with clients of the first list still there.
        let held = self.lock_without(0, || clients.lock("new", &new));
        self.servers[2].kill();
        sleep(LONGEST);
        assert!(!held.look(), "a lock that is not renewed outlives its TTL");
        let newest = self.open([0, 3, 4]);
        let held = clients.lock("newest", &newest);
        clients.assert_refused("new", &new);
        clients.assert_refused("old", &old);
        drop(held);
        self.await_vote(4, &newest);
        let _held = self.lock_without(0, || clients.lock("newest", &newest));
        clients.assert_refused("new", &new);
        clients.assert_refused("old", &old);
        Duration::ZERO
    }

    fn tried_before(&self, clients: &Clients<'_>) -> Duration {
        let old = self.bootstrapped_clients();
        let trial = self.open([0, 3, 2]);
        self.await_vote(3, &trial);
        drop(trial);
        let first = self.lock_without(2, || clients.lock("old", &old));
        self.servers[1].kill();
        let second = clients.lock("new", &self.open([0, 3, 2]));
        together(&first, &second)
    }

    fn begun_anew(&self, clients: &Clients<'_>) -> Duration {
        let old = self.bootstrapped_clients();
        let trial = self.open([0, 3, 2]);
        self.await_vote(3, &trial);
        drop(trial);
        let first = self.lock_without(2, || clients.lock("old", &old));
        self.servers[1].kill();
        assert!(self.servers[3].del(Fleet::MARKER), "the successor has a marker");
        let new = self.open([0, 3, 2]);
        // It is granted once the first lock has run out.
        let second = loop {
            if let Some(held) = clients.try_lock("new", &new) {
                break held;
            }
        };
        together(&first, &second)
    }

    fn old_returns(&self, clients: &Clients<'_>) -> Duration {
        let old = self.bootstrapped_clients();
        self.servers[1].kill();
        sleep(LONGEST);
        let new = self.open([0, 3, 2]);
        self.await_vote(3, &new);
        self.servers[1].restart();
        self.await_vote(1, &old);
        let first = self.lock_without(0, || clients.lock("new", &new));
        let second = clients.lock("old", &old);
        together(&first, &second)
    }

    fn two_successors(&self, clients: &Clients<'_>) -> Duration {
        drop(self.bootstrapped_clients());
        self.servers[1].kill();
        sleep(LONGEST);
        let [one, other] = [[0, 3, 2], [0, 4, 2]].map(|list| self.open(list));
        self.await_vote(3, &one);
        self.await_vote(4, &other);
        let first = self.lock_without(2, || clients.lock("one", &one));
        let second = clients.lock("other", &other);
        together(&first, &second)
    }

    fn bootstrapped(&self, clients: &Clients<'_>) -> Duration {
        let before = self.bootstrapped_clients();
        let first = clients.lock("before", &before);
        for place in OLD {
            self.servers[place].restart();
        }
        let after = self.bootstrapped_clients();
        let second = clients.lock("after", &after);
        together(&first, &second)
    }

    fn open(&self, list: [usize; 3]) -> Locker {
        let urls = list.map(|place| self.servers[place].url());
        let config = Config::builder(urls).restart_guard(LONGEST).ttl(LONGEST).timeout(SOON);
        // A master that comes back is found at once.
        let config = config.reconnect_delay(Duration::from_millis(10)..=Duration::from_millis(50));
        self.transport.open(config.build().expect("the configuration is right"))
    }

    /// Clients of the first list, whose masters vote.
    fn bootstrapped_clients(&self) -> Locker {
        let clients = self.open(OLD);
        eventually(SOON, "the masters are bootstrapped", || clients.bootstrap().wait().is_ok());
        clients
    }

    /// Makes a client ask a master, and waits for the end of the master's quarantine.
    fn await_vote(&self, place: usize, client: &Locker) {
        let asked = || {
            // The quorum may be complete before this master has been asked.
            let granted = client.lock("trial").wait().expect("a quorum of the others votes");
            granted.release().wait().expect("they still vote");
            self.servers[place].exists(Fleet::MARKER)
        };
        eventually(SOON, "the master has a marker", asked);
        sleep(QUARANTINE);
    }

    /// Takes the lock without the vote of this master, which has another one's key meanwhile.
    fn lock_without<T>(&self, place: usize, take: impl FnOnce() -> T) -> T {
        let server = &self.servers[place];
        eventually(SOON, "the master has no key", || server.set_nx(JOB, "of another client"));
        let taken = take();
        server.del(JOB);
        taken
    }

    /// Waits until the lock is free on all masters that run.
    fn await_free(&self) {
        let running = || self.servers.iter().filter(|server| server.is_running());
        eventually(SOON, "the lock is free", || running().all(|server| !server.exists(JOB)));
    }
}

/// The clients of a story, whose holders are recorded.
struct Clients<'a> {
    account: &'a Account,
}

impl<'a> Clients<'a> {
    fn lock(&self, client: &str, locker: &Locker) -> Holding<'a> {
        let held = self.account.seek(client, JOB, LONGEST, locker.lock(JOB));
        held.unwrap_or_else(|error| panic!("{client} gets the lock: {error}"))
    }

    /// The lock, if it is granted at once.
    fn try_lock(&self, client: &str, locker: &Locker) -> Option<Holding<'a>> {
        match self.account.seek(client, JOB, LONGEST, locker.try_lock(JOB)) {
            Ok(held) => Some(held),
            Err(
                AcquireError::HeldByAnother(_) | AcquireError::NoQuorum(_) | AcquireError::Quarantined(_),
            ) => None,
            Err(error) => panic!("{client}: {error}"),
        }
    }

    fn assert_refused(&self, client: &str, locker: &Locker) {
        assert!(self.try_lock(client, locker).is_none(), "{client} got a lock that another client holds");
    }
}

/// For how long both hold the lock.
fn together(first: &Holding<'_>, second: &Holding<'_>) -> Duration {
    let began = Instant::now();
    let mut overlap = Duration::ZERO;
    while second.look() && first.look() {
        overlap = began.elapsed();
        sleep(Duration::from_millis(5));
    }
    overlap
}
