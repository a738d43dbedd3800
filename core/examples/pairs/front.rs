//! The front around the machine: a locker, its requests and guards, and a port that is served
//! without sockets.

use std::future::{Future, IntoFuture};
use std::io::{self, Write};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use quorlock_core::front::{Acquiring, Demand, Guard, Host, Locker, Port, Release};
use quorlock_core::{EntropyFailed, Instant, MasterId};

use crate::Pairs;
use crate::masters::{GRANTED, Masters, RELEASED};

/// A clock that goes on by the same step at each turn, and numbers as tokens.
#[derive(Default)]
struct Idle {
    now: AtomicU64,
    tokens: AtomicU64,
}

impl Host for Idle {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.now.load(Ordering::Relaxed))
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        let token = self.tokens.fetch_add(1, Ordering::Relaxed).to_le_bytes();
        bytes.iter_mut().zip(token).for_each(|(byte, part)| *byte = part);
        Ok(())
    }

    fn block_on(&self, _: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
        unreachable!("nobody waits on a thread here")
    }
}

/// A socket that accepts all bytes, and keeps those of the greeting.
struct Sink(Arc<Mutex<Option<Vec<u8>>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(kept) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            kept.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) struct Driven {
    host: Arc<Idle>,
    locker: Locker,
    port: Port,
    masters: Vec<(MasterId, u32)>,
    resources: Vec<String>,
    replies: Vec<u8>,
    acquiring: Vec<Acquiring>,
    guards: Vec<Guard>,
    releases: Vec<Release>,
}

impl Driven {
    pub(crate) fn new(number: usize, at_once: usize) -> Self {
        let host = Arc::new(Idle::default());
        let (locker, port) = Port::new(Masters::config(number), Arc::clone(&host) as Arc<dyn Host>);
        let mut servers = Masters::new(number);
        let mut masters = Vec::new();
        let mut sockets = Vec::new();
        while let Some(Demand::Connect { master, generation, .. }) = port.next_demand() {
            let socket = Arc::new(Mutex::new(Some(Vec::new())));
            port.opened(master, generation, Sink(Arc::clone(&socket)));
            masters.push((master, generation));
            sockets.push(socket);
        }
        loop {
            let mut is_quiet = true;
            for (&(master, generation), socket) in masters.iter().zip(&sockets) {
                let kept = socket.lock().unwrap_or_else(PoisonError::into_inner).replace(Vec::new());
                let bytes = kept.unwrap_or_default();
                is_quiet &= bytes.is_empty();
                port.received(master, generation, &servers.greet(master.index(), &bytes));
            }
            port.tick();
            if is_quiet {
                break;
            }
        }
        for socket in sockets {
            *socket.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        let resources = (0..at_once).map(|number| format!("resource:{number}")).collect();
        // These are allocated before the count: what the caller keeps does not count.
        let replies = Vec::with_capacity(GRANTED.len() * at_once);
        let (acquiring, guards) = (Vec::with_capacity(at_once), Vec::with_capacity(at_once));
        let releases = Vec::with_capacity(at_once);
        Self { host, locker, port, masters, resources, replies, acquiring, guards, releases }
    }

    /// The rest of a turn of a transport's loop, after the callers that it woke have run, and the
    /// next turn until it wakes callers. In between, every master answers all its requests.
    fn turn(&mut self, reply: &[u8]) {
        self.host.now.fetch_add(20_000, Ordering::Relaxed);
        let _ = self.port.sleep();
        self.port.register(Waker::noop());
        self.replies.clear();
        (0..self.resources.len()).for_each(|_| self.replies.extend_from_slice(reply));
        for &(master, generation) in &self.masters {
            self.port.received(master, generation, &self.replies);
        }
        self.port.tick();
    }
}

impl Driven {
    /// Acquires every lock once, and keeps it.
    pub(crate) fn hold(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        for resource in &self.resources {
            let mut acquiring = self.locker.lock(resource).into_future();
            assert!(Pin::new(&mut acquiring).poll(&mut context).is_pending());
            self.acquiring.push(acquiring);
        }
        self.turn(GRANTED);
        for acquiring in self.acquiring.drain(..) {
            let Poll::Ready(Ok(guard)) = pin!(acquiring).poll(&mut context) else {
                unreachable!("every master grants")
            };
            self.guards.push(guard);
        }
    }
}

impl Pairs for Driven {
    fn run(&mut self, pairs: usize) {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..pairs / self.resources.len() {
            self.hold();
            for guard in self.guards.drain(..) {
                let mut release = guard.release();
                assert!(Pin::new(&mut release).poll(&mut context).is_pending());
                self.releases.push(release);
            }
            self.turn(RELEASED);
            for release in self.releases.drain(..) {
                assert!(matches!(pin!(release).poll(&mut context), Poll::Ready(Ok(_))));
            }
        }
    }
}
