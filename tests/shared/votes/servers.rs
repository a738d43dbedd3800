//! Real servers at three seats.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant as Clock};

use quorlock_core::Instant;
use quorlock_tests::{RedisServer, ServerOptions, Value};

use crate::votes::client::Site;
use crate::votes::{FIRST, FIRSTS_REPLICA, History, Kept, REPLICA, SEAT, SERVERS, Servers, Setting};

/// A replica follows its primary within this time, even on a busy machine.
const ATTACHED_WITHIN: Duration = Duration::from_secs(10);

pub struct RealServers {
    started: Clock,
    servers: Vec<RedisServer>,
    seats: [usize; 3],
    former: usize,
}

pub struct Line(TcpStream);

impl Site for RealServers {
    type Line = Line;

    fn now(&self) -> Instant {
        Instant::ORIGIN + self.started.elapsed()
    }

    fn idle(&mut self, at_most: Duration) {
        thread::sleep(at_most.min(Duration::from_micros(500)));
    }

    fn open(&mut self, seat: usize, lags: bool) -> Option<Line> {
        let server = if lags && seat == SEAT { self.former } else { self.seats[seat] };
        let stream = TcpStream::connect(self.servers[server].address()).ok()?;
        stream.set_nonblocking(true).ok()?;
        stream.set_nodelay(true).ok()?;
        Some(Line(stream))
    }

    fn write(&mut self, line: &mut Line, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match line.0.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::yield_now(),
                // The end of the connection is read.
                Err(_) => return,
            }
        }
    }

    fn read(&mut self, line: &mut Line) -> Option<Vec<u8>> {
        let (mut all, mut part) = (Vec::new(), [0; 16 * 1024]);
        loop {
            match line.0.read(&mut part) {
                Ok(0) => return (!all.is_empty()).then_some(all),
                Ok(length) => all.extend_from_slice(&part[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(all),
                Err(_) => return (!all.is_empty()).then_some(all),
            }
        }
    }
}

impl RealServers {
    fn info(&self, server: usize) -> String {
        self.servers[server].command(&["INFO", "replication"]).text().unwrap().to_owned()
    }

    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let start = Clock::now();
        while !is_so() {
            assert!(start.elapsed() < ATTACHED_WITHIN, "not {what} within {ATTACHED_WITHIN:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Exactly one replica follows.
    fn is_followed(&self, server: usize) -> bool {
        let info = self.info(server);
        let is_fresh = info.contains(",lag=0") || info.contains(",lag=1");
        info.contains("connected_slaves:1\r") && info.contains("state=online") && is_fresh
    }
}

impl Servers for RealServers {
    fn start(history: History, setting: Setting) -> Result<Self, String> {
        if history == History::SlotMovedAway {
            return Err("left to the model, which has the nodes of a cluster".into());
        }
        let options = || ServerOptions::new().config("repl-diskless-sync-delay 0").config("save \"\"");
        let servers = (0..SERVERS).map(|server| match (server, history) {
            (SEAT, History::RestartedWithItsData) => options().append_only().start(),
            (FIRST, History::TwoAddressesWithoutInfo) => {
                options().acl_user("default on nopass ~* &* +@all -info").start()
            }
            _ => options().start(),
        });
        let seats = if history.shares_a_server() { [0, 1, 0] } else { [0, 1, 2] };
        let mut servers = Self { started: Clock::now(), servers: servers.collect(), seats, former: SEAT };
        if history.has_replica(setting) {
            servers.follow(REPLICA, SEAT);
        }
        if setting == Setting::Replicas {
            servers.follow(FIRSTS_REPLICA, FIRST);
            for server in [FIRST, SEAT] {
                servers.await_replica(server);
            }
        }
        Ok(servers)
    }

    fn snapshot(&mut self) {
        assert!(self.servers[SEAT].command(&["SAVE"]).is_ok());
    }

    fn cut_replica_off(&mut self) {
        self.promote(REPLICA);
    }

    fn at_the_seat(&self) -> usize {
        self.seats[SEAT]
    }

    fn take_seat(&mut self, server: usize) {
        (self.former, self.seats[SEAT]) = (self.seats[SEAT], server);
    }

    fn restart(&mut self, kept: Kept) {
        match kept {
            // The server writes each command down, or has saved its older state.
            Kept::Data | Kept::Snapshot => {}
            Kept::Nothing => {
                self.command(SEAT, &["FLUSHALL"]);
                self.command(SEAT, &["SAVE"]);
            }
        }
        self.servers[SEAT].restart();
    }

    fn stop(&mut self, server: usize) {
        self.servers[server].kill();
    }

    fn promote(&mut self, server: usize) {
        self.servers[server].become_master();
    }

    fn follow(&mut self, server: usize, of: usize) {
        self.servers[server].become_replica_of(&self.servers[of]);
        self.until("attached", || self.info(server).contains("master_link_status:up"));
        let port = format!("port={},state=online", self.servers[server].port());
        self.until("online", || self.info(of).contains(&port));
    }

    fn await_replica(&mut self, server: usize) {
        self.until("followed", || self.is_followed(server));
        // A replica that is online gets what is written only after its first report, up to a second
        // later.
        let mut client = self.servers[server].client().unwrap();
        assert!(client.command(&["SET", "reported", "1", "PX", "1"]).is_ok());
        let confirmed = client.command(&["WAIT", "1", "5000"]).int();
        assert_eq!(confirmed, Some(1), "replicas that have reported");
    }

    fn move_slot(&mut self) {
        unreachable!("no such life is started");
    }

    fn keys(&mut self, server: usize) -> Vec<String> {
        let keys = self.servers[server].command(&["KEYS", "*"]);
        keys.array().unwrap().iter().map(|key| key.text().unwrap().to_owned()).collect()
    }

    fn value(&mut self, server: usize, key: &str) -> String {
        self.servers[server].get(key).unwrap()
    }

    fn copy(&mut self, key: &str) {
        let [mut from, mut to] = [FIRST, SEAT].map(|server| self.servers[server].client().unwrap());
        let left = from.command(&["PTTL", key]).int().unwrap().max(1).to_string();
        // A key of another type than a string stays away.
        if let Value::Bulk(value) = from.command(&["GET", key]) {
            let words: [&[u8]; 5] = [b"SET", key.as_bytes(), &value, b"PX", left.as_bytes()];
            assert!(to.command(&words).is_ok());
        }
    }

    fn command(&mut self, server: usize, words: &[&str]) {
        let reply = self.servers[server].command(words);
        assert!(reply.is_ok(), "{words:?}: {reply:?}");
    }
}
