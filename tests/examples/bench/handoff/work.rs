//! Workers that take turns: threads of this process, or one in each of several processes.

use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use quorlock_tests::RedisServer;
use quorlock_tests::chaos::history::now;

use super::helper::Helper;
use super::requests::Requests;
use super::turns::{Figures, Span, Turn};
use super::way::{Opened, Way};

pub(crate) const WORKERS: usize = 8;
const HOLD: Duration = Duration::from_millis(1);
/// How long a worker rests after a turn. This is shorter than the turns of all others together, so
/// that at every release some worker waits.
const REST: Duration = Duration::from_millis(3);
const SPAN: Duration = Duration::from_secs(1);
const TTL: Duration = Duration::from_secs(10);
/// The time before the start, so that all workers begin at once, also those in other processes.
const UNTIL_START: Duration = Duration::from_millis(20);
const RESOURCE: &str = "handoff";

/// Takes turns with others until the end. Each worker has its own thread, even if it runs futures,
/// so that all of them hold the lock by letting the thread sleep. That is equally precise in all
/// ways; a runtime's timer is not.
pub(crate) fn work(opened: &Opened, span: Span) -> Vec<Turn> {
    thread::sleep(Duration::from_nanos(span.start.saturating_sub(now())));
    let mut turns = Vec::new();
    while now() < span.end {
        let asked = now();
        let held = opened.lock(RESOURCE, TTL);
        let granted = now();
        thread::sleep(HOLD);
        turns.push(Turn { asked, granted, released: now() });
        opened.release(held);
        thread::sleep(Duration::from_nanos(span.rest));
    }
    turns
}

/// A way's workers on some masters.
pub(crate) struct Workers {
    place: Place,
    rest: Duration,
}

/// Where they work, with their connections.
enum Place {
    Threads(Opened),
    Processes(Vec<Helper>),
}

impl Workers {
    /// Threads of this process that share one client.
    pub(crate) fn threads(way: &Way, masters: &[SocketAddr]) -> Self {
        let opened = way.open(masters);
        opened.release(opened.lock("no one else's", TTL));
        Self { place: Place::Threads(opened), rest: Duration::ZERO }
    }

    /// Processes with a client each.
    pub(crate) fn processes(way: &Way, masters: &[SocketAddr]) -> Self {
        let helpers = (0..WORKERS).map(|_| Helper::start(way, masters)).collect();
        Self { place: Place::Processes(helpers), rest: Duration::ZERO }
    }

    /// `count` processes with a client each, of this build of the program.
    pub(crate) fn processes_of(program: &Path, way: &Way, masters: &[SocketAddr], count: usize) -> Self {
        let helpers = (0..count).map(|_| Helper::of(program, way, masters)).collect();
        Self { place: Place::Processes(helpers), rest: Duration::ZERO }
    }

    /// As [`Workers::threads`], but they rest after each turn. A worker that does not rest is often
    /// the next to request the lock. Without a queue it then has the lock again before another
    /// worker has seen it free. With rests, the next holder is a waiter.
    pub(crate) fn resting_threads(way: &Way, masters: &[SocketAddr]) -> Self {
        Self { rest: REST, ..Self::threads(way, masters) }
    }

    /// One round.
    pub(crate) fn round(&mut self) -> Figures {
        let (workers, span) = self.turns();
        Figures::of(&workers, span)
    }

    /// Runs one round in which only the requests for each turn are counted.
    pub(crate) fn requests(&mut self, masters: &[RedisServer]) -> f64 {
        let requests = Requests::count(masters);
        let (workers, _) = self.turns();
        let turns: usize = workers.iter().map(Vec::len).sum();
        requests.end() as f64 / turns as f64
    }

    fn turns(&mut self) -> (Vec<Vec<Turn>>, Span) {
        let start = now() + nanos(UNTIL_START);
        let span = Span { start, end: start + nanos(SPAN), rest: nanos(self.rest) };
        let turns = match &mut self.place {
            Place::Threads(opened) => thread::scope(|scope| {
                let opened = &*opened;
                let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(move || work(opened, span))).collect();
                workers.into_iter().map(|worker| worker.join().expect("a worker ends well")).collect()
            }),
            Place::Processes(helpers) => {
                for helper in helpers.iter_mut() {
                    helper.tell(&format!("work {} {} {}", span.start, span.end, span.rest));
                }
                helpers.iter_mut().map(Helper::turns).collect()
            }
        };
        (turns, span)
    }
}

pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).expect("a short span")
}
