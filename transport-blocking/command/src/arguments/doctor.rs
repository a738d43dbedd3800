//! The arguments of `quorlock doctor`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};

use super::common::{Guarded, Hidden, Masters, Prefix, Terms, resource, url};

/// Report which promises of Quorlock hold on these masters
///
/// Asks all masters at once what they are and how they are set up: version, role, replicas,
/// persistence, eviction, notifications, permissions, clock, round trip. Then it reports which
/// promises hold on them, and what to change where one does not. It changes nothing on the masters.
///
/// Name the masters after the options, with -m, or in QUORLOCK_MASTERS. Give the --restart-guard
/// that your clients use: promises are judged with it. With --replacing, it is taken from the
/// markers of most masters if it is not given. Permissions are those of the user in each URL. If
/// they are restricted to some keys, give --prefix, and the name of a lock with --resource.
/// Passwords are never printed.
///
/// If all masters answer, the command takes about one second. It waits for masters that do not
/// answer, but never takes longer than nine seconds, or twelve with --replacing.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = include_str!("../help/doctor.txt"))]
pub(crate) struct DoctorArguments {
    /// A master, as with -m
    #[arg(value_name = "URL", conflicts_with = "urls", value_parser = OsStringValueParser::new().try_map(url))]
    named: Vec<Hidden<String>>,
    #[command(flatten)]
    masters: Masters,
    #[command(flatten)]
    guarded: Guarded,
    #[command(flatten)]
    prefix: Prefix,
    /// The name of a lock: the permissions for its keys are checked
    #[arg(
        long,
        value_name = "RESOURCE",
        default_value = "job",
        value_parser = OsStringValueParser::new().try_map(resource)
    )]
    resource: OsString,
    /// Report instead whether NEW may be named now in place of OLD, which is off for good. Each is
    /// HOST:PORT, with the other settings of OLD, or a URL as with -m. The masters are those of the
    /// clients, with OLD or with NEW
    #[arg(long, value_name = "OLD=NEW", value_parser = OsStringValueParser::new().try_map(replacing))]
    pub(crate) replacing: Option<Replacing>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// A master and its successor, as they were given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replacing {
    pub(crate) old: Hidden<String>,
    pub(crate) new: Hidden<String>,
}

/// Splits OLD=NEW. The parameters of a URL have equals signs too, so a URL begins behind the last
/// one that is followed by a scheme.
fn replacing(given: OsString) -> Result<Replacing, &'static str> {
    const NEEDS: &str = "needs OLD=NEW, two masters such as redis-2:6379=redis-4:6379";
    let given =
        given.into_string().map_err(|_| "is not valid UTF-8: percent-encode the bytes that are not (%XX)")?;
    let is_scheme = |text: &str| {
        text.split_once("://").is_some_and(|(scheme, _)| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.chars().all(|it| it.is_ascii_alphanumeric() || it == '+')
        })
    };
    let mut parts = given.match_indices('=').map(|(place, _)| (&given[..place], &given[place + 1..])).rev();
    let last = parts.clone().next();
    let (old, new) = parts.find(|(_, new)| is_scheme(new)).or(last).ok_or(NEEDS)?;
    if old.trim().is_empty() || new.trim().is_empty() {
        return Err(NEEDS);
    }
    Ok(Replacing { old: Hidden(old.to_owned()), new: Hidden(new.to_owned()) })
}

impl DoctorArguments {
    /// Returns the settings from which the configuration is built.
    pub(crate) fn terms(&self) -> Terms<'_> {
        // Nothing is granted here. With the guard, the TTL must not be longer than the guard's.
        let ttl = self.guarded.restart_guard.unwrap_or(Duration::from_secs(10));
        Terms::of(&self.masters, &self.prefix).granting(ttl, &self.guarded)
    }

    /// The name of the lock whose permissions are asked for.
    pub(crate) fn resource(&self) -> &[u8] {
        OsStr::as_bytes(&self.resource)
    }

    /// Adds the masters that are named after the options to those of `-m`, and returns what the
    /// environment may complete.
    pub(super) fn incomplete(&mut self) -> (&mut Masters, &mut Prefix) {
        self.masters.add(std::mem::take(&mut self.named));
        (&mut self.masters, &mut self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_and_the_new_master_are_split_although_urls_have_equals_signs() {
        for (given, old, new) in [
            ("a:1=b:2", "a:1", "b:2"),
            ("a:1=redis://b?replicas=1", "a:1", "redis://b?replicas=1"),
            ("redis://a?replicas=1=b:2", "redis://a?replicas=1", "b:2"),
            ("redis://a?replicas=1=rediss://b?sni=c", "redis://a?replicas=1", "rediss://b?sni=c"),
            ("unix:///a?pass=b=unix:///c?pass=d", "unix:///a?pass=b", "unix:///c?pass=d"),
        ] {
            let split = replacing(given.into()).unwrap();
            assert_eq!((split.old.0.as_str(), split.new.0.as_str()), (old, new), "{given}");
        }
        for given in ["", "a:1", "=", "a:1=", "=b:2", "redis://a"] {
            assert!(replacing(given.into()).is_err(), "{given}");
        }
    }
}
