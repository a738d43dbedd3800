//! A connection to one master: over TCP, a Unix domain socket or a socket of the caller.

use std::io::{self, Read, Write};

use mio::event::Source;
use mio::net::TcpStream;
use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use quorlock_core::Cause;

use crate::own::Own;

/// The side of a connection that the loop reads.
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Own(Own),
}

/// The side that callers write: a second handle of the same socket.
pub(crate) type Sink = Box<dyn Write + Send>;

impl Socket {
    /// The outcome of connecting: `None` while it is not known.
    pub(crate) fn outcome(&self) -> Option<io::Result<()>> {
        let (error, connected) = match self {
            Self::Tcp(stream) => (stream.take_error(), stream.peer_addr().map(drop)),
            Self::Unix(stream) => (stream.take_error(), stream.peer_addr().map(drop)),
            // The connector has connected it.
            Self::Own(_) => return Some(Ok(())),
        };
        match (error, connected) {
            (Err(error) | Ok(Some(error)), _) => Some(Err(error)),
            (Ok(None), Ok(())) => Some(Ok(())),
            (Ok(None), Err(error)) if error.kind() == io::ErrorKind::NotConnected => None,
            (Ok(None), Err(error)) => Some(Err(error)),
        }
    }

    /// The side to read and the side to write. The socket must not be registered.
    pub(crate) fn into_halves(self) -> Result<(Self, Sink), Cause> {
        let halves = match self {
            Self::Tcp(stream) => {
                let stream = std::net::TcpStream::from(stream);
                quorlock_host::keep_alive(&stream);
                // Requests are small and must not wait for more bytes to fill a segment.
                let sink = stream.set_nodelay(true).and_then(|()| stream.try_clone());
                sink.map(|sink| (Self::Tcp(TcpStream::from_std(stream)), Box::new(sink) as Sink))
            }
            Self::Unix(stream) => {
                let stream = std::os::unix::net::UnixStream::from(stream);
                stream
                    .try_clone()
                    .map(|sink| (Self::Unix(UnixStream::from_std(stream)), Box::new(sink) as Sink))
            }
            Self::Own(own) => {
                let sink = own.sink();
                Ok((Self::Own(own), sink))
            }
        };
        halves.map_err(|error| Cause::from(&error))
    }

    /// Reads the bytes that have arrived; `None` if there are none.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Option<Result<usize, Cause>> {
        loop {
            let read = match self {
                Self::Tcp(stream) => stream.read(buffer),
                Self::Unix(stream) => stream.read(buffer),
                Self::Own(own) => return own.read(buffer),
            };
            return match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
                read => Some(read.map_err(|error| Cause::from(&error))),
            };
        }
    }

    /// Whether a read that does not fill the buffer has emptied the socket. Later bytes then cause
    /// an event of the poll. A socket of the caller may have read ahead, and returns those bytes
    /// first.
    pub(crate) fn gives_all(&self) -> bool {
        match self {
            Self::Tcp(_) => true,
            Self::Unix(_) => true,
            Self::Own(_) => false,
        }
    }

    /// Whether the socket must be read although the poll reports no event.
    pub(crate) fn has_fault(&self) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Unix(_) => false,
            Self::Own(own) => own.has_fault(),
        }
    }
}

impl Source for Socket {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.register(registry, token, interests),
            Self::Unix(stream) => stream.register(registry, token, interests),
            Self::Own(own) => own.register(registry, token, interests),
        }
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.reregister(registry, token, interests),
            Self::Unix(stream) => stream.reregister(registry, token, interests),
            Self::Own(own) => own.reregister(registry, token, interests),
        }
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.deregister(registry),
            Self::Unix(stream) => stream.deregister(registry),
            Self::Own(own) => own.deregister(registry),
        }
    }
}
