//! Which masters keep a lock, so that they vote for no other client.

use std::time::Duration;

use quorlock_core::internals::seats_of;
use quorlock_core::{Mode, Resource};

use super::clock::TrueTime;
use super::groups::Groups;
use super::observer::Held;
use super::random::nanos;
use super::state::{MasterNode, State};
use crate::master::sharers;

impl Held {
    /// Whether a server keeps all of the lock until the guard's end, unless it is released. A
    /// server whose slot is being moved refuses requests for a key that it does not have.
    fn is_kept_by(&self, node: &MasterNode, groups: &Groups, moves: bool, now: TrueTime) -> bool {
        let server_now = Duration::from_nanos(node.clock.read(now));
        let lasts = |end: Option<Duration>| end.is_none_or(|at| node.clock.when(nanos(at)) >= self.ends);
        let seats = seats_of(&self.targets);
        let keys = |resource: &Resource| -> Vec<Vec<u8>> {
            if seats.is_empty() {
                return vec![groups.key(resource.key())];
            }
            seats.iter().map(|seat| groups.key(&resource.seat_key((*seat).into()))).collect()
        };
        let mut each = self
            .targets
            .iter()
            .flat_map(|(resource, mode)| keys(resource).into_iter().map(move |key| (mode, key)));
        let is_gone = |key: &[u8]| moves && !node.model.has(key, server_now);
        each.all(|(mode, key)| {
            if is_gone(&key) {
                return true;
            }
            let value = node.model.value(0, &key, server_now);
            let is_ours = match mode {
                // The lock was exclusive before, and the master does not know of the change yet.
                Mode::Shared(_) if value == Some(self.token.as_slice()) => true,
                Mode::Shared(group) => value.and_then(sharers::read).is_some_and(|(name, entries)| {
                    let end = sharers::end_of(entries, self.token.as_slice());
                    let end = end.map(|end| Duration::from_millis(end.unsigned_abs()));
                    name == group.name() && end.is_some_and(|end| lasts(Some(end)))
                }),
                _ => value == Some(self.token.as_slice()),
            };
            is_ours && lasts(node.model.expires_at(0, &key, server_now))
        })
    }
}

impl State {
    /// Whether a master votes for no other client until a guard's end: one of its servers keeps the
    /// lock, or has lost it and is silent. A replica that has lost it does not vote anyway.
    pub(super) fn is_kept(&self, held: &Held, master: usize) -> bool {
        let Some(owner) = self.group_at(held.client, master) else { return false };
        self.is_being_rebuilt(owner)
            || self.groups.members(owner).any(|server| {
                let Some(node) = self.masters.get(server) else { return false };
                let is_silent = self.observer.outages.is_silent_until(server, held.ends);
                let moves = self.groups.moves_from(master) == Some(server);
                is_silent && !node.part.is_replica() || held.is_kept_by(node, &self.groups, moves, self.now)
            })
    }

    /// Whether the primary of a group is the replica of another group's. Then no server of the
    /// group votes, and a promotion begins a quarantine.
    fn is_being_rebuilt(&self, group: usize) -> bool {
        let primary = self.groups.named.get(group).and_then(|primary| self.masters.get(*primary));
        let followed = primary.and_then(|node| node.part.follows());
        followed.is_some_and(|other| self.groups.group_of(other) != group)
    }
}
