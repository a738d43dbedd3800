//! The table of supervision: what `quorlock run` makes of a command that does not want to end, for
//! each way in which a lock or `quorlock` itself may end, and each reader of its output.
//!
//! A cell runs the command for real, on masters of its own, and looks a hundred times a second
//! whether anything of the command lives and whether the lock is held. Nothing may live without the
//! lock, except where [`Cell::exception`] says why.
//!
//! The lock counts as held while a quorum of masters has its key, and, after the test itself has
//! deleted the keys or killed the masters, until they would have expired. That is when another
//! client could get it without the test's doing.

mod cell;
mod observe;
mod stage;
mod standard;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

pub use self::cell::{Cell, Event, Job, Stdio, Who};
pub use self::observe::{Outcome, run};
pub use self::stage::Stage;
pub use self::standard::{full_pipe, terminal};

/// How often a cell is run if the machine was too busy to tell whether a fault is one.
const TRIES: usize = 4;

/// Runs these cells, several at once, and hands a line for each of them to `tell`. Returns the
/// lines of those with a fault.
pub fn table(cells: &[Cell], quorlock: &Path, at_once: usize, tell: impl Fn(&str) + Sync) -> Vec<String> {
    let stage = Stage::new(quorlock);
    let next = AtomicUsize::new(0);
    let all_faults = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let is_doubtful = |outcome: &Outcome| {
                        matches!(outcome, Outcome::Run { faults, was_late: true, .. } if !faults.is_empty())
                    };
                    let mut outcome = run(*cell, &stage);
                    for _ in 1..TRIES {
                        if is_doubtful(&outcome) {
                            outcome = run(*cell, &stage);
                        }
                    }
                    let line = match outcome {
                        Outcome::NotRun(reason) => format!("{cell}: not run: {reason}"),
                        Outcome::Run { line, faults, .. } if faults.is_empty() => format!("{cell}: {line}"),
                        Outcome::Run { line, faults, .. } => {
                            let line = format!("{cell}: FAULT {}: {line}", faults.join(", "));
                            all_faults.lock().expect("no thread panics").push(line.clone());
                            line
                        }
                    };
                    tell(&line);
                }
            });
        }
    });
    all_faults.into_inner().expect("no thread panics")
}
