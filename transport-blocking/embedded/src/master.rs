//! The handle of one embedded master, and the thread that serves it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, io};

use mio::net::TcpListener;
use mio::{Events, Poll, Waker};
use quorlock_sim::{CommandKind, Keep};

use super::server::{Server, WAKE};

/// One master on a socket of the loopback, served by a thread of its own. Dropping it ends the thread and closes its sockets.
pub struct Master {
    address: SocketAddr,
    shared: Arc<Shared>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// What the handle and the thread share. The thread holds the server for whole turns, never while it sleeps.
struct Shared {
    server: Mutex<Server>,
    /// Told when a pause or everything ends.
    goes_on: Condvar,
}

impl Shared {
    fn server(&self) -> MutexGuard<'_, Server> {
        // A closure of the user's that panics inside of `Master::model` leaves a server that works.
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread: turn after turn until the end.
    fn serve(&self, mut poll: Poll) {
        let mut events = Events::with_capacity(256);
        let mut sleep = None;
        loop {
            if let Err(error) = poll.poll(&mut events, sleep) {
                debug_assert_eq!(error.kind(), io::ErrorKind::Interrupted, "the poll itself works: {error}");
            }
            let mut server = self.server();
            while server.is_paused && !server.has_ended {
                server = self.goes_on.wait(server).unwrap_or_else(PoisonError::into_inner);
            }
            if server.has_ended {
                return;
            }
            sleep = server.turn(&events);
        }
    }
}

impl Master {
    /// Starts a master on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// Where the system has no port, socket, thread or randomness left.
    pub fn start() -> io::Result<Self> {
        Self::bind((Ipv4Addr::LOCALHOST, 0).into())
    }

    /// Starts a master on this address of the loopback, such as `127.0.0.1:7001` or `[::1]:7001`; port 0 is one that is free.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if something listens there, [`io::ErrorKind::InvalidInput`] for an address that is not of the
    /// loopback: an embedded master is not for others to use. And where the system has no socket, thread or randomness left.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "an embedded master listens on addresses of the loopback only",
            ));
        }
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE)?;
        let listener =
            if address.port() == 0 { listen_anywhere(address) } else { TcpListener::bind(address) }?;
        let address = listener.local_addr()?;
        let mut server = Server::new(quorlock_sim::Master::new(random()?), poll.registry().try_clone()?);
        server.listen(listener)?;
        let shared = Arc::new(Shared { server: Mutex::new(server), goes_on: Condvar::new() });
        let serving = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("quorlock-master".into()).spawn(move || serving.serve(poll))?;
        Ok(Self { address, shared, waker, thread: Some(thread) })
    }

    /// Where it listens, also while it is stopped.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL, such as `redis://127.0.0.1:7001`. A password that was set in the model is not in it.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Makes it hang, as SIGSTOP does: once this returns nothing is executed and nothing answered, while the system goes on
    /// accepting connections and bytes for it. A stopped master is not paused.
    pub fn pause(&self) {
        let mut server = self.shared.server();
        server.is_paused = server.is_listening();
    }

    /// Lets it go on after [`Master::pause`]: it executes what has come meanwhile.
    pub fn resume(&self) {
        self.shared.server().is_paused = false;
        self.shared.goes_on.notify_one();
    }

    /// Ends it as SIGKILL does, paused or not: its connections are gone at once, and new ones are refused.
    pub fn stop(&self) {
        self.shared.server().close();
        // Whoever waits out a pause has nothing to wait for any more.
        self.shared.goes_on.notify_one();
    }

    /// Starts it again at the same address, with a new run id, without scripts and with so many of its keys, stopping it before if it
    /// runs. What was made to go wrong in its model stays so.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if something else has taken its port meanwhile, and where the system has no socket or randomness left.
    pub fn restart(&self, keep: Keep) -> io::Result<()> {
        let identity = random()?;
        self.stop();
        let listener = listen_again(self.address)?;
        let mut server = self.shared.server();
        server.model.restart(identity, keep.choice());
        server.listen(listener)
    }

    /// Looks at the master as a value or makes something go wrong with it, between two commands, be it running, paused or stopped. The
    /// closure must not use this handle; what asks for the time is given [`now`](super::now).
    pub fn model<T>(&self, look: impl FnOnce(&mut quorlock_sim::Master) -> T) -> T {
        let mut server = self.shared.server();
        let before = server.model.next_end();
        let seen = look(&mut server.model);
        if server.tell_readers() || server.model.next_end() != before {
            // It fails only where the poll is gone, and nobody is served there.
            let _ = self.waker.wake();
        }
        seen
    }

    /// Gone once neither this handle nor the thread is there.
    #[cfg(test)]
    pub(super) fn life(&self) -> std::sync::Weak<impl Sized + use<>> {
        Arc::downgrade(&self.shared)
    }

    /// Whether it is not stopped. A paused one runs.
    pub fn is_running(&self) -> bool {
        self.shared.server().is_listening()
    }

    /// The names that those who are connected gave themselves, empty for those who gave none: a locker's is its configuration's client
    /// name.
    pub fn clients(&self) -> Vec<String> {
        self.shared.server().clients()
    }

    /// How many commands of this kind it has executed, those that failed too.
    pub fn executed(&self, kind: CommandKind) -> u64 {
        self.shared.server().executed(kind)
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        {
            let mut server = self.shared.server();
            server.close();
            server.has_ended = true;
        }
        self.shared.goes_on.notify_one();
        // It fails only where the poll is gone, and then nobody sleeps in it.
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // It ends after its turn. If it panicked, that has been told.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Master {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Master").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Listens at a free port of this address.
fn listen_anywhere(mut address: SocketAddr) -> io::Result<TcpListener> {
    for _ in 0..PORT_TRIES {
        let offset = random()? % u64::from(PORTS.end - PORTS.start);
        // It is below 65536 by the line above.
        address.set_port(PORTS.start + u16::try_from(offset).unwrap_or_default());
        match TcpListener::bind(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            outcome => return outcome,
        }
    }
    address.set_port(0);
    TcpListener::bind(address)
}

/// Listens where this master listened before. A listener that was closed a moment ago may live on in a process that is just being
/// started, until that closes what it has inherited; so a port in use is tried again for a while.
fn listen_again(address: SocketAddr) -> io::Result<TcpListener> {
    let deadline = Instant::now() + LISTEN_WITHIN;
    loop {
        match TcpListener::bind(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(1));
            }
            outcome => return outcome,
        }
    }
}

/// Masters must not pass for one another, in other processes neither.
fn random() -> io::Result<u64> {
    getrandom::u64().map_err(io::Error::other)
}

/// Below the range from which Linux (32768) and macOS (49152) give ports to outgoing connections: otherwise one of them could take the
/// port of a master that is stopped, and a client that tries it again and again would now and then be given that very port and connect
/// to itself.
const PORTS: std::ops::Range<u16> = 12_000..18_000;
const PORT_TRIES: usize = 256;
const LISTEN_WITHIN: Duration = Duration::from_secs(5);
