//! The results so far, in a file that outlives an interrupted run.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use crate::Outcome;
use crate::change::Change;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Caught,
    /// The tests do not end.
    Never,
    Survives,
}

impl Verdict {
    const ALL: [Self; 3] = [Self::Caught, Self::Never, Self::Survives];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Caught => "caught",
            Self::Never => "endless",
            Self::Survives => "SURVIVES",
        }
    }
}

pub(crate) struct Found {
    /// Of the change and of the sources.
    pub(crate) print: u64,
    pub(crate) verdict: Verdict,
    pub(crate) seconds: f32,
    /// The test that failed, or the judge that did not end.
    pub(crate) by: String,
    pub(crate) name: String,
}

impl Found {
    fn to_line(&self) -> String {
        let Self { print, verdict, seconds, by, name } = self;
        format!("{print:016x}\t{}\t{seconds:.2}\t{by}\t{name}\n", verdict.word())
    }

    fn from_line(line: &str) -> Option<Self> {
        let [print, word, seconds, by, name] = line.splitn(5, '\t').collect::<Vec<_>>().try_into().ok()?;
        Some(Self {
            print: u64::from_str_radix(print, 16).ok()?,
            verdict: Verdict::ALL.into_iter().find(|verdict| verdict.word() == word)?,
            seconds: seconds.parse().ok()?,
            by: by.to_owned(),
            name: name.to_owned(),
        })
    }
}

pub(crate) struct Results {
    file: File,
    found: HashMap<u64, Found>,
}

impl Results {
    pub(crate) fn open(path: &Path) -> Outcome<Self> {
        let text = if path.exists() { fs::read_to_string(path)? } else { String::new() };
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let found = text.lines().filter_map(Found::from_line).map(|found| (found.print, found)).collect();
        Ok(Self { file, found })
    }

    pub(crate) fn of(&self, change: &Change, sources: u64) -> Option<&Found> {
        self.found.get(&change.print(sources))
    }

    pub(crate) fn note(&mut self, found: Found) -> Outcome {
        self.file.write_all(found.to_line().as_bytes())?;
        self.found.insert(found.print, found);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read_as_it_was_written() {
        let line = "00000000000000ff\tendless\t4.10\tquorlock-core front\ta.rs: replace a with b: a\n";
        let found = Found::from_line(line.trim_end()).unwrap();
        assert_eq!((found.print, found.verdict), (255, Verdict::Never));
        assert_eq!(found.to_line(), line);
        assert!(Found::from_line("cut off").is_none());
    }
}
