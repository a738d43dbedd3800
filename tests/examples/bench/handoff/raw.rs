//! The floor: what a hand-off costs where all waiters are known, and nothing is between them and
//! the sockets. Waiters are in a queue of the process. The holder that releases writes the deletion
//! of its key and the next one's `SET` to every socket in one call, reads until a majority has
//! granted, and wakes the next one. Everything else is missing: timeouts, validity, handling of
//! lost connections.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use quorlock_tests::RawClient;
use rustix::event::{PollFd, PollFlags, poll};

/// Deletes a key that has this value.
pub(super) const RELEASE: &str =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

/// A lock for the threads of one process.
pub(crate) struct Raw {
    wire: Mutex<Wire>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    is_held: bool,
    waiting: VecDeque<mpsc::Sender<u64>>,
}

struct Wire {
    sockets: Vec<Socket>,
    release: String,
    tokens: u64,
}

struct Socket {
    stream: TcpStream,
    /// How many replies have not arrived yet. Replies that come after a majority are read before
    /// the next command's.
    owed: usize,
    /// The beginning of a reply whose end has not come.
    rest: Vec<u8>,
}

impl Raw {
    pub(crate) fn open(addresses: &[SocketAddr]) -> Self {
        let mut release = String::new();
        let mut connect = |address: &SocketAddr| {
            let sha = RawClient::connect(*address).command(&["SCRIPT", "LOAD", RELEASE]);
            release = sha.text().expect("a script's name").to_owned();
            let stream = TcpStream::connect(address).expect("the server listens");
            stream.set_nodelay(true).expect("a socket has this option");
            Socket { stream, owed: 0, rest: Vec::new() }
        };
        let sockets = addresses.iter().map(&mut connect).collect();
        Self { wire: Mutex::new(Wire { sockets, release, tokens: 0 }), queue: Mutex::default() }
    }

    /// Waits for the lock, and returns the token with which it is held.
    pub(crate) fn lock(&self, resource: &str, ttl: Duration) -> u64 {
        let waits = {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            if queue.is_held {
                let (hand, waits) = mpsc::channel();
                queue.waiting.push_back(hand);
                Some(waits)
            } else {
                queue.is_held = true;
                None
            }
        };
        match waits {
            Some(waits) => waits.recv().expect("the holder hands the lock over"),
            None => {
                self.wire.lock().unwrap_or_else(PoisonError::into_inner).exchange(resource, None, Some(ttl))
            }
        }
    }

    /// Passes the lock to the next waiter, if there is one.
    pub(crate) fn release(&self, resource: &str, token: u64, ttl: Duration) {
        // Taken before the mutex of the queue, so that the request of a caller that finds the lock
        // free is written behind the release.
        let mut wire = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        let next = {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let next = queue.waiting.pop_front();
            queue.is_held = next.is_some();
            next
        };
        let granted = wire.exchange(resource, Some(token), next.is_some().then_some(ttl));
        if let Some(next) = next {
            next.send(granted).expect("the next one waits");
        }
    }
}

impl Wire {
    /// Releases a token, or takes the lock with another, or both in one write, and waits for a
    /// majority.
    fn exchange(&mut self, resource: &str, released: Option<u64>, ttl: Option<Duration>) -> u64 {
        let mut bytes = String::new();
        let mut commands = 0;
        if let Some(token) = released {
            bytes += &command(&["EVALSHA", &self.release, "1", resource, &token.to_string()]);
            commands += 1;
        }
        if let Some(ttl) = ttl {
            self.tokens += 1;
            let (token, ttl) = (self.tokens.to_string(), ttl.as_millis().to_string());
            bytes += &command(&["SET", resource, &token, "NX", "PX", &ttl]);
            commands += 1;
        }
        for socket in &mut self.sockets {
            socket.stream.write_all(bytes.as_bytes()).expect("the server takes bytes");
            socket.owed += commands;
        }
        let expected = if ttl.is_some() { b"+OK".as_slice() } else { b":1" };
        let majority = self.sockets.len() / 2 + 1;
        let mut granted = 0;
        while granted < majority {
            granted += self.read().iter().filter(|reply| reply.as_slice() == expected).count();
        }
        self.tokens
    }

    /// Waits for some sockets. Returns the last reply of each socket from which all replies have
    /// arrived now.
    fn read(&mut self) -> Vec<Vec<u8>> {
        let mut waiting: Vec<&mut Socket> =
            self.sockets.iter_mut().filter(|socket| socket.owed > 0).collect();
        assert!(!waiting.is_empty(), "a majority refused, although there is no other client");
        let mut descriptors: Vec<_> = waiting
            .iter()
            .map(|socket| PollFd::from_borrowed_fd(socket.stream.as_fd(), PollFlags::IN))
            .collect();
        rustix::io::retry_on_intr(|| poll(&mut descriptors, None)).expect("sockets can be waited for");
        let ready: Vec<bool> = descriptors.iter().map(|polled| !polled.revents().is_empty()).collect();
        drop(descriptors);
        let ready = waiting.iter_mut().zip(ready).filter(|(_, is_ready)| *is_ready);
        ready.filter_map(|(socket, _)| socket.read()).collect()
    }
}

impl Socket {
    /// Reads what has arrived on a readable socket. Returns the last reply if no other is
    /// outstanding.
    fn read(&mut self) -> Option<Vec<u8>> {
        let mut chunk = [0; 1024];
        let length = self.stream.read(&mut chunk).expect("the server answers");
        assert!(length > 0, "the server has closed the connection");
        self.rest.extend_from_slice(chunk.get(..length)?);
        let mut last = None;
        // Each of these replies is one line.
        while let Some(end) = self.rest.windows(2).position(|pair| pair == b"\r\n") {
            let line: Vec<u8> = self.rest.drain(..end + 2).collect();
            last = line.get(..end).map(<[u8]>::to_vec);
            self.owed -= 1;
        }
        last.filter(|_| self.owed == 0)
    }
}

fn command(words: &[&str]) -> String {
    let header = format!("*{}\r\n", words.len());
    words.iter().fold(header, |bytes, word| bytes + &format!("${}\r\n{word}\r\n", word.len()))
}
