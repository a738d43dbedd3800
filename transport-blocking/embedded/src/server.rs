//! One embedded master: the model, a listener and its connections, which run turn by turn.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Registry, Token};
use quorlock_sim::{Command, CommandKind, Flow, Push, Session};
use rustix::net::Shutdown;

use super::client::{Client, Next};
use super::now;

/// The tokens of connections are smaller than this, and no token is reused: an event of a closed
/// connection concerns no other one.
pub(super) const WAKE: Token = Token(usize::MAX);
const LISTENER: Token = Token(usize::MAX - 1);

/// The model, and how often it has executed each command.
pub(super) struct Executor<'a> {
    model: &'a mut quorlock_sim::Master,
    executed: &'a mut BTreeMap<CommandKind, u64>,
    /// Pushes for other connections.
    pushes: &'a mut Vec<Push>,
    now: Duration,
}

impl Executor<'_> {
    /// Executes the next whole command of this session: `None` if there is none.
    pub(super) fn execute(&mut self, session: &mut Session, replies: &mut Vec<u8>) -> Option<Flow> {
        match self.model.next_command(session) {
            Ok(command) => command.map(|command| self.run(session, &command, replies)),
            Err(error) => {
                error.write(replies);
                Some(Flow::Close)
            }
        }
    }

    fn run(&mut self, session: &mut Session, command: &Command, replies: &mut Vec<u8>) -> Flow {
        *self.executed.entry(command.kind()).or_default() += 1;
        let flow = self.model.execute(session, command, self.now, replies);
        for push in self.model.take_pushes() {
            if push.session == session.id() {
                replies.extend_from_slice(&push.bytes);
            } else {
                self.pushes.push(push);
            }
        }
        flow
    }
}

/// An embedded master without its thread.
pub(super) struct Server {
    pub(super) model: quorlock_sim::Master,
    pub(super) is_paused: bool,
    pub(super) has_ended: bool,
    registry: Registry,
    listener: Option<TcpListener>,
    /// There may be connections to accept.
    accepts: bool,
    clients: BTreeMap<usize, Client>,
    next_number: usize,
    executed: BTreeMap<CommandKind, u64>,
    pushes: Vec<Push>,
    buffer: Box<[u8]>,
}

impl Server {
    pub(super) fn new(model: quorlock_sim::Master, registry: Registry) -> Self {
        Self {
            model,
            is_paused: false,
            has_ended: false,
            registry,
            listener: None,
            accepts: false,
            clients: BTreeMap::new(),
            next_number: 0,
            executed: BTreeMap::new(),
            pushes: Vec::new(),
            buffer: vec![0; BUFFER_BYTES].into(),
        }
    }

    pub(super) fn listen(&mut self, mut listener: TcpListener) -> io::Result<()> {
        self.registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        self.listener = Some(listener);
        Ok(())
    }

    pub(super) fn is_listening(&self) -> bool {
        self.listener.is_some()
    }

    pub(super) fn clients(&self) -> Vec<String> {
        self.clients.values().map(Client::name).collect()
    }

    pub(super) fn executed(&self, kind: CommandKind) -> u64 {
        self.executed.get(&kind).copied().unwrap_or_default()
    }

    /// Closes every socket, and ends a pause.
    pub(super) fn close(&mut self) {
        // Closing alone is not enough: a process that another thread is just starting has inherited
        // every socket until it executes its program, and until then a listener would still accept
        // connections.
        if let Some(listener) = self.listener.take() {
            // If a listener cannot be shut down (macOS), closing it must be enough.
            let _ = rustix::net::shutdown(&listener, Shutdown::Both);
        }
        for client in std::mem::take(&mut self.clients).into_values() {
            self.model.leave(client.session());
        }
        self.accepts = false;
        self.is_paused = false;
    }

    /// Handles these events, and returns for how long the poll may sleep.
    pub(super) fn turn(&mut self, events: &Events) -> Option<Duration> {
        for event in events {
            match event.token() {
                WAKE => {}
                LISTENER => self.accepts = true,
                Token(number) => {
                    if let Some(client) = self.clients.get_mut(&number) {
                        client.is_ready = true;
                    }
                }
            }
        }
        let accepting = self.accept();
        self.model.remove_ended(now());
        self.tell_readers();
        let numbers: Vec<usize> = self.clients.keys().copied().collect();
        for number in numbers {
            self.serve(number);
        }
        let more = self.clients.values().any(|client| client.is_ready);
        if more {
            Some(Duration::ZERO)
        } else {
            [accepting, self.until_next_end()].into_iter().flatten().min()
        }
    }

    /// One connection's turn, if there is something to do for it.
    fn serve(&mut self, number: usize) {
        let Some(client) = self.clients.get_mut(&number).filter(|client| client.is_ready) else { return };
        let (model, executed, pushes) = (&mut self.model, &mut self.executed, &mut self.pushes);
        let next = client.turn(&mut Executor { model, executed, pushes, now: now() }, &mut self.buffer);
        client.is_ready = next == Next::Again;
        if next == Next::Gone {
            self.model.leave(client.session());
            self.clients.remove(&number);
        }
        // Pushes are queued before any other client is answered: none may arrive after a later
        // reply.
        self.tell_readers();
    }

    /// Queues pushes on their connections, which send them in their next turn. Returns whether
    /// there were any.
    pub(super) fn tell_readers(&mut self) -> bool {
        let mut pushes = std::mem::take(&mut self.pushes);
        pushes.extend(self.model.take_pushes());
        for Push { session, bytes, .. } in &pushes {
            let mut clients = self.clients.values_mut();
            if let Some(client) = clients.find(|client| client.session().id() == *session) {
                client.push(bytes);
            }
        }
        !pushes.is_empty()
    }

    /// How long it is until a key expires that a client watches.
    fn until_next_end(&self) -> Option<Duration> {
        let end = self.model.next_end()?;
        Some(end.saturating_sub(now()).clamp(SHORTEST_SLEEP, LONGEST_SLEEP))
    }

    /// Accepts waiting clients. Returns for how long the poll may sleep before this is tried again.
    fn accept(&mut self) -> Option<Duration> {
        for _ in 0..ACCEPTS_PER_TURN {
            let listener = self.listener.as_ref().filter(|_| self.accepts)?;
            match listener.accept() {
                Ok((stream, _)) => self.admit(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.accepts = false,
                // The client that waited has gone again.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
                    ) => {}
                // No file descriptor is left, and no event reports when there is one.
                Err(_) => return Some(EXHAUSTED_PAUSE),
            }
        }
        Some(Duration::ZERO)
    }

    fn admit(&mut self, mut stream: TcpStream) {
        if self.clients.len() >= MAX_CLIENTS {
            // As in Redis: the error is sent if the socket accepts it at once, and the connection
            // is closed.
            let _ = stream.write(b"-ERR max number of clients reached\r\n");
            return;
        }
        let number = self.next_number;
        let interest = Interest::READABLE | Interest::WRITABLE;
        // Replies are small and must not wait for more bytes to fill a segment. A failure here ends
        // only this connection.
        if stream.set_nodelay(true).is_ok()
            && self.registry.register(&mut stream, Token(number), interest).is_ok()
        {
            self.next_number += 1;
            self.clients.insert(number, Client::new(stream, self.model.accept()));
        }
    }
}

const BUFFER_BYTES: usize = 16 << 10;
/// The most clients at once: with the bound on the memory of one, this bounds the memory of all. In
/// a test both ends of each connection are in one process, which may open fewer files.
pub(super) const MAX_CLIENTS: usize = if cfg!(test) { 256 } else { 1024 };
/// Connections that are accepted in one turn: few enough that connected clients are served, too.
const ACCEPTS_PER_TURN: usize = 64;
/// How long the poll may sleep while a client watches a key that expires, because the clock may be
/// set.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);
