//! Ports that stay ours for as long as a server may want to come back on them.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::Shutdown;

/// Below the range from which Linux (32768) and macOS (49152) give ports to outgoing connections: otherwise
/// any connection on the machine could take the port of a killed server before it is restarted, and a client
/// that tries a dead port again and again would now and then be given that very port and connect to itself.
const PORTS: std::ops::Range<u16> = 18_000..32_000;
const TRIES: usize = 1_000;

/// A TCP port of 127.0.0.1 that no other test takes while this value lives, listening or not.
///
/// The lease is a UDP socket on the same number: it is exclusive among processes, leaves the TCP port free
/// for the server and ends with the process that holds it, however that one ends.
#[derive(Debug)]
pub(crate) struct PortLease {
    port: u16,
    _lease: UdpSocket,
}

impl PortLease {
    /// Leases a port on which nobody listens.
    pub(crate) fn take() -> Self {
        let random = RandomState::new();
        for attempt in 0..TRIES {
            let offset = random.hash_one(attempt) % u64::from(PORTS.end - PORTS.start);
            let port = PORTS.start + u16::try_from(offset).expect("an offset within a range of u16");
            let Ok(lease) = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)) else { continue };
            if let Ok(probe) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                stop_listening(probe);
                return Self { port, _lease: lease };
            }
        }
        panic!("no free port of 127.0.0.1 in {PORTS:?} after {TRIES} tries");
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
/// A server that was killed a moment ago may not be gone yet; so a port in use is tried again for a while.
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

/// Has connections refused from here on.
///
/// Closing alone would not: a process that another thread is just starting has inherited the listener until it
/// executes its program, and as long as that has not happened the system goes on accepting connections.
pub(crate) fn stop_listening(listener: TcpListener) {
    // Where a listener cannot be shut down (macOS), closing it has to do.
    let _ = rustix::net::shutdown(&listener, Shutdown::Both);
    drop(listener);
}
