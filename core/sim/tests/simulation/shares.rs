//! Processes that want one lock all the time get about equal shares of it.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use quorlock_sim::World;

const LONG: Duration = Duration::from_secs(3_600);
const HOLD: Duration = Duration::from_millis(1);
const SPAN: Duration = Duration::from_secs(3);

/// How many turns each process had in the span.
fn turns(seed: u64, processes: usize) -> Vec<usize> {
    let mut world = World::new(seed).without_timeline();
    world.heal();
    let turns = Rc::new(RefCell::new(vec![0; processes]));
    for number in 0..processes {
        let client = world.client();
        let turns = Rc::clone(&turns);
        world.spawn(&client.clone(), async move {
            while client.true_time() < SPAN {
                let guard = client.locker().lock("wanted").timeout(None).await.expect("all masters are well");
                client.sleep(HOLD).await;
                if let Some(turns) = turns.borrow_mut().get_mut(number) {
                    *turns += 1;
                }
                // It does not matter whether the answers come in time.
                let _ = guard.release().await;
            }
        });
    }
    world.run(LONG).expect("no promise is broken");
    turns.take()
}

#[test]
fn no_process_gets_much_more_than_its_share() {
    for processes in 2..=8 {
        for seed in 0..3 {
            let turns = turns(seed, processes);
            let (busiest, all) =
                (turns.iter().max().copied().unwrap_or_default(), turns.iter().sum::<usize>());
            let share = busiest as f64 * processes as f64 / all as f64;
            assert!(share <= 1.25, "seed {seed}: {turns:?}");
            // The lock is idle for 3 ms at most between two turns, on average: for a message and
            // two requests, which take up to 1.2 ms each, and sometimes for a timer.
            assert!(all >= 750, "seed {seed}: {turns:?}");
        }
    }
}
