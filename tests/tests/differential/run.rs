//! One run: batches of commands to both, on several connections.

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use quorlock_sim::{Command, Flow, Master, Session};
use quorlock_tests::RedisServer;

use crate::commands::{command, encode, garbage};
use crate::compare::fits;
use crate::frames;
use crate::kinds::{KINDS, members, story};
use crate::model::{Reply, States, differs};
use crate::queue::queue_story;
use crate::real::{Control, Line};
use crate::scripts::{Site, marker};
use crate::versions::Version;
use quorlock_tests::Random;

const LINES: usize = 4;
/// The largest batch. A larger one takes the server longer, and each further millisecond multiplies
/// the possible outcomes.
const LONGEST_BATCH: usize = 20;
/// How many commands a failure shows.
const SHOWN: usize = 40;
/// A batch during which the server's clock advanced by more is not compared, because there would be
/// too many possible outcomes.
const WIDEST_SPAN_MS: u64 = 3;

/// A server disconnects clients without a password once more than 1 KiB of replies
/// waits for them, which depends on how fast they read.
const MOST_UNTRUSTED_BYTES: usize = 1_000;
const NOAUTH: &[u8] = b"-NOAUTH";

/// The counts of a run without differences.
pub(crate) struct Report {
    seed: u64,
    version: Version,
    compared: u64,
    batches: u64,
    spread: u64,
    most_outcomes: usize,
    lost: u64,
    /// How often each script of several targets, of seats and of queues succeeded.
    done: [u64; KINDS.len()],
    took: Duration,
}

/// A command that was compared.
struct Told {
    line: usize,
    command: String,
    real: Vec<u8>,
    start: u64,
    end: u64,
}

struct Run {
    address: SocketAddr,
    control: Control,
    master: Master,
    lines: Vec<Option<(Line, Session)>>,
    random: Random,
    told: VecDeque<Told>,
    report: Report,
}

/// Compares at least this many commands.
///
/// # Panics
/// At the first reply that differs, with the commands that led to it.
pub(crate) fn compare(seed: u64, commands: u64) -> Report {
    let server = RedisServer::start();
    let mut control = Control::of(&server);
    let version = Version::of(&control.command(&["INFO", "server"]));
    let report = Report {
        seed,
        version,
        compared: 0,
        batches: 0,
        spread: 0,
        most_outcomes: 1,
        lost: 0,
        done: [0; KINDS.len()],
        took: Duration::ZERO,
    };
    let mut master = Master::new(seed);
    master.set_replication_id(&control.replication_id());
    // The model's uptime counts from its first command.
    let start = Duration::from_millis(control.time());
    let _ = master.execute(&mut Session::new(), &Command::new(["PING"]), start, &mut Vec::new());
    let lines = (0..LINES).map(|_| None).collect();
    let (address, random, told) = (server.address(), Random::new(seed), VecDeque::new());
    let mut run = Run { address, control, master, lines, random, told, report };
    let began = Instant::now();
    while run.report.compared < commands {
        run.happen();
        run.batch();
    }
    run.report.took = began.elapsed();
    let is_rare = |done: &u64| *done < commands / 2_000;
    assert!(!run.report.done.iter().any(is_rare), "a script hardly ever did anything: {}", run.report);
    run.report
}

impl Run {
    /// Makes things happen that no command causes.
    fn happen(&mut self) {
        if self.random.one_in(30) {
            thread::sleep(Duration::from_millis(self.random.number() % 12));
        }
        if self.random.one_in(100) && self.report.version.hides_ended_keys_on_replicas() {
            self.set_replica(true);
        } else if self.random.one_in(10) {
            self.set_replica(false);
        }
        if self.random.one_in(50) {
            let survey = self.control.survey();
            if let Some(difference) = differs(&self.master, &survey, self.report.version.ends()) {
                self.fail(&difference);
            }
        }
    }

    /// Makes the server a replica without a master, which refuses writes and still answers, or a
    /// master again.
    fn set_replica(&mut self, is_replica: bool) {
        let words = if is_replica { ["REPLICAOF", "127.0.0.1", "1"] } else { ["REPLICAOF", "NO", "ONE"] };
        assert!(self.control.command(&words).text().is_some());
        self.master.set_replica(is_replica);
        self.master.set_replication_id(&self.control.replication_id());
    }

    fn batch(&mut self) {
        let number = self.random.below(LINES);
        if self.random.one_in(40) {
            self.lines[number] = None;
        }
        let (mut line, session) = match self.lines[number].take() {
            Some(line) => line,
            None => (Line::connect(self.address), self.master.accept()),
        };
        let (pieces, replies, flow) = self.rehearsed_pieces(&session);

        let start = self.control.time();
        for piece in &pieces {
            line.send(piece);
        }
        let real = line.receive(replies);
        let is_closed = flow == Flow::Open || line.is_closed();
        let end = self.control.time();
        self.report.batches += 1;
        if !is_closed {
            let (sent, heard) = (pieces.concat(), real.concat());
            self.fail(&format!(
                "the model closed connection {number} after {replies} replies, and the server did not: {}\n{}",
                sent.escape_ascii(),
                heard.escape_ascii()
            ));
        }
        if end < start || end - start > WIDEST_SPAN_MS {
            self.lose(session, &pieces.concat(), (line, number, flow));
            return;
        }
        self.report.spread += u64::from(start != end);
        let mut states = States::new(self.master.clone(), session, start);
        let mut real = real.into_iter();
        for piece in &pieces {
            states.feed(piece);
            if self.step(&mut states, &mut real, (number, start, end)) == Flow::Close {
                break;
            }
        }
        self.report.most_outcomes = self.report.most_outcomes.max(states.count());
        let (master, session) = match states.settle(self.report.version.ends(), || self.control.survey()) {
            Ok(settled) => settled,
            Err(differences) => self.fail(&format!("the model differs at every instant\n{differences}")),
        };
        self.master = master;
        self.lines[number] = (flow == Flow::Open).then_some((line, session));
    }

    /// Compares all commands that have arrived completely.
    fn step(
        &mut self,
        states: &mut States,
        real: &mut impl Iterator<Item = Vec<u8>>,
        (line, start, end): (usize, u64, u64),
    ) -> Flow {
        loop {
            let command = match states.next_command() {
                Ok(None) => return Flow::Open,
                Ok(Some(command)) => command,
                Err(error) => {
                    let mut bytes = Vec::new();
                    error.write(&mut bytes);
                    let real = real.next().unwrap_or_default();
                    let is_same = real == bytes;
                    self.tell(Told { line, command: "no command".to_owned(), real, start, end });
                    if !is_same {
                        self.differ(&[Reply { at: start, bytes }]);
                    }
                    return Flow::Close;
                }
            };
            let is_silent = is_http(command.name());
            let reply = if is_silent { Vec::new() } else { real.next().unwrap_or_default() };
            let version = self.report.version;
            let ends = version.ends();
            let outcome = states.execute(&command, end, ends, |model| fits(version, &command, model, &reply));
            self.report.compared += 1;
            if let Some(place) = KINDS.iter().position(|kind| *kind == command.kind()) {
                let is_done = reply.starts_with(b"*3\r\n$5\r\nseats")
                    || reply.first() == Some(&b':') && reply != b":0\r\n";
                self.report.done[place] += u64::from(is_done);
            }
            self.tell(Told { line, command: shown(&command), real: reply, start, end });
            match outcome {
                Ok(Flow::Open) => {}
                Ok(Flow::Close) => return Flow::Close,
                Err(replies) => self.differ(&replies),
            }
        }
    }

    /// The bytes of a batch, in the pieces in which they are written.
    fn pieces(&mut self) -> Vec<Vec<u8>> {
        let (version, mut bytes) = (self.report.version, Vec::new());
        let replication_id = self.master.replication_id().to_owned();
        let site = Site { replication_id, now: self.control.time() };
        if self.random.one_in(3) {
            bytes.extend_from_slice(b"*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n");
        }
        for _ in 0..=self.random.below(LONGEST_BATCH) {
            let random = &mut self.random;
            let commands = match random.below(25) {
                0 => vec![marker(random, &site)],
                1 => vec![members(random, &site)],
                2 => story(random),
                3 => queue_story(random),
                _ => vec![command(random)],
            };
            for arguments in commands.iter().filter(|arguments| !version.leaves_out(arguments)) {
                bytes.extend(encode(&mut self.random, arguments, version.reads_lines_alike()));
            }
        }
        if self.random.one_in(15) {
            let garbage = garbage(&mut self.random);
            let is_http = is_http(garbage);
            let is_alike =
                version.reads_lines_alike() || (garbage.starts_with(b"*") && !garbage.ends_with(b"xx"));
            if !is_http && is_alike {
                bytes.extend_from_slice(garbage);
            } else if is_http && version.always_hangs_up_on_browsers() {
                // The server drops replies that it has not sent yet, and which ones these are
                // depends on how the bytes arrived.
                return vec![garbage.to_vec()];
            }
        }
        let mut pieces = Vec::new();
        if self.random.one_in(3) {
            for _ in 0..self.random.below(5) {
                let rest = bytes.split_off(self.random.below(bytes.len() + 1));
                pieces.push(std::mem::replace(&mut bytes, rest));
            }
        }
        pieces.push(bytes);
        pieces
    }

    /// A batch with the number of its replies, and whether the connection stays: neither depends on
    /// the time.
    fn rehearsed_pieces(&mut self, session: &Session) -> (Vec<Vec<u8>>, usize, Flow) {
        loop {
            let pieces = self.pieces();
            let (mut master, mut session, mut replies) = (self.master.clone(), session.clone(), Vec::new());
            let flow = master.serve(&mut session, &pieces.concat(), Duration::ZERO, &mut replies);
            let is_untrusted = replies.windows(NOAUTH.len()).any(|window| window == NOAUTH);
            if !is_untrusted || replies.len() < MOST_UNTRUSTED_BYTES {
                return (pieces, frames::count(&replies), flow);
            }
        }
    }

    /// Continues without a comparison: the states of connections are known, but not the keys.
    fn lose(&mut self, mut session: Session, bytes: &[u8], (line, number, flow): (Line, usize, Flow)) {
        self.report.lost += 1;
        let _ = self.master.serve(
            &mut session,
            bytes,
            Duration::from_millis(self.control.time()),
            &mut Vec::new(),
        );
        self.set_replica(false);
        assert!(self.control.command(&["FLUSHALL"]).is_ok());
        self.master.remove_all();
        self.lines[number] = (flow == Flow::Open).then_some((line, session));
    }

    fn tell(&mut self, told: Told) {
        if self.told.len() == SHOWN {
            self.told.pop_front();
        }
        self.told.push_back(told);
    }

    fn differ(&self, model: &[Reply]) -> ! {
        let mut text = "the replies to the last command differ; the model would say".to_owned();
        for Reply { at, bytes } in model {
            let _ = write!(text, "\n    at {at}: {}", bytes.escape_ascii());
        }
        self.fail(&text);
    }

    fn fail(&self, what: &str) -> ! {
        let mut story = String::new();
        for Told { line, command, real, start, end } in &self.told {
            let _ = writeln!(story, "{line} [{start}..{end}] {command}\n        {}", real.escape_ascii());
        }
        panic!("after these commands to {}\n{story}{what}\n{}", self.report.version, self.report);
    }
}

/// A request that a browser was tricked into sending ends the connection without a reply.
fn is_http(bytes: &[u8]) -> bool {
    let bytes = bytes.to_ascii_lowercase();
    bytes.starts_with(b"post") || bytes.starts_with(b"host:")
}

pub(crate) fn shown(command: &Command) -> String {
    let script = command.kind().script().map(|(text, _)| text.as_bytes());
    let words = command.arguments().iter().map(|argument| {
        if Some(argument.as_slice()) == script {
            return format!("<text of {}>", command.kind());
        }
        format!("\"{}\"", argument.escape_ascii())
    });
    let note = command.kind().script().map(|_| format!("  ({})", command.kind()));
    words.collect::<Vec<_>>().join(" ") + &note.unwrap_or_default()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, version, compared, batches, spread, most_outcomes, lost, done, took } = self;
        write!(
            f,
            "seed {seed} on {version}: {compared} commands compared in {batches} batches and {took:.1?}; in {spread} \
             batches the clock went on, with at most {most_outcomes} outcomes to choose from, and {lost} took too long; \
             scripts of several targets and of seats did something {done:?} times"
        )
    }
}
