//! The one thread of a proxy: it owns every socket, so that closing one is dropping it. This module
//! handles connections and their ends. `line` handles the bytes.

use std::io::{self, Read};
use std::mem;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_linger;

use super::line::{Faults, Line};
use super::{Cut, Direction};
use crate::ports;

/// The longest wait for a connection to the server: on this machine a server accepts at once, or
/// its queue is full.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

pub(super) type Command = Box<dyn FnOnce(&mut Relay) + Send>;

pub(super) struct Relay {
    address: SocketAddr,
    upstream: SocketAddr,
    /// None while connections are refused.
    listener: Option<TcpListener>,
    hang_up: bool,
    unconfirmed: bool,
    to_server: Faults,
    to_client: Faults,
    links: Vec<Link>,
    accepted: usize,
    commands: mpsc::Receiver<Command>,
    woken: UnixStream,
    stopped: bool,
}

/// One connection of a client and what belongs to it.
struct Link {
    client: TcpStream,
    /// None when the server does not know, or no longer knows, of the connection.
    server: Option<TcpStream>,
    to_server: Line,
    to_client: Line,
    /// The next bytes of the client break it.
    resets: bool,
    broken: bool,
}

impl Relay {
    pub(super) fn new(
        address: SocketAddr,
        upstream: SocketAddr,
        commands: mpsc::Receiver<Command>,
        woken: UnixStream,
    ) -> io::Result<Self> {
        woken.set_nonblocking(true)?;
        Ok(Self {
            address,
            upstream,
            listener: Some(listen(address)?),
            hang_up: false,
            unconfirmed: false,
            to_server: Faults::default(),
            to_client: Faults::default(),
            links: Vec::new(),
            accepted: 0,
            commands,
            woken,
            stopped: false,
        })
    }

    pub(super) fn run(&mut self) {
        while !self.stopped {
            self.wait();
            let commands = self.commands();
            // What clients did before a command is processed before the command.
            self.accept();
            self.pump();
            for command in commands {
                command(self);
            }
            self.pump();
        }
    }

    fn wait(&mut self) {
        let now = Instant::now();
        let due = self.links.iter().filter_map(|link| link.next_due(&self.to_server, &self.to_client)).min();
        let timeout = due.map(|due| due.saturating_duration_since(now));
        let timeout = timeout.map(|timeout| Timespec::try_from(timeout).expect("a delay fits"));

        let mut sockets = vec![PollFd::new(&self.woken, PollFlags::IN)];
        sockets.extend(self.listener.iter().map(|listener| PollFd::new(listener, PollFlags::IN)));
        for link in &self.links {
            // A socket without an interest must not be polled: its end would be reported
            // repeatedly.
            let client = interest(link.to_server.is_open(), link.to_client.is_blocked());
            let server = interest(link.to_client.is_open(), link.to_server.is_blocked());
            sockets.extend(client.map(|flags| PollFd::new(&link.client, flags)));
            sockets.extend(link.server.iter().zip(server).map(|(socket, flags)| PollFd::new(socket, flags)));
        }
        match poll(&mut sockets, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("the sockets of a proxy cannot be polled: {error}"),
        }
    }

    fn accept(&mut self) {
        while let Some(Ok((client, _))) = self.listener.as_ref().map(TcpListener::accept) {
            self.accepted += 1;
            if !self.hang_up {
                // A connection that cannot be set up is closed.
                self.links.extend(self.link(client).ok());
            }
        }
    }

    fn link(&self, client: TcpStream) -> io::Result<Link> {
        client.set_nonblocking(true)?;
        client.set_nodelay(true)?;
        let mut link = Link {
            client,
            server: None,
            to_server: if self.unconfirmed { Line::unconfirmed() } else { Line::default() },
            to_client: Line::default(),
            resets: false,
            broken: false,
        };
        if self.to_server.black_hole {
            link.to_server.lose();
        } else {
            let server = TcpStream::connect_timeout(&self.upstream, CONNECT_TIMEOUT)?;
            server.set_nonblocking(true)?;
            server.set_nodelay(true)?;
            link.server = Some(server);
        }
        Ok(link)
    }

    /// Moves bytes until nothing more is due.
    fn pump(&mut self) {
        let now = Instant::now();
        for link in &mut self.links {
            link.pump(now, &self.to_server, &self.to_client);
        }
        let (gone, live) = mem::take(&mut self.links)
            .into_iter()
            .partition::<Vec<_>, _>(|link| link.broken || link.is_over());
        self.links = live;
        for link in gone {
            if link.broken {
                link.close(Cut::Reset);
            }
        }
    }

    fn commands(&mut self) -> Vec<Command> {
        let mut wakes = [0; 64];
        while self.woken.read(&mut wakes).is_ok_and(|length| length > 0) {}
        self.commands.try_iter().collect()
    }
}

/// The commands.
impl Relay {
    pub(super) fn stop(&mut self) {
        self.stop_listening();
        self.stopped = true;
    }

    pub(super) fn connections(&self) -> usize {
        self.links.iter().filter(|link| !link.to_server.has_ended()).count()
    }

    pub(super) fn accepted(&self) -> usize {
        self.accepted
    }

    pub(super) fn set_upstream(&mut self, upstream: SocketAddr) {
        self.upstream = upstream;
    }

    pub(super) fn fault(&mut self, direction: Direction, change: impl Fn(&mut Faults)) {
        if direction != Direction::ToClient {
            change(&mut self.to_server);
        }
        if direction != Direction::ToServer {
            change(&mut self.to_client);
        }
    }

    pub(super) fn unconfirmed(&mut self) {
        self.unconfirmed = true;
    }

    pub(super) fn refuse(&mut self, refuse: bool) -> io::Result<()> {
        if refuse {
            self.stop_listening();
        } else if self.listener.is_none() {
            self.listener = Some(listen(self.address)?);
        }
        Ok(())
    }

    fn stop_listening(&mut self) {
        if let Some(listener) = self.listener.take() {
            ports::stop_listening(listener);
        }
    }

    pub(super) fn hang_up(&mut self, hang_up: bool) {
        self.hang_up = hang_up;
    }

    pub(super) fn cut(&mut self, how: Cut) {
        for link in self.links.drain(..) {
            link.close(how);
        }
    }

    pub(super) fn half_open(&mut self, resets: bool) {
        for link in &mut self.links {
            link.resets = resets;
            link.to_server.lose();
            link.to_client.lose();
            if let Some(server) = link.server.take() {
                close(server, Cut::Fin);
            }
        }
    }

    pub(super) fn inject(&mut self, direction: Direction, bytes: &[u8]) {
        let now = Instant::now();
        for link in &mut self.links {
            if direction != Direction::ToClient {
                link.to_server.inject(bytes, now, &self.to_server);
            }
            if direction != Direction::ToServer {
                link.to_client.inject(bytes, now, &self.to_client);
            }
        }
    }

    pub(super) fn heal(&mut self) -> io::Result<()> {
        let now = Instant::now();
        self.to_server = Faults::default();
        self.to_client = Faults::default();
        self.hang_up = false;
        for link in &mut self.links {
            link.to_server.hurry(now);
            link.to_client.hurry(now);
            link.broken |= link.to_server.lost_its_end() || link.to_client.lost_its_end();
        }
        self.refuse(false)
    }
}

impl Link {
    fn pump(&mut self, now: Instant, to_server: &Faults, to_client: &Faults) {
        self.broken |= self.resets && self.client.peek(&mut [0]).is_ok_and(|length| length > 0);
        self.to_server.read_from(&mut self.client, now, to_server);
        let mut written = Ok(());
        if let Some(server) = &mut self.server {
            self.to_client.read_from(server, now, to_client);
            written = self.to_server.write_to(server, now, to_server);
        }
        let written = written.and(self.to_client.write_to(&mut self.client, now, to_client));
        self.broken |= written.is_err();
    }

    /// Both sides have received the other's end, or the client has left a connection that has no
    /// other side.
    fn is_over(&self) -> bool {
        let unknown = self.server.is_none() && self.to_server.has_ended();
        unknown || (self.to_server.is_over() && self.to_client.is_over())
    }

    fn next_due(&self, to_server: &Faults, to_client: &Faults) -> Option<Instant> {
        let due = self.server.as_ref().and_then(|_| self.to_server.next_due(to_server));
        due.into_iter().chain(self.to_client.next_due(to_client)).min()
    }

    fn close(self, how: Cut) {
        close(self.client, how);
        if let Some(server) = self.server {
            close(server, how);
        }
    }
}

fn close(mut socket: TcpStream, how: Cut) {
    // Errors mean that the peer was faster.
    match how {
        Cut::Reset => {
            let _ = set_socket_linger(&socket, Some(Duration::ZERO));
        }
        Cut::Fin => {
            // Closing a socket with unread bytes would reset the connection.
            let mut unread = [0; 4096];
            while socket.read(&mut unread).is_ok_and(|length| length > 0) {}
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

fn interest(read: bool, write: bool) -> Option<PollFlags> {
    match (read, write) {
        (false, false) => None,
        (true, false) => Some(PollFlags::IN),
        (false, true) => Some(PollFlags::OUT),
        (true, true) => Some(PollFlags::IN | PollFlags::OUT),
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = ports::listen(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
