//! A connection to one master, over TCP or a Unix domain socket.

use std::io::{self, Read, Write};

use mio::event::Source;
use mio::net::TcpStream;
#[cfg(unix)]
use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use quorlock_core::Cause;

/// The side of a connection that the loop reads.
pub(crate) enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

/// The side that whoever has something to say writes: a second handle of the same socket.
pub(crate) type Sink = Box<dyn Write + Send>;

impl Socket {
    /// The outcome of connecting: `None` while it is open.
    pub(crate) fn outcome(&self) -> Option<io::Result<()>> {
        let (error, connected) = match self {
            Self::Tcp(stream) => (stream.take_error(), stream.peer_addr().map(drop)),
            #[cfg(unix)]
            Self::Unix(stream) => (stream.take_error(), stream.peer_addr().map(drop)),
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
                // Requests are small and wait for nothing that would fill a segment.
                let sink = stream.set_nodelay(true).and_then(|()| stream.try_clone());
                sink.map(|sink| (Self::Tcp(TcpStream::from_std(stream)), Box::new(sink) as Sink))
            }
            #[cfg(unix)]
            Self::Unix(stream) => {
                let stream = std::os::unix::net::UnixStream::from(stream);
                stream
                    .try_clone()
                    .map(|sink| (Self::Unix(UnixStream::from_std(stream)), Box::new(sink) as Sink))
            }
        };
        halves.map_err(|error| Cause::from(&error))
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            #[cfg(unix)]
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Source for Socket {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.register(registry, token, interests),
            #[cfg(unix)]
            Self::Unix(stream) => stream.register(registry, token, interests),
        }
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.reregister(registry, token, interests),
            #[cfg(unix)]
            Self::Unix(stream) => stream.reregister(registry, token, interests),
        }
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.deregister(registry),
            #[cfg(unix)]
            Self::Unix(stream) => stream.deregister(registry),
        }
    }
}
