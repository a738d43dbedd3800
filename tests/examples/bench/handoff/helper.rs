//! Processes that this one starts, from its own program. A line on their input is an order, and
//! lines on their output are answers.

use std::io::{self, BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use quorlock_tests::chaos::history::now;

use super::crowd::{self, Crowd};
use super::means::Gate;
use super::turns::{Span, Turn};
use super::way::Way;
use super::work::work;

/// The first argument of a helper.
pub(crate) const HELPER: &str = "helper";
const TTL: Duration = Duration::from_secs(10);

/// A helper's process. Dropping it kills it, and it ends by itself when its input ends.
pub(crate) struct Helper {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Helper {
    /// Starts a helper that is connected to these masters.
    pub(crate) fn start(way: &Way, masters: &[SocketAddr]) -> Self {
        let program = std::env::current_exe().expect("this program has a name");
        Self::of(&program, way, masters)
    }

    /// Starts a helper from this build of the program.
    pub(crate) fn of(program: &Path, way: &Way, masters: &[SocketAddr]) -> Self {
        Self::far(program, way, masters, 0)
    }

    /// The same, with a round trip to the masters of this many milliseconds.
    pub(crate) fn far(program: &Path, way: &Way, masters: &[SocketAddr], round_trip: u64) -> Self {
        let masters: Vec<_> = masters.iter().map(SocketAddr::to_string).collect();
        let mut command = Command::new(program);
        command
            .args([super::NAME, HELPER, way.name, &masters.join(","), &round_trip.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program can be started again");
        let orders = child.stdin.take().expect("a pipe");
        let answers = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut helper = Self { child, orders, answers };
        assert_eq!(helper.hear(), "ready");
        helper
    }

    /// Gives an order.
    pub(crate) fn tell(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("the helper lives");
    }

    /// Waits for a line.
    pub(crate) fn hear(&mut self) -> String {
        self.answers.next().expect("the helper lives").expect("the helper writes lines")
    }

    /// Waits for the turns of a working helper.
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

    /// Makes it a crowd, and waits for the measurements.
    pub(crate) fn crowd(&mut self) -> Crowd {
        self.tell("crowd");
        self.hear().parse().expect("a crowd")
    }

    /// SIGKILL, and waits for the end.
    pub(crate) fn kill(&mut self) {
        // An error means that the process has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The main function of a helper's process.
///
/// - `work START END REST`: takes turns in this span, with rests; an answer for each, and `done`.
/// - `gate RESOURCE START END HOLD THREADS MEANS`: takes turns in this span, see [`Gate`]; an
///   answer for each, and `done` for each thread.
/// - `hold RESOURCE MILLIS`: takes the lock with this TTL and keeps it; the time of the grant.
/// - `pass RESOURCE MILLIS`: takes the lock with this TTL and gives it back; the time of the grant.
/// - `wait RESOURCE COUNT`: has COUNT clients wait for the lock, until this process is killed.
/// - `crowd`: see [`crowd::both`].
pub(crate) fn main(mut arguments: impl Iterator<Item = String>) -> io::Result<()> {
    let way = arguments.next().and_then(|name| Way::named(&name)).expect("a way");
    let masters = arguments.next().expect("masters");
    let masters: Vec<SocketAddr> =
        masters.split(',').map(|address| address.parse().expect("a master")).collect();
    let round_trip = arguments.next().map_or(0, |millis| millis.parse().expect("a number"));
    let opened = way.open_far(&masters, Duration::from_millis(round_trip));
    opened.release(opened.lock(&format!("process {}", std::process::id()), TTL));
    let mut output = io::stdout().lock();
    writeln!(output, "ready")?;
    let mut kept = Vec::new();
    for order in io::stdin().lines() {
        let order = order?;
        let words: Vec<&str> = order.split(' ').collect();
        let number = |word: &str| word.parse().expect("a number");
        match words.as_slice() {
            ["work", start, end, rest] => {
                for turn in work(&opened, Span { start: number(start), end: number(end), rest: number(rest) })
                {
                    writeln!(output, "{turn}")?;
                }
                writeln!(output, "done")?;
            }
            ["gate", resource, start, end, hold, threads, means] => {
                let gate = Gate {
                    resource,
                    start: number(start),
                    end: number(end),
                    hold: Duration::from_millis(number(hold)),
                    threads: number(threads),
                    means,
                };
                for turns in gate.pass(way, &masters, &opened) {
                    for turn in turns {
                        writeln!(output, "{turn}")?;
                    }
                    writeln!(output, "done")?;
                }
            }
            [how @ ("hold" | "pass"), resource, ttl] => {
                let held = opened.lock(resource, Duration::from_millis(number(ttl)));
                let granted = now();
                if *how == "hold" {
                    kept.push(held);
                } else {
                    opened.release(held);
                }
                writeln!(output, "{granted}")?;
            }
            ["wait", resource, count] => {
                for _ in 0..number(count) {
                    let (opened, resource) = (way.open(&masters), (*resource).to_owned());
                    thread::spawn(move || opened.lock(&resource, TTL));
                }
            }
            ["crowd"] => writeln!(output, "{}", crowd::both(&opened))?,
            _ => return Err(io::Error::other(format!("no order: {order}"))),
        }
        output.flush()?;
    }
    Ok(())
}
