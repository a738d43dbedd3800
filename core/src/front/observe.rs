//! Spans and events for `tracing`. `guide::observability` lists them all.
//!
//! Subscribers are called without a mutex held: what happens under one is gathered as notices and
//! reported after it. No report ever contains a token or a password.

use std::fmt;
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;
use std::time::Duration;

use tracing::field::{Empty, display};
use tracing::level_filters::LevelFilter;
use tracing::{Level, Span, event, info_span};

use super::host::Host;
use super::sync::contain;
use crate::connection::Warning;
use crate::endpoint::{Address, Endpoint};
use crate::lock::Lock;
use crate::machine::Machine;
use crate::protocol::{
    Acquire, AcquireError, Cause, Config, Entropy, Event, LossCause, MasterId, Quorum, ReleaseOutcome,
    Targets,
};
use crate::time::Instant;

const TARGET: &str = "quorlock";

/// The targets that a lock's events name.
pub(super) struct Subject(Option<Targets>);

impl Subject {
    /// No targets, for commands that are not reported.
    pub(super) fn none() -> Self {
        Self(None)
    }

    pub(super) fn of(targets: &Targets) -> Self {
        Self(Some(targets.clone()))
    }
}

/// The span from a request to its grant or failure. It is never entered: other code runs while it
/// is open.
pub(super) struct Acquisition {
    span: Span,
    is_settled: bool,
}

/// The span's fields for a grant.
pub(super) struct GrantFields {
    attempts: u32,
    votes: usize,
    needed: usize,
    masters: usize,
    validity: Duration,
}

impl GrantFields {
    pub(super) fn of(lock: &Lock, quorum: Quorum, validity: Duration) -> Self {
        Self {
            attempts: lock.attempts(),
            votes: lock.votes_granted(),
            needed: quorum.needed(),
            masters: quorum.masters(),
            validity,
        }
    }
}

impl Acquisition {
    pub(super) fn begin(wanted: &Acquire) -> Self {
        let span = info_span!(
            target: TARGET,
            "quorlock.acquire",
            otel.kind = "client",
            db.system.name = "redis",
            db.operation.name = if wanted.resumption.is_some() { "resume" } else { "lock" },
            quorlock.resource = %wanted.targets,
            quorlock.outcome = Empty,
            quorlock.attempts = Empty,
            quorlock.votes.granted = Empty,
            quorlock.votes.needed = Empty,
            quorlock.masters = Empty,
            quorlock.validity_ms = Empty,
            quorlock.error = Empty,
            error.type = Empty,
        );
        Self { span, is_settled: false }
    }

    pub(super) fn granted(&mut self, grant: &GrantFields) {
        self.is_settled = true;
        self.span.record("quorlock.outcome", "granted");
        self.span.record("quorlock.attempts", grant.attempts);
        self.span.record("quorlock.votes.granted", grant.votes);
        self.span.record("quorlock.votes.needed", grant.needed);
        self.span.record("quorlock.masters", grant.masters);
        self.span.record("quorlock.validity_ms", millis(grant.validity));
    }

    /// The owner holds the lock already.
    pub(super) fn reentered(&mut self) {
        self.is_settled = true;
        self.span.record("quorlock.outcome", "reentered");
    }

    pub(super) fn refused(&mut self, error: &AcquireError) {
        self.is_settled = true;
        let kind = error.kind();
        self.span.record("quorlock.outcome", kind);
        self.span.record("error.type", kind);
        self.span.record("quorlock.error", display(error));
        let Some(ballot) = error.ballot() else { return };
        self.span.record("quorlock.attempts", ballot.attempts());
        self.span.record("quorlock.votes.granted", ballot.granted());
        self.span.record("quorlock.votes.needed", ballot.needed());
        self.span.record("quorlock.masters", ballot.votes().count());
    }
}

impl Drop for Acquisition {
    fn drop(&mut self) {
        if !self.is_settled {
            self.span.record("quorlock.outcome", "abandoned");
        }
    }
}

/// What happened under the machine's mutex and is worth reporting.
pub(super) struct Notices {
    notices: Vec<Notice>,
    /// The subscriber's level: what it ignores is not gathered.
    level: LevelFilter,
}

enum Notice {
    Renewed { resource: Targets, valid_until: Instant },
    Extended { resource: Targets, valid_until: Option<Instant> },
    Lost { resource: Targets, cause: LossCause },
    WaitsForOwn { resource: Targets },
    Released { resource: Targets, outcome: &'static str },
    Master { config: Arc<Config>, master: MasterId, change: Change },
}

enum Change {
    Reconnecting,
    Up {
        warnings: Vec<Warning>,
    },
    /// Some warnings only come with later answers.
    Warned {
        warnings: Vec<Warning>,
    },
    Down(Cause),
    Quarantined {
        until: Instant,
    },
}

/// Each master's state when it was last reported.
pub(super) struct Told(Vec<Standing>);

impl Told {
    pub(super) fn nothing() -> Self {
        Self(Vec::new())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Standing {
    health: Health,
    /// How many warnings the present connection had.
    warned: usize,
    quarantined_until: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Health {
    #[default]
    Opening,
    Ready,
    /// The master is down for this cause. A cause that differs only in its numbers is not reported
    /// again.
    Down(Discriminant<Cause>),
}

/// Two ends of a quarantine that differ by no more are the same one. Each answer gives the rest in
/// milliseconds and takes some time to arrive, so the computed ends differ slightly.
const SAME_QUARANTINE: Duration = Duration::from_secs(1);

/// Whether a quarantine until then is another one than that which was `told`.
fn is_another_quarantine(told: Option<Instant>, until: Instant) -> bool {
    told.is_none_or(|told| until > told + SAME_QUARANTINE)
}

impl Default for Notices {
    fn default() -> Self {
        Self { notices: Vec::new(), level: LevelFilter::current() }
    }
}

impl Notices {
    pub(super) fn event(&mut self, subject: &Subject, event: &Event) {
        let Some(resource) = subject.0.as_ref().filter(|_| self.level >= Level::WARN) else { return };
        let resource = || resource.clone();
        let notice = match event {
            Event::Lost { cause, .. } => Notice::Lost { resource: resource(), cause: *cause },
            _ if self.level < Level::INFO => return,
            Event::WaitsForOwn { .. } => Notice::WaitsForOwn { resource: resource() },
            _ if self.level < Level::DEBUG => return,
            Event::Renewed { valid_until, .. } => {
                Notice::Renewed { resource: resource(), valid_until: *valid_until }
            }
            Event::Extended { result, .. } => {
                Notice::Extended { resource: resource(), valid_until: result.as_ref().ok().copied() }
            }
            Event::Released { outcome, .. } => {
                let outcome = match outcome {
                    ReleaseOutcome::StillOurs => "still_ours",
                    ReleaseOutcome::NotOurs => "not_ours",
                    ReleaseOutcome::Unknown(_) => "unknown",
                };
                Notice::Released { resource: resource(), outcome }
            }
            // The span reports these.
            Event::Granted { .. } | Event::NotAcquired { .. } => return,
            // These are not reported.
            Event::Bootstrapped { .. }
            | Event::Inspected { .. }
            | Event::SemaphoreInspected { .. }
            | Event::ForceReleased { .. } => return,
        };
        self.notices.push(notice);
    }

    pub(super) fn masters<E: Entropy>(&mut self, machine: &Machine<E>, told: &mut Told) {
        if self.level < Level::WARN {
            return;
        }
        told.0.resize(machine.config().masters.len(), Standing::default());
        for ((master, connection), told) in machine.connections().zip(&mut told.0) {
            let quarantined_until = connection.quarantined_until();
            let health = match (connection.is_ready(), connection.fault()) {
                (true, _) => Health::Ready,
                (false, Some(cause)) => Health::Down(discriminant(&cause)),
                (false, None) => Health::Opening,
            };
            let warnings = connection.warnings();
            let standing = Standing { health, warned: warnings.len(), quarantined_until };
            let before = std::mem::replace(told, standing);
            if *told == before {
                continue;
            }
            let config = machine.config();
            let mut push = |change| {
                self.notices.push(Notice::Master { config: Arc::clone(config), master, change });
            };
            if health != before.health {
                push(match connection.fault() {
                    _ if connection.is_ready() => Change::Up { warnings: warnings.to_vec() },
                    Some(cause) => Change::Down(cause),
                    None => Change::Reconnecting,
                });
            } else if let Some(warnings) = warnings.get(before.warned..).filter(|it| !it.is_empty()) {
                push(Change::Warned { warnings: warnings.to_vec() });
            }
            let is_news = |until: &Instant| is_another_quarantine(before.quarantined_until, *until);
            if let Some(until) = quarantined_until.filter(is_news) {
                push(Change::Quarantined { until });
            }
        }
    }

    pub(super) fn tell(self, host: &dyn Host) {
        for notice in self.notices {
            contain(|| notice.tell(host));
        }
    }
}

/// An event without a parent span: the thread that reports it may be unrelated to the lock.
macro_rules! tell {
    ($level:ident, $name:literal, $message:literal, { $($fields:tt)* }) => {
        event!(name: $name, target: TARGET, parent: None, Level::$level, { db.system.name = "redis", $($fields)* }, $message)
    };
}

impl Notice {
    fn tell(self, host: &dyn Host) {
        match self {
            Self::Renewed { resource, valid_until } => {
                let validity = millis(valid_until.since(host.now()));
                tell!(DEBUG, "quorlock.renewed", "renewed", { quorlock.resource = %resource, quorlock.validity_ms = validity });
            }
            Self::Extended { resource, valid_until } => {
                let validity = valid_until.map(|until| millis(until.since(host.now())));
                let outcome = if validity.is_some() { "granted" } else { "failed" };
                tell!(DEBUG, "quorlock.extended", "extension ended", {
                    quorlock.resource = %resource, quorlock.outcome = outcome, quorlock.validity_ms = validity
                });
            }
            Self::Lost { resource, cause } => {
                tell!(WARN, "quorlock.lost", "lock lost", { quorlock.resource = %resource, quorlock.cause = cause.kind() });
            }
            Self::WaitsForOwn { resource } => {
                tell!(INFO, "quorlock.waits_for_own", "a request has waited for a second for a lock that this process holds: code that asks again for a lock that it holds needs an `Owner`", { quorlock.resource = %resource });
            }
            Self::Released { resource, outcome } => {
                tell!(DEBUG, "quorlock.released", "released", { quorlock.resource = %resource, quorlock.outcome = outcome });
            }
            Self::Master { config, master, change } => {
                if let Some(endpoint) = config.masters.get(master.index()) {
                    change.tell(endpoint, &config.masters, host);
                }
            }
        }
    }
}

impl Change {
    fn tell(self, endpoint: &Endpoint, masters: &[Endpoint], host: &dyn Host) {
        let (address, port) = match endpoint.address() {
            Address::Tcp { host, port } => (host.into(), Some(*port)),
            Address::Unix(path) => (path.to_string_lossy(), None),
        };
        let address = &*address;
        match self {
            Self::Reconnecting => {
                tell!(INFO, "quorlock.master.reconnecting", "connection to master ended, another one is opened", { server.address = address, server.port = port });
            }
            Self::Up { warnings } => {
                tell!(INFO, "quorlock.master.up", "master up", { server.address = address, server.port = port });
                warnings.into_iter().for_each(|warning| warn(warning, address, port));
            }
            Self::Warned { warnings } => {
                warnings.into_iter().for_each(|warning| warn(warning, address, port));
            }
            Self::Down(cause) => {
                tell!(WARN, "quorlock.master.down", "master down", {
                    server.address = address, server.port = port, quorlock.cause = %Described(cause, endpoint, masters)
                });
            }
            Self::Quarantined { until } => {
                tell!(WARN, "quorlock.master.quarantined", "master has lost its data, or may have, and does not vote yet", {
                    server.address = address, server.port = port, quorlock.quarantine_ms = millis(until.since(host.now()))
                });
            }
        }
    }
}

fn warn(warning: Warning, address: &str, port: Option<u16>) {
    match warning {
        Warning::UndeclaredReplicas => {
            tell!(WARN, "quorlock.master.undeclared_replicas", "master has replicas that its URL does not declare, so the restart guard does not cover their promotion: add replicas=", {
                server.address = address, server.port = port, quorlock.warning = ?warning
            });
        }
        Warning::NoRestartGuard => {
            tell!(WARN, "quorlock.master.no_restart_guard", "other clients use the restart guard on this master and this client does not, which voids it for all: turn it on in every client", {
                server.address = address, server.port = port, quorlock.warning = ?warning
            });
        }
        Warning::OtherServer => {
            tell!(WARN, "quorlock.master.other_server", "another server answers now, and the old one did not restart: both were up at once", {
                server.address = address, server.port = port, quorlock.warning = ?warning
            });
        }
        Warning::OutdatedFiles => {
            tell!(WARN, "quorlock.master.outdated_files", "the files of cacert=, cert= or key= have changed and cannot be used, so their earlier contents are in use: `quorlock doctor` says what is wrong with them", {
                server.address = address, server.port = port, quorlock.warning = ?warning
            });
        }
        _ => {
            tell!(WARN, "quorlock.master.denied", "master denies a command that Quorlock can do without", {
                server.address = address, server.port = port, quorlock.warning = ?warning
            });
        }
    }
}

/// A master's cause, with all masters' names for its text.
struct Described<'a>(Cause, &'a Endpoint, &'a [Endpoint]);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.describe(Some(self.1), self.2, f)
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "observe_tests.rs"]
mod tests;
