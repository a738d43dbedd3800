//! Ports that stay ours for as long as a server may want to come back on them.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::Shutdown;

/// Below the range from which Linux (from 32768) and macOS (from 49152) give ports to outgoing
/// connections. Otherwise any connection of the machine could take the port of a killed server
/// before the restart. A client that retries a dead port would also sometimes be given that port as
/// its own, and connect to itself.
const PORTS: Range<u16> = 18_000..32_000;
const TRIES: usize = 1_000;

/// A TCP port of 127.0.0.1 that no other test takes while this value lives, listening or not.
///
/// The lease is a UDP socket on the same number. It is exclusive among processes, leaves the TCP
/// port free for the server, and ends with the process that holds it, however that process ends.
#[derive(Debug)]
pub(crate) struct PortLease {
    port: u16,
    _lease: UdpSocket,
    /// The port for messages between the nodes of a cluster.
    _bus: Option<Box<Self>>,
}

/// The default distance between the port for nodes of a cluster and the port for clients.
const BUS: u16 = 10_000;

impl PortLease {
    /// Leases a port on which nothing listens.
    pub(crate) fn take() -> Self {
        Self::some_of(PORTS, Self::of)
    }

    /// Leases a port for a node of a cluster, together with the one for other nodes.
    pub(crate) fn take_with_bus() -> Self {
        Self::some_of(PORTS.start..PORTS.end - BUS, |port| {
            let bus = Self::of(port + BUS).map(Box::new)?;
            Some(Self { _bus: Some(bus), ..Self::of(port)? })
        })
    }

    fn some_of(ports: Range<u16>, of: impl Fn(u16) -> Option<Self>) -> Self {
        let random = RandomState::new();
        let port = |attempt| {
            let offset = random.hash_one(attempt) % u64::from(ports.end - ports.start);
            ports.start + u16::try_from(offset).expect("an offset within a range of u16")
        };
        let lease = (0..TRIES).find_map(|attempt| of(port(attempt)));
        lease.unwrap_or_else(|| panic!("no free port of 127.0.0.1 in {ports:?} after {TRIES} tries"))
    }

    fn of(port: u16) -> Option<Self> {
        let lease = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
        let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
        stop_listening(probe);
        Some(Self { port, _lease: lease, _bus: None })
    }

    pub(crate) fn number(&self) -> u16 {
        self.port
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }
}

/// Listens on a leased port.
///
/// A server that was killed a moment ago may not be gone yet; so a port in use is tried again for a
/// while.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        match TcpListener::bind(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(1));
            }
            outcome => return outcome,
        }
    }
}

/// Makes connections be refused from here on.
///
/// Closing alone is not enough: a process that another thread is just starting has inherited the
/// listener until it executes its program, and until then the system still accepts connections.
pub(crate) fn stop_listening(listener: TcpListener) {
    // If a listener cannot be shut down (macOS), closing it must be enough.
    let _ = rustix::net::shutdown(&listener, Shutdown::Both);
    drop(listener);
}
