//! A part of the table of supervision. `cargo xtask supervision` makes the whole.

use quorlock_tests::supervision::{Cell, Event, Job, Stdio, Who, table};

use crate::binary;

/// The number of cells that the seed chooses. More cells take longer: four of them take about two
/// seconds.
const CELLS: usize = 32;

/// Which part of the table is made.
const SEED: u64 = 1;

#[track_caller]
fn check(cells: &[Cell]) {
    let faults = table(cells, binary::quorlock(), 4, |_| {});
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn nothing_works_without_its_lock_in_a_part_of_the_table() {
    check(&Cell::sample(SEED, CELLS));
}

#[test]
fn nothing_works_without_its_lock_where_it_did_before() {
    let cell = |job, stdio| Cell { job, stdio, event: Event::KeyLost, who: Who::User };
    check(&[
        cell(Job::IgnoresTerm, Stdio::PipeFull),
        cell(Job::IgnoresTerm, Stdio::TerminalStopped),
        cell(Job::Setsid, Stdio::PipeRead),
        cell(Job::SetM, Stdio::PipeRead),
        cell(Job::Timeout, Stdio::PipeRead),
        cell(Job::SetUserId, Stdio::PipeRead),
        Cell { event: Event::Alrm, ..cell(Job::EndsByItself, Stdio::PipeRead) },
        Cell { event: Event::Kill, ..cell(Job::IgnoresTerm, Stdio::PipeRead) },
    ]);
}
