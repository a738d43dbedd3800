//! The results so far, including those of earlier runs and of other shards.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use super::copy::Copy;
use super::fault::Fault;
use crate::Outcome;

/// Which tests fail with one fault.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) print: u64,
    pub(super) seconds: f32,
    /// Whether the tests came to an end: they neither spun nor were killed for the memory they
    /// took.
    pub(super) ended: bool,
    pub(super) failed: BTreeSet<String>,
}

impl Found {
    pub(super) fn is_caught(&self) -> bool {
        !self.ended || !self.failed.is_empty()
    }

    pub(super) fn summary(&self) -> String {
        let failed = match self.failed.len() {
            0 => "no test fails".to_owned(),
            1 => "1 test fails".to_owned(),
            many => format!("{many} tests fail"),
        };
        let end = if self.ended { "" } else { ", and the tests do not end" };
        format!("{failed}{end} ({:.1} s)", self.seconds)
    }

    fn to_line(&self) -> String {
        let failed = self.failed.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        format!("{:016x}\t{}\t{}\t{}\t{failed}\n", self.print, self.name, self.seconds, self.ended)
    }

    fn from_line(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        Some(Self {
            print: u64::from_str_radix(fields.next()?, 16).ok()?,
            name: fields.next()?.to_owned(),
            seconds: fields.next()?.parse().ok()?,
            ended: fields.next()?.parse().ok()?,
            failed: fields.next()?.split_whitespace().map(str::to_owned).collect(),
        })
    }
}

/// Results, in a file that outlives an interrupted run.
pub(super) struct Results {
    file: File,
    found: Vec<Found>,
}

impl Results {
    pub(super) fn open(path: &Path) -> Outcome<Self> {
        let text = if path.exists() { fs::read_to_string(path)? } else { String::new() };
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, found: text.lines().filter_map(Found::from_line).collect() })
    }

    /// The result for a fault, if there is a valid one: of all tests, or of the core's alone if
    /// these are enough.
    pub(super) fn of(&self, copy: &Copy, fault: &Fault, quick: bool) -> Option<&Found> {
        let with = |core_only| {
            let print = copy.fingerprint(fault, core_only);
            self.found.iter().find(|found| found.name == fault.name && found.print == print)
        };
        with(false).or_else(|| with(true).filter(|_| quick))
    }

    pub(super) fn note(&mut self, found: Found) -> Outcome {
        self.file.write_all(found.to_line().as_bytes())?;
        self.found.push(found);
        Ok(())
    }
}

/// Names for each fault the three tests that say most about it: those that fail for the fewest
/// other faults.
pub(super) fn table(found: &[(&Fault, &Found)]) -> String {
    let mut faults_of: BTreeMap<&str, usize> = BTreeMap::new();
    for test in found.iter().flat_map(|(_, found)| &found.failed) {
        *faults_of.entry(test).or_default() += 1;
    }
    let mut rows = String::from("| fault | what it does | caught by |\n|---|---|---|\n");
    for (fault, found) in found {
        let mut tests: Vec<_> = found.failed.iter().map(String::as_str).collect();
        tests.sort_by_key(|test| (faults_of.get(test), *test));
        let mut caught: Vec<_> = tests.iter().take(3).map(|test| format!("`{test}`")).collect();
        match tests.len() {
            0 if found.ended => caught.push("**nothing**".to_owned()),
            0..=3 => {}
            many => caught.push(format!("{} more", many - 3)),
        }
        if !found.ended {
            caught.push("the clock: the tests do not end".to_owned());
        }
        rows += &format!("| `{}` | {} | {} |\n", fault.name, fault.what, caught.join(", "));
    }
    rows
}
