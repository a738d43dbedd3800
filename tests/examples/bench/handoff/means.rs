//! How a process takes its turns beside others.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use quorlock_core::front::{Guard, Locker, Request};
use quorlock_tests::chaos::history::now;
use quorlock_tests::{Random, RawClient, Value};

use super::raw::RELEASE;
use super::turns::Turn;
use super::way::{Opened, Way};

const TTL: Duration = Duration::from_secs(10);
/// How long a lock is kept from its grant on.
const KEPT: Duration = Duration::from_millis(20);
/// After this time an impatient waiter asks again.
const IMPATIENT: Duration = Duration::from_millis(250);
/// Another client tries again after a random time below this one.
const RETRY_MICROS: usize = 5_000;

/// Turns of the threads of one process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gate<'a> {
    pub(crate) resource: &'a str,
    /// When it begins and ends, in nanoseconds of `history::now`.
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) hold: Duration,
    pub(crate) threads: u64,
    /// - `lock`: as the way does; `plain`: never with a place in a queue;
    /// - `kept`: as the way does, and the keys stay for a while;
    /// - `impatient`: as the way does, with a short timeout, and again;
    /// - `batch`: together with another resource; `read`: shared with other readers;
    /// - `hand-over`: two threads with a locker each; the other thread's locker resumes the lock
    ///   and releases it;
    /// - `foreign`: another client, which sets keys and tries again soon.
    pub(crate) means: &'a str,
}

/// Gives a lock back.
type GiveBack<'a> = Box<dyn FnOnce() + 'a>;

impl Gate<'_> {
    /// Takes turns until the end. Returns those of each thread.
    pub(crate) fn pass(&self, way: &Way, masters: &[SocketAddr], opened: &Opened) -> Vec<Vec<Turn>> {
        match self.means {
            "foreign" => {
                let foreign = Foreign::connect(masters);
                vec![self.turns(|| foreign.take(self.resource))]
            }
            "hand-over" => {
                let other = way.open(masters);
                let pairs = [(opened, &other), (&other, opened)];
                self.each(pairs.map(|(one, other)| move || self.take_for(one, other.ours().0)))
            }
            _ => self.each((0..self.threads).map(|_| || self.take(opened))),
        }
    }

    /// A thread for each of these.
    fn each<'a, T>(&self, threads: impl IntoIterator<Item = T>) -> Vec<Vec<Turn>>
    where
        T: Fn() -> Option<GiveBack<'a>> + Send,
    {
        thread::scope(|scope| {
            let start = |take: T| scope.spawn(move || self.turns(take));
            let threads: Vec<_> = threads.into_iter().map(start).collect();
            threads.into_iter().map(|thread| thread.join().expect("a thread ends well")).collect()
        })
    }

    fn turns<'a>(&self, take: impl Fn() -> Option<GiveBack<'a>>) -> Vec<Turn> {
        thread::sleep(Duration::from_nanos(self.start.saturating_sub(now())));
        let mut turns = Vec::new();
        while now() < self.end {
            let asked = now();
            if let Some(give_back) = take() {
                let granted = now();
                thread::sleep(self.hold);
                turns.push(Turn { asked, granted, released: now() });
                give_back();
            }
        }
        turns
    }

    /// A request as the way makes it.
    fn request(&self, opened: &Opened) -> Request {
        let (locker, fair) = opened.ours();
        let request = locker.lock(self.resource).ttl(TTL).timeout(None);
        if fair { request.fair() } else { request }
    }

    /// Waits for a turn. Returns `None` after a timeout.
    ///
    /// If the machine is too busy to answer a release, the lock is free only when its TTL is over,
    /// and the figures show that.
    fn take<'a>(&self, opened: &'a Opened) -> Option<GiveBack<'a>> {
        let (locker, _) = opened.ours();
        let released = |guard: Guard| -> GiveBack<'a> { Box::new(|| drop(guard.release().wait())) };
        if self.means == "impatient" {
            return self.request(opened).timeout(IMPATIENT).wait().ok().map(released);
        }
        let in_time = "a turn, after any time";
        Some(match self.means {
            "lock" => released(self.request(opened).wait().expect(in_time)),
            "plain" => released(locker.lock(self.resource).ttl(TTL).timeout(None).wait().expect(in_time)),
            "batch" => {
                let both = [self.resource.to_owned(), format!("beside {}", self.resource)];
                released(locker.lock_all(both).ttl(TTL).timeout(None).wait().expect(in_time))
            }
            "read" => {
                let guard = locker.read(self.resource).ttl(TTL).timeout(None).wait().expect(in_time);
                Box::new(|| drop(guard.release().wait()))
            }
            "kept" => {
                let guard = self.request(opened).wait().expect(in_time);
                Box::new(|| drop(guard.release_after(KEPT).wait()))
            }
            means => panic!("no means: {means}"),
        })
    }

    /// Waits for a turn that ends with another locker.
    fn take_for<'a>(&'a self, opened: &Opened, other: &'a Locker) -> Option<GiveBack<'a>> {
        let guard = self.request(opened).wait().expect("a turn, after any time");
        Some(Box::new(move || {
            let lock = guard.hand_over().expect("it has one handle");
            if let Ok(guard) = other.resume(self.resource, lock).ttl(TTL).wait() {
                drop(guard.release().wait());
            }
        }))
    }
}

/// A client without our library: a lock is `SET NX PX` on a majority.
struct Foreign(RefCell<(Vec<RawClient>, Random)>);

impl Foreign {
    fn connect(masters: &[SocketAddr]) -> Self {
        let clients = masters.iter().copied().map(RawClient::connect).collect();
        Self(RefCell::new((clients, Random::new(u64::from(std::process::id())))))
    }

    fn take<'a>(&'a self, resource: &'a str) -> Option<GiveBack<'a>> {
        loop {
            let token = now().to_string();
            let granted = self.ask(&["SET", resource, &token, "NX", "PX", &TTL.as_millis().to_string()]);
            let release = move || {
                self.ask(&["EVAL", RELEASE, "1", resource, &token]);
            };
            let (majority, pause) = {
                let (clients, random) = &mut *self.0.borrow_mut();
                (clients.len() / 2 + 1, random.below(RETRY_MICROS))
            };
            if granted >= majority {
                return Some(Box::new(release));
            }
            release();
            thread::sleep(Duration::from_micros(pause as u64));
        }
    }

    /// Returns how many masters answer `OK`.
    fn ask(&self, command: &[&str]) -> usize {
        let (clients, _) = &mut *self.0.borrow_mut();
        clients.iter_mut().map(|client| client.command(command)).filter(Value::is_ok).count()
    }
}
