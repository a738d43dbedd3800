//! The network: connection requests, bytes and ends of connections, and their effects on masters.

use std::time::Duration;

use quorlock_core::{Address, Cause, IoFault};

use super::event::Event;
use super::link::{Link, LinkId, Unread};
use super::random::nanos;
use super::reading::{answer as answer_to, is_grant, is_keeping, is_parting};
use super::state::{Inbound, MasterNode, State};
use super::timeline::Happening;
use super::violation::Violation;
use crate::master::{Command, Flow};

/// The usual delay of a message.
const TRAVEL: std::ops::RangeInclusive<Duration> = Duration::from_micros(30)..=Duration::from_micros(600);

/// The occasional longer delay.
const SLOW_TRAVEL: std::ops::RangeInclusive<Duration> =
    Duration::from_micros(600)..=Duration::from_millis(40);

impl State {
    /// Handles events that need no client code.
    pub(super) fn happen(&mut self, event: Event) {
        match event {
            Event::Knock(link) => self.knock(link),
            Event::Accepted(link) => self.client_accepted(link),
            Event::Refused(link) => {
                self.client_learns_end(
                    link,
                    Cause::Connect(IoFault::new(std::io::ErrorKind::ConnectionRefused)),
                );
            }
            Event::Up(link, bytes) => self.master_receives(link, Unread::Bytes(bytes)),
            Event::UpEnd(link) => self.master_receives(link, Unread::End),
            Event::Down(link, bytes) => self.client_receives(link, bytes),
            Event::DownEnd(link) => self.client_learns_end(link, Cause::Closed),
            Event::Resume { client } => self.resume(client),
            Event::Room { client } => self.rouse(client),
            Event::Continue { master } => self.continue_master(master),
            Event::Restart { master, incarnation } => self.restart(master, incarnation),
            Event::Promote { master } => self.promotion_is_due(master),
            Event::Round { master } => self.round(master),
            Event::LatePushes { master } => self.release_pushes(master),
            Event::Mend { master, reason } => self.set_refusal(master, reason, false),
            Event::Parcel(parcel) => self.parcel_comes(parcel),
            Event::Beat { server } => self.beat(server),
            Event::Learns { client, server } => self.learns(client, server),
            Event::OwnerIsTold { server, epoch, owner } => self.owner_is_told(server, epoch, owner),
            Event::SlotStep { master, number } => self.slot_step(master, number),
            Event::WaitEnds { link, wait } => self.wait_ends(link, wait),
            // The caller with the clients' code handles these.
            Event::Turn { .. } | Event::Poll { .. } | Event::Alarm(_) | Event::Fault(_) => {}
        }
    }

    /// When a message that is sent now arrives at the other side.
    fn arrival(&mut self, client: usize, master: usize, not_before: u64) -> u64 {
        let travel = self.travel_time();
        let path = self.path(client, master);
        let slowness = if self.now < path.slow_until { path.slowness } else { 0 };
        (self.now.max(path.blocked_until) + travel + slowness).max(not_before)
    }

    /// The delay of a message without a fault, in nanoseconds.
    pub(super) fn travel_time(&mut self) -> u64 {
        let is_slow = !self.is_calm && self.random.one_in(60);
        nanos(if is_slow { self.random.spread(SLOW_TRAVEL) } else { self.random.within(TRAVEL) })
    }

    /// The system retransmits bytes that were lost in a partition at growing intervals: an old
    /// connection may recover only after another span as long as the partition, while a new one
    /// gets through at once (RFC 6298, 5.5).
    fn backed_off(&mut self, client: usize, master: usize) -> u64 {
        let outage = self.path(client, master).blocked_until.saturating_sub(self.now);
        if outage == 0 || self.random.one_in(2) {
            return 0;
        }
        nanos(self.random.within(Duration::ZERO..=Duration::from_nanos(outage)))
    }

    // From the client to the master.

    /// The server to which a client connects for this master or address.
    pub(super) fn server_for(&self, client: usize, master: usize, address: &Address) -> Option<usize> {
        if self.groups.is_cluster() {
            return self.groups.server_at(address);
        }
        self.clients.get(client)?.named.get(master).copied()
    }

    /// Sends a connection request to a server. Returns false if the client's system refuses to open
    /// a connection.
    pub(super) fn connect(&mut self, client: usize, master: usize, generation: u32) -> bool {
        if self.now < self.path(client, master).unreachable_until {
            return false;
        }
        self.meets(client, master);
        let id = LinkId(self.links.len());
        let sides = self.sides();
        self.links.push(Link::new(client, master, generation, sides));
        if let Some(links) = self.clients.get_mut(client).and_then(|node| node.links.get_mut(master)) {
            links.push(id);
        }
        let at = self.arrival(client, master, 0);
        if let Some(link) = self.link_mut(id) {
            link.last_up = at;
        }
        self.schedule(at, Event::Knock(id));
        true
    }

    /// The client's end of a connection by its generation.
    pub(super) fn client_link(&self, client: usize, master: usize, generation: u32) -> Option<LinkId> {
        let links = self.clients.get(client)?.links.get(self.servers_at(client, master))?;
        let is_it = |id: &LinkId| self.link(*id).is_some_and(|link| link.generation == generation);
        links.iter().flatten().copied().find(is_it)
    }

    /// A client's driver has ended: the system closes what it had open.
    pub(super) fn close_all(&mut self, client: usize) {
        let links = self.clients.get(client).map(|node| node.links.concat()).unwrap_or_default();
        for id in links {
            self.close(id);
        }
    }

    /// Whether a client's socket to this master accepts bytes.
    pub(super) fn has_room(&self, client: usize, master: usize) -> bool {
        self.servers_at(client, master).any(|server| self.now >= self.path(client, server).clogged_until)
    }

    /// The client closes its end.
    pub(super) fn close(&mut self, id: LinkId) {
        let Some(link) = self.link_mut(id).filter(|link| link.client_end_open) else { return };
        link.client_end_open = false;
        let (client, master, last_up) = (link.client, link.master, link.last_up);
        self.forget_client_end(id);
        // A system that receives bytes for a closed socket resets the connection. The reset may
        // overtake what was sent on the connection.
        let not_before = if self.random.one_in(4) { 0 } else { last_up };
        let at = self.arrival(client, master, not_before);
        self.schedule(at, Event::UpEnd(id));
    }

    fn forget_client_end(&mut self, id: LinkId) {
        let Some((client, master)) = self.link(id).map(|link| (link.client, link.master)) else { return };
        if let Some(links) = self.clients.get_mut(client).and_then(|node| node.links.get_mut(master)) {
            links.retain(|other| *other != id);
        }
    }

    /// The client writes. Returns how many bytes its socket has accepted.
    pub(super) fn send(&mut self, id: LinkId, bytes: &[u8]) -> usize {
        let Some((client, master)) = self.link(id).map(|link| (link.client, link.master)) else { return 0 };
        // Writes of a dying process, or to a connection that has ended, are lost.
        if self.clients.get(client).is_none_or(|node| node.is_dead) {
            return bytes.len();
        }
        self.writes += 1;
        let is_clogged = self.now < self.path(client, master).clogged_until;
        let taken = match self.link(id) {
            Some(link) if is_clogged && link.is_full => 0,
            // The last room in the socket.
            Some(_) if is_clogged => self.random.below(bytes.len()),
            _ => bytes.len(),
        };
        let bytes = bytes.get(..taken).unwrap_or_default();
        let local = self.local(client);
        let now = self.now;
        let Some(link) = self.links.get_mut(id.0).filter(|link| link.client_end_open) else { return taken };
        link.is_full = is_clogged;
        self.read_along(id, bytes);
        loop {
            let Some(link) = self.links.get_mut(id.0) else { return taken };
            let command = match link.sent.next_command() {
                Ok(Some(command)) => command,
                Ok(None) => break,
                Err(error) => {
                    let text = format!("client{client} sent what is no command: {error}");
                    self.observer.report(Violation::Reported(text));
                    return taken;
                }
            };
            if let (true, Some(token)) = (is_parting(command.kind()), command.token()) {
                link.parting.insert(token.to_vec());
            }
            self.observer.sent(client, self.groups.master_of(master), &command, (local, now));
            let place = self.timeline.note(now, || {
                let command = self.observer.name(&command);
                Happening::Sent { client, master, command, is_executed: false }
            });
            link.unexecuted.extend(place);
        }
        self.travel(id, bytes, Event::Up);
        taken
    }

    /// Sends bytes, perhaps in pieces. They do not overtake earlier ones.
    pub(super) fn travel(&mut self, id: LinkId, bytes: &[u8], event: fn(LinkId, Vec<u8>) -> Event) {
        let is_up = matches!(event(id, Vec::new()), Event::Up(..));
        let mut rest = bytes;
        while !rest.is_empty() {
            let cut = if self.random.one_in(4) { 1 + self.random.below(rest.len()) } else { rest.len() };
            let (piece, behind) = rest.split_at_checked(cut).unwrap_or((rest, &[]));
            rest = behind;
            let Some(link) = self.link(id).filter(|link| !link.forgotten) else { return };
            let last = if is_up { link.last_up } else { link.last_down };
            let (client, master) = (link.client, link.master);
            let mut at = self.arrival(client, master, last) + self.backed_off(client, master);
            if !is_up {
                at = at.max(self.path(client, master).mute_until);
            }
            let Some(link) = self.link_mut(id) else { return };
            *(if is_up { &mut link.last_up } else { &mut link.last_down }) = at;
            link.said += if is_up { 0 } else { piece.len() };
            self.schedule(at, event(id, piece.to_vec()));
        }
    }

    // At the master.

    pub(super) fn knock(&mut self, id: LinkId) {
        let Some(link) = self.links.get_mut(id.0).filter(|link| !link.forgotten) else { return };
        let (client, master) = (link.client, link.master);
        // Discovery checks the role, so clients do not stay with a replica.
        let finds_replicas = self.is_calm && !self.groups.is_cluster();
        let is_refused = |node: &MasterNode| finds_replicas && node.part.is_replica();
        let is_away =
            self.masters.get(master).is_none_or(|node| self.now < node.away_until || is_refused(node));
        link.master_end_open = !is_away;
        let at = self.arrival(client, master, 0);
        let at = at.max(self.path(client, master).mute_until);
        if let Some(link) = self.link_mut(id) {
            link.last_down = at;
        }
        self.schedule(at, if is_away { Event::Refused(id) } else { Event::Accepted(id) });
    }

    pub(super) fn master_receives(&mut self, id: LinkId, item: Unread) {
        let Some(link) = self.links.get_mut(id.0) else { return };
        // The living side reports the end of a connection, even if a middlebox has forgotten it.
        if !link.master_end_open || (link.forgotten && !matches!(item, Unread::End)) {
            return;
        }
        let Some(node) = self.masters.get(link.master) else { return };
        if self.now < node.hangs_until || link.waiting.is_some() {
            link.unread.push(item);
        } else {
            self.master_reads(id, item);
        }
    }

    pub(super) fn master_reads(&mut self, id: LinkId, item: Unread) {
        if self.link(id).is_none_or(|link| !link.master_end_open) {
            return;
        }
        let Unread::Bytes(bytes) = item else {
            return self.close_master_end(id);
        };
        let Some(plain) = self.decrypt(id, bytes) else { return };
        let Some(link) = self.links.get_mut(id.0) else { return };
        link.session.feed(&plain);
        self.serve(id, None);
    }

    /// The master executes what it has read on a connection, after `first`.
    pub(super) fn serve(&mut self, id: LinkId, mut first: Option<Command>) {
        let mut replies = Vec::new();
        loop {
            let Some(link) = self.links.get_mut(id.0) else { return };
            let has_waited = first.is_some();
            match first.take().map_or_else(|| link.session.next_command(), |first| Ok(Some(first))) {
                Ok(Some(command)) if !has_waited && self.has_to_wait(id, &command) => break,
                Ok(Some(command)) => {
                    if self.execute(id, &command, &mut replies) == Flow::Close {
                        self.say(id, &replies);
                        return self.hang_up(id);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    error.write(&mut replies);
                    self.say(id, &replies);
                    return self.hang_up(id);
                }
            }
        }
        self.say(id, &replies);
    }

    fn execute(&mut self, id: LinkId, command: &Command, replies: &mut Vec<u8>) -> Flow {
        let aim = self.link(id).and_then(|link| self.aim(link.master, command));
        let Some(link) = self.links.get_mut(id.0) else { return Flow::Close };
        let Some(node) = self.masters.get_mut(link.master) else { return Flow::Close };
        let server_now = Duration::from_nanos(node.clock.read(self.now));
        let before = replies.len();
        let flow = node.model.execute(&mut link.session, command, server_now, replies);
        let answer = replies.get(before..).unwrap_or_default();
        let is_late = !link.client_end_open;
        if let (true, Some(token)) = (is_parting(command.kind()), command.token()) {
            link.parting.remove(token);
        }
        if is_parting(command.kind()) || is_keeping(command.kind()) {
            self.observer.parts(command, self.now);
        }
        self.observer.executed(link.master, command, answer, is_late.then_some(id));
        self.observer.look_at_opening(link.master, command, answer, self.now);
        self.observer.look_at_vote(link.master, command, answer, nanos(server_now));
        self.observer.look_at_counter(link.master, command, &node.model, server_now);
        let (client, master) = (link.client, link.master);
        let sent = link.unexecuted.pop_front().and_then(|place| self.timeline.executed(place));
        let place = self.timeline.note(self.now, || {
            let (command, answer) = (self.observer.name(command), answer_to(command, answer));
            Happening::Executed { client, master, command, answer, is_late, sent, heard: None }
        });
        link.unheard.extend(place.map(|place| (link.said + replies.len(), place)));
        let has_granted = is_grant(command, answer);
        if let Some(aim) = aim {
            self.hits((client, master), command, &aim);
        }
        replies.extend(self.tell_readers(master, Some(id)));
        if has_granted {
            self.grant_happens(client, master);
        }
        flow
    }

    /// The master ends a connection after its earlier replies.
    pub(super) fn hang_up(&mut self, id: LinkId) {
        let Some(link) = self.link_mut(id).filter(|link| link.master_end_open) else { return };
        let (client, master, last_down) = (link.client, link.master, link.last_down);
        let is_told = !link.forgotten;
        self.close_master_end(id);
        if is_told {
            let at = self.arrival(client, master, last_down).max(self.path(client, master).mute_until);
            self.schedule(at, Event::DownEnd(id));
        }
    }

    fn close_master_end(&mut self, id: LinkId) {
        let Some(link) = self.links.get_mut(id.0) else { return };
        link.master_end_open = false;
        link.waiting = None;
        if let Some(node) = self.masters.get_mut(link.master) {
            node.model.leave(&link.session);
        }
    }

    // At the client.

    pub(super) fn client_receives(&mut self, id: LinkId, bytes: Vec<u8>) {
        let length = bytes.len();
        if self.link(id).is_some_and(|link| !link.forgotten) && self.hand_in(id, Inbound::Bytes(id, bytes)) {
            let Some(link) = self.links.get_mut(id.0) else { return };
            link.heard += length;
            while let Some((_, place)) = link.unheard.front().copied().filter(|(end, _)| *end <= link.heard) {
                link.unheard.pop_front();
                self.timeline.heard(place, self.now);
            }
        }
    }

    pub(super) fn client_accepted(&mut self, id: LinkId) {
        if self.link(id).is_some_and(|link| !link.forgotten) {
            self.hand_in(id, Inbound::Opened(id));
        }
    }

    pub(super) fn client_learns_end(&mut self, id: LinkId, cause: Cause) {
        if self.hand_in(id, Inbound::Ended(id, cause)) {
            if let Some(link) = self.link_mut(id) {
                link.client_end_open = false;
            }
            self.forget_client_end(id);
        }
    }

    fn hand_in(&mut self, id: LinkId, item: Inbound) -> bool {
        let Some(link) = self.link(id).filter(|link| link.client_end_open) else { return false };
        let client = link.client;
        if let Some(node) = self.clients.get_mut(client) {
            node.inbox.push_back(item);
        }
        self.rouse(client);
        true
    }
}
