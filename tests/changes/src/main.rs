//! Small changes of the core, all in one build with a switch for each. With a change on, a test
//! must fail.
#![allow(clippy::print_stdout, clippy::print_stderr)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod building;
mod change;
mod copy;
mod judges;
mod judging;
mod listed;
mod options;
mod places;
mod report;
mod results;
mod rewriting;
mod scripts;
mod survivors;
mod written;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use building::{Build, State};
use change::Change;
use options::Wish;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("changes: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).ok_or("the workspace has a root")?;
    let target = root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
    let options = match options::read()? {
        Wish::Help => {
            println!("{}", options::HELP);
            return Ok(());
        }
        Wish::Run(options) => options,
    };
    let changes = all(root)?;
    let wanted = options.wanted(root, &target, &changes)?;
    if options.list {
        wanted.iter().filter_map(|at| changes.get(*at)).for_each(|change| println!("{}", change.name));
        return Ok(());
    }
    let copy = copy::Copy::set_up(root, target.join("changes"), building::is_rewritten)?;
    let mut build = Build::of(root, &copy, &changes)?;
    build.settle()?;
    let judges = judges::Judges::build(&copy, build.print)?;
    let mut results = results::Results::open(&target.join("changes/results.tsv"))?;
    let is_on = |at: &usize| matches!(build.states.get(*at), Some(State::On(_)));
    let on: Vec<_> = wanted.iter().copied().filter(is_on).collect();
    let reasons = std::fs::read_to_string(root.join("tests/changes/survivors.tsv"))?;
    let reasons = survivors::read(&reasons)?;
    judging::judge(&changes, &on, &reasons, &judges, copy.sources, &mut results)?;
    report::report(
        &report::Judged { changes: &changes, wanted: &wanted, build: &build, results: &results },
        &reasons,
    )
}

/// Every change, of all kinds.
fn all(root: &Path) -> Outcome<Vec<Change>> {
    let mut changes = listed::listed(root, None)?;
    changes.extend(scripts::listed(root)?);
    changes.extend(written::listed(root)?);
    Change::tell_apart(&mut changes);
    Ok(changes)
}
