//! The last results of the commands that measure or prove, as data in `tests/results`, and the page
//! that is rendered from them.

mod inserted;
mod kept;
mod page;
mod picture;
mod sources;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::Outcome;
use crate::process::{program, read, root, target};
use kept::Kept;
use sources::{PICTURED, SOURCES, Source};

const HELP: &str = "\
The last results of the commands that measure or prove: tests/results has a file of each.

cargo xtask results           lists them, with those that are older than the files they depend on
cargo xtask results --write   renders tests/results/README.md, the picture of the benchmark, and the
                              tables in README.md and core/docs from the files";

/// The variable that tells a program where to write its results.
const FILE: &str = "QUORLOCK_RESULTS";
const PAGE: &str = "tests/results/README.md";
const PICTURE: &str = "tests/results/benchmarks.svg";

/// What cannot change a result, in the words of Git: the core's own tests, and pages.
const NOT_THESE: [&str; 3] =
    [":(exclude,glob)core/**/*tests.rs", ":(exclude,glob)core/**/tests/**", ":(exclude)core/src/guide.rs"];

/// A place for what this command finds, if that is kept: the program is told of it.
pub(crate) struct Run {
    source: &'static Source,
    file: PathBuf,
    /// When it began: a run may take long, and others go on working.
    commit: String,
}

impl Run {
    pub(crate) fn of(program: &str, words: &[&str]) -> Outcome<Option<Self>> {
        let has_it = |source: &&Source| {
            source.program == program && source.with.is_none_or(|with| words.contains(&with))
        };
        // Those with an argument follow the one without.
        let Some(source) = SOURCES.iter().rev().find(has_it) else { return Ok(None) };
        let folder = target().join("results");
        fs::create_dir_all(&folder)?;
        let file = folder.join(format!("{}.tsv", source.name));
        if file.exists() {
            fs::remove_file(&file)?;
        }
        let mut commit = line("git", &["rev-parse", "--short=8", "HEAD"])?;
        let changed = [&["status", "--porcelain", "--"][..], source.depends].concat();
        if !line("git", &changed)?.is_empty() {
            commit += CHANGED;
        }
        Ok(Some(Self { source, file, commit }))
    }

    pub(crate) fn variable(&self) -> (&'static str, &PathBuf) {
        (FILE, &self.file)
    }

    /// Keeps what the command has found, if it has found anything, and renders the page.
    pub(crate) fn keep(&self, words: &[&str]) -> Outcome {
        if !self.file.exists() {
            return Ok(());
        }
        let cores = std::thread::available_parallelism()?;
        let kept = Kept {
            command: ["cargo xtask", self.source.program]
                .into_iter()
                .chain(words.iter().copied())
                .collect::<Vec<_>>()
                .join(" "),
            commit: self.commit.clone(),
            date: line("date", &["-u", "+%Y-%m-%d"])?,
            machine: format!("{cores} cores, {}", line("uname", &["-sm"])?),
            lines: Kept::lines(&fs::read_to_string(&self.file)?),
        };
        fs::write(self.source.path(), kept.to_text())?;
        write()
    }
}

/// What a program prints.
fn line(name: &str, arguments: &[&str]) -> Outcome<String> {
    Ok(read(&mut program(name, arguments))?.trim().to_owned())
}

/// Behind a commit if files had changed since.
const CHANGED: &str = " with changes";

impl Source {
    fn path(&self) -> PathBuf {
        root().join("tests/results").join(format!("{}.tsv", self.name))
    }

    /// Without the options of a certain run.
    fn command(&self) -> String {
        let words = ["cargo xtask", self.program].into_iter().chain(self.with);
        words.collect::<Vec<_>>().join(" ")
    }

    fn kept(&self) -> Outcome<Option<Kept>> {
        let path = self.path();
        if !path.exists() {
            return Ok(None);
        }
        let kept = Kept::of(&fs::read_to_string(&path)?);
        kept.map(Some).ok_or_else(|| format!("{} has no command, commit or date", path.display()).into())
    }

    /// The commits since this one that changed a file on which the result depends, the newest
    /// first.
    fn later_changes(&self, kept: &Kept) -> Outcome<Vec<String>> {
        let commit = kept.commit.strip_suffix(CHANGED).unwrap_or(&kept.commit);
        let range = format!("{commit}..HEAD");
        let words = [&["log", "--format=%h %s", &range, "--"][..], self.depends, &NOT_THESE].concat();
        Ok(read(&mut program("git", &words))?.lines().map(str::to_owned).collect())
    }
}

pub(crate) fn run(options: &[&str]) -> Outcome {
    match options {
        [] => list(),
        ["--write"] => write(),
        ["-h" | "--help"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => Err("try cargo xtask results --help".into()),
    }
}

fn list() -> Outcome {
    for source in &SOURCES {
        let Some(kept) = source.kept()? else {
            println!("{:<12} never", source.name);
            continue;
        };
        let later = source.later_changes(&kept)?;
        let age = match later.first() {
            None if kept.commit.ends_with(CHANGED) => "of files that were not committed".to_owned(),
            None => "up to date".to_owned(),
            Some(last) => format!("commits since then: {}, the last {last}", later.len()),
        };
        println!("{:<12} {} {}: {age}", source.name, kept.date, kept.commit);
    }
    Ok(())
}

/// The rows of a table in the last result of a command, without the names of its columns.
pub(crate) fn table(source: &str, table: &str) -> Outcome<Vec<Vec<String>>> {
    let source = SOURCES.iter().find(|one| one.name == source);
    let kept = source.map_or(Ok(None), Source::kept)?;
    Ok(kept.iter().flat_map(|kept| kept.table(table).skip(1)).map(<[String]>::to_vec).collect())
}

/// The commands whose last results depend on one of these files, as they were last given.
pub(crate) fn depending_on(files: &[String]) -> Outcome<Vec<Vec<String>>> {
    let mut commands = Vec::new();
    for source in &SOURCES {
        if files.iter().any(|file| source.depends.iter().any(|path| file.starts_with(path))) {
            let command = source.kept()?.map_or_else(|| source.command(), |kept| kept.command);
            commands.push(command.split(' ').skip(1).map(str::to_owned).collect());
        }
    }
    Ok(commands)
}

/// What is rendered, and the file of each.
fn rendered() -> Outcome<Vec<(PathBuf, String)>> {
    let mut all = Vec::new();
    for source in &SOURCES {
        all.push((source, source.kept()?));
    }
    let kept: BTreeMap<_, _> =
        all.iter().filter_map(|(source, kept)| Some((source.name, kept.as_ref()?))).collect();
    let mut files = inserted::pages(&kept)?;
    files.push((root().join(PAGE), page::of(&all)));
    if let Some(kept) = kept.get(PICTURED) {
        files.push((root().join(PICTURE), picture::of(kept)));
    }
    Ok(files)
}

fn write() -> Outcome {
    for (file, content) in rendered()? {
        fs::write(file, content)?;
    }
    Ok(())
}

/// Whether everything that is rendered from the files is what they say.
pub(crate) fn check() -> Outcome {
    for (file, content) in rendered()? {
        if fs::read_to_string(&file).ok() != Some(content) {
            return Err(
                format!("{} is not what its data says: cargo xtask results --write", file.display()).into()
            );
        }
    }
    Ok(())
}
