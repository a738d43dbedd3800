//! The async driver over connections of a connector, with model masters behind them.

use std::future::{Future, pending};
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock_core::front::{Driver, Locker, Stream};
use quorlock_core::{Address, Cause, Config, IoFault, MasterState};
use quorlock_sim::{Flow, Master, Session};

use super::on_a_runtime::{World, turn};

/// The behaviour of a connector.
#[derive(Clone, Copy, Default)]
enum Does {
    #[default]
    Connects,
    Refuses,
    Hangs,
    Panics,
    PanicsLater,
}

/// A connector that a test can inspect.
#[derive(Clone, Default)]
struct Connector(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    does: Does,
    asked: Vec<String>,
    hanging: usize,
}

type Connecting = Pin<Box<dyn Future<Output = io::Result<Line>> + Send>>;

impl Connector {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hanging(&self) -> usize {
        self.seen().hanging
    }

    fn asked(&self) -> Vec<String> {
        self.seen().asked.clone()
    }

    fn connect(&self, to: &Address) -> Connecting {
        let does = {
            // The mutex guard is dropped before the connector panics.
            let mut seen = self.seen();
            seen.asked.push(to.to_string());
            seen.does
        };
        match does {
            Does::Connects => Box::pin(async { Ok(Line::default()) }),
            Does::Refuses => Box::pin(async { Err(ErrorKind::ConnectionRefused.into()) }),
            Does::Hangs => {
                let hanging = Hanging::begin(self);
                Box::pin(async move {
                    pending::<()>().await;
                    drop(hanging);
                    Ok(Line::default())
                })
            }
            Does::Panics => panic!("a connector that panics, on purpose"),
            Does::PanicsLater => Box::pin(async { panic!("a connector that panics, on purpose") }),
        }
    }

    /// A locker over one master, and its driver.
    fn open(&self) -> (World, Locker, Driver) {
        let (world, connector) = (World::default(), self.clone());
        world.state().now = Duration::from_secs(1);
        let config = Config::new(["redis://:hunter2@behind.the.tunnel:7000/2"]).unwrap();
        let host = Arc::new(world.clone());
        let (locker, driver) =
            Driver::open_through(config, host, world.clone(), move |to| connector.connect(&to));
        (world, locker, driver)
    }
}

/// Lives as long as a future that hangs.
struct Hanging(Connector);

impl Hanging {
    fn begin(connector: &Connector) -> Self {
        connector.seen().hanging += 1;
        Self(connector.clone())
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        self.0.seen().hanging -= 1;
    }
}

/// A stream with a master at its end.
struct Line {
    master: Master,
    session: Session,
    received: Vec<u8>,
    reader: Option<Waker>,
}

impl Default for Line {
    fn default() -> Self {
        let mut master = Master::new(1);
        master.set_password(Some("hunter2"));
        Self { master, session: Session::new(), received: Vec::new(), reader: None }
    }
}

impl Stream for Line {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let length = self.received.len().min(buffer.len());
        if length == 0 {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        buffer[..length].copy_from_slice(&self.received[..length]);
        self.received.drain(..length);
        Poll::Ready(Ok(length))
    }

    fn poll_write(&mut self, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let flow = self.master.serve(&mut self.session, bytes, Duration::from_secs(1), &mut self.received);
        assert_eq!(flow, Flow::Open);
        self.reader.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn turns(driver: &mut Driver) {
    for _ in 0..20 {
        assert!(turn(driver).is_pending());
    }
}

fn state(locker: &Locker) -> MasterState {
    locker.masters().remove(0).1
}

#[test]
fn a_connector_is_asked_once_for_each_opening_and_knows_no_password() {
    let connector = Connector::default();
    connector.seen().does = Does::Refuses;
    let (world, locker, mut driver) = connector.open();
    turns(&mut driver);
    assert_eq!(state(&locker), MasterState::Down(Cause::Connect(IoFault::new(ErrorKind::ConnectionRefused))));
    assert_eq!(connector.asked(), ["behind.the.tunnel:7000"]);

    connector.seen().does = Does::Connects;
    world.state().now += Duration::from_secs(60);
    turns(&mut driver);
    assert!(matches!(state(&locker), MasterState::Ready { .. }), "{:?}", state(&locker));
    assert_eq!(connector.asked().len(), 2);
}

#[test]
fn a_connector_that_panics_fails_the_opening_and_not_the_driver() {
    for does in [Does::Panics, Does::PanicsLater] {
        let connector = Connector::default();
        connector.seen().does = does;
        let (world, locker, mut driver) = connector.open();
        turns(&mut driver);
        assert_eq!(state(&locker), MasterState::Down(Cause::ConnectorPanicked));

        connector.seen().does = Does::Connects;
        world.state().now += Duration::from_secs(60);
        turns(&mut driver);
        assert!(matches!(state(&locker), MasterState::Ready { .. }));
    }
}

#[test]
fn a_pending_connect_is_reported_after_the_connect_timeout_and_dropped_for_the_next_one() {
    let connector = Connector::default();
    connector.seen().does = Does::Hangs;
    let (world, locker, mut driver) = connector.open();
    turns(&mut driver);
    assert_eq!(connector.hanging(), 1);
    world.state().now += locker.config().connect_timeout();
    turns(&mut driver);
    assert!(matches!(state(&locker), MasterState::Down(Cause::NoConnection { .. })));
    assert_eq!((connector.hanging(), connector.asked().len()), (1, 1), "it may come yet");

    world.state().now += Duration::from_secs(60);
    turns(&mut driver);
    assert_eq!((connector.hanging(), connector.asked().len()), (1, 2));
}

#[test]
fn a_pending_connect_is_dropped_with_the_locker_and_with_the_driver() {
    let connector = Connector::default();
    connector.seen().does = Does::Hangs;
    let (_world, locker, mut driver) = connector.open();
    turns(&mut driver);
    assert_eq!(connector.hanging(), 1);
    drop(locker);
    assert!((0..4).any(|_| turn(&mut driver).is_ready()), "the driver ends with its last user");
    drop(driver);
    assert_eq!(connector.hanging(), 0);
}
