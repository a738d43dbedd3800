//! Client processes contend for a lock while the primary of a group under sentinels fails over
//! repeatedly, or while slots of a cluster change their owners. `cargo xtask failover
//! --help`
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::{Arg, ValueExt as _};
use quorlock_tests::chaos::{Program, client};
use quorlock_tests::failover::{Clientele, ClusterRun, Deed, Found, Outcome, Run, ShardDeed, Trust};
use quorlock_tests::results::Results;

/// The first argument of the processes that this one starts.
const CLIENT: &str = "client";
/// The most violations that are printed.
const SHOWN: usize = 20;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(CLIENT) {
        client::main(arguments);
    }
    match options() {
        Ok(Some(todo)) => go(todo),
        Ok(None) => {
            help();
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("failover: {error}; try --help");
            ExitCode::from(2)
        }
    }
}

struct Todo {
    clientele: Clientele,
    failovers: usize,
    on: On,
}

enum On {
    Group(Found),
    Cluster,
}

fn options() -> Result<Option<Todo>, lexopt::Error> {
    let (mut failovers, mut seed, mut clients) = (20, 1, 8);
    let (mut on, mut directory) = (On::Group(Found::BySentinels), None);
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("failovers") => failovers = parser.value()?.parse()?,
            Arg::Long("seed") => seed = parser.value()?.parse()?,
            Arg::Long("clients") => clients = parser.value()?.parse()?,
            Arg::Long("by-name") => on = On::Group(Found::ByName),
            Arg::Long("cluster") => on = On::Cluster,
            Arg::Long("histories") => directory = Some(PathBuf::from(parser.value()?)),
            Arg::Short('h') | Arg::Long("help") => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    let directory = directory.unwrap_or_else(|| {
        std::env::temp_dir().join(format!("quorlock-failover-{seed}-{}", std::process::id()))
    });
    std::fs::create_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let path = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = Program { path, arguments: vec![CLIENT.to_owned()] };
    Ok(Some(Todo { clientele: Clientele { seed, clients, directory, program }, failovers, on }))
}

fn help() {
    println!(
        "failover [--failovers N] [--seed S] [--clients N] [--by-name|--cluster] [--histories DIRECTORY]\n"
    );
    println!(
        "Makes client processes contend for a lock while the primary of three servers under three sentinels is"
    );
    println!(
        "killed, stopped, cut off and replaced. Half of them count votes that all replicas have confirmed, the"
    );
    println!(
        "others use the restart guard alone. Clients also extend their locks and hand them over to each other."
    );
    println!("Then the records of all clients are checked.");
    println!(
        "Exit codes: 0, promises were kept for the former and broken for the latter; else 1. Defaults are in\nparentheses.\n"
    );
    println!("  --failovers N   how many failovers (20)");
    println!("  --seed S        the seed of the clients' choices (1)");
    println!("  --clients N     how many client processes of each kind (8)");
    println!("  --by-name       clients find the primary by a name that leads to it, without the sentinels");
    println!("  --cluster       a cluster of three shards; further clients have a quorum over all three");
    println!("  --histories D   write the histories into this directory, which must not exist");
}

fn go(Todo { clientele, failovers, on }: Todo) -> ExitCode {
    println!("seed {}, histories in {}", clientele.seed, clientele.directory.display());
    let outcome = match on {
        On::Group(found) => {
            let deeds = Deed::ALL.iter().copied().cycle().take(failovers).collect();
            Run { clientele, found, deeds }.go(|timing| println!("{timing}"))
        }
        On::Cluster => {
            let deeds = ShardDeed::ALL.iter().copied().cycle().take(failovers).collect();
            ClusterRun { clientele, deeds, stops: 0 }.go(|timing| println!("{timing}"))
        }
    };
    match outcome {
        Ok(outcome) => judge(&outcome, failovers),
        Err(error) => {
            eprintln!("failover: {error}");
            ExitCode::FAILURE
        }
    }
}

fn judge(outcome: &Outcome, failovers: usize) -> ExitCode {
    print!("{outcome}");
    let broken = [Trust::Confirmed, Trust::Quorum].map(|trust| outcome.violations(trust)).concat();
    for violation in broken.iter().take(SHOWN) {
        println!("{violation}");
    }
    if !broken.is_empty() {
        return ExitCode::FAILURE;
    }
    if outcome.two_holders(Trust::GuardAlone) > 0 {
        return match keep(outcome, failovers) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("failover: the results cannot be written: {error}");
                ExitCode::from(2)
            }
        };
    }
    println!("the restart guard alone was enough: this run shows nothing");
    ExitCode::FAILURE
}

/// Keeps the figures of a run that showed what it should.
fn keep(outcome: &Outcome, failovers: usize) -> std::io::Result<()> {
    let mut results = Results::new();
    results.servers();
    results.figure("failovers", failovers, "");
    for (trust, figures, violations) in &outcome.parties {
        let (name, is_alone) = (trust.name(), *trust == Trust::GuardAlone);
        let target = if is_alone { "some, or the run shows nothing" } else { "none" };
        results.figure(&format!("{name}: locks with two holders"), outcome.two_holders(*trust), target);
        results.figure(&format!("{name}: locks"), figures.grants, "");
        results.detail(&format!("{name}: promises that were broken"), violations.len());
        results.detail(&format!("{name}: extended"), figures.extended);
        results.detail(&format!("{name}: handed over and resumed"), figures.resumed);
        let gap = figures.longest_gap.as_secs_f64();
        results.detail(&format!("{name}: longest time without a grant, s"), format_args!("{gap:.1}"));
    }
    results.write()
}
