//! A separate blocking client, so that tests do not assert with the code under test.

use std::fmt::Debug;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::clusters;

const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_DEPTH: usize = 16;
const MAX_BULK_BYTES: usize = 64 << 20;
const MAX_LINE_BYTES: u64 = 64 << 10;

/// A reply in RESP2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `+OK`
    Simple(String),
    /// `-ERR …`
    Error(String),
    /// `:1`
    Int(i64),
    /// `$2`, any bytes
    Bulk(Vec<u8>),
    /// `$-1` or `*-1`
    Nil,
    /// `*2`
    Array(Vec<Self>),
}

impl Value {
    /// Whether this is `+OK`.
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Simple(text) if text == "OK")
    }

    /// Whether this is nil.
    pub fn is_nil(&self) -> bool {
        *self == Self::Nil
    }

    /// The text of a simple or a bulk string; none for other types and for bytes that are not
    /// UTF-8.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Simple(text) => Some(text),
            Self::Bulk(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The integer, if this is one.
    pub fn int(&self) -> Option<i64> {
        match self {
            Self::Int(int) => Some(*int),
            _ => None,
        }
    }

    /// The text of an error, if this is one.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Error(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of an array, if this is one.
    pub fn array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }
}

/// One connection that speaks RESP2. Connecting, writing and reading each give up after 5 s, or
/// after the timeout that was set.
#[derive(Debug)]
pub struct RawClient {
    stream: BufReader<Box<dyn Stream>>,
    tags_keys: bool,
}

trait Stream: Read + Write + Debug + Send {
    fn set_timeouts(&self, timeout: Option<Duration>) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn set_timeouts(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(timeout)?;
        self.set_write_timeout(timeout)
    }
}

impl Stream for UnixStream {
    fn set_timeouts(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(timeout)?;
        self.set_write_timeout(timeout)
    }
}

impl RawClient {
    /// Connects and says nothing.
    ///
    /// # Panics
    /// When the connection fails.
    #[track_caller]
    pub fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).unwrap_or_else(|error| panic!("cannot connect to {address}: {error}"))
    }

    /// Connects and says nothing.
    ///
    /// # Errors
    /// When the connection is refused, or not accepted within the timeout.
    pub fn try_connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_nodelay(true)?;
        Self::over(Box::new(stream))
    }

    /// Connects to a Unix domain socket, and says nothing.
    ///
    /// # Errors
    /// When there is no server behind it.
    pub fn try_connect_unix(path: &Path) -> io::Result<Self> {
        Self::over(Box::new(UnixStream::connect(path)?))
    }

    fn over(stream: Box<dyn Stream>) -> io::Result<Self> {
        let client = Self { stream: BufReader::new(stream), tags_keys: false };
        client.set_timeout(TIMEOUT)?;
        Ok(client)
    }

    /// Puts the tag of a cluster's node before the names of keys in commands from here on.
    pub(crate) fn tag_keys(&mut self) {
        self.tags_keys = true;
    }

    /// Bounds every write and every read from here on.
    ///
    /// # Errors
    /// When the timeout is zero.
    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.stream.get_ref().set_timeouts(Some(timeout))
    }

    /// Sends a command and waits for its reply, which may be an error of the server.
    ///
    /// # Panics
    /// When there is no reply.
    #[track_caller]
    pub fn command<A: AsRef<[u8]> + Debug>(&mut self, args: &[A]) -> Value {
        self.try_command(args).unwrap_or_else(|error| panic!("no reply to {args:?}: {error}"))
    }

    /// Sends a command and waits for its reply, which may be an error of the server.
    ///
    /// # Errors
    /// When the connection fails, the reply does not come within the timeout, or is not RESP2.
    pub fn try_command<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<Value> {
        let bytes = if self.tags_keys { encode(&clusters::tagged(args)) } else { encode(args) };
        self.send(&bytes)?;
        self.receive()
    }

    /// Sends these bytes as they are.
    ///
    /// # Errors
    /// When the connection fails or takes no bytes within the timeout.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Waits for one reply.
    ///
    /// # Errors
    /// When the connection ends, no reply comes within the timeout (kind `WouldBlock` or
    /// `TimedOut`), or it is not RESP2.
    pub fn receive(&mut self) -> io::Result<Value> {
        Value::read(&mut self.stream)
    }
}

impl Value {
    /// Reads one reply.
    pub(crate) fn read(stream: &mut impl BufRead) -> io::Result<Self> {
        Self::read_nested(stream, MAX_DEPTH)
    }

    fn read_nested(stream: &mut impl BufRead, depth: usize) -> io::Result<Self> {
        let line = read_line(stream)?;
        let (kind, rest) = line.split_at_checked(1).ok_or_else(|| garbage(&line))?;
        let length = || rest.parse::<i64>().map_err(|_| garbage(&line));
        Ok(match kind {
            "+" => Self::Simple(rest.to_owned()),
            "-" => Self::Error(rest.to_owned()),
            ":" => Self::Int(length()?),
            "$" | "*" if length()? == -1 => Self::Nil,
            "$" => {
                let length = usize::try_from(length()?).ok().filter(|length| *length <= MAX_BULK_BYTES);
                let mut bytes = vec![0; length.ok_or_else(|| garbage(&line))?];
                stream.read_exact(&mut bytes)?;
                let mut end = [0; 2];
                stream.read_exact(&mut end)?;
                if end != *b"\r\n" {
                    return Err(garbage("a bulk string without its end"));
                }
                Self::Bulk(bytes)
            }
            "*" if depth > 0 => {
                let elements = (0..length()?).map(|_| Self::read_nested(stream, depth - 1));
                Self::Array(elements.collect::<io::Result<_>>()?)
            }
            _ => return Err(garbage(&line)),
        })
    }
}

fn read_line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    stream.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    match line.strip_suffix(b"\r\n") {
        Some(line) => Ok(String::from_utf8_lossy(line).into_owned()),
        None => Err(garbage("a line without its end")),
    }
}

/// A command as the bytes that a server expects.
pub(crate) fn encode<A: AsRef<[u8]>>(args: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn garbage(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("not RESP2: {what:?}"))
}
