//! A tunnel in front of servers, like an HTTP proxy: clients request a name with `CONNECT`, and
//! bytes flow after its answer.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The end of a request and of its answer.
const END: &[u8] = b"\r\n\r\n";

/// The answer to a request for a name that the tunnel knows.
const WELCOME: &[u8] = b"HTTP/1.1 200 Connected\r\n\r\n";

/// The longest request or answer that is valid.
const MOST_BYTES: usize = 1024;

/// The longest time for which connecting through a tunnel blocks.
const SOON: Duration = Duration::from_secs(2);

/// A tunnel on a port of 127.0.0.1. Only the tunnel knows the names of the servers behind it.
/// Dropping it closes everything.
pub struct Tunnel {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    names: Vec<(String, SocketAddr)>,
    carried: AtomicUsize,
    held: AtomicUsize,
    holds: AtomicBool,
    ends: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

impl Tunnel {
    /// Listens, and carries connections to these servers. A name is as in `CONNECT name:port`.
    pub fn start(servers: impl IntoIterator<Item = (String, SocketAddr)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared {
            names: servers.into_iter().collect(),
            carried: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            holds: AtomicBool::new(false),
            ends: AtomicBool::new(false),
            streams: Mutex::default(),
        });
        let accepting = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.accept(&listener))
        };
        Self { address, shared, accepting: Some(accepting) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections have been carried to a server.
    pub fn carried(&self) -> usize {
        self.shared.carried.load(Ordering::SeqCst)
    }

    /// Whether requests from here on are read and not answered.
    pub fn hold(&self, holds: bool) {
        self.shared.holds.store(holds, Ordering::SeqCst);
    }

    /// How many connections wait for an answer that does not come.
    pub fn held(&self) -> usize {
        self.shared.held.load(Ordering::SeqCst)
    }

    /// Opens a connection to `name:port` through the tunnel at this address, on the calling thread.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionRefused`] if the tunnel does not know the name, and those of
    /// sockets.
    pub fn connect(tunnel: SocketAddr, name: &str) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(tunnel)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SOON))?;
        stream.write_all(request(name).as_bytes())?;
        let mut answer = Vec::new();
        while !is_whole(&answer) {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            answer.push(byte[0]);
        }
        check(&answer)?;
        Ok(stream)
    }
}

/// Asks for a connection to `name:port`.
pub(crate) fn request(name: &str) -> String {
    format!("CONNECT {name} HTTP/1.1\r\nHost: {name}\r\n\r\n")
}

/// Whether these bytes are a whole answer; the bytes after it are the server's.
pub(crate) fn is_whole(answer: &[u8]) -> bool {
    answer.ends_with(END) || answer.len() > MOST_BYTES
}

/// Whether this answer opens a connection.
pub(crate) fn check(answer: &[u8]) -> io::Result<()> {
    if answer == WELCOME { Ok(()) } else { Err(io::ErrorKind::ConnectionRefused.into()) }
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        let mut carrying = Vec::new();
        while let Ok((client, _)) = listener.accept() {
            if self.ends.load(Ordering::SeqCst) {
                break;
            }
            let shared = Arc::clone(self);
            // An error ends this connection only.
            carrying.push(thread::spawn(move || drop(shared.carry(client))));
        }
        for carried in carrying {
            let _ = carried.join();
        }
    }

    /// Serves one connection until it ends.
    fn carry(&self, mut client: TcpStream) -> io::Result<()> {
        self.keep(&client)?;
        let mut asked = Vec::new();
        while !is_whole(&asked) {
            let mut byte = [0];
            client.read_exact(&mut byte)?;
            asked.push(byte[0]);
        }
        if self.holds.load(Ordering::SeqCst) {
            self.held.fetch_add(1, Ordering::SeqCst);
            // Until the client or the tunnel ends.
            let _ = client.read(&mut [0]);
            self.held.fetch_sub(1, Ordering::SeqCst);
            return Ok(());
        }
        let asked = String::from_utf8_lossy(&asked);
        let name = asked.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()).unwrap_or_default();
        let Some((_, address)) = self.names.iter().find(|(known, _)| known == name) else {
            return client.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n");
        };
        let mut server = TcpStream::connect(address)?;
        self.keep(&server)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        client.write_all(WELCOME)?;
        self.carried.fetch_add(1, Ordering::SeqCst);
        let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
        let back = thread::spawn(move || {
            let _ = io::copy(&mut from_server, &mut to_client);
            let _ = to_client.shutdown(Shutdown::Both);
        });
        let _ = io::copy(&mut client, &mut server);
        let _ = server.shutdown(Shutdown::Both);
        let _ = back.join();
        Ok(())
    }

    /// Registers the stream to be closed with the tunnel.
    fn keep(&self, stream: &TcpStream) -> io::Result<()> {
        self.streams.lock().expect("no thread panics here").push(stream.try_clone()?);
        Ok(())
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::SeqCst);
        // This connection wakes the thread that accepts, which then ends.
        let _ = TcpStream::connect(self.address);
        if let Ok(streams) = self.shared.streams.lock() {
            streams.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        }
        let ended = self.accepting.take().map(JoinHandle::join);
        if ended.is_some_and(|ended| ended.is_err()) && !thread::panicking() {
            panic!("the tunnel panicked");
        }
    }
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel").field("address", &self.address).finish_non_exhaustive()
    }
}
