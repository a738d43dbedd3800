//! Keys that a waiter's own process changes: the masters say nothing of it (`CLIENT TRACKING ON NOLOOP`).

use quorlock_core::{Acquire, Resource, Ttl};

use super::wake_ups::{held_and_awaited, is_granted};
use super::world::{KEY, ms, wanted};

/// A process takes over a lock that one of its other callers waits for, and extends it; the server says nothing of changes to the connection that made
/// them.
#[test]
fn a_release_is_heard_although_the_waiters_own_connection_has_extended_the_key() {
    for healing in [false, true] {
        let (mut world, held, _) = held_and_awaited(3, ms(10_000), true);
        let handed = world.nodes[0].machine.hand_over(held, world.now).unwrap();
        world.drain(0);
        let resumed = Acquire { resumption: Some(handed), healing, ..wanted(ms(20_000)) };
        let lock = world.acquire_by(1, &resumed);
        assert!(is_granted(&mut world, 1));
        assert!(world.nodes[1].machine.take(lock, world.now).is_some());
        for _ in 0..3 {
            world.pass(ms(500));
            world.nodes[1].machine.extend(lock, Ttl::new(ms(20_000)).unwrap(), world.now).unwrap();
            world.drain(1);
        }
        world.pass(ms(500));
        world.nodes[1].events.clear();
        // Another process that knows the token.
        let resource = Resource::new(KEY).unwrap();
        world.nodes[0].machine.release_token(&resource.clone().into(), handed.token, world.now).unwrap();
        world.drain(0);
        let released = world.now;
        while !is_granted(&mut world, 1) {
            assert!(world.jump(), "nothing will ever happen");
        }
        assert!(world.now.since(released) < ms(100), "{:?}", world.now.since(released));
    }
}
