//! The state of the demonstration: what workers, the store and the script share, and the events so
//! far.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quorlock_blocking::{FencingToken, Guard, Token, Watch};

use super::event::{Breach, Event};

/// The state that all threads share.
pub(super) struct Stage {
    begun: Instant,
    scene: Mutex<Scene>,
}

/// The present state and the events so far.
pub(super) struct Scene {
    pub(super) workers: Vec<Worker>,
    pub(super) store: Store,
    pub(super) events: Vec<(Duration, Event)>,
    /// The fencing tokens of all grants, in order. The output shows their indices here, because the
    /// tokens themselves are long.
    pub(super) fences: Vec<FencingToken>,
    pub(super) longest_wait: Duration,
    /// The next holder must pause.
    pub(super) stops_next: bool,
    /// No worker may begin anything more.
    pub(super) is_closing: bool,
    /// The worker of each token, to show whose key a master has.
    tokens: Vec<(Token, usize)>,
}

/// The public state of a worker.
pub(super) struct Worker {
    pub(super) doing: Doing,
    pub(super) since: Duration,
    /// The number of its last grant, from 1.
    pub(super) number: usize,
    watch: Option<Watch>,
}

impl Worker {
    /// How long its lock is valid.
    pub(super) fn left(&self) -> Duration {
        self.watch.as_ref().map_or(Duration::ZERO, Watch::remaining)
    }
}

/// What a worker does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doing {
    /// Something else.
    Rests,
    Waits,
    Holds,
    /// It is paused, and has or had the lock.
    Pauses,
}

/// A number that workers count up under the lock. The store uses no clock and no lock: it remembers
/// the largest fencing token, and refuses smaller ones.
#[derive(Default)]
pub(super) struct Store {
    pub(super) value: u64,
    pub(super) largest: Option<FencingToken>,
    pub(super) refused: usize,
}

impl Stage {
    pub(super) fn new(workers: usize) -> Self {
        let worker = || Worker { doing: Doing::Rests, since: Duration::ZERO, number: 0, watch: None };
        let scene = Scene {
            workers: (0..workers).map(|_| worker()).collect(),
            store: Store::default(),
            events: Vec::new(),
            fences: Vec::new(),
            longest_wait: Duration::ZERO,
            stops_next: false,
            is_closing: false,
            tokens: Vec::new(),
        };
        Self { begun: Instant::now(), scene: Mutex::new(scene) }
    }

    /// The time since the beginning.
    pub(super) fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    pub(super) fn scene(&self) -> MutexGuard<'_, Scene> {
        self.scene.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an event.
    pub(super) fn tell(&self, event: Event) {
        let mut scene = self.scene();
        // Under the mutex, so that the events stay in order.
        let now = self.now();
        scene.happened(now, event);
    }

    /// Records that a worker has the lock. Returns whether it must pause under it.
    pub(super) fn granted(
        &self,
        worker: usize,
        guard: &Guard,
        fence: FencingToken,
        waited: Duration,
    ) -> bool {
        let mut scene = self.scene();
        let now = self.now();
        let others = scene.workers.iter().enumerate().filter(|(other, _)| *other != worker);
        if others.filter_map(|(_, other)| other.watch.as_ref()).any(Watch::is_valid) {
            scene.happened(now, Event::Broken(Breach::TwoHolders { worker }));
        }
        if scene.fences.last().is_some_and(|last| fence <= *last) {
            scene.happened(now, Event::Broken(Breach::SmallerNumber { worker }));
        }
        scene.fences.push(fence);
        scene.tokens.push((guard.token(), worker));
        scene.longest_wait = scene.longest_wait.max(waited);
        let number = scene.fences.len();
        if let Some(worker) = scene.workers.get_mut(worker) {
            (worker.number, worker.watch) = (number, Some(guard.watch()));
        }
        scene.happened(now, Event::Holds { worker, number, fence, waited });
        std::mem::take(&mut scene.stops_next)
    }

    /// A worker writes the number that follows the one that it has read.
    pub(super) fn write(&self, worker: usize, fence: FencingToken, read: u64) {
        let mut scene = self.scene();
        let now = self.now();
        let number = scene.number_of(fence);
        let store = &mut scene.store;
        let event = match store.largest.filter(|largest| fence < *largest) {
            Some(largest) => {
                store.refused += 1;
                Event::Refused { worker, number, larger: scene.number_of(largest) }
            }
            None => {
                let is_lost = store.value != read;
                (store.value, store.largest) = (read + 1, Some(fence));
                if is_lost {
                    scene.happened(now, Event::Broken(Breach::LostWrite { worker }));
                }
                Event::Writes { worker, number, value: read + 1 }
            }
        };
        scene.happened(now, event);
    }
}

impl Scene {
    fn happened(&mut self, now: Duration, event: Event) {
        let doing = match event {
            Event::Waits { worker } => Some((worker, Doing::Waits)),
            Event::Holds { worker, .. } => Some((worker, Doing::Holds)),
            Event::Pauses { worker } => Some((worker, Doing::Pauses)),
            Event::GoesOn { worker } => Some((worker, Doing::Holds)),
            Event::GivesBack { worker } | Event::Refused { worker, .. } | Event::Fails { worker } => {
                Some((worker, Doing::Rests))
            }
            _ => None,
        };
        if let Some((worker, doing)) = doing {
            if let Some(worker) = self.workers.get_mut(worker) {
                (worker.doing, worker.since) = (doing, now);
            }
        }
        self.events.push((now, event));
    }

    /// The index of a fencing token among all, from 1.
    pub(super) fn number_of(&self, fence: FencingToken) -> usize {
        self.fences.iter().position(|known| *known == fence).map_or(0, |place| place + 1)
    }

    /// The worker that this key belongs to.
    pub(super) fn owner(&self, key: &[u8]) -> Option<usize> {
        // The newest tokens are looked up most often.
        let found = self.tokens.iter().rev().find(|(token, _)| token.to_hex() == key);
        found.map(|(_, worker)| *worker)
    }

    pub(super) fn violations(&self) -> usize {
        self.events.iter().filter(|(_, event)| matches!(event, Event::Broken(_))).count()
    }

    pub(super) fn faults(&self) -> usize {
        self.events.iter().filter(|(_, event)| event.is_fault()).count()
    }
}
