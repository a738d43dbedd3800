//! Machines, scripted masters and the clock between them, as values.

pub mod master;
pub mod resp;

use std::collections::{BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::time::Duration;

pub use master::{Flow, Master, Reach};
use quorlock_core::{
    Acquire, AcquireError, Cause, Config, ConfigBuilder, Entropy, EntropyFailed, Event, ExtensionId, Instant,
    LockId, Machine, MasterId, Output, Resource, Ttl, Wake,
};

use master::Session;

pub const KEY: &str = "invoice:42";

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Repeatable random bytes.
#[derive(Clone, Debug)]
pub struct Seeded(pub u64);

impl Entropy for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (self.0 >> 33).to_le_bytes()[0];
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Asked,
    Stands,
    /// The machine has closed it, or has been told that it ended. A server may still read what was written.
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
    /// Connections, by master and generation, that the network has forgotten: what is written to them vanishes.
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

pub fn settings(masters: usize) -> ConfigBuilder {
    let names = ["a", "b", "c", "d", "e"];
    Config::builder(names.iter().take(masters).map(|name| format!("redis://{name}:6379")))
}

pub fn wanted(ttl: Duration) -> Acquire {
    Acquire {
        resource: Resource::new(KEY).unwrap(),
        ttl: Ttl::new(ttl).unwrap(),
        within: Some(ms(10_000)),
        attempts: None,
        renew_for: None,
    }
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
            masters: (0..config.masters().len()).map(Master::new).collect(),
            ids: config.master_ids().collect(),
            timeline: Vec::new(),
        };
        world.add_node(config, 1);
        world
    }

    /// One machine whose connections stand.
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
        self.nodes.push(Node {
            machine: Machine::new(config, Seeded(seed), self.now),
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

    /// Acquires and hands over at once; it must be granted.
    pub fn hold(&mut self, wanted: &Acquire) -> LockId {
        let lock = self.acquire(wanted);
        let event = self.next_event();
        assert!(matches!(event, Event::Granted { .. }), "{event:?}");
        assert!(self.hand_over(lock).is_some());
        lock
    }

    pub fn hand_over(&mut self, lock: LockId) -> Option<Instant> {
        let valid_until = self.nodes[0].machine.hand_over(lock, self.now);
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

    // Time and the network.

    /// Everything that happens at this very instant, without any time passing.
    pub fn pump(&mut self) {
        while self.step() {}
    }

    pub fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.pump();
            let Some(next) = self.next_instant().filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            self.pump();
            self.wake_the_due();
        }
        self.now = end;
        self.pump();
    }

    /// Jumps to the next thing that happens; false if nothing ever will.
    pub fn jump(&mut self) -> bool {
        self.pump();
        let Some(next) = self.next_instant() else { return false };
        self.now = self.now.max(next);
        self.pump();
        self.wake_the_due();
        self.pump();
        true
    }

    /// Like [`World::jump`], but not beyond `end`; false when it is there.
    pub fn jump_until(&mut self, end: Instant) -> bool {
        if self.next_instant().is_some_and(|next| next <= end) {
            return self.jump();
        }
        self.now = end;
        false
    }

    /// Lets time pass in which the machine is not woken and nothing is delivered, as in a suspended process.
    pub fn suspend(&mut self, span: Duration) {
        self.now = self.now + span;
        self.note("resumes");
    }

    /// Tells the machines the time although nothing is due.
    pub fn wake_the_due(&mut self) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].wake.is_some_and(|wake| wake.at <= self.now) {
                self.note(format!("n{node} wakes"));
                self.nodes[node].wakes += 1;
                self.nodes[node].machine.time_passed(self.now);
                self.drain(node);
            }
        }
    }

    fn next_instant(&self) -> Option<Instant> {
        let wakes = self.nodes.iter().filter_map(|node| node.wake.map(|wake| wake.at));
        let replies = self.nodes.iter().flat_map(|node| {
            node.links.iter().zip(&self.masters).filter(|(_, master)| master.flow == Flow::Free).flat_map(
                |(links, _)| {
                    let standing = links.iter().filter(|link| link.stage == Stage::Stands);
                    standing.filter_map(|link| link.replies.front().map(|(at, _)| *at))
                },
            )
        });
        wakes.chain(replies).min()
    }

    fn step(&mut self) -> bool {
        let mut moved = false;
        for node in 0..self.nodes.len() {
            for master in 0..self.masters.len() {
                for place in 0..self.nodes[node].links[master].len() {
                    moved |= self.connect(node, master, place);
                    moved |= self.execute(node, master, place);
                    if self.masters[master].flow == Flow::Free {
                        moved |= self.deliver_due(node, master, place);
                    }
                }
            }
        }
        moved
    }

    fn connect(&mut self, node: usize, master: usize, place: usize) -> bool {
        let reach = self.masters[master].reach;
        let link = &mut self.nodes[node].links[master][place];
        if link.stage != Stage::Asked || reach == Reach::Ignores {
            return false;
        }
        let (id, generation) = (self.ids[master], link.generation);
        link.stage = if reach == Reach::Accepts { Stage::Stands } else { Stage::Gone };
        self.note(format!("n{node} m{master}.{generation} {reach:?}"));
        let machine = &mut self.nodes[node].machine;
        if reach == Reach::Accepts {
            machine.connected(id, generation, self.now);
        } else {
            machine.closed(id, generation, Cause::Connect(ErrorKind::ConnectionRefused), self.now);
        }
        self.drain(node);
        true
    }

    /// The server reads and executes, also what came on a connection that is closed by now.
    fn execute(&mut self, node: usize, master: usize, place: usize) -> bool {
        let is_read = matches!(self.masters[master].flow, Flow::Free | Flow::RepliesHeld);
        is_read && self.read_all(node, master, place)
    }

    /// A stopped server reads what came from one machine and nothing else.
    pub fn serve(&mut self, node: usize, master: usize) {
        for place in 0..self.nodes[node].links[master].len() {
            self.read_all(node, master, place);
        }
    }

    fn read_all(&mut self, node: usize, master: usize, place: usize) -> bool {
        let server = &mut self.masters[master];
        let link = &mut self.nodes[node].links[master][place];
        let mut notes = Vec::new();
        while let Some(command) = resp::take_command(&mut link.unread) {
            let reply = server.execute(&mut link.session, &command, self.now);
            let (_, name, token) = server.executed.last().unwrap();
            let token = token.get(..6).unwrap_or_default();
            let text: String = reply.escape_ascii().map(char::from).take(40).collect();
            notes.push(format!("n{node} m{master}.{} {name} {token} -> {text}", link.generation));
            link.replies.push_back((self.now + server.delay, reply));
        }
        let moved = !notes.is_empty();
        for note in notes {
            self.note(note);
        }
        moved
    }

    fn deliver_due(&mut self, node: usize, master: usize, place: usize) -> bool {
        let link = &mut self.nodes[node].links[master][place];
        if link.stage != Stage::Stands || link.replies.front().is_none_or(|(at, _)| *at > self.now) {
            return false;
        }
        let (_, reply) = link.replies.pop_front().unwrap();
        let generation = link.generation;
        self.receive(node, master, generation, &reply);
        true
    }

    fn receive(&mut self, node: usize, master: usize, generation: u32, bytes: &[u8]) {
        self.note(format!("n{node} m{master}.{generation} hears"));
        self.nodes[node].machine.received(self.ids[master], generation, bytes, self.now);
        self.drain(node);
    }

    /// Delivers the next reply that is held back on the present connection; false if there is none.
    pub fn deliver(&mut self, node: usize, master: usize) -> bool {
        for place in 0..self.nodes[node].links[master].len() {
            self.execute(node, master, place);
        }
        let Some(link) = self.nodes[node].links[master].last_mut() else { return false };
        let generation = link.generation;
        let Some((_, reply)) = link.replies.pop_front() else { return false };
        self.receive(node, master, generation, &reply);
        true
    }

    /// Bytes that no script of a server made.
    pub fn inject(&mut self, master: usize, bytes: &[u8]) {
        let generation = self.generation(master);
        self.receive(0, master, generation, bytes);
    }

    pub fn generation(&self, master: usize) -> u32 {
        self.nodes[0].links[master].last().unwrap().generation
    }

    /// The connection ends: what the server has not read is gone.
    pub fn cut(&mut self, node: usize, master: usize) {
        let id = self.ids[master];
        let link = self.nodes[node].links[master].last_mut().unwrap();
        link.unread.clear();
        link.replies.clear();
        link.stage = Stage::Gone;
        let generation = link.generation;
        self.note(format!("n{node} m{master}.{generation} is cut"));
        self.nodes[node].machine.closed(id, generation, Cause::Closed, self.now);
        self.drain(node);
    }

    pub fn cut_if_it_stands(&mut self, node: usize, master: usize) {
        if self.nodes[node].links[master].last().is_some_and(|link| link.stage == Stage::Stands) {
            self.cut(node, master);
        }
    }

    pub fn drain(&mut self, node: usize) {
        loop {
            let this = &mut self.nodes[node];
            let line = match this.machine.poll_output() {
                Output::Connect { master, generation } => {
                    let master = master.index();
                    this.opened[master] += 1;
                    let stage = Stage::Asked;
                    let (unread, replies) = (Vec::new(), VecDeque::new());
                    let session = Session::default();
                    this.links[master].push(Link { generation, stage, session, unread, replies });
                    format!("n{node} m{master}.{generation} connect")
                }
                Output::Write { master, generation, bytes } => {
                    let master = master.index();
                    this.written.extend_from_slice(bytes);
                    this.writes[master] += 1;
                    let link =
                        this.links[master].iter_mut().find(|link| link.generation == generation).unwrap();
                    assert_ne!(link.stage, Stage::Asked, "a write before the connection stands");
                    let vanishes = self.masters[master].flow == Flow::BlackHole
                        || self.dead.contains(&(master, generation));
                    if link.stage == Stage::Stands && !vanishes {
                        link.unread.extend_from_slice(bytes);
                    }
                    continue;
                }
                Output::Close { master, generation } => {
                    let master = master.index();
                    for link in this.links[master].iter_mut().filter(|link| link.generation == generation) {
                        link.stage = Stage::Gone;
                        link.replies.clear();
                    }
                    format!("n{node} m{master}.{generation} close")
                }
                Output::Event(event) => {
                    let line = format!("n{node} {event:?}");
                    this.events.push_back((self.now, event));
                    line
                }
                Output::Wake(wake) => {
                    this.wake = wake;
                    return;
                }
            };
            self.note(line);
        }
    }

    // Questions.

    /// What happened already, without any time passing.
    pub fn events_now(&mut self) -> Vec<Event> {
        self.pump();
        self.nodes[0].events.drain(..).map(|(_, event)| event).collect()
    }

    /// The next event, however long it takes.
    pub fn next_event(&mut self) -> Event {
        self.next_event_of(0)
    }

    pub fn next_event_of(&mut self, node: usize) -> Event {
        self.pump();
        for _ in 0..100_000 {
            if let Some((_, event)) = self.nodes[node].events.pop_front() {
                return event;
            }
            assert!(self.jump(), "nothing will ever happen");
        }
        panic!("no event after 100,000 steps");
    }

    /// Why the lock was not acquired.
    pub fn refusal(&mut self) -> AcquireError {
        match self.next_event() {
            Event::NotAcquired { error, .. } => error,
            event => panic!("not a refusal: {event:?}"),
        }
    }

    /// The masters on which the key stands with this machine's or anybody's token.
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
