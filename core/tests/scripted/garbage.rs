//! Bytes that no server should send.

use proptest::prelude::*;
use quorlock_core::{Event, MasterState};

use super::world::{Flow, World, ms, one_try, settings};

/// Where in the life of a connection the bytes arrive.
fn at_stage(stage: u8) -> World {
    match stage {
        0 => {
            let mut world = World::cold(settings(3));
            world.each(|master| master.flow = Flow::Stopped);
            world.pump();
            world
        }
        1 => World::of(3),
        _ => {
            let mut world = World::of(3);
            world.masters[0].flow = Flow::Stopped;
            let lock = world.hold(&one_try());
            if stage == 3 {
                world.release(lock);
            }
            world.events_now();
            world
        }
    }
}

/// Tokens of the protocol and noise, in every mixture.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        Just(b"\r\n".to_vec()),
        Just(b"+OK\r\n".to_vec()),
        Just(b":1\r\n".to_vec()),
        Just(b"_\r\n".to_vec()),
        Just(b"$-1\r\n".to_vec()),
        Just(b"*2\r\n".to_vec()),
        Just(b"%1\r\n".to_vec()),
        Just(b">1\r\n".to_vec()),
        Just(b"$5\r\nhello\r\n".to_vec()),
        Just(b"-NOSCRIPT x\r\n".to_vec()),
        Just(b"$99999999999\r\n".to_vec()),
        Just(b"*1\r\n".repeat(200)),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn garbage_at_any_stage_drops_that_connection_at_most_and_the_others_decide(
        stage in 0u8..4, bytes in bytes(), pieces in 1usize..8,
    ) {
        let mut world = at_stage(stage);
        for piece in bytes.chunks(bytes.len().div_ceil(pieces).max(1)) {
            let generation = world.generation(0);
            world.inject(0, piece);
            if world.generation(0) != generation {
                break;
            }
        }
        world.each(|master| master.flow = Flow::Free);
        world.events_now();
        let states: Vec<_> = world.nodes[0].machine.masters().map(|(_, state)| state).collect();
        for state in &states[1..] {
            let is_ready = matches!(state, MasterState::Ready { .. });
            prop_assert!(is_ready, "{:?}", states);
        }
        let resource = quorlock_core::Resource::new("another").unwrap();
        let lock = world.hold(&quorlock_core::Acquire { targets: resource.into(), ..one_try() });
        world.release(lock);
        world.pass(ms(5_000));
        prop_assert!(world.nodes[0].wakes < 200, "{} wake-ups", world.nodes[0].wakes);
    }
}

#[test]
fn an_unsolicited_reply_ends_the_connection() {
    let mut world = World::of(3);
    world.inject(0, b"+OK\r\n");
    let states: Vec<_> = world.nodes[0].machine.masters().map(|(_, state)| state).collect();
    assert!(matches!(states[0], MasterState::Down(_)));
    world.hold(&one_try());
}

#[test]
fn replies_are_read_alike_in_single_bytes_and_in_one_piece() {
    for size in [1, 2, 1_000] {
        let mut world = World::of(1);
        world.masters[0].flow = Flow::Stopped;
        world.acquire(&one_try());
        let replies = b">1\r\n+push\r\n+OK\r\n";
        for piece in replies.chunks(size) {
            world.inject(0, piece);
        }
        assert!(matches!(world.events_now()[..], [Event::Granted { .. }]));
    }
}
