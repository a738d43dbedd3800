//! Connectors and sockets of the caller that keep their contract, and some that break it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use quorlock_blocking::{Address, Config, Locker, MasterState, through};
use quorlock_core::{Cause, ServerError};
use quorlock_embedded::Masters;

/// Far longer than anything takes that works.
const LONG: Duration = Duration::from_secs(20);

/// A socket with a fault or a peculiarity.
struct Odd {
    stream: TcpStream,
    ways: Ways,
    /// Bytes that were read from the stream and not returned yet.
    ahead: Vec<u8>,
    /// Bytes that were accepted and not written to the stream yet.
    kept_back: Vec<u8>,
    is_reluctant: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Ways {
    /// Reads many bytes at once, and returns them one by one.
    ReadsAhead,
    /// Writes to the stream at the second flush.
    KeepsBack,
    FailsToWrite,
    PanicsInRead,
    PanicsInWrite,
}

impl Odd {
    fn new(stream: TcpStream, ways: Ways) -> Self {
        Self { stream, ways, ahead: Vec::new(), kept_back: Vec::new(), is_reluctant: false }
    }
}

impl Read for Odd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        assert!(self.ways != Ways::PanicsInRead, "a socket that panics, on purpose");
        if self.ahead.is_empty() {
            let mut read = [0; 4096];
            let length = self.stream.read(&mut read)?;
            self.ahead.extend(&read[..length]);
        }
        let length = self.ahead.len().min(1);
        buffer[..length].copy_from_slice(&self.ahead[..length]);
        self.ahead.drain(..length);
        Ok(length)
    }
}

impl Write for Odd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.ways {
            Ways::FailsToWrite => Err(ErrorKind::BrokenPipe.into()),
            Ways::PanicsInWrite => panic!("a socket that panics, on purpose"),
            Ways::KeepsBack => {
                self.kept_back.extend(bytes);
                Ok(bytes.len())
            }
            Ways::ReadsAhead | Ways::PanicsInRead => self.stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.is_reluctant = !self.is_reluctant && !self.kept_back.is_empty();
        if self.is_reluctant {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.stream.write_all(&std::mem::take(&mut self.kept_back))
    }
}

impl AsFd for Odd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn connect(to: &Address) -> io::Result<TcpStream> {
    TcpStream::connect(to.to_string())
}

fn config(urls: impl IntoIterator<Item = String>) -> Config {
    Config::builder(urls).connect_timeout(LONG).request_timeout(LONG).ttl(4 * LONG).build().unwrap()
}

fn open(masters: &Masters, ways: Ways) -> Locker {
    through(move |to| connect(&to).map(|stream| Odd::new(stream, ways))).open(config(masters.urls())).unwrap()
}

fn state(locker: &Locker) -> MasterState {
    locker.masters().remove(0).1
}

#[track_caller]
fn eventually(holds: impl Fn() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < LONG);
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn bytes_that_a_socket_buffers_in_either_direction_are_not_lost() {
    let masters = Masters::start(1).unwrap();
    for ways in [Ways::ReadsAhead, Ways::KeepsBack] {
        let locker = open(&masters, ways);
        for _ in 0..10 {
            locker.lock("job").wait().unwrap().release().wait().unwrap();
        }
    }
}

#[test]
fn bytes_that_a_connector_has_read_ahead_are_read_first() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let connector = |to: Address| {
        let mut odd = Odd::new(connect(&to)?, Ways::ReadsAhead);
        odd.ahead.extend(b"-NOAUTH before the greeting\r\n");
        Ok(odd)
    };
    let locker = through(connector).open(config([url])).unwrap();
    eventually(|| state(&locker) == MasterState::Down(Cause::Server(ServerError::NoAuth)));
}

#[test]
fn a_socket_that_fails_to_write_ends_the_connection() {
    let masters = Masters::start(1).unwrap();
    let locker = open(&masters, Ways::FailsToWrite);
    eventually(|| state(&locker) == MasterState::Down(Cause::HungUp));
}

#[test]
fn a_connector_or_a_socket_that_panics_fails_its_master_alone() {
    let masters = Masters::start(3).unwrap();
    let bad = masters[0].url();
    for ways in [None, Some(Ways::PanicsInRead), Some(Ways::PanicsInWrite)] {
        let bad = bad.clone();
        let connector = move |to: Address| {
            let is_bad = bad.ends_with(&to.to_string());
            assert!(!is_bad || ways.is_some(), "a connector that panics, on purpose");
            let ways = ways.filter(|_| is_bad).unwrap_or(Ways::ReadsAhead);
            connect(&to).map(|stream| Odd::new(stream, ways))
        };
        let locker = through(connector).open(config(masters.urls())).unwrap();
        eventually(|| state(&locker) == MasterState::Down(Cause::ConnectorPanicked));
        locker.lock("job").wait().unwrap().release().wait().unwrap();
    }
}

#[test]
fn a_connector_that_takes_too_long_is_called_again_afterwards_and_its_late_socket_is_dropped() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let (goes_on, waits) = mpsc::channel::<()>();
    let (waits, calls) = (Mutex::new(waits), Arc::new(AtomicUsize::new(0)));
    let connector = {
        let calls = Arc::clone(&calls);
        move |to: Address| {
            calls.fetch_add(1, Ordering::SeqCst);
            waits.lock().unwrap().recv().map_err(|_| ErrorKind::ConnectionAborted)?;
            connect(&to)
        }
    };
    let soon = Duration::from_millis(1);
    let config = Config::builder([url]).connect_timeout(soon).reconnect_delay(soon..=soon).build().unwrap();
    let locker = through(connector).open(config).unwrap();
    eventually(|| locker.report().masters[0].connections_asked_for > 3);
    assert_eq!(calls.load(Ordering::SeqCst), 1);

    goes_on.send(()).unwrap();
    let mut given = listener.accept().unwrap().0;
    assert_eq!(given.read(&mut [0]).unwrap(), 0, "its opening had been given up");
    eventually(|| calls.load(Ordering::SeqCst) == 2);
}
