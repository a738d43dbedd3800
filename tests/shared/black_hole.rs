//! An address that swallows connection requests.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Connecting to it neither succeeds nor fails: the queue of its listener is full, and the system
/// drops what does not fit.
#[derive(Debug)]
pub(crate) struct BlackHole {
    listener: TcpListener,
    _queue: Vec<TcpStream>,
}

impl BlackHole {
    /// Listens on a free port of 127.0.0.1 and fills the queue.
    ///
    /// # Panics
    ///
    /// Where the system does not listen, or still accepts connections.
    #[allow(clippy::expect_used)]
    pub(crate) fn open() -> Self {
        const MOST_QUEUED: usize = 64;
        const NO_ANSWER_WITHIN: Duration = Duration::from_millis(200);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        rustix::net::listen(&listener, 0).expect("a shorter queue");
        let address = listener.local_addr().expect("the address of a listener");
        let connect = || TcpStream::connect_timeout(&address, NO_ANSWER_WITHIN).ok();
        let queue: Vec<TcpStream> = std::iter::from_fn(connect).take(MOST_QUEUED).collect();
        assert!(queue.len() < MOST_QUEUED, "the system queues more connections than it was told");
        Self { listener, _queue: queue }
    }

    /// An address where nothing answers.
    ///
    /// # Panics
    ///
    /// None in practice: a listener has an address.
    #[allow(clippy::expect_used)]
    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("the address of a listener")
    }
}
