//! What a transport lends to the front: a host, and for the async driver the sockets and timers of
//! a runtime.

use std::future::{Future, poll_fn};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::protocol::{EntropyFailed, Unavailable};
use crate::time::Instant;

/// No server takes a longer password: before a login, Redis and Valkey accept no longer argument.
pub const MAX_PASSWORD_BYTES: usize = 16 * 1024;

/// The clock, the entropy and the way of waiting that belong to a transport.
pub trait Host: Send + Sync + 'static {
    /// The time on a clock that goes on while the machine sleeps, where the system has one: keys
    /// expire meanwhile.
    fn now(&self) -> Instant;

    /// Fills `bytes` with random bytes of the operating system.
    ///
    /// # Errors
    /// [`EntropyFailed`] where it has none to give.
    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), EntropyFailed>;

    /// Whether this process is a forked child of the one that opened the locker. It is asked
    /// whenever a guard is, so it makes no system call where that can be helped.
    ///
    /// The child has copies of the sockets, of which every byte would be missing in the parent, and
    /// of mutexes whose holders it has not. So the front touches neither of them there.
    fn is_forked(&self) -> bool {
        false
    }

    /// Whether the calling thread may be kept waiting. In a thread that runs async code for the
    /// runtime that drives the locker it may not: it would wait for itself. Then whatever waits
    /// panics.
    fn may_wait(&self) -> bool {
        true
    }

    /// Reads a [password file](crate::Endpoint::with_password_file), of which no more than
    /// [`MAX_PASSWORD_BYTES`] and one byte are needed. It is called in a turn of the driver, so it
    /// must not block on what is no regular file. It is called under no mutex.
    ///
    /// # Errors
    /// Why it cannot be read. A host that reads no files has no password files.
    fn read_password(&self, file: &Path) -> Result<Vec<u8>, Unavailable> {
        let _ = file;
        Err(Unavailable::Unreadable(io::ErrorKind::Unsupported))
    }

    /// Keeps the calling thread until `poll` is ready. It is called once at first, and again after
    /// each wake-up.
    fn block_on(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>);
}

/// An async runtime, as the [`Driver`](super::Driver) uses it: it opens sockets and makes timers.
///
/// It is a value, so that a runtime that is no global can be reached through it: a handle, cheap to
/// clone. The three futures take a clone each, and may be written as `async fn`.
pub trait Runtime: Clone + Send + Sync + 'static {
    /// A connection.
    type Socket: Socket;
    /// A timer.
    type Timer: Timer;

    /// A timer that runs out after `span`. It is called in a poll of the driver, so inside the
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

    /// Connects over TCP, and switches Nagle's algorithm off: requests are small and do not wait
    /// for more. It should also switch the system's keep-alive on: a lock may be held in silence
    /// for longer than a firewall remembers a connection.
    ///
    /// Dropping the future gives the attempt up.
    fn connect(self, to: SocketAddr) -> impl Future<Output = io::Result<Self::Socket>> + Send + 'static;

    /// Connects to a Unix domain socket. A runtime without them need not implement this.
    fn connect_unix(self, path: PathBuf) -> impl Future<Output = io::Result<Self::Socket>> + Send + 'static {
        let _ = path;
        std::future::ready(Err(io::ErrorKind::Unsupported.into()))
    }
}

/// A connection to one master. The driver reads it, and callers write their requests through its
/// [`sink`](Self::sink).
pub trait Socket: Send + 'static {
    /// The write side: takes bytes without waiting, or says [`io::ErrorKind::WouldBlock`]. Any
    /// thread may use it, also before the runtime has looked at the socket for the first time: best
    /// a clone of the standard library's socket.
    fn sink(&self) -> impl Write + Send + 'static;

    /// Reads into `buffer` and tells how many bytes came; zero is the end. If there are none, `cx`
    /// is woken when there are.
    ///
    /// With `look` the socket itself is asked even where the runtime knows of nothing to read,
    /// because its reactor may not have run since the bytes came. Without it, the runtime's word
    /// may be taken.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8], look: bool) -> Poll<io::Result<usize>>;

    /// Ready when there may be something to read; if not, `cx` is woken when there is. It makes no
    /// system call.
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Calls `write` until it returns true: then everything was taken, and this is ready. Pending
    /// once the socket is full: `cx` is woken when there is room again.
    fn poll_write(&mut self, cx: &mut Context<'_>, write: &mut dyn FnMut() -> bool) -> Poll<()>;
}

/// A timer that is set again and again.
pub trait Timer: Send + 'static {
    /// Has it run out `span` from now, and no more when it was set for before.
    fn reset(&mut self, span: Duration);

    /// Ready once it has run out; until then `cx` is woken when it does. It may be late, and may be
    /// early by the resolution of the runtime's clock.
    fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}
