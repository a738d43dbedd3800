//! Stores: a lost update is seen, and fencing tokens prevent it.

use std::rc::Rc;
use std::time::Duration;

use quorlock_core::FencingToken;
use quorlock_sim::{Client, Fault, Outdated, Store, Violation, World};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn number(number: u64) -> Option<FencingToken> {
    FencingToken::new(number)
}

#[test]
fn a_write_based_on_an_outdated_read_is_a_lost_update() {
    let (mut world, store) = (World::new(1), Store::new());
    let [early, late] = [world.client(), world.client()];
    let own = store.clone();
    world.spawn(&early.clone(), async move {
        let old = own.read(&early, None).unwrap();
        let new = own.read(&late, None).unwrap();
        assert_eq!(own.write(&late, new, 7, None), Ok(()));
        assert_eq!(own.write(&early, old, 8, None), Ok(()));
    });
    let failure = world.run(ms(1_000)).unwrap_err();
    assert_eq!(failure.violation, Violation::LostUpdate { client: 0, of: 1 });
    assert_eq!(store.value(), 8);
    let text = failure.to_string();
    assert!(text.contains("client0 → store     writes 8\n"), "{text}");
    assert!(text.contains("a promise is broken: client0 undid what client1 had written"), "{text}");
}

#[test]
fn a_request_with_a_smaller_number_is_refused() {
    let (mut world, store) = (World::new(1), Store::new());
    let [early, late] = [world.client(), world.client()];
    let own = store.clone();
    world.spawn(&early.clone(), async move {
        let old = own.read(&early, number(3)).unwrap();
        let new = own.read(&late, number(4)).unwrap();
        assert_eq!(own.write(&early, old, 8, number(3)), Err(Outdated));
        assert_eq!(own.read(&early, number(3)), Err(Outdated));
        assert_eq!(own.write(&late, new, new.value() + 1, number(4)), Ok(()));
    });
    world.run(ms(1_000)).unwrap();
    assert_eq!(store.value(), 1);
    assert!(world.timeline().to_string().contains("writes 8, number 3: refused"));
}

/// Holds the lock for a second.
async fn hold(client: Client, done: Rc<()>) {
    let guard = client.locker().lock("a").ttl(ms(2_000)).await.expect("a lock");
    client.sleep(ms(1_000)).await;
    drop((guard, done));
}

/// Two clients, and masters that lose all keys meanwhile.
fn two(mut world: World) -> World {
    for _ in 0..2 {
        let client = world.client();
        world.spawn(&client.clone(), hold(client, Rc::new(())));
    }
    for master in 0..3 {
        world.inject(ms(400), Fault::Flush { master });
    }
    world
}

#[test]
fn two_holders_end_a_run_unless_they_are_allowed() {
    let failure = two(World::new(3)).run(ms(20_000)).unwrap_err();
    assert!(matches!(failure.violation, Violation::TwoHolders { .. }), "{failure}");
    let mut world = two(World::new(3).tolerate_two_holders());
    assert_eq!(world.run(ms(20_000)).unwrap().acquisitions, 2);
    let timeline = world.timeline();
    let told = "hold valid guards of one resource at once, as expected";
    assert_eq!(timeline.to_string().matches(told).count(), 1, "{timeline}");
    assert!(timeline.picture("two").to_svg().contains(">two hold at once<"));
    // Handshakes are there and can be left out.
    assert!(timeline.to_string().contains("HELLO") && !timeline.about_locks().to_string().contains("HELLO"));
}
