//! A few processes that request one lock all the time: how long the lock is idle between two
//! holders, and how much of the time the busiest process has it.
//!
//! If `QUORLOCK_BENCH_BEFORE` names an older build of this program, the two builds are measured in
//! turns.

use std::path::PathBuf;

use quorlock_tests::{RedisServer, Summary};

use super::turns::Figures;
use super::work::Workers;
use super::{addresses, clients, median};
use crate::record::{self, Record};

const PROCESSES: [usize; 4] = [2, 3, 4, 8];
const BEFORE: &str = "QUORLOCK_BENCH_BEFORE";
/// The ways that are measured.
const WAYS: [&str; 3] = ["blocking", "smol", "tokio"];

/// The other build of this program.
pub(crate) fn before() -> Option<PathBuf> {
    std::env::var_os(BEFORE).map(PathBuf::from)
}

pub(crate) fn main(record: &mut Record, masters: &[RedisServer], rounds: usize) {
    let this = std::env::current_exe().expect("this program has a name");
    let builds: Vec<_> =
        before().into_iter().map(|program| ("before", program)).chain([("", this)]).collect();
    let addresses = addresses(masters);
    record.header(&["gap_p50_us", "gap_p99_us", "busiest", "longest", "requests", "turns/s"]);
    for count in PROCESSES {
        let mut trials = Vec::new();
        for way in clients().into_iter().filter(|way| WAYS.contains(&way.name)) {
            for (name, program) in &builds {
                let workers = Workers::processes_of(program, way, &addresses, count);
                trials.push((format!("{} {name} {count} processes", way.name), workers, Vec::new()));
            }
        }
        for _ in 0..rounds {
            for (_, workers, figures) in &mut trials {
                figures.push(workers.round());
            }
        }
        for (name, mut workers, figures) in trials {
            let over = |gap: fn(&Summary) -> std::time::Duration| {
                Summary::of(&figures.iter().map(|figures| gap(&figures.gaps)).collect::<Vec<_>>()).p50
            };
            let of = |figure: fn(&Figures) -> f64| median(figures.iter().map(figure));
            let cells = [
                record::micros(over(|gaps| gaps.p50)),
                record::micros(over(|gaps| gaps.p99)),
                // The turns of the busiest process, as a multiple of its fair share.
                format!("{:.2}", of(|figures| figures.busiest) * count as f64),
                format!("{:.2}", of(|figures| figures.longest_wait)),
                format!("{:.1}", workers.requests(masters)),
                format!("{:.0}", of(|figures| figures.per_second)),
            ];
            record.row("P", masters.len(), &name, &cells);
        }
    }
}
