//! The floor of code in `main` under a runtime with several threads: the same exchange by tokio's
//! sockets, which the runtime's threads wait for.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use super::worker::Worker;
use super::{RELEASE, load};
use crate::client::{Client, Limit, Sequence, Tally};

pub(crate) struct TokioMain {
    runtime: Runtime,
    wire: Wire,
}

struct Wire {
    streams: Vec<Stream>,
    worker: Worker,
    tokens: u64,
}

struct Stream {
    stream: TcpStream,
    /// How many replies have not come yet.
    owed: usize,
}

impl TokioMain {
    pub(crate) fn open(addresses: &[SocketAddr], runtime: Runtime) -> Self {
        let release = load(addresses, RELEASE);
        let connect = |address: &SocketAddr| {
            let stream = runtime.block_on(TcpStream::connect(*address)).expect("the server listens");
            stream.set_nodelay(true).expect("a socket has this option");
            Stream { stream, owed: 0 }
        };
        let streams = addresses.iter().map(connect).collect();
        Self { runtime, wire: Wire { streams, worker: Worker::new(0, &release), tokens: 0 } }
    }
}

impl Wire {
    async fn pair(&mut self) -> Instant {
        self.tokens += 1;
        self.worker.draw(self.tokens);
        exchange(&mut self.streams, self.worker.acquire()).await;
        let granted = Instant::now();
        exchange(&mut self.streams, self.worker.release()).await;
        granted
    }
}

/// Sends a command and waits for a majority.
async fn exchange(streams: &mut [Stream], command: &[u8]) {
    for stream in streams.iter_mut() {
        // One command after the other always fits into the system's buffer.
        let written = stream.stream.try_write(command).expect("the server takes bytes");
        assert_eq!(written, command.len());
        stream.owed += 1;
    }
    let majority = streams.len() / 2 + 1;
    poll_fn(|context| {
        for stream in streams.iter_mut().filter(|stream| stream.owed > 0) {
            while stream.owed > 0 && stream.stream.poll_read_ready(context).is_ready() {
                let mut chunk = [0; 256];
                match stream.stream.try_read(&mut chunk) {
                    Ok(0) => panic!("the server has closed the connection"),
                    Ok(length) => {
                        let replies = chunk.get(..length).unwrap_or_default();
                        stream.owed -= replies.iter().filter(|byte| **byte == b'\n').count();
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => panic!("the server answers: {error}"),
                }
            }
        }
        let answered = streams.iter().filter(|stream| stream.owed == 0).count();
        if answered >= majority { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

impl Client for TokioMain {
    fn sequential(&mut self, limit: Limit) -> Sequence {
        let mut sequence = Sequence::with_capacity(limit);
        let wire = &mut self.wire;
        self.runtime.block_on(async {
            let begin = Instant::now();
            while sequence.attempts() < limit.pairs && begin.elapsed() < limit.span {
                let start = Instant::now();
                let granted = wire.pair().await;
                sequence.add(start, Some(granted), true);
            }
        });
        sequence
    }

    fn in_flight(&mut self, _workers: usize, _span: Duration) -> Tally {
        Tally::default()
    }
}
