//! The async driver on a runtime whose sockets and timers are values, with model masters behind
//! them.

use std::future::{Future, IntoFuture};
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock_core::front::{Driver, Host, Locker, Released, Runtime, Socket, Timer};
use quorlock_core::{Config, EntropyFailed, Instant, MasterState};
use quorlock_sim::{Master, Session};

use super::task::{Task, Woken};

/// The system, the runtime and the masters together.
#[derive(Clone, Default)]
pub(crate) struct World(Arc<Mutex<State>>);

#[derive(Default)]
pub(crate) struct State {
    pub(crate) now: Duration,
    is_forked: bool,
    drawn: u8,
    pub(crate) wires: Vec<Wire>,
    /// How often a timer was set, and the time for which it was set last.
    pub(crate) timers_set: usize,
    pub(crate) alarm: Duration,
    /// The timers fire before their time.
    pub(crate) timers_are_early: bool,
    /// The addresses that were connected to, in order.
    pub(crate) connected: Vec<SocketAddr>,
    sockets_dropped: usize,
}

/// The connection between a socket and its master.
pub(crate) struct Wire {
    master: Master,
    session: Session,
    sent: Vec<u8>,
    pub(crate) received: Vec<u8>,
    is_full: bool,
    pub(crate) is_flooded: bool,
    /// The master reads nothing that is sent.
    pub(crate) is_silent: bool,
    pub(crate) reads: usize,
    retries: usize,
}

impl World {
    /// A locker over this many masters, with its driver.
    pub(crate) fn open(masters: u64) -> (Self, Locker, Driver) {
        let world = Self::default();
        world.state().now = Duration::from_secs(1);
        world.state().wires.extend((0..masters).map(|number| Wire {
            master: Master::new(number),
            session: Session::new(),
            sent: Vec::new(),
            received: Vec::new(),
            is_full: false,
            is_flooded: false,
            is_silent: false,
            reads: 0,
            retries: 0,
        }));
        let config = Config::new((0..masters).map(|number| format!("redis://master{number}"))).unwrap();
        let (locker, driver) = Driver::open(config, Arc::new(world.clone()), world.clone());
        (world, locker, driver)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// As [`World::open`], but all masters are ready.
    pub(crate) fn connected(masters: u64) -> (Self, Locker, Driver) {
        let (world, locker, mut driver) = Self::open(masters);
        let is_ready = |state: &MasterState| matches!(state, MasterState::Ready { .. });
        while !locker.masters().iter().all(|(_, state)| is_ready(state)) {
            assert!(turn(&mut driver).is_pending());
        }
        // In this turn there is nothing more to read.
        assert!(turn(&mut driver).is_pending());
        (world, locker, driver)
    }
}

pub(crate) fn turn(driver: &mut Driver) -> Poll<()> {
    pin!(driver).poll(&mut Context::from_waker(Waker::noop()))
}

impl Host for World {
    fn now(&self) -> Instant {
        Instant::ORIGIN + self.state().now
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        let mut state = self.state();
        state.drawn += 1;
        bytes.fill(state.drawn);
        Ok(())
    }

    fn is_forked(&self) -> bool {
        self.state().is_forked
    }

    fn block_on(&self, _: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {}
}

impl Runtime for World {
    type Socket = End;
    type Timer = Alarm;

    fn timer(&self, span: Duration) -> Alarm {
        let mut alarm = Alarm { world: self.clone(), at: Duration::ZERO };
        alarm.reset(span);
        alarm
    }

    async fn resolve(self, host: String, _: u16) -> io::Result<Vec<SocketAddr>> {
        let place = host.strip_prefix("master").unwrap().parse().unwrap();
        Ok([1, 2].map(|last| SocketAddr::from(([192, 0, 2, last], place))).into())
    }

    async fn connect(self, to: SocketAddr) -> io::Result<End> {
        let end = End { world: self, place: to.port().into() };
        end.world.state().connected.push(to);
        end.with_wire(|wire| {
            wire.session = Session::new();
            wire.sent.clear();
            wire.received.clear();
        });
        Ok(end)
    }
}

/// The client's end of a wire.
pub(crate) struct End {
    world: World,
    place: usize,
}

impl End {
    fn with_wire<R>(&self, act: impl FnOnce(&mut Wire) -> R) -> R {
        act(&mut self.world.state().wires[self.place])
    }

    /// Makes the master answer what it was sent.
    fn serve(&self) {
        let now = self.world.state().now;
        self.with_wire(|wire| {
            if wire.is_silent {
                return;
            }
            let sent = std::mem::take(&mut wire.sent);
            let _ = wire.master.serve(&mut wire.session, &sent, now, &mut wire.received);
        });
    }
}

/// The write side of a wire.
struct Sink(World, usize);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let wire = &mut self.0.state().wires[self.1];
        if wire.is_full {
            return Err(ErrorKind::WouldBlock.into());
        }
        wire.sent.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Socket for End {
    fn sink(&self) -> impl Write + Send + 'static {
        Sink(self.world.clone(), self.place)
    }

    fn poll_read(&mut self, _: &mut Context<'_>, buffer: &mut [u8], _: bool) -> Poll<io::Result<usize>> {
        self.serve();
        self.with_wire(|wire| {
            wire.reads += 1;
            if wire.is_flooded {
                // A part of a string that has not ended.
                buffer[0] = b'x';
                return Poll::Ready(Ok(1));
            }
            let length = wire.received.len().min(buffer.len());
            buffer[..length].copy_from_slice(&wire.received[..length]);
            wire.received.drain(..length);
            if length == 0 { Poll::Pending } else { Poll::Ready(Ok(length)) }
        })
    }

    fn poll_readable(&mut self, _: &mut Context<'_>) -> Poll<()> {
        self.serve();
        let is_readable = self.with_wire(|wire| wire.is_flooded || !wire.received.is_empty());
        if is_readable { Poll::Ready(()) } else { Poll::Pending }
    }

    fn poll_write(&mut self, _: &mut Context<'_>, write: &mut dyn FnMut() -> bool) -> Poll<()> {
        self.with_wire(|wire| wire.retries += 1);
        if write() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.world.state().sockets_dropped += 1;
    }
}

pub(crate) struct Alarm {
    world: World,
    at: Duration,
}

impl Timer for Alarm {
    fn reset(&mut self, span: Duration) {
        let mut state = self.world.state();
        state.timers_set += 1;
        self.at = state.now + span;
        state.alarm = self.at;
    }

    fn poll_elapsed(&mut self, _: &mut Context<'_>) -> Poll<()> {
        let state = self.world.state();
        if state.now < self.at && !state.timers_are_early { Poll::Pending } else { Poll::Ready(()) }
    }
}

#[test]
fn a_lock_is_acquired_and_released_and_the_driver_ends_with_its_last_user() {
    let (world, locker, mut driver) = World::open(3);
    let mut cx = Context::from_waker(Waker::noop());
    let guard = {
        let mut seeking = pin!(locker.lock("job").into_future());
        loop {
            if let Poll::Ready(guard) = seeking.as_mut().poll(&mut cx) {
                break guard.unwrap();
            }
            assert!(turn(&mut driver).is_pending());
        }
    };
    assert!(guard.is_valid());
    let mut releasing = Box::pin(guard.release());
    let outcome = loop {
        if let Poll::Ready(outcome) = releasing.as_mut().poll(&mut cx) {
            break outcome;
        }
        assert!(turn(&mut driver).is_pending());
    };
    assert_eq!(outcome, Ok(Released::Freed));
    let now = world.state().now;
    assert!(world.state().wires.iter().all(|wire| wire.master.keys(now).count() == 0));

    drop((releasing, locker));
    assert!((0..4).any(|_| turn(&mut driver).is_ready()));
}

#[test]
fn the_driver_ends_if_a_caller_that_it_has_woken_is_its_last_user() {
    let (_world, locker, mut driver) = World::connected(1);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    let mut turn = || pin!(&mut driver).poll(&mut cx);
    let mut seeking = Task::start(locker.lock("job"));
    assert!(turn().is_pending());
    drop(seeking.guard().hand_over());

    drop((seeking, locker));

    // An executor polls the driver only if it was woken.
    while woken.take() {
        if turn().is_ready() {
            return;
        }
    }
    panic!("nothing wakes the driver, and it has not ended");
}

/// The driver may be woken because a full socket has room, and it is woken for that only once.
#[test]
fn a_full_socket_is_tried_again_also_in_the_turn_behind_callers_that_were_woken() {
    let (world, locker, mut driver) = World::connected(3);
    let mut cx = Context::from_waker(Waker::noop());
    let mut seeking = pin!(locker.lock("job").into_future());
    world.state().wires[0].is_full = true;
    assert!(seeking.as_mut().poll(&mut cx).is_pending());
    // The other masters grant the lock, and the caller is woken.
    assert!(turn(&mut driver).is_pending());
    let before = world.state().wires[0].retries;
    world.state().wires[0].is_full = false;

    assert!(turn(&mut driver).is_pending());

    assert!(world.state().wires[0].retries > before);
    assert_eq!(world.state().wires[0].master.keys(Duration::from_secs(1)).count(), 0, "not served yet");
    assert!(turn(&mut driver).is_pending());
    assert_eq!(world.state().wires[0].master.keys(Duration::from_secs(1)).count(), 1);
}

#[test]
fn the_timer_is_set_again_only_for_an_earlier_time_or_when_it_has_run_out() {
    let (world, locker, mut driver) = World::connected(3);
    let mut locks = || {
        let mut seeking = Box::pin(locker.lock("job").into_future());
        let mut cx = Context::from_waker(Waker::noop());
        while seeking.as_mut().poll(&mut cx).is_pending() {
            assert!(turn(&mut driver).is_pending());
        }
        while turn(&mut driver).is_pending() && world.state().wires.iter().any(|wire| !wire.sent.is_empty()) {
        }
    };
    locks();
    let set = world.state().timers_set;
    for _ in 0..100 {
        world.state().now += Duration::from_micros(10);
        locks();
    }
    assert_eq!(world.state().timers_set, set);
}

#[test]
fn a_master_that_sends_without_end_leaves_the_others_their_share_of_a_turn() {
    let (world, locker, mut driver) = World::connected(3);
    let mut cx = Context::from_waker(Waker::noop());
    let mut seeking = pin!(locker.lock("job").into_future());
    assert!(seeking.as_mut().poll(&mut cx).is_pending());
    world.state().wires[0].received = b"$60000\r\n".to_vec();
    assert!(turn(&mut driver).is_pending());
    world.state().wires[0].is_flooded = true;
    let before = world.state().wires[0].reads;

    assert!(turn(&mut driver).is_pending());

    let reads = world.state().wires[0].reads - before;
    assert!((2..=16).contains(&reads), "{reads} reads");
    assert!(seeking.as_mut().poll(&mut cx).is_ready());
}

#[test]
fn a_forked_child_leaves_the_sockets_alone() {
    let (world, locker, mut driver) = World::connected(3);
    world.state().is_forked = true;
    assert!(turn(&mut driver).is_ready());
    drop((driver, locker));
    assert_eq!(world.state().sockets_dropped, 0);
}

#[test]
fn a_driver_that_is_dropped_closes_its_connections() {
    let (world, _locker, driver) = World::connected(3);
    drop(driver);
    assert_eq!(world.state().sockets_dropped, 3);
}
