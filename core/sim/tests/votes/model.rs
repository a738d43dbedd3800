//! Models of masters at three seats, in virtual time.

use std::time::Duration;

use quorlock_core::{Fleet, Instant};
use quorlock_sim::{Flow, Master, Session, Slot};

use crate::votes::client::Site;
use crate::votes::{History, Seats, Setting};

/// The servers of the three seats, the replica of the last one, a spare server, and the replica of
/// the first one.
const SERVERS: usize = 6;
const FIRST: usize = 0;
const SEAT: usize = 2;
const REPLICA: usize = 3;
const SPARE: usize = 4;
const FIRSTS_REPLICA: usize = 5;

struct Server {
    master: Master,
    /// Another number after each restart: connections of earlier ones are gone.
    life: u64,
    is_up: bool,
    /// The server that it follows, and whether it hears it.
    follows: Option<usize>,
    is_cut_off: bool,
}

pub struct Model {
    now: Duration,
    servers: Vec<Server>,
    /// Which server is at each seat, and which one was at the last seat before.
    seats: [usize; 3],
    former: usize,
    snapshot: Option<Master>,
    restarts: u64,
}

pub struct Line {
    server: usize,
    life: u64,
    session: Session,
    replies: Vec<u8>,
    is_closed: bool,
}

const STARTED: Duration = Duration::from_secs(1_700_000_000);

impl Site for Model {
    type Line = Line;

    fn now(&self) -> Instant {
        Instant::ORIGIN + (self.now - STARTED)
    }

    fn idle(&mut self, at_most: Duration) {
        self.now += at_most;
        self.servers.iter_mut().for_each(|server| server.master.remove_ended(self.now));
    }

    fn open(&mut self, seat: usize, lags: bool) -> Option<Line> {
        let server = if lags && seat == SEAT { self.former } else { self.seats[seat] };
        let there = &mut self.servers[server];
        let session = there.is_up.then(|| there.master.accept())?;
        Some(Line { server, life: there.life, session, replies: Vec::new(), is_closed: false })
    }

    fn write(&mut self, line: &mut Line, bytes: &[u8]) {
        let there = &self.servers[line.server];
        if line.life != there.life || !there.is_up {
            line.is_closed = true;
            return;
        }
        line.session.feed(bytes);
        while let Some(command) = self.servers[line.server].master.next_command(&mut line.session).unwrap() {
            self.hear_replicas();
            let there = &mut self.servers[line.server].master;
            let flow = there.execute(&mut line.session, &command, self.now, &mut line.replies);
            there.take_pushes().filter(|push| push.session == line.session.id()).for_each(|push| {
                line.replies.extend_from_slice(&push.bytes);
            });
            line.is_closed |= flow == Flow::Close;
            self.replicate(line.server);
        }
    }

    fn read(&mut self, line: &mut Line) -> Option<Vec<u8>> {
        let there = &self.servers[line.server];
        let is_gone = line.is_closed || line.life != there.life || !there.is_up;
        let said = std::mem::take(&mut line.replies);
        if said.is_empty() && is_gone { None } else { Some(said) }
    }
}

impl Model {
    fn port(server: usize) -> u16 {
        7_000 + u16::try_from(server).unwrap()
    }

    /// What a server has written reaches those that follow it.
    fn replicate(&mut self, of: usize) {
        let Some(changes) = self.servers[of].master.take_changes() else { return };
        for server in 0..SERVERS {
            let there = &mut self.servers[server];
            if there.follows == Some(of) && !there.is_cut_off {
                there.master.apply(&changes);
                let offset = changes.offset();
                self.servers[of].master.hear_replica(Self::port(server), offset, self.now);
            }
        }
    }

    /// Replicas report each second, even if nothing was written.
    fn hear_replicas(&mut self) {
        for server in 0..SERVERS {
            let Some(of) = self.servers[server].follows.filter(|_| !self.servers[server].is_cut_off) else {
                continue;
            };
            self.servers[of].master.hear_replica(Self::port(server), 0, self.now);
        }
    }

    fn follow(&mut self, server: usize, of: usize) {
        self.leave(server);
        self.servers[of].master.attach(Self::port(server));
        let primary = self.servers[of].master.clone();
        self.servers[server].master.resync_from(&primary);
        (self.servers[server].follows, self.servers[server].is_cut_off) = (Some(of), false);
        let offset = primary.offset();
        self.servers[of].master.hear_replica(Self::port(server), offset, self.now);
    }

    fn leave(&mut self, server: usize) {
        if let Some(of) = self.servers[server].follows.take() {
            self.servers[of].master.detach(Self::port(server));
        }
    }

    fn promote(&mut self, server: usize) {
        self.leave(server);
        self.servers[server].master.promote();
    }

    /// A server restarts with this state, and its replica follows it again.
    fn restart(&mut self, server: usize, state: Option<Master>, keeps: bool) {
        self.restarts += 1;
        let replicas: Vec<_> =
            (0..SERVERS).filter(|other| self.servers[*other].follows == Some(server)).collect();
        replicas.iter().for_each(|replica| self.leave(*replica));
        let there = &mut self.servers[server];
        there.life += 1;
        there.master = state.unwrap_or_else(|| there.master.clone());
        there.master.detach_all();
        there.master.restart(100 + self.restarts, |_| keeps);
        replicas.into_iter().for_each(|replica| self.follow(replica, server));
    }

    fn command(&mut self, server: usize, words: &[&str]) {
        let mut session = self.servers[server].master.accept();
        let command = quorlock_sim::Command::new(words.iter().copied());
        let mut reply = Vec::new();
        let _ = self.servers[server].master.execute(&mut session, &command, self.now, &mut reply);
        assert!(!reply.starts_with(b"-"), "{words:?}: {}", reply.escape_ascii());
        self.replicate(server);
    }

    fn server(&self, seat: usize) -> usize {
        self.seats[seat]
    }

    fn take_seat(&mut self, server: usize) {
        self.former = self.seats[SEAT];
        self.seats[SEAT] = server;
    }

    fn stop(&mut self, server: usize) {
        self.servers[server].is_up = false;
        let replicas: Vec<_> =
            (0..SERVERS).filter(|other| self.servers[*other].follows == Some(server)).collect();
        replicas.into_iter().for_each(|replica| self.leave(replica));
    }

    /// The keys of the first seat's server, without its marker and counters.
    fn copies(&self) -> Vec<(Vec<u8>, Vec<u8>, Option<Duration>)> {
        let held = self.servers[FIRST].master.keys(self.now);
        let locks = held
            .filter(|held| !held.key.starts_with(b"quorlock:") || held.key.starts_with(b"quorlock:seat:"));
        locks.filter_map(|held| Some((held.key.to_vec(), held.value?.to_vec(), held.expires_at))).collect()
    }
}

impl Seats for Model {
    fn start(history: History, setting: Setting) -> Result<Self, String> {
        let server = |identity| Server {
            master: Master::new(identity),
            life: 0,
            is_up: true,
            follows: None,
            is_cut_off: false,
        };
        let servers = (0..SERVERS as u64).map(server).collect();
        let seats = if history.shares_a_server() { [0, 1, 0] } else { [0, 1, 2] };
        let mut model = Self { now: STARTED, servers, seats, former: SEAT, snapshot: None, restarts: 0 };
        if history == History::TwoAddressesWithoutInfo {
            model.servers[FIRST]
                .master
                .fail("INFO", Some("NOPERM this user has no permissions to run the 'info' command"));
        }
        if history == History::SlotMovedAway {
            for server in [SEAT, REPLICA, SPARE] {
                model.servers[server].master.set_slot(Slot::Owned("q".into()));
            }
        }
        if history.has_replica(setting) {
            model.follow(REPLICA, SEAT);
        }
        if setting == Setting::Replicas {
            model.follow(FIRSTS_REPLICA, FIRST);
        }
        Ok(model)
    }

    fn snapshot(&mut self) {
        self.snapshot = Some(self.servers[SEAT].master.clone());
    }

    fn cut_replica_off(&mut self) {
        self.servers[REPLICA].is_cut_off = true;
    }

    fn happens(&mut self, history: History, setting: Setting) {
        match history {
            History::Untouched | History::TwoAddresses | History::TwoAddressesWithoutInfo => {}
            History::RestartedWithItsData => self.restart(SEAT, None, true),
            History::RestartedEmpty => self.restart(SEAT, None, false),
            History::RestartedFromAnOlderSnapshot => {
                let snapshot = self.snapshot.take();
                self.restart(SEAT, snapshot, true);
            }
            History::Flushed | History::QuarantineOver => self.command(SEAT, &["FLUSHALL"]),
            History::KeysPutBackByHand => {
                self.command(SEAT, &["FLUSHALL"]);
                for (key, value, end) in self.copies() {
                    self.servers[SEAT].master.hold(0, &key, &value, end);
                }
                self.replicate(SEAT);
            }
            History::RebuiltFromAnother | History::RebuiltAlone => {
                self.follow(SEAT, FIRST);
                self.promote(SEAT);
                if setting == Setting::Replicas {
                    self.follow(REPLICA, SEAT);
                }
                if history == History::RebuiltAlone {
                    self.leave(REPLICA);
                }
            }
            // With declared replicas, one more would cost the first seat its vote.
            History::BecameAReplica if setting == Setting::Replicas => self.follow(SEAT, FIRSTS_REPLICA),
            History::BecameAReplica => self.follow(SEAT, FIRST),
            History::PromotedWithTheLastWrite | History::PromotedWithoutTheLastWrite => {
                self.stop(SEAT);
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
            }
            History::OtherFleetsMarker => self.set_marker("9999 7", ""),
            History::LaterVersionsMarker => self.set_marker("", " 1"),
            History::SlotMovedAway => {
                let state = self.servers[SEAT].master.clone();
                self.restart(SPARE, Some(state), true);
                self.servers[SPARE].master.set_slot(Slot::Owned("q".into()));
                self.servers[SEAT].master.set_slot(Slot::Elsewhere("127.0.0.1:1".into()));
                self.take_seat(SPARE);
            }
        }
        if setting == Setting::Replicas && !self.servers[self.seats[SEAT]].master.is_replica() {
            self.complete(history);
        }
    }

    fn keys(&mut self, seat: usize) -> Vec<String> {
        let keys = self.servers[self.seats[seat]].master.keys(self.now);
        keys.map(|held| String::from_utf8_lossy(held.key).into_owned()).collect()
    }

    fn set(&mut self, seat: usize, key: &str, value: &str) {
        self.command(self.server(seat), &["SET", key, value]);
    }
}

impl Model {
    /// The group is complete again, if the history does not say otherwise.
    fn complete(&mut self, history: History) {
        let primary = self.seats[SEAT];
        let is_followed = (0..SERVERS).any(|server| self.servers[server].follows == Some(primary));
        if !is_followed && history != History::RebuiltAlone {
            let spare = if primary == SPARE { REPLICA } else { SPARE };
            self.follow(spare, primary);
        }
    }

    /// Other numbers of the fleet, or more words.
    fn set_marker(&mut self, fleet: &str, more: &str) {
        let marker = self.servers[SEAT].master.value(0, Fleet::MARKER.as_bytes(), self.now).unwrap();
        let marker = String::from_utf8(marker.to_vec()).unwrap();
        let words: Vec<_> = marker.splitn(4, ' ').collect();
        let fleet = if fleet.is_empty() { words[3] } else { fleet };
        let text = format!("{} {} {} {fleet}{more}", words[0], words[1], words[2]);
        self.servers[SEAT].master.hold(0, Fleet::MARKER.as_bytes(), text.as_bytes(), None);
        self.replicate(SEAT);
    }
}
