//! How soon waiters are notified of a release when their own process changes the key.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use quorlock_sim::{Client, World};

const LONG: Duration = Duration::from_secs(60);

/// How long after a release a waiter gets the lock, if its own process has taken the lock over and
/// renewed it meanwhile.
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
        // The lock is renewed once during this time.
        takes_over.sleep(Duration::from_secs(3)).await;
        back.set(Some(guard.hand_over().expect("all masters are well")));
    });
    world.run(LONG).expect("no promise is broken");
    granted.get().saturating_sub(released.get())
}

#[test]
fn a_waiter_is_notified_of_a_release_although_its_own_process_has_renewed_the_lock() {
    for seed in 0..50 {
        let heard = heard_after(seed);
        assert!(heard < Duration::from_millis(500), "seed {seed}: {heard:?}");
    }
}

async fn until(client: &Client, at: Duration) {
    client.sleep(at.saturating_sub(client.true_time())).await;
}

/// How long after a release a waiter gets the lock, if it would poll only after a minute. Its
/// process has had the lock before. With `met`, the process has also met the holder in a single try
/// that long before; then its first attempt asks one master alone, or it listens. `after` is the
/// time from the waiter's request to the release.
fn wakes_after(seed: u64, met: Option<Duration>, after: Duration) -> Duration {
    let mut world = World::new(seed).without_timeline();
    let [holder, waiter] = [LONG; 2].map(|pause| {
        let far = Duration::from_secs(10);
        let settings = |settings: quorlock_core::ConfigBuilder| {
            settings.ttl(LONG).request_timeout(far).connect_timeout(far).retry_delay(pause..=pause)
        };
        world.client_with(settings).expect("a usable configuration")
    });
    let (released, granted) = (Rc::new(Cell::new(LONG)), Rc::new(Cell::new(LONG)));
    let (released_at, granted_at) = (Rc::clone(&released), Rc::clone(&granted));
    world.spawn(&holder.clone(), async move {
        until(&holder, Duration::from_secs(2)).await;
        let guard = holder.locker().lock("job").timeout(None).await.expect("all masters are well");
        until(&holder, Duration::from_secs(4) + after).await;
        released_at.set(holder.true_time());
        let _ = guard.release().await;
    });
    world.spawn(&waiter.clone(), async move {
        for _ in 0..20 {
            let guard = waiter.locker().lock("job").timeout(None).await.expect("all masters are well");
            let _ = guard.release().await;
        }
        until(&waiter, Duration::from_secs(4) - met.unwrap_or_default()).await;
        if met.is_some() {
            // The lock may be released by then.
            let _ = waiter.locker().try_lock("job").await;
        }
        until(&waiter, Duration::from_secs(4)).await;
        let guard = waiter.locker().lock("job").timeout(None).await.expect("all masters are well");
        granted_at.set(waiter.true_time());
        drop(guard);
    });
    let ran = world.run(LONG * 3);
    assert!(ran.is_ok(), "seed {seed}: {:?}", ran.err().map(|failure| failure.violation));
    granted.get().saturating_sub(released.get())
}

#[test]
fn a_waiter_notices_a_release_that_comes_while_it_asks() {
    let met = [None, Some(Duration::from_secs(1)), Some(Duration::from_micros(500))];
    for (seed, met) in (0..600).zip(met.into_iter().cycle()) {
        let after = Duration::from_micros(seed * 37 % 12_000);
        let heard = wakes_after(seed, met, after);
        assert!(heard < Duration::from_secs(1), "seed {seed}, {after:?}: {heard:?}");
    }
}
