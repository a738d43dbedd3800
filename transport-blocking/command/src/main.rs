//! The command `quorlock`: runs a program under a lock that a quorum of Redis or Valkey masters
//! granted, or takes such a lock for a script; serves embedded masters to try that with; and runs
//! simulated worlds.

mod acquire;
mod arguments;
mod asking;
mod bootstrap;
mod cautions;
mod child;
mod cluster_plan;
mod demo;
#[cfg(target_os = "linux")]
mod descendants;
#[cfg(not(target_os = "linux"))]
#[path = "descendants/elsewhere.rs"]
mod descendants;
mod doctor;
mod duration;
mod ending;
#[cfg(target_os = "linux")]
mod first;
mod force_release;
mod handed_over;
mod json;
mod launch;
mod lock;
mod manual;
mod master;
mod output;
mod printer;
mod reaping;
mod reports;
mod run;
#[cfg(test)]
mod scripted;
mod set_user_id;
mod signals;
mod simulate;
mod status;
mod subject;
mod terminal;
mod waiting;
mod work;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use crate::arguments::{AcquireArguments, Environment, Instead, RunArguments, Subcommand};
use crate::descendants::Descendants;
use crate::ending::{Finish, SYSTEM, USAGE};
use crate::lock::Renewal;
use crate::output::{Level, Output, Stdout, Verbosity};
use crate::signals::Signals;
use crate::terminal::Terminal;

const UNVERIFIED: &str = "--tls-insecure: the masters' certificates are not verified; \
                          name their issuer with --cacert instead";

const UNKNOWN_CHILDREN: &str = "--wait-for-children needs Linux, with the /proc of this PID namespace: without it, what \
                                the command starts is not known";

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(code) = first::become_command(std::env::args_os()) {
        return ExitCode::from(code);
    }
    let environment = Environment::of_process();
    let done = match arguments::parse(std::env::args_os(), &environment) {
        Ok(mut subcommand) => {
            if subcommand.trusts_anybody() {
                Output::new(Verbosity::Normal(0), false).message(Level::Warning, UNVERIFIED);
            }
            carry_out(&subcommand, &environment)
        }
        Err(Instead::Print(text)) => Ok(Finish::Code(output::print(&text, 0))),
        Err(Instead::Refuse(sentence)) => Ok(refuse(&sentence)),
    };
    let finish = done.unwrap_or_else(|error| {
        plainly(&format!("signals cannot be received: {error}"));
        Finish::Code(SYSTEM)
    });
    printer::finish();
    match finish {
        Finish::Code(code) => ExitCode::from(code),
        Finish::Interrupted { group } => {
            terminal::die_of_interrupt(group);
            // Not reached unless the system refuses; 130 is how a shell would show it.
            ExitCode::from(130)
        }
    }
}

/// An error means that signals cannot be received.
fn carry_out(subcommand: &Subcommand, environment: &Environment) -> io::Result<Finish> {
    Ok(Finish::Code(match subcommand {
        Subcommand::Run(arguments) => return run(arguments, &arguments.speech.output()),
        Subcommand::Acquire(arguments) => return acquire(arguments, &arguments.speech.output()),
        Subcommand::Demo(arguments) => return Ok(demo::demo(arguments, &Signals::install()?)),
        Subcommand::Master(arguments) => {
            // Messages that are mere information elsewhere are the purpose of this subcommand.
            master::serve(arguments, &Signals::install()?, &arguments.speech.output_with(1))
        }
        Subcommand::Extend(arguments) => match environment.resumption(arguments.claim.as_bytes()) {
            Ok(lock) => handed_over::extend(arguments, lock, &arguments.speech.output()),
            Err(sentence) => return Ok(refuse(&sentence)),
        },
        Subcommand::Release(arguments) => match environment.unnumbered(arguments.claim.as_bytes()) {
            Ok(lock) => handed_over::release(arguments, lock, &arguments.speech.output()),
            Err(sentence) => return Ok(refuse(&sentence)),
        },
        Subcommand::Status(arguments) => {
            // A lock can be inspected without a token, so an invalid token is ignored.
            status::status(arguments, environment.token(arguments.resource.as_bytes()).ok())
        }
        Subcommand::Doctor(arguments) => doctor::doctor(arguments),
        Subcommand::ClusterPlan(arguments) => cluster_plan::plan(arguments),
        Subcommand::ForceRelease(arguments) => {
            force_release::force_release(arguments, &arguments.speech.output())
        }
        Subcommand::Bootstrap(arguments) => bootstrap::bootstrap(arguments, &arguments.speech.output()),
        Subcommand::Simulate(arguments) => simulate::simulate(arguments),
        Subcommand::Completions(arguments) => manual::completions(arguments),
        Subcommand::Man(arguments) => manual::pages(arguments),
    }))
}

fn refuse(sentence: &str) -> Finish {
    plainly(sentence);
    Finish::Code(USAGE)
}

/// Prints an error that occurs before the options for output are known.
fn plainly(sentence: &str) {
    Output::new(Verbosity::Normal(0), false).message(Level::Error, sentence);
}

fn run(arguments: &RunArguments, output: &Output) -> io::Result<Finish> {
    let signals = Signals::install()?;
    let terminal = Terminal::open();
    let descendants = Descendants::begin();
    if arguments.wait_for_children && descendants.is_none() {
        return Ok(refuse(UNKNOWN_CHILDREN));
    }
    let longest = arguments.max_hold.unwrap_or(Duration::MAX);
    let renewal = (!arguments.no_renew).then_some(Renewal { longest, heal: arguments.heal });
    let seek = &arguments.seek;
    Ok(match lock::begin(arguments.terms(), seek, renewal, "quorlock-run", signals.notifier()) {
        Ok(lock) => run::run(arguments, lock, &signals, terminal, descendants, output),
        Err(refusal) => Finish::Code(refusal.tell_about(&seek.claim.subject().fields([]), output)),
    })
}

fn acquire(arguments: &AcquireArguments, output: &Output) -> io::Result<Finish> {
    let signals = Signals::install()?;
    let terminal = Terminal::open();
    let seek = &arguments.seek;
    Ok(match lock::begin(arguments.terms(), seek, None, "quorlock-acquire", signals.notifier()) {
        Ok(lock) => acquire::acquire(arguments, lock, &signals, &terminal, output, Stdout),
        Err(refusal) => Finish::Code(refusal.tell_about(&seek.claim.subject().fields([]), output)),
    })
}
