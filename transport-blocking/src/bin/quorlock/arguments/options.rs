//! The options: how each is written, which subcommands have it, and what was read of them.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use lexopt::{Arg, Parser};
use quorlock_core::EvictionPolicy;
use quorlock_core::sim::{Fault, When};

use super::Subcommand::{
    self, Acquire, Bootstrap, Demo, Extend, ForceRelease, Master, Release, Run, Simulate, Status,
};
use super::{faults, joined};
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
    Seed,
    MastersCount,
    Clients,
    Fault,
    Random,
    WithoutDefence,
    List,
    Timeline,
    Mermaid,
    Svg,
    NoSvg,
    Confirmed,
}

/// The subcommands that speak of what they do.
const SPEAKING: &[Subcommand] = &[Run, Acquire, Extend, Release, Status, ForceRelease, Bootstrap, Master];
/// Those of them that can say more.
const TELLING: &[Subcommand] = &[Run, Acquire, Extend, Release, ForceRelease, Bootstrap, Master];
/// The subcommands that speak to masters.
const ASKING: &[Subcommand] = &[Run, Acquire, Extend, Release, Status, ForceRelease, Bootstrap];

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

const OPTIONS: [Known; 29] = [
    known(Setting::Masters, Some('m'), "master", ASKING),
    known(Setting::Ttl, None, "ttl", &[Run, Acquire, Extend, Simulate]),
    known(Setting::NoRenew, None, "no-renew", &[Run]),
    known(Setting::Wait, Some('w'), "wait", &[Run, Acquire]),
    known(Setting::NoWait, Some('n'), "no-wait", &[Run, Acquire]),
    known(Setting::ConflictExitCode, Some('E'), "conflict-exit-code", &[Run, Acquire]),
    known(Setting::MaxHold, None, "max-hold", &[Run]),
    known(Setting::Grace, None, "grace", &[Run]),
    known(Setting::Fenced, None, "fenced", &[Run, Acquire, Simulate]),
    known(Setting::Heal, None, "heal", &[Run]),
    known(Setting::RestartGuard, None, "restart-guard", &[Run, Acquire, Extend, Bootstrap, Simulate]),
    known(Setting::AllowEviction, None, "allow-eviction", &[Run, Acquire, Extend, Bootstrap]),
    known(Setting::Port, None, "port", &[Master]),
    known(Setting::Bind, None, "bind", &[Master]),
    known(Setting::Quiet, Some('q'), "quiet", SPEAKING),
    known(Setting::Verbose, Some('v'), "verbose", TELLING),
    known(Setting::Json, None, "json", SPEAKING),
    known(Setting::Seed, None, "seed", &[Simulate]),
    known(Setting::MastersCount, None, "masters", &[Simulate]),
    known(Setting::Clients, None, "clients", &[Simulate]),
    known(Setting::Fault, None, "fault", &[Simulate]),
    known(Setting::Random, None, "random", &[Simulate]),
    known(Setting::WithoutDefence, None, "without-defence", &[Simulate]),
    known(Setting::List, None, "list", &[Simulate]),
    known(Setting::Timeline, None, "timeline", &[Simulate]),
    known(Setting::Mermaid, None, "mermaid", &[Simulate]),
    known(Setting::Svg, None, "svg", &[Demo, Simulate]),
    known(Setting::NoSvg, None, "no-svg", &[Demo]),
    known(Setting::Confirmed, None, "yes-delete-it-whoever-holds-it", &[ForceRelease]),
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
    pub(super) seed: Option<u64>,
    pub(super) masters_count: Option<usize>,
    pub(super) clients: Option<usize>,
    pub(super) faults: Vec<(When, Fault)>,
    pub(super) random: bool,
    pub(super) without_defence: bool,
    pub(super) list: bool,
    pub(super) timeline: bool,
    pub(super) mermaid: bool,
    pub(super) svg: Option<PathBuf>,
    pub(super) no_svg: bool,
    pub(super) confirmed: bool,
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
            Setting::Seed => self.seed = Some(number(name, parser)?),
            Setting::MastersCount => self.masters_count = Some(number(name, parser)?),
            Setting::Clients => self.clients = Some(number(name, parser)?),
            Setting::Fault => {
                let fault = text(name, parser)?.unwrap_or_default();
                self.faults.push(faults::parse(&fault).map_err(|reason| format!("{name} {reason}."))?);
            }
            Setting::Random => self.random = true,
            Setting::WithoutDefence => self.without_defence = true,
            Setting::List => self.list = true,
            Setting::Timeline => self.timeline = true,
            Setting::Mermaid => self.mermaid = true,
            Setting::NoSvg => self.no_svg = true,
            Setting::Confirmed => self.confirmed = true,
            Setting::Svg => {
                let file =
                    parser.value().map_err(|_| format!("{name} needs the name of a file behind it."))?;
                self.svg = Some(PathBuf::from(file)).filter(|file| !file.as_os_str().is_empty());
                if self.svg.is_none() {
                    return Err(format!("{name} needs the name of a file behind it."));
                }
            }
        }
        Ok(())
    }
}

/// The value of an option, or `None` if it is not UTF-8.
fn text(name: &str, parser: &mut Parser) -> Result<Option<String>, String> {
    let value = parser.value().map_err(|_| format!("{name} needs a value behind it; --help shows which."))?;
    Ok(value.into_string().ok())
}

fn number<T: FromStr>(name: &str, parser: &mut Parser) -> Result<T, String> {
    let number = text(name, parser)?.and_then(|text| text.parse().ok());
    number.ok_or_else(|| format!("{name} needs a whole number, such as 3."))
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
