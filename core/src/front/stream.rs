//! Connections that the application opens itself (`Driver::open_through`): the driver uses their
//! async byte streams as its sockets.

use std::future::{Future, poll_fn};
use std::io::{self, Write};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use super::host::Socket;
use super::sync::contain;
use crate::endpoint::Address;
use crate::protocol::{Cause, Panicked};

/// A stream of bytes in both directions: the common part of the runtimes' `AsyncRead` and
/// `AsyncWrite`. [`Driver::open_through`](super::Driver::open_through) opens connections that are
/// such streams.
///
/// After a pending call, `cx` is woken when another call may succeed. Only the driver reads.
/// Callers write on any thread, while they hold mutexes of the front. So a waker that a method
/// calls must not poll the driver within that call, and neither a method nor the stream's drop may
/// block or call the locker. An error or a panic ends the connection.
pub trait Stream: Send + 'static {
    /// Reads into `buffer` and returns the number of bytes; zero is the end.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Takes bytes and returns how many it took.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// Sends the taken bytes on to the other side. It is called after each write.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// Asks a connector for a stream. The call, the future and the stream are user code.
pub(super) async fn connect<C, F, S>(connector: Arc<C>, to: Address) -> Result<Streamed<S>, Cause>
where
    C: Fn(Address) -> F,
    F: Future<Output = io::Result<S>>,
    S: Stream,
{
    let connecting = contain(|| Box::pin(connector(to))).ok_or(Cause::ConnectorPanicked)?;
    let mut connecting = Contained(Some(connecting));
    poll_fn(|cx| {
        let Some(Some(polled)) = contain(|| connecting.0.as_mut().map(|future| future.as_mut().poll(cx)))
        else {
            return Poll::Ready(Err(Cause::ConnectorPanicked));
        };
        polled.map(|connected| match connected {
            Ok(stream) => Ok(Streamed::new(stream, cx.waker())),
            Err(error) => Err(Cause::from(&error)),
        })
    })
    .await
}

/// A stream as the driver's socket. The driver reads it, and callers write through a [`Sink`].
pub(super) struct Streamed<S> {
    stream: Arc<Mutex<Shared<S>>>,
    alert: Arc<Alert>,
    /// Wakes through `alert`.
    waker: Waker,
}

struct Shared<S> {
    stream: Contained<S>,
    /// Why nothing more can be written. Reads report it, after the bytes that have come.
    fault: Option<io::Error>,
}

/// User code. Dropping it also calls user code, and may happen on a thread that works for many
/// callers, so a panic there is contained.
struct Contained<T>(Option<T>);

impl<T> Drop for Contained<T> {
    fn drop(&mut self) {
        contain(|| drop(self.0.take()));
    }
}

/// Wakes the driver, and notes that the stream needs a look.
///
/// Reading and writing register the same waker, so that a stream that keeps only one waker wakes
/// both sides.
struct Alert {
    is_raised: AtomicBool,
    driver: Mutex<Waker>,
}

/// Every panic under these mutexes is contained.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wake for Alert {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_raised.store(true, Ordering::SeqCst);
        let driver = lock(&self.driver).clone();
        driver.wake();
    }
}

impl Alert {
    /// From now on the alert wakes this task.
    fn follow(&self, cx: &Context<'_>) {
        let mut driver = lock(&self.driver);
        if !driver.will_wake(cx.waker()) {
            let former = mem::replace(&mut *driver, cx.waker().clone());
            drop(driver);
            drop(former);
        }
    }
}

impl<S> Streamed<S> {
    fn new(stream: S, driver: &Waker) -> Self {
        let shared = Shared { stream: Contained(Some(stream)), fault: None };
        let driver = Mutex::new(driver.clone());
        let alert = Arc::new(Alert { is_raised: AtomicBool::new(true), driver });
        let waker = Waker::from(Arc::clone(&alert));
        Self { stream: Arc::new(Mutex::new(shared)), alert, waker }
    }

    fn writer(&self) -> Sink<S> {
        let (stream, alert) = (Arc::clone(&self.stream), Arc::clone(&self.alert));
        Sink { stream, alert, waker: self.waker.clone(), unflushed: 0 }
    }
}

impl<S: Stream> Shared<S> {
    /// Calls the stream, and turns a panic into an error.
    fn call<T>(&mut self, call: impl FnOnce(&mut S) -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        contain(|| self.stream.0.as_mut().map(call))
            .flatten()
            .unwrap_or_else(|| Poll::Ready(Err(io::Error::other(Panicked))))
    }
}

impl<S: Stream> Socket for Streamed<S> {
    fn sink(&self) -> impl Write + Send + 'static {
        self.writer()
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8], look: bool) -> Poll<io::Result<usize>> {
        self.alert.follow(cx);
        // Before the stream is polled, so that nothing in between is missed.
        if !self.alert.is_raised.swap(false, Ordering::SeqCst) && !look {
            return Poll::Pending;
        }
        let mut shared = lock(&self.stream);
        let mut read = shared.call(|stream| stream.poll_read(&mut Context::from_waker(&self.waker), buffer));
        if read.is_pending() {
            read = shared.fault.take().map_or(Poll::Pending, |fault| Poll::Ready(Err(fault)));
        }
        if read.is_ready() {
            // No waker is registered, and there may be more.
            self.alert.is_raised.store(true, Ordering::SeqCst);
        }
        read
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.alert.follow(cx);
        if self.alert.is_raised.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, write: &mut dyn FnMut() -> bool) -> Poll<()> {
        self.alert.follow(cx);
        // `write` reaches the sink, which registers the waker.
        if write() {
            return Poll::Ready(());
        }
        if lock(&self.stream).fault.is_some() {
            // The next turn reads, and so gets the error.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

/// The write side of a stream.
struct Sink<S> {
    stream: Arc<Mutex<Shared<S>>>,
    alert: Arc<Alert>,
    waker: Waker,
    /// Bytes that the stream has taken and may not have flushed. The front treats them as not
    /// written, and passes them again when the stream has woken the driver.
    unflushed: usize,
}

impl<S: Stream> Write for Sink<S> {
    /// After an error the sink reports itself as full: that makes the driver read, which returns
    /// the error. It wakes no task itself, since its caller holds mutexes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut cx = Context::from_waker(&self.waker);
        let mut shared = lock(&self.stream);
        while shared.fault.is_none() {
            let called = match self.unflushed {
                0 => shared.call(|stream| stream.poll_write(&mut cx, bytes)),
                _ => shared.call(|stream| stream.poll_flush(&mut cx)).map_ok(|()| 0),
            };
            match called {
                Poll::Pending => break,
                Poll::Ready(Err(error)) => shared.fault = Some(error),
                Poll::Ready(Ok(_)) if self.unflushed > 0 => return Ok(mem::take(&mut self.unflushed)),
                Poll::Ready(Ok(0)) => shared.fault = Some(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(taken)) => self.unflushed = taken.min(bytes.len()),
            }
        }
        if shared.fault.is_some() {
            self.alert.is_raised.store(true, Ordering::SeqCst);
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
