//! How soon waiters hear of a release when their own process changes the key.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use quorlock_sim::World;

const LONG: Duration = Duration::from_secs(60);

/// How long after the release a caller gets the lock whose process has taken over and renewed it meanwhile.
fn heard_after(seed: u64) -> Duration {
    let mut world = World::new(seed).without_timeline();
    world.heal();
    let (holder, waiter) = (world.client(), world.client());
    // The lock goes from the holder to the waiter's process and back.
    let [there, back] = [(); 2].map(|()| Rc::new(Cell::new(None)));
    let (released, granted) = (Rc::new(Cell::new(LONG)), Rc::new(Cell::new(LONG)));
    let (outbox, inbox, released_at) = (Rc::clone(&there), Rc::clone(&back), Rc::clone(&released));
    world.spawn(&holder.clone(), async move {
        let guard =
            holder.locker().lock("job").ttl(Duration::from_secs(8)).await.expect("all masters are well");
        holder.sleep(Duration::from_millis(200)).await;
        outbox.set(Some(guard.hand_over().expect("all masters are well")));
        holder.sleep(Duration::from_secs(5)).await;
        let handed = inbox.take().expect("all masters are well");
        released_at.set(holder.true_time());
        let _ = holder.locker().release("job", handed.token).await;
    });
    let granted_at = Rc::clone(&granted);
    let waits = waiter.clone();
    world.spawn(&waiter, async move {
        waits.sleep(Duration::from_millis(100)).await;
        let guard = waits.locker().lock("job").timeout(None).await.expect("all masters are well");
        granted_at.set(waits.true_time());
        drop(guard);
    });
    let takes_over = waiter.clone();
    world.spawn(&waiter, async move {
        takes_over.sleep(Duration::from_secs(1)).await;
        let request = takes_over.locker().resume("job", there.take().expect("all masters are well"));
        let guard = request.ttl(Duration::from_secs(8)).renew().heal().await.expect("all masters are well");
        // It is renewed once meanwhile.
        takes_over.sleep(Duration::from_secs(3)).await;
        back.set(Some(guard.hand_over().expect("all masters are well")));
    });
    world.run(LONG).expect("no promise is broken");
    granted.get().saturating_sub(released.get())
}

#[test]
fn a_waiter_hears_of_a_release_although_its_own_process_has_renewed_the_lock() {
    for seed in 0..50 {
        let heard = heard_after(seed);
        assert!(heard < Duration::from_millis(500), "seed {seed}: {heard:?}");
    }
}
