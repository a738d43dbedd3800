//! The observer: it sees every process and every clock in true time, and reports a broken promise.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quorlock_core::{Instant, LockId, Resumption, Targets, Ttl};

use super::access::{Kinds, Shown, conflict};
use super::clock::TrueTime;
use super::delivered::Delivered;
use super::kept::Kept;
use super::ledger::Ledger;
use super::link::LinkId;
use super::outage::Outages;
use super::reading::{counters, is_extension, is_grant, is_heal, is_raise, is_request, ttl_millis};
use super::state::State;
use super::timeline::Happening;
use super::turns::Turns;
use super::violation::Violation;
use crate::master::{Command, CommandKind, Master};

/// One guard of a client.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) client: usize,
    lock: LockId,
    pub(super) targets: Targets,
    pub(super) token: [u8; 40],
    /// When the client began to ask for it.
    pub(super) asked_at: TrueTime,
    /// The end of its validity, on the client's clock.
    valid_until: u64,
    /// The same in true time.
    pub(super) ends: TrueTime,
    is_seen: bool,
}

/// A token that was sent to some master.
#[derive(Debug)]
pub(super) struct Known {
    /// The client that sent it first,
    pub(super) client: usize,
    /// and all that have sent it.
    pub(super) senders: BTreeSet<usize>,
    /// Its number in the timeline.
    pub(super) number: usize,
    pub(super) first_sent: TrueTime,
    /// The client, the master, the time on the client's clock, and the requested TTL.
    promises: Vec<(usize, usize, u64, Ttl)>,
    /// Whether there has been a guard. Later requests for the key then only restore it, and promise
    /// nothing.
    was_granted: bool,
    /// Whether masters were asked to raise their counters.
    was_raised: bool,
}

/// The state of the observer.
#[derive(Debug)]
pub(super) struct Observer {
    quorum: usize,
    pub(super) held: Vec<Held>,
    pub(super) kept: Vec<Kept>,
    pub(super) known: BTreeMap<Vec<u8>, Known>,
    /// Keys by master and token that were set after the sender had left: no release can be expected
    /// to find them.
    pub(super) late: BTreeMap<(usize, Vec<u8>), LinkId>,
    /// Tokens by master that arrived there with a copy of another's data: they expire there by
    /// themselves.
    pub(super) copied: BTreeSet<(usize, Vec<u8>)>,
    ended: BTreeSet<(usize, LockId)>,
    pub(super) dead: BTreeSet<usize>,
    pub(super) delivered: Delivered,
    pub(super) turns: Turns,
    pub(super) ledger: Ledger,
    pub(super) outages: Outages,
    within_assumptions: bool,
    /// Whether the run continues when two clients hold one lock, and the pairs of holders that were
    /// seen.
    pub(super) bears_two: bool,
    both: BTreeSet<[(usize, LockId); 2]>,
    pub(super) is_stale: bool,
    verdict: Option<Violation>,
    /// How many guards there have been, and of which kinds.
    pub(super) granted: u64,
    pub(super) kinds: Kinds,
    /// How many requests about locks masters have executed.
    pub(super) requests: u64,
    /// How many grants were numbered, and how many of them needed a second round.
    pub(super) numbered: (u64, u64),
}

impl Observer {
    pub(super) fn new(masters: usize, servers: usize) -> Self {
        Self {
            quorum: masters / 2 + 1,
            held: Vec::new(),
            kept: Vec::new(),
            known: BTreeMap::new(),
            late: BTreeMap::new(),
            copied: BTreeSet::new(),
            ended: BTreeSet::new(),
            dead: BTreeSet::new(),
            delivered: Delivered::default(),
            turns: Turns::default(),
            ledger: Ledger::default(),
            outages: Outages::new(servers),
            within_assumptions: true,
            bears_two: false,
            both: BTreeSet::new(),
            is_stale: false,
            verdict: None,
            granted: 0,
            kinds: Kinds::default(),
            requests: 0,
            numbered: (0, 0),
        }
    }

    pub(super) fn verdict(&self) -> Option<&Violation> {
        self.verdict.as_ref()
    }

    /// The first verdict is final. Outside the assumptions, only promises that need none are
    /// checked.
    pub(super) fn report(&mut self, violation: Violation) {
        if self.within_assumptions || !violation.needs_assumptions() {
            self.verdict.get_or_insert(violation);
        }
    }

    /// From now on, only promises without assumptions and two holders count: runs outside the
    /// assumptions exist to show these.
    pub(super) fn leaves_assumptions(&mut self) {
        self.within_assumptions = false;
    }

    pub(super) fn keys_changed(&mut self) {
        self.is_stale = true;
    }

    pub(super) fn clocks_changed(&mut self) {
        self.is_stale = true;
    }

    pub(super) fn died(&mut self, client: usize) {
        self.dead.insert(client);
        self.held.retain(|held| held.client != client);
    }

    /// A client sends a command, at this time on its clock and in true time.
    pub(super) fn sent(&mut self, client: usize, master: usize, command: &Command, (local, now): (u64, u64)) {
        let (kind, Some(token)) = (command.kind(), command.token()) else { return };
        let number = self.known.len() + 1;
        if is_extension(kind) || is_request(kind) {
            let known = self.known.entry(token.to_vec()).or_insert_with(|| Known {
                client,
                senders: BTreeSet::new(),
                number,
                first_sent: now,
                promises: Vec::new(),
                was_granted: false,
                was_raised: false,
            });
            known.senders.insert(client);
            let ttl = ttl_millis(command).and_then(|ttl| Ttl::new(Duration::from_millis(ttl)).ok());
            ttl.into_iter().for_each(|ttl| self.turns.lives(ttl.as_duration()));
            if let Some(ttl) = ttl.filter(|_| is_extension(kind) || !known.was_granted) {
                // The commands of one round are usually sent to all masters at the same time.
                known.promises.push((client, master, local, ttl));
            }
        } else if let (true, Some(known)) = (is_raise(kind), self.known.get_mut(token)) {
            known.was_raised = true;
        }
    }

    /// A master has executed a command and given this answer. `late_on` is its connection if the
    /// client had closed that by then.
    pub(super) fn executed(
        &mut self,
        master: usize,
        command: &Command,
        answer: &[u8],
        late_on: Option<LinkId>,
    ) {
        let Some(token) = command.token() else { return };
        self.requests += 1;
        self.is_stale = true;
        let sets = is_grant(command, answer) || is_heal(command.kind()) && answer == b":1\r\n";
        if let (Some(link), true) = (late_on, sets) {
            self.late.insert((master, token.to_vec()), link);
        }
    }

    /// Under the restart guard, a master that has lost its data does not vote. A lock that is held
    /// may be put back there.
    pub(super) fn look_at_vote(&mut self, master: usize, command: &Command, answer: &[u8], clock: u64) {
        let is_plain = matches!(command.kind(), CommandKind::Set | CommandKind::AcquireReading);
        if !is_plain && is_grant(command, answer) && self.outages.is_silent(master, clock) {
            self.report(Violation::VotedInQuarantine { master });
        }
    }

    /// A master that is told that nothing can be locked yet votes at once. If that is not true,
    /// this is outside all assumptions.
    pub(super) fn look_at_opening(&mut self, master: usize, command: &Command, answer: &[u8], now: TrueTime) {
        if command.kind() != CommandKind::Open || answer != b":1\r\n" {
            return;
        }
        self.outages.told(master);
        if self.held.iter().any(|held| now < held.ends) {
            self.leaves_assumptions();
        }
    }

    /// Checks the counters after a script that may have changed them.
    pub(super) fn look_at_counter(
        &mut self,
        master: usize,
        command: &Command,
        model: &Master,
        now: Duration,
    ) {
        for counter in counters(command) {
            let Some(text) = model.value(0, counter, now) else { continue };
            let has_end = model.expires_at(0, counter, now).is_some();
            if let Err(violation) = self.ledger.counted(master, counter, text, has_end) {
                self.report(violation);
            }
        }
    }

    /// How many requests for a lock were granted after the client had closed the connection.
    pub(super) fn late_grants(&self) -> u64 {
        // No platform of Rust has addresses of more than 64 bits.
        self.late.len() as u64
    }

    /// Begins a check of a client's guards.
    pub(super) fn look_begins(&mut self, client: usize) {
        for held in self.held.iter_mut().filter(|held| held.client == client) {
            held.is_seen = false;
        }
    }
}

impl State {
    /// Ends a check of a client's guards. Guards that were not seen are gone.
    pub(super) fn look_ends(&mut self, client: usize) {
        let Observer { held, ended, known, .. } = &mut self.observer;
        held.retain(|held| {
            let stays = held.client != client || held.is_seen;
            if !stays {
                ended.insert((client, held.lock));
                self.timeline.note(self.now, || {
                    let token = known.get(held.token.as_slice()).map_or(0, |known| known.number);
                    let was_valid = self.now < held.ends;
                    Happening::LetGo { client, what: Shown(held.targets.clone()), token, was_valid }
                });
            }
            stays
        });
    }

    /// A client has a guard that calls itself valid until then.
    pub(super) fn sees_guard(
        &mut self,
        client: usize,
        lock: LockId,
        targets: &Targets,
        proof: Resumption,
        valid_until: Instant,
    ) {
        let hex = proof.token.to_hex();
        let valid_until = valid_until.as_nanos();
        let local = self.local(client);
        let ends = self.clients.get(client).map_or(0, |node| node.clock.when(valid_until));
        let observer = &mut self.observer;
        let place = observer.held.iter_mut().find(|held| held.client == client && held.lock == lock);
        let is_new = place.is_none();
        let has_revived;
        if let Some(held) = place {
            held.is_seen = true;
            if held.valid_until == valid_until && held.targets == *targets {
                return;
            }
            observer.kinds.downgraded += u64::from(held.targets != *targets);
            held.targets.clone_from(targets);
            has_revived = local >= held.valid_until && local < valid_until;
            (held.valid_until, held.ends) = (valid_until, ends);
        } else {
            has_revived = observer.ended.contains(&(client, lock));
            observer.granted += 1;
            observer.kinds.count(targets);
            let (targets, token) = (targets.clone(), hex);
            let requested = observer.known.get(token.as_slice()).map_or(0, |known| known.first_sent);
            let asked_at = observer.delivered.begun(client, &token).unwrap_or(requested);
            let held = Held { client, lock, targets, token, asked_at, valid_until, ends, is_seen: true };
            observer.held.push(held);
        }
        observer.is_stale = true;
        if has_revived {
            observer.report(Violation::Revived { client });
        }
        if let (Some(known), true) = (observer.known.get_mut(hex.as_slice()), is_new) {
            known.was_granted = true;
            let times = (known.first_sent, self.now);
            match proof.fencing_token.map(|number| observer.ledger.granted(targets, hex, number, times)) {
                Some(Ok(true)) => {
                    observer.numbered.0 += 1;
                    observer.numbered.1 += u64::from(known.was_raised);
                }
                Some(Err(violation)) => observer.report(violation),
                Some(Ok(false)) | None => {}
            }
        }
        let known = observer.known.get(hex.as_slice());
        let promises = known.into_iter().flat_map(|known| &known.promises);
        let promised = promises.filter(|(other, ..)| *other == client).fold(
            BTreeMap::new(),
            |mut best: BTreeMap<usize, u64>, (_, master, sent, ttl)| {
                let end = ttl.valid_until(Instant::from_nanos(*sent)).as_nanos();
                let place = best.entry(*master).or_default();
                *place = end.max(*place);
                best
            },
        );
        let mut promised: Vec<u64> = promised.into_values().collect();
        promised.sort_unstable_by(|a, b| b.cmp(a));
        let promised = promised.get(observer.quorum - 1).copied().unwrap_or(0);
        let number = known.map_or(0, |known| known.number);
        if valid_until > promised {
            let by = Duration::from_nanos(valid_until - promised);
            observer.report(Violation::ValidTooLong { client, by });
        }
        self.timeline.note(self.now, || {
            let valid_for = Duration::from_nanos(valid_until.saturating_sub(local));
            let (what, token, fence) = (Shown(targets.clone()), number, proof.fencing_token);
            Happening::Holds { client, is_new, what, token, fence, valid_for, ends }
        });
    }

    /// Checks all guards and all keys.
    pub(super) fn observe(&mut self) {
        self.look_at_turns();
        if !std::mem::take(&mut self.observer.is_stale) {
            return;
        }
        let now = self.now;
        self.look_at_keys();
        for held in &mut self.observer.held {
            // The rate of the clock may have changed since the last check.
            held.ends = self.clients.get(held.client).map_or(0, |node| node.clock.when(held.valid_until));
        }
        self.look_at_kept();
        self.look_at_permits();
        let observer = &self.observer;
        let (mut verdict, mut borne) = (None, Vec::new());
        let is_worth = |held: &Held| now < held.ends && !observer.delivered.is_undermined(held);
        for (place, held) in observer.held.iter().enumerate().filter(|(_, held)| is_worth(held)) {
            let is_foe = |other: &&Held| {
                let is_one = other.token == held.token && observer.delivered.is_shared(&held.token);
                is_worth(other) && !is_one && conflict(&other.targets, &held.targets)
            };
            if let Some(other) = observer.held.iter().take(place).find(is_foe) {
                let violation = Violation::TwoHolders { first: other.client, second: held.client };
                if !observer.bears_two {
                    verdict = Some(violation);
                    break;
                }
                let both = [(other.client, other.lock), (held.client, held.lock)];
                borne.extend((!observer.both.contains(&both)).then_some((both, violation)));
            }
            if observer.within_assumptions {
                let masters = (0..self.groups.masters()).filter(|master| self.is_kept(held, *master)).count();
                if masters < observer.quorum {
                    verdict = Some(Violation::TooFewMasters { client: held.client, masters });
                    break;
                }
            }
        }
        for (both, violation) in borne {
            self.observer.both.insert(both);
            self.note(|| Happening::GivenUp(violation));
        }
        if let Some(violation) = verdict {
            self.observer.report(violation);
        }
    }
}
