//! A TCP proxy whose network is as bad as the test wants it.

use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::ports::PortLease;
use crate::tls::url_of;
use line::Faults;
use relay::{Command, Relay};

mod line;
mod relay;
mod unconfirmed;

/// The direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server: requests.
    ToServer,
    /// From the server to the client: replies.
    ToClient,
    /// Both directions.
    Both,
}

/// How a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// In order: the peers read the end of the stream.
    Fin,
    /// By a reset: the peers read "connection reset".
    Reset,
}

/// A TCP proxy in front of one server, whose faults a test switches while connections go through
/// it. A fault is in effect when its method returns. Dropping the proxy closes everything.
///
/// A connection of a client is accepted first and then connected to the server. If the server
/// refuses, the client sees an accepted connection that is closed at once. For a refused
/// connection, use [`FaultProxy::refuse`].
pub struct FaultProxy {
    lease: PortLease,
    commands: mpsc::Sender<Command>,
    wake: UnixStream,
    relaying: Option<JoinHandle<()>>,
}

/// Setup and inspection.
impl FaultProxy {
    /// Listens on a port of 127.0.0.1 and passes everything on to and from `upstream`.
    pub fn start(upstream: SocketAddr) -> Self {
        let lease = PortLease::take();
        let (commands, received) = mpsc::channel();
        let (wake, woken) = UnixStream::pair().expect("a pair of sockets");
        let mut relay =
            Relay::new(lease.address(), upstream, received, woken).expect("a leased port is free");
        let relaying = thread::Builder::new()
            .name("fault-proxy".into())
            .spawn(move || relay.run())
            .expect("a thread can be started");
        Self { lease, commands, wake, relaying: Some(relaying) }
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.lease.number()
    }

    /// The address for connections.
    pub fn address(&self) -> SocketAddr {
        self.lease.address()
    }

    /// `redis://127.0.0.1:port`; `rediss://` where servers speak TLS.
    pub fn url(&self) -> String {
        url_of(self.address())
    }

    /// How many connections there are that the client has not closed.
    pub fn connections(&self) -> usize {
        self.tell(|relay| relay.connections())
    }

    /// How many connections have been accepted.
    pub fn accepted(&self) -> usize {
        self.tell(|relay| relay.accepted())
    }

    /// Removes `WAIT` from the requests of connections that are opened from here on: a client gets
    /// at once the answer that all requested replicas have confirmed. The client must speak RESP
    /// without TLS.
    pub fn confirm_for_replicas(&self) {
        self.tell(Relay::unconfirmed);
    }

    /// Sends connections that are opened from here on to another server.
    pub fn set_upstream(&self, upstream: SocketAddr) {
        self.tell(move |relay| relay.set_upstream(upstream));
    }
}

/// Faults of the line: they hold for open and for new connections, until [`FaultProxy::heal`].
impl FaultProxy {
    /// Every byte arrives this much later, as on a long line: in order, with any number of bytes
    /// under way. Bytes under way keep the delay that was set when they were sent.
    pub fn delay(&self, direction: Direction, delay: Duration) {
        self.fault(direction, move |faults| faults.delay = delay);
    }

    /// Every byte is its own write, sent at once.
    pub fn split_bytes(&self, direction: Direction) {
        self.fault(direction, |faults| faults.split = true);
    }

    /// Bytes that arrive within `collect` after a first byte are passed on in one write.
    pub fn coalesce(&self, direction: Direction, collect: Duration) {
        self.fault(direction, move |faults| faults.coalesce = Some(collect));
    }

    /// Nothing arrives until the proxy is healed, and then everything does, as on a network that is
    /// down while TCP retransmits.
    pub fn stall(&self, direction: Direction) {
        self.fault(direction, |faults| faults.stall = true);
    }

    /// Stalled bytes arrive, but not the ends of connections: these wait until the proxy is healed,
    /// as if the last segment of a connection was lost and retransmitted.
    pub fn resume_without_ends(&self, direction: Direction) {
        self.fault(direction, |faults| (faults.stall, faults.late_ends) = (false, true));
    }

    /// Bytes and ends of connections are accepted and lost. Connections are still accepted; if the
    /// direction to the server is lost, the server never learns of new ones. A connection that has
    /// lost anything stays mute in that direction after healing, since a TCP stream has no holes.
    pub fn black_hole(&self, direction: Direction) {
        self.fault(direction, |faults| faults.black_hole = true);
    }
}

/// Faults of connecting, and single events.
impl FaultProxy {
    /// Whether new connections are refused, by not listening. Open ones stay.
    pub fn refuse(&self, refuse: bool) {
        self.tell(move |relay| relay.refuse(refuse)).expect("a leased port is free");
    }

    /// Whether new connections are accepted and closed at once. Open ones stay.
    pub fn hang_up(&self, hang_up: bool) {
        self.tell(move |relay| relay.hang_up(hang_up));
    }

    /// Closes all open connections, to the client and to the server. What was under way is lost.
    pub fn cut(&self, how: Cut) {
        self.tell(move |relay| relay.cut(how));
    }

    /// Closes the server's side of all open connections in order, while the client's side stays
    /// open and silent and accepts bytes, as behind a network that forgot them. New connections
    /// work.
    pub fn half_open(&self) {
        self.tell(|relay| relay.half_open(false));
    }

    /// The same, and the next bytes of the client are answered by a reset, as by a balancer that
    /// has forgotten the connection.
    pub fn half_open_until_used(&self) {
        self.tell(|relay| relay.half_open(true));
    }

    /// Sends bytes of the test into all open connections, after the bytes under way.
    pub fn inject(&self, direction: Direction, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        self.tell(move |relay| relay.inject(direction, &bytes));
    }

    /// Ends every fault and delivers the bytes under way at once. Lost bytes stay lost, see
    /// [`FaultProxy::black_hole`]; connections whose end was lost are reset on the other side.
    pub fn heal(&self) {
        self.tell(Relay::heal).expect("a leased port is free");
    }

    fn fault(&self, direction: Direction, change: impl Fn(&mut Faults) + Send + 'static) {
        self.tell(move |relay| relay.fault(direction, change));
    }

    /// Makes the relay's thread run a command, and waits for it.
    fn tell<R: Send + 'static>(&self, act: impl FnOnce(&mut Relay) -> R + Send + 'static) -> R {
        let (answer, answered) = mpsc::sync_channel(1);
        let command: Command = Box::new(move |relay| {
            // The caller waits for the answer, so the channel is open.
            let _ = answer.send(act(relay));
        });
        self.commands.send(command).expect("the relay runs as long as the proxy");
        (&self.wake).write_all(&[0]).expect("the relay runs as long as the proxy");
        answered.recv().expect("the relay runs as long as the proxy")
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        let stop: Command = Box::new(Relay::stop);
        // Errors mean that the relay's thread has panicked, which joining it reports.
        let _ = self.commands.send(stop);
        let _ = (&self.wake).write_all(&[0]);
        let ended = self.relaying.take().map(JoinHandle::join);
        if ended.is_some_and(|ended| ended.is_err()) && !thread::panicking() {
            panic!("the fault proxy panicked");
        }
    }
}

impl fmt::Debug for FaultProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultProxy").field("port", &self.port()).finish_non_exhaustive()
    }
}
