//! Masters with replicas: servers that follow another one, the messages between them, and
//! promotions.
//!
//! Each server of a group is a separate model, with its own clock and the data that it has
//! replicated.

use std::collections::BTreeMap;
use std::time::Duration;

use super::clock::TrueTime;
use super::event::Event;
use super::link::LinkId;
use super::random::nanos;
use super::state::{MasterNode, State};
use super::timeline::Happening;
use crate::master::{Changes, Master};

/// How often a replica acknowledges its offset unasked.
const BEAT: Duration = Duration::from_secs(1);

/// How long a copy of all keys takes, in addition to the delay.
const COPYING: std::ops::RangeInclusive<Duration> = Duration::from_micros(200)..=Duration::from_millis(60);

/// One server's part in its group.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// The server that it follows.
    follows: Option<usize>,
    /// How often it has begun to follow a server. Messages of an earlier time are ignored.
    attempt: u64,
    /// The offset of the other's changes that it has applied, once it has a copy of all keys.
    applied: Option<u64>,
    /// The servers that follow it, each with the number of its attempt.
    followers: BTreeMap<usize, u64>,
    /// The last attempt of each server that has ended. The end may overtake its beginning.
    ended: BTreeMap<usize, u64>,
    /// Messages that arrived while it hung.
    pub(super) unread: Vec<Parcel>,
    /// Nothing between it and other servers arrives before this.
    pub(super) isolated_until: TrueTime,
    /// When messages between it and other servers stop being slow.
    pub(super) slow_until: TrueTime,
    /// By how much these messages are delayed until `slow_until`, in nanoseconds.
    pub(super) slowness: u64,
    /// In a cluster, the epoch of the latest owner of the slot that it has heard of.
    pub(super) epoch: u64,
}

/// A message from one server to another.
#[derive(Clone, Debug)]
pub(super) struct Parcel {
    from: usize,
    to: usize,
    /// The attempt of the follower.
    attempt: u64,
    what: Content,
}

#[derive(Clone, Debug)]
enum Content {
    /// It requests to follow.
    Follow,
    /// All keys.
    Copy(Box<Master>),
    Changes(Changes),
    /// It has applied all changes up to this offset.
    Acknowledged(u64),
    /// It stops following.
    End,
}

impl Part {
    pub(super) fn is_replica(&self) -> bool {
        self.follows.is_some()
    }

    pub(super) fn follows(&self) -> Option<usize> {
        self.follows
    }
}

/// The port on which a server listens, which identifies it to others.
fn port(server: usize) -> u16 {
    u16::try_from(6380 + server).unwrap_or(u16::MAX)
}

impl State {
    fn part(&mut self, server: usize) -> Option<&mut Part> {
        self.masters.get_mut(server).map(|node| &mut node.part)
    }

    /// Makes all replicas follow the first server of their group, with its data.
    pub(super) fn begin_following(&mut self) {
        if self.groups.replicas == 0 {
            return;
        }
        for node in &mut self.masters {
            node.model.set_early_quarantine(self.groups.early_quarantine);
        }
        for server in 0..self.masters.len() {
            let at = nanos(self.random.within(Duration::ZERO..=BEAT));
            self.schedule(at, Event::Beat { server });
            let master = self.groups.members(self.groups.group_of(server)).start;
            if server == master {
                continue;
            }
            let Some(first) = self.masters.get_mut(master) else { continue };
            first.model.attach(port(server));
            let clock = Duration::from_nanos(first.clock.read(0));
            first.model.hear_replica(port(server), 0, clock);
            first.part.followers.insert(server, 0);
            let copy = first.model.clone();
            let Some(node) = self.masters.get_mut(server) else { continue };
            node.model.resync_from(&copy);
            (node.part.follows, node.part.applied) = (Some(master), Some(0));
        }
    }

    /// Sends changes of servers to their followers.
    pub(super) fn replicate(&mut self) {
        if self.groups.replicas == 0 {
            return;
        }
        for server in 0..self.masters.len() {
            self.replicate_from(server);
        }
    }

    fn replicate_from(&mut self, server: usize) {
        let Some(node) = self.masters.get_mut(server) else { return };
        let Some(changes) = node.model.take_changes() else { return };
        for (to, attempt) in node.part.followers.clone() {
            self.post(server, to, attempt, Content::Changes(changes.clone()), Duration::ZERO);
        }
    }

    fn post(&mut self, from: usize, to: usize, attempt: u64, what: Content, longer: Duration) {
        let now = self.now;
        let ends = [from, to].map(|server| self.masters.get(server).map(|node| &node.part));
        let blocked = ends.iter().flatten().map(|part| part.isolated_until).max().unwrap_or(0);
        let slow = ends.iter().flatten().filter(|part| now < part.slow_until).map(|part| part.slowness);
        let slow = slow.max().unwrap_or(0);
        let last = self.groups.last.get(&(from, to)).copied().unwrap_or(0);
        let at = (now.max(blocked) + self.travel_time() + nanos(longer) + slow).max(last);
        self.groups.last.insert((from, to), at);
        self.schedule(at, Event::Parcel(Parcel { from, to, attempt, what }));
    }

    /// A message arrives at a server, which may hang or be down.
    pub(super) fn parcel_comes(&mut self, parcel: Parcel) {
        let now = self.now;
        let Some(node) = self.masters.get_mut(parcel.to).filter(|node| now >= node.away_until) else {
            return;
        };
        if now < node.hangs_until {
            node.part.unread.push(parcel);
        } else {
            self.open_parcel(parcel);
        }
    }

    pub(super) fn open_parcel(&mut self, Parcel { from, to, attempt, what }: Parcel) {
        // Earlier changes are not sent to new followers.
        self.replicate_from(to);
        let now = self.now;
        let Some(node) = self.masters.get_mut(to) else { return };
        let clock = Duration::from_nanos(node.clock.read(now));
        let is_newest = node.part.followers.get(&from).is_none_or(|known| *known < attempt)
            && node.part.ended.get(&from).is_none_or(|ended| *ended < attempt);
        let is_followed = node.part.followers.get(&from) == Some(&attempt);
        let follows = node.part.follows == Some(from) && node.part.attempt == attempt;
        match what {
            // After all faults have ended, delayed messages may be overtaken.
            Content::Follow if !node.model.is_replica() && is_newest => {
                node.model.attach(port(from));
                node.part.followers.insert(from, attempt);
                let copy = Box::new(node.model.clone());
                let longer = self.random.spread(COPYING);
                self.post(to, from, attempt, Content::Copy(copy), longer);
            }
            Content::Copy(copy) if follows => {
                node.model.resync_from(&copy);
                node.part.applied = Some(copy.offset());
                self.note(|| Happening::Copies { master: to, other: from });
                self.tell_readers(to, None);
                self.loses_data(to, false);
                self.post(to, from, attempt, Content::Acknowledged(copy.offset()), Duration::ZERO);
            }
            Content::Changes(changes) if follows => {
                node.model.apply(&changes);
                node.part.applied = Some(changes.offset());
                self.tell_readers(to, None);
                self.observer.keys_changed();
                self.post(to, from, attempt, Content::Acknowledged(changes.offset()), Duration::ZERO);
            }
            Content::Acknowledged(offset) if is_followed => {
                node.model.hear_replica(port(from), offset, clock);
                self.look_at_waits(to);
            }
            Content::End => {
                let ended = node.part.ended.entry(from).or_default();
                *ended = attempt.max(*ended);
                if is_followed {
                    node.model.detach(port(from));
                    node.part.followers.remove(&from);
                }
            }
            _ => {}
        }
    }

    /// A replica acknowledges its offset, or requests a copy of all keys if it has none.
    pub(super) fn beat(&mut self, server: usize) {
        let now = self.now;
        self.schedule(now + nanos(BEAT), Event::Beat { server });
        let is_up = |node: &&mut MasterNode| now >= node.away_until && now >= node.hangs_until;
        let Some(node) = self.masters.get_mut(server).filter(is_up) else { return };
        let (attempt, applied) = (node.part.attempt, node.part.applied);
        let Some(other) = node.part.follows else { return };
        match applied {
            Some(offset) => self.post(server, other, attempt, Content::Acknowledged(offset), Duration::ZERO),
            None => self.begin_to_follow(server, other),
        }
    }

    /// A server becomes the replica of another one, and loses its data once the other's copy
    /// arrives. It may close the connections of its clients.
    pub(super) fn follow(&mut self, server: usize, other: usize, closes: bool) {
        self.leave_group(server);
        if let Some(node) = self.masters.get_mut(server) {
            node.model.set_replica(true);
        }
        self.begin_to_follow(server, other);
        self.end_waits(server);
        if closes {
            self.hang_up_all(server);
        }
    }

    fn begin_to_follow(&mut self, server: usize, other: usize) {
        let Some(part) = self.part(server) else { return };
        part.attempt += 1;
        (part.follows, part.applied) = (Some(other), None);
        let attempt = part.attempt;
        self.post(server, other, attempt, Content::Follow, Duration::ZERO);
    }

    /// A server ends its role in its group. The server that it followed learns it after the earlier
    /// messages.
    pub(super) fn leave_group(&mut self, server: usize) {
        self.replicate_from(server);
        let Some(node) = self.masters.get_mut(server) else { return };
        node.model.detach_all();
        let followers = std::mem::take(&mut node.part.followers);
        node.part.applied = None;
        let (attempt, followed) = (node.part.attempt, node.part.follows.take());
        if let Some(other) = followed {
            self.post(server, other, attempt, Content::End, Duration::ZERO);
        }
        for (follower, attempt) in followers {
            if let Some(part) = self.part(follower).filter(|part| part.attempt == attempt) {
                part.applied = None;
            }
        }
    }

    /// Makes a replica the primary of its group, while the former primary continues. Each client
    /// learns of it at a random time within `learned_within`. In a cluster, the other servers do,
    /// and clients find the new primary by asking them.
    pub(super) fn promote_in_group(&mut self, server: usize, learned_within: Duration) {
        let now = self.now;
        let Some(node) = self.masters.get(server) else { return };
        if node.part.follows.is_none() || now < node.away_until || now < node.hangs_until {
            return;
        }
        self.leave_group(server);
        self.promote(server);
        self.tokens_come_along(server);
        let group = self.groups.group_of(server);
        if let Some(named) = self.groups.named.get_mut(group) {
            *named = server;
        }
        if self.groups.is_cluster() {
            // Clients find it themselves.
            return self.takes_over(server, learned_within);
        }
        for client in 0..self.clients.len() {
            let at = now + nanos(self.random.within(Duration::ZERO..=learned_within));
            self.schedule(at, Event::Learns { client, server });
        }
    }

    /// The primary of a server's group becomes a replica of another group's primary, and is
    /// promoted again after this span. Its own replicas get that data after the promotion, when it
    /// answers their requests to follow it.
    pub(super) fn rebuild_group(&mut self, server: usize, further: usize, span: Duration) {
        let groups = self.groups.named.len();
        // A node of a cluster cannot be a replica of a node with another slot.
        if self.groups.is_cluster() || groups < 2 {
            return;
        }
        let group = self.groups.group_of(server);
        let other = (group + 1 + further % (groups - 1)) % groups;
        let primary = |group: usize| self.groups.named.get(group).copied();
        let (Some(primary), Some(other)) = (primary(group), primary(other)) else { return };
        if self.is_writing(primary) && self.is_writing(other) {
            self.note(|| Happening::Follows { master: primary, other });
            self.follow(primary, other, false);
            self.schedule(self.now + nanos(span), Event::Promote { master: primary });
        }
    }

    /// Whether all replicas of a primary follow it, and nothing between them is late.
    pub(super) fn has_all_replicas(&self, server: usize) -> bool {
        let is_well = |node: &MasterNode| {
            let part = &node.part;
            let ends = [node.hangs_until, node.away_until, part.isolated_until, part.slow_until];
            ends.iter().all(|end| self.now >= *end)
        };
        let members = self.groups.members(self.groups.group_of(server));
        let is_following =
            |node: &MasterNode| node.part.follows == Some(server) && node.part.applied.is_some();
        let mut nodes = members.filter_map(|member| Some((member, self.masters.get(member)?)));
        let has_exactly_those = |node: &MasterNode| {
            let clock = Duration::from_nanos(node.clock.read(self.now));
            [node.part.followers.len(), node.model.followed_by(clock)] == [self.groups.replicas; 2]
        };
        nodes.all(|(member, node)| {
            is_well(node) && if member == server { has_exactly_those(node) } else { is_following(node) }
        })
    }

    /// Makes a client open its connections to this server of the group.
    pub(super) fn learns(&mut self, client: usize, server: usize) {
        let Some(master) = self.place_in_list(client, server) else { return };
        let named = self.groups.named.get(self.groups.group_of(server)).copied().filter(|_| self.is_calm);
        let server = named.unwrap_or(server);
        let node = self.clients.get_mut(client).filter(|node| !node.is_dead);
        if let Some(named) = node.and_then(|node| node.named.get_mut(master)) {
            *named = server;
            self.note(|| Happening::Learns { client, master: server });
        }
    }

    /// A server begins to follow the one that was promoted last, unless it is that one.
    pub(super) fn follow_named(&mut self, server: usize, closes: bool) {
        let now = self.now;
        let named = self.groups.named.get(self.groups.group_of(server)).copied();
        let is_up =
            self.masters.get(server).is_some_and(|node| now >= node.away_until && now >= node.hangs_until);
        if let Some(named) = named.filter(|named| *named != server && is_up) {
            self.note(|| Happening::Follows { master: server, other: named });
            self.follow(server, named, closes);
        }
    }

    /// A server that was down is back.
    pub(super) fn follow_again(&mut self, server: usize) {
        if let Some(other) = self.part(server).and_then(|part| part.follows) {
            self.begin_to_follow(server, other);
        }
    }

    /// A server has died. Its primary and its followers learn it.
    pub(super) fn die_in_group(&mut self, server: usize) {
        let follows = self.part(server).and_then(|part| part.follows);
        self.leave_group(server);
        if let Some(part) = self.part(server) {
            part.follows = follows;
            part.unread.clear();
        }
    }

    /// Ends all faults: all servers of a group follow the one that was promoted last, and clients
    /// know it.
    pub(super) fn heal_groups(&mut self) {
        if self.groups.replicas == 0 {
            return;
        }
        for node in &mut self.masters {
            (node.part.isolated_until, node.part.slow_until) = (0, 0);
        }
        self.groups.last.clear();
        for named in self.groups.named.clone() {
            // Unless it is one already.
            self.promote_in_group(named, Duration::ZERO);
        }
        for server in 0..self.masters.len() {
            let named = self.groups.named.get(self.groups.group_of(server)).copied();
            let has_left = self.masters.get(server).is_some_and(|node| node.has_left);
            if let Some(named) = named.filter(|named| *named != server && !has_left) {
                self.follow(server, named, true);
            }
        }
        for node in &mut self.clients {
            node.named = self.groups.named(&node.list);
        }
    }

    fn hang_up_all(&mut self, server: usize) {
        let all: Vec<LinkId> = self.link_ids().collect();
        for id in all {
            if self.link(id).is_some_and(|link| link.master == server) {
                self.hang_up(id);
            }
        }
    }
}
