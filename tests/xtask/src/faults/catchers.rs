//! The tests that `tests/MUTANTS.md` names for a fault.

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

/// The names in a fault's row, and the program of tests that they are in if the row names one.
fn names(page: &str, fault: &str) -> Option<(Vec<String>, Option<String>)> {
    let start = format!("| `{fault}` |");
    let row = page.lines().find(|line| line.starts_with(&start))?;
    let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
    let (cell, program) = match cell.split_once(" (test `") {
        Some((names, rest)) => (names, rest.split('`').next().map(str::to_owned)),
        None => (cell.split("on real servers").next().unwrap_or(cell), None),
    };
    Some((cell.split('`').skip(1).step_by(2).map(str::to_owned).collect(), program))
}

/// The tests that the page names in a fault's row, by the packages that have them, the quickest
/// first.
///
/// `(test `x`)` behind the names says that they are in `tests/tests/x.rs`, and `on real servers`
/// that the names behind it need a server.
pub(super) fn named(page: &str, fault: &str, sources: &[(&'static str, String)]) -> Vec<Tests> {
    let Some((names, program)) = names(page, fault) else { return Vec::new() };
    if program.is_some() {
        return vec![Tests { packages: vec!["quorlock-tests"], program, names }];
    }
    let mut all = Vec::new();
    for (package, sources) in sources {
        let names: Vec<_> = names.iter().filter(|name| has(sources, name)).cloned().collect();
        if !names.is_empty() {
            all.push(Tests { names, ..Tests::of(&[package]) });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::fault::{Fault, Kind};
    use super::*;

    fn page() -> String {
        fs::read_to_string(root().join("tests/MUTANTS.md")).unwrap()
    }

    #[test]
    fn a_row_names_tests_of_packages_or_a_program_of_tests() {
        let page = "| fault | what | caught by |\n\
            | `one` | Does `x`. | `a::b`, `c`, 3 more |\n\
            | `two` | Does y. | `d::e` (test `tls`) |\n\
            | `three` | Does z. | `c`; on real servers `g` |";
        let sources = [(PACKAGES[0], "fn c() fn g()".to_owned()), (PACKAGES[1], "fn b()".to_owned())];
        let commands = |fault| {
            let named = named(page, fault, &sources);
            named.iter().map(|tests| tests.arguments("--no-fail-fast")[4..].join(" ")).collect::<Vec<_>>()
        };
        let of = |package: &str, rest: &str| format!("-p {package} {rest}");
        let one = [of(PACKAGES[0], "--tests -- --exact c"), of(PACKAGES[1], "--tests -- --exact a::b")];
        assert_eq!(commands("one"), one);
        assert_eq!(commands("two"), ["-p quorlock-tests --test tls -- --exact d::e"]);
        assert_eq!(commands("three"), one[..1]);
        assert_eq!(commands("four"), Vec::<String>::new());
    }

    #[test]
    fn the_page_names_tests_that_exist_for_every_fault_of_tests_mutants() {
        let (page, sources) = (page(), sources().unwrap());
        for fault in Fault::all().unwrap().iter().filter(|fault| fault.kind == Kind::Tests) {
            let names = names(&page, &fault.name);
            let Some((names, program)) = names.filter(|(names, _)| !names.is_empty()) else {
                panic!("tests/MUTANTS.md names no test for {}", fault.name);
            };
            for name in names.iter().filter(|_| program.is_none()) {
                let is_there = sources.iter().any(|(_, sources)| has(sources, name));
                assert!(is_there, "tests/MUTANTS.md names {name} for {}, which does not exist", fault.name);
            }
        }
    }
}
