//! Random worlds, in the order of their seeds, until a number of locks has been acquired: `--help`
//! says more.

#![allow(clippy::print_stdout)] // A command: its results are its output.

use std::env;
use std::fs;
use std::io;
use std::num::NonZero;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use lexopt::prelude::*;
use quorlock_sim::{Failure, Kinds, Plan, Replacement, Report};

/// How many worlds run before their reports are counted.
const AT_ONCE: u64 = 64;

const HELP: &str = "\
Runs random worlds in simulated time, with every fault that lies inside Redlock's assumptions (with the restart guard on
also masters that lose their data), and looks for broken promises.

Usage: simulate [--mixed | --fair] [--acquisitions N] [--seed S]
       simulate [--mixed] --unguarded [--seed S]
       simulate --failovers|--clusters|--rebuilds --undeclared [--worlds N] [--seed S]
       simulate [--mixed | --fair] --only S [--mermaid]
       simulate [--mixed] --digest [--worlds N] [--seed S]

  --acquisitions N  continue until N locks have been acquired, with --mixed of each kind; 100000 unless given
  --mixed           worlds with locks of every kind on the same names: exclusive, of several resources, shared by readers
                    and by groups, of several resources of which some are shared, downgraded ones, and permits
  --fair            worlds in which most clients wait fairly for one resource
  --secured         over encrypted channels, with passwords that change; locks of every kind in half of the worlds
  --failovers       masters with replicas that fail over, with the restart guard and replicas=; locks of every kind in a
                    third of the worlds
  --clusters        the same, with masters that are tags of clusters, whose slots move among groups of servers, at once and
                    key by key
  --rebuilds        masters that are restored from snapshots or rebuilt as copies of others, most of them with replicas, with
                    the restart guard and replicas=; locks of every kind with several handles and holders; with --mixed,
                    N locks of each kind
  --handovers       locks that are handed over while requests are under way; no key may outlive the receiver's release
  --replacements    a dead master is replaced by a spare in the safe order, with the restart guard
  --undeclared      with --failovers or --clusters: run --worlds worlds without replicas=, and count those in which a
                    promise is broken
  --early           with --failovers or --clusters: quarantines begin before all replicas are there, so that nothing but
                    the replicas' confirmation of each vote keeps a former primary from voting
  --seed S          the first world's seed; the next ones follow; 1 unless given
  --unguarded       run the worlds in which masters lose their data without the restart guard, until a promise is broken
  --only S          run this one world, and print all that happens in it
  --mermaid         print that as a diagram
  --digest          print the SHA-1 of all that happens in --worlds worlds (20 unless given)
";

struct Options {
    mixed: bool,
    fair: bool,
    secured: bool,
    failovers: bool,
    clusters: bool,
    rebuilds: bool,
    handovers: bool,
    replacements: bool,
    undeclared: bool,
    early: bool,
    acquisitions: u64,
    seed: u64,
    unguarded: bool,
    only: Option<u64>,
    mermaid: bool,
    digest: bool,
    worlds: u64,
}

impl Options {
    fn plan(&self, seed: u64) -> Plan {
        if self.failovers || self.clusters {
            let mut plan =
                if self.clusters { Plan::random_clusters(seed) } else { Plan::random_failovers(seed) };
            (plan.early_quarantine, plan.secured) = (self.early, self.secured);
            return plan;
        }
        if self.rebuilds {
            let mut plan = Plan::random_rebuilds(seed);
            plan.secured = self.secured;
            return plan;
        }
        if self.handovers {
            return Plan::random_handovers(seed);
        }
        if self.replacements {
            return Plan::random_replacement(seed, Replacement::InOrder);
        }
        if self.fair {
            return Plan::random_fair(seed);
        }
        match (self.secured, self.mixed) {
            (true, _) => Plan::random_secured(seed),
            (false, true) => Plan::random_mixed(seed),
            (false, false) => Plan::random(seed),
        }
    }
}

fn options() -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options {
        mixed: false,
        fair: false,
        secured: false,
        failovers: false,
        clusters: false,
        rebuilds: false,
        handovers: false,
        replacements: false,
        undeclared: false,
        early: false,
        acquisitions: 100_000,
        seed: 1,
        unguarded: false,
        only: None,
        mermaid: false,
        digest: false,
        worlds: 20,
    };
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("mixed") => options.mixed = true,
            Long("fair") => options.fair = true,
            Long("secured") => options.secured = true,
            Long("failovers") => options.failovers = true,
            Long("clusters") => options.clusters = true,
            Long("rebuilds") => options.rebuilds = true,
            Long("replacements") => options.replacements = true,
            Long("handovers") => options.handovers = true,
            Long("early") => options.early = true,
            Long("undeclared") => options.undeclared = true,
            Long("acquisitions") => options.acquisitions = arguments.value()?.parse()?,
            Long("seed") => options.seed = arguments.value()?.parse()?,
            Long("unguarded") => options.unguarded = true,
            Long("only") => options.only = Some(arguments.value()?.parse()?),
            Long("mermaid") => options.mermaid = true,
            Long("digest") => options.digest = true,
            Long("worlds") => options.worlds = arguments.value()?.parse()?,
            Short('h') | Long("help") => return Ok(None),
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(Some(options))
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("simulate: {error}; see --help");
            return ExitCode::from(2);
        }
    };
    match options.only {
        Some(seed) => one(&options.plan(seed), seed, options.mermaid),
        None if options.unguarded => unguarded(&options),
        None if options.undeclared => undeclared(&options),
        None if options.digest => digest(&options),
        None => many(&options),
    }
}

fn one(plan: &Plan, seed: u64, mermaid: bool) -> ExitCode {
    let (outcome, timeline) = plan.trace();
    print!("{}", if mermaid { timeline.to_mermaid() } else { format!("{plan:#?}\n{timeline}") });
    match outcome {
        Ok(report) => {
            eprintln!("seed {seed}: no violation, {report:?}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("seed {seed}: {}", failure.violation);
            ExitCode::FAILURE
        }
    }
}

/// Draws the failed run into a file of the system's temporary directory.
fn draw(seed: u64, failure: &Failure) {
    let file = env::temp_dir().join(format!("quorlock-simulate-{seed}.svg"));
    match fs::write(&file, failure.to_svg()) {
        Ok(()) => println!("drawn: {}", file.display()),
        Err(error) => println!("{} cannot be written: {error}", file.display()),
    }
}

/// Looks for a broken promise without the restart guard. Finding one is the success here.
fn unguarded(options: &Options) -> ExitCode {
    let started = Instant::now();
    let plans = (options.seed..).map(|seed| (seed, options.plan(seed)));
    let guarded = plans.filter(|(_, plan)| plan.restart_guard.is_some());
    for (worlds, (seed, mut plan)) in (1u64..).zip(guarded) {
        plan.restart_guard = None;
        if let Err(failure) = plan.run() {
            let seconds = started.elapsed().as_secs_f64();
            println!("{}, in world number {worlds}, after {seconds:.2} s (seed {seed})", failure.violation);
            return ExitCode::SUCCESS;
        }
    }
    ExitCode::FAILURE
}

/// Counts the worlds in which a promise is broken because replicas are not declared.
fn undeclared(options: &Options) -> ExitCode {
    let started = Instant::now();
    let (mut broken, mut first) = (0u64, None);
    for seed in options.seed..options.seed + options.worlds {
        let mut plan = options.plan(seed);
        plan.declared = None;
        if let Err(failure) = plan.run() {
            broken += 1;
            first.get_or_insert((seed, failure.violation));
        }
    }
    let (worlds, seconds) = (options.worlds, started.elapsed().as_secs_f64());
    let first = first.map(|(seed, violation)| format!("; the first: {violation} (seed {seed})"));
    println!("{broken} of {worlds} worlds broken in {seconds:.1} s{}", first.unwrap_or_default());
    if broken > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn digest(options: &Options) -> ExitCode {
    let (first, worlds) = (options.seed, options.worlds);
    let mut digest = sha1_smol::Sha1::new();
    let mut things = 0;
    for seed in first..first + worlds {
        let (_, timeline) = options.plan(seed).trace();
        things += timeline.len();
        digest.update(timeline.to_string().as_bytes());
    }
    println!("SHA-1 {} of {things} events in {worlds} worlds from seed {first}", digest.digest());
    ExitCode::SUCCESS
}

/// The seed, the plan and the result of one world.
type Ran = (u64, Plan, Result<Report, Box<Failure>>);

/// Runs the next worlds from this seed on, on all cores. The results are in the order of the seeds,
/// so that the output is the same on any number of cores.
fn next_worlds(options: &Options, from: u64) -> Vec<Ran> {
    let next = AtomicU64::new(from);
    let work = || {
        let seeds = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let worlds = seeds.take_while(|seed| *seed < from + AT_ONCE).map(|seed| {
            let plan = options.plan(seed);
            let outcome = plan.run();
            (seed, plan, outcome)
        });
        worlds.collect::<Vec<Ran>>()
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let mut ran: Vec<Ran> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no world panics")).collect()
    });
    ran.sort_unstable_by_key(|(seed, ..)| *seed);
    ran
}

fn many(options: &Options) -> ExitCode {
    let started = Instant::now();
    let (mut acquisitions, mut late, mut events, mut worlds, mut faults) = (0, 0, 0, 0u64, 0);
    let (mut numbered, mut raised, mut guarded) = (0, 0, 0u64);
    let mut kinds = Kinds::default();
    let all = (0..).flat_map(|times| next_worlds(options, options.seed + times * AT_ONCE));
    for (seed, plan, outcome) in all {
        match outcome {
            Ok(report) => {
                acquisitions += report.acquisitions;
                kinds += report.kinds;
                late += report.late_grants;
                numbered += report.numbered;
                raised += report.raised;
                events += report.events;
            }
            Err(failure) => {
                println!("seed {seed}: {}", failure.violation);
                if let Some((smaller, failure)) = plan.shrink() {
                    println!("shrunk: {smaller:#?}\n{failure}");
                    draw(seed, &failure);
                }
                let kinds = [
                    (options.failovers, "--failovers "),
                    (options.clusters, "--clusters "),
                    (options.rebuilds, "--rebuilds "),
                    (options.handovers, "--handovers "),
                    (options.replacements, "--replacements "),
                    (options.early, "--early "),
                    (options.secured, "--secured "),
                    (options.mixed, "--mixed "),
                    (options.fair, "--fair "),
                ];
                let kind: String = kinds.iter().filter(|(is_on, _)| *is_on).map(|(_, name)| *name).collect();
                println!("the same run again: simulate {kind}--only {seed}");
                return ExitCode::FAILURE;
            }
        }
        faults += plan.faults.len();
        guarded += u64::from(plan.restart_guard.is_some());
        worlds += 1;
        let counted = if options.mixed { kinds.least() } else { acquisitions };
        if counted >= options.acquisitions {
            break;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    if options.mixed || options.rebuilds {
        println!("{kinds}");
    }
    println!(
        "{acquisitions} acquisitions ({numbered} numbered, {raised} of them in two rounds) in {worlds} worlds, {guarded} of them \
         with the restart guard, with {faults} faults, {late} grants after the sender had left, and \
         {events} events: no violation (seeds {}..{}, {seconds:.1} s, {:.0} acquisitions/s)",
        options.seed,
        options.seed + worlds,
        acquisitions as f64 / seconds
    );
    let kept = keep(&[
        ("figure", "broken promises", 0, "\tnone"),
        ("figure", "acquisitions", acquisitions, "\t"),
        ("figure", "worlds", worlds, "\t"),
        ("figure", "faults", faults as u64, "\t"),
        ("detail", "first seed", options.seed, ""),
        ("detail", "worlds with the restart guard", guarded, ""),
        ("detail", "numbered", numbered, ""),
        ("detail", "numbered in two rounds", raised, ""),
        ("detail", "grants after the sender had left", late, ""),
        ("detail", "exclusive", kinds.exclusive, ""),
        ("detail", "of several resources", kinds.several, ""),
        ("detail", "of readers", kinds.readers, ""),
        ("detail", "of groups", kinds.groups, ""),
        ("detail", "partly shared", kinds.mixed, ""),
        ("detail", "of permits", kinds.permits, ""),
        ("detail", "downgraded", kinds.downgraded, ""),
    ]);
    match kept {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("simulate: the results cannot be written: {error}");
            ExitCode::from(2)
        }
    }
}

/// Writes the results into the file that `cargo xtask simulate` names: in each line what it is, of
/// what, the number, and for a figure the target.
fn keep(lines: &[(&str, &str, u64, &str)]) -> io::Result<()> {
    let Some(file) = env::var_os("QUORLOCK_RESULTS") else { return Ok(()) };
    let lines =
        lines.iter().map(|(kind, what, number, target)| format!("{kind}\t{what}\t{number}{target}\n"));
    fs::write(file, lines.collect::<String>())
}
