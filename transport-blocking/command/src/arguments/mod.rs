//! The command line: what clap reads of it, and the checks that clap cannot declare.

mod claim;
mod cluster_plan;
mod common;
mod doctor;
mod environment;
pub(crate) mod faults;
mod refusal;
mod run;
mod simulate;
mod subcommands;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser};

pub(crate) use self::claim::Claim;
pub(crate) use self::cluster_plan::ClusterPlanArguments;
use self::common::{Masters, Prefix};
pub(crate) use self::common::{Seek, Terms, Wait};
pub(crate) use self::doctor::{DoctorArguments, Replacing};
pub(crate) use self::environment::Environment;
pub(crate) use self::run::RunArguments;
pub(crate) use self::simulate::{SimulateArguments, WorldOptions};
pub(crate) use self::subcommands::{
    AcquireArguments, BootstrapArguments, CompletionsArguments, DemoArguments, ExtendArguments,
    ForceReleaseArguments, ManArguments, MasterArguments, ReleaseArguments, StatusArguments,
};

/// Distributed locks on independent Redis or Valkey masters
///
/// A lock is held while more than half of the masters have its key. The masters are independent of
/// each other. All clients of a lock use the same masters. Name each one with -m URL, or all of
/// them in the variable QUORLOCK_MASTERS. If a master has replicas, declare their number in its
/// URL, with replicas=. The URL of the primary of a group with Sentinels is
/// redis+sentinel://host:port/GROUP?replicas=2, and that of the owner of a tag's slot in a Redis
/// Cluster is redis+cluster://host:port/?tag=q0&replicas=1.
#[derive(Debug, Parser)]
#[command(
    name = "quorlock",
    version,
    propagate_version = true,
    disable_help_subcommand = true,
    term_width = 80,
    override_usage = "quorlock COMMAND [OPTIONS]...",
    after_help = include_str!("../help/quorlock.txt"),
)]
struct CommandLine {
    #[command(subcommand)]
    subcommand: Subcommand,
}

/// The subcommand to carry out.
#[derive(Debug, PartialEq, Eq, clap::Subcommand)]
pub(crate) enum Subcommand {
    Run(Box<RunArguments>),
    Acquire(AcquireArguments),
    Extend(ExtendArguments),
    Release(ReleaseArguments),
    Status(StatusArguments),
    Doctor(DoctorArguments),
    ForceRelease(ForceReleaseArguments),
    Bootstrap(BootstrapArguments),
    ClusterPlan(ClusterPlanArguments),
    Master(MasterArguments),
    Demo(DemoArguments),
    Simulate(Box<SimulateArguments>),
    Completions(CompletionsArguments),
    Man(ManArguments),
}

impl Subcommand {
    /// Fills in what comes from the environment, and checks what depends on several options.
    fn checked(mut self, environment: &Environment) -> Result<Self, String> {
        let (masters, prefix) = self.places();
        masters.map_or(Ok(()), |masters| masters.complete(environment))?;
        prefix.map_or(Ok(()), |prefix| prefix.complete(environment))?;
        match &self {
            Self::Run(run) => run.check()?,
            Self::Release(release) => release.check()?,
            Self::Simulate(simulate) => simulate.check()?,
            _ => {}
        }
        Ok(self)
    }

    /// Whether masters are trusted with any certificate.
    pub(crate) fn trusts_anybody(&mut self) -> bool {
        self.places().0.is_some_and(|masters| masters.tls.tls_insecure)
    }

    fn places(&mut self) -> (Option<&mut Masters>, Option<&mut Prefix>) {
        match self {
            Self::Run(run) => (Some(&mut run.masters), Some(&mut run.seek.claim.resource.prefix)),
            Self::Acquire(acquire) => {
                (Some(&mut acquire.masters), Some(&mut acquire.seek.claim.resource.prefix))
            }
            Self::Extend(extend) => (Some(&mut extend.masters), Some(&mut extend.claim.resource.prefix)),
            Self::Release(release) => (Some(&mut release.masters), Some(&mut release.claim.resource.prefix)),
            Self::Status(status) => (Some(&mut status.masters), Some(&mut status.resource.prefix)),
            Self::Doctor(doctor) => {
                let (masters, prefix) = doctor.incomplete();
                (Some(masters), Some(prefix))
            }
            Self::ForceRelease(release) => (Some(&mut release.masters), Some(&mut release.resource.prefix)),
            Self::Bootstrap(bootstrap) => (Some(&mut bootstrap.masters), None),
            Self::ClusterPlan(plan) => (Some(plan.incomplete()), None),
            Self::Master(_) | Self::Demo(_) | Self::Simulate(_) | Self::Completions(_) | Self::Man(_) => {
                (None, None)
            }
        }
    }
}

/// What to do instead of a subcommand.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Instead {
    /// Print this text: the help or the version.
    Print(String),
    /// The command line is wrong; the sentence says what to do.
    Refuse(String),
}

/// Reads the command line `words`, which begin with the name of the program.
///
/// A refusal repeats no value: a URL with a password, or a token, may be in any place.
pub(crate) fn parse(
    words: impl IntoIterator<Item = OsString>,
    environment: &Environment,
) -> Result<Subcommand, Instead> {
    let words: Vec<OsString> = words.into_iter().collect();
    let mut command = command();
    let parsed = command.try_get_matches_from_mut(&words);
    let parsed = parsed.and_then(|matches| CommandLine::from_arg_matches(&matches));
    let line = parsed.map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp => Instead::Print(error.to_string()),
        ErrorKind::DisplayVersion => {
            Instead::Print(concat!("quorlock ", env!("CARGO_PKG_VERSION"), "\n").into())
        }
        _ => Instead::Refuse(refusal::sentence(&error, &mut command, &words)),
    })?;
    line.subcommand.checked(environment).map_err(Instead::Refuse)
}

/// The whole command line as clap knows it, with the description of each subcommand in
/// `long_about`.
pub(crate) fn described() -> clap::Command {
    let takes_value = |arg: &clap::Arg| matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    CommandLine::command().mut_subcommands(|command| {
        command.args_override_self(true).mut_args(|arg| {
            // The word behind an option is its value, even if it begins with a hyphen.
            let is_hyphen_allowed = takes_value(&arg) && !arg.is_positional();
            arg.allow_hyphen_values(is_hyphen_allowed)
        })
    })
}

/// The command line for parsing. In it, `-h` and `--help` print the same text, with the description
/// above the options.
fn command() -> clap::Command {
    let fold = |command: clap::Command| {
        let description = command.get_long_about().map(ToString::to_string).unwrap_or_default();
        match description.split_once("\n\n") {
            Some((_, more)) => command.before_help(more.to_owned()),
            None => command,
        }
        .long_about(None)
        .help_template("{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}")
    };
    fold(described()).mut_subcommands(fold)
}

#[cfg(test)]
mod claim_tests;
#[cfg(test)]
mod held_tests;
#[cfg(test)]
mod tests;
