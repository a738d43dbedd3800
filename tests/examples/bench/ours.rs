//! Quorlock, on each transport and in each place that its futures can run in.

use std::future::Future;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use quorlock_core::MasterState;
use quorlock_core::front::Locker;
use smol::{LocalExecutor, Timer};

use crate::client::{Client, Limit, Sequence, Tally, resource};
use crate::usage::Meter;

/// How often the masters' states are checked. A timer of tokio's takes a millisecond at least.
const LOOK: Duration = Duration::from_micros(200);

/// A locker, and the place where its callers run.
pub(crate) struct Ours {
    place: Place,
    locker: Locker,
}

pub(crate) enum Place {
    /// Threads that wait, a thread for each caller.
    Threads,
    /// All futures on one executor of this thread, with the driver.
    Local(LocalExecutor<'static>),
    /// All futures on one executor of this thread, which serves the sockets while they wait.
    Serving(LocalExecutor<'static>),
    /// Tasks of a runtime.
    #[cfg(feature = "tokio")]
    Tasks(tokio::runtime::Runtime),
    /// The future that a runtime blocks on, which runs beside its threads.
    #[cfg(feature = "tokio")]
    Main(tokio::runtime::Runtime),
}

impl Ours {
    pub(crate) fn new(place: Place, locker: Locker) -> Self {
        Self { place, locker }
    }

    pub(crate) fn locker(&self) -> &Locker {
        &self.locker
    }

    /// Runs `count` futures to their ends.
    pub(crate) fn run<F, T>(&self, count: usize, future: impl Fn(usize) -> F) -> Vec<T>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let futures = (0..count).map(future);
        match &self.place {
            Place::Threads => futures.map(smol::block_on).collect(),
            Place::Local(executor) => {
                let tasks: Vec<_> = futures.map(|future| executor.spawn(future)).collect();
                smol::block_on(executor.run(all(tasks)))
            }
            Place::Serving(executor) => {
                let tasks: Vec<_> = futures.map(|future| executor.spawn(future)).collect();
                self.locker.block_on(executor.run(all(tasks))).expect("it waits until they have ended")
            }
            #[cfg(feature = "tokio")]
            Place::Tasks(runtime) => {
                let tasks: Vec<_> = futures.map(|future| runtime.spawn(future)).collect();
                let ended = runtime.block_on(all(tasks)).into_iter();
                ended.map(|ended| ended.expect("a worker ends well")).collect()
            }
            #[cfg(feature = "tokio")]
            Place::Main(runtime) => futures.map(|future| runtime.block_on(future)).collect(),
        }
    }

    /// Lets the driver run for a while, and nothing else.
    pub(crate) fn idle(&self, span: Duration) {
        match &self.place {
            Place::Threads | Place::Serving(_) => thread::sleep(span),
            Place::Local(executor) => {
                smol::block_on(executor.run(Timer::after(span)));
            }
            #[cfg(feature = "tokio")]
            Place::Tasks(runtime) | Place::Main(runtime) => {
                runtime.block_on(async { tokio::time::sleep(span).await });
            }
        }
    }
}

async fn all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut outputs = Vec::with_capacity(futures.len());
    for future in futures {
        outputs.push(future.await);
    }
    outputs
}

impl Client for Ours {
    fn sequential(&mut self, limit: Limit) -> Sequence {
        if let Place::Threads = self.place {
            return waits(&self.locker, limit);
        }
        let outputs = self.run(1, |_| awaits(self.locker.clone(), limit));
        outputs.into_iter().next().unwrap_or_default()
    }

    fn in_flight(&mut self, workers: usize, span: Duration) -> Tally {
        if let Place::Threads = self.place {
            return threads(workers, span, |number, end| {
                let resource = resource(number);
                let (mut pairs, mut errors) = (0, 0);
                while Instant::now() < end {
                    match self.locker.lock(&resource).wait().map(|guard| guard.release().wait()) {
                        Ok(Ok(_)) => pairs += 1,
                        _ => errors += 1,
                    }
                }
                (pairs, errors)
            });
        }
        let meter = Meter::start();
        let end = Instant::now() + span;
        let outputs = self.run(workers, |number| works(self.locker.clone(), number, end));
        Tally::of(outputs, meter.stop())
    }

    fn until_all_vote(&mut self, timeout: Duration) -> Option<Duration> {
        let start = Instant::now();
        let votes = |state| matches!(state, MasterState::Ready { .. });
        while !self.locker.masters().into_iter().all(|(_, state)| votes(state)) {
            if start.elapsed() > timeout {
                return None;
            }
            self.idle(LOOK);
        }
        Some(start.elapsed())
    }
}

/// Runs threads that all begin at once.
pub(crate) fn threads(
    workers: usize,
    span: Duration,
    work: impl Fn(usize, Instant) -> (usize, usize) + Sync,
) -> Tally {
    let begin = Barrier::new(workers + 1);
    thread::scope(|scope| {
        let (begin, work) = (&begin, &work);
        let start = |number| {
            scope.spawn(move || {
                begin.wait();
                work(number, Instant::now() + span)
            })
        };
        let workers: Vec<_> = (0..workers).map(start).collect();
        let meter = Meter::start();
        begin.wait();
        let ended = workers.into_iter().map(|worker| worker.join().expect("a worker ends well")).collect();
        Tally::of(ended, meter.stop())
    })
}

fn waits(locker: &Locker, limit: Limit) -> Sequence {
    let (resource, mut sequence) = (resource(0), Sequence::with_capacity(limit));
    let begin = Instant::now();
    while sequence.attempts() < limit.pairs && begin.elapsed() < limit.span {
        let start = Instant::now();
        let guard = locker.lock(&resource).wait();
        let granted = Instant::now();
        let released = guard.is_ok_and(|guard| guard.release().wait().is_ok());
        sequence.add(start, Some(granted), released);
    }
    sequence
}

async fn awaits(locker: Locker, limit: Limit) -> Sequence {
    let (resource, mut sequence) = (resource(0), Sequence::with_capacity(limit));
    let begin = Instant::now();
    while sequence.attempts() < limit.pairs && begin.elapsed() < limit.span {
        let start = Instant::now();
        let guard = locker.lock(&resource).await;
        let granted = Instant::now();
        let released = match guard {
            Ok(guard) => guard.release().await.is_ok(),
            Err(_) => false,
        };
        sequence.add(start, Some(granted), released);
    }
    sequence
}

async fn works(locker: Locker, number: usize, end: Instant) -> (usize, usize) {
    let resource = resource(number);
    let (mut pairs, mut errors) = (0, 0);
    while Instant::now() < end {
        let released = match locker.lock(&resource).await {
            Ok(guard) => guard.release().await.is_ok(),
            Err(_) => false,
        };
        pairs += usize::from(released);
        errors += usize::from(!released);
    }
    (pairs, errors)
}
