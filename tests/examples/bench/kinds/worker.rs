//! A process that takes turns with others, from this program. A line on its input is an order, and
//! lines on its output are answers.

use std::io::{self, BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use quorlock_core::Config;
use quorlock_core::front::Locker;
use quorlock_tests::chaos::history::now;
use quorlock_tests::{Random, Transport};

use super::kind::Kind;
use crate::handoff::Turn;

/// The first argument of a worker.
pub(crate) const WORKER: &str = "worker";
/// What workers that take turns want.
pub(crate) const RESOURCE: &str = "kinds";
/// The longest wait of a worker, so that a measurement ends.
const PATIENCE: Duration = Duration::from_secs(30);

/// Turns of some threads of one process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) kind: Kind,
    pub(crate) threads: usize,
    /// When it begins and ends, in nanoseconds of `history::now`.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// How long a thread holds the lock in each turn, and how long it rests afterwards.
    pub(crate) hold: Duration,
    pub(crate) rest: Duration,
}

/// A worker's process. Dropping it kills it, and it ends by itself when its input ends.
pub(crate) struct Worker {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    /// Starts a worker that is connected to these masters.
    pub(crate) fn start(masters: &[SocketAddr]) -> Self {
        let masters: Vec<_> = masters.iter().map(SocketAddr::to_string).collect();
        let mut command = Command::new(std::env::current_exe().expect("this program has a name"));
        command.args([super::NAME, WORKER, &masters.join(",")]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program can be started again");
        let orders = child.stdin.take().expect("a pipe");
        let answers = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut worker = Self { child, orders, answers };
        assert_eq!(worker.hear(), "ready");
        worker
    }

    /// Makes it work.
    pub(crate) fn work(&mut self, work: Work) {
        let Work { kind, threads, start, end, hold, rest } = work;
        self.tell(&format!("work {kind} {threads} {start} {end} {} {}", hold.as_micros(), rest.as_micros()));
    }

    /// Makes it take a lock and keep it for `hold`, which is also the TTL, without renewal. It
    /// answers with the time of the grant.
    pub(crate) fn keep(&mut self, kind: Kind, resource: &str, hold: Duration) {
        self.tell(&format!("keep {kind} {resource} {}", hold.as_micros()));
    }

    fn tell(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("the worker lives");
    }

    fn hear(&mut self) -> String {
        self.answers.next().expect("the worker lives").expect("the worker writes lines")
    }

    /// Waits for the turns of a working worker.
    pub(crate) fn turns(&mut self) -> Vec<Turn> {
        let mut turns = Vec::new();
        loop {
            match self.hear().as_str() {
                "done" => return turns,
                turn => turns.push(turn.parse().expect("a turn")),
            }
        }
    }

    /// Waits for the time of a grant.
    pub(crate) fn granted(&mut self) -> u64 {
        self.hear().parse().expect("a time")
    }

    /// SIGKILL, and waits for the end.
    pub(crate) fn kill(&mut self) {
        // An error means that the process has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A locker over these masters, on the blocking transport.
pub(crate) fn open(masters: &[SocketAddr]) -> Locker {
    let urls = masters.iter().map(|address| format!("redis://{address}"));
    let config = Config::builder(urls).timeout(PATIENCE).build().expect("usable settings");
    Transport::named("blocking").open(config)
}

/// The main function of a worker's process.
///
/// - `work KIND THREADS START END HOLD REST`: takes turns in this span; it answers each turn with a
///   line, and then `done`.
/// - `keep KIND RESOURCE HOLD`: takes a lock and keeps it for HOLD; it answers with the time of the
///   grant.
pub(crate) fn main(mut arguments: impl Iterator<Item = String>) -> io::Result<()> {
    let masters = arguments.next().expect("masters");
    let masters: Vec<SocketAddr> =
        masters.split(',').map(|address| address.parse().expect("a master")).collect();
    let locker = open(&masters);
    let mut random = Random::new(u64::from(std::process::id()));
    Kind::Lock.take(&locker, &format!("process {}", std::process::id()), &mut random).give_back();
    let mut output = io::stdout().lock();
    writeln!(output, "ready")?;
    for order in io::stdin().lines() {
        let order = order?;
        let words: Vec<&str> = order.split(' ').collect();
        let number = |word: &str| word.parse::<u64>().expect("a number");
        let micros = |word: &str| Duration::from_micros(number(word));
        match words.as_slice() {
            ["work", kind, threads, start, end, hold, rest] => {
                let work = Work {
                    kind: kind.parse().expect("a kind"),
                    threads: threads.parse().expect("a number"),
                    start: number(start),
                    end: number(end),
                    hold: micros(hold),
                    rest: micros(rest),
                };
                for turn in all_turns(&locker, work) {
                    writeln!(output, "{turn}")?;
                }
                writeln!(output, "done")?;
            }
            ["keep", kind, resource, hold] => {
                let kind: Kind = kind.parse().expect("a kind");
                let held = kind.take(&locker, resource, &mut random);
                writeln!(output, "{}", now())?;
                output.flush()?;
                thread::sleep(micros(hold));
                held.give_back();
            }
            _ => return Err(io::Error::other(format!("no order: {order}"))),
        }
        output.flush()?;
    }
    Ok(())
}

/// The turns of all threads of one process.
pub(crate) fn all_turns(locker: &Locker, work: Work) -> Vec<Turn> {
    thread::scope(|scope| {
        let seed = u64::from(std::process::id()) << 16;
        let threads: Vec<_> = (0..work.threads as u64)
            .map(|thread| scope.spawn(move || turns(locker, work, &mut Random::new(seed + thread))))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a worker ends well")).collect()
    })
}

fn turns(locker: &Locker, work: Work, random: &mut Random) -> Vec<Turn> {
    thread::sleep(Duration::from_nanos(work.start.saturating_sub(now())));
    let mut turns = Vec::new();
    while now() < work.end {
        let asked = now();
        let held = work.kind.take(locker, RESOURCE, random);
        let granted = now();
        thread::sleep(work.hold);
        turns.push(Turn { asked, granted, released: now() });
        held.give_back();
        thread::sleep(work.rest);
    }
    turns
}
