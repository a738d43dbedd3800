//! The requests of one owner share one grant, whose last handle releases once, in every
//! interleaving with callers that leave.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::task::Context;

use loom::sync::Mutex;
use loom::thread;

use super::{Entered, Held, Joined, Joint, Left, Seeker, Waiting};
use crate::front::loom_tests::{Sleeper, explore};
use crate::front::observe::Subject;
use crate::front::slot::Slot;
use crate::front::sync::{Woken, lock};

use crate::protocol::{Acquire, Event, LockId, Resource, Resumption, Targets, Token, Ttl};
use crate::time::Instant;

/// Grants one lock at a time, in the order in which they were requested, as the machine does. Those
/// of readers are granted together.
#[derive(Default)]
struct Machine {
    of_readers: bool,
    next: u32,
    /// The sought locks, with their slots.
    sought: Vec<(LockId, Arc<Slot>)>,
    granted: Vec<LockId>,
    held: Vec<LockId>,
    /// The held lock has become a reader's.
    is_reader: bool,
    taken: usize,
    released: usize,
}

/// Another process's lock.
const RIVAL: LockId = LockId { index: u32::MAX, generation: 0 };

impl Machine {
    fn holds(&self, id: LockId) -> bool {
        self.held.contains(&id)
    }
}

/// What a copied resumption lets another process be.
#[derive(PartialEq, Eq)]
enum Copied {
    AsWriter,
    AsReader,
}

struct World {
    machine: Mutex<Machine>,
    joint: Arc<Joint>,
    targets: Targets,
    wanted: Acquire,
}

impl World {
    fn new() -> Arc<Self> {
        let targets = Targets::from(Resource::new("job").unwrap());
        let ttl = Ttl::new(std::time::Duration::from_secs(1)).unwrap();
        let wanted = Acquire { healing: true, ..Acquire::new(targets.clone(), ttl) };
        Arc::new(Self { machine: Mutex::default(), joint: Arc::new(Joint::new()), targets, wanted })
    }

    /// Enters like a caller with its first poll.
    fn enter(self: &Arc<Self>, wanted: &Acquire) -> Result<Waiting, Held> {
        let mut begun = None;
        let entered = self.joint.enter(&self.targets, || {
            let slot = Arc::new(Slot::new(Subject::none()));
            let mut machine = lock(&self.machine);
            let id = LockId { index: machine.next, generation: 0 };
            machine.next += 1;
            machine.sought.push((id, Arc::clone(&slot)));
            begun = Some((id, Arc::clone(&slot)));
            Ok(Seeker::new(id, &slot, Instant::ORIGIN, wanted))
        });
        self.flush();
        match entered.unwrap() {
            Entered::Found(held) => Err(held),
            Entered::Begun => {
                let (id, slot) = begun.unwrap();
                Ok(Waiting::new(Arc::clone(&self.joint), self.targets.clone(), id, slot))
            }
            Entered::Blocked(_) => unreachable!("all ask for the same"),
        }
    }

    /// Grants the lock in front, or those of all readers, unless another one is held.
    fn flush(&self) {
        let mut woken = Woken::default();
        let mut machine = lock(&self.machine);
        let Machine { of_readers, sought, granted, held, .. } = &mut *machine;
        if !held.contains(&RIVAL) && (*of_readers || held.is_empty() && granted.is_empty()) {
            for (id, slot) in sought.iter().take(if *of_readers { sought.len() } else { 1 }) {
                if !granted.contains(id) {
                    slot.deliver(Event::Granted { lock: *id, valid_until: Instant::ORIGIN }, &mut woken);
                    granted.push(*id);
                }
            }
        }
        drop(machine);
        woken.wake();
    }

    fn take(&self, id: LockId) -> Option<(Resumption, ())> {
        let mut machine = lock(&self.machine);
        assert!(machine.held.is_empty() || machine.of_readers, "two locks of one resource");
        assert!(machine.granted.contains(&id));
        machine.sought.retain(|(sought, _)| *sought != id);
        machine.granted.retain(|granted| *granted != id);
        machine.held.push(id);
        machine.taken += 1;
        Some((Resumption::new(Token::from_hex(&"ab".repeat(20)).unwrap(), None), ()))
    }

    fn cancel(&self, left: Left) {
        let ids: Vec<_> = left.own.into_iter().chain(left.adopted.iter().map(Seeker::id)).collect();
        let mut machine = lock(&self.machine);
        machine.granted.retain(|id| !ids.contains(id));
        machine.sought.retain(|(id, _)| !ids.contains(id));
        drop(machine);
        self.flush();
        left.held.into_iter().for_each(|held| self.let_go(&held));
    }

    /// Does what the drop of a guard does.
    fn let_go(&self, held: &Held) {
        if held.slot.handles.leave() == 0 {
            let mut machine = lock(&self.machine);
            assert!(machine.holds(held.id), "released twice, or while another one holds");
            machine.held.retain(|id| *id != held.id);
            machine.released += 1;
            drop(machine);
            self.flush();
        }
    }

    /// The only request takes its grant.
    fn hold(self: &Arc<Self>) -> Held {
        let mut waiting = self.enter(&self.wanted).ok().unwrap();
        let sleeper = Arc::new(Sleeper::default());
        let Joined::Took { held, .. } = sleeper.sleep_until(|cx| waiting.poll(cx, |id, _, _| self.take(id)))
        else {
            unreachable!("no other request has it")
        };
        let left = waiting.end();
        self.cancel(left);
        held
    }

    /// Does what `Guard::downgrade` does.
    fn downgrade(&self, held: &Held) -> bool {
        let mut machine = lock(&self.machine);
        machine.is_reader = held.slot.handles.close();
        machine.is_reader
    }

    /// Another handle that reads the resumption, as `Guard::resumption` does, and goes.
    fn copy(&self, held: &Held, as_reader: bool) -> Option<Copied> {
        let handles = &held.slot.handles;
        if !handles.join(as_reader) {
            return None;
        }
        handles.note_resumption_read();
        let is_reader = lock(&self.machine).is_reader;
        assert!(handles.leave() <= 1);
        Some(if is_reader { Copied::AsReader } else { Copied::AsWriter })
    }

    /// A caller that waits for the lock and releases it.
    fn call(self: &Arc<Self>) {
        let held = match self.enter(&self.wanted) {
            Err(held) => held,
            Ok(mut waiting) => {
                let sleeper = Arc::new(Sleeper::default());
                let joined = sleeper.sleep_until(|cx| waiting.poll(cx, |id, _, _| self.take(id)));
                let left = waiting.end();
                self.cancel(left);
                match joined {
                    Joined::Took { held, .. } | Joined::Found(held) => held,
                    Joined::Blocked(_) => unreachable!("all ask for the same"),
                    Joined::Refused(error) => unreachable!("{error}"),
                }
            }
        };
        assert!(lock(&self.machine).holds(held.id), "held by nobody, or by another one");
        self.let_go(&held);
    }

    /// A caller that is polled once and leaves.
    fn look_in(self: &Arc<Self>) {
        self.look_in_for(&self.wanted);
    }

    /// A caller that leaves, and whose request asks for less than the others.
    fn look_in_for_less(self: &Arc<Self>) {
        self.look_in_for(&Acquire { healing: false, ..self.wanted.clone() });
    }

    fn look_in_for(self: &Arc<Self>, wanted: &Acquire) {
        let mut waiting = match self.enter(wanted) {
            Err(held) => return self.let_go(&held),
            Ok(waiting) => waiting,
        };
        let sleeper = std::task::Waker::from(Arc::new(Sleeper::default()));
        let polled = waiting.poll(&Context::from_waker(&sleeper), |id, _, _| self.take(id));
        let held = match polled {
            std::task::Poll::Pending => {
                let left = waiting.leave();
                return self.cancel(left);
            }
            std::task::Poll::Ready(Joined::Took { held, .. } | Joined::Found(held)) => held,
            std::task::Poll::Ready(Joined::Blocked(_)) => unreachable!("all ask for the same"),
            std::task::Poll::Ready(Joined::Refused(error)) => unreachable!("{error}"),
        };
        let left = waiting.end();
        self.cancel(left);
        self.let_go(&held);
    }

    fn is_over(&self) {
        let machine = lock(&self.machine);
        assert!(machine.held.is_empty() && machine.sought.is_empty() && machine.granted.is_empty());
        assert_eq!(machine.taken, machine.released);
    }
}

/// Both callers come while another process holds the lock, which it releases at some time.
fn run(name: &str, first: fn(&Arc<World>), second: fn(&Arc<World>)) {
    run_as(name, false, first, second);
}

fn run_as(name: &str, of_readers: bool, first: fn(&Arc<World>), second: fn(&Arc<World>)) {
    explore(name, Some(3), move || {
        let world = World::new();
        lock(&world.machine).of_readers = of_readers;
        lock(&world.machine).held.push(RIVAL);
        let callers = [first, second].map(|act| {
            let world = Arc::clone(&world);
            thread::spawn(move || act(&world))
        });
        lock(&world.machine).held.retain(|id| *id != RIVAL);
        world.flush();
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        world.is_over();
    });
}

#[test]
fn two_callers_of_one_owner_get_the_lock_and_the_last_one_releases_it() {
    run("two callers of one owner", World::call, World::call);
}

#[test]
fn two_readers_of_one_owner_get_the_lock_although_both_are_granted() {
    run_as("two readers of one owner", true, World::call, World::call);
}

#[test]
fn a_reader_that_gives_up_beside_another_of_its_owner_leaves_no_lock() {
    run_as("a reader of an owner, and one that goes", true, World::call, World::look_in);
}

#[test]
fn a_caller_that_gives_up_does_not_end_the_request_for_the_other() {
    run("a caller of an owner, and one that goes", World::call, World::look_in);
}

#[test]
fn a_caller_that_gives_up_leaves_its_place_to_one_that_asks_for_more() {
    run("a caller of an owner, and one that goes and asks for less", World::call, World::look_in_for_less);
}

#[test]
fn two_callers_that_give_up_leave_no_request_and_no_lock() {
    run("two callers of an owner that go", World::look_in, World::look_in);
}

#[test]
fn the_last_of_two_handles_releases_once_while_a_third_joins() {
    explore("two handles that go and one that joins", None, || {
        let world = World::new();
        let held = world.hold();
        assert!(held.slot.handles.join(false));
        let other = thread::spawn({
            let (world, held) = (Arc::clone(&world), held.clone());
            move || world.let_go(&held)
        });
        let third = thread::spawn({
            let (world, held) = (Arc::clone(&world), held.clone());
            move || {
                if held.slot.handles.join(false) {
                    assert!(lock(&world.machine).holds(held.id), "joined after the end");
                    world.let_go(&held);
                }
            }
        });
        world.let_go(&held);
        other.join().unwrap();
        third.join().unwrap();
        world.is_over();
    });
}

#[test]
fn a_writer_whose_token_was_copied_does_not_become_a_reader() {
    explore("a handle that becomes a reader and a writer that copies", None, || {
        let world = World::new();
        let held = world.hold();
        let other = thread::spawn({
            let (world, held) = (Arc::clone(&world), held.clone());
            move || world.copy(&held, false)
        });
        let is_reader = held.slot.handles.close();
        assert!(!is_reader || other.join().unwrap().is_none(), "a copy of the token is a writer's");
    });
}

#[test]
fn an_owners_reader_does_not_copy_a_writers_token_from_a_lock_that_becomes_a_readers() {
    explore("a handle that becomes a reader and a reader that copies", None, || {
        let world = World::new();
        let held = world.hold();
        let other = thread::spawn({
            let (world, held) = (Arc::clone(&world), held.clone());
            move || world.copy(&held, true)
        });
        let is_reader = world.downgrade(&held);
        assert!(
            !is_reader || other.join().unwrap() != Some(Copied::AsWriter),
            "a copy of the token is a writer's"
        );
    });
}

#[test]
fn a_handle_that_leaves_alone_knows_whether_the_token_was_copied() {
    explore("a handle that leaves alone and one that copies", None, || {
        let world = World::new();
        let held = world.hold();
        let other = thread::spawn({
            let (world, held) = (Arc::clone(&world), held.clone());
            move || world.copy(&held, false)
        });
        let left = held.slot.handles.leave_alone();
        let copied = other.join().unwrap();
        match left {
            Ok(()) => assert_eq!(held.slot.handles.ties().resumption_read, copied.is_some()),
            Err(others) => assert_eq!((others, copied.is_some()), (1, true)),
        }
    });
}
