//! Sockets of the caller: readable and writable, with a descriptor for the poll.

use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quorlock_core::Cause;

use crate::socket::Sink;

trait Io: Read + Write + Send {}

impl<S: Read + Write + Send> Io for S {}

/// The side that the loop reads. It shares the socket with its [`Sink`].
pub(crate) struct Own {
    /// The descriptor of the socket, which lives as long as this.
    descriptor: RawFd,
    socket: Arc<Mutex<Shared>>,
}

struct Shared {
    /// Present until it is dropped.
    socket: Option<Box<dyn Io>>,
    /// Why nothing more can be written. Reading reports it, after the bytes that have arrived.
    fault: Option<Cause>,
}

/// Every panic under this mutex is contained.
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Own {
    /// The socket is made non-blocking.
    pub(crate) fn new(socket: impl Read + Write + AsFd + Send + 'static) -> io::Result<Self> {
        quorlock_host::set_nonblocking(&socket)?;
        let descriptor = socket.as_fd().as_raw_fd();
        let shared = Shared { socket: Some(Box::new(socket)), fault: None };
        Ok(Self { descriptor, socket: Arc::new(Mutex::new(shared)) })
    }

    /// The side to write.
    pub(crate) fn sink(&self) -> Sink {
        Box::new(Writer { socket: Arc::clone(&self.socket), unflushed: 0 })
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.descriptor
    }

    /// Whether the socket must be read although the poll reports no event.
    pub(crate) fn has_fault(&self) -> bool {
        lock(&self.socket).fault.is_some()
    }

    /// Reads the bytes that have arrived; `None` if there are none.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> Option<Result<usize, Cause>> {
        let mut shared = lock(&self.socket);
        match shared.call(|socket| socket.read(buffer)) {
            None => shared.fault.take().map(Err),
            Some(read) => Some(read),
        }
    }
}

impl Shared {
    /// Calls the socket: returns `None` if the call would have to wait, and an error if it panics.
    fn call<T>(&mut self, mut call: impl FnMut(&mut dyn Io) -> io::Result<T>) -> Option<Result<T, Cause>> {
        let socket = self.socket.as_mut()?;
        loop {
            let called = catch_unwind(AssertUnwindSafe(|| call(&mut **socket)));
            return match called {
                Ok(Ok(value)) => Some(Ok(value)),
                Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => continue,
                Ok(Err(error)) if error.kind() == ErrorKind::WouldBlock => None,
                Ok(Err(error)) => Some(Err(Cause::from(&error))),
                Err(payload) => {
                    // Dropping the payload would call the caller's code once more.
                    mem::forget(payload);
                    Some(Err(Cause::ConnectorPanicked))
                }
            };
        }
    }
}

impl Drop for Shared {
    /// A panic of the socket must not reach the thread that drops the last side.
    fn drop(&mut self) {
        let socket = self.socket.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(socket))).map_err(mem::forget);
    }
}

/// The side that writes.
struct Writer {
    socket: Arc<Mutex<Shared>>,
    /// How many bytes the socket has accepted but may not have flushed. The front treats them as
    /// not written, and passes them in again when there is room.
    unflushed: usize,
}

impl Write for Writer {
    /// After an error the socket is reported as full: then the loop reads, which reports the error.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut shared = lock(&self.socket);
        let fault = loop {
            if shared.fault.is_some() {
                return Err(ErrorKind::WouldBlock.into());
            }
            let called = match self.unflushed {
                0 => shared.call(|socket| socket.write(bytes)),
                _ => shared.call(|socket| socket.flush().map(|()| 0)),
            };
            match called {
                None => return Err(ErrorKind::WouldBlock.into()),
                Some(Err(fault)) => break fault,
                Some(Ok(_)) if self.unflushed > 0 => return Ok(mem::take(&mut self.unflushed)),
                Some(Ok(0)) => break Cause::Closed,
                Some(Ok(taken)) => self.unflushed = taken.min(bytes.len()),
            }
        };
        shared.fault = Some(fault);
        Err(ErrorKind::WouldBlock.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
