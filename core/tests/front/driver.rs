//! A driver whose sockets are values, with model masters behind them.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock_core::front::{Demand, Host, Locker, Port};
use quorlock_core::{Cause, Channel, Config, EntropyFailed, Instant, IoFault, MasterId, Unavailable};
use quorlock_sim::{Master, Session};

use super::toy_channel::Side;

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The most turns in a row before a test fails. While a caller waits, each turn passes a
/// millisecond. The longest wait of these tests takes a tenth of these turns. Without a bound, one
/// fault hides the results of all other tests.
const MOST_TURNS: u32 = 100_000;

/// How a socket accepts bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    Whole,
    /// Accepts at most this many bytes, and every other time none: then it is full, and has room
    /// again a moment later.
    Few(usize),
    /// Every other call is interrupted by a signal.
    Interrupted,
    /// Never accepts any.
    Full,
    /// Reports that it accepted none, without an error.
    Nothing,
    /// Fails, because the other side has gone.
    Broken,
    /// There is no socket: each opening fails in the turn that asked for it.
    Unreachable,
}

struct Wire {
    manner: Manner,
    calls: usize,
    master: Master,
    session: Session,
    sent: Vec<u8>,
    generation: u32,
    /// The addresses to which its connections were opened.
    destinations: Vec<String>,
    /// The channel, if the master's URL asks for TLS.
    channel: Option<Side>,
    /// The master reads nothing that is sent.
    is_hushed: bool,
}

impl Wire {
    /// The master reads the sent bytes, and answers.
    fn serve(&mut self, sent: &[u8], now: Duration, replies: &mut Vec<u8>) {
        let Some(channel) = &mut self.channel else {
            let _ = self.master.serve(&mut self.session, sent, now, replies);
            return;
        };
        let (mut plain, mut answers) = (Vec::new(), Vec::new());
        channel.open(sent, &mut plain, replies).expect("a toy does not fail");
        let _ = self.master.serve(&mut self.session, &plain, now, &mut answers);
        if !answers.is_empty() {
            channel.seal(&answers, replies).expect("a toy does not fail");
        }
    }
}

/// The state of a front's driver, which a waiting thread uses.
pub struct Driver {
    now: Mutex<Instant>,
    has_entropy: bool,
    is_forked: AtomicBool,
    /// The contents of every password file, if they can be read.
    file: Mutex<Option<Vec<u8>>>,
    /// How often random bytes were drawn.
    drawn: AtomicU8,
    wires: Mutex<Vec<Wire>>,
    port: Mutex<Option<Port>>,
    ids: Vec<MasterId>,
}

impl Driver {
    /// A locker over this many masters, whose connections are asked for.
    pub fn start(masters: usize) -> (Locker, Arc<Self>) {
        Self::with(masters, true)
    }

    pub fn with(masters: usize, has_entropy: bool) -> (Locker, Arc<Self>) {
        let config = Config::new((0..masters).map(|number| format!("redis://master{number}"))).unwrap();
        Self::over(config, has_entropy)
    }

    pub fn over(config: Config, has_entropy: bool) -> (Locker, Arc<Self>) {
        let is_secured: Vec<_> = config.masters().iter().map(|endpoint| endpoint.tls().is_some()).collect();
        let wire = |(number, is_secured): (u64, bool)| Wire {
            channel: is_secured.then(Side::default),
            is_hushed: false,
            manner: Manner::Whole,
            calls: 0,
            master: Master::new(number),
            session: Session::new(),
            sent: Vec::new(),
            generation: 0,
            destinations: Vec::new(),
        };
        let driver = Arc::new(Self {
            now: Mutex::new(Instant::from_nanos(1_000_000_000)),
            has_entropy,
            is_forked: AtomicBool::new(false),
            file: Mutex::new(None),
            drawn: AtomicU8::new(7),
            wires: Mutex::new((0..).zip(is_secured).map(wire).collect()),
            port: Mutex::new(None),
            ids: config.master_ids().collect(),
        });
        let host: Arc<dyn Host> = driver.clone();
        let (locker, port) = Port::new(config, host);
        *driver.port.lock().unwrap() = Some(port);
        (locker, driver)
    }

    pub fn takes(&self, master: usize, manner: Manner) {
        self.wires.lock().unwrap()[master].manner = manner;
    }

    pub fn with_port<R>(&self, look: impl FnOnce(&mut Port) -> R) -> R {
        look(self.port.lock().unwrap().as_mut().expect("a driver that has not ended"))
    }

    /// The loop ends, and nothing drives the port any more.
    pub fn end(&self) {
        let port = self.port.lock().unwrap().take();
        drop(port);
    }

    pub fn is_blocked(&self, master: usize) -> bool {
        self.with_port(|port| port.is_blocked(self.ids[master]))
    }

    pub fn retry(&self, master: usize) -> bool {
        self.with_port(|port| port.retry_write(self.ids[master]))
    }

    pub fn lose(&self, master: usize) {
        let generation = self.wires.lock().unwrap()[master].generation;
        self.with_port(|port| port.closed(self.ids[master], generation, Cause::Closed));
    }

    /// How often this master's socket was written to.
    pub fn writes(&self, master: usize) -> usize {
        self.wires.lock().unwrap()[master].calls
    }

    /// Makes the master read nothing that is sent to it, or read again.
    pub fn hush(&self, master: usize, is_hushed: bool) {
        self.wires.lock().unwrap()[master].is_hushed = is_hushed;
    }

    /// The other side of a channel sends a control message that requests an answer.
    pub fn channel_asks(&self, master: usize) {
        self.channel_says(master, |channel, said| channel.ask(said));
    }

    /// The other side of a channel ends it.
    pub fn end_channel(&self, master: usize) {
        self.channel_says(master, |channel, said| channel.close(said));
    }

    fn channel_says(&self, master: usize, say: impl FnOnce(&mut Side, &mut Vec<u8>)) {
        let mut said = Vec::new();
        let generation = {
            let wire = &mut self.wires.lock().unwrap()[master];
            say(wire.channel.as_mut().expect("a secured master"), &mut said);
            wire.generation
        };
        self.with_port(|port| port.received(self.ids[master], generation, &said));
    }

    /// Changes the behaviour of a socket.
    pub fn with_master<R>(&self, master: usize, change: impl FnOnce(&mut Master) -> R) -> R {
        change(&mut self.wires.lock().unwrap()[master].master)
    }

    /// How many keys this master holds.
    pub fn keys(&self, master: usize) -> usize {
        let now = self.server_time();
        self.wires.lock().unwrap()[master].master.keys(now).count()
    }

    /// From now on password files can be read, and contain these bytes.
    pub fn has_file(&self, bytes: &[u8]) {
        *self.file.lock().unwrap() = Some(bytes.to_vec());
    }

    /// Makes this the copy in a forked child.
    pub fn fork(&self) {
        self.is_forked.store(true, Ordering::SeqCst);
    }

    pub fn pass(&self, span: Duration) {
        let mut now = self.now.lock().unwrap();
        *now = *now + span;
    }

    fn server_time(&self) -> Duration {
        Duration::from_nanos(self.now.lock().unwrap().as_nanos())
    }

    /// One turn: read, tick, carry out demands. Returns whether there is more to do.
    pub fn turn(self: &Arc<Self>) -> bool {
        self.turn_as(&|| Arc::clone(self))
    }

    fn turn_as(&self, driver: &dyn Fn() -> Arc<Self>) -> bool {
        let mut port = self.port.lock().unwrap();
        let Some(port) = port.as_mut() else { return false };
        port.register(Waker::noop());
        let mut is_busy = false;
        for (place, id) in self.ids.iter().enumerate() {
            let now = self.server_time();
            let (generation, mut replies) = (self.wires.lock().unwrap()[place].generation, Vec::new());
            {
                let wire = &mut self.wires.lock().unwrap()[place];
                let sent = if wire.is_hushed { Vec::new() } else { std::mem::take(&mut wire.sent) };
                wire.serve(&sent, now, &mut replies);
            }
            if !replies.is_empty() {
                is_busy = true;
                port.received(*id, generation, &replies);
            }
        }
        port.tick();
        while let Some(demand) = port.next_demand() {
            is_busy = true;
            if let Demand::Connect { master, generation, address } = demand {
                let manner = {
                    let wire = &mut self.wires.lock().unwrap()[master.index()];
                    wire.destinations.push(address.to_string());
                    (wire.session, wire.generation) = (Session::new(), generation);
                    wire.channel = wire.channel.is_some().then(Side::default);
                    wire.sent.clear();
                    wire.manner
                };
                if manner == Manner::Unreachable {
                    port.closed(
                        master,
                        generation,
                        Cause::Connect(IoFault::new(io::ErrorKind::NetworkUnreachable)),
                    );
                } else {
                    port.opened(master, generation, Sink { driver: driver(), place: master.index() });
                }
            }
        }
        is_busy || self.wires.lock().unwrap().iter().any(|wire| !wire.sent.is_empty() && !wire.is_hushed)
    }

    /// The addresses to which the connections of a master were opened, in order.
    pub fn destinations(&self, master: usize) -> Vec<String> {
        self.wires.lock().unwrap()[master].destinations.clone()
    }

    /// The bytes that arrived on the present connection to a master.
    pub fn hears(&self, master: usize, bytes: &[u8]) {
        let generation = self.wires.lock().unwrap()[master].generation;
        self.with_port(|port| port.received(self.ids[master], generation, bytes));
    }

    /// Takes turns until nothing more happens without time.
    pub fn settle(self: &Arc<Self>) {
        assert!((0..MOST_TURNS).any(|_| !self.turn()), "there is always more to do");
    }
}

impl Host for Driver {
    fn now(&self) -> Instant {
        *self.now.lock().unwrap()
    }

    fn is_forked(&self) -> bool {
        self.is_forked.load(Ordering::SeqCst)
    }

    fn read_password(&self, _: &Path) -> Result<Vec<u8>, Unavailable> {
        let bytes = self.file.lock().unwrap().clone();
        bytes.ok_or(Unavailable::Unreadable(IoFault::new(io::ErrorKind::Unsupported)))
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        bytes.fill(self.drawn.fetch_add(1, Ordering::Relaxed));
        if self.has_entropy { Ok(()) } else { Err(EntropyFailed) }
    }

    /// A caller that waits drives. A connection that is requested meanwhile stays requested:
    /// nothing here can open it.
    fn block_on(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
        let mut cx = Context::from_waker(Waker::noop());
        let mut turns = 0..MOST_TURNS;
        while poll(&mut cx).is_pending() {
            assert!(turns.next().is_some(), "the caller waits without an end");
            if self.port.lock().unwrap().is_none() {
                return;
            }
            self.turn_as(&|| panic!("a connection was asked for"));
            self.pass(ms(1));
        }
    }
}

struct Sink {
    driver: Arc<Driver>,
    place: usize,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let wire = &mut self.driver.wires.lock().unwrap()[self.place];
        wire.calls += 1;
        let is_odd = wire.calls % 2 == 1;
        let taken = match wire.manner {
            Manner::Few(_) | Manner::Full if is_odd => return Err(io::ErrorKind::WouldBlock.into()),
            Manner::Interrupted if is_odd => return Err(io::ErrorKind::Interrupted.into()),
            Manner::Full => return Err(io::ErrorKind::WouldBlock.into()),
            Manner::Broken | Manner::Unreachable => return Err(io::ErrorKind::BrokenPipe.into()),
            Manner::Nothing => 0,
            Manner::Few(most) => most.min(bytes.len()),
            Manner::Whole | Manner::Interrupted => bytes.len(),
        };
        wire.sent.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
