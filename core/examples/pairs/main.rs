//! Counts what a lock costs the core, from the request to the release: instructions and allocations
//! for each pair of an acquisition and its release, with every master granting. Both counts are the
//! same in each run, so that a change can be compared with the last result.
//!
//! `cargo xtask pairs` prints the table, and keeps it in `core/docs/COSTS.md`. Counting the
//! instructions needs valgrind.
//!
//! Two ways are counted: the machine alone, driven by hand; and the front around it, as a transport
//! drives it, with a task for each lock.
#![allow(clippy::print_stdout)]

use std::process::{Command, ExitCode};
use std::{env, fs, io};

use allocation_counter::AllocationInfo;

mod front;
mod machine;
mod masters;

/// The numbers of masters that are asked.
const MASTERS: [usize; 3] = [3, 5, 51];
/// How many locks are sought at once: one after the other, and as many as a busy service has.
const AT_ONCE: [usize; 2] = [1, 64];
const WAYS: [&str; 2] = ["machine", "front"];
/// Pairs before the measurement, after which everything that happens once has happened.
const WARM_UP: usize = 1_024;
const COUNTED: usize = 4_096;
const HELD: usize = 10_000;

/// Makes a number of pairs.
trait Pairs {
    fn run(&mut self, pairs: usize);
}

fn open(way: &str, masters: usize, at_once: usize) -> Box<dyn Pairs> {
    if way == "machine" {
        Box::new(machine::ByHand::new(masters, at_once))
    } else {
        Box::new(front::Driven::new(masters, at_once))
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [way, masters, at_once, pairs] = arguments.as_slice() {
        let numbers = [masters, at_once, pairs].map(|number| number.parse().expect("a number"));
        let [masters, at_once, pairs] = numbers;
        open(way, masters, at_once).run(pairs);
        return ExitCode::SUCCESS;
    }
    if arguments == ["held"] {
        println!("{}", held());
        return ExitCode::SUCCESS;
    }
    match table() {
        Ok(rows) => {
            rows.iter().for_each(|row| println!("{}", row.join("\t")));
            let held = held();
            println!("{HELD} locks that are held over {} masters take {held} bytes each.", MASTERS[0]);
            keep(&rows, held).map_or_else(|error| fails(&error.to_string()), |()| ExitCode::SUCCESS)
        }
        Err(why) => fails(&format!("instructions cannot be counted: {why}")),
    }
}

fn fails(why: &str) -> ExitCode {
    eprintln!("pairs: {why}");
    ExitCode::FAILURE
}

/// The rows of the table, after the names of its columns.
fn table() -> Result<Vec<Vec<String>>, String> {
    let columns = ["way", "N", "at once", "instructions", "allocations", "bytes allocated"];
    let mut rows = vec![columns.map(str::to_owned).to_vec()];
    for way in WAYS {
        for masters in MASTERS {
            for at_once in AT_ONCE {
                let instructions = instructions(way, masters, at_once)?;
                let allocated = allocations(way, masters, at_once);
                rows.push(vec![
                    way.to_owned(),
                    masters.to_string(),
                    at_once.to_string(),
                    format!("{instructions:.0}"),
                    format!("{:.2}", allocated.count_total as f64 / COUNTED as f64),
                    format!("{:.0}", allocated.bytes_total as f64 / COUNTED as f64),
                ]);
            }
        }
    }
    Ok(rows)
}

/// Writes the table into the file that `cargo xtask pairs` names.
fn keep(rows: &[Vec<String>], held: i64) -> io::Result<()> {
    let Some(file) = env::var_os("QUORLOCK_RESULTS") else { return Ok(()) };
    let rows = rows.iter().map(|row| format!("row\tpairs\t{}\n", row.join("\t")));
    let held = format!("figure\tbytes of a held lock over {} masters\t{held}\tat most 1,024\n", MASTERS[0]);
    fs::write(file, rows.chain([held]).collect::<String>())
}

/// The memory of one held lock: all that the core keeps for it, without the name that the caller
/// keeps.
fn held() -> i64 {
    let mut driven = front::Driven::new(MASTERS[0], HELD);
    let allocated = allocation_counter::measure(|| driven.hold());
    allocated.bytes_current / HELD as i64
}

fn allocations(way: &str, masters: usize, at_once: usize) -> AllocationInfo {
    let mut pairs = open(way, masters, at_once);
    pairs.run(WARM_UP);
    allocation_counter::measure(|| pairs.run(COUNTED))
}

/// The instructions of one pair. They are the difference between a run with more pairs and one with
/// fewer, so that opening the connections does not count.
fn instructions(way: &str, masters: usize, at_once: usize) -> Result<f64, String> {
    let fewer = callgrind(way, masters, at_once, WARM_UP)?;
    let more = callgrind(way, masters, at_once, WARM_UP + COUNTED)?;
    Ok((more - fewer) as f64 / COUNTED as f64)
}

/// All instructions of this program under valgrind for a number of pairs.
fn callgrind(way: &str, masters: usize, at_once: usize, pairs: usize) -> Result<u64, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let numbers = [masters, at_once, pairs].map(|number| number.to_string());
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .arg(way)
        .args(numbers)
        .output()
        .map_err(|error| format!("valgrind does not run ({error}); install it (apt-get install valgrind)"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let counted = said.lines().find_map(|line| line.split_once("Collected :"));
    counted.and_then(|(_, number)| number.trim().parse().ok()).ok_or_else(|| format!("valgrind said: {said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change that lowers these numbers writes the lower ones here; one that raises them says
    /// why.
    #[test]
    fn a_pair_allocates_no_more_than_is_written_down() {
        for (way, masters, at_once, written) in
            [("machine", 3, 1, 2), ("machine", 51, 64, 2), ("front", 3, 1, 6), ("front", 51, 64, 4)]
        {
            let counted = allocations(way, masters, at_once).count_total / COUNTED as u64;
            assert_eq!(counted, written, "{way}, {masters} masters, {at_once} at once");
        }
    }
}
