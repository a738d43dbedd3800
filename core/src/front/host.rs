//! What a transport provides to the front: a host, and for the async driver a runtime's sockets and
//! timers.

use std::future::{Future, poll_fn};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::protocol::{EntropyFailed, IoFault, Unavailable};
use crate::time::Instant;

/// No server takes a longer password: before a login, Redis and Valkey accept no argument longer
/// than this.
pub const MAX_PASSWORD_BYTES: usize = 16 * 1024;

/// A transport's clock, its entropy and its way of waiting.
pub trait Host: Send + Sync + 'static {
    /// The time on a clock that keeps running while the computer is suspended, where the system has
    /// one: keys expire meanwhile, too.
    fn now(&self) -> Instant;

    /// Fills `bytes` with random bytes of the operating system.
    ///
    /// # Errors
    /// [`EntropyFailed`] if the system returns none.
    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), EntropyFailed>;

    /// Whether this process is a forked child of the one that opened the locker. It is called
    /// whenever a guard is checked, so it should avoid system calls.
    ///
    /// The child has copies of the parent's sockets and mutexes. A byte that the child reads from a
    /// socket is lost to the parent, and a mutex may be held by a thread that does not exist in the
    /// child. So the front touches neither of them there.
    fn is_forked(&self) -> bool {
        false
    }

    /// Whether the calling thread may block. A thread that runs async code for the runtime that
    /// drives the locker may not: it would wait for itself. If this returns `false`, calls that
    /// block panic.
    fn may_wait(&self) -> bool {
        true
    }

    /// Reads a [password file](crate::Endpoint::with_password_file), or its first
    /// [`MAX_PASSWORD_BYTES`] + 1 bytes if it is longer. It is called in the driver's turn, without
    /// a mutex held, so it must not block on anything that is not a regular file.
    ///
    /// # Errors
    /// Why it cannot be read. A host that reads no files does not support password files.
    fn read_password(&self, file: &Path) -> Result<Vec<u8>, Unavailable> {
        let _ = file;
        Err(Unavailable::Unreadable(IoFault::new(io::ErrorKind::Unsupported)))
    }

    /// Blocks the calling thread until `poll` is ready. `poll` is called once at first, and again
    /// after each wake-up.
    fn block_on(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>);
}

/// An async runtime, as the [`Driver`](super::Driver) uses it: it opens sockets and makes timers.
///
/// It is a value, so that it can refer to a runtime that is not global: a handle, cheap to clone.
/// [`resolve`](Self::resolve), [`connect`](Self::connect) and [`connect_unix`](Self::connect_unix)
/// each take a clone, so that an implementation may be an `async fn`.
pub trait Runtime: Clone + Send + Sync + 'static {
    /// A connection.
    type Socket: Socket;
    /// A timer.
    type Timer: Timer;

    /// A timer that fires after `span`. It is called while the driver is polled, so inside the
    /// runtime.
    fn timer(&self, span: Duration) -> Self::Timer;

    /// A future that is ready after `span`.
    fn sleep(&self, span: Duration) -> impl Future<Output = ()> + Send + 'static {
        let mut timer = self.timer(span);
        poll_fn(move |cx| timer.poll_elapsed(cx))
    }

    /// The addresses of a name or of an IP address, without blocking the thread.
    fn resolve(
        self,
        host: String,
        port: u16,
    ) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static;

    /// Connects over TCP with Nagle's algorithm off: requests are small and must not wait for more.
    /// It should also switch TCP keep-alive on: a lock may be held without traffic for longer than
    /// a firewall remembers a connection.
    ///
    /// Dropping the future gives the attempt up.
    fn connect(self, to: SocketAddr) -> impl Future<Output = io::Result<Self::Socket>> + Send + 'static;

    /// Connects to a Unix domain socket. Optional: a runtime without them keeps the default.
    fn connect_unix(self, path: PathBuf) -> impl Future<Output = io::Result<Self::Socket>> + Send + 'static {
        let _ = path;
        std::future::ready(Err(io::ErrorKind::Unsupported.into()))
    }
}

/// A connection to one master. The driver reads it, and callers write their requests through its
/// [`sink`](Self::sink).
pub trait Socket: Send + 'static {
    /// The write side: takes bytes without waiting, or says [`io::ErrorKind::WouldBlock`]. Any
    /// thread may use it, even before the runtime has polled the socket for the first time. A clone
    /// of the standard library's socket works best.
    fn sink(&self) -> impl Write + Send + 'static;

    /// Reads into `buffer` and returns the number of bytes; zero is the end. If there are no bytes
    /// yet, `cx` is woken when there are.
    ///
    /// With `look` the socket itself is read even if the runtime knows of nothing to read, because
    /// the runtime's reactor may not have run since the bytes came. Without `look`, the runtime's
    /// readiness may be trusted.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8], look: bool) -> Poll<io::Result<usize>>;

    /// Ready when there may be something to read; if not, `cx` is woken when there is. It makes no
    /// system call.
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Calls `write` until it returns true: then everything was written, and this is ready. Pending
    /// if the socket is full: `cx` is woken when there is room again.
    fn poll_write(&mut self, cx: &mut Context<'_>, write: &mut dyn FnMut() -> bool) -> Poll<()>;
}

/// A timer that is set again and again.
pub trait Timer: Send + 'static {
    /// Sets the timer to fire `span` from now, in place of its earlier time.
    fn reset(&mut self, span: Duration);

    /// Ready once the timer has fired; until then, `cx` is woken when it fires. The timer may be
    /// late, or early by the resolution of the runtime's clock.
    fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}
