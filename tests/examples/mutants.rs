//! Puts known faults into the core, one at a time, and asks its tests whether they notice.
//!
//! `cargo run -p quorlock-tests --example mutants -- [--shard K/N] [--only NAME] [--quick] [--list]`
//!
//! Each file of `tests/mutants` is one fault: a line that says what it does, then a patch of the real source. It is put into a
//! copy of the workspace, the core's tests run there, and those that fail are its catchers. What was found stands in
//! `results.tsv` beside the copy, so that a run that was broken off goes on where it was: a result is used again
//! as long as neither the patch nor the core has changed. The table goes to standard output.
//!
//! With `--quick` a fault that the core's own tests catch is not put to those of the simulation and of
//! the search, which take several times as long.
//!
//! A patch that does not apply and a fault that does not build are errors, not catches.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process_group, setrlimit};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The core's tests take a few seconds; a fault that keeps them busy for longer makes them spin.
const LONGEST_TEST: Duration = Duration::from_secs(120);
const LONGEST_BUILD: Duration = Duration::from_secs(900);
/// A test that spins may also gather memory until the machine has none.
const MOST_MEMORY: u64 = 12 << 30;
/// The packages whose tests look for faults, the quickest first.
const PACKAGES: [&str; 3] = ["quorlock-core", "quorlock-sim", "quorlock-search"];
/// The name under which the unchanged core is tested first.
const UNCHANGED: &str = "(unchanged)";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every fault was caught.
fn run() -> Outcome<bool> {
    let wishes = Wishes::read(std::env::args().skip(1))?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the tests stand in a workspace")?;
    let faults = wishes.choose(Fault::all(&root.join("tests/mutants"))?)?;
    if wishes.list {
        faults.iter().for_each(|fault| println!("{}: {}", fault.name, fault.what));
        return Ok(true);
    }
    let limit = getrlimit(Resource::As);
    let current = Some(MOST_MEMORY.min(limit.maximum.unwrap_or(u64::MAX)));
    setrlimit(Resource::As, Rlimit { current, ..limit })?;

    let place = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let place = place.join("mutants");
    let bench = Bench::set_up(root, place.join(format!("shard-{}-of-{}", wishes.shard.0, wishes.shard.1)))?;
    for fault in &faults {
        bench.apply(fault, true)?;
    }
    let mut results = Results::open(place.join("results.tsv"))?;
    let unchanged = Fault { name: UNCHANGED.to_owned(), what: String::new(), patch: String::new() };
    for fault in std::iter::once(&unchanged).chain(&faults) {
        if bench.found(&results, fault, wishes.quick).is_none() {
            results.note(bench.play(fault, wishes.quick)?)?;
        }
        let found = bench.found(&results, fault, wishes.quick).ok_or("a result can be read")?;
        eprintln!("{:55} {}", found.name, found.summary());
        if fault.name == UNCHANGED && found.is_caught() {
            return Err(format!("the tests fail without any fault: {:?}", found.failed).into());
        }
    }
    let found: Vec<_> = faults
        .iter()
        .filter_map(|fault| Some((fault, bench.found(&results, fault, wishes.quick)?)))
        .collect();
    print!("{}", table(&found));
    Ok(found.iter().all(|(_, found)| found.is_caught()))
}

/// What the command line asks for.
struct Wishes {
    shard: (usize, usize),
    only: Option<String>,
    quick: bool,
    list: bool,
}

impl Wishes {
    fn read(mut words: impl Iterator<Item = String>) -> Outcome<Self> {
        let mut wishes = Self { shard: (1, 1), only: None, quick: false, list: false };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--list" => wishes.list = true,
                "--quick" => wishes.quick = true,
                "--only" => wishes.only = Some(words.next().ok_or("--only NAME")?),
                "--shard" => {
                    let shard = words.next().ok_or("--shard K/N")?;
                    let (k, n) = shard.split_once('/').ok_or("--shard K/N, as in 1/4")?;
                    wishes.shard = (k.parse()?, n.parse()?);
                    if wishes.shard.0 == 0 || wishes.shard.0 > wishes.shard.1 {
                        return Err("--shard K/N counts from 1/N to N/N".into());
                    }
                }
                other => return Err(format!("{other} is none of --shard, --only, --quick and --list").into()),
            }
        }
        Ok(wishes)
    }

    fn choose(&self, faults: Vec<Fault>) -> Outcome<Vec<Fault>> {
        let (k, n) = self.shard;
        let chosen: Vec<_> = faults
            .into_iter()
            .filter(|fault| self.only.as_ref().is_none_or(|only| *only == fault.name))
            .enumerate()
            .filter_map(|(place, fault)| (place % n + 1 == k).then_some(fault))
            .collect();
        if chosen.is_empty() { Err("there is no such fault in tests/mutants".into()) } else { Ok(chosen) }
    }
}

/// One file of `tests/mutants`.
struct Fault {
    name: String,
    what: String,
    patch: String,
}

impl Fault {
    fn all(folder: &Path) -> Outcome<Vec<Self>> {
        let mut faults = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let patch = fs::read_to_string(&path)?;
            let what = patch.lines().next().unwrap_or_default().to_owned();
            faults.push(Self { name, what, patch });
        }
        faults.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(faults)
    }

    fn files(&self) -> impl Iterator<Item = &str> {
        self.patch.lines().filter_map(|line| line.strip_prefix("+++ b/"))
    }
}

/// A copy of the workspace, and where it is built.
struct Bench {
    root: PathBuf,
    place: PathBuf,
    /// Of everything that the core's tests are made of.
    core: u64,
}

impl Bench {
    fn set_up(root: &Path, place: PathBuf) -> Outcome<Self> {
        let tree = place.join("tree");
        if tree.exists() {
            fs::remove_dir_all(&tree)?;
        }
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()?;
        let mut core = DefaultHasher::new();
        let names: BTreeSet<_> = String::from_utf8(listed.stdout)?.split('\0').map(str::to_owned).collect();
        for name in names.iter().filter(|name| root.join(name).is_file()) {
            let copy = tree.join(name);
            fs::create_dir_all(copy.parent().ok_or("a file stands in a folder")?)?;
            fs::copy(root.join(name), &copy)?;
            if name.starts_with("core/")
                || name.starts_with("tests/search/")
                || matches!(name.as_str(), "Cargo.toml" | "Cargo.lock")
            {
                (name, fs::read(&copy)?).hash(&mut core);
            }
        }
        Ok(Self { root: root.to_owned(), place, core: core.finish() })
    }

    /// Says whether a result still holds, and whether it is one of all tests or of the core's alone.
    fn fingerprint(&self, fault: &Fault, core_only: bool) -> u64 {
        let mut print = DefaultHasher::new();
        (self.core, &fault.patch).hash(&mut print);
        if core_only {
            "of the core's tests".hash(&mut print);
        }
        print.finish()
    }

    /// A result of all tests, or of the core's alone if these are enough.
    fn found<'a>(&self, results: &'a Results, fault: &Fault, quick: bool) -> Option<&'a Found> {
        let all = results.of(fault, self.fingerprint(fault, false));
        all.or_else(|| results.of(fault, self.fingerprint(fault, true)).filter(|_| quick))
    }

    fn apply(&self, fault: &Fault, only_try: bool) -> Outcome<()> {
        let patch = self.root.join("tests/mutants").join(format!("{}.patch", fault.name));
        let mut git = Command::new("git");
        // Git must not take the copy for a part of the repository around it: it would skip the patch without a word.
        git.env("GIT_CEILING_DIRECTORIES", &self.place).current_dir(self.place.join("tree")).arg("apply");
        let said = git.args(only_try.then_some("--check")).arg(&patch).output()?;
        let files = fault.files().collect::<Vec<_>>();
        if !said.status.success() || files.is_empty() {
            let text = String::from_utf8_lossy(&said.stderr);
            return Err(format!("tests/mutants/{}.patch does not apply any more: {text}", fault.name).into());
        }
        for file in files.into_iter().filter(|_| !only_try) {
            if fs::read(self.root.join(file))? == fs::read(self.place.join("tree").join(file))? {
                return Err(format!("tests/mutants/{}.patch leaves {file} as it was", fault.name).into());
            }
        }
        Ok(())
    }

    /// Builds and tests the core with one fault in it, and takes the fault out again.
    fn play(&self, fault: &Fault, quick: bool) -> Outcome<Found> {
        if fault.name != UNCHANGED {
            self.apply(fault, false)?;
        }
        let (first, rest) = PACKAGES.split_at(if quick { 1 } else { PACKAGES.len() });
        let mut found = self.test(fault, first, self.fingerprint(fault, quick))?;
        if quick && !found.is_caught() {
            found = self.test(fault, rest, self.fingerprint(fault, false))?;
        }
        for file in fault.files() {
            fs::copy(self.root.join(file), self.place.join("tree").join(file))?;
        }
        Ok(found)
    }

    /// Builds and tests the packages of the copy as it is.
    fn test(&self, fault: &Fault, packages: &[&str], print: u64) -> Outcome<Found> {
        let built = self.cargo(packages, "--no-run", fault, LONGEST_BUILD)?;
        if !built.is_some_and(|status| status.success()) {
            let log = self.log(fault);
            return Err(format!("{} does not build: see {}", fault.name, log.display()).into());
        }
        let start = Instant::now();
        let ended = self.cargo(packages, "--no-fail-fast", fault, LONGEST_TEST)?;
        let seconds = start.elapsed().as_secs_f32();
        let log = String::from_utf8_lossy(&fs::read(self.log(fault))?).into_owned();
        let failed: BTreeSet<_> = log.lines().filter_map(failed_test).map(str::to_owned).collect();
        let ended = ended.filter(|status| status.success() || !log.contains("(signal: "));
        if ended.is_some_and(|status| status.success() != failed.is_empty()) {
            return Err(format!("{}: it is not clear what failed: {log}", fault.name).into());
        }
        Ok(Found { name: fault.name.clone(), print, seconds, ended: ended.is_some(), failed })
    }

    fn log(&self, fault: &Fault) -> PathBuf {
        self.place.join(format!("{}.log", fault.name.trim_matches(['(', ')'])))
    }

    /// `None` if it had to be ended.
    fn cargo(
        &self,
        packages: &[&str],
        word: &str,
        fault: &Fault,
        limit: Duration,
    ) -> Outcome<Option<ExitStatus>> {
        let log = File::create(self.log(fault))?;
        let mut child = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .arg("test")
            .args(packages.iter().flat_map(|package| ["-p", package]))
            .args(["--profile", "mutants", "--tests", word])
            .current_dir(self.place.join("tree"))
            .env("CARGO_TARGET_DIR", self.place.join("build"))
            // The same cases in each run, and none that an earlier fault left behind.
            .envs([("PROPTEST_RNG_SEED", "1"), ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")])
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()?;
        let start = Instant::now();
        while start.elapsed() < limit {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        // Cargo's children with it: they are what spins.
        kill_process_group(Pid::from_child(&child), Signal::KILL)?;
        child.wait()?;
        Ok(None)
    }
}

/// `test votes::an_even_split ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// What the tests said to one fault.
struct Found {
    name: String,
    print: u64,
    seconds: f32,
    /// Whether the tests came to an end: neither spun nor were killed for the memory that they took.
    ended: bool,
    failed: BTreeSet<String>,
}

impl Found {
    fn is_caught(&self) -> bool {
        !self.ended || !self.failed.is_empty()
    }

    fn summary(&self) -> String {
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

/// All that has been found so far, also by runs before this one and by other shards.
struct Results {
    file: File,
    found: Vec<Found>,
}

impl Results {
    fn open(path: PathBuf) -> Outcome<Self> {
        let text = if path.exists() { fs::read_to_string(&path)? } else { String::new() };
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, found: text.lines().filter_map(Found::from_line).collect() })
    }

    fn of(&self, fault: &Fault, print: u64) -> Option<&Found> {
        self.found.iter().find(|found| found.name == fault.name && found.print == print)
    }

    fn note(&mut self, found: Found) -> Outcome<()> {
        self.file.write_all(found.to_line().as_bytes())?;
        self.found.push(found);
        Ok(())
    }
}

/// Names for each fault the three tests that say most about it: those that fail for the fewest other faults.
fn table(found: &[(&Fault, &Found)]) -> String {
    let mut faults_of: BTreeMap<&str, usize> = BTreeMap::new();
    for test in found.iter().flat_map(|(_, found)| &found.failed) {
        *faults_of.entry(test).or_default() += 1;
    }
    let mut rows = String::from("| fault | what it does | caught by |\n|---|---|---|\n");
    for (fault, found) in found {
        let mut tests: Vec<_> = found.failed.iter().map(String::as_str).collect();
        tests.sort_by_key(|test| (faults_of.get(test), *test));
        let mut caught: Vec<_> = tests.iter().take(3).map(|test| format!("`{test}`")).collect();
        match tests.len() {
            0 if found.ended => caught.push("**nothing**".to_owned()),
            0..=3 => {}
            many => caught.push(format!("{} more", many - 3)),
        }
        if !found.ended {
            caught.push("the clock: the tests do not end".to_owned());
        }
        rows += &format!("| `{}` | {} | {} |\n", fault.name, fault.what, caught.join(", "));
    }
    rows
}
