//! A listener that sends what no server sends, for clients that must survive it.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::ports::{PortLease, listen, stop_listening};

pub mod behaviour;

/// Listens on 127.0.0.1 and runs a behaviour, on its own thread, for every connection.
/// Dropping it closes the connections, which ends the behaviours that read or write, and waits for
/// them.
#[derive(Debug)]
pub struct FakeMaster {
    lease: PortLease,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

/// The connection of a behaviour: a stream that counts written bytes.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    ending: AtomicBool,
    accepted: AtomicUsize,
    bytes_taken: AtomicU64,
    /// The live connections by number. Shutting a socket down here ends a behaviour that is blocked
    /// on it.
    live: Mutex<BTreeMap<usize, TcpStream>>,
}

impl FakeMaster {
    /// Starts listening. The behaviour is given each connection with its number, from 0; the
    /// connection is closed when the behaviour returns. A behaviour that waits for anything except
    /// its peer must end by itself.
    pub fn start(behaviour: impl Fn(&mut Peer, usize) + Send + Sync + 'static) -> Self {
        let lease = PortLease::take();
        let listener = listen(lease.address()).expect("a leased port is free");
        let shared = Arc::new(Shared::default());
        let accepting = thread::Builder::new()
            .name("fake-master".into())
            .spawn({
                let shared = Arc::clone(&shared);
                move || {
                    accept(&listener, &shared, &behaviour);
                    stop_listening(listener);
                }
            })
            .expect("a thread can be started");
        Self { lease, shared, accepting: Some(accepting) }
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.lease.number()
    }

    /// The address for connections.
    pub fn address(&self) -> SocketAddr {
        self.lease.address()
    }

    /// `redis://127.0.0.1:port`
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// How many connections there have been.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many connections there are: neither the peer's end nor the behaviour's has been seen.
    pub fn connections(&self) -> usize {
        self.shared.live().len()
    }

    /// How many bytes behaviours have written, including those that wait in the sockets' buffers (a
    /// few MiB for each connection).
    pub fn bytes_taken(&self) -> u64 {
        self.shared.bytes_taken.load(Ordering::SeqCst)
    }
}

impl Drop for FakeMaster {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which closes what is live and waits for the behaviours.
        let _ = TcpStream::connect(self.address());
        let ended = self.accepting.take().map(JoinHandle::join);
        if ended.is_some_and(|ended| ended.is_err()) && !thread::panicking() {
            panic!("a behaviour of the fake master panicked");
        }
    }
}

impl Peer {
    /// Waits for bytes of the peer, and returns those that arrived together; empty if it has
    /// closed.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn hear(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; 64 << 10];
        let length = self.read(&mut bytes)?;
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Reads and discards until the peer closes.
    pub fn listen_to_the_end(&mut self) {
        let _ = io::copy(self, &mut io::sink());
    }
}

impl Read for Peer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl Write for Peer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.stream.write(bytes)?;
        self.shared.bytes_taken.fetch_add(taken as u64, Ordering::SeqCst);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn live(&self) -> MutexGuard<'_, BTreeMap<usize, TcpStream>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>, behaviour: &(impl Fn(&mut Peer, usize) + Sync)) {
    // The scope waits for every behaviour and passes a panic on.
    thread::scope(|scope| {
        loop {
            let Ok((stream, _)) = listener.accept() else { continue };
            if shared.ending.load(Ordering::SeqCst) {
                break;
            }
            let Ok(handle) = stream.try_clone().and_then(|handle| stream.set_nodelay(true).map(|()| handle))
            else {
                continue;
            };
            let number = shared.accepted.fetch_add(1, Ordering::SeqCst);
            shared.live().insert(number, handle);
            let mut peer = Peer { stream, shared: Arc::clone(shared) };
            scope.spawn(move || {
                let _leaving = Leaving { shared: Arc::clone(&peer.shared), number };
                behaviour(&mut peer, number);
            });
        }
        for stream in shared.live().values() {
            // The peer may have closed it already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    });
}

/// Removes a connection from the list when its behaviour returns or panics.
struct Leaving {
    shared: Arc<Shared>,
    number: usize,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some(stream) = self.shared.live().remove(&self.number) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
