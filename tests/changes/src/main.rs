//! Small changes of the core, all in one build.
#![allow(clippy::print_stdout, clippy::print_stderr)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod building;
mod change;
mod copy;
mod listed;
mod places;
mod rewriting;

use std::error::Error;
use std::path::Path;

use building::{Build, State};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).ok_or("the workspace has a root")?;
    let target = root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
    let changes = listed::listed(root, None)?;
    println!("{} changes", changes.len());
    let copy = copy::Copy::set_up(root, target.join("changes"), building::is_rewritten)?;
    let mut build = Build::of(root, &copy, &changes);
    build.settle()?;
    for state in [State::Fixed, State::Broken, State::On(rewriting::Level::Body)] {
        println!("## {state:?}: {}", build.states.iter().filter(|it| **it == state).count());
        for (change, _) in changes.iter().zip(&build.states).filter(|(_, it)| **it == state) {
            println!("  {}", change.name);
        }
    }
    Ok(())
}
