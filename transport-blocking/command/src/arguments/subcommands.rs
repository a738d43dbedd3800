//! The subcommands with few options.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap::builder::ValueHint;
use clap_complete::Shell;
use quorlock_core::{EvictionPolicy, Targets};
use quorlock_embedded::Dialect;

use super::claim::Claim;
use super::common::{Guarded, Masters, Resource, Seek, Speech, Terms, check_kept, policy};
use crate::duration;

/// Take a lock and leave it held, for a script
///
/// Takes the lock RESOURCE, prints its token as lines for a shell, and ends. The lock is not
/// renewed: it runs out after its TTL unless quorlock extend extends it before, and quorlock
/// release releases it. If only one command needs the lock, quorlock run is safer: it renews the
/// lock, and ends the command in time.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = include_str!("../help/acquire.txt"))]
pub(crate) struct AcquireArguments {
    #[command(flatten)]
    pub(crate) masters: Masters,
    #[command(flatten)]
    pub(crate) seek: Seek,
    #[command(flatten)]
    guarded: Guarded,
    #[command(flatten)]
    pub(crate) speech: Speech,
}

impl AcquireArguments {
    /// Returns what the configuration is built from.
    pub(crate) fn terms(&self) -> Terms<'_> {
        Terms::plain(&self.masters, self.seek.claim.resource()).granting(self.seek.ttl, &self.guarded)
    }
}

/// Extend a lock that quorlock acquire took
///
/// Makes the lock RESOURCE last for the TTL from now on, if more than half of the masters still
/// have its key with the token in QUORLOCK_TOKEN. The lock stays held, and nothing is printed. If
/// the lock already lasts longer than the TTL, nothing changes. Every master is asked once. Give
/// --shared, --permits and --also as they were given to quorlock acquire.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = include_str!("../help/extend.txt"))]
pub(crate) struct ExtendArguments {
    #[command(flatten)]
    pub(crate) masters: Masters,
    /// How long the masters keep the lock from now on
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse_positive)]
    pub(crate) ttl: Duration,
    #[command(flatten)]
    guarded: Guarded,
    #[command(flatten)]
    pub(crate) speech: Speech,
    #[command(flatten)]
    pub(crate) claim: Claim,
}

impl ExtendArguments {
    /// Returns what the configuration is built from.
    pub(crate) fn terms(&self) -> Terms<'_> {
        Terms::plain(&self.masters, self.claim.resource()).granting(self.ttl, &self.guarded)
    }
}

/// Release a lock that quorlock acquire took
///
/// Deletes the key of RESOURCE on all masters that have it with the token in QUORLOCK_TOKEN, and
/// reports whether the lock was held until now. If it was, a message is printed only with -v or
/// --json. Give --shared, --permits and --also as they were given to quorlock acquire; other
/// readers keep the lock.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = include_str!("../help/release.txt"))]
pub(crate) struct ReleaseArguments {
    #[command(flatten)]
    pub(crate) masters: Masters,
    /// Keep others out for this time from now on, instead of deleting the key: the key then expires
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_positive)]
    pub(crate) keep_for: Option<Duration>,
    #[command(flatten)]
    pub(crate) speech: Speech,
    #[command(flatten)]
    pub(crate) claim: Claim,
}

impl ReleaseArguments {
    pub(super) fn check(&self) -> Result<(), String> {
        let Some(span) = self.keep_for else { return Ok(()) };
        self.claim.check_kept()?;
        check_kept("--keep-for", span)
    }
}

/// Show what each master reports about a lock
///
/// Asks all masters at once, and changes nothing there. The first line sums up the answers: whether
/// one holder has the lock on a quorum of masters, and for how much longer; whether the lock is
/// free; or why neither is known. A line for each master follows: its key, whether it votes, its
/// server and version, its role, its uptime.
///
/// For a shared lock, the first line says how many readers have it, or how many members of which
/// group, when the last of them ends, and whether a writer waits. With --permits K it says which
/// permits of the semaphore RESOURCE are held, and a line for each of these says for how long.
///
/// Holders are called holder a, holder b and so on: the same letter is the same token. A key with
/// the token in QUORLOCK_TOKEN, which run and acquire set, is called ours. Tokens and passwords are
/// never printed.
///
/// The command waits for masters that do not answer, but never takes longer than two seconds.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = include_str!("../help/status.txt"))]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    pub(crate) masters: Masters,
    /// RESOURCE is a semaphore with K permits, not a lock
    #[arg(long, value_name = "K", value_parser = permits)]
    pub(crate) permits: Option<u32>,
    /// Print nothing; only the exit code reports the state
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) resource: Resource,
}

/// Delete a lock that another client holds
///
/// Deletes the key of RESOURCE on all masters. No token is needed. This is for a lock whose holder
/// is known to be dead and whose TTL is long. A key that is not a string is not a lock, and is
/// never deleted. If the lock is shared, all readers lose it.
///
/// With --permits K it deletes the permits of the semaphore RESOURCE, all that are held or only the
/// one that --index names.
///
/// The holder of the lock is not notified at once: it learns of it at its next renewal. Until then
/// it may continue as if it held the lock, while another client already holds it. Only fencing
/// tokens protect what the lock protects; see --fenced of quorlock run.
///
/// At a terminal, the command first shows the state of the lock and asks for its name. Elsewhere it
/// needs --yes-delete-it-whoever-holds-it.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = include_str!("../help/force-release.txt"))]
pub(crate) struct ForceReleaseArguments {
    /// Do not ask for confirmation
    #[arg(long = "yes-delete-it-whoever-holds-it")]
    pub(crate) is_confirmed: bool,
    /// RESOURCE is a semaphore with K permits, not a lock
    #[arg(long, value_name = "K", value_parser = permits)]
    pub(crate) permits: Option<u32>,
    /// With --permits, delete this permit only; the first one is 0
    #[arg(long, value_name = "N", value_parser = index, requires = "permits")]
    pub(crate) index: Option<u32>,
    #[command(flatten)]
    pub(crate) masters: Masters,
    #[command(flatten)]
    pub(crate) speech: Speech,
    #[command(flatten)]
    pub(crate) resource: Resource,
}

/// Tell new masters under the restart guard that no lock is held
///
/// With --restart-guard a master that may have lost its data does not vote until all locks that it
/// may have forgotten have run out. New masters look the same. This command tells all of them that
/// nothing can be locked yet, so that they vote at once. If all of them vote already, it changes
/// nothing.
///
/// Use it only if that is true: for masters on which no client has held a lock within the time of
/// --restart-guard. It cannot be found out: a master that has lost all its data looks like a new
/// one. So never call it after masters have failed, nor for the successor of a dead master.
///
/// If a master has keys that Quorlock writes beside locks, such as fencing counters, permits and
/// queues, of any prefix, it has been used; then nothing is changed. The same holds if some masters
/// vote already and others do not. The masters vote by themselves when their quarantine is over.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = include_str!("../help/bootstrap.txt"))]
pub(crate) struct BootstrapArguments {
    /// The longest TTL that any client of these masters uses. All clients must give the same time
    /// and name the same masters
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_positive)]
    pub(crate) restart_guard: Duration,
    #[command(flatten)]
    pub(crate) masters: Masters,
    /// Accept masters with this maxmemory-policy too; repeat the option for each policy
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    allow_eviction: Vec<EvictionPolicy>,
    #[command(flatten)]
    pub(crate) speech: Speech,
}

impl BootstrapArguments {
    /// Returns what the configuration is built from.
    pub(crate) fn terms(&self) -> Terms<'_> {
        Terms {
            masters: &self.masters,
            prefix: "",
            // Nothing is locked here, so any TTL will do that the guard allows.
            ttl: self.restart_guard,
            grants: true,
            restart_guard: Some(self.restart_guard),
            evictions: &self.allow_eviction,
        }
    }
}

/// Serve masters in this process, for tests and demonstrations
///
/// Serves one master at each PORT, in this process, until it gets INT or TERM. They understand the
/// commands that locks need, from any Redis client. Each counts as one master, so three of them
/// form a quorum.
///
/// They are not servers for production: their data is lost when this command ends, and they listen
/// on the loopback only. Keep real locks on Redis or Valkey.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = include_str!("../help/master.txt"))]
pub(crate) struct MasterArguments {
    /// A port to listen on, 0 for any free one; repeat the option for each master
    #[arg(long = "port", value_name = "PORT", required = true, value_parser = port)]
    pub(crate) ports: Vec<u16>,
    /// An address of the loopback
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_parser = loopback)]
    pub(crate) bind: IpAddr,
    /// Leave out the features of Redis that this server or proxy does not have: enterprise,
    /// kvrocks, garnet, envoy or twemproxy
    #[arg(long, value_name = "SERVER", default_value = "redis", value_parser = dialect, hide_default_value = true)]
    pub(crate) like: Dialect,
    #[command(flatten)]
    pub(crate) speech: Speech,
}

fn dialect(name: &str) -> Result<Dialect, String> {
    let names = Dialect::NAMED.map(|(name, _)| name).join(", ");
    Dialect::named(name).ok_or_else(|| format!("needs one of these: {names}"))
}

fn port(text: &str) -> Result<u16, &'static str> {
    text.parse().map_err(|_| "needs a number from 0 to 65535")
}

fn permits(text: &str) -> Result<u32, &'static str> {
    let most = Targets::MAX_PERMITS.into();
    text.parse().ok().filter(|permits| (1..=most).contains(permits)).ok_or("needs a number from 1 to 1024")
}

fn index(text: &str) -> Result<u32, &'static str> {
    let end = Targets::MAX_PERMITS.into();
    text.parse().ok().filter(|index| *index < end).ok_or("needs a number from 0 to 1023")
}

fn loopback(text: &str) -> Result<IpAddr, &'static str> {
    text.parse().ok().filter(IpAddr::is_loopback).ok_or(
        "needs an address of the loopback, such as 127.0.0.1 or ::1: these masters are for tests and demonstrations \
         on this machine",
    )
}

/// Show a lock on five masters while things go wrong
///
/// Starts five masters in this process, on free ports of the loopback, and four workers that take
/// turns with one lock, under which they count up a number in a store. Nothing else is needed, and
/// only the picture is left behind. In about 13 seconds
///
/// - a master hangs, and another is killed: the lock still passes from worker to worker, because
///   three of five masters are enough;
///
/// - the dead one is restarted empty: the restart guard keeps it from voting until every lock that
///   it may have forgotten has run out;
///
/// - a worker pauses while it holds the lock, for longer than the lock lasts. Another one gets it,
///   with a larger fencing token. The first one continues and writes as if nothing had happened,
///   and the store refuses the write.
///
/// In a terminal this is shown as it happens; elsewhere each event is a line. #7 is the seventh
/// fencing token, which is a long number.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = include_str!("../help/demo.txt"))]
pub(crate) struct DemoArguments {
    /// Draw the timeline into this file
    #[arg(long, value_name = "FILE", default_value = "quorlock-demo.svg", value_hint = ValueHint::FilePath)]
    svg: PathBuf,
    /// Draw nothing
    #[arg(long, conflicts_with = "svg")]
    no_svg: bool,
}

impl DemoArguments {
    /// Where the picture goes, if one is drawn.
    pub(crate) fn svg(&self) -> Option<&Path> {
        (!self.no_svg).then_some(&self.svg)
    }
}

/// Print completions for a shell
///
/// Prints a script with which the shell completes the subcommands and options of quorlock.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = include_str!("../help/completions.txt"))]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Write the manual pages
///
/// Writes a manual page for quorlock and for each of its subcommands into the directory DIR:
/// quorlock.1, quorlock-run.1 and so on.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = include_str!("../help/man.txt"))]
pub(crate) struct ManArguments {
    /// An existing directory
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
}
