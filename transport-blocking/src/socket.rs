//! A connection to one master: over TCP, a Unix domain socket or a socket of the caller.
//!
//! The loop reads it and callers write it, through one handle that both share. Not through two: the
//! poll of Windows knows a handle and no duplicate of it.

use std::io::{self, Read, Write};
use std::sync::Arc;

use mio::event::Source;
use mio::net::TcpStream;
#[cfg(unix)]
use mio::net::UnixStream;
#[cfg(unix)]
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use quorlock_core::Cause;

#[cfg(unix)]
use crate::own::Own;

const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// A connection that has just been opened, and that the poll does not know yet.
pub(crate) enum Fresh {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
    #[cfg(unix)]
    Own(Own),
}

/// The side of a connection that the loop reads.
pub(crate) enum Socket {
    Tcp(Arc<TcpStream>),
    #[cfg(unix)]
    Unix(Arc<UnixStream>),
    #[cfg(unix)]
    Own(Own),
}

/// The side that callers write.
pub(crate) type Sink = Box<dyn Write + Send>;

impl Fresh {
    /// Makes the socket known to the poll, and returns the side to read and the side to write.
    pub(crate) fn split(self, registry: &Registry, token: Token) -> io::Result<(Socket, Sink)> {
        match self {
            Self::Tcp(stream) => {
                quorlock_host::keep_alive(&stream);
                // Requests are small and must not wait for more bytes to fill a segment.
                stream.set_nodelay(true)?;
                let (stream, sink) = share(stream, registry, token)?;
                Ok((Socket::Tcp(stream), sink))
            }
            #[cfg(unix)]
            Self::Unix(stream) => {
                let (stream, sink) = share(stream, registry, token)?;
                Ok((Socket::Unix(stream), sink))
            }
            #[cfg(unix)]
            Self::Own(own) => {
                registry.register(&mut SourceFd(&own.descriptor()), token, BOTH)?;
                let sink = own.sink();
                Ok((Socket::Own(own), sink))
            }
        }
    }
}

fn share<S>(mut stream: S, registry: &Registry, token: Token) -> io::Result<(Arc<S>, Sink)>
where
    S: Source + Send + Sync + 'static,
    for<'a> &'a S: Write,
{
    registry.register(&mut stream, token, BOTH)?;
    let stream = Arc::new(stream);
    Ok((Arc::clone(&stream), Box::new(Shared(stream))))
}

/// A stream that is written while another thread reads it.
struct Shared<S>(Arc<S>);

impl<S> Write for Shared<S>
where
    for<'a> &'a S: Write,
{
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Socket {
    /// Reads the bytes that have arrived; `None` if there are none.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Option<Result<usize, Cause>> {
        loop {
            let read = match self {
                Self::Tcp(stream) => (&**stream).read(buffer),
                #[cfg(unix)]
                Self::Unix(stream) => (&**stream).read(buffer),
                #[cfg(unix)]
                Self::Own(own) => return own.read(buffer),
            };
            return match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
                read => Some(read.map_err(|error| Cause::from(&error))),
            };
        }
    }

    /// Whether a read that does not fill the buffer has emptied the socket, so that later bytes
    /// cause an event of the poll. On Windows they do so only after a read has found nothing, and a
    /// socket of the caller may have read ahead, and returns those bytes first.
    pub(crate) fn gives_all(&self) -> bool {
        match self {
            Self::Tcp(_) => cfg!(unix),
            #[cfg(unix)]
            Self::Unix(_) => true,
            #[cfg(unix)]
            Self::Own(_) => false,
        }
    }

    /// Whether the socket must be read although the poll reports no event.
    pub(crate) fn has_fault(&self) -> bool {
        match self {
            Self::Tcp(_) => false,
            #[cfg(unix)]
            Self::Unix(_) => false,
            #[cfg(unix)]
            Self::Own(own) => own.has_fault(),
        }
    }

    /// Ends the events. The side to write may live on, and so may a handle in a forked child, so
    /// that closing alone would not end them.
    #[cfg(unix)]
    pub(crate) fn leave(&self, registry: &Registry) {
        use std::os::fd::AsRawFd as _;

        let descriptor = match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
            Self::Own(own) => own.descriptor(),
        };
        // It fails only if the socket is not registered.
        let _ = registry.deregister(&mut SourceFd(&descriptor));
    }

    /// Events end when the front drops the side to write, at the latest when it learns of the end
    /// of the connection. Until then they cause needless reads, and nothing else.
    #[cfg(windows)]
    pub(crate) fn leave(&self, _: &Registry) {}
}
