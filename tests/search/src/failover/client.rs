//! The shipped machines, each step of which is run once and remembered.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::{
    Acquire, Cause, Config, Entropy, EntropyFailed, Event, Instant, LockId, Machine, MasterId, Output,
    Resource, Ttl, Wake,
};

/// The life of a key, and the quarantine.
pub(super) const TTL: Duration = Duration::from_millis(2_000);
/// The time that passes in a tick.
pub(super) const TICK: Duration = Duration::from_millis(1_000);
/// The pause before a connection is opened again.
const RECONNECT: Duration = Duration::from_millis(1);
/// The lock that all clients request.
const NAME: &str = "r";

/// An input of a machine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Input {
    Closed,
    Connected,
    Received(Vec<u8>),
    Ask,
    Extend,
    Tick,
}

/// The reaction of a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    Write(Vec<u8>),
    Close,
}

/// The next node, and the reaction.
type Reaction = (usize, Rc<[Effect]>);

/// A machine with its caller's knowledge, after a sequence of inputs.
#[derive(Clone)]
struct Node {
    machine: Machine<Seeded>,
    master: MasterId,
    /// The time on the client's clock.
    now: Instant,
    /// The generation of the connection that it wants, and of the one that it has.
    wanted: Option<u32>,
    open: Option<u32>,
    wake: Option<Wake>,
    lock: Option<LockId>,
    /// Until when the lock is held.
    until: Option<Instant>,
    extends: bool,
}

/// All machines that were visited.
pub(super) struct Book {
    nodes: Vec<Node>,
    steps: HashMap<(usize, Input), Reaction>,
}

impl Book {
    /// Creates a book in which the first node of each client has the client's number.
    pub(super) fn new(declared: u8) -> Self {
        let replicas = if declared > 0 { format!("?replicas={declared}") } else { String::new() };
        let config = Config::builder([format!("redis://primary{replicas}")])
            .ttl(TTL)
            .restart_guard(TTL)
            .request_timeout(Duration::from_millis(1_500))
            .reconnect_delay(RECONNECT..=RECONNECT)
            .build();
        let config = Arc::new(config.expect("the configuration is one"));
        let master = config.master_ids().next().expect("there is a master");
        let nodes = (0..super::CLIENTS as u64).map(|client| {
            let now = Instant::ORIGIN + TICK;
            let machine = Machine::new(Arc::clone(&config), Seeded(client + 1), now);
            let (wanted, open, wake, lock, until) = (None, None, None, None, None);
            let mut node = Node { machine, master, now, wanted, open, wake, lock, until, extends: false };
            node.drain(&mut Vec::new());
            node
        });
        Self { nodes: nodes.collect(), steps: HashMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node after this input, and the reaction.
    pub(super) fn react(&mut self, node: usize, input: Input) -> Reaction {
        if let Some(known) = self.steps.get(&(node, input.clone())) {
            return known.clone();
        }
        let mut effects = Vec::new();
        let mut next = self.nodes.get(node).expect("a node of the book").clone();
        next.hear(&input, &mut effects);
        self.nodes.push(next);
        let done = (self.nodes.len() - 1, Rc::from(effects));
        self.steps.insert((node, input), done.clone());
        done
    }

    fn node(&self, node: usize) -> Option<&Node> {
        self.nodes.get(node)
    }

    pub(super) fn holds(&self, node: usize) -> bool {
        self.node(node).is_some_and(Node::holds)
    }

    /// Whether the client may request the lock.
    pub(super) fn is_free(&self, node: usize) -> bool {
        self.node(node).is_some_and(|node| node.lock.is_none())
    }

    /// Whether the client may extend it.
    pub(super) fn may_extend(&self, node: usize) -> bool {
        self.node(node).is_some_and(|node| node.holds() && !node.extends)
    }
}

impl Node {
    fn holds(&self) -> bool {
        self.until.is_some_and(|until| self.now < until)
    }

    fn hear(&mut self, input: &Input, effects: &mut Vec<Effect>) {
        let (master, now) = (self.master, self.now);
        match input {
            Input::Closed => {
                if let Some(open) = self.open.take() {
                    self.machine.closed(master, open, Cause::Closed, now);
                }
            }
            Input::Connected => self.connect(effects),
            Input::Received(bytes) => {
                if let Some(open) = self.open {
                    self.machine.received(master, open, bytes, now);
                }
            }
            Input::Ask => {
                let resource = Resource::new(NAME).expect("a name");
                let ttl = Ttl::new(TTL).expect("a TTL");
                let wanted = Acquire { attempts: Some(1), ..Acquire::new(resource, ttl) };
                self.lock = self.machine.acquire(&wanted, now).ok();
            }
            Input::Extend => {
                let ttl = Ttl::new(TTL).expect("a TTL");
                let extension = self.lock.and_then(|lock| self.machine.extend(lock, ttl, now).ok());
                self.extends = extension.is_some();
            }
            Input::Tick => {
                self.now = self.now + TICK;
                self.machine.time_passed(self.now);
            }
        }
        self.drain(effects);
    }

    /// Opens the next connection as soon as the machine wants one.
    fn connect(&mut self, effects: &mut Vec<Effect>) {
        while self.wanted.is_none() {
            let Some(wake) = self.wake.filter(|wake| wake.at <= self.now + RECONNECT * 4) else { return };
            self.now = self.now.max(wake.at);
            self.machine.time_passed(self.now);
            self.drain(effects);
        }
        if let Some(wanted) = self.wanted.take() {
            self.open = Some(wanted);
            self.machine.connected(self.master, wanted, self.now);
        }
    }

    fn drain(&mut self, effects: &mut Vec<Effect>) {
        loop {
            let event = match self.machine.poll_output() {
                Output::Connect { generation, .. } => {
                    self.wanted = Some(generation);
                    continue;
                }
                Output::Write { bytes, .. } => {
                    effects.push(Effect::Write(bytes.to_vec()));
                    continue;
                }
                Output::Close { .. } => {
                    (self.open, self.wanted) = (None, None);
                    effects.push(Effect::Close);
                    continue;
                }
                Output::Event(event) => event,
                Output::Wake(wake) => {
                    self.wake = wake;
                    return;
                }
            };
            match event {
                Event::Granted { lock, .. } => self.until = self.machine.take(lock, self.now),
                Event::Extended { result, .. } => {
                    self.extends = false;
                    self.until = result.ok().or(self.until);
                }
                Event::Lost { lock, .. } => {
                    self.until = None;
                    self.machine.cancel(lock, self.now);
                }
                Event::NotAcquired { .. } | Event::Released { .. } => (self.lock, self.until) = (None, None),
                _ => {}
            }
        }
    }
}

/// Repeatable random bytes.
#[derive(Clone, Debug)]
struct Seeded(u64);

impl Entropy for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (self.0 >> 33).to_le_bytes()[0];
        }
        Ok(())
    }
}
