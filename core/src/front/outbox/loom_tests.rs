//! No interleaving of callers and the driver leaves an output behind.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use loom::sync::Mutex;
use loom::thread;

use super::{Outbox, Outputs, Queue, Trouble};
use crate::front::loom_tests::explore;
use crate::front::sync::lock;
use crate::protocol::MasterId;

/// An outbox whose outputs are counted.
struct Counter {
    outbox: Outbox,
    outputs: Mutex<u32>,
}

impl Outputs for Counter {
    type Rest = u32;

    fn collect(&self, _: &mut Queue, rest: &mut u32) {
        *rest += std::mem::take(&mut *lock(&self.outputs));
    }

    fn troubled(&self, _: Vec<Trouble>) {}

    fn written(&self, _: bool, _: &mut u32) {}

    fn finish(&self, rest: u32) -> bool {
        rest > 0
    }
}

impl Counter {
    fn new() -> Arc<Self> {
        Arc::new(Self { outbox: Outbox::new(1), outputs: Mutex::new(0) })
    }

    fn ask(&self) {
        *lock(&self.outputs) += 1;
        self.outbox.flush(self);
    }

    fn assert_carried_out(&self) {
        assert_eq!(*lock(&self.outputs), 0, "outputs that nobody carries out");
    }
}

/// Runs each on its own thread, the last on the present one; then no output may be left.
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

fn use_the_queue(counter: &Counter) {
    counter.outbox.retry(MasterId::all(1).next().unwrap(), counter);
}

fn take_a_turn(counter: &Counter) {
    counter.outbox.begin_gathering(counter);
    counter.outbox.end_gathering(counter);
}

#[test]
fn two_callers_leave_no_output_behind() {
    explore("two callers", None, || race([ask, ask]));
}

#[test]
fn three_callers_leave_no_output_behind() {
    explore("three callers", Some(3), || race([ask, ask, ask]));
}

#[test]
fn callers_that_gather_leave_no_output_behind() {
    explore("a caller beside one that gathers", Some(4), || race([ask, ask_twice_gathered]));
}

#[test]
fn a_caller_beside_a_use_of_the_queue_leaves_no_output_behind() {
    explore("a caller beside a use of the queue", None, || race([ask, use_the_queue]));
}

#[test]
fn a_caller_beside_a_turn_of_the_driver_leaves_no_output_behind() {
    explore("a caller beside a turn of the driver", None, || race([ask, take_a_turn]));
}

#[test]
fn two_callers_beside_a_turn_of_the_driver_leave_no_output_behind() {
    explore("two callers beside a turn of the driver", Some(3), || race([ask, ask, take_a_turn]));
}
