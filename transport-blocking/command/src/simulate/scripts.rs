//! What happens in each scenario: two clients each add 1 to a number that is stored outside the
//! masters, under one lock. Two additions must make 2.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use quorlock_blocking::{AcquireError, Guard};
use quorlock_sim::{Client, Failure, Fault, Keep, Store, When, World};

use super::{Outcome, Scenario};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Longer than a scenario takes.
const LONG: Duration = Duration::from_secs(60);

/// How a client makes its addition.
#[derive(Clone)]
struct Worker {
    client: Client,
    store: Store,
    begins_after: Duration,
    ttl: Duration,
    /// How long it takes between reading and writing.
    works_for: Duration,
    is_fenced: bool,
    /// Whether its first request makes only one attempt, so that it sees the outcome itself.
    asks_once: Rc<Cell<bool>>,
    /// Whether it treats a quorum of votes as a lock even if they come too late.
    trusts_late_votes: bool,
    /// Whether it has the lock.
    holds: Rc<Cell<bool>>,
    /// Whether it has made its last check of the lock before it writes.
    has_checked: Rc<Cell<bool>>,
    refusals: Rc<Cell<u32>>,
}

impl Worker {
    fn new(client: Client, store: &Store, begins_after: Duration) -> Self {
        Self {
            client,
            store: store.clone(),
            begins_after,
            ttl: ms(2_000),
            works_for: ms(100),
            is_fenced: false,
            asks_once: Rc::default(),
            trusts_late_votes: false,
            holds: Rc::default(),
            has_checked: Rc::default(),
            refusals: Rc::default(),
        }
    }

    /// Adds 1, and starts again if the lock or the store refuses.
    async fn work(self) {
        self.client.sleep(self.begins_after).await;
        while self.add_one().await.is_none() {}
    }

    /// Returns the lock. `Some(None)` is a lock that the client only believes to have.
    async fn lock(&self) -> Option<Option<Guard>> {
        let request = self.client.locker().lock("account").ttl(self.ttl).timeout(LONG);
        let request = if self.is_fenced { request.fenced() } else { request };
        let request = if self.asks_once.take() { request.attempts(1) } else { request };
        match request.await {
            Ok(guard) => Some(Some(guard)),
            Err(AcquireError::TooLate(ballot)) if self.trusts_late_votes => {
                self.client.note(format!("counts {} late votes and acts", ballot.granted()));
                Some(None)
            }
            Err(AcquireError::TooLate(_)) => {
                self.client.note("learns that the votes came too late");
                None
            }
            Err(_) => {
                self.client.sleep(ms(100)).await;
                None
            }
        }
    }

    async fn add_one(&self) -> Option<()> {
        let guard = self.lock().await?;
        self.holds.set(true);
        let fence = guard.as_ref().and_then(Guard::fencing_token);
        let reading = self.store.read(&self.client, fence).ok()?;
        self.client.sleep(self.works_for).await;
        if guard.as_ref().is_some_and(|guard| guard.check().is_err()) {
            self.client.note("lock has ended: starts again");
            return None;
        }
        self.has_checked.set(true);
        // Time may pass between any check and the write after it.
        self.client.sleep(ms(20)).await;
        if self.store.write(&self.client, reading, reading.value() + 1, fence).is_err() {
            self.refusals.set(self.refusals.get() + 1);
            return None;
        }
        if let Some(guard) = guard {
            // Whether the lock was still held does not matter any more.
            let _ = guard.release().await;
        }
        Some(())
    }
}

/// Lets time pass until `flag` is set.
fn until(world: &mut World, flag: &Cell<bool>) -> Result<(), Box<Failure>> {
    let mut steps = 0;
    while !flag.get() && steps < 20_000 {
        world.pass(ms(1))?;
        steps += 1;
    }
    Ok(())
}

/// Two clients, the second of which begins later. With `guard` they use the restart guard with that
/// longest TTL.
fn two(world: &mut World, store: &Store, guard: Option<Duration>) -> [Worker; 2] {
    // By then all connections are open.
    [ms(200), ms(500)].map(|after| {
        let client = world.client_with(|settings| {
            // Few attempts make a short story.
            let settings = settings.retry_delay(ms(400)..=ms(800));
            match guard {
                Some(longest) => settings.ttl(longest).restart_guard(longest),
                None => settings,
            }
        });
        // These settings are valid for this number of masters, so the alternative is never used.
        Worker::new(client.unwrap_or_else(|_| world.client()), store, after)
    })
}

fn spawn(world: &mut World, workers: &[Worker; 2]) {
    for worker in workers {
        world.spawn(&worker.client, worker.clone().work());
    }
}

/// The first client reaches masters 0 to 2 only, the second one 2 to 4.
fn divide(world: &mut World) {
    for (client, master) in [(0, 3), (0, 4), (1, 0), (1, 1)] {
        world.inject(Duration::ZERO, Fault::Partition { client, master, span: LONG });
    }
}

/// Runs the story.
fn carry_out(
    scenario: Scenario,
    world: &mut World,
    store: &Store,
    defended: bool,
) -> Result<u32, Box<Failure>> {
    let workers = match scenario {
        Scenario::Pause => {
            let mut workers = two(world, store, None);
            workers.iter_mut().for_each(|worker| worker.is_fenced = defended);
            spawn(world, &workers);
            until(world, &workers[0].has_checked)?;
            world.inject(Duration::ZERO, Fault::Pause { client: 0, span: ms(3_000) });
            workers
        }
        Scenario::Clock => {
            let mut workers = two(world, store, None);
            for worker in &mut workers {
                (worker.is_fenced, worker.works_for) = (defended, ms(500));
            }
            divide(world);
            spawn(world, &workers);
            until(world, &workers[0].holds)?;
            world.inject(world.report().took + ms(60), Fault::MasterJump { master: 2, by_millis: 20_000 });
            workers
        }
        Scenario::Delay => {
            let mut workers = two(world, store, None);
            for worker in &mut workers {
                worker.works_for = ms(1_500);
            }
            workers[0].trusts_late_votes = !defended;
            workers[0].asks_once.set(true);
            spawn(world, &workers);
            let first_vote = When::AtGrant { number: 0, delay: Duration::ZERO };
            world.inject(first_vote, Fault::Pause { client: 0, span: ms(3_000) });
            workers
        }
        Scenario::RestartEmpty => {
            let longest = ms(2_000);
            let guard = defended.then_some(longest);
            if defended {
                world.bootstrap(longest);
            }
            let mut workers = two(world, store, guard);
            workers.iter_mut().for_each(|worker| worker.works_for = ms(500));
            divide(world);
            spawn(world, &workers);
            until(world, &workers[0].holds)?;
            let empty = Fault::Crash { master: 2, span: ms(30), keep: Keep::Nothing };
            world.inject(world.report().took + ms(60), empty);
            workers
        }
    };
    world.run(LONG)?;
    Ok(workers.iter().map(|worker| worker.refusals.get()).sum())
}

/// Runs the scenario with or without its defence.
pub(super) fn run(scenario: Scenario, seed: u64, defended: bool) -> Outcome {
    let masters = match scenario {
        Scenario::Pause | Scenario::Delay => 3,
        Scenario::Clock | Scenario::RestartEmpty => 5,
    };
    let mut world = World::with_masters(seed, masters);
    if scenario == Scenario::Clock {
        // That two clients hold the lock is expected; the question is whether it does harm.
        world = world.tolerate_two_holders();
    }
    let store = Store::new();
    let ran = carry_out(scenario, &mut world, &store, defended);
    let (is_broken, verdict) = match ran {
        Ok(refusals) => {
            let refused = match refusals {
                0 => String::new(),
                1 => ", after it refused one write".to_owned(),
                more => format!(", after it refused {more} writes"),
            };
            (
                false,
                format!(
                    "Prevented: both clients' additions count, and the store holds {}{refused}.",
                    store.value()
                ),
            )
        }
        Err(failure) => (true, format!("Broken: {}.", failure.violation)),
    };
    let defence = if defended {
        format!("Defence: {}.", scenario.defence())
    } else {
        format!("Without the defence: {}.", scenario.undefended())
    };
    let text = format!("{}\n{defence}\n{verdict}\n", scenario.story());
    let mark = if defended { "" } else { ", without its defence" };
    Outcome {
        title: format!("{}{mark}", scenario.name()),
        text,
        is_broken,
        verdict,
        timeline: world.timeline().about_locks(),
        notes: vec![scenario.story().to_owned(), defence, format!("Seed {seed}.")],
    }
}
