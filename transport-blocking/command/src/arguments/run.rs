//! `quorlock run`.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use lexopt::Parser;

use super::common::{Common, Seek, resource};
use super::options::{Collected, Word, sentence};
use super::{Environment, Hidden, Request, Subcommand};

/// Everything that `quorlock run` was told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RunArguments {
    /// What other subcommands are told too.
    pub(crate) common: Common,
    /// What is locked.
    pub(crate) seek: Seek,
    /// Whether the lock is renewed while the command runs.
    pub(crate) renew: bool,
    /// Whether renewal puts the lock back on masters that lost it.
    pub(crate) heal: bool,
    /// How long the command may hold the lock at most.
    pub(crate) max_hold: Option<Duration>,
    /// How long before validity ends the command is asked to terminate; below half of the TTL.
    pub(crate) grace: Duration,
    /// The command and its arguments; never empty.
    pub(crate) command: Hidden<Vec<OsString>>,
}

pub(super) fn parse(mut parser: Parser, environment: Environment) -> Result<Request, String> {
    let mut read = Collected::default();
    let mut name = None;
    let mut command = Vec::new();
    loop {
        // `--` is taken here and not left to the parser: behind it everything belongs to the command, untouched,
        // except that it may stand both before RESOURCE and before COMMAND.
        if next_is_dashes(&mut parser) {
            let mut rest = parser.raw_args().map_err(|error| sentence(&error))?;
            rest.next();
            if name.is_none() {
                name = rest.next();
                rest.next_if(|argument| argument == "--");
            }
            command.extend(rest);
            break;
        }
        match read.read(Subcommand::Run, &mut parser)? {
            Word::Option => {}
            Word::Value(value) if name.is_none() => name = Some(value),
            Word::Value(value) => {
                command.push(value);
                command.extend(parser.raw_args().map_err(|error| sentence(&error))?);
                break;
            }
            Word::Help => return Ok(Request::Help(Some(Subcommand::Run))),
            Word::Version => return Ok(Request::Version),
            Word::End => break,
        }
    }
    finish(read, name, command, environment).map(|run| Request::Run(Box::new(run)))
}

/// Whether the next argument is `--`. While the parser is inside of a group of short options it is not.
fn next_is_dashes(parser: &mut Parser) -> bool {
    parser.try_raw_args().is_some_and(|rest| rest.peek() == Some(OsStr::new("--")))
}

fn finish(
    mut read: Collected,
    name: Option<OsString>,
    command: Vec<OsString>,
    environment: Environment,
) -> Result<RunArguments, String> {
    let resource = resource(name, "Name the lock and the command: quorlock run [OPTIONS] RESOURCE COMMAND.")?;
    if command.first().is_none_or(|program| program.is_empty()) {
        return Err(
            "No command to run: write it behind RESOURCE, as in quorlock run RESOURCE COMMAND.".to_owned()
        );
    }
    let seek = read.seek(resource)?;
    let common = read.common(environment.masters)?;
    // Integer arithmetic: a quarter is always below the half that is refused.
    let grace = read.grace.unwrap_or(Duration::from_secs(2).min(common.ttl / 4));
    if grace >= common.ttl / 2 {
        return Err("--grace must be shorter than half of --ttl, or the command would hardly run.".to_owned());
    }
    if read.max_hold.is_some_and(|longest| longest.is_zero()) {
        return Err("--max-hold must be longer than zero.".to_owned());
    }
    if read.heal && read.no_renew {
        return Err("--heal is what renewals do, and --no-renew has none: give one of them.".to_owned());
    }
    Ok(RunArguments {
        common,
        seek,
        renew: !read.no_renew,
        heal: read.heal,
        max_hold: read.max_hold,
        grace,
        command: Hidden(command),
    })
}
