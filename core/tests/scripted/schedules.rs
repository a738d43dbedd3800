//! Two machines, three masters, and anything that may happen between them.

use proptest::prelude::*;
use quorlock_core::{Acquire, ConfigBuilder, Event, Instant, LockId, Ttl};

use super::world::{Flow, KEY, Reach, World, ms, settings, wanted};

#[derive(Clone, Copy, Debug)]
enum Step {
    Acquire(usize, u64),
    Release(usize),
    Cancel(usize),
    Extend(usize, u64),
    Flow(usize, Flow),
    Reach(usize, Reach),
    Deliver(usize, usize),
    Cut(usize, usize),
    Pass(u64),
}

fn quick_to_reconnect() -> ConfigBuilder {
    settings(3).reconnect_delay(ms(10)..=ms(100))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let flow = prop_oneof![Just(Flow::Free), Just(Flow::Free), Just(Flow::Stopped), Just(Flow::RepliesHeld)];
    let reach =
        prop_oneof![Just(Reach::Accepts), Just(Reach::Accepts), Just(Reach::Refuses), Just(Reach::Ignores)];
    let step = prop_oneof![
        4 => (0usize..2, 150u64..3_000).prop_map(|(node, ttl)| Step::Acquire(node, ttl)),
        2 => (0usize..2).prop_map(Step::Release),
        1 => (0usize..2).prop_map(Step::Cancel),
        2 => (0usize..2, 100u64..4_000).prop_map(|(node, ttl)| Step::Extend(node, ttl)),
        4 => (0usize..3, flow).prop_map(|(master, flow)| Step::Flow(master, flow)),
        1 => (0usize..3, reach).prop_map(|(master, reach)| Step::Reach(master, reach)),
        3 => (0usize..2, 0usize..3).prop_map(|(node, master)| Step::Deliver(node, master)),
        1 => (0usize..2, 0usize..3).prop_map(|(node, master)| Step::Cut(node, master)),
        6 => (0u64..120).prop_map(Step::Pass),
    ];
    proptest::collection::vec(step, 1..40)
}

/// The locks of a user of one machine.
#[derive(Clone, Copy, Default)]
struct Hand {
    lock: Option<LockId>,
    valid_until: Option<Instant>,
}

impl Hand {
    fn is_valid(&self, now: Instant) -> bool {
        self.valid_until.is_some_and(|end| now < end)
    }
}

/// Lets the users take grants, and learn of losses.
fn hear(world: &mut World, hands: &mut [Hand; 2]) {
    for (node, hand) in hands.iter_mut().enumerate() {
        while let Some((_, event)) = world.nodes[node].events.pop_front() {
            // Events of a lock that was dropped do not matter any more.
            if hand.lock != Some(event.lock()) {
                continue;
            }
            match event {
                Event::Granted { lock, .. } => {
                    hand.valid_until = world.nodes[node].machine.take(lock, world.now);
                    world.drain(node);
                }
                Event::Renewed { valid_until, .. } | Event::Extended { result: Ok(valid_until), .. } => {
                    hand.valid_until = hand.valid_until.map(|_| valid_until);
                }
                Event::NotAcquired { .. } | Event::Released { .. } => *hand = Hand::default(),
                Event::Lost { .. } => hand.valid_until = None,
                Event::Extended { result: Err(_), .. }
                | Event::WaitsForOwn { .. }
                | Event::Bootstrapped { .. }
                | Event::Inspected { .. }
                | Event::SemaphoreInspected { .. }
                | Event::ForceReleased { .. } => {}
            }
        }
    }
}

fn take(world: &mut World, hands: &mut [Hand; 2], step: Step) {
    let now = world.now;
    match step {
        Step::Acquire(node, ttl) if hands[node].lock.is_none() => {
            let renew_for = (ttl % 2 == 0).then(|| ms(2_000));
            let wanted = Acquire { renew_for, timeout: Some(ms(1_000)), ..wanted(ms(ttl)) };
            hands[node].lock = Some(world.acquire_by(node, &wanted));
        }
        Step::Release(node) | Step::Cancel(node) => {
            let Some(lock) = hands[node].lock.take() else { return };
            hands[node].valid_until = None;
            if matches!(step, Step::Cancel(_)) {
                world.nodes[node].machine.cancel(lock, now);
                world.drain(node);
            } else {
                world.release_by(node, lock);
            }
        }
        Step::Extend(node, ttl) => {
            let Some(lock) = hands[node].lock else { return };
            // A lock that is not held yet cannot be extended: that is an error.
            let _ = world.nodes[node].machine.extend(lock, Ttl::new(ms(ttl)).unwrap(), now);
            world.drain(node);
        }
        Step::Flow(master, flow) => world.masters[master].flow = flow,
        Step::Reach(master, reach) => world.masters[master].reach = reach,
        Step::Deliver(node, master) => {
            world.deliver(node, master);
        }
        Step::Cut(node, master) => world.cut_if_it_is_open(node, master),
        Step::Acquire(..) | Step::Pass(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn no_two_guards_are_valid_at_once_and_no_key_stays_at_the_end(steps in steps()) {
        let mut world = World::ready(quick_to_reconnect());
        world.add_node(quick_to_reconnect().build().unwrap(), 2);
        world.pump();
        let mut hands = [Hand::default(); 2];
        for step in steps {
            world.note(format!("{step:?}"));
            take(&mut world, &mut hands, step);
            let end = if let Step::Pass(span) = step { world.now + ms(span) } else { world.now };
            loop {
                world.pump();
                hear(&mut world, &mut hands);
                let both = hands.iter().all(|hand| hand.is_valid(world.now));
                prop_assert!(!both, "two guards at {:?}", world.now);
                if !world.jump_until(end) {
                    break;
                }
            }
        }
        world.each(|master| {
            master.flow = Flow::Free;
            master.reach = Reach::Accepts;
        });
        for (node, hand) in hands.iter().enumerate() {
            if let Some(lock) = hand.lock {
                world.release_by(node, lock);
            }
        }
        // Long enough for every connection to be back, and too short for the TTLs to do the work of
        // the releases.
        world.pass(ms(150));
        let stays: Vec<Option<&str>> = world.masters.iter().map(|master| master.value(KEY, world.now)).collect();
        prop_assert!(stays.iter().all(Option::is_none), "{:?}", stays);
    }
}
