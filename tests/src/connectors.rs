//! Connectors for each transport: through a tunnel, or straight to the master.

use std::io;
use std::net::SocketAddr;
use std::sync::OnceLock;

use quorlock_core::Address;

use crate::tunnel::{self, Tunnel};

/// `1` makes every locker of the tests open its connections through a connector.
const CONNECTORS_VARIABLE: &str = "QUORLOCK_TEST_CONNECTORS";

/// Where a connector connects to.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    /// To the address, as the transports do without a connector.
    Straight,
    /// To the tunnel at this address.
    Tunnel(SocketAddr),
}

/// Whether every locker must have a connector.
pub(crate) fn is_chosen() -> bool {
    static CHOSEN: OnceLock<bool> = OnceLock::new();

    *CHOSEN.get_or_init(|| std::env::var_os(CONNECTORS_VARIABLE).is_some_and(|value| value == "1"))
}

#[cfg(feature = "tokio")]
pub(crate) mod of_tokio {
    use ::tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
    use ::tokio::net::{TcpStream, UnixStream};

    use super::{Address, Way, io, tunnel};

    pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

    impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

    pub(crate) async fn connect(way: Way, to: Address) -> io::Result<Box<dyn Stream>> {
        let mut stream = match (way, &to) {
            (Way::Straight, Address::Unix(path)) => return Ok(Box::new(UnixStream::connect(path).await?)),
            (Way::Straight, Address::Tcp { host, port }) => {
                TcpStream::connect((host.as_str(), *port)).await?
            }
            (Way::Tunnel(tunnel), _) => TcpStream::connect(tunnel).await?,
        };
        stream.set_nodelay(true)?;
        if let Way::Tunnel(_) = way {
            stream.write_all(tunnel::request(&to.to_string()).as_bytes()).await?;
            let mut answer = Vec::new();
            while !tunnel::is_whole(&answer) {
                answer.push(stream.read_u8().await?);
            }
            tunnel::check(&answer)?;
        }
        Ok(Box::new(stream))
    }
}

pub(crate) mod of_smol {
    use ::smol::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
    use ::smol::net::TcpStream;
    use ::smol::net::unix::UnixStream;

    use super::{Address, Way, io, tunnel};

    pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

    impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

    pub(crate) async fn connect(way: Way, to: Address) -> io::Result<Box<dyn Stream>> {
        let mut stream = match (way, &to) {
            (Way::Straight, Address::Unix(path)) => return Ok(Box::new(UnixStream::connect(path).await?)),
            (Way::Straight, Address::Tcp { host, port }) => {
                TcpStream::connect((host.as_str(), *port)).await?
            }
            (Way::Tunnel(tunnel), _) => TcpStream::connect(tunnel).await?,
        };
        stream.set_nodelay(true)?;
        if let Way::Tunnel(_) = way {
            stream.write_all(tunnel::request(&to.to_string()).as_bytes()).await?;
            let mut answer = Vec::new();
            while !tunnel::is_whole(&answer) {
                let mut byte = [0];
                stream.read_exact(&mut byte).await?;
                answer.extend(byte);
            }
            tunnel::check(&answer)?;
        }
        Ok(Box::new(stream))
    }
}

pub(crate) mod of_threads {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::net::UnixStream;

    use super::{Address, Tunnel, Way, io};

    /// A socket of either kind.
    pub(crate) enum Socket {
        Tcp(TcpStream),
        Unix(UnixStream),
    }

    impl Read for Socket {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self {
                Self::Tcp(stream) => stream.read(buffer),
                Self::Unix(stream) => stream.read(buffer),
            }
        }
    }

    impl Write for Socket {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self {
                Self::Tcp(stream) => stream.write(bytes),
                Self::Unix(stream) => stream.write(bytes),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl AsFd for Socket {
        fn as_fd(&self) -> BorrowedFd<'_> {
            match self {
                Self::Tcp(stream) => stream.as_fd(),
                Self::Unix(stream) => stream.as_fd(),
            }
        }
    }

    pub(crate) fn connect(way: Way, to: &Address) -> io::Result<Socket> {
        let stream = match (way, to) {
            (Way::Straight, Address::Unix(path)) => return UnixStream::connect(path).map(Socket::Unix),
            (Way::Straight, Address::Tcp { host, port }) => TcpStream::connect((host.as_str(), *port))?,
            (Way::Tunnel(tunnel), _) => Tunnel::connect(tunnel, &to.to_string())?,
        };
        stream.set_nodelay(true)?;
        Ok(Socket::Tcp(stream))
    }
}
