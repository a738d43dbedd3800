//! Connections that wait for replicas (`WAIT`). No later command of the connection is executed
//! meanwhile.

use std::time::Duration;

use super::event::Event;
use super::link::{LinkId, Unread};
use super::random::nanos;
use super::state::State;
use crate::master::{Command, CommandKind};

/// How much longer than requested a server waits, because it checks in its cron.
const CRON: std::ops::RangeInclusive<Duration> = Duration::ZERO..=Duration::from_millis(100);

impl State {
    /// Whether a command on a connection must wait: then it is executed later.
    pub(super) fn has_to_wait(&mut self, id: LinkId, command: &Command) -> bool {
        if self.groups.replicas == 0 || command.kind() != CommandKind::Wait || !self.lacks_word(id, command) {
            return false;
        }
        let limit = Duration::from_millis(number(command, 2).unwrap_or(0));
        let at = self.now + nanos(limit + self.random.within(CRON));
        let Some(link) = self.link_mut(id) else { return false };
        link.waiting = Some(command.clone());
        link.waits += 1;
        let wait = link.waits;
        self.schedule(at, Event::WaitEnds { link: id, wait });
        true
    }

    /// Whether too few replicas have confirmed this connection's writes.
    fn lacks_word(&self, id: LinkId, command: &Command) -> bool {
        let Some(link) = self.link(id) else { return false };
        let Some(node) = self.masters.get(link.master).filter(|node| !node.model.is_replica()) else {
            return false;
        };
        let confirming = node.model.confirming(&link.session);
        number(command, 1).is_some_and(|wanted| (confirming as u64) < wanted)
    }

    /// A server has received an acknowledgement from a replica.
    pub(super) fn look_at_waits(&mut self, server: usize) {
        let all: Vec<LinkId> = self.waits_at(server);
        for id in all {
            let waiting = self.link(id).and_then(|link| link.waiting.clone());
            if waiting.is_some_and(|command| !self.lacks_word(id, &command)) {
                self.go_on_behind_wait(id);
            }
        }
    }

    fn waits_at(&self, server: usize) -> Vec<LinkId> {
        let waits =
            |id: &LinkId| self.link(*id).is_some_and(|link| link.master == server && link.waiting.is_some());
        self.link_ids().filter(waits).collect()
    }

    /// A `WAIT` has lasted for as long as it may.
    pub(super) fn wait_ends(&mut self, id: LinkId, wait: u64) {
        let Some(link) = self.link(id).filter(|link| link.waits == wait && link.waiting.is_some()) else {
            return;
        };
        let Some(hangs_until) = self.masters.get(link.master).map(|node| node.hangs_until) else { return };
        if self.now < hangs_until {
            self.schedule(hangs_until, Event::WaitEnds { link: id, wait });
        } else {
            self.go_on_behind_wait(id);
        }
    }

    fn go_on_behind_wait(&mut self, id: LinkId) {
        let Some(command) = self.link_mut(id).and_then(|link| link.waiting.take()) else { return };
        self.serve(id, Some(command));
        let unread = self.link_mut(id).map(|link| std::mem::take(&mut link.unread)).unwrap_or_default();
        for item in unread {
            self.read_or_keep(id, item);
        }
    }

    /// The master reads the bytes of a connection, unless it must wait there first.
    pub(super) fn read_or_keep(&mut self, id: LinkId, item: Unread) {
        match self.link_mut(id) {
            Some(link) if link.waiting.is_some() => link.unread.push(item),
            _ => self.master_reads(id, item),
        }
    }

    /// A server has become a replica: it ends the waits, and closes their connections.
    pub(super) fn end_waits(&mut self, server: usize) {
        for id in self.waits_at(server) {
            if let Some(link) = self.link_mut(id) {
                link.waiting = None;
            }
            let error = b"-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)\r\n";
            self.say(id, error);
            self.hang_up(id);
        }
    }
}

/// An argument of a command, as a number.
fn number(command: &Command, place: usize) -> Option<u64> {
    std::str::from_utf8(command.arguments().get(place)?).ok()?.parse().ok()
}
