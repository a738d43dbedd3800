//! Which masters each client has in its list, and masters that leave.

use std::ops::Range;

use super::clock::TrueTime;
use super::process::Kept;
use super::state::State;
use crate::master::Keep;

impl State {
    /// The list of a client that has these spares, each in place of a master.
    pub(super) fn list(&self, spare_for: Option<(usize, usize)>) -> Vec<usize> {
        let mut list = self.groups.founders();
        let (masters, spares) = (list.len(), self.groups.spares);
        if let Some((master, spare)) = spare_for.filter(|_| spares > 0) {
            if let Some(place) = list.get_mut(master % masters.max(1)) {
                *place = masters + spare % spares;
            }
        }
        list
    }

    /// The place of a server's master in a client's list.
    pub(super) fn place_in_list(&self, client: usize, server: usize) -> Option<usize> {
        if self.groups.is_cluster() {
            return Some(self.groups.master_of(server));
        }
        let group = self.groups.group_of(server);
        self.clients.get(client)?.list.iter().position(|other| *other == group)
    }

    /// The servers of the master at this place of a client's list.
    pub(super) fn servers_at(&self, client: usize, place: usize) -> Range<usize> {
        if self.groups.is_cluster() {
            return self.groups.servers_of(place);
        }
        self.group_at(client, place).map_or(0..0, |group| self.groups.members(group))
    }

    /// The group that answers for the master at this place of a client's list.
    pub(super) fn group_at(&self, client: usize, place: usize) -> Option<usize> {
        if self.groups.is_cluster() {
            return Some(self.groups.owner_of(place));
        }
        self.clients.get(client)?.list.get(place).copied()
    }

    /// A client connects to a server.
    pub(super) fn meets(&mut self, client: usize, server: usize) {
        let (now, place) = (self.now, self.place_in_list(client, server));
        let Some((place, node)) = place.zip(self.clients.get_mut(client)) else { return };
        let (met, since) = node.met.entry(place).or_insert((server, None));
        if *met != server {
            (*met, *since) = (server, Some(now));
        }
    }

    /// Since when a client has had another server than before at a place of its list.
    pub(super) fn met_another_at(&self, client: usize, place: usize) -> Option<TrueTime> {
        self.clients.get(client)?.met.get(&place)?.1
    }

    /// All servers of this server's group are off until they return.
    pub(super) fn leave(&mut self, server: usize) {
        for member in self.groups.members(self.groups.group_of(server)) {
            let Some(node) = self.masters.get_mut(member) else { continue };
            // A restart that was planned does not happen.
            node.incarnations += 1;
            node.has_left = true;
            node.away_until = u64::MAX;
            self.die_in_group(member);
            self.drop_master_ends(member);
        }
    }

    /// A group that has left is back, with the keys that `keep` leaves.
    pub(super) fn come_back(&mut self, server: usize, keep: Keep) {
        for member in self.groups.members(self.groups.group_of(server)) {
            let Some(node) = self.masters.get_mut(member).filter(|node| node.has_left) else { continue };
            (node.has_left, node.kept) = (false, Kept::Own(keep));
            let incarnation = node.incarnations;
            self.restart(member, incarnation);
            // Clients that have another list by now do not tell it what they released.
            self.tokens_come_along(member);
        }
    }
}
