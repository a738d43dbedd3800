//! The options that name what is locked, and how.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use quorlock_blocking::Target;
use quorlock_core::Targets;

use super::common::{Resource, resource};
use crate::subject::Subject;

/// What is locked: one resource, several, or a permit; exclusively or shared.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct Claim {
    /// Hold RESOURCE, and what --also names, as a reader: others with --shared may hold it at the
    /// same time, and those without are kept out
    #[arg(long, conflicts_with = "permits")]
    shared: bool,
    /// Take one of K permits of RESOURCE, which at most K clients hold at the same time. A lock
    /// with the same name is independent of the permits. All clients should give the same K
    #[arg(long, value_name = "K", value_parser = permits, conflicts_with = "also")]
    permits: Option<u32>,
    /// Lock this resource too: all resources are locked or none; repeat the option for each
    /// resource
    #[arg(long, value_name = "RESOURCE", value_parser = OsStringValueParser::new().try_map(resource))]
    also: Vec<OsString>,
    #[command(flatten)]
    pub(super) resource: Resource,
}

impl Claim {
    /// The name of RESOURCE, which may be any bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.resource.as_bytes()
    }

    /// RESOURCE, with the prefix of all keys.
    pub(crate) fn resource(&self) -> &Resource {
        &self.resource
    }

    /// The names of all resources, RESOURCE first, each once.
    pub(crate) fn names(&self) -> Vec<&[u8]> {
        let mut seen = BTreeSet::new();
        let all = std::iter::once(self.as_bytes()).chain(self.also.iter().map(|name| name.as_bytes()));
        all.filter(|name| seen.insert(*name)).collect()
    }

    /// The resources that are locked under one token. Not for permits.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let target = if self.shared { Target::read } else { Target::write };
        self.names().into_iter().map(target).collect()
    }

    /// The number of permits, if one of them is requested.
    pub(crate) fn permits(&self) -> Option<u32> {
        self.permits
    }

    /// Whether one resource is locked, exclusively.
    pub(crate) fn is_plain(&self) -> bool {
        !self.shared && self.permits.is_none() && self.names().len() == 1
    }

    /// The names for messages and JSON.
    pub(crate) fn subject(&self) -> Subject {
        let names = self.names();
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        // The name comes first that is first in the order of the keys, as in the library's
        // messages.
        let first = text(names.iter().min().copied().unwrap_or_default());
        let name = match names.len() - 1 {
            0 => first,
            more => format!("{first} and {more} more"),
        };
        let also = names.iter().skip(1).map(|name| text(name)).collect();
        let resource = text(self.as_bytes());
        Subject { name, resource, also, is_shared: self.shared, permits: self.permits }
    }

    /// Checks that a release, which knows only the token, can keep the keys.
    pub(super) fn check_kept(&self) -> Result<(), String> {
        if self.is_plain() {
            return Ok(());
        }
        Err("--keep-for is for one lock that is not shared: leave out either --keep-for, or --shared, --permits and \
             --also; quorlock run --at-least keeps such locks."
            .to_owned())
    }
}

fn permits(text: &str) -> Result<u32, String> {
    let most = Targets::MAX_PERMITS;
    let permits = text.parse().ok().filter(|permits| (1..=u32::from(most)).contains(permits));
    permits.ok_or_else(|| format!("needs a number of permits from 1 to {most}"))
}
