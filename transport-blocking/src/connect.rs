//! Opening a connection step by step: resolve the name, then try its addresses one after the other.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::task::Waker;
use std::thread;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use quorlock_core::{Address, Cause, Endpoint};

use crate::socket::Socket;

/// A connection that is being opened.
pub(crate) struct Connecting {
    step: Step,
    /// Addresses that have not been tried yet, the first of them last.
    addresses: Vec<SocketAddr>,
    last_failure: Cause,
}

enum Step {
    /// The system's resolver waits for its answer, so a thread of its own asks it.
    Resolving(Receiver<Vec<SocketAddr>>),
    NextAddress,
    /// A Unix domain socket connects at once or not at all; only TCP is waited for in the poll.
    Trying(Socket),
    Failed,
    Ended,
}

/// How far an opening has come.
pub(crate) enum Progress {
    Pending,
    /// It stands, and is not registered.
    Connected(Socket),
    Failed(Cause),
}

impl Connecting {
    /// Starts. `waker` is woken when a name has been resolved.
    pub(crate) fn begin(endpoint: &Endpoint, waker: &Waker) -> Self {
        let mut connecting =
            Self { step: Step::NextAddress, addresses: Vec::new(), last_failure: Cause::UnknownHost };
        match endpoint.address() {
            Address::Tcp { host, port } => match host.parse::<IpAddr>() {
                Ok(ip) => connecting.addresses.push(SocketAddr::new(ip, *port)),
                Err(_) => connecting.step = resolve(host.clone(), *port, waker.clone()),
            },
            #[cfg(unix)]
            Address::Unix(path) => {
                connecting.try_socket(mio::net::UnixStream::connect(path).map(Socket::Unix));
            }
            #[cfg(not(unix))]
            Address::Unix(_) => {
                connecting.last_failure = Cause::Connect(std::io::ErrorKind::Unsupported);
                connecting.step = Step::Failed;
            }
        }
        connecting
    }

    /// Whether it waits for the resolver, of which the poll knows nothing.
    pub(crate) fn is_resolving(&self) -> bool {
        matches!(self.step, Step::Resolving(_))
    }

    /// Goes as far as it can without waiting.
    pub(crate) fn advance(&mut self, registry: &Registry, token: Token) -> Progress {
        loop {
            match std::mem::replace(&mut self.step, Step::Ended) {
                Step::Resolving(answer) => match answer.try_recv() {
                    Ok(mut addresses) => {
                        addresses.reverse();
                        self.addresses = addresses;
                        self.step = Step::NextAddress;
                    }
                    Err(TryRecvError::Empty) => {
                        self.step = Step::Resolving(answer);
                        return Progress::Pending;
                    }
                    Err(TryRecvError::Disconnected) => self.step = Step::Failed,
                },
                Step::NextAddress => match self.addresses.pop() {
                    Some(address) => {
                        self.try_socket(TcpStream::connect(address).map(Socket::Tcp));
                        self.register(registry, token);
                    }
                    None => self.step = Step::Failed,
                },
                Step::Trying(mut socket) => match socket.outcome() {
                    Some(Ok(())) => {
                        // It fails where nothing was registered, which is as well.
                        let _ = registry.deregister(&mut socket);
                        return Progress::Connected(socket);
                    }
                    None => {
                        self.step = Step::Trying(socket);
                        return Progress::Pending;
                    }
                    Some(Err(error)) => {
                        let _ = registry.deregister(&mut socket);
                        self.last_failure = Cause::from(&error);
                        self.step = Step::NextAddress;
                    }
                },
                Step::Failed => return Progress::Failed(self.last_failure),
                Step::Ended => return Progress::Pending,
            }
        }
    }

    /// Gives it up.
    pub(crate) fn end(self, registry: &Registry) {
        if let Step::Trying(mut socket) = self.step {
            let _ = registry.deregister(&mut socket);
        }
    }

    fn try_socket(&mut self, socket: std::io::Result<Socket>) {
        self.step = match socket {
            Ok(socket) => Step::Trying(socket),
            Err(error) => {
                self.last_failure = Cause::from(&error);
                Step::NextAddress
            }
        };
    }

    fn register(&mut self, registry: &Registry, token: Token) {
        if let Step::Trying(socket) = &mut self.step {
            if let Err(error) = registry.register(socket, token, Interest::WRITABLE) {
                self.last_failure = Cause::from(&error);
                self.step = Step::NextAddress;
            }
        }
    }
}

fn resolve(host: String, port: u16, waker: Waker) -> Step {
    let (tell, answer) = mpsc::channel();
    let resolver = thread::Builder::new().name("quorlock-resolve".into());
    let resolver = resolver.spawn(move || {
        let addresses = (host.as_str(), port).to_socket_addrs().map(Iterator::collect).unwrap_or_default();
        // Nobody listens where the attempt has been given up meanwhile.
        let _ = tell.send(addresses);
        waker.wake();
    });
    match resolver {
        Ok(_) => Step::Resolving(answer),
        Err(_) => Step::Failed,
    }
}
