//! What the run has found.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::Outcome;
use crate::building::{Build, State};
use crate::change::Change;
use crate::judges::AT_ONCE;
use crate::results::{Results, Verdict};

/// The variable that names a file for figures, which `cargo xtask` keeps in `tests/results`.
const FIGURES: &str = "QUORLOCK_RESULTS";

pub(crate) struct Judged<'a> {
    pub(crate) changes: &'a [Change],
    pub(crate) wanted: &'a [usize],
    pub(crate) build: &'a Build<'a>,
    pub(crate) results: &'a Results,
}

#[derive(Default)]
struct Figures {
    caught: usize,
    endless: usize,
    broken: usize,
    fixed: usize,
    with_reason: usize,
    without: usize,
    seconds: f32,
}

/// Prints what was found. Fails if a change survives without a reason, or if a reason is of no use.
pub(crate) fn report(judged: &Judged<'_>, reasons: &BTreeMap<&str, &str>) -> Outcome {
    let mut figures = Figures::default();
    let mut complaints = Vec::new();
    for at in judged.wanted {
        let (Some(change), Some(state)) = (judged.changes.get(*at), judged.build.states.get(*at)) else {
            continue;
        };
        let reason = reasons.get(change.name.as_str());
        match (state, judged.results.of(change, judged.build.sources())) {
            // One that is written by hand says something only if it can be judged.
            (State::Broken | State::Fixed, _) if !change.is_listed => {
                complaints.push(format!("does not compile, or is in a constant: {}", change.name));
            }
            (State::Broken, _) => figures.broken += 1,
            (State::Fixed, _) => {
                figures.fixed += 1;
                println!("not judged, because the compiler evaluates it: {}", change.name);
            }
            (State::On(_), None) => complaints.push(format!("not judged: {}", change.name)),
            (State::On(_), Some(found)) => {
                figures.seconds += found.seconds;
                match (found.verdict, reason) {
                    (Verdict::Survives, Some(_)) => figures.with_reason += 1,
                    (Verdict::Survives, None) => {
                        figures.without += 1;
                        let by = if found.by.is_empty() { String::new() } else { format!(" ({})", found.by) };
                        complaints.push(format!("survives without a reason{by}: {}", change.name));
                    }
                    (Verdict::Caught, _) => figures.caught += 1,
                    (Verdict::Never, _) => figures.endless += 1,
                }
                if found.verdict != Verdict::Survives && reason.is_some() {
                    complaints.push(format!("has a reason in survivors.tsv, but is caught: {}", change.name));
                }
            }
        }
    }
    let exists = |name: &str| judged.changes.iter().any(|change| change.name == name);
    let gone = reasons.keys().filter(|name| !exists(name));
    complaints.extend(gone.map(|name| format!("has a reason in survivors.tsv, but does not exist: {name}")));
    complaints.iter().for_each(|complaint| println!("{complaint}"));
    let text = figures.lines(judged.wanted.len());
    for line in text.lines() {
        match line.split('\t').collect::<Vec<_>>().as_slice() {
            [_, what, value, target] if !target.is_empty() => println!("{what}: {value} (target: {target})"),
            [_, what, value, ..] => println!("{what}: {value}"),
            _ => {}
        }
    }
    if judged.wanted.len() == judged.changes.len() {
        if let Some(file) = std::env::var_os(FIGURES) {
            std::fs::write(file, text)?;
        }
    }
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(format!("{} complaints, see above", complaints.len()).into())
    }
}

impl Figures {
    /// A line for each, with what it should be.
    fn lines(&self, all: usize) -> String {
        let minutes = (self.seconds / 60.0 / AT_ONCE as f32).ceil();
        let mut text = String::new();
        for (what, value, target) in [
            ("changes", all, ""),
            ("caught", self.caught, ""),
            ("caught because the tests do not end", self.endless, ""),
            ("do not compile", self.broken, ""),
            ("cannot be switched at run time", self.fixed, ""),
            ("survive with a reason", self.with_reason, ""),
            ("survive without a reason", self.without, "none"),
        ] {
            // Writing to a string does not fail.
            let _ = writeln!(text, "figure\t{what}\t{value}\t{target}");
        }
        let _ = writeln!(text, "figure\tminutes\t{minutes}\t60");
        text
    }
}
