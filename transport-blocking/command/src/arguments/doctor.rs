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
/// that your clients use: without it the guard counts as used if most masters have its marker.
/// Permissions are those of the user in each URL. If they are restricted to some keys, give
/// --prefix, and the name of a lock with --resource. Passwords are never printed.
///
/// If all masters answer, the command takes about one second. It waits for masters that do not
/// answer, but never takes longer than nine seconds.
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
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
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
