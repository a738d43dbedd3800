//! A socket with a deadline, encrypted if the master's URL asks for TLS.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use quorlock_core::{Address, Cause, Channel, ChannelFacts, ChannelState};

/// How long opening a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// Whether an error says that the deadline has passed.
pub(crate) fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

fn connect(address: &Address, until: Instant) -> Result<Socket, Cause> {
    let unconnected = |error: &io::Error| {
        if is_late(error) { Cause::NoConnection { waited: CONNECT_WITHIN } } else { Cause::from(error) }
    };
    match address {
        Address::Unix(path) => {
            UnixStream::connect(path).map(Socket::Unix).map_err(|error| unconnected(&error))
        }
        Address::Tcp { host, port } => {
            let addresses =
                (host.as_str(), *port).to_socket_addrs().map_err(|error| Cause::unresolved(&error))?;
            let mut failure = Cause::UnknownHost;
            for address in addresses {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(Cause::NoConnection { waited: CONNECT_WITHIN });
                }
                match TcpStream::connect_timeout(&address, left) {
                    Ok(stream) => {
                        // Round trips are measured, so no segment may wait for an acknowledgement.
                        stream.set_nodelay(true).map_err(|error| Cause::from(&error))?;
                        return Ok(Socket::Tcp(stream));
                    }
                    Err(error) => failure = unconnected(&error),
                }
            }
            Err(failure)
        }
    }
}

/// A socket whose reads and writes all end by one deadline, so that even a master that sends a byte
/// now and then cannot delay a caller.
pub(crate) struct Timed {
    socket: Socket,
    until: Instant,
    /// The TLS channel, once the handshake is done.
    channel: Option<Box<dyn Channel>>,
    /// Decrypted bytes that have not been read yet.
    plain: Vec<u8>,
    /// Why the channel cannot be used any more.
    failed: Option<Cause>,
}

impl Timed {
    /// Connects, and does the handshake if there is a channel. Both take at most
    /// [`CONNECT_WITHIN`].
    pub(crate) fn connect(address: &Address, channel: Option<Box<dyn Channel>>) -> Result<Self, Cause> {
        let until = Instant::now() + CONNECT_WITHIN;
        let socket = connect(address, until)?;
        let mut timed = Self { socket, until, channel: None, plain: Vec::new(), failed: None };
        if let Some(channel) = channel {
            timed.encrypt(channel)?;
        }
        Ok(timed)
    }

    /// Sets the deadline of the following reads and writes.
    pub(crate) fn end_by(&mut self, until: Instant) {
        self.until = until;
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.channel.is_some()
    }

    /// The result of the TLS handshake.
    pub(crate) fn encryption(&self) -> Option<ChannelFacts> {
        self.channel.as_ref()?.facts()
    }

    /// Why the channel cannot be used any more.
    pub(crate) fn failure(&self) -> Option<Cause> {
        self.failed
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }

    /// Does the handshake of a channel, and then sends and receives through it.
    fn encrypt(&mut self, mut channel: Box<dyn Channel>) -> Result<(), Cause> {
        let late = |error: &io::Error| match is_late(error) {
            true => Cause::NoHandshake { waited: CONNECT_WITHIN },
            false => Cause::from(error),
        };
        let (mut wire, mut came) = ([0; 4096], 0);
        loop {
            let mut reply = Vec::new();
            let received = wire.get(..came).unwrap_or_default();
            let state = channel.open(received, &mut self.plain, &mut reply);
            self.send_all(&reply).map_err(|error| late(&error))?;
            match state? {
                ChannelState::Established => break,
                ChannelState::Ended => return Err(Cause::Closed),
                ChannelState::Opening => {}
            }
            came = self.receive(&mut wire).map_err(|error| late(&error))?;
            if came == 0 {
                return Err(Cause::Closed);
            }
        }
        self.channel = Some(channel);
        Ok(())
    }

    /// Decrypts the next bytes. False at the end of the connection.
    fn decrypt(&mut self) -> io::Result<bool> {
        let mut wire = [0; 4096];
        let came = self.receive(&mut wire)?;
        let Some(channel) = self.channel.as_mut().filter(|_| came > 0) else { return Ok(false) };
        let mut reply = Vec::new();
        let state = channel.open(wire.get(..came).unwrap_or_default(), &mut self.plain, &mut reply);
        self.send_all(&reply)?;
        match state {
            Ok(state) => Ok(state != ChannelState::Ended || !self.plain.is_empty()),
            Err(cause) => Err(self.fail(cause)),
        }
    }

    fn fail(&mut self, cause: Cause) -> io::Error {
        self.failed = Some(cause);
        io::ErrorKind::InvalidData.into()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = Some(self.left()?);
        match &mut self.socket {
            Socket::Tcp(stream) => stream.set_read_timeout(left).and_then(|()| stream.read(buffer)),
            Socket::Unix(stream) => stream.set_read_timeout(left).and_then(|()| stream.read(buffer)),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = Some(self.left()?);
        match &mut self.socket {
            Socket::Tcp(stream) => stream.set_write_timeout(left).and_then(|()| stream.write(bytes)),
            Socket::Unix(stream) => stream.set_write_timeout(left).and_then(|()| stream.write(bytes)),
        }
    }

    fn send_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let sent = self.send(bytes)?;
            bytes = bytes.get(sent..).unwrap_or_default();
        }
        Ok(())
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.channel.is_none() {
            return self.receive(buffer);
        }
        while self.plain.is_empty() {
            if !self.decrypt()? {
                return Ok(0);
            }
        }
        let count = buffer.len().min(self.plain.len());
        for (place, byte) in buffer.iter_mut().zip(self.plain.drain(..count)) {
            *place = byte;
        }
        Ok(count)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(channel) = &mut self.channel else { return self.send(bytes) };
        let mut wire = Vec::new();
        if let Err(cause) = channel.seal(bytes, &mut wire) {
            return Err(self.fail(cause));
        }
        self.send_all(&wire)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
