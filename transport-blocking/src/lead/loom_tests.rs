//! Every interleaving of callers, the background thread and a model of the sockets, within a bound.
//!
//! A deadlock fails the test: a caller that is parked while no thread leads, a lost wake-up, a turn
//! that sleeps although it was interrupted. `LOOM_MAX_PREEMPTIONS` replaces the bound of each test.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use loom::model::Builder;
use loom::sync::{Condvar, Mutex};
use loom::thread;

use super::{EventLoop, Lead, catch};
use crate::sync::lock;

/// Explores every execution of `model` within the bound, and prints how many there were.
fn explore(name: &str, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    let bound = *builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = 100_000;
    let executions = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&executions);
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!("{name}: {executions:?} executions, at most {bound} preemptions");
}

/// Something that threads wait for.
#[derive(Default)]
struct Flag {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Flag {
    fn set(&self) {
        *lock(&self.is_set) = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let mut is_set = lock(&self.is_set);
        while !*is_set {
            is_set = self.changed.wait(is_set).unwrap();
        }
    }
}

/// The outcome that one caller waits for.
#[derive(Default)]
struct Answer(Mutex<(bool, Option<Waker>)>);

impl Answer {
    fn deliver(&self) {
        let waker = {
            let (is_there, waker) = &mut *lock(&self.0);
            *is_there = true;
            waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    fn poll(&self, context: &Context<'_>) -> Poll<()> {
        let (is_there, waker) = &mut *lock(&self.0);
        if *is_there {
            return Poll::Ready(());
        }
        *waker = Some(context.waker().clone());
        Poll::Pending
    }
}

/// The sockets and the poll.
#[derive(Default)]
struct Net {
    state: Mutex<NetState>,
    changed: Condvar,
}

#[derive(Default)]
struct NetState {
    /// Answers in the sockets that no turn has read yet: these end the sleep of a turn.
    unread: Vec<Arc<Answer>>,
    /// A request of the front to the next turn; it ends no sleep.
    demands: Vec<Arc<Flag>>,
    is_interrupted: bool,
    /// The next turn panics at its end, as if a waker panicked.
    panics: bool,
    /// The locker is no longer in use; this ends no sleep.
    is_finished: bool,
}

/// The event loop over a [`Net`].
struct NetLoop(Arc<Net>);

impl EventLoop for NetLoop {
    fn turn(&mut self) -> bool {
        let mut state = lock(&self.0.state);
        if state.is_finished {
            return false;
        }
        // A request of the front before a turn begins keeps the turn from sleeping, as
        // `Port::sleep` does.
        if state.demands.is_empty() {
            while state.unread.is_empty() && !state.is_interrupted {
                state = self.0.changed.wait(state).unwrap();
            }
        }
        state.is_interrupted = false;
        let answers = std::mem::take(&mut state.unread);
        let demands = std::mem::take(&mut state.demands);
        let panics = std::mem::take(&mut state.panics);
        let is_finished = state.is_finished;
        drop(state);
        answers.iter().for_each(|answer| answer.deliver());
        demands.iter().for_each(|demand| demand.set());
        if panics {
            // Print no message for each execution.
            resume_unwind(Box::new(()));
        }
        !is_finished
    }

    fn rest(&mut self) {}
}

/// A locker over the model, with its background thread.
struct World {
    net: Arc<Net>,
    lead: Arc<Lead>,
    background: thread::JoinHandle<()>,
}

/// The actions of a caller.
#[derive(Clone)]
struct Client {
    net: Arc<Net>,
    lead: Arc<Lead>,
}

impl World {
    fn start() -> (Self, Client) {
        let net = Arc::new(Net::default());
        let interrupted = Arc::clone(&net);
        let lead = Lead::new(NetLoop(Arc::clone(&net)), move || {
            lock(&interrupted.state).is_interrupted = true;
            interrupted.changed.notify_all();
        });
        let client = Client { net: Arc::clone(&net), lead: Arc::clone(&lead) };
        let leads = Arc::clone(&lead);
        let background = thread::spawn(move || drop(catch(|| leads.run_in_background())));
        (Self { net, lead, background }, client)
    }

    /// The last user drops the locker; the background thread must notice it.
    fn end(self) {
        lock(&self.net.state).is_finished = true;
        self.lead.need_attention();
        self.background.join().unwrap();
    }
}

impl Client {
    /// The server answers at once, and a turn must read the answer.
    fn ask(&self, answer: &Arc<Answer>) {
        lock(&self.net.state).unread.push(Arc::clone(answer));
        self.net.changed.notify_all();
    }

    /// Makes a request, waits for the answer, and then does `work` in the same poll.
    fn request(&self, work: impl Fn()) {
        let answer = Arc::new(Answer::default());
        let mut has_asked = false;
        self.lead.wait(&mut |context| {
            let polled = answer.poll(context);
            if polled.is_ready() {
                work();
            } else if !has_asked {
                has_asked = true;
                self.ask(&answer);
            }
            polled
        });
    }

    /// Waits until a turn has done something that no caller waits for, such as a renewal.
    fn is_served(&self) {
        let done = Arc::new(Flag::default());
        lock(&self.net.state).demands.push(Arc::clone(&done));
        self.lead.need_attention();
        done.wait();
    }

    fn spawn(&self, act: impl FnOnce(&Self) + 'static) -> thread::JoinHandle<()> {
        let client = self.clone();
        thread::spawn(move || act(&client))
    }
}

#[test]
fn a_lone_caller_is_answered_and_the_background_thread_serves_after_it() {
    explore("one caller, then a renewal", 4, || {
        let (world, client) = World::start();
        client.request(|| {});
        client.is_served();
        world.end();
    });
}

#[test]
fn two_callers_are_answered() {
    explore("two callers", 3, || {
        let (world, client) = World::start();
        let other = client.spawn(|client| client.request(|| {}));
        client.request(|| {});
        other.join().unwrap();
        world.end();
    });
}

#[test]
fn three_callers_are_answered() {
    explore("three callers", 2, || {
        let (world, client) = World::start();
        let others = [(); 2].map(|()| client.spawn(|client| client.request(|| {})));
        client.request(|| {});
        others.into_iter().for_each(|other| other.join().unwrap());
        world.end();
    });
}

#[test]
fn three_callers_that_return_at_once_are_answered() {
    explore("three callers, twice each", 2, || {
        let (world, client) = World::start();
        let twice = |client: &Client| {
            client.request(|| {});
            client.request(|| {});
        };
        let others = [(); 2].map(|()| client.spawn(twice));
        twice(&client);
        others.into_iter().for_each(|other| other.join().unwrap());
        world.end();
    });
}

#[test]
fn a_caller_that_is_busy_until_a_renewal_is_no_deadlock() {
    explore("two callers, one is busy until a renewal", 3, || {
        let (world, client) = World::start();
        let other = client.spawn(|client| client.request(|| {}));
        client.request(|| client.is_served());
        other.join().unwrap();
        world.end();
    });
}

#[test]
fn a_caller_that_is_busy_until_two_others_are_answered_is_no_deadlock() {
    explore("three callers, one is busy until the others are answered", 2, || {
        let (world, client) = World::start();
        let done = [(); 2].map(|()| Arc::new(Flag::default()));
        let others = done.clone().map(|done| {
            client.spawn(move |client| {
                client.request(|| {});
                done.set();
            })
        });
        client.request(|| done.iter().for_each(|done| done.wait()));
        others.into_iter().for_each(|other| other.join().unwrap());
        world.end();
    });
}

#[test]
fn a_caller_that_waits_inside_its_own_future_is_answered() {
    explore("two callers, one waits inside its own future", 3, || {
        let (world, client) = World::start();
        let other = client.spawn(|client| client.request(|| {}));
        client.request(|| client.request(|| {}));
        other.join().unwrap();
        world.end();
    });
}

#[test]
fn after_a_caller_has_panicked_the_others_and_renewals_are_served() {
    explore("two callers, one panics, then a renewal", 3, || {
        let (world, client) = World::start();
        let other = client.spawn(|client| client.request(|| {}));
        assert!(catch(|| client.request(|| resume_unwind(Box::new(())))).is_err());
        other.join().unwrap();
        client.is_served();
        world.end();
    });
}

#[test]
fn a_caller_is_woken_by_another_thread_while_it_sleeps_in_a_turn() {
    explore("two callers, one is woken by a thread and not by a turn", 3, || {
        let (world, client) = World::start();
        let answer = Arc::new(Answer::default());
        let tells = Arc::clone(&answer);
        let other = client.spawn(move |client| {
            client.request(|| {});
            tells.deliver();
        });
        client.lead.wait(&mut |context| answer.poll(context));
        other.join().unwrap();
        world.end();
    });
}

#[test]
fn a_leader_whose_turn_panics_steps_down() {
    explore("two callers, a turn panics", 3, || {
        let (world, client) = World::start();
        lock(&client.net.state).panics = true;
        let other = client.spawn(|client| drop(catch(|| client.request(|| {}))));
        let _ = catch(|| client.request(|| {}));
        other.join().unwrap();
        world.end();
    });
}
