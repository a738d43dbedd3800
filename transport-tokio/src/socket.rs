//! A connection to one master, over TCP or a Unix domain socket.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quorlock_core::front::{Addresses, Dial};
use quorlock_core::{Address, Cause};
use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::sleep;

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
pub(crate) async fn open(address: Address, addresses: Addresses) -> Result<(Socket, Sink), Cause> {
    match address {
        Address::Tcp { host, port } => {
            let resolved = lookup_host((host.as_str(), port)).await.map_err(|_| Cause::UnknownHost)?;
            open_tcp(addresses.dial(resolved)).await
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

async fn open_tcp(dial: Dial) -> Result<(Socket, Sink), Cause> {
    let connect = |address| async move { TcpStream::connect(address).await.and_then(split_tcp) };
    dial.race(connect, sleep).await
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
pub(crate) fn split_unix(stream: tokio::net::UnixStream) -> io::Result<(Socket, Sink)> {
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

#[cfg(test)]
#[path = "../../tests/shared/black_hole.rs"]
mod black_hole;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::TcpListener;
    use std::time::Duration;

    use quorlock_core::Config;
    use tokio::time::timeout;

    use super::black_hole::BlackHole;
    use super::*;

    /// An opening that never comes to an end fails the test after this time.
    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_name_is_reached_whose_first_address_swallows_packets() {
        let (black_hole, server) = (BlackHole::open(), TcpListener::bind("127.0.0.1:0").unwrap());
        let server = server.local_addr().unwrap();
        let addresses = Addresses::new(&Config::new(["redis://a"]).unwrap());
        let opened = timeout(LONG, open_tcp(addresses.dial([black_hole.address(), server]))).await;
        assert!(opened.is_ok_and(|opened| opened.is_ok()));
        // The opening after that begins with the address that connected.
        let mut next = addresses.dial([black_hole.address(), server]);
        assert_eq!(next.next_attempt(), Some(server));
    }

    #[tokio::test]
    async fn an_opening_that_is_given_up_is_followed_by_one_to_another_address() {
        let (black_hole, server) = (BlackHole::open(), TcpListener::bind("127.0.0.1:0").unwrap());
        let server = server.local_addr().unwrap();
        let config = Config::builder(["redis://a"]).connect_timeout(LONG).build();
        let addresses = Addresses::new(&config.unwrap());
        let given_up = open_tcp(addresses.dial([black_hole.address(), server]));
        assert!(timeout(Duration::from_millis(50), given_up).await.is_err());
        let opened = timeout(LONG / 8, open_tcp(addresses.dial([black_hole.address(), server]))).await;
        assert!(opened.is_ok_and(|opened| opened.is_ok()));
    }
}
