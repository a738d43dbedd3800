//! The floor: the same commands on bare sockets, by one thread and without anything that makes a
//! lock safe.
//!
//! Each worker is a small state: it sends `SET key token NX PX ttl` to all masters, waits for `+OK`
//! from a majority, sends the script that compares and deletes to all, waits for `:1` from a
//! majority, and starts again. A command is not sent as soon as it is created: the commands of one
//! turn of the loop are collected for each socket and sent in one write. Then the thread sleeps in
//! `poll` until a socket is readable, reads everything that has arrived, and matches the replies,
//! of one line each, with the requests in flight, in their order. So a batch answers everything
//! that arrived during the turn before. Late replies of a minority are read and matched, but not
//! waited for.
//!
//! Timeouts, validity and lost connections are not handled, and tokens are consecutive numbers.
//! Once the queues have grown, the loop allocates nothing for a command, but each turn allocates
//! the list for `poll`.

mod crowd;
pub(crate) mod futures;
mod renewing;
mod socket;
mod worker;

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use quorlock_tests::RawClient;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::client::{Client, Limit, Sequence, Tally};
use crate::usage::Meter;
use crowd::Crowd;
use socket::{Asked, Socket};
use worker::Worker;

const RELEASE: &str =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

/// One thread's sockets.
pub(crate) struct Raw {
    sockets: Vec<Socket>,
    majority: usize,
    release: String,
    tokens: u64,
    replies: Vec<Asked>,
    /// Whether each worker has a thread.
    has_threads: bool,
}

/// What a majority has done for a worker.
#[derive(Clone, Copy, PartialEq)]
enum Event {
    Granted,
    Released,
}

impl Raw {
    pub(crate) fn open(addresses: &[SocketAddr]) -> Self {
        let release = load(addresses, RELEASE);
        let sockets: Vec<_> = addresses.iter().map(Socket::connect).collect();
        let majority = sockets.len() / 2 + 1;
        Self { majority, sockets, release, tokens: 0, replies: Vec::new(), has_threads: false }
    }

    /// Opens the sockets, and gives each worker a thread, which is parked while it waits.
    pub(crate) fn with_threads(addresses: &[SocketAddr]) -> Self {
        Self { has_threads: true, ..Self::open(addresses) }
    }

    /// Has `workers` workers take their locks repeatedly. A worker stops when `goes_on` returns
    /// false for its release. The function returns when all workers have stopped and every reply
    /// has arrived.
    fn run(&mut self, workers: usize, mut goes_on: impl FnMut(Event) -> bool) {
        let mut workers: Vec<Worker> =
            (0..workers).map(|number| Worker::new(number, &self.release)).collect();
        let crowd = self.has_threads.then(|| Crowd::start(workers.len()));
        let mut woken = Vec::new();
        let mut working = workers.len();
        for (number, worker) in workers.iter_mut().enumerate() {
            self.begin(number, worker);
        }
        while self.turn(None) {
            let replies = std::mem::take(&mut self.replies);
            for asked in &replies {
                let Some(worker) = workers.get_mut(asked.worker) else { continue };
                if !worker.has_majority(asked.phase, self.majority) {
                    continue;
                }
                woken.push(asked.worker);
                if worker.is_granted() {
                    goes_on(Event::Granted);
                    let phase = worker.next();
                    self.send(Asked { worker: asked.worker, phase }, worker.release());
                } else if goes_on(Event::Released) {
                    worker.next();
                    self.begin(asked.worker, worker);
                } else {
                    worker.next();
                    working -= 1;
                }
            }
            self.replies = replies;
            crowd.iter().for_each(|crowd| crowd.wake(&woken));
            woken.clear();
            if working == 0 && self.sockets.iter().all(Socket::is_idle) {
                return;
            }
        }
    }

    fn begin(&mut self, number: usize, worker: &mut Worker) {
        self.tokens += 1;
        worker.draw(self.tokens);
        self.send(Asked { worker: number, phase: worker.phase() }, worker.acquire());
    }

    fn send(&mut self, asked: Asked, command: &[u8]) {
        for socket in &mut self.sockets {
            socket.push(asked, command);
        }
    }

    /// Writes the collected commands, sleeps for at most `span`, and reads all replies; false if
    /// there can be no further reply.
    fn turn(&mut self, span: Option<Duration>) -> bool {
        self.replies.clear();
        self.sockets.iter_mut().for_each(Socket::write);
        if span.is_none() && self.sockets.iter().all(Socket::is_idle) {
            return false;
        }
        let span = span.map(|span| Timespec::try_from(span).expect("a short span"));
        // The list borrows the sockets, so it cannot be kept for the next turn.
        let mut polled: Vec<_> = self
            .sockets
            .iter()
            .map(|socket| {
                let writes = if socket.is_full() { PollFlags::OUT } else { PollFlags::empty() };
                PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN | writes)
            })
            .collect();
        rustix::io::retry_on_intr(|| poll(&mut polled, span.as_ref())).expect("sockets can be waited for");
        let ready =
            polled.iter().enumerate().filter(|(_, polled)| polled.revents().intersects(!PollFlags::OUT));
        let ready = ready.fold(0_u64, |ready, (place, _)| ready | 1 << place);
        drop(polled);
        for (place, socket) in self.sockets.iter_mut().enumerate() {
            if ready & 1 << place != 0 {
                socket.read(&mut self.replies);
            }
        }
        true
    }
}

/// Loads a script on all masters, and returns its SHA-1.
fn load(addresses: &[SocketAddr], script: &str) -> String {
    let load = |address: &SocketAddr| RawClient::connect(*address).command(&["SCRIPT", "LOAD", script]);
    let names: Vec<_> = addresses.iter().map(load).collect();
    names.first().and_then(|name| name.text()).expect("a script's name").to_owned()
}

impl Client for Raw {
    fn sequential(&mut self, limit: Limit) -> Sequence {
        let mut sequence = Sequence::with_capacity(limit);
        let begin = Instant::now();
        let (mut start, mut granted) = (begin, begin);
        self.run(1, |event| {
            if event == Event::Granted {
                granted = Instant::now();
                return true;
            }
            sequence.add(start, Some(granted), true);
            start = Instant::now();
            sequence.attempts() < limit.pairs && start - begin < limit.span
        });
        sequence
    }

    fn in_flight(&mut self, workers: usize, span: Duration) -> Tally {
        let meter = Meter::start();
        let end = Instant::now() + span;
        let mut pairs = 0;
        self.run(workers, |event| {
            if event == Event::Granted {
                return true;
            }
            pairs += 1;
            Instant::now() < end
        });
        Tally::of(vec![(pairs, 0)], meter.stop())
    }

    fn leave_out(&mut self, masters: usize) {
        // The majority is still counted over all masters, including those that are gone.
        self.sockets.truncate(self.sockets.len() - masters);
    }
}
