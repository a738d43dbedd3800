//! A failover that the old primary does not see: clients that stay with it, and others that follow
//! to the new one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use quorlock_core::Config;
use quorlock_core::front::Locker;
use quorlock_tests::chaos::checker::Rule;
use quorlock_tests::failover::{Account, Trust};
use quorlock_tests::{FaultProxy, RedisServer, ServerOptions, Transport, eventually};

/// Far longer than anything takes if it works, even on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);
/// The longest TTL of all clients, and so the quarantine.
pub(crate) const LONGEST: Duration = Duration::from_millis(1_500);
/// How long a request may wait at a stopped server. For a `WAIT`, a server may take 100 ms longer
/// than its part of this time.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(1_200);
/// How long clients of the old primary send requests to it.
const ASKED_FOR: Duration = Duration::from_millis(300);
const REPLICAS: usize = 2;
/// The most repetitions of a story, because two holders cannot be made to happen reliably.
const ROUNDS: usize = 20;

/// How many of these tests run at once. With more, clients on two cores are too late to show the
/// failures of the restart guard alone. With fewer, the tests take longer.
static TURNS: (Mutex<usize>, Condvar) = (Mutex::new(3), Condvar::new());

/// One of the tests that run at once, until it is dropped.
pub(crate) struct Turn(());

impl Turn {
    pub(crate) fn wait() -> Self {
        let (free, changed) = &TURNS;
        let free = free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = changed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let (free, changed) = &TURNS;
        *free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        changed.notify_one();
    }
}

/// What keeps the old primary from seeing the failover, and how it continues afterwards.
pub(crate) trait Story {
    /// Keeps the old primary from seeing anything. When this returns, an acknowledgement of each
    /// replica is on its way.
    fn blind(&mut self, scene: &Scene);

    /// Lets the old primary see again. `ask` makes its clients request the lock from then on.
    fn see(&mut self, scene: &Scene, ask: &mut dyn FnMut());
}

/// A primary with two replicas, and another server, which first is a second replica and then
/// replaces the old primary.
pub(crate) struct Scene {
    pub(crate) primary: RedisServer,
    promoted: RedisServer,
    other: RedisServer,
    _stand_in: RedisServer,
    /// The proxies between each replica and the primary.
    pub(crate) links: [FaultProxy; REPLICAS],
    /// The proxies that clients know. New connections lead to the present primary.
    names: Vec<(Trust, FaultProxy)>,
}

impl Scene {
    fn start() -> Self {
        let primary = ServerOptions::new().start();
        let links = [(); REPLICAS].map(|()| FaultProxy::start(primary.address()));
        let replica = |of: u16| ServerOptions::new().config(&format!("replicaof 127.0.0.1 {of}")).start();
        let [promoted, other] = [0, 1].map(|place| replica(links[place].port()));
        let stand_in = replica(promoted.port());
        let name = |trust: &Trust| {
            let proxy = FaultProxy::start(primary.address());
            trust.prepare(&proxy);
            (*trust, proxy)
        };
        let names = Trust::of_one_master().iter().map(name).collect();
        let scene = Self { primary, promoted, other, _stand_in: stand_in, links, names };
        is_complete(&scene.primary);
        scene
    }

    /// Opens a locker for each kind of trust.
    fn open(&self, transport: &Transport) -> Vec<(Trust, Locker)> {
        let open = |(trust, name): &(Trust, FaultProxy)| {
            let config = Config::builder([trust.url(name.address(), REPLICAS)]).restart_guard(LONGEST);
            let config = config.ttl(LONGEST).request_timeout(REQUEST_TIMEOUT).timeout(SOON);
            (*trust, transport.open(config.connect_timeout(SOON).build().unwrap()))
        };
        self.names.iter().map(open).collect()
    }

    fn fail_over(&self) {
        self.promoted.become_master();
        self.other.become_replica_of(&self.promoted);
        is_complete(&self.promoted);
        for (_, name) in &self.names {
            name.set_upstream(self.promoted.address());
        }
    }
}

/// Waits until all replicas follow.
fn is_complete(primary: &RedisServer) {
    let mut client = primary.client().unwrap();
    eventually(SOON, "the replicas follow", || {
        client.command(&["SET", "probe", "x"]);
        let confirmed = client.command(&["WAIT", "2", "50"]).int() == Some(2);
        confirmed && primary.replicas() == REPLICAS
    });
}

/// Repeats the story until it has shown two holders of one lock for each kind of trust except one,
/// for which there may never be two.
pub(crate) fn tell(mut story: impl Story) {
    let _turn = Turn::wait();
    let mut seen: BTreeMap<Trust, usize> = Trust::of_one_master().iter().map(|trust| (*trust, 0)).collect();
    for round in 0..ROUNDS {
        let transport = Transport::named(Transport::NAMES[round % Transport::NAMES.len()]);
        for trust in once(&transport, &mut story) {
            *seen.get_mut(&trust).unwrap() += 1;
        }
        eprintln!("after {} rounds two holders were seen in {seen:?}", round + 1);
        assert_eq!(seen[&Trust::Confirmed], 0, "one lock had two holders");
        if seen.iter().all(|(trust, seen)| *trust == Trust::Confirmed || *seen > 0) {
            return;
        }
    }
    panic!("this story shows nothing: {seen:?}");
}

/// Returns the kinds of trust for which two clients held one lock.
fn once(transport: &Transport, story: &mut impl Story) -> Vec<Trust> {
    let scene = Scene::start();
    let directory = tempfile::tempdir().unwrap();
    let account = |trust: &Trust| (*trust, Account::open(&directory.path().join(trust.name())).unwrap());
    let accounts: BTreeMap<Trust, Account> = Trust::of_one_master().iter().map(account).collect();
    let old = scene.open(transport);
    for (_, locker) in &old {
        eventually(SOON, "the primary votes", || locker.bootstrap().wait().is_ok());
        locker.lock("job").wait().unwrap().release().wait().unwrap();
    }

    story.blind(&scene);
    scene.fail_over();

    let (accounts, over) = (&accounts, &AtomicBool::new(false));
    thread::scope(|scope| {
        let (holds, held) = mpsc::channel();
        for (trust, locker) in scene.open(transport) {
            let holds = holds.clone();
            scope.spawn(move || {
                let request = locker.lock("job").renew();
                let holding = accounts[&trust].seek("new", "job", LONGEST, request).unwrap();
                holds.send(()).unwrap();
                while !over.load(Ordering::Relaxed) {
                    assert!(holding.look(), "{trust:?}: the holder at the new primary lost the lock");
                    sleep(Duration::from_millis(1));
                }
            });
        }
        held.iter().take(accounts.len()).count();

        let mut asking = Vec::new();
        story.see(&scene, &mut || {
            for (trust, locker) in &old {
                asking.push(scope.spawn(move || ask(&accounts[trust], locker)));
            }
        });
        for asking in asking {
            asking.join().unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
    let two_held = |account: &Account| {
        let violations = account.violations().unwrap();
        assert!(violations.iter().all(|each| each.rule == Rule::TwoHolders), "{violations:?}");
        !violations.is_empty()
    };
    accounts.iter().filter(|(_, account)| two_held(account)).map(|(trust, _)| *trust).collect()
}

/// A client of the old primary requests the lock until it is granted, and checks it for a moment.
fn ask(account: &Account, locker: &Locker) {
    let end = Instant::now() + ASKED_FOR;
    loop {
        if let Ok(holding) = account.seek("old", "job", LONGEST, locker.try_lock("job")) {
            for _ in 0..20 {
                holding.look();
                sleep(Duration::from_millis(1));
            }
            return;
        }
        if Instant::now() >= end {
            return;
        }
    }
}
