//! The command line: what may be written there, and what it means.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use lexopt::{Arg, Parser};

use crate::duration;
use crate::master::{self, MasterArguments};
use crate::output::Verbosity;

/// The environment variable that names the masters when no `-m` does.
pub(crate) const MASTERS_VARIABLE: &str = "QUORLOCK_MASTERS";

/// What the caller wants done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Print the help.
    Help,
    /// Print the version.
    Version,
    /// Run a command under a lock.
    Run(Box<RunArguments>),
    /// Print the help of `quorlock master`.
    MasterHelp,
    /// Serve embedded masters.
    Master(MasterArguments),
}

/// How long to wait for a lock that another holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Until it is ours.
    Forever,
    /// No longer than this.
    UpTo(Duration),
    /// Not at all.
    OneTry,
}

/// Everything that `quorlock run` was told.
#[derive(PartialEq, Eq)]
pub(crate) struct RunArguments {
    /// The masters' URLs as they were given. They may hold passwords, so they are never shown.
    pub(crate) masters: Vec<String>,
    /// The name of the lock.
    pub(crate) resource: Vec<u8>,
    /// How long a grant lasts on the masters.
    pub(crate) ttl: Duration,
    /// Whether the lock is renewed while the command runs.
    pub(crate) renew: bool,
    /// How long to wait for the lock.
    pub(crate) wait: Wait,
    /// The exit code when another holds the lock.
    pub(crate) conflict_exit_code: u8,
    /// How long the command may hold the lock at most.
    pub(crate) max_hold: Option<Duration>,
    /// How long before validity ends the command is asked to terminate; below half of the TTL.
    pub(crate) grace: Duration,
    /// How much is said.
    pub(crate) verbosity: Verbosity,
    /// Whether it is said as JSON.
    pub(crate) json: bool,
    /// The command and its arguments; never empty.
    pub(crate) command: Vec<OsString>,
}

impl std::fmt::Debug for RunArguments {
    /// Leaves the masters and the command out: both may hold passwords.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RunArguments")
            .field("masters", &self.masters.len())
            .field("resource", &String::from_utf8_lossy(&self.resource))
            .field("ttl", &self.ttl)
            .field("renew", &self.renew)
            .field("wait", &self.wait)
            .field("conflict_exit_code", &self.conflict_exit_code)
            .field("max_hold", &self.max_hold)
            .field("grace", &self.grace)
            .field("verbosity", &self.verbosity)
            .field("json", &self.json)
            .finish_non_exhaustive()
    }
}

/// Reads the command line `arguments`, which begin with the name of the program. `masters_variable` is the value of
/// [`MASTERS_VARIABLE`].
///
/// The error is a whole sentence. It repeats no value: a URL with a password may have slipped into any place.
pub(crate) fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    masters_variable: Option<OsString>,
) -> Result<Request, String> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let mut parser = Parser::from_iter(arguments);
    match parser.next().map_err(|error| sentence(&error))? {
        Some(Arg::Short('h') | Arg::Long("help")) => Ok(Request::Help),
        Some(Arg::Short('V') | Arg::Long("version")) => Ok(Request::Version),
        Some(Arg::Value(value)) if value == "run" => parse_run(parser, masters_variable),
        Some(Arg::Value(value)) if value == "master" => master::parse(parser),
        Some(Arg::Value(_)) => Err(
            "The subcommands are run and master: write quorlock run [OPTIONS] RESOURCE COMMAND, or quorlock \
                 master [OPTIONS] --port PORT."
                .to_owned(),
        ),
        Some(other) => Err(match option_name(&other).as_str() {
            name if is_run_option(&other) => format!("Write {name} behind run: quorlock run {name} ..."),
            name => format!("There is no option {name}; quorlock --help lists what there is."),
        }),
        None => {
            Err("Nothing to do: write quorlock run [OPTIONS] RESOURCE COMMAND, or quorlock --help."
                .to_owned())
        }
    }
}

/// What has been read so far; the rest is checked once everything is known.
#[derive(Default)]
struct Collected {
    masters: Vec<String>,
    ttl: Option<Duration>,
    no_renew: bool,
    wait: Option<Duration>,
    no_wait: bool,
    conflict_exit_code: Option<u8>,
    max_hold: Option<Duration>,
    grace: Option<Duration>,
    quiet: bool,
    verbose: u8,
    json: bool,
}

fn parse_run(mut parser: Parser, masters_variable: Option<OsString>) -> Result<Request, String> {
    let mut read = Collected::default();
    let mut resource = None;
    let mut command = Vec::new();
    loop {
        // `--` is taken here and not left to the parser: behind it everything belongs to the command, untouched,
        // except that it may stand both before RESOURCE and before COMMAND.
        if next_is_dashes(&mut parser) {
            let mut rest = parser.raw_args().map_err(|error| sentence(&error))?;
            rest.next();
            if resource.is_none() {
                resource = rest.next();
                rest.next_if(|argument| argument == "--");
            }
            command.extend(rest);
            break;
        }
        match parser.next().map_err(|error| sentence(&error))? {
            None => break,
            Some(Arg::Value(value)) if resource.is_none() => resource = Some(value),
            Some(Arg::Value(value)) => {
                command.push(value);
                command.extend(parser.raw_args().map_err(|error| sentence(&error))?);
                break;
            }
            Some(Arg::Short('h') | Arg::Long("help")) => return Ok(Request::Help),
            Some(Arg::Short('V') | Arg::Long("version")) => return Ok(Request::Version),
            Some(option) => {
                let name = option_name(&option);
                if !is_run_option(&option) {
                    return Err(format!(
                        "There is no option {name}; quorlock --help lists what there is. Options of the command go \
                         behind it."
                    ));
                }
                read_option(&mut read, &name, &mut parser)?;
            }
        }
    }
    finish(read, resource, command, masters_variable).map(|run| Request::Run(Box::new(run)))
}

/// Whether the next argument is `--`. While the parser is inside of a group of short options it is not.
fn next_is_dashes(parser: &mut Parser) -> bool {
    parser.try_raw_args().is_some_and(|rest| rest.peek() == Some(OsStr::new("--")))
}

fn is_run_option(option: &Arg<'_>) -> bool {
    matches!(
        option,
        Arg::Short('m' | 'w' | 'n' | 'E' | 'q' | 'v')
            | Arg::Long(
                "master"
                    | "ttl"
                    | "no-renew"
                    | "wait"
                    | "no-wait"
                    | "conflict-exit-code"
                    | "max-hold"
                    | "grace"
                    | "quiet"
                    | "verbose"
                    | "json"
            )
    )
}

fn read_option(read: &mut Collected, name: &str, parser: &mut Parser) -> Result<(), String> {
    match name {
        "-m" | "--master" => read.masters.push(
            text(name, parser)?
                .ok_or_else(|| format!("{name} is not valid UTF-8: percent-encode the odd bytes as %XX."))?,
        ),
        "--ttl" => read.ttl = Some(duration_of(name, parser)?),
        "--no-renew" => read.no_renew = true,
        "-w" | "--wait" => read.wait = Some(duration_of(name, parser)?),
        "-n" | "--no-wait" => read.no_wait = true,
        "-E" | "--conflict-exit-code" => {
            let code = text(name, parser)?.and_then(|text| text.parse().ok());
            read.conflict_exit_code =
                Some(code.ok_or_else(|| format!("{name} needs a number from 0 to 255."))?);
        }
        "--max-hold" => read.max_hold = Some(duration_of(name, parser)?),
        "--grace" => read.grace = Some(duration_of(name, parser)?),
        "-q" | "--quiet" => read.quiet = true,
        "-v" | "--verbose" => read.verbose = read.verbose.saturating_add(1),
        _ => read.json = true,
    }
    Ok(())
}

/// The value of an option, or `None` if it is not UTF-8.
pub(crate) fn text(name: &str, parser: &mut Parser) -> Result<Option<String>, String> {
    let value = parser
        .value()
        .map_err(|_| format!("{name} needs a value behind it; quorlock --help shows which."))?;
    Ok(value.into_string().ok())
}

fn duration_of(name: &str, parser: &mut Parser) -> Result<Duration, String> {
    let value = text(name, parser)?.unwrap_or_else(|| "?".to_owned());
    duration::parse(&value).map_err(|reason| format!("{name} {reason}."))
}

fn finish(
    read: Collected,
    resource: Option<OsString>,
    command: Vec<OsString>,
    masters_variable: Option<OsString>,
) -> Result<RunArguments, String> {
    let resource =
        resource.ok_or("Name the lock and the command: quorlock run [OPTIONS] RESOURCE COMMAND.")?;
    if resource.is_empty() {
        return Err("RESOURCE is empty: give the lock a name.".to_owned());
    }
    if command.first().is_none_or(|program| program.is_empty()) {
        return Err(
            "No command to run: write it behind RESOURCE, as in quorlock run RESOURCE COMMAND.".to_owned()
        );
    }
    let ttl = read.ttl.unwrap_or(Duration::from_secs(10));
    if ttl.is_zero() {
        return Err("--ttl must be longer than zero.".to_owned());
    }
    // Integer arithmetic: a quarter is always below the half that is refused.
    let grace = read.grace.unwrap_or(Duration::from_secs(2).min(ttl / 4));
    if grace >= ttl / 2 {
        return Err("--grace must be shorter than half of --ttl, or the command would hardly run.".to_owned());
    }
    if read.max_hold.is_some_and(|longest| longest.is_zero()) {
        return Err("--max-hold must be longer than zero.".to_owned());
    }
    let wait = match (read.no_wait, read.wait) {
        (true, Some(_)) => return Err("-w and -n contradict each other: give one of them.".to_owned()),
        (true, None) => Wait::OneTry,
        (false, Some(longest)) if longest.is_zero() => Wait::OneTry,
        (false, Some(longest)) => Wait::UpTo(longest),
        (false, None) => Wait::Forever,
    };
    let verbosity = verbosity(read.quiet, read.verbose)?;
    Ok(RunArguments {
        masters: masters(read.masters, masters_variable)?,
        resource: resource.into_vec(),
        ttl,
        renew: !read.no_renew,
        wait,
        conflict_exit_code: read.conflict_exit_code.unwrap_or(1),
        max_hold: read.max_hold,
        grace,
        verbosity,
        json: read.json,
        command,
    })
}

pub(crate) fn verbosity(quiet: bool, more: u8) -> Result<Verbosity, String> {
    match (quiet, more) {
        (true, 0) => Ok(Verbosity::Quiet),
        (true, _) => Err("-q and -v contradict each other: give one of them.".to_owned()),
        (false, more) => Ok(Verbosity::Normal(more)),
    }
}

/// The masters of the options, or else of the environment.
fn masters(given: Vec<String>, variable: Option<OsString>) -> Result<Vec<String>, String> {
    if given.iter().any(|url| url.trim().is_empty()) {
        return Err("-m is empty: write a master's URL behind it, such as redis://host:6379.".to_owned());
    }
    if !given.is_empty() {
        return Ok(given);
    }
    let variable = variable.unwrap_or_default().into_string().map_err(|_| {
        format!("{MASTERS_VARIABLE} is not valid UTF-8: percent-encode the odd bytes of its URLs as %XX.")
    })?;
    let named: Vec<String> =
        variable.split(',').map(str::trim).filter(|url| !url.is_empty()).map(str::to_owned).collect();
    if named.is_empty() {
        return Err(format!(
            "No masters: name each with -m URL, such as -m redis://host:6379, or all in {MASTERS_VARIABLE}, separated \
             by commas."
        ));
    }
    Ok(named)
}

pub(crate) fn option_name(option: &Arg<'_>) -> String {
    match option {
        Arg::Short(letter) => format!("-{}", letter.escape_debug()),
        Arg::Long(name) => format!("--{}", name.escape_debug()),
        Arg::Value(_) => "an argument".to_owned(),
    }
}

/// The parser's error as a sentence of ours, without the value that the parser's own would repeat.
pub(crate) fn sentence(error: &lexopt::Error) -> String {
    match error {
        lexopt::Error::UnexpectedValue { option, .. } => {
            format!("{} takes no value.", option.escape_debug())
        }
        lexopt::Error::MissingValue { option: Some(option) } => {
            format!("{} needs a value behind it.", option.escape_debug())
        }
        _ => "The options cannot be read; quorlock --help shows how they are written.".to_owned(),
    }
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
