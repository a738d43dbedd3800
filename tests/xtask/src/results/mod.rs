//! The last results of the commands that measure or prove, as data in `tests/results`, and the page
//! that is rendered from them.

mod kept;
mod page;

use std::fs;
use std::path::PathBuf;

use crate::Outcome;
use crate::process::{program, read, root, target};
pub(crate) use kept::Kept;

const HELP: &str = "\
The last results of the commands that measure or prove: tests/results has a file of each.

cargo xtask results           lists them, with those that are older than the files they depend on
cargo xtask results --write   renders tests/results/README.md from the files";

/// The variable that tells a program where to write its results.
const FILE: &str = "QUORLOCK_RESULTS";
const PAGE: &str = "tests/results/README.md";

/// A command whose last result is kept.
pub(crate) struct Source {
    /// Of its file.
    pub(crate) name: &'static str,
    /// The program that writes it,
    program: &'static str,
    /// with this argument, or without one that others have.
    with: Option<&'static str>,
    /// What its page says about it.
    pub(crate) about: &'static str,
    /// The files that can change its result.
    depends: &'static [&'static str],
}

/// What every run of clients on real servers depends on.
const CLIENTS: [&str; 3] = ["core/src", "transport-blocking/src", "transport-blocking/host/src"];

const FAILOVERS: [&str; 5] = [CLIENTS[0], CLIENTS[1], CLIENTS[2], "tests/src/chaos", "tests/src/failover"];

const WORLDS: [&str; 2] = ["core/src", "core/sim/src"];

/// Of several with an argument of a call, the last one is its source.
const SOURCES: [Source; 17] = [
    Source {
        name: "chaos",
        program: "chaos",
        with: None,
        about: "clients contend while masters and clients are killed, stopped and emptied",
        depends: &[CLIENTS[0], CLIENTS[1], CLIENTS[2], "tests/src/chaos"],
    },
    Source {
        name: "failover",
        program: "failover",
        with: None,
        about: "clients contend while primaries under sentinels fail over",
        depends: &FAILOVERS,
    },
    Source {
        name: "failover-by-name",
        program: "failover",
        with: Some("--by-name"),
        about: "the same, by a name that leads to the primary",
        depends: &FAILOVERS,
    },
    Source {
        name: "failover-cluster",
        program: "failover",
        with: Some("--cluster"),
        about: "the same in a cluster, whose slots also move",
        depends: &FAILOVERS,
    },
    Source {
        name: "replacing",
        program: "replacing",
        with: None,
        about: "dead masters are replaced while clients run, in the right order and in wrong ones",
        depends: &[
            CLIENTS[0],
            "transport-tokio/src",
            "transport-smol/src",
            CLIENTS[1],
            "tests/src/replacing",
        ],
    },
    Source {
        name: "votes",
        program: "votes",
        with: None,
        about: "which votes are counted, after every history of a server, beside the rule",
        depends: &[CLIENTS[0], CLIENTS[1], CLIENTS[2], "tests/shared/votes"],
    },
    Source {
        name: "simulate",
        program: "simulate",
        with: None,
        about: "simulated worlds with exclusive locks",
        depends: &WORLDS,
    },
    Source {
        name: "simulate-mixed",
        program: "simulate",
        with: Some("--mixed"),
        about: "worlds with locks of every kind on the same names",
        depends: &WORLDS,
    },
    Source {
        name: "simulate-fair",
        program: "simulate",
        with: Some("--fair"),
        about: "worlds in which most clients wait fairly",
        depends: &WORLDS,
    },
    Source {
        name: "simulate-failovers",
        program: "simulate",
        with: Some("--failovers"),
        about: "worlds in which masters with replicas fail over",
        depends: &WORLDS,
    },
    Source {
        name: "simulate-clusters",
        program: "simulate",
        with: Some("--clusters"),
        about: "the same, in clusters whose slots move",
        depends: &WORLDS,
    },
    Source {
        name: "simulate-rebuilds",
        program: "simulate",
        with: Some("--rebuilds"),
        about: "worlds in which masters come back with older data or with that of others",
        depends: &WORLDS,
    },
    Source {
        name: "simulate-handovers",
        program: "simulate",
        with: Some("--handovers"),
        about: "worlds in which locks are handed over while requests are under way",
        depends: &WORLDS,
    },
    Source {
        name: "simulate-replacements",
        program: "simulate",
        with: Some("--replacements"),
        about: "worlds in which a dead master is replaced",
        depends: &WORLDS,
    },
    Source {
        name: "cost",
        program: "cost",
        with: None,
        about: "what fencing, the restart guard and healing cost",
        depends: &CLIENTS,
    },
    Source {
        name: "changes",
        program: "changes",
        with: None,
        about: "small changes of the core, each of which a test must notice",
        depends: &["core/src", "core/tests", "core/sim/tests", "tests/changes"],
    },
    Source {
        name: "supervision",
        program: "supervision",
        with: None,
        about: "what `quorlock run` ends, and when",
        depends: &["transport-blocking/command/src", "tests/src/supervision"],
    },
];

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
        let words = [&["log", "--format=%h %s", &range, "--"][..], self.depends].concat();
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

fn rendered() -> Outcome<String> {
    let mut all = Vec::new();
    for source in &SOURCES {
        all.push((source, source.kept()?));
    }
    Ok(page::of(&all))
}

fn write() -> Outcome {
    Ok(fs::write(root().join(PAGE), rendered()?)?)
}

/// Whether the page is what is rendered from the files.
pub(crate) fn check() -> Outcome {
    if fs::read_to_string(root().join(PAGE))? == rendered()? {
        return Ok(());
    }
    Err(format!("{PAGE} is not what its data says: cargo xtask results --write").into())
}
