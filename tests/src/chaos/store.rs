//! A store that remembers the largest fencing token of each resource and refuses smaller ones.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::history::{Seeker, What, Writer, now};

/// The store: a thread that listens on the loopback, and one for each client. Dropping it ends the
/// listening; a connection ends with its client.
#[derive(Debug)]
pub struct Store {
    address: SocketAddr,
    state: Arc<State>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    history: Writer,
    book: Mutex<Book>,
    is_over: AtomicBool,
}

#[derive(Default, Debug)]
struct Book {
    largest: HashMap<String, u64>,
    accepted: usize,
}

impl Store {
    /// Starts a store that records every decision.
    ///
    /// # Errors
    /// When the history cannot be opened or there is no port.
    pub fn start(history: &Path) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let (history, book, is_over) = (Writer::open(history)?, Mutex::default(), AtomicBool::new(false));
        let state = Arc::new(State { history, book, is_over });
        let shared = Arc::clone(&state);
        let listening = thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.is_over.load(Ordering::Acquire) {
                    break;
                }
                let shared = Arc::clone(&shared);
                // The thread ends when the client does, with an error if the client was killed.
                thread::spawn(move || serve(&shared, stream));
            }
        });
        Ok(Self { address, state, listening: Some(listening) })
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many writes were accepted so far.
    pub fn accepted(&self) -> usize {
        self.state.book.lock().unwrap_or_else(PoisonError::into_inner).accepted
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Release);
        // Any connection wakes the listener.
        let woken = TcpStream::connect(self.address);
        if let (Some(listening), Ok(_)) = (self.listening.take(), woken) {
            let _ = listening.join();
        }
    }
}

impl State {
    /// Decides about a write and records the decision, as one atomic step.
    fn write(&self, by: Seeker, resource: String, token: u64) -> bool {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        let largest = book.largest.entry(resource.clone()).or_default();
        let accepted = token >= *largest;
        *largest = token.max(*largest);
        book.accepted += usize::from(accepted);
        self.history.add(now(), What::Write { by, resource, token, accepted });
        accepted
    }
}

fn serve(state: &State, stream: TcpStream) -> io::Result<()> {
    let mut answers = stream.try_clone()?;
    for line in BufReader::new(stream).lines() {
        let line = line?;
        let mut words = line.split(' ');
        let (Some(by), Some(resource), Some(token)) = (words.next(), words.next(), words.next()) else {
            break;
        };
        let (Ok(by), Ok(token)) = (by.parse(), token.parse()) else { break };
        let accepted = state.write(by, resource.to_owned(), token);
        answers.write_all(if accepted { b"yes\n" } else { b"no\n" })?;
    }
    Ok(())
}

/// A client's connection to the store.
#[derive(Debug)]
pub(super) struct StoreClient(BufReader<TcpStream>);

impl StoreClient {
    pub(super) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Whether the store accepted it.
    pub(super) fn write(&mut self, by: &Seeker, resource: &str, token: u64) -> io::Result<bool> {
        self.0.get_mut().write_all(format!("{by} {resource} {token}\n").as_bytes())?;
        let mut answer = String::new();
        self.0.read_line(&mut answer)?;
        match answer.as_str() {
            "yes\n" => Ok(true),
            "no\n" => Ok(false),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::read;
    use super::*;

    #[test]
    fn smaller_tokens_are_refused_and_equal_ones_are_accepted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history");
        let store = Store::start(&path).unwrap();
        let mut client = StoreClient::connect(store.address()).unwrap();
        let by = Seeker { client: "1.1".to_owned(), attempt: 1 };

        let mut write = |resource, token| client.write(&by, resource, token).unwrap();

        assert!(write("a", 7) && write("a", 7) && write("b", 3) && !write("a", 6) && write("a", 8));
        assert_eq!(store.accepted(), 4);
        assert_eq!(read(&path).unwrap().len(), 5);
    }
}
