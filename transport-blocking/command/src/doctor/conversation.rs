//! A conversation with one master, in RESP2: what is asked, and the answers as they come.
//!
//! The library's connections carry requests about locks only, so this is a small client of its own.
//! It waits in the calling thread, never beyond its deadlines. Whatever the other side sends
//! occupies a bounded amount of memory.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use quorlock_core::{Address, Cause, Channel, ChannelState, Endpoint, ServerError, WireFault};

use super::login;

/// How long opening a connection may take.
pub(super) const CONNECT_WITHIN: Duration = Duration::from_secs(1);
/// How long the answers to one write may take.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// As in the library: more than any answer to what is asked here.
const MAX_REPLY_BYTES: usize = 64 << 10;
const MAX_DEPTH: usize = 4;
const MAX_ELEMENTS: usize = 512;

/// A command as its words.
pub(super) type Words = Vec<Vec<u8>>;

/// A command from words that are text.
pub(super) fn words(text: &[&str]) -> Words {
    text.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// A master's answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// A status or a string.
    Text(Vec<u8>),
    /// What went wrong. The server's own words may repeat what it was sent, so they are not kept.
    Error(ServerError),
    Integer(i64),
    Null,
    Array(Vec<Self>),
}

impl Reply {
    /// The text of a status or a string.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        }
    }

    /// The elements of an array.
    pub(super) fn elements(&self) -> Option<&[Self]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }
}

/// A connection to one master.
pub(super) struct Conversation {
    stream: BufReader<Timed>,
    /// When the whole conversation has to be over.
    ends: Instant,
}

impl Conversation {
    /// Connects, and logs in as the URL says. Everything is over at `ends`. With a channel the
    /// connection is encrypted.
    pub(super) fn open(
        endpoint: &Endpoint,
        channel: Option<Box<dyn Channel>>,
        name: &str,
        ends: Instant,
    ) -> Result<Self, Cause> {
        let until = Instant::now() + CONNECT_WITHIN;
        let socket = connect(endpoint.address(), until)?;
        let mut timed = Timed { socket, until, channel: None, plain: Vec::new(), failed: None };
        if let Some(channel) = channel {
            timed.encrypt(channel)?;
        }
        let mut conversation = Self { stream: BufReader::new(timed), ends };
        conversation.log_in(endpoint, name)?;
        if endpoint.database() != 0 {
            conversation.expect(words(&["SELECT", &endpoint.database().to_string()]))?;
        }
        Ok(conversation)
    }

    /// Logs in with HELLO, as the library does, or with AUTH where that is not known or not
    /// allowed.
    fn log_in(&mut self, endpoint: &Endpoint, name: &str) -> Result<(), Cause> {
        let password = login::password(endpoint)?;
        let (user, password) = (endpoint.user(), password.as_deref());
        let mut hello = vec!["HELLO", "2"];
        if let Some(password) = password {
            hello.extend(["AUTH", user.unwrap_or("default"), password]);
        }
        hello.extend(["SETNAME", name]);
        // If the connection ends now, the server has not answered anything.
        let answer = self.ask(words(&hello));
        let hung_up = |cause| cause == Cause::Closed && self.stream.get_ref().channel.is_none();
        match answer.map_err(|cause| if hung_up(cause) { Cause::HungUp } else { cause })? {
            Reply::Error(
                ServerError::UnknownCommand
                | ServerError::NoPerm
                | ServerError::NoAuth
                | ServerError::Other(_),
            ) => {}
            Reply::Error(error) => return Err(Cause::Server(error)),
            _ => return Ok(()),
        }
        match (user, password) {
            (_, None) => Ok(()),
            (Some(user), Some(password)) => self.expect(words(&["AUTH", user, password])),
            (None, Some(password)) => self.expect(words(&["AUTH", password])),
        }
    }

    /// Sends one command and reads its answer.
    pub(super) fn ask(&mut self, command: Words) -> Result<Reply, Cause> {
        let mut answers = self.ask_all(&[command])?;
        answers.pop().ok_or(Cause::UnexpectedReply)
    }

    /// Sends commands in one write, and reads an answer for each.
    pub(super) fn ask_all(&mut self, commands: &[Words]) -> Result<Vec<Reply>, Cause> {
        self.stream.get_mut().until = self.ends.min(Instant::now() + ANSWER_WITHIN);
        let mut bytes = Vec::new();
        for command in commands {
            bytes.extend_from_slice(format!("*{}\r\n", command.len()).as_bytes());
            for word in command {
                bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
                bytes.extend_from_slice(word);
                bytes.extend_from_slice(b"\r\n");
            }
        }
        let written = self.stream.get_mut().write_all(&bytes);
        written.map_err(|error| self.unanswered(&error))?;
        commands.iter().map(|_| self.value(&mut { MAX_REPLY_BYTES }, MAX_DEPTH)).collect()
    }

    /// Sends one command that has to go well.
    fn expect(&mut self, command: Words) -> Result<(), Cause> {
        match self.ask(command)? {
            Reply::Error(error) => Err(Cause::Server(error)),
            _ => Ok(()),
        }
    }

    fn value(&mut self, budget: &mut usize, depth: usize) -> Result<Reply, Cause> {
        let line = self.line(budget)?;
        let (kind, rest) = line.split_first().ok_or(Cause::Garbage(WireFault::UnknownType))?;
        Ok(match kind {
            b'+' => Reply::Text(rest.to_vec()),
            b'-' => Reply::Error(ServerError::classify(rest)),
            b':' => Reply::Integer(number(rest)?),
            b'$' => match length(rest)? {
                None => Reply::Null,
                Some(length) => Reply::Text(self.bytes(length, budget)?),
            },
            b'*' => match length(rest)? {
                None => Reply::Null,
                Some(_) if depth == 0 => return Err(Cause::Garbage(WireFault::TooDeep)),
                Some(elements) if elements > MAX_ELEMENTS => {
                    return Err(Cause::Garbage(WireFault::TooManyElements));
                }
                Some(elements) => Reply::Array(
                    (0..elements).map(|_| self.value(budget, depth - 1)).collect::<Result<_, _>>()?,
                ),
            },
            _ => return Err(Cause::Garbage(WireFault::UnknownType)),
        })
    }

    /// A line without its end.
    fn line(&mut self, budget: &mut usize) -> Result<Vec<u8>, Cause> {
        let mut line = Vec::new();
        let most = u64::try_from(*budget).unwrap_or(u64::MAX);
        let read = (&mut self.stream).take(most).read_until(b'\n', &mut line);
        read.map_err(|error| self.unanswered(&error))?;
        *budget -= line.len();
        match line.as_slice() {
            [text @ .., b'\r', b'\n'] => Ok(text.to_vec()),
            [.., b'\n'] => Err(Cause::Garbage(WireFault::LineEnding)),
            _ if *budget == 0 => Err(Cause::Garbage(WireFault::TooLong)),
            _ => Err(Cause::Closed),
        }
    }

    fn bytes(&mut self, length: usize, budget: &mut usize) -> Result<Vec<u8>, Cause> {
        *budget = budget.checked_sub(length + 2).ok_or(Cause::Garbage(WireFault::TooLong))?;
        let mut bytes = vec![0; length + 2];
        let read = self.stream.read_exact(&mut bytes);
        read.map_err(|error| self.unanswered(&error))?;
        if !bytes.ends_with(b"\r\n") {
            return Err(Cause::Garbage(WireFault::Terminator));
        }
        bytes.truncate(length);
        Ok(bytes)
    }
}

impl Conversation {
    /// Why no answer comes.
    fn unanswered(&self, error: &io::Error) -> Cause {
        let late = is_late(error).then_some(Cause::NoAnswer { waited: ANSWER_WITHIN });
        self.stream.get_ref().failed.or(late).unwrap_or_else(|| Cause::from(error))
    }
}

fn number(digits: &[u8]) -> Result<i64, Cause> {
    let digits = std::str::from_utf8(digits).ok();
    digits.and_then(|digits| digits.parse().ok()).ok_or(Cause::Garbage(WireFault::Refused))
}

/// A length, or `None` for the -1 of no value.
fn length(digits: &[u8]) -> Result<Option<usize>, Cause> {
    match number(digits)? {
        -1 => Ok(None),
        length => match usize::try_from(length) {
            Ok(length) if length <= MAX_REPLY_BYTES => Ok(Some(length)),
            Ok(_) => Err(Cause::Garbage(WireFault::TooLong)),
            Err(_) => Err(Cause::Garbage(WireFault::BadLength)),
        },
    }
}

fn is_late(error: &io::Error) -> bool {
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
            let addresses = (host.as_str(), *port).to_socket_addrs().map_err(|_| Cause::UnknownHost)?;
            let mut failure = Cause::UnknownHost;
            for address in addresses {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(Cause::NoConnection { waited: CONNECT_WITHIN });
                }
                match TcpStream::connect_timeout(&address, left) {
                    Ok(stream) => {
                        // Round trips are measured: no segment waits for an acknowledgement.
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

/// A socket whose reads and writes all end by one deadline: a master that sends a byte now and then
/// keeps nobody.
struct Timed {
    socket: Socket,
    until: Instant,
    /// What encrypts, once the handshake is done.
    channel: Option<Box<dyn Channel>>,
    /// What has come and was decrypted, and is not read yet.
    plain: Vec<u8>,
    /// Why the channel cannot be used any more.
    failed: Option<Cause>,
}

impl Timed {
    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }

    /// Does the handshake of a channel, and sends and receives through it from then on.
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

    /// Decrypts what comes next. False where nothing comes any more.
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
