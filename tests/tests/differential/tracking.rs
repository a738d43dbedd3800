//! Client tracking: several connections, a command on one of them at a time, and the pushes to all
//! of them.
//!
//! After each command every connection sends an ECHO: all pushes of the command arrive before its
//! reply. The server deletes expired keys only if a client reads them, except at moments in which
//! the test allows it to delete them by itself.

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use quorlock_sim::{Command, Flow, Master, Session};
use quorlock_tests::{Random, RedisServer, ServerOptions};

use crate::commands::{Arguments, arguments, command, encode};
use crate::compare::fits;
use crate::kinds::{members, story};
use crate::model::{each_pace, looked_at_again};
use crate::queue::{queue_story, turns};
use crate::real::{Control, Line};
use crate::run::shown;
use crate::scripts::{Site, marker};
use crate::versions::Version;

const LINES: usize = 3;
/// If there are more possible outcomes, the run restarts from an empty server.
const MOST_OUTCOMES: usize = 60;
const SHOWN: usize = 30;
/// How often waiters pass their turn on. One of them would do, if the machine is never too busy.
const TURNS: usize = 3;
/// A command during which the server's clock advanced by more is not compared, because there would
/// be too many possible outcomes.
const WIDEST_SPAN_MS: u64 = 4;
/// After this time the server has checked all keys twice.
const ROUNDS: Duration = Duration::from_millis(250);

/// A possible state of the model, with the earliest millisecond of the server's clock for it.
#[derive(Clone)]
struct State {
    master: Master,
    sessions: Vec<Session>,
    at: u64,
}

/// The pushes to each connection, frame by frame.
type Heard = Vec<Vec<Vec<u8>>>;

pub(crate) struct Report {
    seed: u64,
    version: Version,
    compared: u64,
    pushes: u64,
    rounds: u64,
    lost: u64,
    took: Duration,
}

struct Run {
    control: Control,
    lines: Vec<Line>,
    states: Vec<State>,
    random: Random,
    /// The steps of one claim, the last one first.
    story: Vec<Arguments>,
    echoes: u64,
    told: VecDeque<String>,
    report: Report,
}

/// Compares this many commands.
///
/// # Panics
/// When a connection gets other pushes than the model sends, with the commands that led to it.
pub(crate) fn compare(seed: u64, commands: u64) -> Report {
    let version = Version::of(&Control::of(&RedisServer::start()).command(&["INFO", "server"]));
    let options = ServerOptions::new();
    let options = if version.asks_for_debug() { options.config("enable-debug-command yes") } else { options };
    let server = options.start();
    let mut control = Control::of(&server);
    assert!(control.command(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]).is_ok());
    let mut master = Master::new(seed);
    master.set_replication_id(&control.replication_id());
    master.set_tracks_scripts(version.tracks_scripts());
    let sessions = (0..LINES).map(|_| master.accept()).collect();
    let states = vec![State { master, sessions, at: control.time() }];
    let lines = (0..LINES).map(|_| Line::connect(server.address())).collect();
    let report = Report { seed, version, compared: 0, pushes: 0, rounds: 0, lost: 0, took: Duration::ZERO };
    let (random, told) = (Random::new(seed), VecDeque::new());
    let mut run = Run { control, lines, states, random, story: Vec::new(), echoes: 0, told, report };
    let began = Instant::now();
    for line in 0..LINES {
        run.execute(line, &arguments(&[b"HELLO", b"3"]));
        // One of the connections is notified of its own changes.
        let tracking = arguments(&[b"CLIENT", b"TRACKING", b"ON", b"NOLOOP"]);
        run.execute(line, if line == 0 { &tracking[..3] } else { &tracking });
    }
    for _ in 0..TURNS {
        run.start_anew();
        let before = (run.report.pushes, run.report.lost);
        for (line, arguments) in turns() {
            run.execute(1 + line, &arguments);
        }
        let is_told = (run.report.pushes, run.report.lost) > before;
        assert!(is_told, "nobody was told: {}", run.report);
    }
    while run.report.compared < commands {
        run.step();
    }
    assert!(run.report.pushes > commands / 20, "hardly anything was told: {}", run.report);
    run.report.took = began.elapsed();
    run.report
}

impl Run {
    fn step(&mut self) {
        if self.random.one_in(40) {
            thread::sleep(Duration::from_millis(self.random.number() % 25));
        }
        if self.random.one_in(800) {
            self.let_it_come_by();
            self.start_anew();
        }
        if self.states.len() > MOST_OUTCOMES {
            self.report.lost += 1;
            self.start_anew();
        }
        let line = self.random.below(LINES);
        if self.random.one_in(30) {
            let make = if self.random.one_in(3) { queue_story } else { story };
            self.story = make(&mut self.random);
        }
        let arguments = self.story.pop().unwrap_or_else(|| self.arguments());
        let version = self.report.version;
        if !version.leaves_out(&arguments) && !version.tells_otherwise(&arguments) {
            self.execute(line, &arguments);
        }
    }

    fn arguments(&mut self) -> Arguments {
        let random = &mut self.random;
        match random.below(60) {
            0 => {
                let word = random.of(&[&b"ON"[..], b"ON", b"on", b"OFF", b"x"]);
                let mut tracking = arguments(&[b"CLIENT", b"TRACKING", word]);
                for _ in 0..random.below(3) {
                    tracking.push(random.of(&[&b"NOLOOP"[..], b"NOLOOP", b"noloop", b"x"]).to_vec());
                }
                tracking
            }
            1 => arguments(&[b"HELLO", random.of(&[&b"3"[..], b"3", b"3", b"2"])]),
            2 | 3 => {
                let replication_id = self.states[0].master.replication_id().to_owned();
                let site = Site { replication_id, now: self.control.time() };
                if random.one_in(2) { marker(random, &site) } else { members(random, &site) }
            }
            // Some keys that have changed in the first database are read in the other one.
            4 => arguments(&[b"SELECT", random.of(&[&b"0"[..], b"0", b"1"])]),
            _ => loop {
                let command = command(random);
                let name = command[0].to_ascii_uppercase();
                if ![&b"AUTH"[..], b"HELLO", b"CONFIG", b"SELECT", b""].contains(&name.as_slice()) {
                    break command;
                }
            },
        }
    }

    /// Executes one command on this connection, and compares the result with the model's at every
    /// instant at which the server may have executed the command.
    fn execute(&mut self, line: usize, arguments: &[Vec<u8>]) {
        let command = Command::new(arguments.to_vec());
        let bytes = encode(&mut self.random, arguments, false);
        let start = self.control.time();
        self.lines[line].send(&bytes);
        let real = self.listen(line);
        let end = self.control.time();
        self.report.compared += 1;
        self.report.pushes += real.iter().map(|frames| frames.len() as u64).sum::<u64>() - 1;
        self.tell(format!("{line} [{start}..{end}] {}\n{}", shown(&command), written(&real)));
        if end - start > WIDEST_SPAN_MS {
            self.lose(line, &command, end);
            return;
        }
        let (version, mut kept, mut others) = (self.report.version, Vec::<State>::new(), String::new());
        for before in std::mem::take(&mut self.states) {
            for at in before.at.max(start)..=end {
                each_pace(end - at, |steps| {
                    let mut state = State { at: at + steps.len() as u64, ..before.clone() };
                    let (model, readings) = state.execute(line, &command, (at, steps));
                    if same(version, (line, &command), &model, &real) {
                        let database = state.sessions[line].database();
                        for (at, mut master) in looked_at_again(&command, database, &state.master, at, end) {
                            // The pushes of the command include those for this key.
                            master.take_pushes().for_each(drop);
                            keep(&mut kept, State { master, sessions: state.sessions.clone(), at });
                        }
                        keep(&mut kept, state);
                    } else {
                        let _ = write!(others, "the model would say at {at}\n{}", written(&model));
                    }
                    readings
                });
            }
        }
        if kept.is_empty() {
            self.fail(&others);
        }
        self.states = kept;
    }

    /// Continues from an empty server without a comparison: the states of connections are known.
    fn lose(&mut self, line: usize, command: &Command, end: u64) {
        self.report.lost += 1;
        self.states.truncate(1);
        for state in &mut self.states {
            let _ = state.execute(line, command, (end, Vec::new()));
        }
        self.start_anew();
    }

    /// Every connection's reply to ECHO, this one's first, and everything before it.
    fn listen(&mut self, first: usize) -> Heard {
        let mut heard: Heard = vec![Vec::new(); LINES];
        for line in (0..LINES).map(|place| (first + place) % LINES) {
            self.echoes += 1;
            let text = format!("echo {}", self.echoes);
            let frame = format!("${}\r\n{text}\r\n", text.len());
            self.lines[line].send(format!("*2\r\n$4\r\nECHO\r\n{frame}").as_bytes());
            heard[line] = self.lines[line].receive_until(frame.as_bytes());
        }
        heard
    }

    /// Lets the server delete expired keys by itself for a while.
    fn let_it_come_by(&mut self) {
        let start = self.control.time();
        assert!(self.control.command(&["DEBUG", "SET-ACTIVE-EXPIRE", "1"]).is_ok());
        thread::sleep(ROUNDS);
        assert!(self.control.command(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]).is_ok());
        let mut real = self.listen(0);
        let end = self.control.time();
        self.report.rounds += 1;
        self.tell(format!("the server comes by [{start}..{end}]\n{}", written(&real)));
        // The order of these pushes depends on the server.
        real.iter_mut().for_each(|frames| frames.sort());
        let mut kept = Vec::new();
        for before in std::mem::take(&mut self.states) {
            for at in start..=end {
                let mut state = State { at, ..before.clone() };
                state.master.remove_ended(Duration::from_millis(at));
                let mut model = state.take_pushes();
                model.iter_mut().for_each(|frames| frames.sort());
                if model == real {
                    keep(&mut kept, state);
                }
            }
        }
        if kept.is_empty() {
            self.fail("at no instant the model would say so");
        }
        self.states = kept;
    }

    /// Another client flushes the server.
    fn start_anew(&mut self) {
        assert!(self.control.command(&["FLUSHALL"]).is_ok());
        let real = self.listen(0);
        self.tell(format!("another client empties the server\n{}", written(&real)));
        self.states.truncate(1);
        let state = &mut self.states[0];
        state.master.remove_all();
        if state.take_pushes() != real {
            self.fail("the model would say something else");
        }
    }

    fn tell(&mut self, told: String) {
        if self.told.len() == SHOWN {
            self.told.pop_front();
        }
        self.told.push_back(told);
    }

    fn fail(&self, what: &str) -> ! {
        let story: String = self.told.iter().map(String::as_str).collect();
        panic!("on {}\n{story}{what}\n{}", self.report.version, self.report);
    }
}

impl State {
    /// The pushes to all connections, and how often the command has read the clock.
    fn execute(&mut self, line: usize, command: &Command, (at, steps): (u64, Vec<usize>)) -> (Heard, usize) {
        self.master.set_script_steps(Some(steps));
        let mut reply = Vec::new();
        let now = Duration::from_millis(at);
        let flow = self.master.execute(&mut self.sessions[line], command, now, &mut reply);
        assert_eq!(flow, Flow::Open);
        let readings = self.master.script_readings();
        self.master.set_script_steps(None);
        let mut heard = self.take_pushes();
        heard[line].insert(0, reply);
        (heard, readings)
    }

    fn take_pushes(&mut self) -> Heard {
        let mut heard: Heard = vec![Vec::new(); LINES];
        for push in self.master.take_pushes() {
            let line = self.sessions.iter().position(|session| session.id() == push.session).unwrap();
            heard[line].push(push.bytes);
        }
        heard
    }
}

/// Keeps a new outcome, unless an equal one is already kept; of two equal ones, the earlier stays.
fn keep(kept: &mut Vec<State>, new: State) {
    let is_same = |state: &&mut State| state.master == new.master && state.sessions == new.sessions;
    match kept.iter_mut().find(is_same) {
        Some(state) => state.at = state.at.min(new.at),
        None => kept.push(new),
    }
}

/// The reply, if necessary in the model's wording, and every push unchanged.
fn same(version: Version, (line, command): (usize, &Command), model: &Heard, real: &Heard) -> bool {
    (0..LINES).all(|other| match (model[other].as_slice(), real[other].as_slice()) {
        ([reply, pushes @ ..], [real, heard @ ..]) if other == line => {
            fits(version, command, reply, real) && pushes == heard
        }
        (pushes, heard) => pushes == heard,
    })
}

fn written(heard: &Heard) -> String {
    let lines = heard.iter().enumerate().filter(|(_, frames)| !frames.is_empty());
    lines.map(|(line, frames)| format!("        {line}: {}\n", frames.concat().escape_ascii())).collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, version, compared, pushes, rounds, lost, took } = self;
        write!(
            f,
            "seed {seed} on {version}: {compared} commands compared in {took:.1?}, with {pushes} pushes; {rounds} times the \
             server came by, and {lost} times it took too long or there was too much to choose from"
        )
    }
}
