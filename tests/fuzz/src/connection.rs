//! A machine whose masters send anything, and whose callers request anything.
//!
//! An input is a list of operations: bytes from a master, real replies of model masters, whole or
//! damaged, connections that open and end, time that passes, and commands. Every operation is
//! applied to two machines, which must react alike.

use std::io::ErrorKind;
use std::time::Duration;

use quorlock_core::{
    Acquire, Cause, Config, Instant, IoFault, LockId, Machine, MasterState, Output, Resource, Ttl,
};
use quorlock_sim::{Flow, Master};

use super::events::Ledger;
use super::input::{Operation, expanded, operations, pieces};
use super::node::{Node, Sequence};

const MAX_REQUESTS: usize = 8;
const MAX_REQUEST_BYTES: usize = 4 * 1024;
const MAX_LOCKS: usize = 16;
/// The most bytes that one input makes a machine write to a master: a handshake, the requests that
/// may be in flight, with room for releases and the text of their script, and the releases when a
/// connection is given up.
const MAX_WRITTEN_BYTES: usize = 32 * 1024;
const REQUEST_TIMEOUT: Duration = Duration::from_millis(50);
const CONNECT_TIMEOUT: Duration = Duration::from_millis(250);
/// How long after its timeout a caller may be notified: the machine waits for this time for the
/// answers of the last round.
const PATIENCE: Duration = Duration::from_secs(1);

/// Panics if a machine does, sends or stores too much, spins, or differs from the other. Returns
/// the number of received bytes.
pub(crate) fn run(input: &[u8]) -> usize {
    let (first, second) = (story(input), story(input));
    assert!(first.1 == second.1, "the same inputs gave other outputs");
    first.0
}

/// Runs one machine. Returns how many bytes were received, and all output.
fn story(input: &[u8]) -> (usize, Vec<u8>) {
    let mut operations = operations(input);
    let mut world = World::new(operations.next());
    for operation in operations.take(400) {
        world.carry_out(operation);
    }
    world.end();
    (world.received, world.outputs)
}

struct World {
    machine: Machine<Sequence>,
    now: Instant,
    nodes: Vec<Node>,
    /// The password of the default user.
    password: Option<&'static str>,
    locks: Vec<LockId>,
    ledger: Ledger,
    received: usize,
    outputs: Vec<u8>,
}

impl World {
    fn new(settings: Option<Operation<'_>>) -> Self {
        let mut settings = settings.unwrap_or(operations(b"\0").next().expect("one operation"));
        let (masters, flags) = (1 + settings.below(5), settings.byte());
        let account = ["", "user:secret@", ":secret@", ""][usize::from(flags & 3)];
        let database = if flags & 4 == 0 { "" } else { "/3" };
        let url = |number| match number {
            0 if flags & 64 != 0 => {
                format!("redis+sentinel://{account}a,b/group{database}?failover=durable&sentinel-pass=x")
            }
            _ => format!("redis://{account}master{number}{database}"),
        };
        let urls = (0..masters).map(url);
        let mut config = Config::builder(urls)
            .request_timeout(REQUEST_TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            .max_in_flight_requests(MAX_REQUESTS)
            .max_in_flight_bytes(MAX_REQUEST_BYTES)
            .max_locks(MAX_LOCKS);
        if flags & 8 != 0 {
            config = config.client_name("fuzz");
        }
        let config = config.build().expect("a configuration that works");
        let node = |(number, id)| {
            // Two masters may be the same server.
            let mut model = Master::new(if flags & 16 == 0 { number as u64 } else { number as u64 / 2 });
            if flags & 32 == 0 {
                model.add_user("user", "secret");
            }
            Node::new(id, model)
        };
        let nodes = config.master_ids().enumerate().map(node).collect();
        let now = Instant::from_nanos(1_000_000_000);
        let mut world = Self {
            machine: Machine::new(config, Sequence(u64::from(flags) + 1), now),
            now,
            nodes,
            password: (flags & 3 == 2).then_some("secret"),
            locks: Vec::new(),
            ledger: Ledger::default(),
            received: 0,
            outputs: Vec::new(),
        };
        world.drain();
        world
    }

    fn carry_out(&mut self, mut operation: Operation<'_>) {
        let kind = operation.byte() % 16;
        let node = operation.below(self.nodes.len());
        let (id, generation) = (self.nodes[node].id, self.nodes[node].generation);
        let lock = |operation: &mut Operation<'_>| {
            let place = operation.below(self.locks.len());
            self.locks.get(place).copied()
        };
        match kind {
            0 => self.machine.connected(id, generation, self.now),
            1 => self.machine.closed(id, generation, cause(operation.byte()), self.now),
            // A late event of an earlier connection, or of one that never existed.
            2 => {
                let generation = generation.wrapping_sub(1 + u32::from(operation.byte()));
                self.machine.received(id, generation, operation.rest(), self.now);
                self.machine.closed(id, generation, Cause::Closed, self.now);
                self.machine.connected(id, generation, self.now);
            }
            3 => {
                let number = operation.byte();
                self.receive(node, &expanded(operation.rest()), number);
            }
            4 => {
                let number = operation.byte();
                self.serve(node, number, None);
            }
            5 => {
                let number = operation.byte();
                self.serve(node, number, Some(operation));
            }
            // All masters answer.
            6 => {
                for node in 0..self.nodes.len() {
                    self.machine.connected(self.nodes[node].id, self.nodes[node].generation, self.now);
                    self.drain();
                    self.serve(node, 7, None);
                }
            }
            7 => self.change(node, operation.byte()),
            8 | 9 => self.pass(Duration::from_nanos(
                u64::from(operation.byte()) << [10, 18, 20, 22, 24, 26, 30, 44][operation.below(8)],
            )),
            10 | 11 => self.acquire(operation),
            12 => {
                let (lock, ttl) = (lock(&mut operation), span(operation.byte()));
                let (Some(lock), Ok(ttl)) = (lock, Ttl::new(ttl)) else { return };
                if let Ok(extension) = self.machine.extend(lock, ttl, self.now) {
                    self.ledger.extended(lock, extension, ttl.as_duration());
                }
            }
            13 => {
                let Some(lock) = lock(&mut operation) else { return };
                self.machine.release(lock, self.now);
                self.ledger.released(lock);
            }
            14 => {
                let Some(lock) = lock(&mut operation) else { return };
                self.machine.cancel(lock, self.now);
                self.ledger.cancelled(lock);
            }
            _ => {
                let Some(lock) = lock(&mut operation) else { return };
                if operation.byte() % 4 == 0 {
                    self.machine.stop_renewal(lock, self.now);
                }
                let valid_until = self.machine.take(lock, self.now);
                self.ledger.taken(lock, valid_until, self.now);
            }
        }
        self.drain();
    }

    fn acquire(&mut self, mut operation: Operation<'_>) {
        let resource = Resource::new(vec![b'a' + operation.byte() % 3; 1 + operation.below(9)]);
        let (ttl, flags) = (span(operation.byte()), operation.byte());
        let timeout = (flags & 1 == 0).then(|| span(operation.byte()));
        let (Ok(resource), Ok(ttl)) = (resource, Ttl::new(ttl)) else { return };
        let wanted = Acquire {
            timeout,
            attempts: (flags & 2 != 0).then_some(1 + u32::from(flags >> 6)),
            renew_for: (flags & 4 != 0).then(|| span(operation.byte())),
            fenced: flags & 8 != 0,
            healing: flags & 16 != 0,
            ..Acquire::new(resource, ttl)
        };
        if let Ok(lock) = self.machine.acquire(&wanted, self.now) {
            self.locks.push(lock);
            self.ledger.acquired(lock, ttl.as_duration(), timeout.map(|timeout| self.now + timeout));
        }
    }

    fn change(&mut self, node: usize, what: u8) {
        let model = &mut self.nodes[node].model;
        let is_so = what & 1 == 0;
        match what >> 1 & 7 {
            0 => model.set_loading(is_so),
            1 => model.set_out_of_memory(is_so),
            2 => model.set_replica(is_so),
            3 => model.set_knows_hello(!is_so),
            4 => model.set_password(is_so.then_some("secret")),
            5 => model.flush_scripts(),
            6 => model.fail("SCRIPT", is_so.then_some("NOPERM no")),
            _ => model.fail("INFO", is_so.then_some("NOPERM no")),
        }
    }

    /// A master reads what was written to it and answers; the replies may be damaged at one place.
    fn serve(&mut self, node: usize, number: u8, damage: Option<Operation<'_>>) {
        let now = Duration::from_nanos(self.now.as_nanos());
        let node_now = &mut self.nodes[node];
        let (mut replies, flow) = node_now.serve(now);
        if let Some(mut damage) = damage {
            let place = usize::from(damage.byte()) * 256 + usize::from(damage.byte());
            let end = replies.len().min(place + damage.below(4));
            replies.splice(place.min(end)..end, damage.rest().iter().copied());
        }
        let (id, generation) = (node_now.id, node_now.generation);
        self.receive(node, &replies, number);
        if flow == Flow::Close {
            self.machine.closed(id, generation, Cause::Closed, self.now);
        }
    }

    /// Bytes arrive in pieces, and the driver takes the outputs after each piece.
    fn receive(&mut self, node: usize, bytes: &[u8], number: u8) {
        self.received += bytes.len();
        let generation = self.nodes[node].generation;
        for piece in pieces(bytes.len(), number) {
            self.machine.received(self.nodes[node].id, generation, &bytes[piece], self.now);
            self.drain();
        }
    }

    /// Lets time pass as a driver sees it, from wake-up to wake-up. To a driver that runs too
    /// seldom, it seems to jump.
    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        for _ in 0..40 {
            match self.drain() {
                Some(at) if at <= end => self.wake(at),
                _ => break,
            }
        }
        if self.drain().is_some_and(|at| at <= end) {
            self.ledger.leapt(end);
        }
        self.wake(end);
    }

    fn wake(&mut self, at: Instant) {
        self.now = at;
        let limit = 8 + self.nodes.len() + self.ledger.len();
        for _ in 0..limit {
            self.machine.time_passed(self.now);
            if self.drain().is_none_or(|at| at > self.now) {
                self.ledger.no_caller_waits_too_long(self.now, PATIENCE);
                return;
            }
        }
        panic!("woken {limit} times at {:?}", self.now);
    }

    /// Takes every output, and returns when the machine wants to be woken.
    fn drain(&mut self) -> Option<Instant> {
        let most = 32 + 16 * (self.nodes.len() + self.ledger.len());
        let mut written = 0;
        for _ in 0..most {
            let output = self.machine.poll_output();
            self.outputs.extend_from_slice(format!("{output:?}\n").as_bytes());
            match output {
                Output::Connect { master, generation, address } => {
                    self.nodes[master.index()].connect(generation, &address);
                }
                Output::Write { master, generation, bytes } => {
                    let node = &mut self.nodes[master.index()];
                    assert_eq!(generation, node.generation, "bytes for a connection that is closed");
                    node.unread.extend_from_slice(bytes);
                    written += bytes.len();
                    self.outputs.extend_from_slice(bytes);
                }
                Output::Close { master, generation } => {
                    assert_eq!(generation, self.nodes[master.index()].generation);
                }
                Output::Event(event) => self.ledger.happened(&event, self.now),
                Output::Wake(wake) => {
                    let limit = self.nodes.len() * MAX_WRITTEN_BYTES;
                    assert!(written <= limit, "{written} bytes after one input");
                    return wake.map(|wake| wake.at);
                }
            }
        }
        panic!("{most} outputs after one input");
    }

    /// All callers cancel. Then all masters answer, and a lock must be granted. Then no master
    /// sends anything any more; a minute later nothing may be under way, and the machine must not
    /// have been woken often.
    fn end(&mut self) {
        for lock in std::mem::take(&mut self.locks) {
            self.machine.cancel(lock, self.now);
            self.ledger.cancelled(lock);
            // The next lock in the queue may move to the front and end at once.
            self.drain();
        }
        self.heal();
        let resource = Resource::new("at last").expect("a name");
        let ttl = Ttl::new(Duration::from_secs(10)).expect("a TTL");
        let wanted = Acquire { attempts: Some(1), ..Acquire::new(resource, ttl) };
        let lock = self.machine.acquire(&wanted, self.now).expect("a request that makes sense");
        self.ledger.acquired(lock, ttl.as_duration(), None);
        self.answer();
        assert!(self.machine.take(lock, self.now).is_some(), "all is well: {:?}", self.machine);
        self.machine.cancel(lock, self.now);
        self.ledger.cancelled(lock);
        self.drain();
        let end = self.now + Duration::from_secs(60);
        let mut wakes = 0;
        while let Some(at) = self.drain().filter(|at| *at <= end) {
            self.wake(at.max(self.now));
            wakes += 1;
            assert!(wakes < 100 * self.nodes.len(), "woken {wakes} times in a minute with nothing to do");
        }
        assert!(self.machine.is_idle() && !self.machine.holds_locks(), "{:?}", self.machine);
    }
    /// Puts other servers, which accept every login, behind all addresses. Every master must vote
    /// again soon.
    fn heal(&mut self) {
        for (number, node) in (1_000..).zip(&mut self.nodes) {
            node.model = Master::new(number);
            node.model.add_user("user", "secret");
            node.model.set_password(self.password);
            self.machine.closed(node.id, node.generation, Cause::Closed, self.now);
        }
        for _ in 0..100 {
            self.answer();
            if self.machine.masters().all(|(_, state)| matches!(state, MasterState::Ready { .. })) {
                return;
            }
            let at = self.drain().expect("a master that is down is tried again");
            self.wake(at.max(self.now));
        }
        panic!("not all masters are back: {:?}", self.machine);
    }

    /// Opens connections, and answers everything.
    fn answer(&mut self) {
        for _ in 0..50 {
            for node in 0..self.nodes.len() {
                self.nodes[node].is_opening = false;
                self.machine.connected(self.nodes[node].id, self.nodes[node].generation, self.now);
                self.drain();
                self.serve(node, 7, None);
            }
            self.drain();
            if !self.nodes.iter().any(|node| node.is_opening || !node.unread.is_empty()) {
                return;
            }
        }
        panic!("a conversation without an end: {:?}", self.machine);
    }
}

fn cause(number: u8) -> Cause {
    match number % 4 {
        0 => Cause::Closed,
        1 => Cause::Connect(IoFault::new(ErrorKind::ConnectionRefused)),
        2 => Cause::Connect(IoFault::new(ErrorKind::NetworkUnreachable)),
        _ => Cause::UnknownHost,
    }
}

/// A span from a millisecond to some years, or zero.
fn span(number: u8) -> Duration {
    Duration::from_millis(u64::from(number & 31) << [0, 3, 6, 8, 10, 14, 20, 32][usize::from(number >> 5)])
}
