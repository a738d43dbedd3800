//! A connection to one master, over TCP or a Unix domain socket.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quorlock_core::{Address, Cause};
use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::net::{TcpStream, lookup_host};

/// The side of a connection that the driver reads, with a second handle of the same socket past tokio's reactor.
pub(crate) enum Socket {
    Tcp(TcpStream, Direct<std::net::TcpStream>),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream, Direct<std::os::unix::net::UnixStream>),
}

/// A handle of a socket past tokio's reactor.
pub(crate) struct Direct<T>(Arc<T>);

impl<T> Direct<T>
where
    for<'a> &'a T: Read + Write,
{
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.as_ref().read(buffer)
    }
}

impl<T> Write for Direct<T>
where
    for<'a> &'a T: Read + Write,
{
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_ref().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The side that whoever has something to say writes: that second handle, since the reactor would call the socket full until it has run once.
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
    let direct = Arc::new(reader.try_clone()?);
    let socket = Socket::Tcp(TcpStream::from_std(reader)?, Direct(Arc::clone(&direct)));
    Ok((socket, Box::new(Direct(direct))))
}

#[cfg(unix)]
fn split_unix(stream: tokio::net::UnixStream) -> io::Result<(Socket, Sink)> {
    let reader = stream.into_std()?;
    let direct = Arc::new(reader.try_clone()?);
    let socket = Socket::Unix(tokio::net::UnixStream::from_std(reader)?, Direct(Arc::clone(&direct)));
    Ok((socket, Box::new(Direct(direct))))
}

impl Socket {
    /// Reads into `buffer` and tells how many bytes came; zero is the end. With `past_reactor` it looks even where tokio knows of nothing: its
    /// reactor may not have run for as long as other tasks were busy.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        past_reactor: bool,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut read = ReadBuf::new(buffer);
        let polled = match self {
            Self::Tcp(stream, _) => Pin::new(stream).poll_read(cx, &mut read),
            #[cfg(unix)]
            Self::Unix(stream, _) => Pin::new(stream).poll_read(cx, &mut read),
        };
        match polled? {
            Poll::Ready(()) => Poll::Ready(Ok(read.filled().len())),
            Poll::Pending if past_reactor => {
                let read = match self {
                    Self::Tcp(_, direct) => direct.read(buffer),
                    #[cfg(unix)]
                    Self::Unix(_, direct) => direct.read(buffer),
                };
                match read {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => Poll::Pending,
                    read => Poll::Ready(read),
                }
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Ready when there may be something to read; if not, `cx` will be woken.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Tcp(stream, _) => stream.poll_read_ready(cx).map(drop),
            #[cfg(unix)]
            Self::Unix(stream, _) => stream.poll_read_ready(cx).map(drop),
        }
    }

    /// Has `cx` woken when there is room again, after `write` has said that there is none. Ready when it may be tried again.
    ///
    /// tokio learns that a socket is full only from an attempt of its own, so `write` is made one.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>, write: impl FnOnce() -> bool) -> Poll<()> {
        let attempt = || if write() { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) };
        let outcome = match self {
            Self::Tcp(stream, _) => stream.try_io(Interest::WRITABLE, attempt),
            #[cfg(unix)]
            Self::Unix(stream, _) => stream.try_io(Interest::WRITABLE, attempt),
        };
        if outcome.is_ok() {
            return Poll::Pending;
        }
        let _ = ready!(match self {
            Self::Tcp(stream, _) => stream.poll_write_ready(cx),
            #[cfg(unix)]
            Self::Unix(stream, _) => stream.poll_write_ready(cx),
        });
        Poll::Ready(())
    }
}
