//! Permits that are handed over: the new holder has the same seat.

use quorlock_core::{
    Acquire, AcquireError, ConfigError, Event, LockId, ReleaseOutcome, Resumption, Targets, Ttl,
};

use super::world::{World, ms, settings};

fn permits(of: u32) -> Targets {
    settings(3).build().unwrap().permits("gpu", of).unwrap()
}

fn wanted(of: u32) -> Acquire {
    Acquire { fenced: true, ..Acquire::new(permits(of), Ttl::new(ms(10_000)).unwrap()) }
}

/// Two machines before three masters, the first of which has the first permit and hands the second
/// one over.
fn handed_over() -> (World, Resumption) {
    let mut world = World::of(3);
    world.add_node(settings(3).build().unwrap(), 2);
    world.pump();
    let locks = [world.hold(&wanted(4)), world.hold(&wanted(4))];
    let machine = &mut world.nodes[0].machine;
    assert_eq!(locks.map(|lock| machine.seat(lock)), [Some(0), Some(1)]);
    let handed = machine.hand_over(locks[1], world.now).unwrap();
    world.drain(0);
    (world, handed)
}

fn resumed(handed: Resumption) -> Acquire {
    Acquire { resumption: Some(handed), ..wanted(4) }
}

fn holders(world: &World, seat: u16) -> usize {
    let key = format!("quorlock:seat:{seat}/{{gpu}}");
    (0..3).filter(|master| world.masters[*master].value(&key, world.now).is_some()).count()
}

fn granted(world: &mut World) -> LockId {
    let event = world.next_event_of(1);
    let Event::Granted { lock, .. } = event else { panic!("{event:?}") };
    assert!(world.nodes[1].machine.take(lock, world.now).is_some());
    lock
}

#[test]
fn a_permit_is_extended_and_released_by_its_new_holder() {
    let (mut world, handed) = handed_over();
    assert_eq!(handed.permits().collect::<Vec<_>>(), [1]);
    let handed = Resumption::from_text(&handed.expose(), handed.fencing_token).unwrap();
    world.pass(ms(5_000));
    let lock = world.acquire_by(1, &resumed(handed));
    assert_eq!(granted(&mut world), lock);
    assert_eq!(world.nodes[1].machine.seat(lock), Some(1));
    assert_eq!(world.nodes[1].machine.resumption(lock), Some(handed));
    world.pass(ms(6_000));
    assert_eq!((holders(&world, 0), holders(&world, 1)), (0, 3), "it was extended, and no other one");
    world.release_by(1, lock);
    assert_eq!(world.next_event_of(1), Event::Released { lock, outcome: ReleaseOutcome::StillOurs });
    assert_eq!(holders(&world, 1), 0);
}

#[test]
fn a_permit_cannot_be_resumed_as_another_kind_of_lock() {
    let (mut world, handed) = handed_over();
    let config = settings(3).build().unwrap();
    let others = [
        config.permits("cpu", 4).unwrap(),
        config.targets([quorlock_core::Target::write("gpu")]).unwrap(),
        config.targets([quorlock_core::Target::read("gpu")]).unwrap(),
    ];
    for targets in others {
        let now = world.now;
        let asked = Acquire { targets, ..resumed(handed) };
        let refused = world.nodes[1].machine.acquire(&asked, now);
        assert_eq!(refused, Err(AcquireError::Invalid(ConfigError::ResumedAsAnother)));
    }
    let unseated = Resumption::from_text(&handed.token.expose(), None).unwrap();
    let now = world.now;
    assert!(world.nodes[1].machine.acquire(&resumed(unseated), now).is_err());
    // With fewer permits or more, it is the same permit.
    let lock = world.acquire_by(1, &Acquire { targets: permits(1), ..resumed(handed) });
    assert_eq!(granted(&mut world), lock);
    assert_eq!(world.nodes[1].machine.seat(lock), Some(1));
}

#[test]
fn a_permit_cannot_be_resumed_after_it_has_expired() {
    let (mut world, handed) = handed_over();
    world.pass(ms(10_001));
    world.acquire_by(1, &resumed(handed));
    let event = world.next_event_of(1);
    assert!(matches!(&event, Event::NotAcquired { error: AcquireError::NotHeld(_), .. }), "{event:?}");
}
