//! The programs of tests that judge changes, and which changes each of their tests reaches.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Outcome;
use crate::copy::Copy;

/// A package, and its tests; `None` are its unit tests. The cheapest come first.
const JUDGES: [(&str, Option<&str>); 10] = [
    ("quorlock-core", None),
    ("quorlock-core", Some("scripted")),
    ("quorlock-core", Some("corpus")),
    ("quorlock-core", Some("observing")),
    ("quorlock-core", Some("front")),
    ("quorlock-sim", None),
    ("quorlock-sim", Some("claims")),
    ("quorlock-sim", Some("simulation")),
    ("quorlock-tests", Some("claims")),
    ("quorlock-tests", Some("differential")),
];
/// Where the packages are.
const FOLDERS: [(&str, &str); 3] =
    [("quorlock-core", "core"), ("quorlock-sim", "core/sim"), ("quorlock-tests", "tests")];
/// Those with real servers: only these see the text of a script.
const REAL: [usize; 2] = [8, 9];
/// How many processes run at once, and how many tests in each of them.
pub(crate) const AT_ONCE: usize = 2;
const THREADS: &str = "--test-threads=2";
/// The memory limit of a process, in KiB. A test that spins may also allocate without end.
const MOST_MEMORY: u64 = 8 << 20;
/// SIGXCPU, on Linux and macOS: the process has used a processor for too long.
const OUT_OF_TIME: i32 = 24;
/// How many times as long it may take by the clock. Less: a survivor counts as endless while the
/// machine is busy with other things, above all with the servers of the tests.
const BY_THE_CLOCK: u32 = 20;
/// Tests that take longer, each alone, do not judge: a change that survives would cost minutes.
/// Those on real servers do, because nothing else judges scripts.
const LONGEST_TEST: Duration = Duration::from_secs(2);
const LONGEST_REAL: Duration = Duration::from_secs(20);
/// The commands that the differential test sends: fewer than by default, and enough for each script
/// to succeed some ten times.
const COMMANDS: &str = "20000";

/// A program of tests.
struct Judge {
    name: String,
    program: PathBuf,
    folder: PathBuf,
}

/// A test, and what it does without any change.
pub(crate) struct Test {
    pub(crate) judge: usize,
    pub(crate) name: String,
    pub(crate) time: Duration,
    /// The numbers of the changes that it reaches.
    pub(crate) reached: BTreeSet<usize>,
}

impl Test {
    pub(crate) fn is_real(&self) -> bool {
        REAL.contains(&self.judge)
    }
}

/// How tests ended with a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// None failed.
    Well,
    /// This one failed, or the process died.
    Failed(String),
    /// They did not end in time.
    Never,
}

pub(crate) struct Judges {
    judges: Vec<Judge>,
    pub(crate) tests: Vec<Test>,
}

impl Judges {
    /// Builds the tests of the copy, and runs each of them once without a change, alone.
    pub(crate) fn build(copy: &Copy, print: u64) -> Outcome<Self> {
        let judges = build(copy)?;
        let known = copy.place.join("reached.tsv");
        let tests = match fs::read_to_string(&known).ok().and_then(|text| read(&text, print)) {
            Some(tests) => tests,
            None => {
                let tests = trace(&judges, &copy.place)?;
                fs::write(&known, written(&tests, print))?;
                tests
            }
        };
        Ok(Self { judges, tests })
    }

    /// The name of the judge of a test.
    pub(crate) fn name(&self, test: usize) -> &str {
        let judge = self.tests.get(test).and_then(|test| self.judges.get(test.judge));
        judge.map_or("", |judge| &judge.name)
    }

    /// Runs tests of one judge with a change, until the first one fails.
    pub(crate) fn run(&self, number: usize, tests: &[usize]) -> Outcome<Ended> {
        let tests: Vec<_> = tests.iter().filter_map(|test| self.tests.get(*test)).collect();
        let judge = tests.first().and_then(|test| self.judges.get(test.judge)).ok_or("no test")?;
        let names: Vec<_> = tests.iter().map(|test| test.name.as_str()).collect();
        let total: Duration = tests.iter().map(|test| test.time).sum();
        // Longer than they take without the change.
        let limit = Duration::from_secs(2) + 2 * total;
        judge.run(&names, &[("QUORLOCK_CHANGE", &number.to_string())], limit)
    }
}

impl Judge {
    /// Each process may use a processor for this long: how busy the machine is with other things
    /// changes nothing in that.
    fn command(&self, variables: &[(&str, &str)], limit: Duration) -> Command {
        let seconds = limit.as_secs() + 1;
        let limited = format!("ulimit -v {MOST_MEMORY} 2>/dev/null; ulimit -S -t {seconds}; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &limited, "sh"]).arg(&self.program).current_dir(&self.folder);
        command.env("CARGO_MANIFEST_DIR", &self.folder).envs(variables.iter().copied());
        // The same random cases for each change, and none that an earlier one has left behind.
        command.envs([("PROPTEST_RNG_SEED", "1"), ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")]);
        command.envs([("PROPTEST_MAX_SHRINK_ITERS", "0"), ("RUST_BACKTRACE", "0")]);
        command.env("QUORLOCK_DIFFERENTIAL_COMMANDS", COMMANDS);
        command
    }

    fn run(&self, names: &[&str], variables: &[(&str, &str)], limit: Duration) -> Outcome<Ended> {
        let mut command = self.command(variables, limit);
        command.args(["--exact", THREADS]).args(names).process_group(0);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdout = child.stdout.take().ok_or("the output is a pipe")?;
        let (send, lines) = channel();
        thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| send.send(line))
        });
        // Tests that wait for each other use no processor.
        let end = Instant::now() + BY_THE_CLOCK * limit;
        let ended = loop {
            match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    let failed = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED"));
                    if let Some(name) = failed {
                        break Ended::Failed(name.to_owned());
                    }
                }
                Err(RecvTimeoutError::Timeout) => break Ended::Never,
                Err(RecvTimeoutError::Disconnected) => {
                    let status = child.wait()?;
                    break match status.signal() {
                        _ if status.success() => Ended::Well,
                        Some(OUT_OF_TIME) => Ended::Never,
                        _ => Ended::Failed(format!("(the process of {}: {status})", self.name)),
                    };
                }
            }
        };
        kill(&mut child)?;
        Ok(ended)
    }
}

/// Kills a process and its children, and waits for it.
fn kill(child: &mut Child) -> Outcome {
    let group = format!("-{}", child.id());
    // It may have ended, with all of its children.
    Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status()?;
    child.wait()?;
    Ok(())
}

fn build(copy: &Copy) -> Outcome<Vec<Judge>> {
    let mut words = vec!["test", "--no-run", "--profile", "mutants", "--lib"];
    words.extend(["--features", "quorlock-core/tracing,quorlock-core/serde"]);
    for (package, test) in JUDGES {
        words.extend(["-p", package]);
        words.extend(test.into_iter().flat_map(|test| ["--test", test]));
    }
    let said = copy.cargo(&words).stderr(Stdio::inherit()).output()?;
    if !said.status.success() {
        return Err("the tests of the copy do not build".into());
    }
    let lines = String::from_utf8_lossy(&said.stdout).into_owned();
    let built: Vec<_> = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect();
    JUDGES.iter().map(|judge| find(&built, *judge)).collect()
}

fn find(built: &[Value], (package, test): (&str, Option<&str>)) -> Outcome<Judge> {
    let name = format!("{package} {}", test.unwrap_or("(unit tests)"));
    let folder = FOLDERS.iter().find(|(of, _)| *of == package).map_or(package, |(_, folder)| folder);
    let manifest = format!("tree/{folder}/Cargo.toml");
    let is_it = |artifact: &&Value| {
        let is_of = artifact["manifest_path"].as_str().is_some_and(|path| path.ends_with(&manifest));
        let target = &artifact["target"];
        let is_test = test.map_or(target.pointer("/kind/0").is_some_and(|kind| kind == "lib"), |test| {
            target["name"] == test
        });
        is_of
            && is_test
            && artifact["executable"].is_string()
            && artifact.pointer("/profile/test").is_some_and(|is_test| is_test == true)
    };
    let artifact = built.iter().find(is_it).ok_or_else(|| format!("cargo built no {name}"))?;
    let path = |value: &Value| value.as_str().map(PathBuf::from);
    let program = path(&artifact["executable"]).ok_or("a program has a path")?;
    let manifest = path(&artifact["manifest_path"]).ok_or("a package has a manifest")?;
    let folder = manifest.parent().ok_or("a manifest is in a folder")?.to_owned();
    Ok(Judge { name, program, folder })
}

/// Runs each test alone, and notes which changes it reaches.
fn trace(judges: &[Judge], place: &Path) -> Outcome<Vec<Test>> {
    let mut names = Vec::new();
    for (at, judge) in judges.iter().enumerate() {
        let listed = judge.command(&[], LONGEST_REAL).args(["--list", "--format", "terse"]).output()?.stdout;
        let listed = String::from_utf8(listed)?;
        let tests = listed.lines().filter_map(|line| line.strip_suffix(": test"));
        names.extend(tests.map(|name| (at, name.to_owned())));
    }
    let all = names.len();
    eprintln!("running each of {all} tests once without a change");
    let (names, tests) = (Mutex::new(names.into_iter()), Mutex::new(Vec::new()));
    let next = || names.lock().ok()?.next();
    let work = |worker: usize| -> Result<(), String> {
        while let Some((at, name)) = next() {
            let judge = judges.get(at).ok_or("a judge")?;
            let test = trace_one(judge, at, &name, &place.join(format!("reached-{worker}")));
            let test = test.map_err(|error| format!("{}: {name}: {error}", judge.name))?;
            tests.lock().map_err(|error| error.to_string())?.extend(test);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|worker| scope.spawn(move || work(worker))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker panicked")?)
    })?;
    let mut tests = tests.into_inner()?;
    eprintln!("{} tests take longer than others, and do not judge", all - tests.len());
    tests.sort_by(|one: &Test, other| (one.judge, &one.name).cmp(&(other.judge, &other.name)));
    Ok(tests)
}

/// `None` if it takes too long. It runs twice: noting what it reaches takes longer than most tests.
fn trace_one(judge: &Judge, at: usize, name: &str, file: &Path) -> Outcome<Option<Test>> {
    let longest = if REAL.contains(&at) { LONGEST_REAL } else { LONGEST_TEST };
    let start = Instant::now();
    let ended = judge.run(&[name], &[], longest)?;
    let time = start.elapsed();
    if ended == Ended::Never || time > longest {
        return Ok(None);
    }
    fs::File::create(file)?.flush()?;
    let variable = file.to_string_lossy();
    match judge.run(&[name], &[("QUORLOCK_REACHED", &variable)], 2 * LONGEST_REAL)? {
        Ended::Well => {}
        Ended::Never => return Err("it does not end while what it reaches is noted".into()),
        Ended::Failed(by) => return Err(format!("{by} fails without any change").into()),
    }
    let reached = fs::read_to_string(file)?.lines().filter_map(|number| number.parse().ok()).collect();
    Ok(Some(Test { judge: at, name: name.to_owned(), time, reached }))
}

fn written(tests: &[Test], print: u64) -> String {
    let mut text = format!("{print:016x}\n");
    for Test { judge, name, time, reached } in tests {
        let reached: Vec<_> = reached.iter().map(usize::to_string).collect();
        text += &format!("{judge}\t{name}\t{}\t{}\n", time.as_micros(), reached.join(" "));
    }
    text
}

fn read(text: &str, print: u64) -> Option<Vec<Test>> {
    let mut lines = text.lines();
    if lines.next()? != format!("{print:016x}") {
        return None;
    }
    let test = |line: &str| {
        let mut fields = line.split('\t');
        let (judge, name) = (fields.next()?.parse().ok()?, fields.next()?.to_owned());
        let time = Duration::from_micros(fields.next()?.parse().ok()?);
        let reached = fields.next()?.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        Some(Test { judge, name, time, reached })
    };
    lines.map(test).collect()
}
