//! Measures in simulated worlds how often the masters' counters differ, so that a grant needs a
//! second round for its number: without lost answers, with a few, and with many contenders.

#![allow(clippy::print_stdout)] // A command: its results are its output.

use std::process::ExitCode;
use std::time::Duration;

use quorlock_sim::{ClientPlan, Fault, Plan, Step, When};

const HELP: &str = "\
Counts second rounds of numbered grants in simulated worlds. The same numbers come out each time.

Usage: numbering [GRANTS]

  GRANTS  how many numbered grants to count for each line; 10000 unless given
";

/// How many locks each client of a world requests.
const LOCKS: usize = 100;

/// A run whose clients only request one lock, again and again. After every `n`th grant of a master,
/// the connection on which the lock was requested dies, by turns at once or silently. The answer is
/// lost with it, and so is a request behind it.
fn plan(seed: u64, clients: usize, one_in: Option<u64>) -> Plan {
    let lock = Step::Lock {
        resource: 0,
        ttl: Duration::from_secs(2),
        timeout: Duration::from_secs(5),
        renewed: false,
        fenced: true,
        healing: false,
        dropped_after: None,
    };
    let steps = [lock, Step::Hold(Duration::from_millis(1)), Step::Release].repeat(LOCKS);
    let mut plan = Plan::new(seed, 3, vec![ClientPlan::new(steps); clients]);
    let grants = (clients * LOCKS * 6) as u64;
    if let Some(one_in) = one_in {
        // The first fault is at another grant in each world.
        plan.faults = (seed * 37 % one_in..grants)
            .step_by(usize::try_from(one_in).unwrap_or(usize::MAX))
            .map(|number| {
                let at = When::AtGrant { number, delay: Duration::ZERO };
                let is_silent = number / one_in % 2 == 0;
                let (client, master) = (0, 0);
                (
                    at,
                    if is_silent {
                        Fault::HalfOpen { client, master }
                    } else {
                        Fault::Cut { client, master }
                    },
                )
            })
            .collect();
    }
    plan
}

fn main() -> ExitCode {
    let grants = match std::env::args().nth(1).map(|text| text.parse::<u64>()) {
        None => 10_000,
        Some(Ok(grants)) => grants,
        Some(Err(_)) => {
            print!("{HELP}");
            return ExitCode::from(2);
        }
    };
    for clients in [1, 2, 8] {
        for (share, one_in) in [("none", None), ("0.1 %", Some(1_000)), ("1 %", Some(100))] {
            let (mut numbered, mut raised, mut worlds) = (0, 0, 0u64);
            while numbered < grants {
                worlds += 1;
                match plan(worlds, clients, one_in).run() {
                    Ok(report) => (numbered, raised) = (numbered + report.numbered, raised + report.raised),
                    Err(failure) => {
                        println!("{failure}");
                        return ExitCode::FAILURE;
                    }
                }
            }
            println!(
                "{clients} clients, answers lost: {share}: {raised} of {numbered} numbered grants in two rounds ({:.2} %), {worlds} \
                 worlds",
                100.0 * raised as f64 / numbered as f64
            );
        }
    }
    ExitCode::SUCCESS
}
