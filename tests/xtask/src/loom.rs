//! `cargo xtask loom`: the models of hand-written concurrency, and how much loom explored of each.

use std::fs;

use crate::Outcome;
use crate::check::models;
use crate::process::{read, root};
use crate::results::Run;

/// The packages that have models.
const PACKAGES: [&str; 5] = ["-p", "quorlock-core", "-p", "quorlock-blocking", "loom"];

/// Runs all models, and keeps how many executions each had.
pub(crate) fn run(words: &[&str]) -> Outcome {
    if !words.is_empty() {
        return Err("cargo xtask loom takes no arguments; LOOM_MAX_PREEMPTIONS sets another bound".into());
    }
    let Some(results) = Run::of("loom", words)? else { return Ok(()) };
    let output = read(&mut models(&root(), &PACKAGES))?;
    print!("{output}");
    fs::write(results.variable().1, lines(&output))?;
    results.keep(words)
}

/// What is kept of the output: a line of a model is `NAME: N executions, BOUND preemptions`.
fn lines(output: &str) -> String {
    let models: Vec<_> = output.lines().filter_map(model).collect();
    let executions: u64 = models.iter().map(|(_, executions, _)| executions).sum();
    let mut lines = format!("figure\tmodels\t{}\t\nfigure\texecutions\t{executions}\t\n", models.len());
    lines += "row\tmodels\tmodel\tpreemptions\texecutions\n";
    for (name, executions, bound) in models {
        lines += &format!("row\tmodels\t{name}\t{bound}\t{executions}\n");
    }
    lines
}

fn model(line: &str) -> Option<(&str, u64, &str)> {
    let (rest, bound) = line.strip_suffix(" preemptions")?.rsplit_once(" executions, ")?;
    let (name, executions) = rest.rsplit_once(": ")?;
    // The test's name may come before, on the same line.
    let name = name.rsplit_once(" ... ").map_or(name, |(_, name)| name);
    Some((name, executions.parse().ok()?, bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_model_is_kept() {
        let output = "running 2 tests\n\
                      test front::a ... two callers: 43467 executions, any number of preemptions\n\
                      one caller, then a renewal: 1779 executions, at most 4 preemptions\nok\n";
        let expected = "figure\tmodels\t2\t\nfigure\texecutions\t45246\t\n\
                        row\tmodels\tmodel\tpreemptions\texecutions\n\
                        row\tmodels\ttwo callers\tany number of\t43467\n\
                        row\tmodels\tone caller, then a renewal\tat most 4\t1779\n";
        assert_eq!(lines(output), expected);
    }
}
