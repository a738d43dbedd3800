//! Opening a connection step by step: resolve the name, then try its addresses. If an attempt takes
//! long, the next one starts beside it.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use quorlock_core::front::{Addresses, Dial};
use quorlock_core::{Address, Cause};

use crate::calls::{Call, Calls};
use crate::socket::Fresh;

/// A connection that is being opened.
pub(crate) enum Connecting {
    /// The system's resolver blocks, so it is called on a separate thread.
    Resolving(Receiver<io::Result<Vec<SocketAddr>>>, Addresses),
    Dialing(Dialing),
    /// A connector of the caller has been called.
    Calling(Call),
    /// A Unix domain socket connects at once or not at all; only TCP connections are waited for in
    /// the poll.
    Done(Option<Opened>),
}

/// Attempts at the addresses of a name.
pub(crate) struct Dialing {
    dial: Dial,
    attempts: Vec<(SocketAddr, TcpStream)>,
    /// When the next attempt starts beside them.
    next_start: Option<Instant>,
}

/// The result of an opening.
pub(crate) type Opened = Result<Fresh, Cause>;

impl Connecting {
    /// Starts. `waker` is woken when a name has been resolved.
    pub(crate) fn begin(address: &Address, addresses: &Addresses, waker: &Waker) -> Self {
        match address {
            Address::Tcp { host, port } => match host.parse::<IpAddr>() {
                Ok(ip) => Self::Dialing(Dialing::new(addresses.dial([SocketAddr::new(ip, *port)]))),
                Err(_) => Self::Resolving(resolve(host.clone(), *port, waker.clone()), addresses.clone()),
            },
            #[cfg(unix)]
            Address::Unix(path) => {
                let connected = mio::net::UnixStream::connect(path).map(Fresh::Unix);
                Self::Done(Some(connected.map_err(|error| Cause::from(&error))))
            }
            #[cfg(not(unix))]
            Address::Unix(_) => {
                Self::Done(Some(Err(Cause::from(&io::Error::from(io::ErrorKind::Unsupported)))))
            }
        }
    }

    /// Starts by calling a connector. `waker` is woken when it has answered.
    pub(crate) fn call(address: Address, calls: &Calls, waker: &Waker) -> Self {
        Self::Calling(calls.begin(address, waker.clone()))
    }

    /// How long the poll may sleep until something must be done that is not an event of the poll. A
    /// resolver wakes the poll itself.
    pub(crate) fn sleep(&self) -> Option<Duration> {
        let Self::Dialing(dialing) = self else { return None };
        dialing.next_start.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Whether there may be something to do that is not an event of the poll.
    pub(crate) fn is_due(&self) -> bool {
        match self {
            Self::Resolving(..) | Self::Calling(_) | Self::Done(_) => true,
            Self::Dialing(_) => self.sleep().is_some_and(|sleep| sleep.is_zero()),
        }
    }

    /// Continues the opening as far as possible without waiting.
    pub(crate) fn advance(&mut self, registry: &Registry, token: Token) -> Option<Opened> {
        if let Self::Resolving(answer, addresses) = self {
            let resolved = match answer.try_recv() {
                Ok(Ok(resolved)) => resolved,
                Ok(Err(error)) => return Some(Err(Cause::unresolved(&error))),
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => Vec::new(),
            };
            *self = Self::Dialing(Dialing::new(addresses.dial(resolved)));
        }
        match self {
            Self::Resolving(..) => None,
            Self::Dialing(dialing) => dialing.advance(registry, token),
            Self::Calling(call) => call.answer(),
            Self::Done(opened) => opened.take(),
        }
    }

    /// Abandons the opening.
    pub(crate) fn end(self, registry: &Registry) {
        if let Self::Dialing(mut dialing) = self {
            dialing.close(registry);
        }
    }
}

impl Dialing {
    pub(crate) fn new(dial: Dial) -> Self {
        Self { dial, attempts: Vec::new(), next_start: Some(Instant::now()) }
    }

    fn advance(&mut self, registry: &Registry, token: Token) -> Option<Opened> {
        loop {
            if let Some(winner) = self.look(registry) {
                self.close(registry);
                return Some(Ok(Fresh::Tcp(winner)));
            }
            if let Some(cause) = self.dial.failure() {
                return Some(Err(cause));
            }
            if self.next_start.is_none_or(|at| Instant::now() < at) {
                return None;
            }
            self.start(registry, token);
        }
    }

    /// Checks the attempts, and returns the first one that is connected, if any.
    fn look(&mut self, registry: &Registry) -> Option<TcpStream> {
        let mut place = 0;
        while let Some((address, stream)) = self.attempts.get(place) {
            let address = *address;
            let Some(outcome) = outcome(stream) else {
                place += 1;
                continue;
            };
            let (_, mut stream) = self.attempts.remove(place);
            let _ = registry.deregister(&mut stream);
            match outcome {
                Ok(()) => {
                    self.dial.connected(address);
                    return Some(stream);
                }
                Err(error) => self.failed(address, &error),
            }
        }
        None
    }

    fn start(&mut self, registry: &Registry, token: Token) {
        self.next_start = None;
        let Some(address) = self.dial.next_attempt() else { return };
        let started = TcpStream::connect(address).and_then(|mut stream| {
            registry.register(&mut stream, token, Interest::WRITABLE)?;
            Ok(stream)
        });
        match started {
            Ok(stream) => {
                self.attempts.push((address, stream));
                self.next_start = self.dial.pause().map(|pause| Instant::now() + pause);
            }
            Err(error) => self.failed(address, &error),
        }
    }

    fn failed(&mut self, address: SocketAddr, error: &io::Error) {
        self.dial.failed(address, Cause::from(error));
        self.next_start = Some(Instant::now());
    }

    fn close(&mut self, registry: &Registry) {
        for (_, mut stream) in self.attempts.drain(..) {
            let _ = registry.deregister(&mut stream);
        }
    }
}

/// The outcome of connecting: `None` while it is not known.
fn outcome(stream: &TcpStream) -> Option<io::Result<()>> {
    match (stream.take_error(), stream.peer_addr()) {
        (Err(error) | Ok(Some(error)), _) => Some(Err(error)),
        (Ok(None), Ok(_)) => Some(Ok(())),
        (Ok(None), Err(error)) if error.kind() == io::ErrorKind::NotConnected => None,
        (Ok(None), Err(error)) => Some(Err(error)),
    }
}

fn resolve(host: String, port: u16, waker: Waker) -> Receiver<io::Result<Vec<SocketAddr>>> {
    let (tell, answer) = mpsc::channel();
    let without_thread = tell.clone();
    let resolver = thread::Builder::new().name("quorlock-resolve".into());
    let resolver = resolver.spawn(move || {
        let addresses = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
        // This fails if the attempt has been abandoned meanwhile.
        let _ = tell.send(addresses);
        waker.wake();
    });
    if let Err(error) = resolver {
        // The receiver is still here.
        let _ = without_thread.send(Err(error));
    }
    answer
}
