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

/// A master on a socket of the loopback interface, with its own thread. Dropping it ends the
/// thread and closes its sockets.
pub struct Master {
    address: SocketAddr,
    shared: Arc<Shared>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// State that the handle and the thread share. The thread locks the server for whole turns, never
/// while it sleeps.
struct Shared {
    server: Mutex<Server>,
    /// Notified when a pause or the thread ends.
    goes_on: Condvar,
}

impl Shared {
    fn server(&self) -> MutexGuard<'_, Server> {
        // If the user's closure panics inside `Master::model`, the server still works.
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves turn after turn until the end, on the master's own thread.
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
    /// Returns an error if the system has no port, socket, thread or randomness left.
    pub fn start() -> io::Result<Self> {
        Self::bind((Ipv4Addr::LOCALHOST, 0).into())
    }

    /// Starts a master on an address of the loopback interface, such as `127.0.0.1:7001` or
    /// `[::1]:7001`.
    ///
    /// Port 0 stands for any free port.
    ///
    /// # Errors
    /// - [`io::ErrorKind::AddrInUse`] if another program listens there.
    /// - [`io::ErrorKind::InvalidInput`] if the address is not of the loopback interface, because
    ///   other machines must not use an embedded master.
    /// - Any other kind if the system has no socket, thread or randomness left.
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

    /// Returns the address of the master, which it also keeps while it is stopped.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of the master, such as `redis://127.0.0.1:7001`.
    ///
    /// It does not contain a password that was set in the model.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Makes the master hang, as SIGSTOP does.
    ///
    /// Once this returns, the master executes and answers nothing. The system still accepts
    /// connections and bytes for it. A stopped master cannot be paused.
    pub fn pause(&self) {
        let mut server = self.shared.server();
        server.is_paused = server.is_listening();
    }

    /// Continues after [`Master::pause`]: the master executes what has arrived meanwhile.
    pub fn resume(&self) {
        self.shared.server().is_paused = false;
        self.shared.goes_on.notify_one();
    }

    /// Stops the master, as SIGKILL does: its connections end at once, and new ones are refused.
    ///
    /// This also ends a pause.
    pub fn stop(&self) {
        self.shared.server().close();
        // A thread that waits for the end of a pause must stop waiting.
        self.shared.goes_on.notify_one();
    }

    /// Starts the master again on the same address, with a new run id, no scripts, and the keys
    /// that `keep` leaves.
    ///
    /// A running master is stopped first. Failures that were set in the model stay.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::AddrInUse`] if another program has taken the port meanwhile, and
    /// any other kind if the system has no socket or randomness left.
    pub fn restart(&self, keep: Keep) -> io::Result<()> {
        let identity = random()?;
        self.stop();
        let listener = listen_again(self.address)?;
        let mut server = self.shared.server();
        server.model.restart(identity, keep.choice());
        server.listen(listener)
    }

    /// Gives access to the model of the master, to inspect it or to make it fail.
    ///
    /// The closure runs between two commands, whether the master is running, paused or stopped. It
    /// must not use this handle, which would be a deadlock. Pass [`now`](super::now) to methods
    /// that take the time.
    pub fn model<T>(&self, look: impl FnOnce(&mut quorlock_sim::Master) -> T) -> T {
        let mut server = self.shared.server();
        let before = server.model.next_end();
        let seen = look(&mut server.model);
        if server.tell_readers() || server.model.next_end() != before {
            // It fails only if the poll is gone, and then no client is served.
            let _ = self.waker.wake();
        }
        seen
    }

    /// Refers to the state that is dropped when both this handle and the thread have ended.
    #[cfg(test)]
    pub(super) fn life(&self) -> std::sync::Weak<impl Sized + use<>> {
        Arc::downgrade(&self.shared)
    }

    /// Returns whether the master is not stopped. A paused master is running.
    pub fn is_running(&self) -> bool {
        self.shared.server().is_listening()
    }

    /// Returns the client name of each connection, empty where none was set.
    ///
    /// Lockers set [`ConfigBuilder::client_name`](quorlock_core::ConfigBuilder::client_name).
    pub fn clients(&self) -> Vec<String> {
        self.shared.server().clients()
    }

    /// Returns the number of commands of this kind that the master has executed, including those
    /// that failed.
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
        // It fails only if the poll is gone, and then no thread sleeps in it.
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // It ends after its turn. If it panicked, the panic has been reported.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Master {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Master").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Listens on a free port of this address.
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

/// Listens where this master listened before. A listener that was closed a moment ago may live on
/// in a process that is just being started, until that closes what it has inherited; so a port in
/// use is tried again for a while.
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

/// Masters must not be mistaken for one another, not even across processes.
fn random() -> io::Result<u64> {
    getrandom::u64().map_err(io::Error::other)
}

/// Below the range from which Linux (32768) and macOS (49152) give ports to outgoing connections:
/// otherwise one of them could take the port of a master that is stopped, and a client that tries
/// it again and again would now and then be given that very port and connect to itself.
const PORTS: std::ops::Range<u16> = 12_000..18_000;
const PORT_TRIES: usize = 256;
const LISTEN_WITHIN: Duration = Duration::from_secs(5);
