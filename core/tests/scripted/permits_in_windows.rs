//! Requests for one of more permits than a master is asked for at once, so in several windows.

use std::time::Duration;

use quorlock_core::Instant;

use super::permits::{granted, wanted};
use super::world::{World, ms, settings};

const MORE_THAN_A_WINDOW: [u16; 3] = [65, 128, 1_024];

/// Two processes, and masters on which all permits but one are held.
fn with_one_free(of: u16, free: u16) -> World {
    let mut world = World::of(3);
    world.add_node(settings(3).build().unwrap(), 7);
    world.pump();
    for seat in (0..of).filter(|seat| *seat != free) {
        world.each(|master| master.hold_by_another(&format!("quorlock:seat:{seat}/{{gpu}}"), None));
    }
    world.each(|master| master.delay = ms(1));
    world
}

/// When a permit is granted to the first process.
fn granted_at(world: &mut World) -> Instant {
    while granted(world, 0).is_empty() {
        assert!(world.jump());
    }
    world.now
}

/// A waiter is refused a permit of its first window, which is released at any instant of its
/// attempts.
#[test]
fn a_permit_that_is_released_while_other_windows_are_asked_is_soon_taken() {
    for of in MORE_THAN_A_WINDOW {
        // An attempt has one request for each window, and each of them takes a millisecond. The
        // first attempt asks for no notifications.
        let windows = u64::from(of.div_ceil(64));
        for free in [0, of / 2, of - 1] {
            for after in (0..=2 * windows + 2).map(|step| Duration::from_micros(700 * step)) {
                let mut world = with_one_free(of, free);
                let held = world.acquire_by(1, &wanted(of.into()));
                world.pass(ms(windows + 1));
                assert_eq!(granted(&mut world, 1), [(held, free)]);
                world.acquire(&wanted(of.into()));
                world.pass(after);
                world.release_by(1, held);
                let released = world.now;
                let took = granted_at(&mut world).since(released);
                assert!(took < ms(3 * windows + 10), "{free} of {of}, released after {after:?}: {took:?}");
            }
        }
    }
}

/// The free permit of the first window is kept for another waiter, which is gone.
#[test]
fn a_permit_that_is_kept_for_a_longer_waiter_is_taken_when_its_mark_expires() {
    for of in MORE_THAN_A_WINDOW {
        let mut world = with_one_free(of, 0);
        let until = world.now + ms(300);
        world.each(|master| master.hold("quorlock:seat:next/{gpu}", "1 1 ab", until));
        world.acquire(&wanted(of.into()));
        let took = granted_at(&mut world).since(until);
        assert!(took < ms(20), "one of {of}: {took:?}");
    }
}
