//! Which masters keep a lock, so that they vote for no other.

use std::time::Duration;

use quorlock_core::internals::{Sentinel, seats_of};
use quorlock_core::{Mode, Resource};

use super::clock::TrueTime;
use super::groups::Groups;
use super::observer::Held;
use super::random::nanos;
use super::state::{MasterNode, State};

/// What is asked where several servers have a master's keys: the first one that has a key.
struct Keeper<'a> {
    servers: &'a [&'a MasterNode],
    groups: &'a Groups,
    now: TrueTime,
}

impl Keeper<'_> {
    /// The server that has this key, as it is known there, and its clock.
    fn find(&self, key: &[u8]) -> Option<(&MasterNode, Vec<u8>, Duration)> {
        let key = self.groups.key(key);
        let clocks = self.servers.iter().map(|node| (*node, Duration::from_nanos(node.clock.read(self.now))));
        let mut having = clocks.filter(|(node, clock)| node.model.has(&key, *clock));
        having.next().map(|(node, clock)| (node, key, clock))
    }

    /// Whether all of the lock is kept until the guard's end, unless it is released.
    fn keeps(&self, held: &Held) -> bool {
        let lasts = |node: &MasterNode, end: Option<Duration>| {
            end.is_none_or(|at| node.clock.when(nanos(at)) >= held.ends)
        };
        let seats = seats_of(&held.targets);
        let keys = |resource: &Resource| -> Vec<Vec<u8>> {
            if seats.is_empty() {
                return vec![resource.key().to_vec()];
            }
            seats.iter().map(|seat| resource.seat_key((*seat).into())).collect()
        };
        let mut each = held
            .targets
            .iter()
            .flat_map(|(resource, mode)| keys(resource).into_iter().map(move |key| (resource, mode, key)));
        each.all(|(resource, mode, key)| {
            let Some((node, key, clock)) = self.find(&key) else { return false };
            let value = node.model.value(0, &key, clock);
            let is_ours = match mode {
                // The lock was exclusive before, and the master has not been told yet.
                Mode::Shared(_) if value == Some(held.token.as_slice()) => true,
                Mode::Shared(group) => {
                    let entry = self.find(&resource.shared_key()).and_then(|(node, shared, clock)| {
                        let mut all = node.model.keys(clock);
                        let scores = all.find(|other| other.key == shared)?.scores?;
                        let end = Duration::from_millis(scores.get(held.token.as_slice())?.unsigned_abs());
                        Some(lasts(node, Some(end)))
                    });
                    value == Some(Sentinel::of(group.name()).as_slice()) && entry == Some(true)
                }
                _ => value == Some(held.token.as_slice()),
            };
            is_ours && lasts(node, node.model.expires_at(0, &key, clock))
        })
    }
}

impl State {
    /// Whether a master votes for nobody else until a guard's end: one of its servers keeps the
    /// lock, or has lost it and is silent. A replica that has lost it does not vote anyway.
    ///
    /// While a slot is being moved, some of the keys are at one group and some at another.
    pub(super) fn is_kept(&self, held: &Held, master: usize) -> bool {
        let keeps =
            |servers: &[&MasterNode]| Keeper { servers, groups: &self.groups, now: self.now }.keeps(held);
        let (owner, target) = self.keepers(master);
        let is_kept = self.groups.members(owner).any(|server| {
            let Some(node) = self.masters.get(server) else { return false };
            let is_silent = self.observer.outages.is_silent_until(server, held.ends);
            is_silent && !node.part.is_replica() || keeps(&[node])
        });
        let halves = || {
            let ends = [owner, target?].map(|group| self.masters.get(*self.groups.named.get(group)?));
            let [Some(source), Some(target)] = ends else { return None };
            Some(keeps(&[source, target]))
        };
        is_kept || halves() == Some(true)
    }
}
