//! One measurement of one way, in a separate process, so that the others do not affect it.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use crate::figures::{Figures, Rounds};
use crate::scenario;

/// The first argument of such a process.
pub(crate) const NAME: &str = "trial";

/// Starts a process and waits for its figures.
fn measure(scenario: &str, way: &str, words: &[String]) -> Result<Figures, String> {
    let program = std::env::current_exe().expect("this program has a name");
    let mut command = Command::new(program);
    command.args([NAME, scenario, way]).args(words).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{}", output.status));
    }
    Figures::read(&String::from_utf8_lossy(&output.stdout))
}

/// Runs the ways in turns, each round beginning with another one. A way that fails is left out, and
/// the others continue.
pub(crate) fn rounds(
    scenario: &str,
    what: &str,
    ways: &[&'static str],
    rounds: usize,
    words: &[String],
) -> Rounds {
    let mut all = Rounds::default();
    for round in 0..rounds {
        eprintln!("{scenario}, {what}: round {} of {rounds}", round + 1);
        for turn in 0..ways.len() {
            let Some(way) = ways.get((turn + round) % ways.len()) else { continue };
            match measure(scenario, way, words) {
                Ok(figures) => all.add(round, way, figures),
                Err(error) => {
                    eprintln!("{way} failed: {error}");
                    let mut figures = Figures::default();
                    figures.set("failed", 1.0);
                    all.add(round, way, figures);
                }
            }
        }
    }
    all
}

/// The main function of such a process.
pub(crate) fn main(mut arguments: impl Iterator<Item = String>) {
    let scenario = arguments.next().expect("a scenario");
    let way = arguments.next().expect("a way");
    let words: Vec<String> = arguments.collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let figures = scenario::measure(&scenario, &way, &words);
    print!("{figures}");
}

/// The addresses of masters as a word.
pub(crate) fn to_word(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(",")
}

/// Reads such a word.
pub(crate) fn from_word(word: &str) -> Vec<SocketAddr> {
    word.split(',').map(|address| address.parse().expect("the address of a master")).collect()
}
