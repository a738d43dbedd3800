//! A client of three seats: a machine, and connections that it reads and writes itself.

use std::time::Duration;

use quorlock_core::{
    Acquire, Cause, Config, Entropy, EntropyFailed, Event, Instant, IoFault, LockId, Machine, MasterId,
    Output,
};

/// How many places for a master there are. Two of them are a quorum.
pub const SEATS: usize = 3;

/// Three seats, with the servers that are there at the moment, and their time.
pub trait Site {
    /// A connection to a server.
    type Line;

    fn now(&self) -> Instant;

    /// Lets time pass: at most this span, and less if something has arrived.
    fn idle(&mut self, at_most: Duration);

    /// Connects to the server that is at the seat now; `None` if there is none. A client that
    /// `lags` still knows the former server of a seat.
    fn open(&mut self, seat: usize, lags: bool) -> Option<Self::Line>;

    fn write(&mut self, line: &mut Self::Line, bytes: &[u8]);

    /// What has arrived; `None` at the end of the connection.
    fn read(&mut self, line: &mut Self::Line) -> Option<Vec<u8>>;
}

/// Numbers that look random and are the same in each run.
pub struct Seeded(pub u64);

impl Entropy for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            [.., *byte] = (self.0 >> 33).to_be_bytes();
        }
        Ok(())
    }
}

struct Link<L> {
    master: MasterId,
    seat: usize,
    generation: u32,
    line: L,
    /// Bytes that are held back on their way to the server.
    held: Vec<u8>,
}

pub struct Client<S: Site> {
    pub machine: Machine<Seeded>,
    links: Vec<Link<S::Line>>,
    ids: Vec<MasterId>,
    /// Which seats it can connect to.
    reach: [bool; SEATS],
    /// Whether requests to a seat stay on their way.
    holds: [bool; SEATS],
    lags: bool,
    pub events: Vec<Event>,
    wake: Option<Instant>,
}

impl<S: Site> Client<S> {
    /// A client that has connected to the seats that it reaches.
    pub fn new(site: &mut S, config: Config, seed: u64, reach: [bool; SEATS]) -> Self {
        Self::knowing(site, config, seed, reach, false)
    }

    /// The same, but it does not learn that another server has taken a seat.
    pub fn lagging(site: &mut S, config: Config, seed: u64, reach: [bool; SEATS]) -> Self {
        Self::knowing(site, config, seed, reach, true)
    }

    fn knowing(site: &mut S, config: Config, seed: u64, reach: [bool; SEATS], lags: bool) -> Self {
        let ids = config.master_ids().collect();
        let machine = Machine::new(config, Seeded(seed), site.now());
        let mut client = Self {
            machine,
            links: Vec::new(),
            ids,
            reach,
            holds: [false; SEATS],
            lags,
            events: Vec::new(),
            wake: None,
        };
        client.settle(site);
        client
    }

    fn drain(&mut self, site: &mut S) {
        loop {
            match self.machine.poll_output() {
                Output::Connect { master, generation, .. } => {
                    let seat = self.ids.iter().position(|id| *id == master).unwrap();
                    let line = if self.reach[seat] { site.open(seat, self.lags) } else { None };
                    let now = site.now();
                    if let Some(line) = line {
                        self.links.push(Link { master, seat, generation, line, held: Vec::new() });
                        self.machine.connected(master, generation, now);
                    } else {
                        let refused = Cause::Connect(IoFault::new(std::io::ErrorKind::ConnectionRefused));
                        self.machine.closed(master, generation, refused, now);
                    }
                }
                Output::Write { master, generation, bytes } => {
                    let is_of =
                        |link: &&mut Link<S::Line>| (link.master, link.generation) == (master, generation);
                    let Some(link) = self.links.iter_mut().find(is_of) else { continue };
                    if self.holds[link.seat] {
                        link.held.extend_from_slice(bytes);
                    } else {
                        site.write(&mut link.line, bytes);
                    }
                }
                Output::Close { master, generation } => {
                    self.links.retain(|link| (link.master, link.generation) != (master, generation));
                }
                Output::Event(event) => self.events.push(event),
                Output::Wake(wake) => {
                    self.wake = wake.map(|wake| wake.at);
                    return;
                }
            }
        }
    }

    /// Reads every connection once. Returns whether anything happened.
    fn turn(&mut self, site: &mut S) -> bool {
        self.drain(site);
        let mut heard = Vec::new();
        for link in &mut self.links {
            match site.read(&mut link.line) {
                Some(bytes) if bytes.is_empty() => {}
                said => heard.push((link.master, link.generation, said)),
            }
        }
        let is_due = self.wake.is_some_and(|at| at <= site.now());
        let moved = !heard.is_empty();
        for (master, generation, said) in heard {
            match said {
                Some(bytes) => self.machine.received(master, generation, &bytes, site.now()),
                None => {
                    self.links.retain(|link| (link.master, link.generation) != (master, generation));
                    self.machine.closed(master, generation, Cause::Closed, site.now());
                }
            }
            self.drain(site);
        }
        if is_due {
            self.machine.time_passed(site.now());
            self.drain(site);
        }
        moved
    }

    /// Runs until this is so. Returns `false` if it is not within the limit.
    pub fn until(&mut self, site: &mut S, limit: Duration, is_so: impl Fn(&Self) -> bool) -> bool {
        let end = site.now() + limit;
        loop {
            let moved = self.turn(site);
            if is_so(self) {
                return true;
            }
            if site.now() >= end {
                return false;
            }
            if !moved {
                let wake = self.wake.map_or(limit, |at| at.since(site.now()));
                site.idle(wake.min(end.since(site.now())).max(Duration::from_micros(100)));
            }
        }
    }

    /// Runs until nothing has happened for a while.
    pub fn settle(&mut self, site: &mut S) {
        const QUIET: Duration = Duration::from_millis(12);
        let mut quiet_since = site.now();
        for _ in 0..10_000 {
            if self.turn(site) {
                quiet_since = site.now();
            } else if site.now().since(quiet_since) >= QUIET {
                return;
            } else {
                site.idle(Duration::from_millis(3));
            }
        }
        panic!("a client never comes to rest");
    }

    /// Whether all seats that it reaches are connected and serve it.
    pub fn is_ready(&self) -> bool {
        let ready =
            |state: &quorlock_core::MasterState| matches!(state, quorlock_core::MasterState::Ready { .. });
        let states = self.machine.masters().map(|(_, state)| state);
        states.zip(self.reach).all(|(state, reached)| !reached || ready(&state))
    }

    /// From now on a seat cannot be reached.
    pub fn part_from(&mut self, site: &mut S, seat: usize) {
        self.reach[seat] = false;
        let gone: Vec<_> = self
            .links
            .iter()
            .filter(|link| link.seat == seat)
            .map(|link| (link.master, link.generation))
            .collect();
        self.links.retain(|link| link.seat != seat);
        for (master, generation) in gone {
            self.machine.closed(master, generation, Cause::Closed, site.now());
        }
        self.drain(site);
    }

    /// From now on a seat can be reached again.
    pub fn rejoin(&mut self, seat: usize) {
        self.reach[seat] = true;
    }

    /// Requests to a seat stay on their way from now on.
    pub fn hold_back(&mut self, seat: usize) {
        self.holds[seat] = true;
    }

    /// What was held back arrives.
    pub fn let_through(&mut self, site: &mut S, seat: usize) {
        self.holds[seat] = false;
        for link in self.links.iter_mut().filter(|link| link.seat == seat) {
            let held = std::mem::take(&mut link.held);
            site.write(&mut link.line, &held);
        }
    }

    pub fn seek(&mut self, site: &mut S, asked: &Acquire) -> LockId {
        let lock = self.machine.acquire(asked, site.now()).unwrap();
        self.drain(site);
        lock
    }

    /// Takes the lock if it has been granted. Returns until when it is valid.
    pub fn taken(&mut self, site: &mut S, lock: LockId) -> Option<Instant> {
        let is_granted = |event: &Event| matches!(event, Event::Granted { lock: of, .. } if *of == lock);
        let place = self.events.iter().position(is_granted)?;
        self.events.remove(place);
        let valid_until = self.machine.take(lock, site.now());
        self.drain(site);
        valid_until
    }

    /// Seeks a lock with a single attempt. Returns it, and until when it is valid.
    pub fn try_for(&mut self, site: &mut S, asked: &Acquire) -> Option<(LockId, Instant)> {
        let lock = self.seek(site, asked);
        self.event_soon(site, lock);
        let valid_until = self.taken(site, lock)?;
        Some((lock, valid_until))
    }

    /// Waits for an event about a lock. Returns its place.
    pub fn event_soon(&mut self, site: &mut S, lock: LockId) -> Option<usize> {
        const SOON: Duration = Duration::from_millis(600);
        let is_of = |event: &Event| event.lock() == lock;
        self.until(site, SOON, |client| client.events.iter().any(is_of));
        self.events.iter().position(is_of)
    }

    /// The next event about a lock, if one comes soon.
    pub fn event_of(&mut self, site: &mut S, lock: LockId) -> Option<Event> {
        let place = self.event_soon(site, lock)?;
        Some(self.events.remove(place))
    }
}
