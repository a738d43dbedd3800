//! An example job queue, property-tested on simulated masters.
use std::{cell::RefCell, collections::BTreeSet, rc::Rc, time::Duration};

use proptest::prelude::*;
use quorlock_sim::{Client, World, strategies};

/// The code under test: does every job that has not been done yet.
async fn work(client: Client, done: Rc<RefCell<BTreeSet<u32>>>) {
    for job in 0..5 {
        let name = format!("job:{job}");
        let Ok(guard) = client.locker().lock(&name).ttl(Duration::from_secs(1)).await else { continue };
        if !done.borrow().contains(&job) {
            client.sleep(Duration::from_millis(30)).await;
            if guard.check().is_ok() && !done.borrow_mut().insert(job) {
                client.report(format!("{name} was done twice"));
            }
        }
        let _ = guard.release().await;
    }
}

proptest! {
    #[test]
    fn no_job_is_done_twice(seed: u64, faults in strategies::schedules(8, Duration::from_millis(500))) {
        let (mut world, done) = (World::new(seed), Rc::default());
        for (when, fault) in faults {
            world.inject(when, fault);
        }
        for _ in 0..3 {
            let client = world.client();
            world.spawn(&client.clone(), work(client, Rc::clone(&done)));
        }
        world.run(Duration::from_secs(300)).map_err(|failure| TestCaseError::fail(failure.to_string()))?;
    }
}
