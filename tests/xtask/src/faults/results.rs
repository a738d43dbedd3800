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

/// What is kept of a run of all faults: for each the three tests that say most about it, those that
/// fail for the fewest other faults.
pub(super) fn lines(found: &[(&Fault, &Found)]) -> String {
    let mut faults_of: BTreeMap<&str, usize> = BTreeMap::new();
    for test in found.iter().flat_map(|(_, found)| &found.failed) {
        *faults_of.entry(test).or_default() += 1;
    }
    let missed = found.iter().filter(|(_, found)| !found.is_caught()).count();
    let mut lines = format!("figure\tfaults that no test finds\t{missed}\tnone\n");
    lines += &format!("figure\tfaults\t{}\t\n", found.len());
    lines += "row\tfaults\tfault\tfound by\ttests that fail\n";
    for (fault, found) in found {
        let mut tests: Vec<_> = found.failed.iter().map(String::as_str).collect();
        tests.sort_by_key(|test| (faults_of.get(test), *test));
        let mut first: Vec<_> = tests.iter().take(3).copied().collect();
        if !found.ended {
            first.push("the clock: the tests do not end");
        }
        lines += &format!("row\tfaults\t{}\t{}\t{}\n", fault.name, first.join(", "), tests.len());
    }
    lines
}

/// The tests that found each fault, from the rows of the last run.
pub(super) fn last(rows: &[Vec<String>], fault: &str) -> Vec<String> {
    let row = rows.iter().find(|row| row.first().is_some_and(|name| name == fault));
    let tests = row.and_then(|row| row.get(1)).map_or_else(Vec::new, |tests| tests.split(", ").collect());
    tests.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_that_found_a_fault_can_be_read_back() {
        let fault = Fault::none("one");
        let failed = ["a::b", "c"].into_iter().map(str::to_owned).collect();
        let found = Found { name: "one".to_owned(), print: 1, seconds: 0.5, ended: true, failed };
        let lines = lines(&[(&fault, &found)]);
        let rows: Vec<Vec<String>> = lines
            .lines()
            .filter_map(|line| line.strip_prefix("row\tfaults\t"))
            .map(|row| row.split('\t').map(str::to_owned).collect())
            .collect();
        assert_eq!(last(&rows, "one"), ["a::b", "c"]);
        assert_eq!(last(&rows, "two"), Vec::<String>::new());
    }
}
