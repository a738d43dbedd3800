//! Models of masters at three seats, in virtual time.

use std::time::Duration;

use quorlock_core::Instant;
use quorlock_sim::{Flow, Master, Session, Slot};

use crate::votes::client::Site;
use crate::votes::{FIRST, FIRSTS_REPLICA, History, Kept, REPLICA, SEAT, SERVERS, SPARE, Servers, Setting};

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

    fn leave(&mut self, server: usize) {
        if let Some(of) = self.servers[server].follows.take() {
            self.servers[of].master.detach(Self::port(server));
        }
    }

    /// The servers that follow this one are left alone.
    fn dismiss(&mut self, server: usize) -> Vec<usize> {
        let replicas: Vec<_> =
            (0..SERVERS).filter(|other| self.servers[*other].follows == Some(server)).collect();
        replicas.iter().for_each(|replica| self.leave(*replica));
        replicas
    }

    /// A server restarts with this state, and its replicas follow it again.
    fn restart_with(&mut self, server: usize, state: Master, keeps: bool) {
        self.restarts += 1;
        let replicas = self.dismiss(server);
        let there = &mut self.servers[server];
        there.life += 1;
        there.master = state;
        there.master.detach_all();
        there.master.restart(100 + self.restarts, |_| keeps);
        replicas.into_iter().for_each(|replica| self.follow(replica, server));
    }
}

impl Servers for Model {
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

    fn at_the_seat(&self) -> usize {
        self.seats[SEAT]
    }

    fn take_seat(&mut self, server: usize) {
        (self.former, self.seats[SEAT]) = (self.seats[SEAT], server);
    }

    fn restart(&mut self, kept: Kept) {
        let present = self.servers[SEAT].master.clone();
        match kept {
            Kept::Data => self.restart_with(SEAT, present, true),
            Kept::Snapshot => {
                let snapshot = self.snapshot.take().unwrap();
                self.restart_with(SEAT, snapshot, true);
            }
            Kept::Nothing => self.restart_with(SEAT, present, false),
        }
    }

    fn stop(&mut self, server: usize) {
        self.servers[server].is_up = false;
        self.dismiss(server);
    }

    fn promote(&mut self, server: usize) {
        self.leave(server);
        self.servers[server].master.promote();
    }

    fn follow(&mut self, server: usize, of: usize) {
        self.leave(server);
        self.servers[of].master.attach(Self::port(server));
        let primary = self.servers[of].master.clone();
        self.servers[server].master.resync_from(&primary);
        (self.servers[server].follows, self.servers[server].is_cut_off) = (Some(of), false);
        let offset = primary.offset();
        self.servers[of].master.hear_replica(Self::port(server), offset, self.now);
        self.dismiss(server).into_iter().for_each(|replica| self.follow(replica, server));
    }

    fn await_replica(&mut self, server: usize) {
        let replicas = self.servers.iter().filter(|other| other.follows == Some(server)).count();
        assert_eq!(replicas, 1, "replicas of server {server}");
    }

    fn move_slot(&mut self) {
        let state = self.servers[SEAT].master.clone();
        self.restart_with(SPARE, state, true);
        self.servers[SPARE].master.set_slot(Slot::Owned("q".into()));
        self.servers[SEAT].master.set_slot(Slot::Elsewhere("127.0.0.1:1".into()));
        self.take_seat(SPARE);
    }

    fn keys(&mut self, server: usize) -> Vec<String> {
        let keys = self.servers[server].master.keys(self.now);
        keys.map(|held| String::from_utf8_lossy(held.key).into_owned()).collect()
    }

    fn value(&mut self, server: usize, key: &str) -> String {
        let value = self.servers[server].master.value(0, key.as_bytes(), self.now).unwrap();
        String::from_utf8(value.to_vec()).unwrap()
    }

    fn copy(&mut self, key: &str) {
        let mut keys = self.servers[FIRST].master.keys(self.now);
        let found = keys.find(|held| held.key == key.as_bytes()).unwrap();
        let (value, end) = (found.value.map(<[u8]>::to_vec), found.expires_at);
        drop(keys);
        // A key of another type than a string stays away, as with `GET` and `SET`.
        if let Some(value) = value {
            self.servers[SEAT].master.hold(0, key.as_bytes(), &value, end);
            self.replicate(SEAT);
        }
    }

    fn command(&mut self, server: usize, words: &[&str]) {
        let mut session = self.servers[server].master.accept();
        let command = quorlock_sim::Command::new(words.iter().copied());
        let mut reply = Vec::new();
        let _ = self.servers[server].master.execute(&mut session, &command, self.now, &mut reply);
        assert!(!reply.starts_with(b"-"), "{words:?}: {}", reply.escape_ascii());
        self.replicate(server);
    }
}
