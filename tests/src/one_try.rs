//! How `quorlock run -n` ends in a new process while another client holds the lock, or while votes
//! are split so that no client has a quorum.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::fleet::{Fleet, masters};
use crate::server::RedisServer;

/// The name of the lock.
const JOB: &str = "job";

/// The holders when the runs begin. In every case the answer is "held by another", which is exit
/// code 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The name of the case.
    pub name: &'static str,
    masters: usize,
    /// Masters with another client's key, from the first one on.
    foreign: usize,
    /// Masters that are dead, from the last one on.
    dead: usize,
}

impl Case {
    /// All cases.
    pub const ALL: [Self; 3] = [
        Self { name: "N = 2, one foreign key", masters: 2, foreign: 1, dead: 0 },
        Self { name: "N = 4, two foreign keys", masters: 4, foreign: 2, dead: 0 },
        Self { name: "N = 3, one dead, held on two", masters: 3, foreign: 2, dead: 1 },
    ];

    /// Runs `quorlock run -n` this many times, one after the other, and counts the exit codes;
    /// `None` is a signal.
    ///
    /// # Panics
    /// When the binary cannot be executed.
    pub fn run(self, quorlock: &Path, runs: usize) -> BTreeMap<Option<i32>, usize> {
        let fleet = masters(self.masters);
        fleet.iter().take(self.foreign).for_each(|master| assert!(master.set_nx(JOB, "x")));
        fleet.iter().rev().take(self.dead).for_each(RedisServer::kill);
        let mut codes = BTreeMap::new();
        for _ in 0..runs {
            *codes.entry(one_try(quorlock, &fleet)).or_default() += 1;
        }
        codes
    }
}

fn one_try(quorlock: &Path, fleet: &Fleet) -> Option<i32> {
    let mut command = Command::new(quorlock);
    command.args(["run", "-q", "-n"]);
    for url in fleet.urls() {
        command.args(["-m", &url]);
    }
    command.args([JOB, "--", "true"]).stdin(Stdio::null()).stderr(Stdio::null());
    let status = command.status();
    status.unwrap_or_else(|error| panic!("{} cannot be executed: {error}", quorlock.display())).code()
}

/// Keeps all processors of the machine busy until it is dropped, so that processes are scheduled
/// late.
#[derive(Debug)]
pub struct Busy {
    ending: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    /// Two threads for each processor.
    pub fn start() -> Self {
        let ending = Arc::new(AtomicBool::new(false));
        let processors = thread::available_parallelism().map_or(2, usize::from);
        let spin = |ending: Arc<AtomicBool>| {
            thread::spawn(move || {
                while !ending.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = (0..2 * processors).map(|_| spin(Arc::clone(&ending))).collect();
        Self { ending, threads }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
