//! A conversation with one master, in RESP2: commands, and their answers in order.
//!
//! The library's connections carry only requests about locks, so this is a separate small client.
//! It waits in the calling thread, never beyond its deadlines. It uses a bounded amount of memory,
//! no matter what the other side sends.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::{Duration, Instant};

use quorlock_core::{Address, Cause, Channel, ChannelFacts, Endpoint, ServerError, WireFault};

use super::login;
use super::socket::{Timed, is_late};

/// How long the answers to one write may take.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The longest answer that is read, as in the library. No answer to these commands is as long.
const MAX_REPLY_BYTES: usize = 64 << 10;
const MAX_DEPTH: usize = 4;
const MAX_ELEMENTS: usize = 512;

/// A command as its words.
pub(crate) type Words = Vec<Vec<u8>>;

/// A command from words that are text.
pub(crate) fn words(text: &[&str]) -> Words {
    text.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// A master's answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// A status or a string.
    Text(Vec<u8>),
    /// The error. The server's own text may repeat what it was sent, so it is not kept.
    Error(ServerError),
    /// Another node of the cluster has the slot.
    Moved {
        host: String,
        port: String,
    },
    Integer(i64),
    Null,
    Array(Vec<Self>),
}

impl Reply {
    /// The text of a status or a string.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        }
    }

    /// The elements of an array.
    pub(crate) fn elements(&self) -> Option<&[Self]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }
}

/// A connection to one master.
pub(crate) struct Conversation {
    stream: BufReader<Timed>,
    /// The deadline of the whole conversation.
    ends: Instant,
}

impl Conversation {
    /// Connects to a server of this master, and logs in with the login of the URL. `ends` is the
    /// deadline for everything. With a channel the connection is encrypted.
    pub(crate) fn open(
        endpoint: &Endpoint,
        address: &Address,
        channel: Option<Box<dyn Channel>>,
        name: &str,
        ends: Instant,
    ) -> Result<Self, Cause> {
        let timed = Timed::connect(address, channel)?;
        let mut conversation = Self { stream: BufReader::new(timed), ends };
        conversation.log_in(endpoint, name)?;
        if endpoint.database() != 0 {
            conversation.expect(words(&["SELECT", &endpoint.database().to_string()]))?;
        }
        Ok(conversation)
    }

    /// Logs in with HELLO, as the library does, or with AUTH if HELLO is unknown or denied.
    fn log_in(&mut self, endpoint: &Endpoint, name: &str) -> Result<(), Cause> {
        let password = login::password(endpoint)?;
        let (user, password) = (endpoint.user(), password.as_deref());
        let mut hello = vec!["HELLO", "2"];
        if let Some(password) = password {
            hello.extend(["AUTH", user.unwrap_or("default"), password]);
        }
        hello.extend(["SETNAME", name]);
        let is_encrypted = self.stream.get_ref().is_encrypted();
        // If the connection ends now, the server has not answered anything.
        let answer = self.ask(words(&hello));
        let hung_up = |cause| cause == Cause::Closed && !is_encrypted;
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

    /// The result of the TLS handshake, if the connection is encrypted.
    pub(crate) fn encryption(&self) -> Option<ChannelFacts> {
        self.stream.get_ref().encryption()
    }

    /// Sends one command and reads its answer.
    pub(crate) fn ask(&mut self, command: Words) -> Result<Reply, Cause> {
        let mut answers = self.ask_all(&[command])?;
        answers.pop().ok_or(Cause::UnexpectedReply)
    }

    /// Sends commands in one write, and reads an answer for each.
    pub(crate) fn ask_all(&mut self, commands: &[Words]) -> Result<Vec<Reply>, Cause> {
        let until = self.ends.min(Instant::now() + ANSWER_WITHIN);
        self.stream.get_mut().end_by(until);
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

    /// Sends one command that must succeed.
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
            b'-' => moved(rest).unwrap_or_else(|| Reply::Error(ServerError::classify(rest))),
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

    /// Reads a line, and returns it without its end.
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
    /// Why there is no answer.
    fn unanswered(&self, error: &io::Error) -> Cause {
        let late = is_late(error).then_some(Cause::NoAnswer { waited: ANSWER_WITHIN });
        self.stream.get_ref().failure().or(late).unwrap_or_else(|| Cause::from(error))
    }
}

/// `MOVED 3387 host:port`
fn moved(text: &[u8]) -> Option<Reply> {
    let place = std::str::from_utf8(text).ok()?.strip_prefix("MOVED ")?.split(' ').nth(1)?;
    let (host, port) = place.rsplit_once(':')?;
    Some(Reply::Moved { host: host.to_owned(), port: port.to_owned() })
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
