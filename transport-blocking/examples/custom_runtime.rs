//! Locks on an event loop of your own: what a `Port` and a `Host` ask of it, here with non-blocking sockets in one `mio::Poll`. The transports of
//! this project are the same thing with more comfort; `core/examples/by_hand.rs` drives the machine below this. On embedded masters.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll as Polled, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant as Clock};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use quorlock_blocking::Config;
use quorlock_blocking::embedded::Masters;
use quorlock_core::front::{Demand, Host, Port};
use quorlock_core::{Address, Cause, EntropyFailed, Instant, MasterId};

/// What the system lends to the locks.
struct System {
    origin: Clock,
}

impl Host for System {
    /// Monotonic. Better one that goes on in suspend (CLOCK_BOOTTIME on Linux), as keys expire meanwhile; the transports take that.
    fn now(&self) -> Instant {
        Instant::ORIGIN + self.origin.elapsed()
    }

    /// Of the operating system, anew each time: whoever can guess a token can release a lock.
    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        getrandom::fill(bytes).map_err(|_| EntropyFailed)
    }

    /// Only for callers that are not async (`wait()`): poll once, and again after each wake-up. The loop runs on another thread here, so this one may
    /// sleep. A loop that shares the thread with its callers would take its turns in here.
    fn block_on(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Polled<()>) {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        while poll(&mut Context::from_waker(&waker)).is_pending() {
            thread::park();
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Ends the sleep of the loop from any thread.
struct Interrupt(mio::Waker);

impl Wake for Interrupt {
    fn wake(self: Arc<Self>) {
        // It fails only where the poll is gone.
        let _ = self.0.wake();
    }
}

/// The write side of a socket. Whoever asks for a lock writes his request himself, on his own thread, so it must take bytes without waiting, or
/// say `WouldBlock`. The two sides share the socket, which is closed when both are gone.
struct Sink(Arc<TcpStream>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A master's connection. Each demand to open one has a number, the generation; what is said of an older one is not listened to.
struct Link {
    generation: u32,
    socket: Arc<TcpStream>,
    is_open: bool,
}

struct Loop {
    port: Port,
    poll: Poll,
    masters: Vec<(MasterId, Option<SocketAddr>, Option<Link>)>,
}

const INTERRUPT: Token = Token(usize::MAX);

impl Loop {
    fn new(port: Port, config: &Config) -> io::Result<Self> {
        // Embedded masters have numbers as addresses. Names are to be resolved without holding up the loop: on a thread, or by a resolver that is async.
        let address = |address: &Address| match address {
            Address::Tcp { host, port } => host.parse().ok().map(|ip| SocketAddr::new(ip, *port)),
            Address::Unix(_) => None,
        };
        let masters = config.master_ids().zip(config.masters());
        let masters = masters.map(|(id, endpoint)| (id, address(endpoint.address()), None)).collect();
        Ok(Self { port, poll: Poll::new()?, masters })
    }

    /// Turn after turn, until the last locker, guard and future is gone.
    fn run(mut self) -> io::Result<()> {
        let interrupt = Waker::from(Arc::new(Interrupt(mio::Waker::new(self.poll.registry(), INTERRUPT)?)));
        let mut events = Events::with_capacity(64);
        loop {
            // 1. Before anything is looked at, so that nothing falls between looking and sleeping.
            self.port.register(&interrupt);
            if self.port.is_finished() {
                return Ok(());
            }
            // 2. Sleep until a socket has something, the waker is woken, or the time is over. `sleep` is called last before it: what was asked for since
            //    `tick` is written here.
            let span = self.port.sleep();
            match self.poll.poll(&mut events, span) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            // 3. Hand in everything that has come, and only then tell the time: an answer that still lies in a socket would count as silence.
            for event in events.iter().filter(|event| event.token() != INTERRUPT) {
                self.serve(event.token().0, event.is_writable());
            }
            // 4. Now it happens: votes are counted, callers woken, requests written.
            self.port.tick();
            // 5. And what the locks want of the loop is carried out.
            while let Some(demand) = self.port.next_demand() {
                self.carry_out(demand);
            }
        }
    }

    fn carry_out(&mut self, demand: Demand) {
        let (Demand::Connect { master, .. } | Demand::Close { master, .. }) = demand;
        let Some((_, address, link)) = self.masters.get_mut(master.index()) else { return };
        match demand {
            Demand::Connect { generation, .. } => {
                let opening = address.ok_or(io::ErrorKind::InvalidInput.into()).and_then(TcpStream::connect);
                let opening = opening.and_then(|mut socket| {
                    let both = Interest::READABLE | Interest::WRITABLE;
                    self.poll.registry().register(&mut socket, Token(master.index()), both)?;
                    Ok(Link { generation, socket: Arc::new(socket), is_open: false })
                });
                // Every `Connect` is answered, with `opened` or with `closed`; how often to try again is for the machine to say.
                match opening {
                    Ok(opening) => *link = Some(opening),
                    Err(error) => {
                        *link = None;
                        self.port.closed(master, generation, Cause::from(&error));
                    }
                }
            }
            // An older connection than the present one has been dropped already.
            Demand::Close { generation, .. } => drop(link.take_if(|link| link.generation == generation)),
        }
    }

    /// Something has happened on a master's socket.
    fn serve(&mut self, place: usize, is_writable: bool) {
        let Some((id, _, link)) = self.masters.get_mut(place) else { return };
        let Some(Link { generation, socket, is_open }) = link else { return };
        let generation = *generation;
        let ended = if *is_open {
            if is_writable && self.port.is_blocked(*id) {
                self.port.retry_write(*id);
            }
            read(&self.port, *id, generation, socket)
        } else {
            match (socket.take_error(), socket.peer_addr()) {
                (Ok(Some(error)) | Err(error), _) => Err(Cause::from(&error)),
                (Ok(None), Ok(_)) => {
                    *is_open = true;
                    // Small requests must not wait for company.
                    let _ = socket.set_nodelay(true);
                    self.port.opened(*id, generation, Sink(Arc::clone(socket)));
                    Ok(())
                }
                (Ok(None), Err(_)) => return,
            }
        };
        if let Err(cause) = ended {
            *link = None;
            self.port.closed(*id, generation, cause);
        }
    }
}

/// Until there is nothing more, as this poll tells only of what is new. A loop with many other things to do stops after a while and comes back.
fn read(port: &Port, id: MasterId, generation: u32, mut socket: &TcpStream) -> Result<(), Cause> {
    let mut buffer = [0; 4096];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return Err(Cause::Closed),
            Ok(length) => port.received(id, generation, buffer.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Cause::from(&error)),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let masters = Masters::start(3)?;
    let (locker, port) = Port::new(masters.config()?, Arc::new(System { origin: Clock::now() }));
    let events = Loop::new(port, locker.config())?;
    let running = thread::spawn(|| events.run());

    let guard = locker.lock("invoice:42").ttl(Duration::from_millis(600)).renew().wait()?;
    println!("held for {:?}", guard.remaining());
    masters.iter().take(1).for_each(|master| master.stop());
    thread::sleep(Duration::from_secs(1));
    println!("one master is dead, renewal goes on: held for {:?}", guard.remaining());
    guard.release().wait()?;
    println!("released");
    // The loop ends when nobody can ask for anything any more.
    drop(locker);
    running.join().map_err(|_| "the loop has panicked")??;
    println!("the loop has ended");
    Ok(())
}
