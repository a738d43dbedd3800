//! Problem: a program has an async runtime of its own, which is neither tokio nor smol.
//!
//! A hand-written executor and reactor stand in for that runtime. Below them are the three small
//! traits through which the driver of `quorlock-core` uses it. `core/docs/driving.md` has a
//! transport below these traits, and `core/examples/by_hand.rs` the machine below that.
//!
//! Run: `cargo run -p quorlock-blocking --example custom_runtime`, on embedded masters.
//!
//! Watch: renewal goes on after a master has died. The driver ends when the last locker is gone,
//! and not before.
#![allow(clippy::print_stdout)]

use std::cell::Cell;
use std::collections::HashMap;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Registry, Token};
use quorlock_core::front::{Driver, Runtime, Socket, Timer};
use quorlock_embedded::Masters;
use quorlock_host::{Sink, System};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// The runtime. A program that has one begins with the traits below it.

/// What wakes tasks: events of sockets, and the time.
struct Reactor {
    registry: Registry,
    sockets: Mutex<HashMap<Token, Weak<Mutex<Readiness>>>>,
    /// By the number of the timer.
    timers: Mutex<HashMap<usize, (Instant, Waker)>>,
    numbers: Mutex<usize>,
}

/// What has happened on a socket since its task last looked, and the task that has the socket.
#[derive(Default)]
struct Readiness {
    is_readable: bool,
    is_writable: bool,
    waker: Option<Waker>,
}

const INTERRUPT: Token = Token(0);

impl Reactor {
    fn number(&self) -> usize {
        let mut last = lock(&self.numbers);
        *last += 1;
        *last
    }

    fn register(&self, stream: &mut TcpStream) -> io::Result<Arc<Mutex<Readiness>>> {
        let (token, readiness) = (Token(self.number()), Arc::default());
        self.registry.register(stream, token, Interest::READABLE | Interest::WRITABLE)?;
        let mut sockets = lock(&self.sockets);
        sockets.retain(|_, readiness| readiness.strong_count() > 0);
        sockets.insert(token, Arc::downgrade(&readiness));
        Ok(readiness)
    }

    /// Sleeps until something happens, and wakes the tasks that it concerns.
    fn turn(&self, poll: &mut mio::Poll, events: &mut Events, is_busy: bool) -> io::Result<()> {
        let next = lock(&self.timers).values().map(|(at, _)| *at).min();
        let until_next = next.map(|at| at.saturating_duration_since(Instant::now()));
        match poll.poll(events, if is_busy { Some(Duration::ZERO) } else { until_next }) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        let mut woken = Vec::new();
        for event in events.iter() {
            let readiness = lock(&self.sockets).get(&event.token()).and_then(Weak::upgrade);
            let Some(readiness) = readiness else { continue };
            let mut readiness = lock(&readiness);
            readiness.is_readable |= event.is_readable() || event.is_read_closed() || event.is_error();
            readiness.is_writable |= event.is_writable() || event.is_error();
            woken.extend(readiness.waker.take());
        }
        let now = Instant::now();
        lock(&self.timers).retain(|_, (at, waker)| {
            if *at <= now {
                woken.push(waker.clone());
            }
            *at > now
        });
        woken.into_iter().for_each(Waker::wake);
        Ok(())
    }
}

/// Whether a task must be polled, and the waker that ends the reactor's sleep.
struct Ready(AtomicBool, Arc<mio::Waker>);

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        if !self.0.swap(true, Ordering::AcqRel) {
            // It fails only if the poll is gone.
            let _ = self.1.wake();
        }
    }
}

/// Runs tasks on this thread until all of them have ended.
fn run(
    reactor: &Reactor,
    mut poll: mio::Poll,
    tasks: Vec<Pin<Box<dyn Future<Output = ()> + '_>>>,
) -> io::Result<()> {
    let interrupt = Arc::new(mio::Waker::new(poll.registry(), INTERRUPT)?);
    let ready = || Arc::new(Ready(AtomicBool::new(true), Arc::clone(&interrupt)));
    let mut tasks: Vec<_> = tasks.into_iter().map(|task| (task, ready())).collect();
    let mut events = Events::with_capacity(64);
    while !tasks.is_empty() {
        tasks.retain_mut(|(task, ready)| {
            let waker = Waker::from(Arc::clone(ready));
            !ready.0.swap(false, Ordering::AcqRel)
                || task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
        });
        let is_busy = tasks.iter().any(|(_, ready)| ready.0.load(Ordering::Acquire));
        reactor.turn(&mut poll, &mut events, is_busy)?;
    }
    Ok(())
}

// What a locker needs from the runtime.

#[derive(Clone)]
struct Own(Arc<Reactor>);

impl Runtime for Own {
    type Socket = Stream;
    type Timer = Alarm;

    fn timer(&self, span: Duration) -> Alarm {
        Alarm { reactor: Arc::clone(&self.0), number: self.0.number(), at: Instant::now() + span }
    }

    /// Embedded masters have numeric addresses, which need no resolver. Resolve names on another
    /// thread, because the system's resolver blocks.
    async fn resolve(self, host: String, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok((host.as_str(), port).to_socket_addrs()?.collect())
    }

    async fn connect(self, to: SocketAddr) -> io::Result<Stream> {
        let mut stream = TcpStream::connect(to)?;
        let readiness = self.0.register(&mut stream)?;
        poll_fn(|cx| poll_event(&readiness, cx, |readiness| &mut readiness.is_writable)).await;
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        stream.set_nodelay(true)?;
        Ok(Stream { direct: Sink::new(stream), readiness })
    }
}

struct Stream {
    direct: Sink,
    readiness: Arc<Mutex<Readiness>>,
}

/// Ready if this has happened since the last call that was ready.
fn poll_event(
    readiness: &Mutex<Readiness>,
    cx: &mut Context<'_>,
    event: fn(&mut Readiness) -> &mut bool,
) -> Poll<()> {
    let mut readiness = lock(readiness);
    if mem::take(event(&mut readiness)) {
        return Poll::Ready(());
    }
    readiness.waker = Some(cx.waker().clone());
    Poll::Pending
}

impl Socket for Stream {
    /// A caller writes its request itself, on its own thread.
    fn sink(&self) -> impl Write + Send + 'static {
        self.direct.clone()
    }

    /// The waker is registered before the socket is read, so that bytes that arrive in between are
    /// not missed.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8], _: bool) -> Poll<io::Result<usize>> {
        loop {
            let is_registered = self.poll_readable(cx).is_pending();
            match self.direct.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if is_registered {
                        return Poll::Pending;
                    }
                }
                read => return Poll::Ready(read),
            }
        }
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        poll_event(&self.readiness, cx, |readiness| &mut readiness.is_readable)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, write: &mut dyn FnMut() -> bool) -> Poll<()> {
        loop {
            let polled = poll_event(&self.readiness, cx, |readiness| &mut readiness.is_writable);
            if write() {
                return Poll::Ready(());
            }
            if polled.is_pending() {
                return Poll::Pending;
            }
        }
    }
}

struct Alarm {
    reactor: Arc<Reactor>,
    number: usize,
    at: Instant,
}

impl Timer for Alarm {
    fn reset(&mut self, span: Duration) {
        self.at = Instant::now() + span;
    }

    fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.at {
            return Poll::Ready(());
        }
        lock(&self.reactor.timers).insert(self.number, (self.at, cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        lock(&self.reactor.timers).remove(&self.number);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let masters = Masters::start(3)?;
    let poll = mio::Poll::new()?;
    let reactor = Arc::new(Reactor {
        registry: poll.registry().try_clone()?,
        sockets: Mutex::default(),
        timers: Mutex::default(),
        numbers: Mutex::default(),
    });
    let runtime = Own(Arc::clone(&reactor));
    // The clock, random bytes and the check for forks are those of the other transports.
    let (locker, driver) = Driver::open(masters.config()?, Arc::new(System::new()), runtime.clone());
    let outcome = Cell::new(None);
    let work = async move {
        let guard = locker.lock("invoice:42").ttl(Duration::from_millis(600)).renew().await?;
        println!("held for {:?}", guard.remaining());
        masters.iter().take(1).for_each(|master| master.stop());
        runtime.sleep(Duration::from_secs(1)).await;
        println!("one master is dead, renewal goes on: held for {:?}", guard.remaining());
        guard.release().await?;
        println!("released");
        Ok::<(), Box<dyn Error>>(())
    };
    // The driver ends when the locker, which `work` has, is gone.
    run(&reactor, poll, vec![Box::pin(driver), Box::pin(async { outcome.set(Some(work.await)) })])?;
    println!("the driver has ended");
    outcome.into_inner().unwrap_or_else(|| Err("the work has not ended".into()))
}
