//! Sockets and timers of async-io for the driver of `quorlock-core`.

use std::future::Future;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
#[cfg(unix)]
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_io::Async;
use quorlock_core::front;
use quorlock_host::Sink;

/// async-io's reactor, which serves every executor.
#[derive(Clone, Copy)]
pub(crate) struct Runtime;

impl front::Runtime for Runtime {
    type Socket = Socket;
    type Timer = Timer;

    fn timer(&self, span: Duration) -> Timer {
        Timer(async_io::Timer::after(span))
    }

    async fn resolve(self, host: String, port: u16) -> io::Result<Vec<SocketAddr>> {
        smol::net::resolve((host, port)).await
    }

    async fn connect(self, to: SocketAddr) -> io::Result<Socket> {
        let stream = Async::<TcpStream>::connect(to).await?;
        stream.get_ref().set_nodelay(true)?;
        quorlock_host::keep_alive(stream.get_ref());
        let direct = Sink::new(stream.get_ref().try_clone()?);
        Ok(Socket { events: Box::new(stream), direct })
    }

    #[cfg(unix)]
    async fn connect_unix(self, path: PathBuf) -> io::Result<Socket> {
        let stream = Async::<std::os::unix::net::UnixStream>::connect(path).await?;
        let direct = Sink::new(stream.get_ref().try_clone()?);
        Ok(Socket { events: Box::new(stream), direct })
    }
}

/// A socket registered with the reactor, and a second handle that bypasses the reactor.
pub(crate) struct Socket {
    events: Box<dyn Events>,
    direct: Sink,
}

/// What the reactor reports about a socket. A poll is ready if something has happened since the
/// last pending poll, which may be an event without bytes to read or room to write.
trait Events: Send {
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

impl<T: Send> Events for Async<T> {
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Async::poll_readable(self, cx)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Async::poll_writable(self, cx)
    }
}

impl front::Socket for Socket {
    fn sink(&self) -> impl Write + Send + 'static {
        self.direct.clone()
    }

    /// The waker is registered before the socket is read, so that bytes that arrive in between are
    /// not missed. The socket is read even without an event: while the executor was busy the
    /// reactor may not have run, and one answer is often followed by others.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8], _: bool) -> Poll<io::Result<usize>> {
        loop {
            let is_registered = self.events.poll_readable(cx)?.is_pending();
            match self.direct.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if is_registered {
                        return Poll::Pending;
                    }
                }
                read => return Poll::Ready(read),
            }
        }
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.events.poll_readable(cx).map(drop)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, write: &mut dyn FnMut() -> bool) -> Poll<()> {
        loop {
            let polled = self.events.poll_writable(cx);
            // An error is reported when the socket is read.
            if write() || matches!(polled, Poll::Ready(Err(_))) {
                return Poll::Ready(());
            }
            if polled.is_pending() {
                return Poll::Pending;
            }
        }
    }
}

pub(crate) struct Timer(async_io::Timer);

impl front::Timer for Timer {
    fn reset(&mut self, span: Duration) {
        self.0.set_after(span);
    }

    fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}
