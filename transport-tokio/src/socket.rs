//! A connection to one master, over TCP or a Unix domain socket.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use quorlock_core::{Address, Cause};
use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::net::{TcpStream, lookup_host};

/// The side of a connection that the driver reads.
pub(crate) enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
}

/// The side that whoever has something to say writes: a second handle of the same socket, past tokio's reactor, which would call it
/// full until it has run once.
pub(crate) type Sink = Box<dyn Write + Send>;

/// Resolves the name without blocking the loop, and connects.
pub(crate) async fn open(address: Address) -> Result<(Socket, Sink), Cause> {
    match address {
        Address::Tcp { host, port } => {
            let addresses = lookup_host((host.as_str(), port)).await.map_err(|_| Cause::UnknownHost)?;
            let mut last = Cause::UnknownHost;
            for address in addresses {
                match TcpStream::connect(address).await.and_then(split_tcp) {
                    Ok(halves) => return Ok(halves),
                    Err(error) => last = Cause::from(&error),
                }
            }
            Err(last)
        }
        #[cfg(unix)]
        Address::Unix(path) => {
            let stream = tokio::net::UnixStream::connect(path).await;
            stream.and_then(split_unix).map_err(|error| Cause::from(&error))
        }
        #[cfg(not(unix))]
        Address::Unix(_) => Err(Cause::Connect(io::ErrorKind::Unsupported)),
    }
}

fn split_tcp(stream: TcpStream) -> io::Result<(Socket, Sink)> {
    // Requests are small and wait for nothing that would fill a segment.
    stream.set_nodelay(true)?;
    let reader = stream.into_std()?;
    let sink = reader.try_clone()?;
    Ok((Socket::Tcp(TcpStream::from_std(reader)?), Box::new(sink)))
}

#[cfg(unix)]
fn split_unix(stream: tokio::net::UnixStream) -> io::Result<(Socket, Sink)> {
    let reader = stream.into_std()?;
    let sink = reader.try_clone()?;
    Ok((Socket::Unix(tokio::net::UnixStream::from_std(reader)?), Box::new(sink)))
}

impl Socket {
    /// Reads into `buffer` and tells how many bytes came; zero is the end.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
            #[cfg(unix)]
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
        })?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// Ready when there may be something to read; if not, `cx` will be woken.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Tcp(stream) => stream.poll_read_ready(cx).map(drop),
            #[cfg(unix)]
            Self::Unix(stream) => stream.poll_read_ready(cx).map(drop),
        }
    }

    /// Has `cx` woken when there is room again, after `write` has said that there is none. Ready when it may be tried again.
    ///
    /// tokio learns that a socket is full only from an attempt of its own, so `write` is made one.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>, write: impl FnOnce() -> bool) -> Poll<()> {
        let attempt = || if write() { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) };
        let outcome = match self {
            Self::Tcp(stream) => stream.try_io(Interest::WRITABLE, attempt),
            #[cfg(unix)]
            Self::Unix(stream) => stream.try_io(Interest::WRITABLE, attempt),
        };
        if outcome.is_ok() {
            return Poll::Pending;
        }
        let _ = ready!(match self {
            Self::Tcp(stream) => stream.poll_write_ready(cx),
            #[cfg(unix)]
            Self::Unix(stream) => stream.poll_write_ready(cx),
        });
        Poll::Ready(())
    }
}
