//! The options: how each is written, which subcommands have it, and what was read of them.

use std::ffi::OsString;
use std::net::IpAddr;
use std::time::Duration;

use lexopt::{Arg, Parser};
use quorlock_blocking::EvictionPolicy;

use super::Subcommand::{self, Acquire, Bootstrap, Extend, Master, Release, Run};
use super::joined;
use crate::duration;

/// What an option sets.
#[derive(Clone, Copy)]
enum Setting {
    Masters,
    Ttl,
    NoRenew,
    Wait,
    NoWait,
    ConflictExitCode,
    MaxHold,
    Grace,
    Fenced,
    Heal,
    RestartGuard,
    AllowEviction,
    Port,
    Bind,
    Quiet,
    Verbose,
    Json,
}

/// An option that there is.
pub(super) struct Known {
    setting: Setting,
    short: Option<char>,
    long: &'static str,
    /// The subcommands that have it.
    pub(super) of: &'static [Subcommand],
}

const fn known(
    setting: Setting,
    short: Option<char>,
    long: &'static str,
    of: &'static [Subcommand],
) -> Known {
    Known { setting, short, long, of }
}

const OPTIONS: [Known; 17] = [
    known(Setting::Masters, Some('m'), "master", &[Run, Acquire, Extend, Release, Bootstrap]),
    known(Setting::Ttl, None, "ttl", &[Run, Acquire, Extend]),
    known(Setting::NoRenew, None, "no-renew", &[Run]),
    known(Setting::Wait, Some('w'), "wait", &[Run, Acquire]),
    known(Setting::NoWait, Some('n'), "no-wait", &[Run, Acquire]),
    known(Setting::ConflictExitCode, Some('E'), "conflict-exit-code", &[Run, Acquire]),
    known(Setting::MaxHold, None, "max-hold", &[Run]),
    known(Setting::Grace, None, "grace", &[Run]),
    known(Setting::Fenced, None, "fenced", &[Run, Acquire]),
    known(Setting::Heal, None, "heal", &[Run]),
    known(Setting::RestartGuard, None, "restart-guard", &[Run, Acquire, Extend, Bootstrap]),
    known(Setting::AllowEviction, None, "allow-eviction", &[Run, Acquire, Extend, Bootstrap]),
    known(Setting::Port, None, "port", &[Master]),
    known(Setting::Bind, None, "bind", &[Master]),
    known(Setting::Quiet, Some('q'), "quiet", &Subcommand::ALL),
    known(Setting::Verbose, Some('v'), "verbose", &Subcommand::ALL),
    known(Setting::Json, None, "json", &Subcommand::ALL),
];

/// The option of this name.
pub(super) fn find(option: &Arg<'_>) -> Option<&'static Known> {
    OPTIONS.iter().find(|known| match option {
        Arg::Short(letter) => known.short == Some(*letter),
        Arg::Long(name) => known.long == *name,
        Arg::Value(_) => false,
    })
}

/// What has been read so far; the rest is checked once everything is known.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) masters: Vec<String>,
    pub(super) ttl: Option<Duration>,
    pub(super) no_renew: bool,
    pub(super) wait: Option<Duration>,
    pub(super) no_wait: bool,
    pub(super) conflict_exit_code: Option<u8>,
    pub(super) max_hold: Option<Duration>,
    pub(super) grace: Option<Duration>,
    pub(super) fenced: bool,
    pub(super) heal: bool,
    pub(super) restart_guard: Option<Duration>,
    pub(super) evictions: Vec<EvictionPolicy>,
    pub(super) ports: Vec<u16>,
    pub(super) bind: Option<IpAddr>,
    pub(super) quiet: bool,
    pub(super) verbose: u8,
    pub(super) json: bool,
}

/// What stands next on the command line.
pub(super) enum Word {
    /// An option, which has been read.
    Option,
    /// Something else.
    Value(OsString),
    /// `--help`
    Help,
    /// `--version`
    Version,
    /// Nothing.
    End,
}

impl Collected {
    /// Reads what stands next behind `subcommand`, if it is an option with its value.
    pub(super) fn read(&mut self, subcommand: Subcommand, parser: &mut Parser) -> Result<Word, String> {
        let option = match parser.next().map_err(|error| sentence(&error))? {
            None => return Ok(Word::End),
            Some(Arg::Value(value)) => return Ok(Word::Value(value)),
            Some(Arg::Short('h') | Arg::Long("help")) => return Ok(Word::Help),
            Some(Arg::Short('V') | Arg::Long("version")) => return Ok(Word::Version),
            Some(option) => option,
        };
        let name = name_of(&option);
        match find(&option) {
            Some(known) if known.of.contains(&subcommand) => {
                self.set(known.setting, &name, parser)?;
                Ok(Word::Option)
            }
            Some(known) => Err(format!(
                "{name} is an option of {}, not of {subcommand}; quorlock {subcommand} --help lists what there is.",
                joined(known.of, "and")
            )),
            None => {
                let hint = if subcommand == Run { " Options of the command go behind it." } else { "" };
                Err(format!(
                    "There is no option {name}; quorlock {subcommand} --help lists what there is.{hint}"
                ))
            }
        }
    }

    fn set(&mut self, setting: Setting, name: &str, parser: &mut Parser) -> Result<(), String> {
        match setting {
            Setting::Masters => {
                let url = text(name, parser)?;
                self.masters.push(url.ok_or_else(|| {
                    format!("{name} is not valid UTF-8: percent-encode the odd bytes as %XX.")
                })?);
            }
            Setting::Ttl => self.ttl = Some(duration_of(name, parser)?),
            Setting::NoRenew => self.no_renew = true,
            Setting::Wait => self.wait = Some(duration_of(name, parser)?),
            Setting::NoWait => self.no_wait = true,
            Setting::ConflictExitCode => {
                let code = text(name, parser)?.and_then(|text| text.parse().ok());
                self.conflict_exit_code =
                    Some(code.ok_or_else(|| format!("{name} needs a number from 0 to 255."))?);
            }
            Setting::MaxHold => self.max_hold = Some(duration_of(name, parser)?),
            Setting::Grace => self.grace = Some(duration_of(name, parser)?),
            Setting::Fenced => self.fenced = true,
            Setting::Heal => self.heal = true,
            Setting::RestartGuard => self.restart_guard = Some(duration_of(name, parser)?),
            Setting::AllowEviction => {
                let policy = text(name, parser)?.and_then(|text| EvictionPolicy::named(&text));
                self.evictions.push(policy.ok_or_else(|| {
                    format!("{name} needs a policy as maxmemory-policy has it, such as volatile-ttl.")
                })?);
            }
            Setting::Port => {
                let port = text(name, parser)?.and_then(|text| text.parse().ok());
                self.ports.push(port.ok_or_else(|| format!("{name} needs a number from 0 to 65535."))?);
            }
            Setting::Bind => self.bind = Some(loopback(name, parser)?),
            Setting::Quiet => self.quiet = true,
            Setting::Verbose => self.verbose = self.verbose.saturating_add(1),
            Setting::Json => self.json = true,
        }
        Ok(())
    }
}

/// The value of an option, or `None` if it is not UTF-8.
fn text(name: &str, parser: &mut Parser) -> Result<Option<String>, String> {
    let value = parser.value().map_err(|_| format!("{name} needs a value behind it; --help shows which."))?;
    Ok(value.into_string().ok())
}

fn duration_of(name: &str, parser: &mut Parser) -> Result<Duration, String> {
    let value = text(name, parser)?.unwrap_or_else(|| "?".to_owned());
    duration::parse(&value).map_err(|reason| format!("{name} {reason}."))
}

fn loopback(name: &str, parser: &mut Parser) -> Result<IpAddr, String> {
    let address = text(name, parser)?.and_then(|text| text.parse::<IpAddr>().ok());
    address.filter(IpAddr::is_loopback).ok_or_else(|| {
        format!(
            "{name} needs an address of the loopback, such as 127.0.0.1 or ::1: these masters are for tests and \
             demonstrations on this machine, and others are not to depend on them."
        )
    })
}

pub(super) fn name_of(option: &Arg<'_>) -> String {
    match option {
        Arg::Short(letter) => format!("-{}", letter.escape_debug()),
        Arg::Long(name) => format!("--{}", name.escape_debug()),
        Arg::Value(_) => "an argument".to_owned(),
    }
}

/// The parser's error as a sentence of ours, without the value that the parser's own would repeat.
pub(super) fn sentence(error: &lexopt::Error) -> String {
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
