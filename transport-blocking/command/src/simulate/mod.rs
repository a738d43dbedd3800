//! `quorlock simulate`: one simulated world, and its result.

mod scenarios;
mod scripts;
mod world;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use quorlock_sim::Timeline;
use quorlock_sim::picture::Verdict;

pub(crate) use self::scenarios::Scenario;
use crate::arguments::SimulateArguments;
use crate::ending::{BROKEN, UNWRITTEN};
use crate::output::{Level, Output, Verbosity, print};

/// The result of a world.
struct Outcome {
    title: String,
    /// The settings and the result, in whole lines.
    text: String,
    is_broken: bool,
    /// One sentence.
    verdict: String,
    timeline: Timeline,
    /// Further lines under the picture.
    notes: Vec<String>,
}

/// Runs the world that the options describe. Returns the exit code.
pub(crate) fn simulate(arguments: &SimulateArguments) -> u8 {
    if arguments.list {
        return print(&scenarios::list(), 0);
    }
    let outcome = match arguments.scenario {
        Some(scenario) => scripts::run(scenario, arguments.seed, !arguments.without_defence),
        None => world::run(&arguments.world, arguments.seed),
    };
    if let Some(file) = &arguments.svg {
        if let Err(code) = draw(file, &outcome) {
            return code;
        }
    }
    if arguments.mermaid {
        // A diagram is for another program.
        return print(&outcome.timeline.to_mermaid(), code(&outcome));
    }
    let mut text = outcome.text.clone();
    if outcome.is_broken || arguments.timeline {
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
