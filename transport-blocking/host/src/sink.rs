//! The handle of a socket through which any thread writes.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

/// A socket that is read and written through a shared reference, as `TcpStream` and `UnixStream` of
/// the standard library are.
pub trait Direct: Send + Sync + 'static {
    /// Reads what is there.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is nothing, and what else the system says.
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes what there is room for.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none, and what else the system says.
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

/// A second handle of a non-blocking socket, past the reactor of a runtime, which would call the
/// socket full or empty until it has looked. Clones share it.
#[derive(Clone)]
pub struct Sink(Arc<dyn Direct>);

impl Sink {
    /// From what `try_clone` of the socket gives.
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
