//! Words that must not occur in comments, strings and pages, and lines that are too long.

mod prose;
#[cfg(test)]
mod tests;

use std::fmt::{self, Display, Formatter};
use std::fs;

use crate::Outcome;
use crate::process::{files, root};
use prose::{Word, of_page, of_rust};

/// The longest line of a comment or a page, in columns.
const COLUMNS: usize = 100;

/// A word or a phrase that must not occur, and what to do instead.
const FORBIDDEN: [(&str, &str); 23] = [
    ("whoever", ROLE),
    ("whomever", ROLE),
    ("somebody", ROLE),
    ("anybody", ROLE),
    ("he", ROLE),
    ("him", ROLE),
    ("his", ROLE),
    ("himself", ROLE),
    ("she", ROLE),
    ("by and by", "say when"),
    ("in vain", "say what fails"),
    ("come about", "say what happens"),
    ("comes about", "say what happens"),
    ("came about", "say what happened"),
    ("so long", "say for how long, or write \"while\" or \"until\""),
    ("so many", "say how many"),
    ("for ever", "write \"forever\""),
    ("mend", "write \"fix\" or \"repair\""),
    ("mends", "write \"fixes\" or \"repairs\""),
    ("mended", "write \"fixed\" or \"repaired\""),
    ("back-off", "write \"backoff\""),
    ("time-out", "write \"timeout\""),
    ("time-outs", "write \"timeouts\""),
];
const ROLE: &str = "name the role: the caller, the waiter, the holder";

/// What is wrong with a line.
#[derive(PartialEq, Eq, Debug)]
struct Fault {
    line: usize,
    what: What,
}

#[derive(PartialEq, Eq, Debug)]
enum What {
    Word(&'static str),
    Wide(usize),
}

impl Display for What {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => {
                let instead =
                    FORBIDDEN.iter().find(|(one, _)| one == word).map_or("", |(_, instead)| instead);
                write!(f, "{word:?}: {instead}")
            }
            Self::Wide(columns) => write!(f, "{columns} columns: wrap it at {COLUMNS}"),
        }
    }
}

/// Looks through all files of the working tree.
pub(crate) fn check() -> Outcome {
    let (mut looked_at, mut faults) = (0, 0);
    for file in files()? {
        // The list of the words, and what tests it.
        if file.starts_with("tests/xtask/src/words/") {
            continue;
        }
        let look: fn(&str) -> Vec<Fault> = match file.rsplit_once('.') {
            Some((_, "rs")) => faults_of_rust,
            Some((_, "md")) => faults_of_page,
            // What `quorlock --help` prints.
            Some((folder, "txt")) if folder.contains("/help/") => faults_of_page,
            _ => continue,
        };
        looked_at += 1;
        for Fault { line, what } in look(&fs::read_to_string(root().join(&file))?) {
            println!("{file}:{line}: {what}");
            faults += 1;
        }
    }
    println!("{looked_at} files");
    match (looked_at, faults) {
        (0, _) => Err("no file was found to look at".into()),
        (_, 0) => Ok(()),
        (_, 1) => Err("1 place to rewrite".into()),
        (_, many) => Err(format!("{many} places to rewrite").into()),
    }
}

fn faults_of_rust(text: &str) -> Vec<Fault> {
    let mut faults = words(&of_rust(text));
    faults.extend(wide(text, |line| line.trim_start().strip_prefix("//")));
    faults
}

fn faults_of_page(text: &str) -> Vec<Fault> {
    let mut faults = words(&of_page(text));
    faults.extend(wide(text, |line| (!line.starts_with("    ")).then_some(line)));
    faults
}

/// The forbidden words and phrases among these. A phrase may go on in the next line, but not behind
/// a punctuation mark.
fn words(words: &[Word]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (place, first) in words.iter().enumerate() {
        for (phrase, _) in FORBIDDEN {
            let mut rest = words.iter().skip(place);
            let mut is_found = true;
            for (count, part) in phrase.split(' ').enumerate() {
                is_found &=
                    rest.next().is_some_and(|word| word.text == part && (count == 0 || !word.is_first));
            }
            if is_found {
                faults.push(Fault { line: first.line, what: What::Word(phrase) });
            }
        }
    }
    faults
}

/// The lines that are too long although they could be wrapped. Rows of tables, blocks of code and
/// the targets of links cannot. `prose` returns what may be wrapped in a line.
fn wide<'a>(text: &'a str, prose: impl Fn(&'a str) -> Option<&'a str>) -> Vec<Fault> {
    let (mut faults, mut is_code) = (Vec::new(), false);
    for (place, line) in text.lines().enumerate() {
        let Some(prose) = prose(line) else { continue };
        let said = prose.trim_start_matches(['/', '!', ' ', '-', '*', '>']);
        if said.starts_with("```") {
            is_code = !is_code;
        }
        let columns = line.chars().count();
        let is_target =
            said.starts_with('[') && said.split_once("]: ").is_some_and(|(_, to)| !to.contains(' '));
        if !is_code && columns > COLUMNS && said.contains(' ') && !said.starts_with('|') && !is_target {
            faults.push(Fault { line: place + 1, what: What::Wide(columns) });
        }
    }
    faults
}
