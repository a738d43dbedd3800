//! Waiters that go on waiting although it is their turn.

use std::collections::BTreeMap;
use std::time::Duration;

use quorlock_core::{Fleet, Resource, Targets};

use super::access::conflict;
use super::clock::TrueTime;
use super::random::nanos;
use super::state::{MasterNode, State};
use super::violation::Violation;

/// For how long in total a lock may be there for a waiter that does not get it. A waiter that asks
/// as it should has few reasons to miss it: a pause between attempts (up to 0.2 s in random plans),
/// a request that ends with its timeout (0.1 s), a second look at masters that refused (1 s), and
/// others who are as quick. If a notification was lost, the longest TTL is added: the waiter may
/// believe for that long that the lock is held. Smaller: an unlucky waiter counts as a forgotten
/// one. Larger: a forgotten one is found in fewer plans, because it must wait for longer.
const TURN: Duration = Duration::from_secs(3);

/// How often the observer looks. Larger: a lock that is free for a moment only is overlooked.
/// Smaller: runs take longer.
const LOOKS: Duration = Duration::from_millis(5);

/// How the names of keys begin that count, and keep nobody out.
const COUNTERS: [&[u8]; 2] = [b"quorlock:fence", b"quorlock:queue"];

/// All requests that wait.
#[derive(Debug, Default)]
pub(super) struct Turns {
    waiting: BTreeMap<u64, Waiting>,
    requests: u64,
    looked_at: TrueTime,
    /// How many guards had been handed out then.
    granted: u64,
    /// The longest life that a key was given.
    longest: u64,
    /// Whether a notification was lost.
    has_lost: bool,
}

/// A request that waits.
#[derive(Debug)]
struct Waiting {
    client: usize,
    targets: Targets,
    /// Whether the lock was there for it at the last look.
    was_there: bool,
    /// For how long it has been there.
    there: u64,
}

impl Turns {
    /// A key gets this life.
    pub(super) fn lives(&mut self, life: Duration) {
        self.longest = self.longest.max(nanos(life));
    }

    /// A notification is lost: a key that is released may be hidden from waiters until it would
    /// have expired.
    pub(super) fn loses_push(&mut self) {
        self.has_lost = true;
    }

    fn limit(&self) -> u64 {
        nanos(TURN) + if self.has_lost { self.longest } else { 0 }
    }

    /// A client begins to wait for a lock. Returns the number of the request.
    pub(super) fn begins(&mut self, client: usize, targets: Targets) -> u64 {
        self.requests += 1;
        self.waiting.insert(self.requests, Waiting { client, targets, was_there: false, there: 0 });
        self.requests
    }

    /// Whether an earlier request of the same client wants one of its resources: only the first one
    /// in a process asks the masters.
    fn is_behind(&self, request: u64, waiting: &Waiting) -> bool {
        let earlier = self.waiting.range(..request).filter(|(_, earlier)| earlier.client == waiting.client);
        let is_wanted = |earlier: &Waiting| {
            waiting
                .targets
                .resources()
                .any(|one| earlier.targets.resources().any(|other| one.key() == other.key()))
        };
        earlier.into_iter().any(|(_, earlier)| is_wanted(earlier))
    }

    /// A request waits no more.
    pub(super) fn ends(&mut self, request: u64) {
        self.waiting.remove(&request);
    }
}

impl State {
    /// Adds up for how long locks have been there for their waiters. Between two looks a lock
    /// counts as free if it is at both, and no guard was handed out in between.
    pub(super) fn look_at_turns(&mut self) {
        let (now, granted) = (self.now, self.observer.granted);
        let turns = &self.observer.turns;
        let passed = now - turns.looked_at;
        if turns.waiting.is_empty() || passed < nanos(LOOKS) {
            return;
        }
        let is_quiet = turns.granted == granted;
        let is_there = |(request, waiting): (&u64, &Waiting)| {
            !turns.is_behind(*request, waiting) && self.is_there_for(waiting)
        };
        let there: Vec<bool> = turns.waiting.iter().map(is_there).collect();
        let turns = &mut self.observer.turns;
        let limit = turns.limit();
        (turns.looked_at, turns.granted) = (now, granted);
        let mut late = None;
        for (waiting, is_there) in turns.waiting.values_mut().zip(there) {
            if waiting.was_there && is_there && is_quiet {
                waiting.there += passed;
            }
            waiting.was_there = is_there;
            if waiting.there > limit {
                let (client, waited) = (waiting.client, Duration::from_nanos(waiting.there));
                late = Some(Violation::TurnMissed { client, waited });
            }
        }
        if let Some(late) = late {
            self.observer.report(late);
        }
    }

    /// Whether a waiter would get its lock if it asked now: its process runs, no client holds the
    /// lock or keeps others out, and enough masters would vote for it.
    fn is_there_for(&self, waiting: &Waiting) -> bool {
        let Some(node) = self.clients.get(waiting.client) else { return false };
        if node.is_dead || self.now < node.paused_until || self.groups.is_cluster() {
            return false;
        }
        let mut held = self.observer.held.iter().filter(|held| self.now < held.ends);
        let mut kept = self.observer.kept.iter();
        if held.any(|held| conflict(&held.targets, &waiting.targets))
            || kept.any(|kept| conflict(&kept.targets, &waiting.targets))
        {
            return false;
        }
        let masters = 0..self.groups.masters();
        masters.filter(|place| self.would_vote(waiting, *place)).count() > self.groups.masters() / 2
    }

    /// A client takes no votes from another server than before until locks that the former one
    /// granted must have ended.
    fn would_vote(&self, waiting: &Waiting, place: usize) -> bool {
        let server = self.group_at(waiting.client, place).and_then(|group| self.groups.named.get(group));
        let Some((server, node)) = server.and_then(|server| Some((*server, self.masters.get(*server)?)))
        else {
            return false;
        };
        let met = self.met_another_at(waiting.client, place);
        self.is_writing(server)
            && met.is_none_or(|met| self.observer.outages.has_passed_since(met, self.now))
            && self.now >= node.refuses_until.max(node.pushing.late_until)
            && self.has_all_replicas(server)
            && self.is_reached(waiting.client, server)
            && self.is_out_of_quarantine(node)
            && self.is_free(node, &waiting.targets)
    }

    /// Whether a client has a connection to a server on which nothing is late.
    fn is_reached(&self, client: usize, server: usize) -> bool {
        let path = self.path(client, server);
        let ends = [
            path.blocked_until,
            path.mute_until,
            path.clogged_until,
            path.unreachable_until,
            path.slow_until,
        ];
        let links = self.clients.get(client).and_then(|node| node.links.get(server));
        let is_open = ends.iter().all(|end| self.now >= *end);
        is_open
            && links.into_iter().flatten().filter_map(|id| self.link(*id)).any(|link| {
                link.client_end_open && link.master_end_open && !link.forgotten && link.waiting.is_none()
            })
    }

    /// Whether the marker says that the master votes.
    fn is_out_of_quarantine(&self, node: &MasterNode) -> bool {
        if !self.observer.outages.is_guarded() {
            return true;
        }
        let clock = Duration::from_nanos(node.clock.read(self.now));
        let marker = node.model.value(0, &self.groups.key(Fleet::MARKER.as_bytes()), clock);
        let mut words = marker.and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default().split(' ');
        let (id, opens) = (words.next(), words.nth(1).and_then(|opens| opens.parse().ok()));
        id == Some(node.model.replication_id()) && opens.is_some_and(|opens| clock.as_millis() >= opens)
    }

    /// Whether a master has no key of these resources but their counters: neither a holder's, nor
    /// the mark of a waiting writer, nor a queue. A lock that could be shared does not count as
    /// free.
    fn is_free(&self, node: &MasterNode, targets: &Targets) -> bool {
        let clock = Duration::from_nanos(node.clock.read(self.now));
        let mut keys = node.model.keys(clock).map(|held| held.key);
        let is_of = |key: &[u8], resource: &Resource| {
            let name = resource.key();
            !COUNTERS.iter().any(|counter| key.starts_with(counter))
                && key.windows(name.len()).any(|part| part == name)
        };
        !keys.any(|key| targets.resources().any(|resource| is_of(key, resource)))
    }
}

#[cfg(test)]
mod tests {
    use quorlock_core::{Config, Target};

    use super::super::groups::Groups;
    use super::*;

    /// One client with a connection to each of three masters, and a request that waits.
    fn waiting() -> State {
        let mut state = State::new(1, Groups::new(3, 0, None), Duration::ZERO, false);
        state.add_client(vec![0, 1, 2]);
        for master in 0..3 {
            state.connect(0, master, 1);
        }
        pass(&mut state, Duration::from_millis(500));
        let config = Config::builder(["redis://a", "redis://b", "redis://c"]).build().unwrap();
        state.observer.turns.begins(0, config.targets([Target::write("job")]).unwrap());
        state
    }

    fn pass(state: &mut State, span: Duration) {
        let end = state.now + nanos(span);
        while state.next_at().is_some_and(|at| at <= end) {
            let event = state.next_event().unwrap();
            state.happen(event);
        }
        while state.now < end {
            state.now += nanos(LOOKS);
            state.look_at_turns();
        }
    }

    fn hold(state: &mut State, master: usize) {
        state.masters[master].model.hold(0, b"job", b"another token", None);
    }

    fn is_reported(state: &State) -> bool {
        matches!(state.observer.verdict(), Some(Violation::TurnMissed { client: 0, .. }))
    }

    #[test]
    fn a_waiter_that_goes_on_waiting_for_a_free_lock_is_reported() {
        let mut state = waiting();
        // A minority does not keep it out.
        hold(&mut state, 2);
        pass(&mut state, TURN - LOOKS * 4);
        assert!(!is_reported(&state));
        pass(&mut state, LOOKS * 8);
        assert!(is_reported(&state));
    }

    #[test]
    fn a_waiter_waits_for_as_long_as_its_lock_is_not_there_for_it() {
        type Cause = fn(&mut State);
        let causes: [Cause; 5] = [
            |state| (0..2).for_each(|master| hold(state, master)),
            |state| (0..2).for_each(|master| state.masters[master].hangs_until = u64::MAX),
            |state| (0..2).for_each(|master| state.masters[master].refuses_until = u64::MAX),
            |state| (0..2).for_each(|master| state.clients[0].paths[master].blocked_until = u64::MAX),
            |state| state.clients[0].paused_until = u64::MAX,
        ];
        for (place, cause) in causes.into_iter().enumerate() {
            let mut state = waiting();
            cause(&mut state);
            pass(&mut state, TURN * 2);
            assert!(!is_reported(&state), "cause {place}");
        }
    }

    #[test]
    fn a_lost_notification_may_hide_a_key_for_as_long_as_it_would_have_lived() {
        let mut state = waiting();
        state.observer.turns.lives(Duration::from_secs(6));
        state.observer.turns.loses_push();
        pass(&mut state, TURN + Duration::from_secs(5));
        assert!(!is_reported(&state));
        pass(&mut state, Duration::from_secs(2));
        assert!(is_reported(&state));
    }
}
