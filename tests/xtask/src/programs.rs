//! Programs of the tests, each by a short name.

use crate::Outcome;
use crate::process::{cargo, program, run as finish};
use crate::results::Run;

/// A program of the tests.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// What cargo runs. The program's own arguments follow.
    cargo: &'static [&'static str],
}

const TESTS: [&str; 5] = ["run", "--release", "-p", "quorlock-tests", "--example"];

/// The programs without a separate entry in the help.
pub(crate) const ALL: [Program; 12] = [
    Program {
        name: "busy",
        about: "how long locks take while the host is busy",
        cargo: &[TESTS[0], TESTS[1], TESTS[2], TESTS[3], TESTS[4], "busy"],
    },
    Program {
        name: "cost",
        about: "what fencing, the restart guard and healing cost",
        cargo: &[TESTS[0], TESTS[1], TESTS[2], TESTS[3], TESTS[4], "cost"],
    },
    Program {
        name: "chaos",
        about: "clients contend while masters and clients are killed, stopped and emptied",
        cargo: &[TESTS[0], TESTS[1], TESTS[2], TESTS[3], TESTS[4], "chaos"],
    },
    Program {
        name: "pairs",
        about: "instructions and allocations of the core for a lock and its release; needs valgrind",
        cargo: &[TESTS[0], TESTS[1], TESTS[2], "quorlock-core", TESTS[4], "pairs"],
    },
    Program {
        name: "simulate",
        about: "simulated worlds with faults of every kind",
        cargo: &[TESTS[0], TESTS[1], TESTS[2], "quorlock-sim", TESTS[4], "simulate"],
    },
    Program {
        name: "failover",
        about: "clients contend while primaries fail over",
        cargo: &[TESTS[0], TESTS[1], TESTS[2], TESTS[3], TESTS[4], "failover"],
    },
    Program {
        name: "replacing",
        about: "dead masters are replaced while clients run, in the right order and in wrong ones",
        cargo: &[TESTS[0], TESTS[1], TESTS[2], TESTS[3], TESTS[4], "replacing"],
    },
    Program {
        name: "votes",
        about: "compares which votes are counted, after every history of a server, with the rule",
        cargo: &[TESTS[0], TESTS[2], TESTS[3], TESTS[4], "votes"],
    },
    Program {
        name: "on-masters",
        about: "runs a command on masters that it starts: three, or a group that fails over",
        cargo: &[TESTS[0], "--quiet", TESTS[2], TESTS[3], TESTS[4], "on_masters"],
    },
    Program {
        name: "foreign",
        about: "Quorlock beside other Redlock clients on the same masters",
        cargo: &[TESTS[0], TESTS[1], TESTS[2], TESTS[3], "--features", "peers", TESTS[4], "foreign"],
    },
    Program {
        name: "one-try",
        about: "exit codes of quorlock run -n while another client holds the lock",
        cargo: &[TESTS[0], TESTS[2], TESTS[3], TESTS[4], "one_try"],
    },
    Program {
        name: "supervision",
        about: "the table of what quorlock run ends, and when: 1,080 cells, a few minutes",
        cargo: &[TESTS[0], TESTS[2], TESTS[3], TESTS[4], "supervision"],
    },
];

const BENCH: [&str; 8] = [TESTS[0], TESTS[1], TESTS[2], TESTS[3], "--features", "peers", TESTS[4], "bench"];
const CHANGES: [&str; 4] = ["run", "--quiet", "-p", "quorlock-changes"];
const SEARCH: [&str; 4] = ["run", "--release", "-p", "quorlock-search"];

/// Runs a program, by its name, with its arguments. What it finds is kept if it says so.
pub(crate) fn run(name: &str, arguments: &[&str]) -> Outcome {
    let words: &[&str] = match name {
        "bench" => &BENCH,
        "changes" => &CHANGES,
        "search" => &SEARCH,
        "servers" => &[],
        _ => match ALL.iter().find(|program| program.name == name) {
            Some(program) => program.cargo,
            None => return Err(format!("there is no command {name:?}; try cargo xtask --help").into()),
        },
    };
    let mut command = if name == "servers" {
        program("tests/servers", arguments)
    } else {
        let mut command = cargo(words);
        command.arg("--").args(arguments);
        command
    };
    let Some(results) = Run::of(name, arguments)? else { return finish(&mut command) };
    let (variable, file) = results.variable();
    finish(command.env(variable, file))?;
    results.keep(arguments)
}
