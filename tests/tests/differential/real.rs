//! The real server: connections, its clock, and what it holds.

use std::collections::BTreeMap;
use std::io::{BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use quorlock_tests::{RawClient, RedisServer, Value};

use crate::commands::{DATABASES, KEYS};
use crate::frames;

const TIMEOUT: Duration = Duration::from_secs(10);

/// A connection whose replies are read as bytes.
pub(crate) struct Line {
    stream: BufReader<TcpStream>,
}

impl Line {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// Sends these bytes. Errors are ignored: after the server has closed the connection nothing
    /// can be written, but its earlier replies can still be read.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    /// The next replies, fewer if the connection ends or falls silent.
    pub(crate) fn receive(&mut self, count: usize) -> Vec<Vec<u8>> {
        std::iter::repeat_with(|| frames::read(&mut self.stream)).take(count).map_while(Result::ok).collect()
    }

    /// Every frame until this one.
    pub(crate) fn receive_until(&mut self, last: &[u8]) -> Vec<Vec<u8>> {
        let frames = std::iter::repeat_with(|| frames::read(&mut self.stream).unwrap());
        frames.take_while(|frame| frame != last).collect()
    }

    pub(crate) fn is_closed(&mut self) -> bool {
        let ends = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset];
        frames::read(&mut self.stream).is_err_and(|error| ends.contains(&error.kind()))
    }
}

/// All keys at one instant.
pub(crate) struct Survey {
    pub(crate) at: u64,
    pub(crate) keys: Vec<Seen>,
}

pub(crate) struct Seen {
    pub(crate) database: u32,
    pub(crate) key: &'static [u8],
    /// Its value, if that is a string.
    pub(crate) text: Option<Vec<u8>>,
    /// Its members with their scores, if it is a sorted set.
    pub(crate) scores: BTreeMap<Vec<u8>, i64>,
    /// The answer to PTTL.
    pub(crate) left: i64,
}

/// The connection for inspecting the server; it needs no password.
pub(crate) struct Control {
    client: RawClient,
}

impl Control {
    pub(crate) fn of(server: &RedisServer) -> Self {
        Self { client: server.client().unwrap() }
    }

    pub(crate) fn command(&mut self, arguments: &[&str]) -> Value {
        self.client.command(arguments)
    }

    /// Milliseconds since the Unix epoch on the server's clock.
    pub(crate) fn time(&mut self) -> u64 {
        millis(&self.client.command(&["TIME"]))
    }

    /// The id of the server's present life as a master.
    pub(crate) fn replication_id(&mut self) -> String {
        let info = self.client.command(&["INFO", "replication"]);
        let text = info.text().unwrap();
        text.lines().find_map(|line| line.strip_prefix("master_replid:")).unwrap().to_owned()
    }

    /// All keys within one millisecond of the server's clock.
    pub(crate) fn survey(&mut self) -> Survey {
        let mut bytes = b"TIME\r\n".to_vec();
        for database in DATABASES {
            bytes.extend(format!("SELECT {database}\r\n").bytes());
            for key in KEYS {
                for (head, rest) in [
                    ("*2\r\n$3\r\nGET", ""),
                    ("*5\r\n$9\r\nZREVRANGE", "$1\r\n0\r\n$2\r\n-1\r\n$10\r\nWITHSCORES\r\n"),
                    ("*2\r\n$4\r\nPTTL", ""),
                ] {
                    bytes.extend(format!("{head}\r\n${}\r\n", key.len()).bytes());
                    bytes.extend([key, b"\r\n", rest.as_bytes()].concat());
                }
            }
        }
        bytes.extend_from_slice(b"TIME\r\n");
        loop {
            self.client.send(&bytes).unwrap();
            let before = millis(&self.client.receive().unwrap());
            let mut keys = Vec::new();
            for database in DATABASES {
                assert!(self.client.receive().unwrap().is_ok());
                for key in KEYS {
                    let text = match self.client.receive().unwrap() {
                        Value::Bulk(text) => Some(text),
                        _ => None,
                    };
                    let members = self.client.receive().unwrap();
                    let scores = members.array().into_iter().flat_map(|members| members.chunks_exact(2));
                    let scores = scores.map(|pair| {
                        let Value::Bulk(member) = &pair[0] else { panic!("a member is a text") };
                        (member.clone(), pair[1].text().unwrap().parse().unwrap())
                    });
                    let scores = scores.collect();
                    let left = self.client.receive().unwrap().int().unwrap();
                    keys.push(Seen { database, key, text, scores, left });
                }
            }
            let after = millis(&self.client.receive().unwrap());
            if before == after {
                return Survey { at: before, keys };
            }
        }
    }
}

fn millis(time: &Value) -> u64 {
    let part = |place: usize| time.array().unwrap()[place].text().unwrap().parse::<u64>().unwrap();
    part(0) * 1000 + part(1) / 1000
}
