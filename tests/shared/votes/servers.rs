//! Real servers at three seats.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant as Clock};

use quorlock_core::{Fleet, Instant};
use quorlock_tests::{RedisServer, ServerOptions, Value};

use crate::votes::client::Site;
use crate::votes::{History, Seats, Setting};

const FIRST: usize = 0;
const SEAT: usize = 2;
const REPLICA: usize = 3;
const SPARE: usize = 4;
const FIRSTS_REPLICA: usize = 5;

/// A replica follows its primary within this time, even on a busy machine.
const ATTACHED_WITHIN: Duration = Duration::from_secs(10);

pub struct Servers {
    started: Clock,
    /// Those of the three seats, the replica of the last one, a spare one, and the replica of the
    /// first one.
    servers: Vec<RedisServer>,
    seats: [usize; 3],
    former: usize,
}

pub struct Line(TcpStream);

impl Site for Servers {
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

impl Servers {
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

    fn follow(&self, server: usize, of: usize) {
        self.servers[server].become_replica_of(&self.servers[of]);
        self.until("attached", || self.info(server).contains("master_link_status:up"));
        let port = format!("port={},state=online", self.servers[server].port());
        self.until("online", || self.info(of).contains(&port));
    }

    fn promote(&self, server: usize) {
        self.servers[server].become_master();
    }

    /// Exactly one replica follows.
    fn is_followed(&self, server: usize) -> bool {
        let info = self.info(server);
        let is_fresh = info.contains(",lag=0") || info.contains(",lag=1");
        info.contains("connected_slaves:1\r") && info.contains("state=online") && is_fresh
    }

    fn take_seat(&mut self, server: usize) {
        (self.former, self.seats[SEAT]) = (self.seats[SEAT], server);
    }

    /// Puts our keys of the first seat back on the last one.
    fn put_back(&self) {
        let [first, seat] = [FIRST, SEAT].map(|server| &self.servers[server]);
        let (mut from, mut to) = (first.client().unwrap(), seat.client().unwrap());
        for key in self.keys_of(FIRST) {
            if key.starts_with("quorlock:") && !key.starts_with("quorlock:seat:") {
                continue;
            }
            let left = from.command(&["PTTL", &key]).int().unwrap().max(1).to_string();
            if let Value::Bulk(value) = from.command(&["GET", &key]) {
                let words: [&[u8]; 5] = [b"SET", key.as_bytes(), &value, b"PX", left.as_bytes()];
                assert!(to.command(&words).is_ok());
            }
        }
    }

    fn keys_of(&self, server: usize) -> Vec<String> {
        let keys = self.servers[server].command(&["KEYS", "*"]);
        keys.array().unwrap().iter().map(|key| key.text().unwrap().to_owned()).collect()
    }

    fn set_marker(&self, fleet: &str, more: &str) {
        let marker = self.servers[SEAT].get(Fleet::MARKER).unwrap();
        let words: Vec<_> = marker.splitn(4, ' ').collect();
        let fleet = if fleet.is_empty() { words[3] } else { fleet };
        let text = format!("{} {} {} {fleet}{more}", words[0], words[1], words[2]);
        assert!(self.servers[SEAT].command(&["SET", Fleet::MARKER, &text]).is_ok());
    }

    fn flush(&self) {
        assert!(self.servers[SEAT].command(&["FLUSHALL"]).is_ok());
    }
}

impl Seats for Servers {
    fn start(history: History, setting: Setting) -> Result<Self, String> {
        if history == History::SlotMovedAway {
            return Err("left to the model, which has the nodes of a cluster".into());
        }
        let options = || ServerOptions::new().config("repl-diskless-sync-delay 0").config("save \"\"");
        let servers = (0..6).map(|server| match (server, history) {
            (SEAT, History::RestartedWithItsData) => options().append_only().start(),
            (FIRST, History::TwoAddressesWithoutInfo) => {
                options().acl_user("default on nopass ~* &* +@all -info").start()
            }
            _ => options().start(),
        });
        let seats = if history.shares_a_server() { [0, 1, 0] } else { [0, 1, 2] };
        let servers = Self { started: Clock::now(), servers: servers.collect(), seats, former: SEAT };
        if history.has_replica(setting) {
            servers.follow(REPLICA, SEAT);
        }
        if setting == Setting::Replicas {
            servers.follow(FIRSTS_REPLICA, FIRST);
            for server in [FIRST, SEAT] {
                servers.until("followed", || servers.is_followed(server));
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

    fn happens(&mut self, history: History, setting: Setting) {
        let has_declared = setting == Setting::Replicas;
        match history {
            History::Untouched | History::TwoAddresses | History::TwoAddressesWithoutInfo => {}
            History::SlotMovedAway => unreachable!("no such life is started"),
            History::RestartedWithItsData | History::RestartedFromAnOlderSnapshot => {
                self.servers[SEAT].restart();
            }
            History::RestartedEmpty => {
                self.flush();
                assert!(self.servers[SEAT].command(&["SAVE"]).is_ok());
                self.servers[SEAT].restart();
            }
            History::Flushed | History::QuarantineOver => self.flush(),
            History::KeysPutBackByHand => {
                self.flush();
                self.put_back();
            }
            History::RebuiltFromAnother | History::RebuiltAlone => {
                if history == History::RebuiltAlone {
                    self.promote(REPLICA);
                }
                self.follow(SEAT, FIRST);
                self.promote(SEAT);
            }
            // With declared replicas, one more would cost the first seat its vote.
            History::BecameAReplica => self.follow(SEAT, if has_declared { FIRSTS_REPLICA } else { FIRST }),
            History::PromotedWithTheLastWrite | History::PromotedWithoutTheLastWrite => {
                self.servers[SEAT].kill();
                self.promote(REPLICA);
                self.take_seat(REPLICA);
            }
            History::FormerPrimaryGoesOn | History::FormerPrimaryOutlivesTheQuarantine => {
                self.promote(REPLICA);
                self.take_seat(REPLICA);
            }
            History::DemotedAndBack => {
                self.promote(REPLICA);
                self.follow(SEAT, REPLICA);
                self.promote(SEAT);
                if has_declared {
                    self.follow(REPLICA, SEAT);
                }
            }
            History::OtherFleetsMarker => self.set_marker("9999 7", ""),
            History::LaterVersionsMarker => self.set_marker("", " 1"),
        }
        let primary = self.seats[SEAT];
        if has_declared && primary == REPLICA {
            self.follow(SPARE, REPLICA);
        }
        let is_incomplete = matches!(history, History::RebuiltAlone | History::BecameAReplica);
        if has_declared && !is_incomplete {
            for server in [FIRST, primary] {
                self.until("followed", || self.is_followed(server));
            }
        }
    }

    fn keys(&mut self, seat: usize) -> Vec<String> {
        self.keys_of(self.seats[seat])
    }

    fn set(&mut self, seat: usize, key: &str, value: &str) {
        assert!(self.servers[self.seats[seat]].command(&["SET", key, value]).is_ok());
    }
}
