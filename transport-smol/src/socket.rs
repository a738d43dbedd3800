//! A connection to one master, over TCP or a Unix domain socket.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::task::{Context, Poll};

use async_io::{Async, Timer};
use quorlock_core::front::{Addresses, Dial};
use quorlock_core::{Address, Cause};

/// A non-blocking stream of either kind. The driver reads it, and whoever has something to say writes it.
pub(crate) trait Stream: Send + Sync {
    /// Ready once something has happened since the last call that was pending, which need not be something to read.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// The same for writing.
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Reads past the reactor, without waiting.
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize>;
    /// Writes past the reactor, without waiting.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;
}

impl<T: Send + Sync> Stream for Async<T>
where
    for<'a> &'a T: Read + Write,
{
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Async::poll_readable(self, cx)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Async::poll_writable(self, cx)
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut stream = self.get_ref();
        stream.read(buffer)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut stream = self.get_ref();
        stream.write(bytes)
    }
}

/// One end of a [`Stream`]; the socket is closed when all of them are gone.
#[derive(Clone)]
pub(crate) struct Socket(Arc<dyn Stream>);

/// Resolves the name on a thread for what blocks, and connects.
pub(crate) async fn open(address: Address, addresses: Addresses) -> Result<Socket, Cause> {
    match address {
        Address::Tcp { host, port } => {
            let resolved = smol::net::resolve((host, port)).await.map_err(|_| Cause::UnknownHost)?;
            open_tcp(addresses.dial(resolved)).await
        }
        #[cfg(unix)]
        Address::Unix(path) => {
            let connected = Async::<std::os::unix::net::UnixStream>::connect(path).await;
            connected.map(Socket::new).map_err(|error| Cause::from(&error))
        }
        #[cfg(not(unix))]
        Address::Unix(_) => Err(Cause::Connect(io::ErrorKind::Unsupported)),
    }
}

async fn open_tcp(dial: Dial) -> Result<Socket, Cause> {
    dial.race(connect_tcp, Timer::after).await
}

async fn connect_tcp(address: SocketAddr) -> io::Result<Socket> {
    let stream = Async::<TcpStream>::connect(address).await?;
    // Nothing follows a request that would be worth its delay.
    stream.get_ref().set_nodelay(true)?;
    Ok(Socket::new(stream))
}

impl Socket {
    pub(crate) fn new(stream: impl Stream + 'static) -> Self {
        Self(Arc::new(stream))
    }

    /// Reads into `buffer` and tells how many bytes came; zero is the end.
    ///
    /// The waker is registered first and the socket looked at after that, so that what comes in between is not missed. The look
    /// does not depend on what the reactor knows: it may not have run for as long as the executor was busy.
    pub(crate) fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            let registered = self.0.poll_readable(cx)?.is_pending();
            match self.0.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if registered {
                        return Poll::Pending;
                    }
                }
                result => return Poll::Ready(result),
            }
        }
    }

    /// Ready when something has happened since the last call that was pending; if not, `cx` will be woken.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_readable(cx).map(drop)
    }

    /// Calls `write` until it has written everything, or until the socket is full and `cx` will be woken when there is room.
    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, write: impl Fn() -> bool) -> Poll<io::Result<()>> {
        loop {
            let registered = self.0.poll_writable(cx)?.is_pending();
            if write() {
                return Poll::Ready(Ok(()));
            }
            if registered {
                return Poll::Pending;
            }
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
    use smol::future::or;

    use super::black_hole::BlackHole;
    use super::*;

    /// An opening that never comes to an end fails the test after this time.
    const LONG: Duration = Duration::from_secs(20);

    /// What an opening comes to; `None` if it has not ended within `limit`.
    fn open_within(limit: Duration, dial: Dial) -> Option<Result<Socket, Cause>> {
        let opening = async { Some(open_tcp(dial).await) };
        smol::block_on(or(opening, async {
            Timer::after(limit).await;
            None
        }))
    }

    #[test]
    fn a_name_is_reached_whose_first_address_swallows_packets() {
        let (black_hole, server) = (BlackHole::open(), TcpListener::bind("127.0.0.1:0").unwrap());
        let server = server.local_addr().unwrap();
        let addresses = Addresses::new(&Config::new(["redis://a"]).unwrap());
        let opened = open_within(LONG, addresses.dial([black_hole.address(), server]));
        assert!(opened.is_some_and(|opened| opened.is_ok()));
        // The opening after that begins with the address that connected.
        let mut next = addresses.dial([black_hole.address(), server]);
        assert_eq!(next.next_attempt(), Some(server));
    }

    #[test]
    fn an_opening_that_is_given_up_is_followed_by_one_to_another_address() {
        let (black_hole, server) = (BlackHole::open(), TcpListener::bind("127.0.0.1:0").unwrap());
        let server = server.local_addr().unwrap();
        let config = Config::builder(["redis://a"]).connect_timeout(LONG).build();
        let addresses = Addresses::new(&config.unwrap());
        let given_up = open_within(Duration::from_millis(50), addresses.dial([black_hole.address(), server]));
        assert!(given_up.is_none());
        let opened = open_within(LONG / 8, addresses.dial([black_hole.address(), server]));
        assert!(opened.is_some_and(|opened| opened.is_ok()));
    }
}
