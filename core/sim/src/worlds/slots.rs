//! Slots of a cluster: which server owns a master's slot, what the others know about that, and how
//! a slot moves between groups.
//!
//! Servers learn of a new owner at different times, and a former owner continues until it does. A
//! slot moves as a whole, or key by key: then its owner answers for the keys that it still has, and
//! says `ASK` or `TRYAGAIN` to all other requests.

use std::time::Duration;

use quorlock_core::Fleet;

use super::event::Event;
use super::groups::{Groups, TAG, host};
use super::random::nanos;
use super::state::{MasterNode, State};
use super::timeline::Happening;
use crate::master::{KeyEnd, Migrant, Slot};

/// How long after a move servers may take to learn the owner of the slot.
const GOSSIP: Duration = Duration::from_millis(300);

/// How long a server that hung serves its keys before it learns of the move.
const CATCHING_UP: Duration = Duration::from_millis(3);

/// The owner of a master's slot.
#[derive(Debug)]
pub(super) struct Holding {
    /// Incremented with each new owner. A server uses the latest that it knows.
    epoch: u64,
    pub(super) group: usize,
    moving: Option<Move>,
    /// How many moves there have been.
    moves: u64,
}

/// A slot that is being moved key by key.
#[derive(Clone, Copy, Debug)]
struct Move {
    number: u64,
    /// The server that had the slot. If another one of its group is promoted, the move is over.
    source: usize,
    /// The group that gets the slot. A server that is promoted there continues the move.
    target: usize,
    pace: Duration,
    /// Whether some key has moved.
    has_moved: bool,
    is_given_up: bool,
}

impl Holding {
    pub(super) fn new(group: usize) -> Self {
        Self { epoch: 1, group, moving: None, moves: 0 }
    }
}

impl Groups {
    /// The group that owns a master's slot.
    pub(super) fn owner_of(&self, master: usize) -> usize {
        self.slots.get(master).map_or(master, |slot| slot.group)
    }

    /// The server from which a master's slot is being moved, key by key.
    pub(super) fn moves_from(&self, master: usize) -> Option<usize> {
        Some(self.slots.get(master)?.moving?.source)
    }
}

fn address(server: usize) -> String {
    format!("{}:6379", host(server))
}

impl State {
    /// All servers know that the first group of each master owns its slot.
    pub(super) fn begin_slots(&mut self) {
        for master in 0..self.groups.slots.len() {
            self.all_know(master);
        }
    }

    fn all_know(&mut self, master: usize) {
        let Some((epoch, owner)) = self.owner(master) else { return };
        for server in self.groups.servers_of(master) {
            self.learns_owner(server, epoch, owner);
        }
    }

    /// The server that owns a master's slot, and since which epoch.
    fn owner(&self, master: usize) -> Option<(u64, usize)> {
        let slot = self.groups.slots.get(master)?;
        Some((slot.epoch, *self.groups.named.get(slot.group)?))
    }

    /// Whether a server is the one that a master's votes come from.
    pub(super) fn serves(&self, server: usize) -> bool {
        let owner = self.owner(self.groups.master_of(server));
        owner.is_none_or(|(_, owner)| owner == server)
    }

    /// Applies a server's knowledge of the owner, unless it knows a later one.
    fn learns_owner(&mut self, server: usize, epoch: u64, owner: usize) {
        let group = self.groups.group_of(server);
        // A server that has been promoted since has newer knowledge.
        let is_primary_of_group =
            group == self.groups.group_of(owner) && self.groups.named.get(group) == Some(&owner);
        let Some(node) = self.masters.get_mut(server).filter(|node| node.part.epoch < epoch) else { return };
        node.part.epoch = epoch;
        let slot =
            if owner == server { Slot::Owned(TAG.to_owned()) } else { Slot::Elsewhere(address(owner)) };
        node.model.set_slot(slot);
        let follows_it = node.part.follows() == Some(owner);
        if owner == server {
            self.note(|| Happening::OwnsSlot { master: server });
        } else if is_primary_of_group && !follows_it {
            self.note(|| Happening::Follows { master: server, other: owner });
            self.follow(server, owner, false);
        }
    }

    /// A server learns of an owner.
    pub(super) fn owner_is_told(&mut self, server: usize, epoch: u64, owner: usize) {
        let Some(node) = self.masters.get(server) else { return };
        let isolated = [server, owner].map(|end| self.masters.get(end).map(|node| node.part.isolated_until));
        let cut_until = isolated.into_iter().flatten().max().unwrap_or(0);
        let busy_until = node.hangs_until.max(node.away_until).max(cut_until);
        if self.now < busy_until {
            let at = busy_until + nanos(self.random.within(Duration::ZERO..=CATCHING_UP));
            self.schedule(at, Event::OwnerIsTold { server, epoch, owner });
        } else {
            self.learns_owner(server, epoch, owner);
        }
    }

    /// A server that is up owns its master's slot from now on, and the others learn it.
    fn claims(&mut self, server: usize, told_within: Duration) {
        let master = self.groups.master_of(server);
        let group = self.groups.group_of(server);
        let Some(slot) = self.groups.slots.get_mut(master) else { return };
        slot.epoch += 1;
        (slot.group, slot.moving) = (group, None);
        let epoch = slot.epoch;
        self.learns_owner(server, epoch, server);
        for other in self.groups.servers_of(master).filter(|other| *other != server) {
            let at = self.now + nanos(self.random.within(Duration::ZERO..=told_within));
            self.schedule(at, Event::OwnerIsTold { server: other, epoch, owner: server });
        }
    }

    /// A server was promoted. It takes over the slot if its group owns it.
    pub(super) fn takes_over(&mut self, server: usize, told_within: Duration) {
        let master = self.groups.master_of(server);
        let group = self.groups.group_of(server);
        if self.groups.slots.get(master).is_some_and(|slot| slot.group == group) {
            self.claims(server, told_within);
        }
    }

    /// The owner of the slot of this server's master, and the primary of another group, if both are
    /// up and the slot is not being moved.
    fn ends_of_move(&mut self, server: usize, further: usize) -> Option<(usize, usize)> {
        let master = self.groups.master_of(server);
        let slot = self.groups.slots.get(master).filter(|slot| slot.moving.is_none())?;
        let groups = self.groups.groups_of(master);
        let place = slot.group - groups.start + 1 + further % (groups.len() - 1);
        let target = groups.start + place % groups.len();
        let (_, source) = self.owner(master)?;
        let to = *self.groups.named.get(target)?;
        if !self.is_writing(source) || !self.is_writing(to) {
            return None;
        }
        if self.has_marker_of(source, to) {
            if !self.groups.returns_unasked {
                return None;
            }
            self.observer.leaves_assumptions();
        }
        Some((source, target))
    }

    /// Whether the restart guard's marker at one server is still that of another one: then the slot
    /// has come from there, and no lock has been requested since.
    fn has_marker_of(&self, source: usize, other: usize) -> bool {
        let [Some(node), Some(other)] = [source, other].map(|server| self.masters.get(server)) else {
            return false;
        };
        let marker = self.groups.key(Fleet::MARKER.as_bytes());
        let clock = Duration::from_nanos(node.clock.read(self.now));
        let marker = node.model.value(0, &marker, clock);
        marker.is_some_and(|marker| marker.starts_with(other.model.replication_id().as_bytes()))
    }

    pub(super) fn is_writing(&self, server: usize) -> bool {
        let is_there = |node: &MasterNode| self.now >= node.hangs_until && self.now >= node.away_until;
        self.masters.get(server).is_some_and(|node| is_there(node) && !node.model.is_replica())
    }

    /// A master's slot moves to another group at once, with all its keys.
    pub(super) fn move_slot(&mut self, server: usize, further: usize) {
        let Some((source, group)) = self.ends_of_move(server, further) else { return };
        let Some(target) = self.groups.named.get(group).copied() else { return };
        // Keys from an earlier time are deleted first.
        for key in self.keys_at(target) {
            self.take_key(target, &key);
        }
        for key in self.keys_at(source) {
            self.carry(source, target, &key, KeyEnd::Same);
        }
        self.slot_has_moved(source, target);
        if let Some((epoch, owner)) = self.owner(self.groups.master_of(source)) {
            self.learns_owner(source, epoch, owner);
        }
    }

    /// A master's slot begins to move to another group, key by key.
    pub(super) fn begin_reshard(&mut self, server: usize, further: usize, pace: Duration, is_given_up: bool) {
        let Some((source, target)) = self.ends_of_move(server, further) else { return };
        let master = self.groups.master_of(source);
        let Some(slot) = self.groups.slots.get_mut(master) else { return };
        slot.moves += 1;
        let number = slot.moves;
        slot.moving = Some(Move { number, source, target, pace, has_moved: false, is_given_up });
        let other = self.point_to_target(source, target);
        self.note(|| Happening::SlotMoves { master: source, other });
        self.plan_step(master, number, pace);
    }

    /// The source redirects requests for keys that it does not have.
    fn point_to_target(&mut self, source: usize, group: usize) -> usize {
        let target = self.groups.named.get(group).copied().unwrap_or(group);
        if let Some(node) = self.masters.get_mut(source) {
            node.model.set_slot(Slot::Moving(TAG.to_owned(), address(target)));
        }
        target
    }

    fn plan_step(&mut self, master: usize, number: u64, pace: Duration) {
        let at = self.now + self.travel_time() + nanos(self.random.within(Duration::ZERO..=pace));
        self.schedule(at, Event::SlotStep { master, number });
    }

    fn moving(&self, master: usize) -> Option<Move> {
        self.groups.slots.get(master)?.moving
    }

    /// The next key of a slot moves, or the move ends.
    pub(super) fn slot_step(&mut self, master: usize, number: u64) {
        let Some(moving) = self.moving(master).filter(|moving| moving.number == number) else { return };
        let Move { source, target, pace, has_moved, is_given_up, .. } = moving;
        let to = self.groups.named.get(target).copied().unwrap_or(target);
        if self.is_writing(source) && self.is_writing(to) {
            // Another server may be the primary there by now.
            self.point_to_target(source, target);
            let keys = self.keys_at(source);
            let place = self.random.below(keys.len().max(1));
            let Some(key) = keys.get(place) else {
                return self.slot_has_moved(source, to);
            };
            if is_given_up && has_moved && self.random.one_in(2) {
                return self.give_move_up(master, source);
            }
            self.carry(source, to, key, KeyEnd::Relative);
            if let Some(moving) = self.groups.slots.get_mut(master).and_then(|slot| slot.moving.as_mut()) {
                moving.has_moved = true;
            }
        }
        self.plan_step(master, number, pace);
    }

    /// The keys that have moved are gone from the source, which serves all of the slot again.
    fn give_move_up(&mut self, master: usize, source: usize) {
        if let Some(slot) = self.groups.slots.get_mut(master) {
            slot.moving = None;
        }
        if let Some(node) = self.masters.get_mut(source) {
            node.model.set_slot(Slot::Owned(TAG.to_owned()));
        }
        self.observer.ledger.lost(source);
        self.note(|| Happening::OwnsSlot { master: source });
    }

    fn keys_at(&self, server: usize) -> Vec<Vec<u8>> {
        let Some(node) = self.masters.get(server) else { return Vec::new() };
        let clock = Duration::from_nanos(node.clock.read(self.now));
        node.model.keys(clock).map(|held| held.key.to_vec()).collect()
    }

    fn take_key(&mut self, server: usize, key: &[u8]) -> Option<Migrant> {
        let node = self.masters.get_mut(server)?;
        let clock = Duration::from_nanos(node.clock.read(self.now));
        let taken = node.model.send_key(key, clock);
        self.tell_readers(server, None);
        taken
    }

    fn carry(&mut self, source: usize, target: usize, key: &[u8], end: KeyEnd) {
        let Some(migrant) = self.take_key(source, key) else { return };
        let Some(node) = self.masters.get_mut(target) else { return };
        let clock = Duration::from_nanos(node.clock.read(self.now));
        node.model.receive_key(migrant, end, clock);
        self.tell_readers(target, None);
        self.observer.keys_changed();
    }

    /// The move ends: all keys are at the target. It did not see the votes since it last had the
    /// slot, so it counts as having lost data.
    fn slot_has_moved(&mut self, source: usize, target: usize) {
        self.claims(target, GOSSIP);
        self.tokens_come_along(target);
        self.loses_data(target, true);
        self.observer.ledger.lost(source);
    }

    /// Ends all faults: moves are completed, and all servers know it.
    pub(super) fn heal_slots(&mut self) {
        for master in 0..self.groups.slots.len() {
            if let Some(Move { source, number, .. }) = self.moving(master) {
                (0..=self.keys_at(source).len()).for_each(|_| self.slot_step(master, number));
            }
            self.all_know(master);
        }
    }
}
