//! The same inputs give the same outputs, byte for byte.

use quorlock_core::Acquire;

use super::world::{Flow, KEY, Reach, World, ms, settings, wanted};

/// A run with a bit of everything, and all its outputs.
fn story(seed: u64) -> (Vec<u8>, String) {
    let mut world = World::cold(settings(3));
    world.nodes.clear();
    world.add_node(settings(3).build().unwrap(), seed);
    let lock = world.hold(&Acquire { renew_for: Some(ms(5_000)), ..wanted(ms(1_000)) });
    world.pass(ms(1_500));
    world.masters[1].flow = Flow::Stopped;
    world.extend(lock, ms(2_000));
    world.pass(ms(500));
    world.masters[2].reach = Reach::Refuses;
    world.cut(0, 2);
    world.pass(ms(300));
    world.masters[1].flow = Flow::Free;
    world.masters[2].reach = Reach::Accepts;
    world.release(lock);
    world.pass(ms(2_500));
    world.each(|master| master.hold_by_another(KEY, None));
    world.acquire(&Acquire { timeout: Some(ms(1_000)), ..wanted(ms(1_000)) });
    world.inject(0, b"nonsense");
    world.pass(ms(5_000));
    (world.nodes[0].written.clone(), format!("{:?}", world.nodes[0].events))
}

#[test]
fn the_same_inputs_give_the_same_outputs_byte_for_byte() {
    for seed in 0..5 {
        assert_eq!(story(seed), story(seed));
    }
    assert_ne!(story(1).0, story(2).0, "tokens differ");
}

#[test]
fn a_copy_of_a_machine_continues_like_the_original() {
    let mut world = World::of(3);
    world.hold(&Acquire { renew_for: Some(ms(5_000)), ..wanted(ms(1_000)) });
    let mut copy = world.clone();
    for world in [&mut world, &mut copy] {
        world.pass(ms(10_000));
    }
    assert_eq!(world.nodes[0].written, copy.nodes[0].written);
    assert_eq!(world.nodes[0].events, copy.nodes[0].events);
}
