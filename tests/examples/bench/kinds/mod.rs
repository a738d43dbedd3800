//! Measures the kinds of locks beside the exclusive one: several resources at once, readers and
//! writers, permits.
//!
//! `bench kinds [ROUNDS [SCENARIOS]]`, with scenarios such as `OP`; by default all.
//! `tests/README.md` says what they are.

mod alone;
mod crowds;
mod deaths;
mod kind;
mod many;
mod worker;

use std::time::Duration;

use quorlock_tests::{Servers, Summary, masters};

use crate::handoff;
use crate::record::Record;

/// The argument before all others of this benchmark.
pub(crate) const NAME: &str = "kinds";
/// The letters of all scenarios.
pub(crate) const SCENARIOS: &str = "OMBWDPF";
const MASTERS: [usize; 2] = [3, 5];
const TTL: Duration = Duration::from_secs(10);

/// The main function of a worker's process, if this is one.
pub(crate) fn is_worker(arguments: impl Iterator<Item = String>) -> bool {
    let mut arguments = arguments.peekable();
    let is_one = arguments.next_if(|first| first == worker::WORKER).is_some();
    if is_one {
        worker::main(arguments).expect("the process that gives orders reads the answers");
    }
    is_one
}

/// Measures the scenarios of these letters.
pub(crate) fn main(rounds: usize, scenarios: &str, record: &mut Record) {
    assert_eq!(Servers::chosen(), Servers::Real, "this measures real servers");
    for count in MASTERS {
        let masters = masters(count);
        for letter in scenarios.chars() {
            match letter {
                'O' => alone::main(record, &masters, rounds),
                'M' => many::main(record, &masters, rounds),
                'B' => crowds::batches(record, &masters, rounds),
                'W' => crowds::a_writer_among_readers(record, &masters, rounds),
                'D' => deaths::main(record, &masters, rounds),
                'P' => crowds::permits(record, &masters, rounds),
                'F' => crowds::the_last_permit(record, &masters, rounds),
                _ => {}
            }
        }
    }
}

/// The median of the rounds' figures.
fn median(spans: &[Duration]) -> Duration {
    Summary::of(spans).p50
}

/// The median of other figures.
fn middle(figures: impl Iterator<Item = f64>) -> f64 {
    handoff::median(figures)
}
