//! The command line.

use std::ffi::OsString;

use lexopt::{Arg, Parser, ValueExt as _};

use crate::scenario::NAMES;
use crate::{handoff, kinds};

pub(crate) const HELP: &str = "\
Measures locks in our ways and in others, as ratios to a floor of raw sockets, on real servers that it starts.

bench [ROUNDS] [SCENARIO ...]
bench handoff [ROUNDS [LETTERS]]
bench handoff ROUNDS G [ROWS]
bench kinds [ROUNDS [LETTERS]]

ROUNDS     how often the ways take turns; by default 7, and 5 for hand-offs and kinds
SCENARIO   sequential, inflight, hung, dead, held or tls; by default all of these
LETTERS    the scenarios, which tests/README.md describes: letters of ARBFPCKDG for hand-offs, or
           of OMBWDPF for kinds; by default all
ROWS       the beginning of the names of the rows of G to measure, such as near or turns-8; by default all";

const ROUNDS: usize = 7;
const LETTERED_ROUNDS: usize = 5;

/// What the command line asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Todo {
    Help,
    Measure { rounds: usize, scenarios: Vec<&'static str> },
    HandOffs { rounds: usize, letters: String, rows: String },
    Kinds { rounds: usize, letters: String },
}

impl Todo {
    /// Reads the arguments after the name of the program.
    pub(crate) fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut parser = Parser::from_args(arguments);
        let mut words = Vec::new();
        while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
            match argument {
                Arg::Short('h') | Arg::Long("help") => return Ok(Self::Help),
                Arg::Value(word) => words.push(word.string().map_err(|error| error.to_string())?),
                other => return Err(other.unexpected().to_string()),
            }
        }
        let mut words = words.iter().map(String::as_str).peekable();
        for (name, what, known) in
            [(handoff::NAME, "hand-offs", handoff::SCENARIOS), (kinds::NAME, "kinds", kinds::SCENARIOS)]
        {
            if words.next_if_eq(&name).is_none() {
                continue;
            }
            let (rounds, letters) = letters(&mut words, what, known)?;
            let has_rows = name == handoff::NAME && letters == handoff::ROWS;
            let rows = if has_rows { words.next() } else { None }.unwrap_or_default().to_owned();
            if !handoff::is_row(&rows) {
                return Err(format!("no row of {letters} begins with {rows:?}"));
            }
            if let Some(word) = words.next() {
                return Err(format!("nothing may follow here, but {word:?} does"));
            }
            return Ok(if name == kinds::NAME {
                Self::Kinds { rounds, letters }
            } else {
                Self::HandOffs { rounds, letters, rows }
            });
        }
        let rounds = words.next_if(|word| word.starts_with(|first: char| first.is_ascii_digit()));
        let rounds = rounds.map_or(Ok(ROUNDS), number)?;
        let mut scenarios = words.map(scenario).collect::<Result<Vec<_>, _>>()?;
        if scenarios.is_empty() {
            scenarios = NAMES.to_vec();
        }
        Ok(Self::Measure { rounds, scenarios })
    }
}

/// The rounds and the scenario letters of a separate command.
fn letters(
    words: &mut dyn Iterator<Item = &str>,
    what: &str,
    known: &str,
) -> Result<(usize, String), String> {
    let rounds = words.next().map_or(Ok(LETTERED_ROUNDS), number)?;
    let letters = words.next().unwrap_or(known).to_owned();
    if let Some(letter) = letters.chars().find(|letter| !known.contains(*letter)) {
        return Err(format!("{what} have no scenario {letter:?}; there are {known}"));
    }
    Ok((rounds, letters))
}

fn number(word: &str) -> Result<usize, String> {
    match word.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{word:?} is no number of rounds")),
    }
}

fn scenario(word: &str) -> Result<&'static str, String> {
    let known = NAMES.iter().find(|name| **name == word);
    known.copied().ok_or_else(|| match word {
        handoff::NAME | kinds::NAME => {
            format!("{word:?} must be the first argument, followed by its number of rounds")
        }
        _ => format!("there is no scenario {word:?}; there are {} and {}", NAMES.join(", "), handoff::NAME),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Todo, String> {
        Todo::read(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn everything_is_measured_unless_scenarios_are_named() {
        let all = Todo::Measure { rounds: ROUNDS, scenarios: NAMES.to_vec() };
        assert_eq!(read(""), Ok(all));
        let some = Todo::Measure { rounds: 3, scenarios: vec!["sequential"] };
        assert_eq!(read("3 sequential"), Ok(some));
        assert_eq!(read("--help"), Ok(Todo::Help));
    }

    #[test]
    fn hand_offs_are_a_separate_command() {
        let some = |rounds, letters: &str, rows: &str| {
            Ok(Todo::HandOffs { rounds, letters: letters.to_owned(), rows: rows.to_owned() })
        };
        assert_eq!(read("handoff"), some(5, "ARBFPCKDG", ""));
        assert_eq!(read("handoff 2 AC"), some(2, "AC", ""));
        assert_eq!(read("handoff 2 G near"), some(2, "G", "near"));
        let permits = Todo::Kinds { rounds: 2, letters: "PW".to_owned() };
        assert_eq!(read("kinds 2 PW"), Ok(permits));
        assert!(read("kinds 2 PA").unwrap_err().contains("OMBWDP"));
        assert!(read("3 handoff").unwrap_err().contains("first argument"));
    }

    #[test]
    fn an_impossible_value_is_refused_with_the_possible_ones() {
        assert!(read("3 fast").unwrap_err().contains("inflight"));
        assert!(read("handoff 1 AX").unwrap_err().contains("ARBFPCKDG"));
        assert!(read("handoff 1 G far-off").unwrap_err().contains("far-off"));
        for line in ["0", "3x", "--rounds 3", "handoff x", "handoff 1 A B", "handoff 1 G near far"] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
