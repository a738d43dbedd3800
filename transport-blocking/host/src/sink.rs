//! The handle of a socket through which any thread writes.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

/// A socket that can be read and written through a shared reference, like the standard library's
/// `TcpStream` and `UnixStream`.
pub trait Direct: Send + Sync + 'static {
    /// Reads the bytes that have arrived.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there are none, and any error of the system.
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes as many bytes as the socket accepts.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if it accepts none, and any error of the system.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;
}

impl<T: Send + Sync + 'static> Direct for T
where
    for<'a> &'a T: Read + Write,
{
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut socket = self;
        Read::read(&mut socket, buffer)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut socket = self;
        Write::write(&mut socket, bytes)
    }
}

/// A second handle of a non-blocking socket that bypasses the runtime's reactor: the reactor
/// reports the socket as full or empty until it has looked. Clones share the socket.
#[derive(Clone)]
pub struct Sink(Arc<dyn Direct>);

impl Sink {
    /// Wraps the result of the socket's `try_clone`.
    pub fn new(socket: impl Direct) -> Self {
        Self(Arc::new(socket))
    }
}

impl Read for Sink {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").finish_non_exhaustive()
    }
}
