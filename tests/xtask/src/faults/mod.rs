//! Applies known faults, one at a time, to a copy of the workspace, and checks whether a test
//! fails.
//!
//! Each file of `tests/mutants` and `tests/loom` is one fault: a line that says what it does, then
//! a patch of the real source. Faults of `tests/mutants` are run against tests, those of
//! `tests/loom` against the models of the part that they are in.
//!
//! A patch that does not apply and a fault that does not build are errors, not catches.

mod catchers;
mod copy;
mod fault;
mod results;

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::process::target;
use crate::results::{self as kept, Run};
use catchers::{Tests, named, sources};
use copy::{Copy, Ended};
use fault::{Fault, Kind};
use results::{Found, Results};

const HELP: &str = "\
Applies known faults to a copy of the workspace, one at a time. A test must fail for each.

cargo xtask faults --only NAME           one fault: the tests that found it in the last run of all,
                                         then all others if none of these fails
cargo xtask faults [--shard K/N] [--quick]
                                         all faults of tests/mutants; resumes where it was
                                         interrupted
cargo xtask faults --loom                all faults of tests/loom, each with the models of its part
cargo xtask faults --list                lists all faults

--quick runs the tests of the simulation and of the search only where the core's tests find nothing.";

/// How long a program of tests may use a processor. They take seconds: a fault that keeps them busy
/// for longer makes them spin.
const LONGEST_TEST: Duration = Duration::from_secs(120);
const LONGEST_BUILD: Duration = Duration::from_secs(900);
/// The packages whose tests look for faults, the quickest first.
const PACKAGES: [&str; 3] = ["quorlock-core", "quorlock-sim", "quorlock-search"];
/// The name under which the unchanged workspace is tested first.
const UNCHANGED: &str = "(unchanged)";

/// What the command line asks for.
struct Wishes {
    shard: (usize, usize),
    quick: bool,
}

pub(crate) fn run(options: &[&str]) -> Outcome {
    match options {
        ["--only", name] => only(name),
        ["--loom"] => loom(),
        ["--list"] => {
            for fault in Fault::all()? {
                println!("{}: {}", fault.name, fault.what);
            }
            Ok(())
        }
        ["-h" | "--help"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => all(&wishes(options)?, options),
    }
}

/// The faults that change one of these files, or are in one of them.
pub(crate) fn of(files: &[String]) -> Outcome<Vec<String>> {
    let touches = |fault: &Fault| {
        let is_in = files.iter().any(|file| in_file(file) == Some(&fault.name));
        is_in || fault.files().any(|file| files.iter().any(|one| one == file))
    };
    Ok(Fault::all()?.into_iter().filter(touches).map(|fault| fault.name).collect())
}

/// The fault that is in this file.
pub(crate) fn in_file(file: &str) -> Option<&str> {
    let name = file.strip_prefix("tests/mutants/").or_else(|| file.strip_prefix("tests/loom/"))?;
    name.strip_suffix(".patch")
}

fn wishes(options: &[&str]) -> Outcome<Wishes> {
    let mut wishes = Wishes { shard: (1, 1), quick: false };
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match *option {
            "--quick" => wishes.quick = true,
            "--shard" => {
                let shard = options.next().and_then(|shard| shard.split_once('/'));
                let (k, n) = shard.ok_or("--shard takes K/N, such as 1/4")?;
                wishes.shard = (k.parse()?, n.parse()?);
                if wishes.shard.0 == 0 || wishes.shard.0 > wishes.shard.1 {
                    return Err("--shard counts from 1/N to N/N".into());
                }
            }
            other => return Err(format!("{other:?} is not an option; try cargo xtask faults --help").into()),
        }
    }
    Ok(wishes)
}

/// Runs one fault against the tests that found it last, then against all others.
fn only(name: &str) -> Outcome {
    let fault = Fault::all()?.into_iter().find(|fault| fault.name == name);
    let fault = fault.ok_or_else(|| format!("there is no fault {name:?}; --list lists them"))?;
    println!("{}: {}", fault.name, fault.what);
    let copy = Copy::set_up(target().join("mutants/one"))?;
    if fault.kind == Kind::Models {
        return model(&copy, &fault);
    }
    let first = match named(&fault.patch) {
        Some(tests) => vec![tests],
        None => catchers::last(&results::last(&kept::table("faults", "faults")?, name), &sources()?),
    };
    copy.apply(&fault)?;
    for tests in first.into_iter().chain(PACKAGES.map(|package| Tests::of(&[package]))) {
        println!("running {tests}");
        let found = test(&copy, &fault, &tests, 0)?;
        if found.is_caught() {
            println!("caught: {}", found.summary());
            found.failed.iter().for_each(|test| println!("    {test}"));
            return Ok(());
        }
    }
    Err(format!("no test fails with the fault {name}").into())
}

/// Runs all faults of `tests/mutants`, or a part of them. What all of them are found by is kept.
fn all(wishes: &Wishes, options: &[&str]) -> Outcome {
    let run = Run::of("faults", options)?;
    let (k, n) = wishes.shard;
    let faults = Fault::all()?.into_iter().filter(|fault| fault.kind == Kind::Tests);
    let faults: Vec<_> =
        faults.enumerate().filter_map(|(place, fault)| (place % n + 1 == k).then_some(fault)).collect();
    let place = target().join("mutants");
    let copy = Copy::set_up(place.join(format!("shard-{k}-of-{n}")))?;
    for fault in &faults {
        copy.try_out(fault)?;
    }
    let mut results = Results::open(&place.join("results.tsv"))?;
    let unchanged = Fault::none(UNCHANGED);
    for fault in std::iter::once(&unchanged).chain(&faults) {
        if results.of(&copy, fault, wishes.quick).is_none() {
            results.note(play(&copy, fault, wishes.quick)?)?;
        }
        let found = results.of(&copy, fault, wishes.quick).ok_or("a result cannot be read back")?;
        eprintln!("{:55} {}", found.name, found.summary());
        if fault.name == UNCHANGED && found.is_caught() {
            return Err(format!("tests fail without any fault: {:?}", found.failed).into());
        }
    }
    let found: Vec<_> =
        faults.iter().filter_map(|fault| Some((fault, results.of(&copy, fault, wishes.quick)?))).collect();
    if let Some(run) = run.filter(|_| n == 1) {
        fs::write(run.variable().1, results::lines(&found))?;
        run.keep(options)?;
    }
    let missed: Vec<_> =
        found.iter().filter(|(_, found)| !found.is_caught()).map(|(fault, _)| fault.name.as_str()).collect();
    if missed.is_empty() { Ok(()) } else { Err(format!("no test fails with: {}", missed.join(", ")).into()) }
}

/// Applies a fault, runs the tests, and takes the fault out again.
fn play(copy: &Copy, fault: &Fault, quick: bool) -> Outcome<Found> {
    if fault.name != UNCHANGED {
        copy.apply(fault)?;
    }
    let (first, rest) = PACKAGES.split_at(if quick { 1 } else { PACKAGES.len() });
    let first = named(&fault.patch).unwrap_or_else(|| Tests::of(first));
    let mut found = test(copy, fault, &first, copy.fingerprint(fault, quick))?;
    if quick && !found.is_caught() {
        found = test(copy, fault, &Tests::of(rest), copy.fingerprint(fault, false))?;
    }
    copy.take_out(fault)?;
    Ok(found)
}

/// Builds and runs tests of the copy as it is.
fn test(copy: &Copy, fault: &Fault, tests: &Tests, print: u64) -> Outcome<Found> {
    let build = copy.cargo(&tests.arguments("--no-run"), fault, LONGEST_BUILD)?;
    if build != Ended::Well {
        return Err(format!("{} does not build: see {}", fault.name, copy.log(fault).display()).into());
    }
    let start = Instant::now();
    let ended = copy.cargo(&tests.arguments("--no-fail-fast"), fault, LONGEST_TEST)?;
    let seconds = start.elapsed().as_secs_f32();
    let log = String::from_utf8_lossy(&fs::read(copy.log(fault))?).into_owned();
    let failed: BTreeSet<_> = log.lines().filter_map(failed_test).map(str::to_owned).collect();
    // Tests that were killed for the memory that they took did not end either.
    let has_ended = ended != Ended::Never && !(ended == Ended::Badly && log.contains("(signal: "));
    if has_ended && (ended == Ended::Well) != failed.is_empty() {
        return Err(format!("{}: it is not clear which test failed: {log}", fault.name).into());
    }
    Ok(Found { name: fault.name.clone(), print, seconds, ended: has_ended, failed })
}

/// `test votes::an_even_split ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// Runs all faults of `tests/loom`.
fn loom() -> Outcome {
    let copy = Copy::set_up(target().join("mutants/loom"))?;
    let mut missed = Vec::new();
    for fault in Fault::all()?.iter().filter(|fault| fault.kind == Kind::Models) {
        if model(&copy, fault).is_err() {
            missed.push(fault.name.clone());
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("no model fails with: {}", missed.join(", ")).into()) }
}

/// Runs the models of the part that a fault is in. One of them must fail.
fn model(copy: &Copy, fault: &Fault) -> Outcome {
    copy.apply(fault)?;
    let part = fault.name.split('_').next().unwrap_or_default();
    let filter = if part == "lead" {
        ["-p", "quorlock-blocking", "lead::loom_tests"].map(str::to_owned)
    } else {
        ["-p".to_owned(), "quorlock-core".to_owned(), format!("front::{part}::loom_tests")]
    };
    let log = copy.models(&filter)?;
    copy.take_out(fault)?;
    // A model that fails is listed by its name, below `failures:`.
    let failed: BTreeSet<_> = log
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.contains("loom_tests::") && !line.contains(' '))
        .collect();
    if failed.is_empty() {
        println!("{}: no model fails", fault.name);
        return Err(format!("no model fails with the fault {}", fault.name).into());
    }
    println!("{}: {}", fault.name, failed.into_iter().collect::<Vec<_>>().join(" "));
    Ok(())
}
