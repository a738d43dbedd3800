//! One scripted master: the model of a server, and how it is reached.

use std::time::Duration;

use quorlock_core::Instant;
use quorlock_sim::{Command, Session};

/// What happens to an attempt to connect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    Accepts,
    Refuses,
    /// Neither accepts nor refuses.
    Ignores,
}

/// What happens to the commands on open connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    Free,
    /// The process is stopped: commands stay in its buffer.
    Stopped,
    /// Commands are executed, and the replies wait for [`World::deliver`](super::World::deliver).
    RepliesHeld,
    /// Everything that is written vanishes.
    BlackHole,
}

#[derive(Clone, Debug)]
pub struct Master {
    pub reach: Reach,
    pub flow: Flow,
    /// How long a reply travels.
    pub delay: Duration,
    /// Whether its pushes get lost.
    pub loses_pushes: bool,
    pub server: quorlock_sim::Master,
    /// Every executed command: its time, its name, and its token.
    pub executed: Vec<(Instant, &'static str, String)>,
}

impl Master {
    pub fn new(place: usize) -> Self {
        Self {
            reach: Reach::Accepts,
            flow: Flow::Free,
            delay: Duration::ZERO,
            loses_pushes: false,
            server: quorlock_sim::Master::new(place as u64),
            executed: Vec::new(),
        }
    }

    /// Empties the script cache, as SCRIPT FLUSH does.
    pub fn forget_scripts(&mut self) {
        self.server.flush_scripts();
    }

    /// `CONFIG SET`.
    pub fn configure(&mut self, name: &str, value: &str) {
        let mut session = self.server.accept();
        let command = format!("CONFIG SET {name} {value}\r\n");
        let mut replies = Vec::new();
        let _ = self.server.serve(&mut session, command.as_bytes(), Duration::ZERO, &mut replies);
        assert_eq!(replies, b"+OK\r\n");
    }

    pub fn forget_keys(&mut self) {
        self.server.remove_all();
    }

    pub fn hold_by_another(&mut self, key: &str, until: Option<Instant>) {
        self.server.hold(0, key.as_bytes(), ANOTHER, until.map(wall_clock));
    }

    pub fn hold(&mut self, key: &str, value: &str, until: Instant) {
        self.server.hold(0, key.as_bytes(), value.as_bytes(), Some(wall_clock(until)));
    }

    pub fn fails(&mut self, command: &str, text: &str) {
        self.server.fail(command, Some(text));
    }

    pub fn mends(&mut self, command: &str) {
        self.server.fail(command, None);
    }

    pub fn count(&self, command: &str) -> usize {
        self.executed.iter().filter(|(_, name, _)| *name == command).count()
    }

    /// When it was asked for a lock, and with which token.
    pub fn attempts(&self) -> Vec<(Instant, &str)> {
        let attempts =
            self.executed.iter().filter(|(_, name, _)| *name == "SET" || name.starts_with("ACQUIRE"));
        attempts.map(|(at, _, token)| (*at, token.as_str())).collect()
    }

    /// The tokens of a command, in the order of their arrival.
    pub fn tokens(&self, command: &str) -> Vec<&str> {
        let of = self.executed.iter().filter(|(_, name, _)| *name == command);
        of.map(|(_, _, token)| token.as_str()).collect()
    }

    pub fn value(&self, key: &str, now: Instant) -> Option<&str> {
        let value = self.server.value(0, key.as_bytes(), wall_clock(now))?;
        Some(std::str::from_utf8(value).unwrap())
    }

    /// The last instant at which the key exists.
    pub fn end(&self, key: &str, now: Instant) -> Option<Instant> {
        let end = self.server.expires_at(0, key.as_bytes(), wall_clock(now))?;
        Some(Instant::ORIGIN + (end - wall_clock(Instant::ORIGIN)))
    }

    pub fn is_empty(&self, now: Instant) -> bool {
        self.server.keys(wall_clock(now)).next().is_none()
    }

    pub fn execute(&mut self, session: &mut Session, command: &Command, now: Instant) -> Vec<u8> {
        let token = String::from_utf8_lossy(command.token().unwrap_or_default()).into_owned();
        self.executed.push((now, command.kind().name(), token));
        let mut reply = Vec::new();
        let flow = self.server.execute(session, command, wall_clock(now), &mut reply);
        assert_eq!(flow, quorlock_sim::Flow::Open, "the machine ends connections by closing them");
        reply
    }
}

/// The servers' clocks follow the machine's.
pub fn wall_clock(now: Instant) -> Duration {
    now.since(Instant::ORIGIN)
}

pub fn instant(wall_clock: Duration) -> Instant {
    Instant::ORIGIN + wall_clock
}

pub const ANOTHER: &[u8] = b"another's token";
