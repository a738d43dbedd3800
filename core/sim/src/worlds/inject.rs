//! The beginnings and the ends of faults.

use std::time::Duration;

use quorlock_core::Cause;

use super::event::Event;
use super::fault::{Fault, Refusal};
use super::link::LinkId;
use super::process::Kept;
use super::random::nanos;
use super::state::State;
use super::timeline::Happening;

impl State {
    /// Injects a fault now. [`Fault::Kill`] is for the caller that has the client's tasks.
    pub(super) fn inject(&mut self, fault: Fault) {
        let fault = self.counted_around(fault);
        self.note(|| Happening::Fault(fault));
        let is_guarded = self.observer.outages.is_guarded();
        let is_stood = match (is_guarded, self.groups.are_declared()) {
            (true, true) => fault.is_assumed_with_replicas(),
            (true, false) => fault.is_assumed_with_guard(),
            (false, _) => fault.is_assumed(),
        };
        if !is_stood {
            self.observer.leaves_assumptions();
        }
        self.is_calm = false;
        let now = self.now;
        match fault {
            Fault::Hang { master, span } => {
                let until = now + nanos(span);
                let Some(node) = self.masters.get_mut(master) else { return };
                node.hangs_until = node.hangs_until.max(until);
                let until = node.hangs_until;
                self.schedule(until, Event::Continue { master });
            }
            Fault::Crash { master, span, keep } => self.crash(master, span, Kept::Own(keep)),
            Fault::Leave { master } => self.leave(master),
            Fault::Return { master, keep } => self.come_back(master, keep),
            Fault::Flush { master } => self.flush(master),
            Fault::Save { master } => self.save(master),
            Fault::Restore { master, span } => self.crash(master, span, Kept::Saved),
            Fault::Resync { master, further, span } => self.resync(master, further, span),
            Fault::Promote { master, learned_within } => self.promote_in_group(master, learned_within),
            Fault::Follow { master, closes } => self.follow_named(master, closes),
            Fault::MoveSlot { master, further } => self.move_slot(master, further),
            Fault::Reshard { master, further, pace, is_given_up } => {
                self.begin_reshard(master, further, pace, is_given_up);
            }
            Fault::Isolate { master, span } => {
                if let Some(node) = self.masters.get_mut(master) {
                    node.part.isolated_until = node.part.isolated_until.max(now + nanos(span));
                }
            }
            Fault::SlowReplication { master, delay, span } => {
                if let Some(node) = self.masters.get_mut(master) {
                    node.part.slow_until = now + nanos(span);
                    node.part.slowness = nanos(delay);
                }
            }
            Fault::Refuse { master, reason, span } => {
                self.set_refusal(master, reason, true);
                if let Some(node) = self.masters.get_mut(master) {
                    node.refuses_until = node.refuses_until.max(now + nanos(span));
                }
                self.schedule(now + nanos(span), Event::Mend { master, reason });
            }
            Fault::Pushes { master, fate, span } => self.set_push_fate(master, fate, span),
            Fault::ForgetScripts { master } => {
                if let Some(node) = self.masters.get_mut(master) {
                    node.model.flush_scripts();
                }
            }
            Fault::Cut { client, master } => {
                for id in self.links_of(|a, b| (a, b) == (client, master)) {
                    self.drop_master_end(id);
                    if let Some(link) = self.link_mut(id) {
                        link.forgotten = true;
                    }
                    self.client_learns_end(id, Cause::Closed);
                }
            }
            Fault::HangUp { client, master } => {
                let hangs = self.masters.get(master).is_none_or(|node| now < node.hangs_until);
                for id in self.links_of(|a, b| (a, b) == (client, master)) {
                    if !hangs {
                        self.end_channel(id);
                        self.hang_up(id);
                    }
                }
            }
            Fault::HalfOpen { client, master } => {
                for id in self.links_of(|a, b| (a, b) == (client, master)) {
                    if let Some(link) = self.link_mut(id) {
                        link.forgotten = true;
                    }
                }
            }
            Fault::Partition { client, master, span } => {
                if let Some(path) = self.path_mut(client, master) {
                    path.blocked_until = path.blocked_until.max(now + nanos(span));
                }
            }
            Fault::Mute { client, master, span } => {
                if let Some(path) = self.path_mut(client, master) {
                    path.mute_until = path.mute_until.max(now + nanos(span));
                }
            }
            Fault::Clog { client, master, span } => {
                let until = now + nanos(span);
                if let Some(path) = self.path_mut(client, master) {
                    path.clogged_until = path.clogged_until.max(until);
                }
                self.schedule(until, Event::Room { client });
            }
            Fault::Unreachable { client, master, span } => {
                if let Some(path) = self.path_mut(client, master) {
                    path.unreachable_until = path.unreachable_until.max(now + nanos(span));
                }
            }
            Fault::Slow { client, master, delay, span } => {
                if let Some(path) = self.path_mut(client, master) {
                    path.slow_until = now + nanos(span);
                    path.slowness = nanos(delay);
                }
            }
            Fault::Pause { client, span } => self.pause(client, span),
            Fault::Kill { client } => self.die(client),
            Fault::ClientDrift { client, gain_ppm } => {
                if let Some(node) = self.clients.get_mut(client) {
                    node.clock.drift(now, gain_ppm);
                }
                self.observer.clocks_changed();
                self.rouse(client);
            }
            Fault::ClientJump { client, by } => {
                if let Some(node) = self.clients.get_mut(client) {
                    node.clock.jump(now, i64::try_from(by.as_millis()).unwrap_or(i64::MAX));
                    node.leapt += by;
                }
                self.observer.clocks_changed();
            }
            Fault::MasterDrift { master, gain_ppm } => {
                if let Some(node) = self.masters.get_mut(master) {
                    node.clock.drift(now, gain_ppm);
                }
                self.plan_round_again(master);
                self.observer.clocks_changed();
            }
            Fault::MasterJump { master, by_millis } => {
                if let Some(node) = self.masters.get_mut(master) {
                    node.clock.jump(now, by_millis);
                }
                self.plan_round_again(master);
                self.observer.clocks_changed();
            }
        }
    }

    /// Numbers beyond the last wrap around, so that a fault fits every world.
    fn counted_around(&self, mut fault: Fault) -> Fault {
        let (client, master) = fault.numbers_mut();
        if let Some(client) = client {
            *client %= self.clients.len().max(1);
        }
        if let Some(master) = master {
            *master %= self.masters.len().max(1);
        }
        fault
    }

    /// Connections with an open end, by client and master.
    fn links_of(&self, belongs: impl Fn(usize, usize) -> bool) -> Vec<LinkId> {
        let is_open = |id: &LinkId| {
            self.link(*id).is_some_and(|link| {
                (link.client_end_open || link.master_end_open) && belongs(link.client, link.master)
            })
        };
        self.link_ids().filter(is_open).collect()
    }

    /// All connections of a master are gone at once.
    pub(super) fn drop_master_ends(&mut self, master: usize) {
        for id in self.links_of(|_, other| other == master) {
            self.drop_master_end(id);
        }
    }

    /// The master's end is gone at once, with its unread bytes, and the client learns it when the
    /// message arrives.
    fn drop_master_end(&mut self, id: LinkId) {
        self.hang_up(id);
        if let Some(link) = self.link_mut(id) {
            link.unread.clear();
        }
    }

    /// A master dies, and comes back after this span.
    fn crash(&mut self, master: usize, span: Duration, kept: Kept) {
        let (now, until) = (self.now, self.now + nanos(span));
        let Some(node) = self.masters.get_mut(master).filter(|node| now >= node.away_until) else { return };
        (node.away_until, node.kept) = (until, kept);
        let incarnation = node.incarnations;
        self.die_in_group(master);
        self.drop_master_ends(master);
        self.schedule(until, Event::Restart { master, incarnation });
    }

    pub(super) fn set_refusal(&mut self, master: usize, reason: Refusal, is_on: bool) {
        let password = self.password();
        let Some(node) = self.masters.get_mut(master) else { return };
        match reason {
            Refusal::OutOfMemory => node.model.set_out_of_memory(is_on),
            // The server is a replica already, and stays one.
            Refusal::ReadOnly if node.part.is_replica() => {}
            Refusal::ReadOnly => node.model.set_replica(is_on),
            Refusal::Loading => node.model.set_loading(is_on),
            Refusal::NoAuth if is_on => node.model.set_password(Some("unknown to the clients")),
            Refusal::NoAuth => node.model.set_password(password.as_deref()),
        }
        // A master deletes the keys that ended while it was a replica.
        self.tell_readers(master, None);
    }

    /// A client's process ends. The system closes its connections; bytes that they accepted before
    /// are still sent.
    fn die(&mut self, client: usize) {
        for id in self.links_of(|other, _| other == client) {
            self.close(id);
        }
        if let Some(node) = self.clients.get_mut(client) {
            node.is_dead = true;
            node.inbox.clear();
        }
        self.observer.died(client);
    }

    /// Ends all faults: no process hangs, is down or refuses, and everything gets through.
    pub(super) fn heal(&mut self) {
        self.note(|| Happening::Healed);
        self.is_calm = true;
        let now = self.now;
        for master in 0..self.masters.len() {
            for reason in [Refusal::OutOfMemory, Refusal::ReadOnly, Refusal::Loading, Refusal::NoAuth] {
                self.set_refusal(master, reason, false);
            }
            let Some(node) = self.masters.get_mut(master) else { continue };
            node.refuses_until = node.refuses_until.min(now);
            if node.has_left {
                continue;
            }
            if now < node.away_until {
                let incarnation = node.incarnations;
                self.restart(master, incarnation);
            } else if now < node.hangs_until {
                node.hangs_until = now;
                self.continue_master(master);
            }
            self.heal_pushes(master);
        }
        self.heal_groups();
        self.heal_slots();
        for client in 0..self.clients.len() {
            let Some(node) = self.clients.get_mut(client) else { continue };
            for path in &mut node.paths {
                path.blocked_until = path.blocked_until.min(now);
                path.slow_until = path.slow_until.min(now);
                path.mute_until = path.mute_until.min(now);
                path.clogged_until = path.clogged_until.min(now);
                path.unreachable_until = path.unreachable_until.min(now);
            }
            if now < node.paused_until {
                node.paused_until = now;
                self.resume(client);
            }
            // There may be room in its sockets again.
            self.rouse(client);
        }
    }
}
