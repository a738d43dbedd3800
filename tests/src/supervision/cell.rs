//! The cells: what runs, where its output goes, what happens, and under which user.

use std::fmt::{self, Display, Formatter};

use crate::random::Random;

/// What the command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// One process, which ends by itself.
    EndsByItself,
    /// One process, which ignores what asks it to end.
    IgnoresTerm,
    /// Its child goes on after it.
    ForksAndExits,
    /// The same, and the lock is kept for the child.
    ForksAndExitsWaitedFor,
    /// Its child is in another session.
    Setsid,
    /// The same, and the lock is kept for the child.
    SetsidWaitedFor,
    /// Its child is in the process group of `timeout`.
    Timeout,
    /// Its child is in a process group that a shell's job control made.
    SetM,
    /// It becomes another user.
    SetUserId,
    /// It stops itself.
    StopsItself,
}

/// Where standard output and standard error go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    /// A terminal, which is also standard input.
    Terminal,
    /// The same, stopped as with Ctrl-S.
    TerminalStopped,
    /// A pipe that is read.
    PipeRead,
    /// A pipe that is full, and that nobody reads.
    PipeFull,
    /// Nowhere: the descriptors are closed.
    Closed,
    /// A device without space.
    DevFull,
}

/// What happens while the job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The key is deleted on all masters.
    KeyLost,
    /// All masters are killed.
    MastersGone,
    /// The lock has been held for as long as `--max-hold` allows.
    MaxHold,
    /// `quorlock` gets SIGTERM.
    Term,
    /// `quorlock` gets SIGINT twice.
    IntTwice,
    /// `quorlock` gets SIGHUP.
    Hup,
    /// `quorlock` gets SIGALRM.
    Alrm,
    /// `quorlock` gets SIGKILL.
    Kill,
    /// `quorlock` is stopped for longer than its lock, and continued.
    StopAndCont,
}

/// Who `quorlock` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// A user without rights over others.
    User,
    /// The first process of a PID namespace, with all rights in it.
    First,
}

const JOBS: [(Job, &str); 10] = [
    (Job::EndsByItself, "ends by itself"),
    (Job::IgnoresTerm, "ignores TERM"),
    (Job::ForksAndExits, "forks and exits"),
    (Job::ForksAndExitsWaitedFor, "forks and exits, waited for"),
    (Job::Setsid, "setsid"),
    (Job::SetsidWaitedFor, "setsid, waited for"),
    (Job::Timeout, "timeout"),
    (Job::SetM, "set -m"),
    (Job::SetUserId, "setuid"),
    (Job::StopsItself, "stops itself"),
];
const STDIO: [(Stdio, &str); 6] = [
    (Stdio::Terminal, "terminal"),
    (Stdio::TerminalStopped, "terminal stopped"),
    (Stdio::PipeRead, "pipe read"),
    (Stdio::PipeFull, "pipe full"),
    (Stdio::Closed, "closed"),
    (Stdio::DevFull, "/dev/full"),
];
const EVENTS: [(Event, &str); 9] = [
    (Event::KeyLost, "key lost"),
    (Event::MastersGone, "masters gone"),
    (Event::MaxHold, "max-hold"),
    (Event::Term, "TERM"),
    (Event::IntTwice, "INT twice"),
    (Event::Hup, "HUP"),
    (Event::Alrm, "ALRM"),
    (Event::Kill, "KILL"),
    (Event::StopAndCont, "STOP, CONT"),
];
const WHO: [(Who, &str); 2] = [(Who::User, "user"), (Who::First, "process 1")];

fn name<T: PartialEq + Copy>(list: &[(T, &'static str)], wanted: T) -> &'static str {
    list.iter().find(|(value, _)| *value == wanted).map_or("", |(_, name)| name)
}

/// One cell of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// What the command does.
    pub job: Job,
    /// Where the output goes.
    pub stdio: Stdio,
    /// What happens.
    pub event: Event,
    /// Who `quorlock` is.
    pub who: Who,
}

impl Display for Cell {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { job, stdio, event, who } = *self;
        let (job, stdio) = (name(&JOBS, job), name(&STDIO, stdio));
        write!(formatter, "{job} | {stdio} | {} | {}", name(&EVENTS, event), name(&WHO, who))
    }
}

impl Cell {
    /// The whole table.
    pub fn all() -> Vec<Self> {
        let mut cells = Vec::new();
        for (job, _) in JOBS {
            for (stdio, _) in STDIO {
                for (event, _) in EVENTS {
                    cells.extend(WHO.map(|(who, _)| Self { job, stdio, event, who }));
                }
            }
        }
        cells
    }

    /// A part of the table, which the seed determines.
    pub fn sample(seed: u64, cells: usize) -> Vec<Self> {
        let mut random = Random::new(seed);
        let mut all = Self::all();
        (1..all.len()).rev().for_each(|place| all.swap(place, random.below(place + 1)));
        all.truncate(cells);
        all
    }

    /// Why something may work on after the validity of the lock in this cell, if it may.
    pub fn exception(self) -> Option<&'static str> {
        let Self { job, event, who, .. } = self;
        let is_left = matches!(job, Job::Setsid | Job::SetM | Job::Timeout);
        let asks = matches!(event, Event::Term | Event::IntTwice | Event::Hup | Event::Alrm);
        match (job, event) {
            (_, Event::StopAndCont) => Some("nothing supervises while quorlock is stopped"),
            (Job::ForksAndExits, _) => {
                Some("without --wait-for-children, what is left goes on without the lock")
            }
            (_, Event::Kill) if who == Who::First => None,
            _ if is_left && asks => Some("the command ended and left it, without --wait-for-children"),
            (Job::EndsByItself | Job::IgnoresTerm | Job::StopsItself, Event::Kill) => None,
            (_, Event::Kill) => Some("the death signal reaches the command only, and no setuid program"),
            (Job::SetUserId, _) if who == Who::User && !asks => {
                Some("the system refuses signals to another user")
            }
            _ => None,
        }
    }

    /// Whether the exit code must be that of a lost lock.
    pub(super) fn is_loss(self) -> bool {
        matches!(self.event, Event::KeyLost | Event::MastersGone | Event::MaxHold)
            && self.job != Job::ForksAndExits
    }
}
