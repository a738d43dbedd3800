//! Starts masters, and runs a command with their URLs in `QUORLOCK_MASTERS`. `cargo xtask
//! on-masters --help`
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::error::Error;
use std::ffi::OsString;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use quorlock_core::Config;
use quorlock_tests::failover::Trust;
use quorlock_tests::groups::SentinelGroup;
use quorlock_tests::masters;

const HELP: &str = "\
on-masters [--group | --fail-over SECONDS] COMMAND [ARGUMENT ...]

Starts three masters, or a group, and runs the command with their URLs in QUORLOCK_MASTERS. Ends with 0
if the command succeeds.

  --group              one master: three servers under three sentinels
  --fail-over SECONDS  the same, and the primary fails over this long after the start of the command";

struct Options {
    on_a_group: bool,
    fails_over_after: Option<Duration>,
    command: Vec<OsString>,
}

fn options() -> Result<Option<Options>, lexopt::Error> {
    use lexopt::prelude::*;
    let mut options = Options { on_a_group: false, fails_over_after: None, command: Vec::new() };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("group") => options.on_a_group = true,
            Long("fail-over") => {
                options.fails_over_after = Some(Duration::from_secs(parser.value()?.parse()?));
            }
            Short('h') | Long("help") => return Ok(None),
            // All further arguments belong to the command.
            Value(program) => {
                options.command.push(program);
                options.command.extend(parser.raw_args()?);
            }
            other => return Err(other.unexpected()),
        }
    }
    if options.command.is_empty() { Err("a command is missing".into()) } else { Ok(Some(options)) }
}

/// Whether the command succeeds.
fn run(options: &Options) -> Result<bool, Box<dyn Error>> {
    let start = |urls: &str| {
        println!("masters: {urls}");
        let (program, arguments) = options.command.split_first().ok_or("a command is missing")?;
        let started = Command::new(program).args(arguments).env(Config::MASTERS_VARIABLE, urls).spawn();
        started.map_err(|error| format!("{}: {error}", program.to_string_lossy()))
    };
    if !options.on_a_group && options.fails_over_after.is_none() {
        let fleet = masters(3);
        return Ok(start(&fleet.urls().join(","))?.wait()?.success());
    }
    let group = SentinelGroup::start();
    let mut command = start(&Trust::Confirmed.url_by_sentinels(&group))?;
    if let Some(after) = options.fails_over_after {
        thread::sleep(after);
        if let Some(status) = command.try_wait()? {
            return Err(format!("the command ended before the failover: {status}").into());
        }
        println!("the primary fails over");
        group.fail_over();
        println!("another server is the primary");
    }
    Ok(command.wait()?.success())
}

fn main() -> ExitCode {
    let outcome = match options() {
        Ok(Some(options)) => run(&options),
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => Err(format!("{error}; try --help").into()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("on-masters: {error}");
            ExitCode::FAILURE
        }
    }
}
