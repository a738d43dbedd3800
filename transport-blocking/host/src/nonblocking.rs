//! Sockets that do not keep a thread waiting.

use std::io;

use rustix::fd::AsFd;

/// Makes this socket non-blocking: reading and writing never wait.
///
/// # Errors
/// Returns the system's error if the descriptor does not support it.
pub fn set_nonblocking(socket: impl AsFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(socket, true)?)
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_read_without_data_returns_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        set_nonblocking(&socket).unwrap();
        assert_eq!(socket.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
