//! The command line: what may be written there, and what it means.

mod acquire;
mod bootstrap;
mod common;
mod demo;
mod environment;
pub(crate) mod faults;
mod handed_on;
mod master;
mod options;
mod run;
mod simulate;
mod status;

use std::ffi::OsString;
use std::fmt;

use lexopt::{Arg, Parser};

pub(crate) use self::acquire::AcquireArguments;
pub(crate) use self::bootstrap::BootstrapArguments;
pub(crate) use self::common::{Common, Seek, Wait};
pub(crate) use self::demo::DemoArguments;
pub(crate) use self::environment::Environment;
pub(crate) use self::handed_on::{ExtendArguments, ReleaseArguments};
pub(crate) use self::master::MasterArguments;
use self::options::{find, name_of, sentence};
pub(crate) use self::run::RunArguments;
pub(crate) use self::simulate::{SimulateArguments, Simulated, Told, WorldOptions};
pub(crate) use self::status::{ForceReleaseArguments, StatusArguments};

/// What the caller wants done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Print the help of a subcommand, or of all.
    Help(Option<Subcommand>),
    /// Print the version.
    Version,
    /// Run a command under a lock.
    Run(Box<RunArguments>),
    /// Take a lock and leave it held.
    Acquire(Box<AcquireArguments>),
    /// Extend a lock that was left held.
    Extend(Box<ExtendArguments>),
    /// Release a lock that was left held.
    Release(Box<ReleaseArguments>),
    /// Tell what masters say about a lock.
    Status(Box<StatusArguments>),
    /// Delete a lock, whoever holds it.
    ForceRelease(Box<ForceReleaseArguments>),
    /// Tell new masters that nothing can be locked yet.
    Bootstrap(Box<BootstrapArguments>),
    /// Serve embedded masters.
    Master(MasterArguments),
    /// Show what a lock does while things go wrong.
    Demo(DemoArguments),
    /// Run a simulated world.
    Simulate(Box<SimulateArguments>),
}

/// What stands behind `quorlock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subcommand {
    /// `run`
    Run,
    /// `acquire`
    Acquire,
    /// `extend`
    Extend,
    /// `release`
    Release,
    /// `status`
    Status,
    /// `force-release`
    ForceRelease,
    /// `bootstrap`
    Bootstrap,
    /// `master`
    Master,
    /// `demo`
    Demo,
    /// `simulate`
    Simulate,
}

impl Subcommand {
    const ALL: [Self; 10] = [
        Self::Run,
        Self::Acquire,
        Self::Extend,
        Self::Release,
        Self::Status,
        Self::ForceRelease,
        Self::Bootstrap,
        Self::Master,
        Self::Demo,
        Self::Simulate,
    ];

    /// How it is written.
    fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Acquire => "acquire",
            Self::Extend => "extend",
            Self::Release => "release",
            Self::Status => "status",
            Self::ForceRelease => "force-release",
            Self::Bootstrap => "bootstrap",
            Self::Master => "master",
            Self::Demo => "demo",
            Self::Simulate => "simulate",
        }
    }
}

impl fmt::Display for Subcommand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What may hold a password: `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Hidden<T>(pub(crate) T);

impl<T> fmt::Debug for Hidden<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(hidden)")
    }
}

/// Reads the command line `arguments`, which begin with the name of the program.
///
/// The error is a whole sentence. It repeats no value: a URL with a password, or a token, may have slipped into any place.
pub(crate) fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    environment: Environment,
) -> Result<Request, String> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let mut parser = Parser::from_iter(arguments);
    let subcommand = match parser.next().map_err(|error| sentence(&error))? {
        Some(Arg::Short('h') | Arg::Long("help")) => return Ok(Request::Help(None)),
        Some(Arg::Short('V') | Arg::Long("version")) => return Ok(Request::Version),
        Some(Arg::Value(value)) => {
            let named = Subcommand::ALL.into_iter().find(|subcommand| value == subcommand.name());
            named.ok_or_else(|| {
                format!(
                    "The subcommands are {}: write quorlock run [OPTIONS] RESOURCE COMMAND, or quorlock --help.",
                    joined(&Subcommand::ALL, "and")
                )
            })?
        }
        Some(option) => {
            let name = name_of(&option);
            return Err(match find(&option).map(|known| known.of) {
                Some(of @ [first, ..]) => {
                    format!("Write {name} behind {}: quorlock {first} {name} ...", joined(of, "or"))
                }
                _ => format!("There is no option {name}; quorlock --help lists what there is."),
            });
        }
        None => {
            return Err("Nothing to do: write quorlock run [OPTIONS] RESOURCE COMMAND, or quorlock --help."
                .to_owned());
        }
    };
    match subcommand {
        Subcommand::Run => run::parse(parser, environment),
        Subcommand::Acquire => acquire::parse(parser, environment),
        Subcommand::Extend => handed_on::parse_extend(parser, environment),
        Subcommand::Release => handed_on::parse_release(parser, environment),
        Subcommand::Status => status::parse_status(parser, environment),
        Subcommand::ForceRelease => status::parse_force_release(parser, environment),
        Subcommand::Bootstrap => bootstrap::parse(parser, environment),
        Subcommand::Master => master::parse(parser),
        Subcommand::Demo => demo::parse(parser),
        Subcommand::Simulate => simulate::parse(parser),
    }
}

/// `run, acquire and extend`.
fn joined(subcommands: &[Subcommand], word: &str) -> String {
    let names: Vec<_> = subcommands.iter().map(|subcommand| subcommand.name()).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} {word} {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod handing_on_tests;
#[cfg(test)]
mod tests;
