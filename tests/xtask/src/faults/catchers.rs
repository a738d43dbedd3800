//! The tests that look for a fault first: those that its patch names, or that found it in the last
//! run.

use std::fmt::{self, Display, Formatter};
use std::fs;

use super::PACKAGES;
use crate::Outcome;
use crate::process::{files, root};

/// A selection of tests in some packages.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Tests {
    packages: Vec<&'static str>,
    /// One program of integration tests; `None` for all programs.
    program: Option<String>,
    /// The full names of the tests; empty for all tests.
    names: Vec<String>,
}

impl Tests {
    /// All tests of these packages.
    pub(super) fn of(packages: &[&'static str]) -> Self {
        Self { packages: packages.to_vec(), program: None, names: Vec::new() }
    }

    /// The arguments with which cargo builds or runs them.
    pub(super) fn arguments(&self, word: &str) -> Vec<String> {
        let mut arguments: Vec<_> = ["test", "--profile", "mutants", word].map(str::to_owned).to_vec();
        for package in &self.packages {
            arguments.extend(["-p", package].map(str::to_owned));
        }
        match &self.program {
            Some(program) => arguments.extend(["--test", program].map(str::to_owned)),
            None => arguments.push("--tests".to_owned()),
        }
        if !self.names.is_empty() && word != "--no-run" {
            arguments.extend(["--", "--exact"].map(str::to_owned));
            arguments.extend(self.names.iter().cloned());
        }
        arguments
    }
}

impl Display for Tests {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let packages = self.packages.join(", ");
        match (self.names.as_slice(), &self.program) {
            ([], _) => write!(f, "all tests of {packages}"),
            (names, None) => write!(f, "{} in {packages}", names.join(", ")),
            (names, Some(program)) => write!(f, "{} in {packages}, test {program}", names.join(", ")),
        }
    }
}

/// Where the tests of each package are.
const FOLDERS: [(&str, &[&str]); 3] = [
    (PACKAGES[0], &["core/src/", "core/tests/", "core/examples/"]),
    (PACKAGES[1], &["core/sim/", "tests/shared/"]),
    (PACKAGES[2], &["tests/search/"]),
];

/// The sources of the tests of each package.
pub(super) fn sources() -> Outcome<Vec<(&'static str, String)>> {
    let files = files()?;
    let mut sources = Vec::new();
    for (package, folders) in FOLDERS {
        let mut all = String::new();
        for file in files.iter().filter(|file| folders.iter().any(|folder| file.starts_with(folder))) {
            if file.ends_with(".rs") {
                all += &fs::read_to_string(root().join(file))?;
            }
        }
        sources.push((package, all));
    }
    Ok(sources)
}

/// Whether a test of this full name is in these sources.
fn has(sources: &str, name: &str) -> bool {
    let function = name.rsplit("::").next().unwrap_or(name);
    sources.contains(&format!("fn {function}("))
}

/// A line of a patch that names the package whose tests look for the fault, and arguments of cargo
/// that choose among them.
const LINE: &str = "Tests: ";

/// The tests that a patch names, if no others can find the fault.
pub(super) fn named(patch: &str) -> Option<Tests> {
    let words = patch.lines().find_map(|line| line.strip_prefix(LINE))?;
    let (package, program) = words.split_once(" --test ")?;
    let package = OTHERS.into_iter().find(|other| *other == package)?;
    Some(Tests { program: Some(program.to_owned()), ..Tests::of(&[package]) })
}

/// The packages that a patch may name.
const OTHERS: [&str; 1] = ["quorlock-tests"];

/// The tests that found a fault in the last run, by the packages that have them, the quickest
/// first. A test that there is no more is left out.
pub(super) fn last(found: &[String], sources: &[(&'static str, String)]) -> Vec<Tests> {
    let mut all = Vec::new();
    for (package, sources) in sources {
        let names: Vec<_> = found.iter().filter(|name| has(sources, name)).cloned().collect();
        if !names.is_empty() {
            all.push(Tests { names, ..Tests::of(&[package]) });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(tests: &[Tests]) -> Vec<String> {
        tests.iter().map(|tests| tests.arguments("--no-fail-fast")[4..].join(" ")).collect()
    }

    #[test]
    fn tests_that_found_a_fault_are_run_in_their_packages_if_they_still_exist() {
        let sources = [(PACKAGES[0], "fn c() fn g()".to_owned()), (PACKAGES[1], "fn b()".to_owned())];
        let found = ["a::b", "c", "gone"].map(str::to_owned);
        let expected = [
            format!("-p {} --tests -- --exact c", PACKAGES[0]),
            format!("-p {} --tests -- --exact a::b", PACKAGES[1]),
        ];
        assert_eq!(commands(&last(&found, &sources)), expected);
    }

    #[test]
    fn a_patch_may_name_the_tests_that_look_for_it() {
        let patch = "Does something.\n\nTests: quorlock-tests --test tls\n\n--- a/x\n";
        let named: Vec<_> = named(patch).into_iter().collect();
        assert_eq!(commands(&named), ["-p quorlock-tests --test tls"]);
        assert_eq!(super::named("Does something.\n\n--- a/x\n"), None);
    }
}
