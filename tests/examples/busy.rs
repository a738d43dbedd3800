//! Measures how long locks and releases take on a busy host. The default of `request_timeout` was
//! chosen by these figures.
//!
//!     cargo xtask busy [ROUNDS [LOAD ...]]
//!
//! Three servers and one client run beside each load in turn: `loops:16` are busy loops, `shells:8`
//! are shells that start one program after the other, and `writers:4` write to disk.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use quorlock_blocking::Config;
use quorlock_tests::masters;

/// A request timeout so large that no master counts as silent, so that the longest times are seen.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause between a lock and its release, in which other processes get the processor.
const HOLD: Duration = Duration::from_millis(1);

/// Processes that keep the host busy until this is dropped.
struct Load(Vec<Child>);

impl Load {
    fn start(name: &str) -> Result<Self, Box<dyn Error>> {
        let (kind, number) = name.split_once(':').ok_or("a load is KIND:NUMBER")?;
        let script = match kind {
            "loops" => "while :; do :; done",
            "shells" => "while :; do /bin/true; done",
            "writers" => {
                "f=$(mktemp); trap 'rm -f $f; exit' TERM; while :; do dd if=/dev/zero of=$f bs=1M count=64 conv=fsync 2>/dev/null; done"
            }
            _ => return Err("a load is of loops, shells or writers".into()),
        };
        let start = |_| Command::new("sh").args(["-c", script]).spawn();
        Ok(Self((0..number.parse()?).map(start).collect::<Result<_, _>>()?))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = Command::new("kill").arg(child.id().to_string()).status();
            let _ = child.wait();
        }
    }
}

fn print(what: &str, load: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: usize| times.get((times.len() * part / 1_000).min(times.len().saturating_sub(1)));
    let [half, most, all] = [500, 999, 1_000].map(|part| at(part).copied().unwrap_or_default());
    let above = |millis| times.iter().filter(|time| **time > Duration::from_millis(millis)).count();
    println!(
        "{load:12} {what:8} {:6} times: median {half:.2?}, 99.9 % {most:.1?}, longest {all:.1?}; {} above 50 ms, {} above 200 ms",
        times.len(),
        above(50),
        above(200)
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(6_000), |rounds| rounds.parse())?;
    let mut loads: Vec<String> = arguments.collect();
    if loads.is_empty() {
        loads = ["loops:16", "shells:8", "writers:4", "loops:32"].map(str::to_owned).to_vec();
    }
    let servers = masters(3);
    let config = Config::builder(servers.urls()).request_timeout(PATIENCE).connect_timeout(PATIENCE);
    let locker = quorlock_blocking::open(config.ttl(3 * PATIENCE).timeout(PATIENCE).build()?)?;
    locker.lock("job").wait()?.release().wait()?;
    for name in loads {
        let _load = Load::start(&name)?;
        let (mut locks, mut releases) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let since = Instant::now();
            let guard = locker.lock("job").wait()?;
            locks.push(since.elapsed());
            thread::sleep(HOLD);
            let since = Instant::now();
            guard.release().wait()?;
            releases.push(since.elapsed());
        }
        print("locks", &name, locks);
        print("releases", &name, releases);
    }
    Ok(())
}
