//! Counts the outcomes of locks, under the engine's mutex, which is held at these points anyway.

use std::sync::Arc;
use std::time::Duration;

use super::report::{Acquisitions, Extensions, Losses, MasterReport, Releases, Report};
use crate::machine::{Machine, MasterState};
use crate::protocol::{AcquireError, Ballot, Config, Event, LossCause, MasterId, ReleaseOutcome};
use crate::time::Instant;

#[derive(Default)]
pub(super) struct Figures {
    acquisitions: Acquisitions,
    extensions: Extensions,
    releases: Releases,
    losses: Losses,
    renewals: u64,
    waiting: u64,
    /// Each master's connections.
    connections: Vec<Connections>,
}

#[derive(Clone, Copy, Default)]
struct Connections {
    asked_for: u64,
    stood: u64,
}

impl Figures {
    pub(super) fn new(masters: usize) -> Self {
        Self { connections: vec![Connections::default(); masters], ..Self::default() }
    }

    // Acquisitions.

    pub(super) fn sought(&mut self) {
        self.waiting += 1;
    }

    pub(super) fn granted(&mut self, attempts: u32, took: Duration) {
        self.waiting = self.waiting.saturating_sub(1);
        self.acquisitions.granted += 1;
        self.acquisitions.attempts += u64::from(attempts);
        self.acquisitions.latency.record(took);
    }

    /// The request was refused before the machine saw it.
    pub(super) fn refused_at_once(&mut self, error: &AcquireError) {
        self.acquisitions.refused.count(error);
        self.acquisitions.attempts += u64::from(error.ballot().map_or(0, Ballot::attempts));
    }

    fn refused(&mut self, error: &AcquireError) {
        self.waiting = self.waiting.saturating_sub(1);
        self.refused_at_once(error);
    }

    /// The driver ended while the lock was sought.
    pub(super) fn driver_ended(&mut self) {
        self.refused(&AcquireError::DriverEnded);
    }

    /// The request's future was dropped while the lock was sought.
    pub(super) fn abandoned(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
        self.gave_up();
    }

    /// The request's future was dropped while its lock was not sought.
    pub(super) fn gave_up(&mut self) {
        self.acquisitions.abandoned += 1;
    }

    /// An owner got another handle of what it holds.
    pub(super) fn reentered(&mut self) {
        self.acquisitions.reentered += 1;
    }

    /// The lock is no longer sought, because its owner holds it.
    pub(super) fn joined(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    // Holding.

    /// A guard was dropped.
    pub(super) fn dropped(&mut self) {
        self.releases.dropped += 1;
    }

    pub(super) fn handed_over(&mut self) {
        self.releases.handed_over += 1;
    }

    /// Counts an event. A refusal that no caller waits for is not counted: its caller was counted
    /// when it gave up.
    pub(super) fn count(&mut self, event: &Event, is_told: bool) {
        match event {
            Event::NotAcquired { error, .. } if is_told => self.refused(error),
            Event::Renewed { .. } => self.renewals += 1,
            Event::Extended { result: Ok(_), .. } => self.extensions.granted += 1,
            Event::Extended { result: Err(_), .. } => self.extensions.failed += 1,
            Event::Lost { cause: LossCause::NotHeld, .. } => self.losses.not_held += 1,
            Event::Lost { cause: LossCause::OtherFleet, .. } => self.losses.other_fleet += 1,
            Event::Lost { .. } => self.losses.expired += 1,
            Event::Released { outcome, .. } => match outcome {
                ReleaseOutcome::StillOurs => self.releases.still_ours += 1,
                ReleaseOutcome::NotOurs => self.releases.not_ours += 1,
                ReleaseOutcome::Unknown(_) => self.releases.unknown += 1,
            },
            Event::NotAcquired { .. }
            | Event::Granted { .. }
            | Event::WaitsForOwn { .. }
            | Event::Bootstrapped { .. }
            | Event::Inspected { .. }
            | Event::SemaphoreInspected { .. }
            | Event::ForceReleased { .. } => {}
        }
    }

    // Masters.

    /// A connection was demanded.
    pub(super) fn opening(&mut self, master: MasterId) {
        if let Some(connections) = self.connections.get_mut(master.index()) {
            connections.asked_for += 1;
        }
    }

    /// A connection has been opened.
    pub(super) fn opened(&mut self, master: MasterId) {
        if let Some(connections) = self.connections.get_mut(master.index()) {
            connections.stood += 1;
        }
    }

    /// All counts, with the present state.
    pub(super) fn report<E: crate::protocol::Entropy>(
        &self,
        config: &Arc<Config>,
        machine: &Machine<E>,
        now: Instant,
    ) -> Report {
        let masters = config.masters.iter().zip(&self.connections).zip(machine.connections());
        let masters = masters.map(|((endpoint, connections), (_, connection))| MasterReport {
            endpoint: endpoint.clone(),
            state: MasterState::of(connection),
            quarantine: connection
                .quarantined_until()
                .map(|until| until.since(now))
                .filter(|remaining| !remaining.is_zero()),
            is_awaited: connection.is_in_flight(),
            connections_asked_for: connections.asked_for,
            reconnects: connections.stood.saturating_sub(1),
        });
        Report {
            acquisitions: self.acquisitions,
            extensions: self.extensions,
            releases: self.releases,
            losses: self.losses,
            renewals: self.renewals,
            held: machine.held(),
            waiting: self.waiting,
            masters: masters.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{BootstrapError, ExtendError, ExtensionId, LockId, Resource};

    /// All counts that are not zero.
    fn counted(figures: &Figures) -> Vec<(&'static str, u64)> {
        let Figures { extensions, renewals, waiting, acquisitions, .. } = figures;
        let others = [
            ("extensions granted", extensions.granted),
            ("extensions failed", extensions.failed),
            ("renewals", *renewals),
            ("waiting", *waiting),
        ];
        let counts = acquisitions.refused.by_kind().chain(figures.releases.by_outcome());
        let counts = counts.chain(figures.losses.by_kind()).chain(others);
        counts.filter(|(_, count)| *count > 0).collect()
    }

    #[test]
    fn an_event_adds_one_to_the_count_of_its_kind() {
        let lock = LockId { index: 0, generation: 0 };
        let ballot = || Ballot {
            targets: Resource::new("job").unwrap().into(),
            masters: Vec::new().into(),
            votes: None,
            attempts: 1,
            callers_ahead: 0,
        };
        let extended = |result| Event::Extended { lock, extension: ExtensionId(1), result };
        let lost = |cause| Event::Lost { lock, cause };
        let released = |outcome| Event::Released { lock, outcome };
        let valid_until = Instant::ORIGIN;
        for (event, count) in [
            (Event::NotAcquired { lock, error: AcquireError::NoEntropy }, Some("no_entropy")),
            (Event::Renewed { lock, valid_until }, Some("renewals")),
            (extended(Ok(valid_until)), Some("extensions granted")),
            (extended(Err(ExtendError::TooManyExtensions)), Some("extensions failed")),
            (lost(LossCause::Expired), Some("expired")),
            (lost(LossCause::NotHeld), Some("not_held")),
            (lost(LossCause::OtherFleet), Some("other_fleet")),
            (released(ReleaseOutcome::StillOurs), Some("still_ours")),
            (released(ReleaseOutcome::NotOurs), Some("not_ours")),
            (released(ReleaseOutcome::Unknown(Arc::new(ballot()))), Some("unknown")),
            (Event::Granted { lock, valid_until }, None),
            (Event::WaitsForOwn { lock }, None),
            (Event::Bootstrapped { lock, result: Err(BootstrapError::DriverEnded) }, None),
        ] {
            let mut figures = Figures::new(1);
            for times in 1..=2 {
                figures.sought();
                figures.count(&event, true);
                let mut expected: Vec<_> = count.map(|count| (count, times)).into_iter().collect();
                if !matches!(event, Event::NotAcquired { .. }) {
                    expected.push(("waiting", times));
                }
                assert_eq!(counted(&figures), expected, "{event:?}");
            }
        }
    }

    #[test]
    fn a_refusal_is_not_counted_again_after_its_caller_gave_up() {
        let mut figures = Figures::new(1);
        (0..2).for_each(|_| figures.sought());
        figures.abandoned();
        let lock = LockId { index: 0, generation: 0 };
        figures.count(&Event::NotAcquired { lock, error: AcquireError::NoEntropy }, false);
        assert_eq!(counted(&figures), [("waiting", 1)]);
        assert_eq!(figures.acquisitions.abandoned, 1);
    }
}
