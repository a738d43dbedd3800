//! Options that several subcommands have.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use quorlock_blocking::Tls;
use quorlock_blocking::quorlock_tls::TlsError;
use quorlock_core::{Endpoint, EvictionPolicy, Ttl};

use super::{Claim, Environment};
use crate::duration;
use crate::output::{Output, Verbosity};

/// A value that may be a secret, or contain one: `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Hidden<T>(pub(crate) T);

impl<T> fmt::Debug for Hidden<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(hidden)")
    }
}

/// The masters that keep the locks.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct Masters {
    /// A master, such as redis://user:password@host:6379/0; repeat the option for each master
    #[arg(short = 'm', long = "master", value_name = "URL", value_parser = OsStringValueParser::new().try_map(url))]
    urls: Vec<Hidden<String>>,
    #[command(flatten)]
    pub(crate) tls: TlsArguments,
}

/// How masters with rediss:// URLs are reached.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct TlsArguments {
    /// With rediss:// URLs, a PEM file of the issuers to trust instead of the system's
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// With rediss:// URLs, a PEM file of this client's certificate
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// With rediss:// URLs, a PEM file of the private key of --cert
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// With rediss:// URLs, the name that the masters' certificates must have, if it is not the
    /// host of the URL
    #[arg(long, value_name = "NAME")]
    sni: Option<String>,
    /// Accept any certificate: anyone on the way can then read passwords and change locks
    #[arg(long)]
    pub(crate) tls_insecure: bool,
}

impl TlsArguments {
    /// Takes the files of the environment that no option names. A certificate and its key come from
    /// the same place.
    fn complete(&mut self, environment: &Environment) -> Result<(), String> {
        let [cacert, cert, key] = environment.tls_files();
        self.cacert = self.cacert.take().or(cacert);
        if self.cert.is_none() && self.key.is_none() {
            (self.cert, self.key) = (cert, key);
        }
        match (&self.cert, &self.key) {
            (Some(_), None) => {
                Err("The certificate of this client needs its private key: name that with --key FILE.".into())
            }
            (None, Some(_)) => {
                Err("The private key of this client needs its certificate: name that with --cert FILE."
                    .into())
            }
            _ => Ok(()),
        }
    }

    /// Returns the TLS settings of these options; `None` if no option is given.
    pub(crate) fn security(&self) -> Result<Option<Tls>, TlsError> {
        if *self == Self::default() {
            return Ok(None);
        }
        let mut builder = Tls::builder();
        if let Some(file) = &self.cacert {
            builder = builder.root_file(file);
        }
        if let Some((certificate, key)) = self.cert.as_ref().zip(self.key.as_ref()) {
            builder = builder.client_files(certificate, key);
        }
        if let Some(name) = &self.sni {
            builder = builder.server_name(name);
        }
        if self.tls_insecure {
            builder = builder.dangerous().accept_any_certificate();
        }
        builder.build().map(Some)
    }
}

impl Masters {
    /// The masters' URLs, as they were given.
    pub(crate) fn urls(&self) -> impl Iterator<Item = &str> + Clone {
        self.urls.iter().map(|Hidden(url)| url.as_str())
    }

    /// Adds masters that were named without `-m`.
    pub(super) fn add(&mut self, named: Vec<Hidden<String>>) {
        self.urls.extend(named);
    }

    /// Takes the masters of the environment if no option names any.
    pub(super) fn complete(&mut self, environment: &Environment) -> Result<(), String> {
        if self.urls.is_empty() {
            self.urls = environment.masters()?.into_iter().map(Hidden).collect();
        }
        // Passwords and locks would go in clear text although an option asks for TLS. The
        // environment's files may be for other commands.
        let asks_for_tls = self.tls != TlsArguments::default();
        if asks_for_tls && self.urls().all(is_without_tls) {
            return Err(
                "--cacert, --cert, --key, --sni and --tls-insecure are for masters with TLS, and no URL \
                        asks for it: write rediss:// or valkeys://."
                    .into(),
            );
        }
        self.tls.complete(environment)
    }
}

/// Whether the connection to the master of this URL is not encrypted. An unusable URL is reported
/// later.
fn is_without_tls(url: &str) -> bool {
    url.parse::<Endpoint>().is_ok_and(|master| master.tls().is_none())
}

pub(super) fn url(given: OsString) -> Result<Hidden<String>, &'static str> {
    match given.into_string() {
        Err(_) => Err("is not valid UTF-8: percent-encode the bytes that are not (%XX)"),
        Ok(url) if url.trim().is_empty() => {
            Err("is empty: write a master's URL after it, such as redis://host:6379")
        }
        Ok(url) => Ok(Hidden(url)),
    }
}

/// The restart guard.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct Guarded {
    /// Do not let a master that lost its data vote for this time: the longest TTL that any client
    /// of these masters uses. All clients must give the same time; see quorlock bootstrap
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_positive)]
    pub(crate) restart_guard: Option<Duration>,
    /// With the restart guard, accept masters with this maxmemory-policy too; repeat the option for
    /// each policy
    #[arg(long, value_name = "POLICY", value_parser = policy, requires = "restart_guard")]
    pub(crate) allow_eviction: Vec<EvictionPolicy>,
}

pub(super) fn policy(name: &str) -> Result<EvictionPolicy, &'static str> {
    EvictionPolicy::named(name).ok_or("needs a value of maxmemory-policy, such as volatile-ttl")
}

/// The settings from which a configuration is built.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<'a> {
    /// The masters.
    pub(crate) masters: &'a Masters,
    /// What keys begin with.
    pub(crate) prefix: &'a str,
    /// How long a grant lasts on the masters.
    pub(crate) ttl: Duration,
    /// Whether the subcommand grants or extends locks, rather than only inspecting or releasing
    /// them.
    pub(crate) grants: bool,
    /// The longest TTL of the whole fleet, if the restart guard is on.
    pub(crate) restart_guard: Option<Duration>,
    /// Eviction policies that are accepted although the restart guard is on.
    pub(crate) evictions: &'a [EvictionPolicy],
}

impl<'a> Terms<'a> {
    /// The settings of a subcommand about one lock that grants and extends nothing.
    pub(crate) fn plain(masters: &'a Masters, resource: &'a Resource) -> Self {
        Self::of(masters, &resource.prefix)
    }

    /// The same for a subcommand that names no lock.
    pub(crate) fn of(masters: &'a Masters, prefix: &'a Prefix) -> Self {
        let prefix = prefix.as_str();
        Self { masters, prefix, ttl: DEFAULT_TTL, grants: false, restart_guard: None, evictions: &[] }
    }

    /// The same for a subcommand that grants or extends locks for this TTL.
    pub(crate) fn granting(self, ttl: Duration, guarded: &'a Guarded) -> Self {
        let Guarded { restart_guard, allow_eviction } = guarded;
        Self { ttl, grants: true, restart_guard: *restart_guard, evictions: allow_eviction, ..self }
    }
}

/// The TTL of locks without `--ttl`.
const DEFAULT_TTL: Duration = Duration::from_secs(10);

/// What is locked, and how long to wait for it.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct Seek {
    /// How long the masters keep the lock without a renewal
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse_positive)]
    pub(crate) ttl: Duration,
    /// Give up if the lock is not acquired within this time
    #[arg(short, long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "no_wait")]
    wait: Option<Duration>,
    /// Try once. Without -w and -n: wait until the lock is acquired
    #[arg(short, long)]
    no_wait: bool,
    /// The exit code when another client holds the lock. With 0 it is no error, and -q prints
    /// nothing about it
    #[arg(short = 'E', long, value_name = "N", default_value = "1", value_parser = exit_code)]
    pub(crate) conflict_exit_code: u8,
    /// Get a fencing token, which is larger than those of all earlier grants, for a store that
    /// refuses smaller ones
    #[arg(long)]
    pub(crate) fenced: bool,
    /// Wait in one queue with all other clients that use --fair: first come, first served. Only for
    /// a lock of one resource that is not shared
    #[arg(long, conflicts_with_all = ["shared", "permits", "also"])]
    pub(crate) fair: bool,
    #[command(flatten)]
    pub(crate) claim: Claim,
}

impl Seek {
    /// How long to wait for the lock.
    pub(crate) fn wait(&self) -> Wait {
        match (self.no_wait, self.wait) {
            (true, _) | (false, Some(Duration::ZERO)) => Wait::OneTry,
            (false, Some(longest)) => Wait::UpTo(longest),
            (false, None) => Wait::Forever,
        }
    }
}

fn exit_code(text: &str) -> Result<u8, &'static str> {
    text.parse().map_err(|_| "needs a number from 0 to 255")
}

/// Checks that `option` asks to keep keys no longer than the longest TTL.
pub(super) fn check_kept(option: &str, span: Duration) -> Result<(), String> {
    let longest = Ttl::MAX;
    if span <= longest {
        Ok(())
    } else {
        Err(format!("{option} must not be longer than {}.", duration::spoken(longest)))
    }
}

/// How long to wait for a lock that another client holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Until it is ours.
    Forever,
    /// No longer than this.
    UpTo(Duration),
    /// Not at all.
    OneTry,
}

/// The name of a lock, and the prefix of its key.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct Resource {
    /// The name of the lock
    #[arg(value_name = "RESOURCE", value_parser = OsStringValueParser::new().try_map(resource))]
    name: OsString,
    #[command(flatten)]
    pub(super) prefix: Prefix,
}

/// What keys on the masters begin with.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct Prefix {
    /// What the key on the masters begins with, before RESOURCE. All clients of a lock must use the
    /// same prefix
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
}

impl Resource {
    /// The name, which may be any bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.name.as_bytes()
    }
}

impl Prefix {
    /// What the key begins with; nothing by default.
    fn as_str(&self) -> &str {
        self.prefix.as_deref().unwrap_or_default()
    }

    /// Takes the prefix of the environment if no option sets it.
    pub(super) fn complete(&mut self, environment: &Environment) -> Result<(), String> {
        if self.prefix.is_none() {
            self.prefix = environment.prefix()?;
        }
        Ok(())
    }
}

pub(super) fn resource(name: OsString) -> Result<OsString, &'static str> {
    if name.is_empty() { Err("is empty: give the lock a name") } else { Ok(name) }
}

/// How much is printed, and whether as JSON.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct Speech {
    /// Print only errors
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Print more; repeat the option for still more
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Print JSON, one object with an "event" per line
    #[arg(long)]
    json: bool,
}

impl Speech {
    /// Returns the output on standard error that these options describe.
    pub(crate) fn output(&self) -> Output {
        self.output_with(0)
    }

    /// Returns the output as if `-v` had been given `more` times more.
    pub(crate) fn output_with(&self, more: u8) -> Output {
        let verbosity =
            if self.quiet { Verbosity::Quiet } else { Verbosity::Normal(self.verbose.saturating_add(more)) };
        Output::new(verbosity, self.json)
    }

    /// Whether to print JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }
}
