//! Explores with loom the interleavings of callers and their driver over all parts of the front at
//! once. It also has what the models of the single parts share. `cargo xtask check loom` runs them;
//! see `tests/PROOFS.md`.
//!
//! loom runs a model again and again, each time in another order and with other values where an
//! atomic may return an old one. A lost wake-up is a deadlock there: a thread that sleeps forever.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as Count, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use loom::sync::{Condvar, Mutex};
use loom::thread;

use super::mailbox::{Demand, Mailbox};
use super::observe::Subject;
use super::outbox::{Outbox, Outputs, Queue, Trouble};
use super::slot::Slot;
use super::sync::{Woken, lock};
use crate::endpoint::Address;
use crate::protocol::{LossCause, MasterId};
use crate::time::Instant;

/// Runs `model` in every order with at most `preemptions` switches away from a thread that could
/// continue (`None`: any number). `LOOM_MAX_PREEMPTIONS` overrides it.
pub(super) fn explore(name: &str, preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
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
pub(super) struct Sleeper {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Sleeper {
    pub(super) fn sleep(&self) {
        let mut woken = lock(&self.woken);
        while !std::mem::take(&mut *woken) {
            woken = self.changed.wait(woken).unwrap();
        }
    }

    pub(super) fn sleep_until<T>(self: &Arc<Self>, mut poll: impl FnMut(&Context<'_>) -> Poll<T>) -> T {
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

/// A machine that must have a connection opened by the driver before it grants what a caller asks
/// for.
struct World {
    machine: Mutex<Machine>,
    outbox: Outbox,
    mailbox: Mailbox,
    slots: [Slot; 2],
}

#[derive(Default)]
struct Machine {
    wants_a_connection: bool,
    is_connected: bool,
    asked: [bool; 2],
}

impl Outputs for World {
    type Rest = (Vec<Demand>, Woken);

    fn collect(&self, _: &mut Queue, (demands, woken): &mut Self::Rest) {
        let mut machine = lock(&self.machine);
        if machine.is_connected {
            for (asked, slot) in machine.asked.iter_mut().zip(&self.slots) {
                if std::mem::take(asked) {
                    slot.end(LossCause::Released, woken);
                }
            }
        }
        if std::mem::take(&mut machine.wants_a_connection) {
            let master = MasterId::all(1).next().unwrap();
            demands.push(Demand::Connect { master, generation: 0, address: Address::Unix("/s".into()) });
        }
    }

    fn troubled(&self, _: Vec<Trouble>) {}

    fn written(&self, became_full: bool, (demands, woken): &mut Self::Rest) {
        self.mailbox.post(demands, None, became_full, woken);
    }

    fn finish(&self, (_, woken): Self::Rest) -> bool {
        let is_any = woken.len() > 0;
        woken.wake();
        is_any
    }
}

fn held() -> Slot {
    let slot = Slot::new(Subject::none());
    slot.set_valid_until(Instant::ORIGIN + Duration::from_secs(1));
    slot
}

impl World {
    fn new(users: usize) -> Arc<Self> {
        let world = Self {
            machine: Mutex::default(),
            outbox: Outbox::new(1),
            mailbox: Mailbox::default(),
            slots: [held(), held()],
        };
        (0..users).for_each(|_| world.mailbox.add_user());
        Arc::new(world)
    }

    /// A caller: it asks, waits for the answer, and then is no longer a user.
    fn call(&self, place: usize) {
        let sleeper = Arc::new(Sleeper::default());
        {
            let mut machine = lock(&self.machine);
            machine.asked[place] = true;
            machine.wants_a_connection = !machine.is_connected;
        }
        self.outbox.flush(self);
        let watcher = self.slots[place].new_watcher();
        sleeper.sleep_until(|cx| self.slots[place].poll_lost(watcher, Instant::ORIGIN, cx));
        self.mailbox.remove_user();
    }

    /// The driver's turns in the order of `Port`'s documentation, until the locker has no users.
    fn drive(&self) {
        let sleeper = Arc::new(Sleeper::default());
        let waker = Waker::from(Arc::clone(&sleeper));
        loop {
            self.outbox.end_gathering(self);
            self.mailbox.register(&waker, Instant::ORIGIN);
            self.outbox.begin_gathering(self);
            while self.mailbox.next_demand().is_some() {
                lock(&self.machine).is_connected = true;
                self.outbox.flush_now(self);
            }
            if !self.mailbox.has_users() {
                return;
            }
            self.outbox.end_gathering(self);
            if self.mailbox.arm(Instant::ORIGIN).is_none() {
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
