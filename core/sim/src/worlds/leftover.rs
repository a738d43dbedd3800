//! Keys that masters still keep although no client holds their locks.

use std::time::Duration;

use quorlock_core::Resource;

use super::groups::untagged;
use super::reading::entries;
use super::state::{MasterNode, State};
use super::violation::Violation;
use crate::master::sharers;

/// A shared key lives 1 ms longer than its last entry, and ends are whole milliseconds. A larger
/// value would overlook keys that are left for a short time.
const ROUNDING: Duration = Duration::from_millis(3);

impl State {
    /// Looks for keys that no client holds. All masters must have answered for some time.
    pub(super) fn look_for_left_keys(&mut self) {
        let mut found = None;
        // Replicas have the keys of their primary. In a cluster, no command reads the keys of
        // servers that do not own the slot.
        let is_primary = |node: &MasterNode| !node.has_left && !node.part.is_replica();
        let primaries = self.masters.iter().enumerate().filter(|(_, node)| is_primary(node));
        let primaries = primaries.filter(|(server, _)| self.serves(*server));
        for (master, node) in primaries {
            let server_now = Duration::from_nanos(node.clock.read(self.now));
            for held in node.model.keys(server_now) {
                for (resource, token, _) in entries(held, server_now) {
                    if self.is_left(master, token) {
                        found = Some(Violation::KeyLeft { master, resource });
                    }
                }
            }
            // A shared key ends with its last entry.
            let shared = node.model.keys(server_now).filter(|held| {
                let lasts = held.expires_at.is_none_or(|end| end > server_now + ROUNDING);
                lasts && held.value.and_then(sharers::read).is_some()
            });
            let mut without = shared.filter(|held| entries(*held, server_now).next().is_none());
            let without = without.find_map(|held| Resource::new(untagged(held.key)).ok());
            if let Some(resource) = without {
                found = Some(Violation::KeyLeft { master, resource });
            }
        }
        if let Some(violation) = found {
            self.observer.report(violation);
        }
    }

    /// A master has taken over all keys of another one. The clients whose tokens were copied do not
    /// know that they are on this master too.
    pub(super) fn tokens_come_along(&mut self, master: usize) {
        let Some(node) = self.masters.get(master) else { return };
        let server_now = Duration::from_nanos(node.clock.read(self.now));
        for held in node.model.keys(server_now) {
            let tokens = entries(held, server_now).map(|(_, token, _)| (master, token.to_vec()));
            self.observer.copied.extend(tokens);
        }
    }

    /// Whether a master should not keep this token any more.
    fn is_left(&self, master: usize, token: &[u8]) -> bool {
        let Some(known) = self.observer.known.get(token) else { return false };
        let is_excused = known.senders.iter().any(|client| self.observer.dead.contains(client))
            || self.observer.late.get(&(master, token.to_vec())).is_some_and(|link| {
                // The client sent the release on the same connection, but it was lost when that
                // connection ended. Or the release was not sent, because the socket was full.
                self.link(*link).is_some_and(|link| link.is_full || link.parting.contains(token))
            })
            || self.observer.delivered.may_stay(token)
            || self.observer.copied.contains(&(master, token.to_vec()))
            || self.observer.held.iter().any(|held| held.token == token);
        !is_excused
    }
}
