//! What several subcommands are told alike.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use lexopt::Parser;
use quorlock_core::EvictionPolicy;

use super::options::{Collected, Word};
use super::{Environment, Hidden, Request, Subcommand};
use crate::output::{Output, Verbosity};

/// What every subcommand is told that speaks to masters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Common {
    /// The masters' URLs as they were given.
    pub(crate) masters: Hidden<Vec<String>>,
    /// How long a grant lasts on the masters.
    pub(crate) ttl: Duration,
    /// The longest TTL of the whole fleet, if masters that come back empty are to be kept from voting.
    pub(crate) restart_guard: Option<Duration>,
    /// What servers may do when their memory is full, although the restart guard is on.
    pub(crate) evictions: Vec<EvictionPolicy>,
    /// How much is said.
    pub(crate) verbosity: Verbosity,
    /// Whether it is said as JSON.
    pub(crate) json: bool,
}

impl Common {
    /// What these options say.
    pub(crate) fn output(&self) -> Output {
        Output::new(self.verbosity, self.json)
    }
}

/// What is locked, and how it is sought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seek {
    /// The name of the lock.
    pub(crate) resource: Vec<u8>,
    /// How long to wait for the lock.
    pub(crate) wait: Wait,
    /// The exit code when another holds the lock.
    pub(crate) conflict_exit_code: u8,
    /// Whether the grant is to have a number.
    pub(crate) fenced: bool,
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

/// What a command line without a command of its own consists of.
pub(super) enum Plain {
    /// It asks for something else.
    Other(Request),
    /// Options, and the name of the lock if there is one.
    Read(Box<Collected>, Option<OsString>),
}

/// Reads options and at most `most` names of locks; `beyond` is the sentence about one more.
pub(super) fn plain(
    subcommand: Subcommand,
    mut parser: Parser,
    most: usize,
    beyond: &str,
) -> Result<Plain, String> {
    let mut read = Box::new(Collected::default());
    let mut names = Vec::new();
    loop {
        match read.read(subcommand, &mut parser)? {
            Word::Option => {}
            Word::Value(_) if names.len() == most => return Err(beyond.to_owned()),
            Word::Value(name) => names.push(name),
            Word::Help => return Ok(Plain::Other(Request::Help(Some(subcommand)))),
            Word::Version => return Ok(Plain::Other(Request::Version)),
            Word::End => return Ok(Plain::Read(read, names.pop())),
        }
    }
}

impl Collected {
    pub(super) fn common(&mut self, masters_variable: Option<OsString>) -> Result<Common, String> {
        let ttl = self.ttl.unwrap_or(Duration::from_secs(10));
        if ttl.is_zero() {
            return Err("--ttl must be longer than zero.".to_owned());
        }
        if self.restart_guard.is_some_and(|longest| longest.is_zero()) {
            return Err("--restart-guard must be longer than zero.".to_owned());
        }
        if self.restart_guard.is_none() && !self.evictions.is_empty() {
            return Err(
                "--allow-eviction is for --restart-guard: without it no policy is refused.".to_owned()
            );
        }
        let verbosity = self.verbosity()?;
        Ok(Common {
            masters: Hidden(masters(std::mem::take(&mut self.masters), masters_variable)?),
            ttl,
            restart_guard: self.restart_guard,
            evictions: std::mem::take(&mut self.evictions),
            verbosity,
            json: self.json,
        })
    }

    pub(super) fn seek(&self, resource: Vec<u8>) -> Result<Seek, String> {
        let wait = match (self.no_wait, self.wait) {
            (true, Some(_)) => return Err("-w and -n contradict each other: give one of them.".to_owned()),
            (true, None) => Wait::OneTry,
            (false, Some(longest)) if longest.is_zero() => Wait::OneTry,
            (false, Some(longest)) => Wait::UpTo(longest),
            (false, None) => Wait::Forever,
        };
        let conflict_exit_code = self.conflict_exit_code.unwrap_or(1);
        Ok(Seek { resource, wait, conflict_exit_code, fenced: self.fenced })
    }

    pub(super) fn verbosity(&self) -> Result<Verbosity, String> {
        match (self.quiet, self.verbose) {
            (true, 0) => Ok(Verbosity::Quiet),
            (true, _) => Err("-q and -v contradict each other: give one of them.".to_owned()),
            (false, more) => Ok(Verbosity::Normal(more)),
        }
    }
}

/// The name of the lock; `missing` is the sentence about none.
pub(super) fn resource(given: Option<OsString>, missing: &str) -> Result<Vec<u8>, String> {
    match given {
        None => Err(missing.to_owned()),
        Some(name) if name.is_empty() => Err("RESOURCE is empty: give the lock a name.".to_owned()),
        Some(name) => Ok(name.into_vec()),
    }
}

/// The masters of the options, or else of the environment.
fn masters(given: Vec<String>, variable: Option<OsString>) -> Result<Vec<String>, String> {
    let name = Environment::MASTERS;
    if given.iter().any(|url| url.trim().is_empty()) {
        return Err("-m is empty: write a master's URL behind it, such as redis://host:6379.".to_owned());
    }
    if !given.is_empty() {
        return Ok(given);
    }
    let variable = variable.unwrap_or_default().into_string().map_err(|_| {
        format!("{name} is not valid UTF-8: percent-encode the odd bytes of its URLs as %XX.")
    })?;
    let named: Vec<String> =
        variable.split(',').map(str::trim).filter(|url| !url.is_empty()).map(str::to_owned).collect();
    if named.is_empty() {
        return Err(format!(
            "No masters: name each with -m URL, such as -m redis://host:6379, or all in {name}, separated by commas."
        ));
    }
    Ok(named)
}
