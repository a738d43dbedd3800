//! The command `quorlock`: runs a program under a lock that a quorum of Redis or Valkey masters granted, or takes such a lock for a script;
//! serves embedded masters to try that on; and runs simulated worlds.

mod acquire;
mod arguments;
mod bootstrap;
mod child;
mod demo;
mod duration;
mod ending;
mod force_release;
mod handed_on;
mod inspect;
mod json;
mod lock;
mod master;
mod output;
mod run;
#[cfg(test)]
mod scripted;
mod signals;
mod simulate;
mod status;
mod terminal;
mod waiting;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use crate::arguments::{AcquireArguments, Environment, Request, RunArguments, Subcommand};
use crate::ending::{Finish, SYSTEM, USAGE};
use crate::lock::Renewal;
use crate::output::{Level, Output, Verbosity};
use crate::signals::Signals;
use crate::terminal::Terminal;

fn main() -> ExitCode {
    let (finish, output) = match arguments::parse(std::env::args_os(), Environment::of_process()) {
        Ok(Request::Help(topic)) => return print(help(topic)),
        Ok(Request::Version) => return print(concat!("quorlock ", env!("CARGO_PKG_VERSION"), "\n")),
        Ok(Request::Run(arguments)) => {
            let output = arguments.common.output();
            (run(&arguments, &output), output)
        }
        Ok(Request::Acquire(arguments)) => {
            let output = arguments.common.output();
            (acquire(&arguments, &output), output)
        }
        Ok(Request::Extend(arguments)) => {
            return ExitCode::from(handed_on::extend(&arguments, &arguments.common.output()));
        }
        Ok(Request::Release(arguments)) => {
            return ExitCode::from(handed_on::release(&arguments, &arguments.common.output()));
        }
        Ok(Request::Status(arguments)) => return ExitCode::from(status::status(&arguments)),
        Ok(Request::ForceRelease(arguments)) => {
            return ExitCode::from(force_release::force_release(&arguments, &arguments.common.output()));
        }
        Ok(Request::Bootstrap(arguments)) => {
            return ExitCode::from(bootstrap::bootstrap(&arguments, &arguments.common.output()));
        }
        Ok(Request::Master(arguments)) => {
            let output = arguments.output();
            let served = Signals::install().map(|signals| master::serve(&arguments, &signals, &output));
            (served.map(Finish::Code), output)
        }
        Ok(Request::Demo(arguments)) => {
            let output = Output::new(Verbosity::Normal(0), false);
            (Signals::install().map(|signals| demo::demo(&arguments, &signals)), output)
        }
        Ok(Request::Simulate(arguments)) => return ExitCode::from(simulate::simulate(&arguments)),
        Err(sentence) => {
            Output::new(Verbosity::Normal(0), false).message(Level::Error, &sentence);
            return ExitCode::from(USAGE);
        }
    };
    match finish {
        Ok(Finish::Code(code)) => ExitCode::from(code),
        Ok(Finish::Interrupted { group }) => {
            terminal::die_of_interrupt(group);
            // Not reached unless the system refuses; 130 is how a shell would show it.
            ExitCode::from(130)
        }
        Err(error) => {
            output.message(Level::Error, &format!("signals cannot be received: {error}"));
            ExitCode::from(SYSTEM)
        }
    }
}

fn run(arguments: &RunArguments, output: &Output) -> io::Result<Finish> {
    let signals = Signals::install()?;
    let terminal = Terminal::open();
    let longest = arguments.max_hold.unwrap_or(Duration::MAX);
    let renewal = arguments.renew.then_some(Renewal { longest, heal: arguments.heal });
    let (common, seek) = (&arguments.common, &arguments.seek);
    Ok(match lock::begin(common, seek, renewal, "quorlock-run", signals.notifier()) {
        Ok(lock) => run::run(arguments, lock, &signals, terminal, output),
        Err(refusal) => Finish::Code(refusal.tell(Some(&seek.resource), output)),
    })
}

fn acquire(arguments: &AcquireArguments, output: &Output) -> io::Result<Finish> {
    let signals = Signals::install()?;
    let terminal = Terminal::open();
    let (common, seek) = (&arguments.common, &arguments.seek);
    Ok(match lock::begin(common, seek, None, "quorlock-acquire", signals.notifier()) {
        Ok(lock) => acquire::acquire(arguments, lock, &signals, &terminal, output, &mut io::stdout().lock()),
        Err(refusal) => Finish::Code(refusal.tell(Some(&seek.resource), output)),
    })
}

fn help(topic: Option<Subcommand>) -> &'static str {
    match topic {
        None => include_str!("help/quorlock.txt"),
        Some(Subcommand::Run) => include_str!("help/run.txt"),
        Some(Subcommand::Acquire) => include_str!("help/acquire.txt"),
        Some(Subcommand::Extend) => include_str!("help/extend.txt"),
        Some(Subcommand::Release) => include_str!("help/release.txt"),
        Some(Subcommand::Status) => include_str!("help/status.txt"),
        Some(Subcommand::ForceRelease) => include_str!("help/force-release.txt"),
        Some(Subcommand::Bootstrap) => include_str!("help/bootstrap.txt"),
        Some(Subcommand::Master) => include_str!("help/master.txt"),
        Some(Subcommand::Demo) => include_str!("help/demo.txt"),
        Some(Subcommand::Simulate) => include_str!("help/simulate.txt"),
    }
}

/// Prints `text`. That nobody reads it, as in `quorlock --help | head -1`, is no failure.
fn print(text: &str) -> ExitCode {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}
