//! Processes: when clients and masters run, pause, die and come back.

use std::collections::VecDeque;
use std::time::Duration;

use super::clock::TrueTime;
use super::event::Event;
use super::link::LinkId;
use super::random::nanos;
use super::state::{MasterNode, State, identity};
use super::timeline::Happening;
use super::violation::Violation;
use crate::master::Keep;

/// How soon a process runs after something has woken it.
const LATENCY: std::ops::RangeInclusive<Duration> = Duration::from_micros(1)..=Duration::from_micros(60);

/// How late timers fire.
const LATENESS: std::ops::RangeInclusive<Duration> = Duration::ZERO..=Duration::from_micros(1_100);

/// How many turns a driver may make without anything to do, within the span below.
const MOST_IDLE_TURNS: u32 = 100;
const SPIN_WINDOW: Duration = Duration::from_millis(100);

/// The keys that a master has when it comes back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Kept {
    Own(Keep),
    /// Those of its last snapshot.
    Saved,
}

/// Whether the client's driver ignores wake-ups in its own turn, like the blocking transport's
/// driver, which registers its waker again before it sleeps. Other drivers run once more, like a
/// task of an async runtime. Of any two clients, one has each kind.
pub(super) fn ignores_own_wakes(client: usize) -> bool {
    client % 2 == 1
}

impl State {
    /// What a client's clock shows, in nanoseconds.
    pub(super) fn local(&self, client: usize) -> u64 {
        self.clients.get(client).map_or(0, |node| node.clock.read(self.now))
    }

    /// Schedules a turn of the client's driver soon, because something has woken it.
    pub(super) fn rouse(&mut self, client: usize) {
        let at = self.now + self.latency();
        self.schedule_turn(client, at);
    }

    /// A client's driver has been woken.
    pub(super) fn driver_woken(&mut self, client: usize) {
        let is_in_turn = self.clients.get(client).is_some_and(|node| node.is_in_turn);
        if !is_in_turn || !ignores_own_wakes(client) {
            self.rouse(client);
        }
    }

    pub(super) fn set_in_turn(&mut self, client: usize, is_in_turn: bool) {
        if let Some(node) = self.clients.get_mut(client) {
            node.is_in_turn = is_in_turn;
        }
    }

    /// Schedules a turn of the client's driver for when its clock shows `local`.
    pub(super) fn set_alarm(&mut self, client: usize, local: u64) {
        if let Some(at) = self.alarm_time(client, local) {
            self.schedule_turn(client, at);
        }
    }

    /// When a timer for `local` fires, which is never early.
    pub(super) fn alarm_time(&mut self, client: usize, local: u64) -> Option<TrueTime> {
        let due = self.clients.get(client)?.clock.when(local).max(self.now);
        Some(due + nanos(self.random.within(LATENESS)))
    }

    fn latency(&mut self) -> u64 {
        // Sometimes another process runs first.
        let extra = if self.random.one_in(40) { Duration::from_millis(2) } else { Duration::ZERO };
        nanos(self.random.within(LATENCY) + self.random.within(Duration::ZERO..=extra))
    }

    fn schedule_turn(&mut self, client: usize, at: TrueTime) {
        let Some(node) = self.clients.get_mut(client) else { return };
        if node.turn.is_some_and(|(earlier, _)| earlier <= at) {
            return;
        }
        node.turns += 1;
        let number = node.turns;
        node.turn = Some((at, number));
        self.schedule(at, Event::Turn { client, number });
    }

    /// Whether the driver must run at this event.
    pub(super) fn turn_begins(&mut self, client: usize, number: u64) -> bool {
        let now = self.now;
        let Some(node) = self.clients.get_mut(client) else { return false };
        if node.turn.is_none_or(|(_, latest)| latest != number) {
            return false;
        }
        node.turn = None;
        now >= node.paused_until && !node.is_dead
    }

    /// Records a turn of a driver, and whether there was something to do.
    pub(super) fn turn_ended(&mut self, client: usize, was_idle: bool) {
        let now = self.now;
        let Some(node) = self.clients.get_mut(client).filter(|_| was_idle) else { return };
        let (began, turns) = node.idle_turns;
        node.idle_turns = if now < began + nanos(SPIN_WINDOW) { (began, turns + 1) } else { (now, 1) };
        if node.idle_turns.1 > MOST_IDLE_TURNS {
            self.observer.report(Violation::Spinning { client });
        }
    }

    /// A task of the client may be polled.
    pub(super) fn wake_task(&mut self, client: usize, task: usize) {
        let Some(node) = self.clients.get_mut(client) else { return };
        if !node.woken.contains(&task) {
            node.woken.push_back(task);
        }
        if !node.poll_is_due {
            node.poll_is_due = true;
            let at = self.now + self.latency();
            self.schedule(at, Event::Poll { client });
        }
    }

    /// The tasks to poll now.
    pub(super) fn poll_begins(&mut self, client: usize) -> VecDeque<usize> {
        let now = self.now;
        let Some(node) = self.clients.get_mut(client) else { return VecDeque::new() };
        node.poll_is_due = false;
        if now < node.paused_until || node.is_dead {
            return VecDeque::new();
        }
        std::mem::take(&mut node.woken)
    }

    pub(super) fn pause(&mut self, client: usize, span: Duration) {
        let until = self.now + nanos(span);
        let Some(node) = self.clients.get_mut(client) else { return };
        if until > node.paused_until {
            node.paused_until = until;
            self.schedule(until, Event::Resume { client });
        }
    }

    pub(super) fn resume(&mut self, client: usize) {
        let Some(node) = self.clients.get_mut(client) else { return };
        if self.now < node.paused_until {
            return;
        }
        node.stood_until = node.clock.read(self.now);
        // What became due during the pause is due now, timers first.
        if !node.woken.is_empty() && !node.poll_is_due {
            node.poll_is_due = true;
            self.schedule(self.now, Event::Poll { client });
        }
        self.rouse(client);
    }

    pub(super) fn continue_master(&mut self, master: usize) {
        if self
            .masters
            .get(master)
            .is_none_or(|node| self.now < node.hangs_until || self.now < node.away_until)
        {
            return;
        }
        self.note(|| Happening::GoesOn { master });
        self.plan_round_again(master);
        let mut waiting: Vec<LinkId> =
            self.link_ids().filter(|&id| self.link(id).is_some_and(|link| link.master == master)).collect();
        let parcels = self.masters.get_mut(master).map(|node| std::mem::take(&mut node.part.unread));
        let mut parcels = VecDeque::from(parcels.unwrap_or_default());
        // The system tells a server which of its connections are readable, in no order that it can
        // rely on.
        while !waiting.is_empty() || !parcels.is_empty() {
            let place = self.random.below(waiting.len() + usize::from(!parcels.is_empty()));
            if place == waiting.len() {
                // The end of a connection is read in another round than the bytes before it.
                parcels.pop_front().into_iter().for_each(|parcel| self.open_parcel(parcel));
                continue;
            }
            let id = waiting.swap_remove(place);
            let unread = self.link_mut(id).map(|link| std::mem::take(&mut link.unread)).unwrap_or_default();
            for item in unread {
                self.read_or_keep(id, item);
            }
        }
    }

    /// A master comes back, unless it has done so already.
    pub(super) fn restart(&mut self, master: usize, incarnation: u64) {
        let now = self.now;
        let Some(node) = self.masters.get_mut(master).filter(|node| node.incarnations == incarnation) else {
            return;
        };
        node.incarnations += 1;
        node.away_until = now;
        node.hangs_until = now;
        let kept = node.kept;
        let identity = identity(master, node.incarnations);
        match (kept, &node.saved) {
            (Kept::Own(keep), _) => node.model.restart(identity, keep.choice()),
            (Kept::Saved, Some(saved)) => node.model.restore(identity, saved),
            (Kept::Saved, None) => node.model.restart(identity, Keep::Nothing.choice()),
        }
        self.follow_again(master);
        self.plan_round_again(master);
        if kept == Kept::Saved {
            self.tokens_come_along(master);
        }
        if kept != Kept::Own(Keep::Everything) {
            self.loses_data(master, true);
        }
        self.note(|| Happening::Back { master, kept });
        self.observer.keys_changed();
    }

    pub(super) fn flush(&mut self, master: usize) {
        // A replica refuses to delete its keys.
        let Some(node) = self.masters.get_mut(master).filter(|node| !node.part.is_replica()) else { return };
        node.model.remove_all();
        self.tell_readers(master, None);
        self.loses_data(master, true);
    }

    /// A master saves its keys.
    pub(super) fn save(&mut self, master: usize) {
        let now = self.now;
        let is_up = |node: &&mut MasterNode| now >= node.away_until && now >= node.hangs_until;
        if let Some(node) = self.masters.get_mut(master).filter(is_up) {
            node.saved = Some(node.model.snapshot());
        }
    }

    /// A master that is there becomes a replica of another one.
    pub(super) fn resync(&mut self, master: usize, further: usize, span: Duration) {
        if self.groups.have_peers() {
            return self.rebuild_group(master, further, span);
        }
        let (masters, now) = (self.masters.len(), self.now);
        let others = masters - 1;
        if others == 0 {
            return;
        }
        let other = (master + 1 + further % others) % masters;
        let Some(source) = self.masters.get(other).map(|node| node.model.clone()) else { return };
        let Some(node) = self.masters.get_mut(master).filter(|node| now >= node.away_until) else { return };
        node.model.resync_from(&source);
        self.tokens_come_along(master);
        self.note(|| Happening::Copies { master, other });
        self.tell_readers(master, None);
        self.loses_data(master, false);
        self.schedule(now + nanos(span), Event::Promote { master });
    }

    /// A master that was made a replica of another one is promoted.
    pub(super) fn promotion_is_due(&mut self, master: usize) {
        let Some(node) = self.masters.get(master) else { return };
        let busy_until = node.hangs_until.max(node.away_until);
        if !self.groups.have_peers() {
            self.promote(master);
        } else if self.groups.named.get(self.groups.group_of(master)) != Some(&master) {
            // Meanwhile one of its replicas was promoted in its place, and remains the primary.
        } else if self.now < busy_until {
            self.schedule(busy_until, Event::Promote { master });
        } else {
            self.promote_in_group(master, Duration::ZERO);
        }
    }

    /// A replica becomes a master, unless it is one already.
    pub(super) fn promote(&mut self, master: usize) {
        let Some(node) = self.masters.get_mut(master) else { return };
        let before = node.model.replication_id().to_owned();
        node.model.promote();
        if node.model.replication_id() != before {
            self.note(|| Happening::Promoted { master });
            self.tell_readers(master, None);
            self.loses_data(master, true);
        }
    }

    pub(super) fn loses_data(&mut self, master: usize, votes: bool) {
        let Some(node) = self.masters.get(master) else { return };
        let clock = votes.then(|| node.clock.read(self.now));
        self.observer.outages.lost(master, self.now, clock);
        self.observer.ledger.lost(master);
        self.observer.keys_changed();
    }
}
