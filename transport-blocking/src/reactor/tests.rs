//! Tests that run a reactor's turns one by one.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::future::IntoFuture;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake};
use std::thread::scope;
use std::time::{Duration, Instant};

use mio::Interest;
use mio::unix::SourceFd;
use quorlock_core::MasterState;
use quorlock_core::front::Locker;
use quorlock_embedded::Masters;
use quorlock_host::System;

use super::black_hole::BlackHole;
use super::*;
use crate::connect::Dialing;

const LONG: Duration = Duration::from_secs(30);

/// A reactor that waits for its master's answer to the greeting, and that nothing can wake.
fn greeting() -> (Locker, Reactor, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let master = format!("redis://{}", listener.local_addr().unwrap());
    let config = Config::builder([master]).connect_timeout(LONG).build().unwrap();
    let (locker, port) = Port::new(config, Arc::new(System::new()));
    let poll = Poll::new().unwrap();
    let mut reactor = Reactor::new(port, poll, locker.config(), None, Waker::noop().clone());
    while reactor.masters.iter().any(|master| !matches!(master.link, Link::Open(..))) {
        assert!(reactor.turn());
    }
    let mut peer = listener.accept().unwrap().0;
    assert!(peer.read(&mut [0; 4096]).unwrap() > 0);
    // The socket was writable from the start, which is a separate event.
    reactor.poll.poll(&mut reactor.events, Some(Duration::ZERO)).unwrap();
    (locker, reactor, peer)
}

#[test]
fn a_turn_after_the_last_user_has_gone_does_not_sleep() {
    let (locker, mut reactor, _peer) = greeting();
    drop(locker);
    let since = Instant::now();
    assert!(!reactor.turn());
    assert!(since.elapsed() < LONG / 2);
}

#[test]
fn the_end_of_a_connection_that_arrives_with_bytes_is_seen_in_the_same_turn() {
    let (_locker, mut reactor, mut peer) = greeting();
    peer.write_all(b"%").unwrap();
    drop(peer);
    assert!(reactor.turn());
    assert!(!reactor.masters.iter().any(|master| matches!(master.link, Link::Open(..))));
}

/// Ends the reactor's sleep.
struct Interrupts(mio::Waker);

impl Wake for Interrupts {
    fn wake(self: Arc<Self>) {
        self.0.wake().unwrap();
    }
}

/// A socket that is full at first, and has room again before the front knows that it was full.
struct FullForAMoment {
    calls: Arc<AtomicUsize>,
    is_full: mpsc::Sender<()>,
    has_looked: mpsc::Receiver<()>,
}

impl Write for FullForAMoment {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.calls.fetch_add(1, Ordering::SeqCst) > 0 {
            return Ok(bytes.len());
        }
        self.is_full.send(()).unwrap();
        self.has_looked.recv().unwrap();
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn room_that_is_reported_before_the_front_knows_that_the_socket_is_full_is_not_forgotten() {
    let masters = Masters::start(1).unwrap();
    let config = Config::builder(masters.urls()).connect_timeout(LONG).request_timeout(LONG).ttl(LONG * 4);
    let (locker, port) = Port::new(config.build().unwrap(), Arc::new(System::new()));
    let poll = Poll::new().unwrap();
    let interrupt = mio::Waker::new(poll.registry(), INTERRUPT).unwrap();
    let waker = Waker::from(Arc::new(Interrupts(interrupt)));
    let mut reactor = Reactor::new(port, poll, locker.config(), None, waker);
    while !matches!(locker.masters()[0].1, MasterState::Ready { .. }) {
        assert!(reactor.turn());
    }

    let calls = Arc::new(AtomicUsize::new(0));
    let ((is_full, fills), (looked, has_looked)) = (mpsc::channel(), mpsc::channel());
    let sink = FullForAMoment { calls: Arc::clone(&calls), is_full, has_looked };
    let id = reactor.masters[0].id;
    let Link::Open(generation, _) = reactor.masters[0].link else { unreachable!("the master is ready") };
    reactor.port.opened(id, generation, sink);
    let mut seeking = pin!(locker.lock("job").into_future());
    scope(|scope| {
        // A caller's thread writes its request.
        scope.spawn(|| {
            let mut context = Context::from_waker(Waker::noop());
            assert!(seeking.as_mut().poll(&mut context).is_pending());
        });
        fills.recv().unwrap();
        // There is room again: the poll reports that once.
        let Link::Open(_, socket) = &mut reactor.masters[0].link else { unreachable!("it was not closed") };
        socket.leave(reactor.poll.registry());
        let Socket::Tcp(stream) = socket else { unreachable!("the master has a TCP address") };
        let interest = Interest::READABLE | Interest::WRITABLE;
        let descriptor = stream.as_raw_fd();
        reactor.poll.registry().register(&mut SourceFd(&descriptor), Token(0), interest).unwrap();
        assert!(reactor.turn());
        looked.send(()).unwrap();
    });
    assert!(reactor.port.is_blocked(id));
    assert!(reactor.turn());
    assert!(calls.load(Ordering::SeqCst) > 1, "what the socket had no room for is not written");
    assert!(!reactor.port.is_blocked(id));
}

/// A reactor whose only master is a name for these two addresses, in its first opening.
fn dialing(first: SocketAddr, second: SocketAddr, connect_timeout: Duration) -> (Locker, Reactor) {
    let config = Config::builder([format!("redis://{first}")]).connect_timeout(connect_timeout);
    let (locker, port) = Port::new(config.build().unwrap(), Arc::new(System::new()));
    let poll = Poll::new().unwrap();
    let mut reactor = Reactor::new(port, poll, locker.config(), None, Waker::noop().clone());
    assert!(reactor.turn());
    let master = &mut reactor.masters[0];
    let Link::Connecting(_, connecting) = &mut master.link else { panic!("no opening") };
    *connecting = Connecting::Dialing(Dialing::new(master.addresses.dial([first, second])));
    (locker, reactor)
}

#[test]
fn a_name_is_reached_whose_first_address_swallows_packets() {
    let (black_hole, server) = (BlackHole::open(), TcpListener::bind("127.0.0.1:0").unwrap());
    let server = server.local_addr().unwrap();
    let (_locker, mut reactor) = dialing(black_hole.address(), server, Duration::from_millis(200));
    let since = Instant::now();
    while !matches!(reactor.masters[0].link, Link::Open(..)) {
        assert!(reactor.turn() && since.elapsed() < LONG);
    }
    // The next opening begins with the address that connected.
    let mut next = reactor.masters[0].addresses.dial([black_hole.address(), server]);
    assert_eq!(next.next_attempt(), Some(server));
}

#[test]
fn an_opening_that_is_given_up_is_followed_by_one_to_another_address() {
    let (black_hole, server) = (BlackHole::open(), TcpListener::bind("127.0.0.1:0").unwrap());
    let server = server.local_addr().unwrap();
    let (_locker, mut reactor) = dialing(black_hole.address(), server, LONG);
    let Reactor { masters, poll, port, .. } = &mut reactor;
    masters[0].advance(port, poll);
    masters[0].close(poll);
    let mut next = masters[0].addresses.dial([black_hole.address(), server]);
    assert_eq!(next.next_attempt(), Some(server));
}
