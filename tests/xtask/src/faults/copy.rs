//! A copy of the workspace with one fault in it.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use super::LONGEST_BUILD;
use super::fault::Fault;
use crate::check::models;
use crate::process::{files, root, run};
use crate::{Outcome, digests, tree};

/// The memory limit of a test, in KiB. A test that spins may also allocate until the machine has no
/// memory left.
const MOST_MEMORY: u64 = 12 << 20;

/// How many times as long a command may take by the clock as its processes may use a processor.
const BY_THE_CLOCK: u32 = 5;

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    Well,
    Badly,
    /// It was killed when its time was up.
    Never,
}

/// A copy of the workspace, and where it is built.
pub(super) struct Copy {
    place: PathBuf,
    /// A hash of everything that the tests of the core, the simulator and the search are built
    /// from.
    sources: u64,
}

impl Copy {
    /// Copies the working tree.
    pub(super) fn set_up(place: PathBuf) -> Outcome<Self> {
        let mut sources = DefaultHasher::new();
        for name in &tree::copy(&place.join("tree"))? {
            let is_source = ["core/", "tests/search/"].iter().any(|folder| name.starts_with(folder));
            if is_source || matches!(name.as_str(), "Cargo.toml" | "Cargo.lock") {
                (name, fs::read(root().join(name))?).hash(&mut sources);
            }
        }
        Ok(Self { place, sources: sources.finish() })
    }

    /// A number that tells whether a result is still valid, and whether it is of all tests or of
    /// the core's alone.
    pub(super) fn fingerprint(&self, fault: &Fault, core_only: bool) -> u64 {
        let mut print = DefaultHasher::new();
        (self.sources, &fault.patch, core_only).hash(&mut print);
        print.finish()
    }

    /// Fails if the patch does not apply any more.
    pub(super) fn try_out(&self, fault: &Fault) -> Outcome {
        self.git_apply(fault, &["--check"])
    }

    pub(super) fn apply(&self, fault: &Fault) -> Outcome {
        self.git_apply(fault, &[])?;
        for file in fault.files() {
            if fs::read(root().join(file))? == fs::read(self.place.join("tree").join(file))? {
                return Err(format!("{} leaves {file} as it was", fault.path()).into());
            }
        }
        if fault.changes_scripts() { self.renew_digests(fault) } else { Ok(()) }
    }

    /// No patch has the SHA-1 of a script that it changes: it would have to be made again with each
    /// other change of the script.
    fn renew_digests(&self, fault: &Fault) -> Outcome {
        let arguments: Vec<_> =
            ["test", "--profile", "mutants"].into_iter().chain(digests::TEST).map(str::to_owned).collect();
        self.cargo(&arguments, fault, LONGEST_BUILD)?;
        let said = fs::read(self.log(fault))?;
        match digests::write(&self.place.join("tree"), &String::from_utf8_lossy(&said))? {
            0 => Err(format!("{} changes no script: see {}", fault.path(), self.log(fault).display()).into()),
            _ => Ok(()),
        }
    }

    fn git_apply(&self, fault: &Fault, options: &[&str]) -> Outcome {
        let mut git = Command::new("git");
        git.current_dir(self.place.join("tree")).arg("apply").args(options).arg(root().join(fault.path()));
        // Git must not treat the copy as a part of the repository around it: it would skip the
        // patch silently.
        let said = git.env("GIT_CEILING_DIRECTORIES", &self.place).output()?;
        if !said.status.success() || fault.files().next().is_none() {
            let text = String::from_utf8_lossy(&said.stderr);
            return Err(format!("{} does not apply any more: {text}", fault.path()).into());
        }
        Ok(())
    }

    /// Puts the files back that a fault has changed.
    pub(super) fn take_out(&self, fault: &Fault) -> Outcome {
        // The digest of a script may be in another file than what is changed.
        let scripts = files()?.into_iter().filter(|file| file.starts_with(digests::SCRIPTS));
        let scripts = scripts.filter(|_| fault.changes_scripts());
        for file in fault.files().map(str::to_owned).chain(scripts) {
            fs::copy(root().join(&file), self.place.join("tree").join(&file))?;
        }
        Ok(())
    }

    /// What the last command for this fault printed.
    pub(super) fn log(&self, fault: &Fault) -> PathBuf {
        self.place.join(format!("{}.log", fault.name.trim_matches(['(', ')'])))
    }

    /// Runs cargo on the copy. Each process may use a processor for this long: how busy the machine
    /// is with other things changes nothing in that. Tests that wait for each other use none, so
    /// there is a limit by the clock too.
    pub(super) fn cargo(&self, arguments: &[String], fault: &Fault, limit: Duration) -> Outcome<Ended> {
        let log = File::create(self.log(fault))?;
        let seconds = limit.as_secs();
        let limited = format!("ulimit -v {MOST_MEMORY} 2>/dev/null; ulimit -S -t {seconds}; exec \"$@\"");
        let mut child = Command::new("sh")
            .args(["-c", &limited, "sh"])
            .arg(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(arguments)
            .current_dir(self.place.join("tree"))
            .env("CARGO_TARGET_DIR", self.place.join("build"))
            // Use the same random cases in each run, and none that an earlier fault has left
            // behind.
            .envs([("PROPTEST_RNG_SEED", "1"), ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")])
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()?;
        let start = Instant::now();
        while start.elapsed() < BY_THE_CLOCK * limit {
            if let Some(status) = child.try_wait()? {
                return Ok(if status.success() { Ended::Well } else { Ended::Badly });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        // Kill cargo's children too: they are the processes that spin.
        run(Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]))?;
        child.wait()?;
        Ok(Ended::Never)
    }

    /// Runs models on the copy, and returns what that prints.
    pub(super) fn models(&self, filter: &[String]) -> Outcome<String> {
        let filter: Vec<_> = filter.iter().map(String::as_str).collect();
        let mut cargo = models(&self.place.join("tree"), &filter);
        // Incremental, because little changes from one fault to the next.
        let said = cargo.envs([("CARGO_INCREMENTAL", "1"), ("RUST_BACKTRACE", "0")]).output()?;
        let log = String::from_utf8_lossy(&said.stdout).into_owned();
        if log.contains("test result:") {
            return Ok(log);
        }
        Err(format!("the models do not build: {}", String::from_utf8_lossy(&said.stderr)).into())
    }
}
