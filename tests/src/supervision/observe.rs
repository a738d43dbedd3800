//! One cell, from the start to its outcome.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::cell::{Cell, Event, Job, Who};
use super::stage::Stage;
use super::standard::Reader;
use crate::client::RawClient;
use crate::fleet::{Fleet, masters};
use crate::server::RedisServer;

/// The TTL of the locks. Larger: the table takes longer. Smaller: `quorlock` kills less than 100 ms
/// before the end, and a busy machine delays that for too long.
const TTL: Duration = Duration::from_secs(2);
const MASTERS: usize = 3;
const QUORUM: usize = 2;

/// How long the job runs before something happens: all that it starts has been started by then.
const BEFORE: Duration = Duration::from_millis(300);
/// How long a run is watched after that. A job that still holds its lock then is ended by force.
const AFTER: Duration = Duration::from_secs(5);
/// How long after it has been continued `quorlock` may take to end what it finds without a lock.
const AFTER_CONT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);
/// If two looks are farther apart than this, the machine is so busy that it may also have delayed
/// `quorlock` by more than the time for which it is prepared.
const LATE: Duration = Duration::from_millis(60);

/// What came of a cell.
#[derive(Debug)]
pub enum Outcome {
    /// This machine cannot make it, for this reason.
    NotRun(String),
    /// It was run.
    Run {
        /// What was observed, in one line.
        line: String,
        /// What was wrong, if anything.
        faults: Vec<String>,
        /// Whether the machine was too busy to tell.
        was_late: bool,
    },
}

/// Runs a cell.
pub fn run(cell: Cell, stage: &Stage) -> Outcome {
    let room = stage.room();
    let pipe = room.path().join("pipe");
    let mode = Mode::from_raw_mode(0o666);
    mknodat(CWD, &pipe, FileType::Fifo, mode, 0).expect("a pipe with a name");
    fs::set_permissions(&pipe, std::os::unix::fs::PermissionsExt::from_mode(0o666)).expect("it is ours");
    let masters = masters(MASTERS);
    let mut options =
        vec!["--json".to_owned(), "-v".to_owned(), "--ttl".to_owned(), format!("{}ms", TTL.as_millis())];
    options.extend(masters.urls().into_iter().flat_map(|url| ["-m".to_owned(), url]));
    if cell.event == Event::MaxHold {
        options.extend(["--max-hold".to_owned(), format!("{}ms", BEFORE.as_millis())]);
    }
    let words = match stage.words(cell, &options, &pipe) {
        Ok(words) => words,
        Err(reason) => return Outcome::NotRun(reason),
    };
    let (program, rest) = words.split_first().expect("a program");
    let mut command = Command::new(program);
    command.args(rest);
    let reader = match Reader::set(cell.stdio, &mut command) {
        Ok(reader) => reader,
        Err(reason) => return Outcome::NotRun(reason),
    };
    let work = Work::watch(&pipe);
    let child = command.spawn().unwrap_or_else(|error| panic!("{program} cannot be executed: {error}"));
    drop(command);
    let keys = masters.iter().map(|master| master.client().ok()).collect();
    let mut watched = Watched {
        cell,
        reader: &reader,
        begun: None,
        named: None,
        was_late: false,
        work,
        child,
        masters: &masters,
        keys,
        validity: None,
        ended: None,
        faults: Vec::new(),
        worked: None,
        held: None,
    };
    watched.watch_to_the_end();
    watched.outcome()
}

/// Whether anything of the command lives: the pipe has a writer.
struct Work {
    pipe: File,
    has_begun: bool,
}

impl Work {
    fn watch(pipe: &Path) -> Self {
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).expect("flags of open");
        let pipe = File::options().read(true).custom_flags(flags).open(pipe).expect("it has just been made");
        Self { pipe, has_begun: false }
    }

    fn goes_on(&mut self) -> bool {
        match self.pipe.read(&mut [0; 64]) {
            Ok(0) => false,
            Ok(_) => {
                self.has_begun = true;
                true
            }
            Err(error) => Errno::from_io_error(&error) == Some(Errno::AGAIN),
        }
    }
}

struct Watched<'a> {
    cell: Cell,
    reader: &'a Reader,
    /// When the job was seen to run.
    begun: Option<Instant>,
    /// When it was seen to be named as another user's.
    named: Option<Instant>,
    /// Whether a look came [`LATE`].
    was_late: bool,
    work: Work,
    child: Child,
    masters: &'a Fleet,
    keys: Vec<Option<RawClient>>,
    /// When the lock ends after the test has deleted its keys or killed its masters.
    validity: Option<Instant>,
    ended: Option<(Instant, ExitStatus)>,
    faults: Vec<String>,
    /// When anything of the command was last seen to live.
    worked: Option<Instant>,
    /// When the lock was last seen to be held.
    held: Option<Instant>,
}

impl Watched<'_> {
    fn watch_to_the_end(&mut self) {
        let limit = Instant::now() + Duration::from_secs(20);
        while !self.work.goes_on() && !self.work.has_begun {
            if Instant::now() > limit || self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                self.faults.push("the command was never started".to_owned());
                break;
            }
            thread::sleep(PAUSE);
        }
        self.begun = Some(Instant::now());
        self.look_until(Instant::now() + BEFORE);
        self.happen();
        self.look_until(Instant::now() + AFTER);
        self.end_by_force();
    }

    /// Looks until nothing is left, at most until this time.
    fn look_until(&mut self, end: Instant) {
        let mut last = Instant::now();
        while Instant::now() < end {
            self.was_late |= last.elapsed() > LATE;
            last = Instant::now();
            let works = self.work.goes_on();
            let now = Instant::now();
            if self.named.is_none() && self.is_named() {
                self.named = Some(now);
            }
            let is_held = self.is_held();
            if is_held {
                self.held = Some(now);
            }
            // Once the lock is over, what counts is whether anything lives after that look at it.
            if works && (is_held || self.work.goes_on()) {
                self.worked = Some(now);
                if !is_held && self.cell.exception().is_none() {
                    self.was_late |= last.elapsed() > LATE;
                    self.faults.push("it worked without the lock".to_owned());
                    return;
                }
            }
            if self.ended.is_none() {
                self.ended =
                    self.child.try_wait().expect("it is our child").map(|status| (Instant::now(), status));
            }
            if self.ended.is_some() && !works {
                return;
            }
            thread::sleep(PAUSE);
        }
    }

    /// Whether a process, and not only the program that was to be started, is said to be another
    /// user's.
    fn is_named(&self) -> bool {
        let is_expected = self.cell.job == Job::SetUserId && self.cell.who == Who::User;
        is_expected && self.reader.text().is_some_and(|text| text.contains("\"another_user\""))
    }

    fn is_held(&mut self) -> bool {
        match self.validity {
            Some(validity) => Instant::now() < validity,
            None => self.lives().iter().filter(|life| **life > Duration::ZERO).count() >= QUORUM,
        }
    }

    /// How long the key lives on each master.
    fn lives(&mut self) -> Vec<Duration> {
        let life = |client: &mut Option<RawClient>| {
            let reply = client.as_mut()?.try_command(&["PTTL", "job"]).ok()?;
            u64::try_from(reply.int()?).ok().map(Duration::from_millis)
        };
        self.keys.iter_mut().map(|client| life(client).unwrap_or_default()).collect()
    }

    fn happen(&mut self) {
        match self.cell.event {
            Event::KeyLost => self.lose(|master| {
                master.del("job");
            }),
            Event::MastersGone => self.lose(RedisServer::kill),
            // The option does it.
            Event::MaxHold => {}
            Event::Term => self.signal(Signal::TERM),
            Event::IntTwice => {
                self.signal(Signal::INT);
                thread::sleep(PAUSE);
                self.signal(Signal::INT);
            }
            Event::Hup => self.signal(Signal::HUP),
            Event::Alrm => self.signal(Signal::ALARM),
            Event::Kill => self.signal(Signal::KILL),
            Event::StopAndCont => {
                self.signal(Signal::STOP);
                self.look_until(Instant::now() + TTL + Duration::from_millis(200));
                self.signal(Signal::CONT);
                self.look_until(Instant::now() + AFTER_CONT);
                let refuses = self.cell.job == Job::SetUserId && self.cell.who == Who::User;
                if self.work.goes_on() && self.cell.job != Job::ForksAndExits && !refuses {
                    self.faults.push("it went on after quorlock had been continued".to_owned());
                }
            }
        }
    }

    /// Does this to one master after the other. A renewal that comes meanwhile counts: a master
    /// that has taken part in it is asked before its turn, unless it is the first one.
    fn lose(&mut self, lose: impl Fn(&RedisServer)) {
        for (place, master) in self.masters.iter().enumerate() {
            let now = Instant::now();
            let life = self.lives().get(place).copied().unwrap_or_default();
            self.validity = self.validity.max(Some(now + life));
            lose(master);
        }
    }

    /// Sends a signal to `quorlock`, wherever it is below the process that was started.
    fn signal(&self, signal: Signal) {
        let outer = Pid::from_child(&self.child);
        let id = if self.cell.who == Who::First { only_child(outer) } else { Some(outer) };
        if let Some(id) = id.filter(|_| self.ended.is_none()) {
            // It may have ended just now.
            let _ = kill_process(id, signal);
        }
    }

    /// Ends a run that would go on.
    fn end_by_force(&mut self) {
        self.signal(Signal::KILL);
        let limit = Instant::now() + Duration::from_secs(5);
        while self.work.goes_on() && Instant::now() < limit {
            thread::sleep(PAUSE);
        }
        let _ = self.child.kill();
        let status = self.child.wait().expect("it is our child");
        if self.ended.is_none() {
            self.ended = Some((Instant::now(), status));
        }
    }

    fn outcome(mut self) -> Outcome {
        let mut line = String::new();
        let status = self.ended.map(|(_, status)| status);
        let code = status.and_then(|status| status.code());
        let how = match (code, status.and_then(|status| status.signal())) {
            (Some(code), _) => format!("code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "no end".to_owned(),
        };
        let _ = match (self.worked, self.held.max(self.validity)) {
            (Some(worked), Some(held)) if worked > held => {
                write!(line, "{:+} ms", (worked - held).as_millis())
            }
            (Some(worked), Some(held)) => write!(line, "-{} ms", (held - worked).as_millis()),
            _ => write!(line, "no job"),
        };
        let keys = self.lives().iter().filter(|life| **life > Duration::ZERO).count();
        let _ = write!(line, ", {how}, keys {keys}");
        if let (Some(begun), Some(named)) = (self.begun, self.named) {
            let _ = write!(line, ", named after {} ms", (named - begun).as_millis());
        }
        if let Some(text) = self.reader.text() {
            let said = events(&text);
            let _ = write!(line, ", said {}", said.iter().cloned().collect::<Vec<_>>().join(" "));
            self.check_what_was_said(&said);
        }
        if let Some(exception) = self.cell.exception() {
            let _ = write!(line, " (may work on: {exception})");
        }
        if self.cell.is_loss() && code != Some(75) {
            self.faults.push(format!("a lost lock ended with {how}"));
        }
        Outcome::Run { line, faults: self.faults, was_late: self.was_late }
    }

    fn check_what_was_said(&mut self, said: &BTreeSet<String>) {
        let refuses = self.cell.job == Job::SetUserId && self.cell.who == Who::User;
        let mut expected = Vec::new();
        // It has a second to be said.
        if refuses && self.cell.event != Event::Kill {
            expected.push("another_user");
        }
        if refuses && self.cell.is_loss() {
            expected.push("not_ended");
        }
        if self.cell.job == Job::ForksAndExits {
            expected.push("left_behind");
        }
        let missing = expected.into_iter().filter(|event| !said.contains(*event));
        self.faults.extend(missing.map(|event| format!("{event} was not said")));
    }
}

/// The names of the events in lines of JSON.
fn events(text: &str) -> BTreeSet<String> {
    let name = |line: &str| Some(line.split_once("{\"event\":\"")?.1.split_once('"')?.0.to_owned());
    text.lines().filter_map(name).collect()
}

/// The process that `unshare` waits for.
fn only_child(id: Pid) -> Option<Pid> {
    let id = id.as_raw_pid();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
    Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
}
