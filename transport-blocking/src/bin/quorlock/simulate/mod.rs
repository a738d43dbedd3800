//! `quorlock simulate`: one simulated world, and what came of it.

mod scenarios;
mod scripts;
mod world;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use quorlock_core::sim::Timeline;
use quorlock_core::sim::picture::Verdict;

pub(crate) use self::scenarios::Scenario;
use crate::arguments::{SimulateArguments, Simulated, Told};
use crate::ending::{BROKEN, UNWRITTEN};
use crate::output::{Level, Output, Verbosity, print};

/// What came of a world.
struct Outcome {
    title: String,
    /// What was tried and what came of it, in whole lines.
    text: String,
    is_broken: bool,
    /// One sentence.
    verdict: String,
    timeline: Timeline,
    /// What else stands under the picture.
    notes: Vec<String>,
}

/// Runs what the options say. The exit code.
pub(crate) fn simulate(arguments: &SimulateArguments) -> u8 {
    let outcome = match &arguments.what {
        Simulated::List => return print(&scenarios::list(), 0),
        Simulated::Scenario { scenario, without_defence } => {
            scripts::run(*scenario, arguments.seed, !without_defence)
        }
        Simulated::World(options) => world::run(options, arguments.seed),
    };
    if let Some(file) = &arguments.svg {
        if let Err(code) = draw(file, &outcome) {
            return code;
        }
    }
    let mut text = match arguments.told {
        // A diagram is for another program.
        Told::Mermaid => return print(&outcome.timeline.to_mermaid(), code(&outcome)),
        Told::Timeline | Told::Verdict => outcome.text.clone(),
    };
    if outcome.is_broken || arguments.told == Told::Timeline {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{}", outcome.timeline);
    }
    print(&text, code(&outcome))
}

fn code(outcome: &Outcome) -> u8 {
    if outcome.is_broken { BROKEN } else { 0 }
}

fn draw(file: &Path, outcome: &Outcome) -> Result<(), u8> {
    let mut picture = outcome.timeline.picture(outcome.title.as_str());
    let sentence = outcome.verdict.clone();
    picture.verdict =
        Some(if outcome.is_broken { Verdict::Broken(sentence) } else { Verdict::Kept(sentence) });
    picture.notes.extend(outcome.notes.iter().cloned());
    fs::write(file, picture.to_svg()).map_err(|error| {
        let sentence = format!("{} cannot be written: {error}", file.display());
        Output::new(Verbosity::Normal(0), false).message(Level::Error, &sentence);
        UNWRITTEN
    })
}
