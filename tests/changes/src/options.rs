//! What the command line asks for.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::change::Change;
use crate::{Outcome, listed};

pub(crate) const HELP: &str = "\
Changes the core in small ways, all in one build with a switch for each. With a change on, a test
must fail; tests/changes/survivors.tsv says why no test has to notice some of them.

cargo xtask changes                 all changes; continues where it was interrupted
cargo xtask changes --only TEXT     those whose names contain a text, such as a file's path
cargo xtask changes --written       those that are written by hand, in tests/changes/changes.txt
cargo xtask changes --in DIFF       those in lines that a file with a diff touches
cargo xtask changes --in COMMIT     those in lines that have changed since a commit
cargo xtask changes --shard K/N     a part
cargo xtask changes --list          lists them, and judges none

It needs cargo-mutants, which lists changes: cargo install --locked cargo-mutants";

pub(crate) enum Wish {
    Help,
    Run(Options),
}

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) list: bool,
    written: bool,
    only: Option<String>,
    within: Option<String>,
    shard: Option<(usize, usize)>,
}

pub(crate) fn read() -> Outcome<Wish> {
    let mut options = Options::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} takes a value"));
        match word.as_str() {
            "--list" => options.list = true,
            "--written" => options.written = true,
            "--only" => options.only = Some(value()?),
            "--in" => options.within = Some(value()?),
            "--shard" => options.shard = Some(shard(&value()?)?),
            "-h" | "--help" => return Ok(Wish::Help),
            other => return Err(format!("{other:?} is not an option; try cargo xtask changes --help").into()),
        }
    }
    Ok(Wish::Run(options))
}

fn shard(text: &str) -> Outcome<(usize, usize)> {
    let numbers = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((k, n)) if 1 <= k && k <= n => Ok((k, n)),
        _ => Err("--shard takes K/N, such as 1/4, from 1/N to N/N".into()),
    }
}

impl Options {
    /// The changes that are asked for, by their places in the list.
    pub(crate) fn wanted(&self, root: &Path, target: &Path, changes: &[Change]) -> Outcome<Vec<usize>> {
        let mut wanted: Vec<_> = changes.iter().enumerate().collect();
        if let Some(text) = &self.only {
            wanted.retain(|(_, change)| change.name.contains(text.as_str()));
        }
        if self.written {
            wanted.retain(|(_, change)| change.is_written());
        }
        if let Some(of) = &self.within {
            let diff = target.join("changes/in.diff");
            fs::create_dir_all(target.join("changes"))?;
            fs::write(&diff, diff_of(root, of)?)?;
            let text = fs::read_to_string(&diff)?;
            let touched = listed::listed(root, Some(&diff))?;
            wanted.retain(|(_, change)| {
                let is_listed = touched.iter().any(|it| it.is_same(change));
                is_listed || !change.is_listed && text.contains(&format!("+++ b/{}\n", change.file))
            });
        }
        let mut wanted: Vec<_> = wanted.into_iter().map(|(at, _)| at).collect();
        if let Some((k, n)) = self.shard {
            wanted.retain(|at| at % n + 1 == k);
        }
        Ok(wanted)
    }
}

/// The diff in this file, or since this commit.
fn diff_of(root: &Path, of: &str) -> Outcome<Vec<u8>> {
    if Path::new(of).is_file() {
        return Ok(fs::read(of)?);
    }
    let said = Command::new("git").args(["diff", of, "--", "core/src"]).current_dir(root).output()?;
    if !said.status.success() {
        return Err(
            format!("{of} is no file and no commit: {}", String::from_utf8_lossy(&said.stderr)).into()
        );
    }
    Ok(said.stdout)
}
