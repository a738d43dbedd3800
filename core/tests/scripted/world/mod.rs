//! Machines, scripted masters and the clock between them, as values.

pub mod master;
mod network;

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

pub use master::{Flow, Master, Reach, wall_clock};
use quorlock_core::{
    Acquire, AcquireError, Config, ConfigBuilder, Entropy, EntropyFailed, Event, ExtensionId, Instant,
    LockId, Machine, MasterId, Resource, Ttl, Wake,
};
use quorlock_sim::Session;

pub const KEY: &str = "invoice:42";

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Repeatable random bytes, until there are no more.
#[derive(Clone, Debug)]
pub struct Seeded {
    state: u64,
    is_empty: Rc<Cell<bool>>,
}

impl Seeded {
    pub fn new(seed: u64) -> Self {
        Self { state: seed, is_empty: Rc::default() }
    }
}

impl Entropy for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        if self.is_empty.get() {
            return Err(EntropyFailed);
        }
        for byte in bytes {
            self.state =
                self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (self.state >> 33).to_le_bytes()[0];
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Asked,
    Stands,
    /// The machine has closed the connection, or has been told that it ended. A server may still
    /// read what was written.
    Gone,
}

#[derive(Clone, Debug)]
struct Link {
    generation: u32,
    stage: Stage,
    session: Session,
    unread: Vec<u8>,
    replies: VecDeque<(Instant, Vec<u8>)>,
}

/// One process with its machine.
#[derive(Clone)]
pub struct Node {
    pub machine: Machine<Seeded>,
    /// Whether it can draw no more tokens.
    pub has_no_entropy: Rc<Cell<bool>>,
    /// All connections to each master, oldest first.
    links: Vec<Vec<Link>>,
    pub events: VecDeque<(Instant, Event)>,
    pub wake: Option<Wake>,
    pub wakes: usize,
    /// Every byte that was written, in order.
    pub written: Vec<u8>,
    /// How often a connection to each master was asked for.
    pub opened: Vec<usize>,
    /// How many writes went to each master.
    pub writes: Vec<usize>,
}

#[derive(Clone)]
pub struct World {
    pub now: Instant,
    pub nodes: Vec<Node>,
    pub masters: Vec<Master>,
    /// How long after the instant that a machine asked for it is woken.
    pub timers_are_late_by: Duration,
    /// Machines are woken at whole multiples of this only, each counting from an instant of its
    /// own, as with a runtime's timers. Zero: at any instant.
    pub timers_have_a_grain_of: Duration,
    /// If it is not zero, each reply takes 0.7 to 1.3 times its master's delay, and one in twenty
    /// three times as long. It is the state of a generator, so it is also the seed.
    pub delays_vary: u64,
    /// Connections, by master and generation, that the network has forgotten: what is written to
    /// them vanishes.
    pub dead: BTreeSet<(usize, u32)>,
    ids: Vec<MasterId>,
    timeline: Vec<String>,
}

impl Drop for World {
    /// The timeline of a test that fails.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for line in &self.timeline {
                eprintln!("{line}");
            }
        }
    }
}

/// The timeout of requests here, independent of the default.
pub const REQUEST_TIMEOUT: Duration = ms(50);

pub fn settings(masters: usize) -> ConfigBuilder {
    let names = ["a", "b", "c", "d", "e"];
    let urls = names.iter().take(masters).map(|name| format!("redis://{name}:6379"));
    Config::builder(urls).request_timeout(REQUEST_TIMEOUT)
}

pub fn wanted(ttl: Duration) -> Acquire {
    Acquire { timeout: Some(ms(10_000)), ..Acquire::new(Resource::new(KEY).unwrap(), Ttl::new(ttl).unwrap()) }
}

pub fn one_try() -> Acquire {
    Acquire { attempts: Some(1), ..wanted(ms(10_000)) }
}

impl World {
    /// One machine before its masters, its connections asked for and not yet there.
    pub fn cold(settings: ConfigBuilder) -> Self {
        let config = settings.build().unwrap();
        let mut world = Self {
            now: Instant::ORIGIN + ms(1_000),
            nodes: Vec::new(),
            dead: BTreeSet::new(),
            timers_are_late_by: Duration::ZERO,
            timers_have_a_grain_of: Duration::ZERO,
            delays_vary: 0,
            masters: (0..config.masters().len()).map(Master::new).collect(),
            ids: config.master_ids().collect(),
            timeline: Vec::new(),
        };
        world.add_node(config, 1);
        world
    }

    /// One machine whose connections are open.
    pub fn ready(settings: ConfigBuilder) -> Self {
        let mut world = Self::cold(settings);
        world.pump();
        world
    }

    pub fn of(masters: usize) -> Self {
        Self::ready(settings(masters))
    }

    pub fn add_node(&mut self, config: Config, seed: u64) {
        let masters = self.masters.len();
        let entropy = Seeded::new(seed);
        self.nodes.push(Node {
            has_no_entropy: Rc::clone(&entropy.is_empty),
            machine: Machine::new(config, entropy, self.now),
            links: vec![Vec::new(); masters],
            events: VecDeque::new(),
            wake: None,
            wakes: 0,
            written: Vec::new(),
            opened: vec![0; masters],
            writes: vec![0; masters],
        });
        self.drain(self.nodes.len() - 1);
    }

    pub fn note(&mut self, line: impl Into<String>) {
        self.timeline.push(format!("{:?} {}", self.now, line.into()));
    }

    pub fn id(&self, master: usize) -> MasterId {
        self.ids[master]
    }

    // Commands, of the first machine unless a number is given.

    pub fn acquire(&mut self, wanted: &Acquire) -> LockId {
        self.acquire_by(0, wanted)
    }

    pub fn acquire_by(&mut self, node: usize, wanted: &Acquire) -> LockId {
        self.note(format!("n{node} acquires"));
        let lock = self.nodes[node].machine.acquire(wanted, self.now).unwrap();
        self.drain(node);
        lock
    }

    /// The locks of a process that have been granted by now. Its caller takes them.
    pub fn granted(&mut self, node: usize) -> Vec<LockId> {
        self.pump();
        let mut granted = Vec::new();
        for (_, event) in std::mem::take(&mut self.nodes[node].events) {
            match event {
                Event::Granted { lock, .. } => {
                    assert!(self.nodes[node].machine.take(lock, self.now).is_some());
                    granted.push(lock);
                }
                Event::Released { .. } => {}
                event => panic!("{event:?}"),
            }
        }
        self.drain(node);
        granted
    }

    /// Acquires a lock, which must be granted, and takes it.
    pub fn hold(&mut self, wanted: &Acquire) -> LockId {
        let lock = self.acquire(wanted);
        let event = self.next_event();
        assert!(matches!(event, Event::Granted { .. }), "{event:?}");
        assert!(self.take(lock).is_some());
        lock
    }

    pub fn take(&mut self, lock: LockId) -> Option<Instant> {
        let valid_until = self.nodes[0].machine.take(lock, self.now);
        self.drain(0);
        valid_until
    }

    pub fn extend(&mut self, lock: LockId, ttl: Duration) -> ExtensionId {
        self.note("n0 extends");
        let id = self.nodes[0].machine.extend(lock, Ttl::new(ttl).unwrap(), self.now).unwrap();
        self.drain(0);
        id
    }

    pub fn release(&mut self, lock: LockId) {
        self.release_by(0, lock);
    }

    pub fn release_by(&mut self, node: usize, lock: LockId) {
        self.note(format!("n{node} releases"));
        self.nodes[node].machine.release(lock, self.now);
        self.drain(node);
    }

    pub fn cancel(&mut self, lock: LockId) {
        self.note("n0 cancels");
        self.nodes[0].machine.cancel(lock, self.now);
        self.drain(0);
    }

    // Questions.

    /// The events so far, without any time passing.
    pub fn events_now(&mut self) -> Vec<Event> {
        self.pump();
        self.nodes[0].events.drain(..).map(|(_, event)| event).collect()
    }

    /// Waits for the next event without a limit.
    pub fn next_event(&mut self) -> Event {
        self.next_event_of(0)
    }

    pub fn next_event_of(&mut self, node: usize) -> Event {
        self.pump();
        for _ in 0..1_000 {
            if let Some((_, event)) = self.nodes[node].events.pop_front() {
                return event;
            }
            assert!(self.jump(), "nothing will ever happen");
        }
        panic!("no event after 1,000 steps");
    }

    /// Why the lock was not acquired.
    pub fn refusal(&mut self) -> AcquireError {
        match self.next_event() {
            Event::NotAcquired { error, .. } => error,
            event => panic!("not a refusal: {event:?}"),
        }
    }

    /// The masters on which the key has this machine's or another token.
    pub fn holders(&self) -> Vec<usize> {
        (0..self.masters.len()).filter(|&m| self.masters[m].value(KEY, self.now).is_some()).collect()
    }

    pub fn expose(&self, lock: LockId) -> String {
        self.nodes[0].machine.token(lock).unwrap().expose()
    }

    pub fn each(&mut self, change: impl Fn(&mut Master)) {
        self.masters.iter_mut().for_each(change);
    }
}
