//! Explores the interleavings of the front's concurrent types with loom: `.ci/loom`, and `tests/PROOFS.md`.
//!
//! loom runs a model again and again, each time in another order and with other values where an atomic may return an old one. A
//! lost wake-up is a deadlock there: a thread that sleeps for ever.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as Count, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::{Condvar, Mutex};
use loom::thread;

use super::driver_side::DriverSide;
use super::observe::Subject;
use super::outbox::{Outbox, Outputs};
use super::port::Demand;
use super::slot::Slot;
use super::sync::lock;
use super::wake::Woken;
use crate::protocol::{LossCause, MasterId};
use crate::time::Instant;

/// Runs `model` in every order with at most `preemptions` switches away from a thread that could go on (`None`: any number).
/// `LOOM_MAX_PREEMPTIONS` takes its place.
fn explore(name: &str, preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let executions = Arc::new(Count::new(0));
    let counted = Arc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(preemptions);
    let bound = builder.preemption_bound;
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let executions = executions.load(Ordering::Relaxed);
    let bound = bound.map_or("any number of".to_owned(), |bound| format!("at most {bound}"));
    println!("{name}: {executions} executions, {bound} preemptions");
}

/// A thread that sleeps until it is woken.
#[derive(Default)]
struct Sleeper {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Sleeper {
    fn sleep(&self) {
        let mut woken = lock(&self.woken);
        while !std::mem::take(&mut *woken) {
            woken = self.changed.wait(woken).unwrap();
        }
    }

    fn sleep_until<T>(self: &Arc<Self>, mut poll: impl FnMut(&Context<'_>) -> Poll<T>) -> T {
        let waker = Waker::from(Arc::clone(self));
        loop {
            if let Poll::Ready(value) = poll(&Context::from_waker(&waker)) {
                return value;
            }
            self.sleep();
        }
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        *lock(&self.woken) = true;
        self.changed.notify_one();
    }
}

/// An outbox whose outputs are counted.
struct Counter {
    outbox: Outbox<u32>,
    outputs: Mutex<u32>,
}

impl Outputs for Counter {
    type Writer = u32;
    type Rest = u32;

    fn drain(&self, written: &mut u32, rest: &mut u32) {
        let outputs = std::mem::take(&mut *lock(&self.outputs));
        *written += outputs;
        *rest += outputs;
    }

    fn finish(&self, rest: u32) -> bool {
        rest > 0
    }
}

impl Counter {
    fn new() -> Arc<Self> {
        Arc::new(Self { outbox: Outbox::new(0), outputs: Mutex::new(0) })
    }

    fn ask(&self) {
        *lock(&self.outputs) += 1;
        self.outbox.flush(self);
    }

    fn assert_carried_out(&self) {
        assert_eq!(*lock(&self.outputs), 0, "outputs that nobody carries out");
    }
}

/// Runs these on threads of their own, the last on the present one; then nothing may be left.
fn race<const N: usize>(acts: [fn(&Counter); N]) {
    let counter = Counter::new();
    let threads = acts.map(|act| {
        let counter = Arc::clone(&counter);
        thread::spawn(move || act(&counter))
    });
    for thread in threads {
        thread.join().unwrap();
    }
    counter.assert_carried_out();
}

fn ask(counter: &Counter) {
    counter.ask();
}

fn ask_twice_gathered(counter: &Counter) {
    counter.outbox.gathered(counter, || {
        counter.ask();
        counter.ask();
    });
}

fn use_the_writer(counter: &Counter) {
    counter.outbox.with_writer(counter, |written| *written += 1);
}

fn take_a_turn(counter: &Counter) {
    counter.outbox.begin_gathering(counter);
    counter.outbox.end_gathering(counter);
}

#[test]
fn two_callers_leave_no_output() {
    explore("two callers", None, || race([ask, ask]));
}

#[test]
fn three_callers_leave_no_output() {
    explore("three callers", Some(3), || race([ask, ask, ask]));
}

#[test]
fn callers_that_gather_leave_no_output() {
    explore("a caller beside one that gathers", Some(4), || race([ask, ask_twice_gathered]));
}

#[test]
fn a_caller_beside_a_use_of_the_writer_leaves_no_output() {
    explore("a caller beside a use of the writer", None, || race([ask, use_the_writer]));
}

#[test]
fn a_caller_beside_a_turn_of_the_driver_leaves_no_output() {
    explore("a caller beside a turn of the driver", None, || race([ask, take_a_turn]));
}

#[test]
fn two_callers_beside_a_turn_of_the_driver_leave_no_output() {
    explore("two callers beside a turn of the driver", Some(3), || race([ask, ask, take_a_turn]));
}

/// A machine that must have a connection opened by the driver before it grants what a caller asks for.
struct World {
    machine: Mutex<Machine>,
    outbox: Outbox<()>,
    driver: DriverSide,
    slots: [Slot; 2],
}

#[derive(Default)]
struct Machine {
    wants_a_connection: bool,
    is_connected: bool,
    asked: [bool; 2],
    /// When it wants to be woken.
    deadline: Option<Instant>,
}

impl Outputs for World {
    type Writer = ();
    type Rest = Woken;

    fn drain(&self, (): &mut (), woken: &mut Woken) {
        let (demands, deadline) = {
            let mut machine = lock(&self.machine);
            let wants_a_connection = std::mem::take(&mut machine.wants_a_connection);
            if machine.is_connected {
                for (asked, slot) in machine.asked.iter_mut().zip(&self.slots) {
                    if std::mem::take(asked) {
                        slot.end(LossCause::Released, woken);
                    }
                }
            }
            let master = MasterId::all(1).next().unwrap();
            let demand = wants_a_connection.then_some(Demand::Connect { master, generation: 0 });
            (demand.into_iter().collect(), machine.deadline)
        };
        self.driver.tell(demands, deadline, false, woken);
    }

    fn finish(&self, woken: Woken) -> bool {
        let is_any = woken.len() > 0;
        woken.wake();
        is_any
    }
}

impl World {
    fn new(users: usize) -> Arc<Self> {
        let world = Self {
            machine: Mutex::default(),
            outbox: Outbox::new(()),
            driver: DriverSide::default(),
            slots: [Slot::new(Subject::none()), Slot::new(Subject::none())],
        };
        (0..users).for_each(|_| world.driver.add_user());
        Arc::new(world)
    }

    /// What a caller does: it asks, waits for the answer, and is a user no longer.
    fn call(&self, place: usize) {
        let sleeper = Arc::new(Sleeper::default());
        {
            let mut machine = lock(&self.machine);
            machine.asked[place] = true;
            machine.wants_a_connection = !machine.is_connected;
        }
        self.outbox.flush(self);
        let watcher = self.slots[place].new_watcher();
        sleeper.sleep_until(|cx| self.slots[place].poll_lost(watcher, cx));
        self.driver.remove_user();
    }

    /// The driver's turns in the order of `Port`'s documentation, until nobody uses the locker any more.
    fn drive(&self) {
        let sleeper = Arc::new(Sleeper::default());
        let waker = Waker::from(Arc::clone(&sleeper));
        loop {
            self.outbox.end_gathering(self);
            self.driver.register(&waker, Instant::ORIGIN);
            self.outbox.begin_gathering(self);
            while self.driver.next_demand().is_some() {
                lock(&self.machine).is_connected = true;
                self.outbox.flush_now(self);
            }
            if !self.driver.has_users() {
                return;
            }
            self.outbox.end_gathering(self);
            self.driver.arm(Instant::ORIGIN);
            if !self.driver.has_demands() {
                sleeper.sleep();
            }
        }
    }
}

#[test]
fn a_caller_and_its_driver_both_come_to_an_end() {
    explore("a caller and its driver", Some(4), || {
        let world = World::new(1);
        let driver = thread::spawn({
            let world = Arc::clone(&world);
            move || world.drive()
        });
        world.call(0);
        driver.join().unwrap();
    });
}

#[test]
fn two_callers_and_their_driver_all_come_to_an_end() {
    explore("two callers and their driver", Some(2), || {
        let world = World::new(2);
        let [driver, caller] = [World::drive as fn(&World), |world: &World| world.call(1)].map(|act| {
            let world = Arc::clone(&world);
            thread::spawn(move || act(&world))
        });
        world.call(0);
        caller.join().unwrap();
        driver.join().unwrap();
    });
}

#[test]
fn a_deadline_that_comes_nearer_wakes_the_driver_or_is_what_it_sleeps_for() {
    let at = |nanos| Instant::ORIGIN + std::time::Duration::from_nanos(nanos);
    explore("a deadline beside a turn of the driver", Some(3), move || {
        let world = World::new(0);
        lock(&world.machine).deadline = Some(at(20));
        world.outbox.flush_now(&*world);
        let sleeper = Arc::new(Sleeper::default());
        let waker = Waker::from(Arc::clone(&sleeper));
        let caller = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                lock(&world.machine).deadline = Some(at(10));
                world.outbox.flush(&*world);
            }
        });
        loop {
            world.driver.register(&waker, Instant::ORIGIN);
            world.outbox.begin_gathering(&*world);
            world.outbox.end_gathering(&*world);
            if world.driver.arm(at(0)) == Some(at(10)) {
                break;
            }
            sleeper.sleep();
        }
        caller.join().unwrap();
    });
}

#[test]
fn what_a_slot_is_told_reaches_its_watcher_and_stays() {
    explore("a slot between its watcher, the machine and its holder", None, || {
        let slot = Arc::new(Slot::new(Subject::none()));
        slot.set_valid_until(Instant::ORIGIN + std::time::Duration::from_secs(1));
        let threads = [LossCause::Released, LossCause::NotHeld].map(|cause| {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                let mut woken = Woken::default();
                slot.end(cause, &mut woken);
                woken.wake();
            })
        });
        let sleeper = Arc::new(Sleeper::default());
        let watcher = slot.new_watcher();
        let cause = sleeper.sleep_until(|cx| slot.poll_lost(watcher, cx));
        assert_eq!(slot.valid_until(), Instant::ORIGIN, "a lock that is lost is not valid");
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(slot.loss(), Some(cause), "what ended it first remains the cause");
    });
}
