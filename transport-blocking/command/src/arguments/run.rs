//! `quorlock run`.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser, ValueHint};

use super::common::{Guarded, Hidden, Masters, Seek, Speech, Terms, check_kept};
use crate::duration;

/// Run a command while holding a lock
///
/// Takes the lock RESOURCE on more than half of the given Redis or Valkey masters, runs COMMAND,
/// and releases the lock when COMMAND ends. The lock is renewed while COMMAND runs. If it is lost,
/// COMMAND is ended before another client can hold the lock. Everything after COMMAND belongs to
/// COMMAND.
///
/// The masters are independent of each other. To try it without servers, start masters with
/// quorlock master; see quorlock master --help.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(
    override_usage = "quorlock run [OPTIONS] RESOURCE [--] COMMAND [ARG]...",
    after_help = include_str!("../help/run.txt"),
)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) masters: Masters,
    #[command(flatten)]
    pub(crate) seek: Seek,
    /// Do not renew the lock: COMMAND has to end within the TTL
    #[arg(long)]
    pub(crate) no_renew: bool,
    /// Hold the lock no longer than this: then COMMAND gets TERM, and KILL when the lock runs out
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_positive)]
    pub(crate) max_hold: Option<Duration>,
    /// Keep others out for at least this time, counted from the grant. If COMMAND ends sooner,
    /// quorlock ends with it, and the lock expires later. For jobs that all machines start at the
    /// same time, by clocks that differ a little
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_positive)]
    pub(crate) at_least: Option<Duration>,
    /// Send TERM to COMMAND this long before the lock runs out, and KILL shortly before it does.
    /// Must be less than half of the TTL; by default a quarter of the TTL or 2s, whichever is
    /// shorter
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    grace: Option<Duration>,
    /// Keep the lock until all processes that COMMAND started have ended, not only COMMAND itself,
    /// as flock does. Linux only
    #[arg(long)]
    pub(crate) wait_for_children: bool,
    /// Let renewals put the lock back on masters that lost it
    #[arg(long, conflicts_with = "no_renew")]
    pub(crate) heal: bool,
    #[command(flatten)]
    guarded: Guarded,
    #[command(flatten)]
    pub(crate) speech: Speech,
    /// The command to run, and its arguments
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        value_hint = ValueHint::CommandWithArguments,
        value_parser = OsStringValueParser::new().map(Hidden),
    )]
    words: Vec<Hidden<OsString>>,
}

impl RunArguments {
    /// Returns the settings from which the configuration is built.
    pub(crate) fn terms(&self) -> Terms<'_> {
        Terms::plain(&self.masters, self.seek.claim.resource()).granting(self.seek.ttl, &self.guarded)
    }

    /// The command and its arguments; never empty.
    pub(crate) fn command(&self) -> Vec<&OsStr> {
        let mut words: Vec<_> = self.words.iter().map(|Hidden(word)| word.as_os_str()).collect();
        // In `quorlock run -- RESOURCE -- COMMAND` clap takes the first one only.
        if words.first().is_some_and(|word| *word == "--") {
            words.remove(0);
        }
        words
    }

    /// How long before validity ends the command is asked to terminate; below half of the TTL.
    pub(crate) fn grace(&self) -> Duration {
        // Integer arithmetic: a quarter is always below the half that is refused.
        self.grace.unwrap_or(Duration::from_secs(2).min(self.seek.ttl / 4))
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.command().first().is_none_or(|program| program.is_empty()) {
            return Err(
                "COMMAND is missing: write quorlock run [OPTIONS] RESOURCE [--] COMMAND [ARG]...".into()
            );
        }
        if let Some(at_least) = self.at_least {
            check_kept("--at-least", at_least)?;
            if self.guarded.restart_guard.is_some_and(|longest| at_least > longest) {
                return Err(
                    "--at-least must not be longer than --restart-guard: a master that lost its data waits \
                            for no lock that lasts longer."
                        .into(),
                );
            }
        }
        if self.grace() >= self.seek.ttl / 2 {
            return Err("--grace must be shorter than half of --ttl, or COMMAND would hardly run.".into());
        }
        Ok(())
    }
}
