//! The floors of sockets that a runtime watches: the same exchange in one future, which the
//! runtime wakes when a socket has something to read.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use smol::Async;
use smol::io::AsyncRead as _;

use super::worker::Worker;
use super::{RELEASE, load};
use crate::client::{Client, Limit, Sequence, Tally};

/// A socket of a runtime.
pub(crate) trait Stream {
    /// Writes a command. It always fits into the system's buffer, because the previous one was
    /// answered before.
    fn write(&self, command: &[u8]) -> io::Result<usize>;

    /// Reads what has arrived, and returns the number of bytes.
    fn poll_read(&mut self, context: &mut Context<'_>, chunk: &mut [u8]) -> Poll<io::Result<usize>>;
}

/// One caller on sockets of a runtime.
pub(crate) struct Futures<R, S> {
    runtime: R,
    links: Vec<Link<S>>,
    worker: Worker,
    tokens: u64,
}

struct Link<S> {
    stream: S,
    /// How many replies have not arrived yet.
    owed: usize,
}

/// What runs one future to its end.
pub(crate) trait Runtime {
    fn run<F: Future>(&self, future: F) -> F::Output;
}

/// async-io's sockets, which are watched by the thread that runs the future.
pub(crate) struct Smol;

impl Runtime for Smol {
    fn run<F: Future>(&self, future: F) -> F::Output {
        smol::block_on(future)
    }
}

impl Stream for Async<TcpStream> {
    fn write(&self, command: &[u8]) -> io::Result<usize> {
        io::Write::write(&mut self.get_ref(), command)
    }

    fn poll_read(&mut self, context: &mut Context<'_>, chunk: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(self).poll_read(context, chunk)
    }
}

/// The floor of smol.
pub(crate) fn smol(addresses: &[SocketAddr]) -> Futures<Smol, Async<TcpStream>> {
    Futures::open(addresses, Smol, |address| {
        let stream = smol::block_on(Async::<TcpStream>::connect(address))?;
        stream.get_ref().set_nodelay(true)?;
        Ok(stream)
    })
}

/// The floor of code in `main` under a runtime with several threads, which watch the sockets.
#[cfg(feature = "tokio")]
pub(crate) mod tokio_main {
    use tokio::net::TcpStream;
    use tokio::runtime;

    use super::*;

    impl Runtime for runtime::Runtime {
        fn run<F: Future>(&self, future: F) -> F::Output {
            self.block_on(future)
        }
    }

    impl Stream for TcpStream {
        fn write(&self, command: &[u8]) -> io::Result<usize> {
            self.try_write(command)
        }

        fn poll_read(&mut self, context: &mut Context<'_>, chunk: &mut [u8]) -> Poll<io::Result<usize>> {
            while self.poll_read_ready(context).is_ready() {
                match self.try_read(chunk) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    read => return Poll::Ready(read),
                }
            }
            Poll::Pending
        }
    }

    pub(crate) fn open(
        addresses: &[SocketAddr],
        runtime: runtime::Runtime,
    ) -> Futures<runtime::Runtime, TcpStream> {
        let handle = runtime.handle().clone();
        Futures::open(addresses, runtime, |address| {
            let stream = handle.block_on(TcpStream::connect(address))?;
            stream.set_nodelay(true)?;
            Ok(stream)
        })
    }
}

impl<R: Runtime, S: Stream> Futures<R, S> {
    fn open(addresses: &[SocketAddr], runtime: R, connect: impl Fn(SocketAddr) -> io::Result<S>) -> Self {
        let release = load(addresses, RELEASE);
        let connect = |address: &SocketAddr| {
            let stream = connect(*address).expect("the server listens");
            Link { stream, owed: 0 }
        };
        let links = addresses.iter().map(connect).collect();
        Self { runtime, links, worker: Worker::new(0, &release), tokens: 0 }
    }
}

/// Sends a command and waits for a majority.
async fn exchange<S: Stream>(links: &mut [Link<S>], command: &[u8]) {
    for link in links.iter_mut() {
        let written = link.stream.write(command).expect("the server takes bytes");
        assert_eq!(written, command.len());
        link.owed += 1;
    }
    let majority = links.len() / 2 + 1;
    poll_fn(|context| {
        for link in links.iter_mut() {
            let mut chunk = [0; 256];
            while link.owed > 0 {
                let Poll::Ready(read) = link.stream.poll_read(context, &mut chunk) else { break };
                let length = read.expect("the server answers");
                assert_ne!(length, 0, "the server has closed the connection");
                let replies = chunk.get(..length).unwrap_or_default();
                link.owed -= replies.iter().filter(|byte| **byte == b'\n').count();
            }
        }
        let answered = links.iter().filter(|link| link.owed == 0).count();
        if answered >= majority { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

impl<R: Runtime, S: Stream> Client for Futures<R, S> {
    fn sequential(&mut self, limit: Limit) -> Sequence {
        let mut sequence = Sequence::with_capacity(limit);
        let Self { runtime, links, worker, tokens } = self;
        runtime.run(async {
            let begin = Instant::now();
            while sequence.attempts() < limit.pairs && begin.elapsed() < limit.span {
                let start = Instant::now();
                *tokens += 1;
                worker.draw(*tokens);
                exchange(links, worker.acquire()).await;
                let granted = Instant::now();
                exchange(links, worker.release()).await;
                sequence.add(start, Some(granted), true);
            }
        });
        sequence
    }

    fn in_flight(&mut self, _workers: usize, _span: Duration) -> Tally {
        Tally::default()
    }
}
