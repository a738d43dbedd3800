//! tokio's sockets and timers for the driver of `quorlock-core`.

use std::future::{Future, ready};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::{UnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use quorlock_core::front::{self, OpenError};
use quorlock_host::{Sink, Wait};
use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::net::{TcpStream, UdpSocket, lookup_host};
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep};

/// Returns the present runtime.
///
/// # Errors
/// There is none, or it has no timers.
pub(crate) fn present() -> Result<Handle, OpenError> {
    let runtime = Handle::try_current().map_err(|_| OpenError::NoRuntime)?;
    check("timers", || drop(sleep(Duration::ZERO)))?;
    Ok(runtime)
}

/// Checks that the present runtime serves sockets.
pub(crate) fn check_sockets() -> Result<(), OpenError> {
    let Ok(socket) = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)) else { return Ok(()) };
    let is_ready = socket.set_nonblocking(true).is_ok();
    check("IO", || drop(is_ready.then(|| UdpSocket::from_std(socket))))
}

/// Only tokio knows what a runtime has, and it reports what is missing by a panic.
fn check(part: &'static str, uses: impl FnOnce() + UnwindSafe) -> Result<(), OpenError> {
    catch_unwind(uses).map_err(|_| OpenError::IncompleteRuntime(part))
}

/// The runtime in which the driver is polled.
#[derive(Clone, Copy)]
pub(crate) struct Runtime;

impl front::Runtime for Runtime {
    type Socket = Socket;
    type Timer = Timer;

    fn timer(&self, span: Duration) -> Timer {
        Timer(Box::pin(sleep(span)))
    }

    async fn resolve(self, host: String, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(lookup_host((host.as_str(), port)).await?.collect())
    }

    async fn connect(self, to: SocketAddr) -> io::Result<Socket> {
        let stream = TcpStream::connect(to).await?.into_std()?;
        stream.set_nodelay(true)?;
        quorlock_host::keep_alive(&stream);
        let direct = Sink::new(stream.try_clone()?);
        Ok(Socket { stream: Box::new(TcpStream::from_std(stream)?), direct })
    }

    #[cfg(unix)]
    async fn connect_unix(self, path: std::path::PathBuf) -> io::Result<Socket> {
        let stream = tokio::net::UnixStream::connect(path).await?.into_std()?;
        let direct = Sink::new(stream.try_clone()?);
        Ok(Socket { stream: Box::new(tokio::net::UnixStream::from_std(stream)?), direct })
    }
}

/// A socket registered with tokio's reactor, and a second handle that bypasses the reactor: the
/// reactor reports the socket as full until it has run once.
pub(crate) struct Socket {
    stream: Box<dyn Stream>,
    direct: Sink,
}

/// The operations that both kinds of tokio streams have.
trait Stream: AsyncRead + Send + Unpin {
    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    fn try_write(&self, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>;
}

macro_rules! stream {
    ($stream:ty) => {
        impl Stream for $stream {
            fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                <$stream>::poll_read_ready(self, cx)
            }

            fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                <$stream>::poll_write_ready(self, cx)
            }

            fn try_write(&self, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
                self.try_io(Interest::WRITABLE, write)
            }
        }
    };
}

stream!(TcpStream);
#[cfg(unix)]
stream!(tokio::net::UnixStream);

impl front::Socket for Socket {
    fn sink(&self) -> impl Write + Send + 'static {
        self.direct.clone()
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8], look: bool) -> Poll<io::Result<usize>> {
        let mut read = ReadBuf::new(buffer);
        // Not `try_read`, which needs a second system call to learn that there is nothing more to
        // read.
        match Pin::new(&mut self.stream).poll_read(cx, &mut read)? {
            Poll::Ready(()) => Poll::Ready(Ok(read.filled().len())),
            Poll::Pending if !look => Poll::Pending,
            Poll::Pending => match self.direct.read(buffer) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    Poll::Pending
                }
                read => Poll::Ready(read),
            },
        }
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.stream.poll_read_ready(cx).map(drop)
    }

    /// tokio learns that a socket is full only from a write that it makes itself, so `write` goes
    /// through tokio.
    fn poll_write(&mut self, cx: &mut Context<'_>, write: &mut dyn FnMut() -> bool) -> Poll<()> {
        let mut attempt = || if write() { Ok(()) } else { Err(ErrorKind::WouldBlock.into()) };
        while self.stream.try_write(&mut attempt).is_err() {
            // An error is reported when the socket is read.
            if ready!(self.stream.poll_write_ready(cx)).is_err() {
                break;
            }
        }
        Poll::Ready(())
    }
}

pub(crate) struct Timer(Pin<Box<Sleep>>);

impl front::Timer for Timer {
    fn reset(&mut self, span: Duration) {
        self.0.as_mut().reset(Instant::now() + span);
    }

    fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

/// Waiting on threads that run no async code.
pub(crate) struct OutsideOfAsync;

impl Wait for OutsideOfAsync {
    /// Only tokio knows whether this thread runs async code, and it reports that by a panic:
    /// `Handle::block_on` panics there, and is allowed outside runtimes, in `spawn_blocking` and in
    /// `block_in_place`.
    fn may_wait(&self) -> bool {
        let Ok(runtime) = Handle::try_current() else { return true };
        catch_unwind(|| runtime.block_on(ready(()))).is_ok()
    }
}
