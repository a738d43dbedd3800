//! The observer's record of locks that were released and still keep others out.

use quorlock_core::{Instant, Targets};

use super::access::conflict;
use super::observer::Observer;
use super::state::State;
use super::violation::Violation;

/// A lock whose keys a quorum keeps after its release.
#[derive(Debug)]
pub(super) struct Kept {
    client: usize,
    pub(super) targets: Targets,
    /// When the time is over, on the client's clock.
    until: u64,
}

impl Observer {
    /// What a client holds with this token.
    pub(super) fn targets_of(&self, client: usize, token: &[u8]) -> Option<Targets> {
        let held = self.held.iter().find(|held| held.client == client && held.token == token)?;
        Some(held.targets.clone())
    }

    /// A quorum of masters has said that it keeps a lock for this client.
    pub(super) fn keeps(&mut self, client: usize, targets: Targets, until: Instant) {
        self.kept.push(Kept { client, targets, until: until.as_nanos() });
        self.is_stale = true;
    }
}

impl State {
    /// No client may hold a kept lock before its time is over by the clock of the client that
    /// released it.
    pub(super) fn look_at_kept(&mut self) {
        let (now, clients) = (self.now, &self.clients);
        let Observer { kept, held, delivered, .. } = &mut self.observer;
        kept.retain(|kept| clients.get(kept.client).is_some_and(|node| now < node.clock.when(kept.until)));
        let early = kept.iter().find_map(|kept| {
            let is_early = |held: &&super::observer::Held| {
                // Other readers may share a lock that a reader keeps.
                let conflicts = conflict(&held.targets, &kept.targets);
                conflicts && now < held.ends && !delivered.is_undermined(held)
            };
            let held = held.iter().find(is_early)?;
            Some(Violation::GrantedWhileKept { client: held.client, by: kept.client })
        });
        if let Some(violation) = early {
            self.observer.report(violation);
        }
    }
}
