//! Each script with each state of its keys that it has a rule for, however rarely random commands
//! reach it.
//!
//! The keys are made, the script is called and its keys are read in one millisecond of the server's
//! clock, or else once more: so there is only one answer that the model may give.

use std::time::Duration;

use quorlock_sim::{Command, Flow, Master, Session};
use quorlock_tests::RedisServer;

use crate::commands::{Arguments, arguments, encode};
use crate::compare::fits;
use crate::found_calls::{Call, calls};
use crate::found_keys::made;
use crate::model::Ends;
use crate::real::{Control, Line};
use crate::run::shown;
use crate::scripts::Site;
use crate::versions::Version;
use quorlock_tests::Random;

/// What the server can do while the script runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Able {
    /// Everything.
    Fully,
    /// It has no memory left.
    WithoutMemory,
    /// It is a replica, without a master.
    AsReplica,
}

struct Pair {
    control: Control,
    line: Line,
    master: Master,
    session: Session,
    random: Random,
    version: Version,
    /// The server's clock when it was last read.
    now: u64,
}

/// Compares all calls, and returns how many they are.
///
/// # Panics
/// At the first reply that differs.
pub(crate) fn compare() -> usize {
    let server = RedisServer::start();
    let mut control = Control::of(&server);
    let version = Version::of(&control.command(&["INFO", "server"]));
    let mut master = Master::new(1);
    master.set_replication_id(&control.replication_id());
    let (session, now) = (master.accept(), control.time());
    let line = Line::connect(server.address());
    let mut pair = Pair { control, line, master, session, random: Random::new(1), version, now };
    let calls = calls();
    for call in &calls {
        let ends_early = version.ends() == Ends::MaybeEarly;
        let is_left_out = ends_early && call.found.is_ending()
            || call.able == Able::AsReplica && !version.hides_ended_keys_on_replicas();
        while !is_left_out && !pair.compare(call) {}
    }
    calls.len()
}

impl Pair {
    /// Whether it was compared: else the server's clock went on in the middle.
    fn compare(&mut self, call: &Call) -> bool {
        let site = Site { replication_id: self.master.replication_id().to_owned(), now: self.now };
        let mut before = vec![arguments(&[b"FLUSHALL"])];
        before.extend(made(&call.found, &site));
        // A waiter may change the life of another place.
        let keys = [call.keys.as_slice(), &[b"place 2".to_vec()]].concat();
        let mut behind = vec![call.words.clone(), [&[b"MGET".to_vec()], keys.as_slice()].concat()];
        behind.extend(keys.iter().map(|key| arguments(&[b"PTTL", key])));
        behind.push(arguments(&[b"ZRANGE", b"queue", b"0", b"-1", b"WITHSCORES"]));
        if call.able == Able::WithoutMemory {
            let limit = |bytes: &[u8]| arguments(&[b"CONFIG", b"SET", b"maxmemory", bytes]);
            behind.insert(0, limit(b"1"));
            behind.insert(2, limit(b"0"));
        }
        match call.able {
            Able::Fully | Able::WithoutMemory if call.found.is_ending() => {
                // The next millisecond is the last one of a key that was made to live for one. The
                // ends of entries are made from the last look at the clock.
                let made_at = self.now;
                if self.ask(&before, call) != Some(made_at) {
                    return false;
                }
                while self.control.time() <= made_at {}
                self.ask(&behind, call) == Some(made_at + 1)
            }
            Able::Fully | Able::WithoutMemory => self.ask(&[before, behind].concat(), call).is_some(),
            Able::AsReplica => {
                if self.ask(&before, call).is_none() {
                    return false;
                }
                self.set_replica(true);
                let is_compared = self.ask(&behind, call).is_some();
                self.set_replica(false);
                is_compared
            }
        }
    }

    fn set_replica(&mut self, is_replica: bool) {
        let words = if is_replica { ["REPLICAOF", "127.0.0.1", "1"] } else { ["REPLICAOF", "NO", "ONE"] };
        assert!(self.control.command(&words).text().is_some());
        self.master.set_replica(is_replica);
        self.master.set_replication_id(&self.control.replication_id());
    }

    /// Sends these commands to both, and returns the millisecond in which the server executed them,
    /// if it was only one.
    fn ask(&mut self, commands: &[Arguments], call: &Call) -> Option<u64> {
        let time = arguments(&[b"TIME"]);
        let all = std::iter::once(&time).chain(commands).chain([&time]);
        let sent: Vec<_> = all.map(|words| encode(&mut self.random, words, false)).collect();
        self.line.send(&sent.concat());
        let real = self.line.receive(sent.len());
        let [before, real @ .., behind] = real.as_slice() else { panic!("the server answers") };
        let millis = |reply: &[u8]| {
            let parts = crate::frames::parts(reply);
            let part = |place: usize| std::str::from_utf8(&parts[place]).unwrap().parse::<u64>().unwrap();
            part(1) * 1000 + part(2) / 1000
        };
        let at = millis(before);
        self.now = millis(behind);
        let is_one = at == self.now;
        for (words, real) in commands.iter().zip(real) {
            let command = Command::new(words.iter().cloned());
            let mut model = Vec::new();
            let flow =
                self.master.execute(&mut self.session, &command, Duration::from_millis(at), &mut model);
            assert_eq!(flow, Flow::Open);
            if is_one && !fits(self.version, &command, &model, real) {
                let story: String =
                    commands.iter().map(|words| shown(&Command::new(words.iter().cloned())) + "\n").collect();
                panic!(
                    "on {} at {at}, {:?}, {}:\n{story}the reply to {} is\n    {}\nand the model says\n    {}",
                    self.version,
                    call.able,
                    call.name,
                    shown(&command),
                    real.escape_ascii(),
                    model.escape_ascii()
                );
            }
        }
        is_one.then_some(at)
    }
}
