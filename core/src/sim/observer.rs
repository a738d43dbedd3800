//! The observer: it sees every process and every clock in true time, and says when a promise is broken.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::clock::TrueTime;
use super::link::LinkId;
use super::master::{Command, CommandKind};
use super::random::nanos;
use super::state::State;
use super::timeline::Actor;
use super::violation::Violation;
use crate::machine::LockId;
use crate::protocol::{Resource, Token, Ttl};
use crate::time::Instant;

/// One guard that some client has.
#[derive(Debug)]
struct Held {
    client: usize,
    lock: LockId,
    resource: Resource,
    token: [u8; 40],
    /// On the client's clock.
    valid_until: u64,
    /// In true time.
    ends: TrueTime,
    is_seen: bool,
}

/// A token that was sent to some master.
#[derive(Debug)]
struct Known {
    client: usize,
    /// By which the timeline calls it.
    number: usize,
    /// When its requests were sent on the client's clock, and what life they ask for.
    promises: Vec<(usize, u64, Ttl)>,
}

/// What the observer keeps in mind.
#[derive(Debug)]
pub(super) struct Observer {
    quorum: usize,
    held: Vec<Held>,
    known: BTreeMap<Vec<u8>, Known>,
    /// Keys by master and token that were set after the sender had left: no release can be expected to find them.
    late: BTreeMap<(usize, Vec<u8>), LinkId>,
    ended: BTreeSet<(usize, LockId)>,
    dead: BTreeSet<usize>,
    within_assumptions: bool,
    is_stale: bool,
    verdict: Option<Violation>,
    /// How many guards there have been.
    pub(super) granted: u64,
}

impl Observer {
    pub(super) fn new(masters: usize) -> Self {
        Self {
            quorum: masters / 2 + 1,
            held: Vec::new(),
            known: BTreeMap::new(),
            late: BTreeMap::new(),
            ended: BTreeSet::new(),
            dead: BTreeSet::new(),
            within_assumptions: true,
            is_stale: false,
            verdict: None,
            granted: 0,
        }
    }

    pub(super) fn verdict(&self) -> Option<&Violation> {
        self.verdict.as_ref()
    }

    /// The first verdict stands. Outside the assumptions only that counts which needs none.
    pub(super) fn report(&mut self, violation: Violation) {
        if self.within_assumptions || !violation.needs_assumptions() {
            self.verdict.get_or_insert(violation);
        }
    }

    /// From now on only what needs no assumption counts, and two holders: whoever leaves the assumptions wants to see them.
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

    /// A client sends a command, at this time on its clock.
    pub(super) fn sent(&mut self, client: usize, master: usize, command: &Command, local: u64) {
        if let (CommandKind::Set | CommandKind::Extend, Some(token), Some(ttl)) =
            (command.kind(), command.token(), ttl_millis(command))
        {
            let number = self.known.len() + 1;
            let known = self.known.entry(token.to_vec()).or_insert_with(|| Known {
                client,
                number,
                promises: Vec::new(),
            });
            if let Ok(ttl) = Ttl::new(Duration::from_millis(ttl)) {
                // One round's commands go to all masters at one time, mostly.
                known.promises.push((master, local, ttl));
            }
        }
    }

    /// A master has executed a command and gave this answer. `is_late` tells that its sender had left by then.
    pub(super) fn executed(
        &mut self,
        master: usize,
        command: &Command,
        answer: &[u8],
        late_on: Option<LinkId>,
    ) {
        let Some(token) = command.token() else { return };
        self.is_stale = true;
        if let (Some(link), CommandKind::Set, true) = (late_on, command.kind(), answer.starts_with(b"+")) {
            self.late.insert((master, token.to_vec()), link);
        }
    }

    /// A command as the timeline shows it.
    pub(super) fn name(&self, command: &Command) -> String {
        let token = || match command.token().and_then(|token| self.known.get(token)) {
            Some(known) => format!("token {}", known.number),
            None => "a token".to_owned(),
        };
        let key = || String::from_utf8_lossy(command.key().unwrap_or_default()).into_owned();
        let ttl = || ttl_millis(command).unwrap_or_default();
        match command.kind() {
            CommandKind::Set => format!("SET {} {} NX PX {}", key(), token(), ttl()),
            CommandKind::Extend => format!("EXTEND {} {} by {}", key(), token(), ttl()),
            CommandKind::Release => format!("RELEASE {} {}", key(), token()),
            CommandKind::Undo => format!("UNDO {} {}", key(), token()),
            _ => String::from_utf8_lossy(command.name()).into_owned(),
        }
    }

    /// How many requests for a lock were granted after their sender had left.
    pub(super) fn late_grants(&self) -> u64 {
        // No platform of Rust has addresses of more than 64 bits.
        self.late.len() as u64
    }

    /// Begins a look at a client's guards.
    pub(super) fn look_begins(&mut self, client: usize) {
        for held in self.held.iter_mut().filter(|held| held.client == client) {
            held.is_seen = false;
        }
    }

    /// Those that were not seen are gone.
    pub(super) fn look_ends(&mut self, client: usize) {
        let Self { held, ended, .. } = self;
        held.retain(|held| {
            let stays = held.client != client || held.is_seen;
            if !stays {
                ended.insert((client, held.lock));
            }
            stays
        });
    }
}

impl State {
    /// A client has a guard that calls itself valid until then.
    pub(super) fn sees_guard(
        &mut self,
        client: usize,
        lock: LockId,
        resource: &Resource,
        token: Token,
        valid_until: Instant,
    ) {
        let valid_until = valid_until.as_nanos();
        let local = self.local(client);
        let ends = self.clients.get(client).map_or(0, |node| node.clock.when(valid_until));
        let observer = &mut self.observer;
        let place = observer.held.iter_mut().find(|held| held.client == client && held.lock == lock);
        let is_new = place.is_none();
        let has_revived;
        if let Some(held) = place {
            held.is_seen = true;
            if held.valid_until == valid_until {
                return;
            }
            has_revived = local >= held.valid_until && local < valid_until;
            (held.valid_until, held.ends) = (valid_until, ends);
        } else {
            has_revived = observer.ended.contains(&(client, lock));
            observer.granted += 1;
            let (resource, token) = (resource.clone(), token.to_hex());
            observer.held.push(Held { client, lock, resource, token, valid_until, ends, is_seen: true });
        }
        observer.is_stale = true;
        if has_revived {
            observer.report(Violation::Revived { client });
        }
        let hex = token.to_hex();
        let known = observer.known.get(hex.as_slice());
        let promised = known.into_iter().flat_map(|known| &known.promises).fold(
            BTreeMap::new(),
            |mut best: BTreeMap<usize, u64>, (master, sent, ttl)| {
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
        self.timeline.note(self.now, Actor::Client(client), None, || {
            let what = if is_new { "holds" } else { "goes on holding" };
            let span = Duration::from_nanos(valid_until.saturating_sub(local));
            format!("{what} {resource} with token {number}, valid for {span:?}")
        });
    }

    /// Looks at all guards and all keys.
    pub(super) fn observe(&mut self) {
        if !std::mem::take(&mut self.observer.is_stale) {
            return;
        }
        let now = self.now;
        for held in &mut self.observer.held {
            // The clock may have changed its rate since.
            held.ends = self.clients.get(held.client).map_or(0, |node| node.clock.when(held.valid_until));
        }
        let observer = &self.observer;
        let mut verdict = None;
        for (place, held) in observer.held.iter().enumerate().filter(|(_, held)| now < held.ends) {
            let same = |other: &&Held| now < other.ends && other.resource == held.resource;
            if let Some(other) = observer.held.iter().take(place).find(same) {
                verdict = Some(Violation::TwoHolders { first: other.client, second: held.client });
                break;
            }
            if observer.within_assumptions {
                let masters = self.masters.iter().filter(|node| {
                    let server_now = Duration::from_nanos(node.clock.read(now));
                    let key = held.resource.as_bytes();
                    node.model.value(0, key, server_now) == Some(held.token.as_slice())
                        && node
                            .model
                            .expires_at(0, key, server_now)
                            .is_none_or(|at| node.clock.when(nanos(at)) >= held.ends)
                });
                let masters = masters.count();
                if masters < observer.quorum {
                    verdict = Some(Violation::TooFewMasters { client: held.client, masters });
                    break;
                }
            }
        }
        if let Some(violation) = verdict {
            self.observer.report(violation);
        }
    }

    /// Looks for keys that nobody has any more. All masters must have answered for some time.
    pub(super) fn look_for_left_keys(&mut self) {
        let mut found = None;
        for (master, node) in self.masters.iter().enumerate() {
            let server_now = Duration::from_nanos(node.clock.read(self.now));
            for held in node.model.keys(server_now) {
                let (key, token) = (held.key, held.value.unwrap_or_default());
                let Some(known) = self.observer.known.get(token) else { continue };
                let is_excused = self.observer.dead.contains(&known.client)
                    || self.observer.late.get(&(master, token.to_vec())).is_some_and(|link| {
                        // Its release was sent behind it and lost with the connection, or found no room in the socket.
                        self.link(*link).is_some_and(|link| link.is_full || link.parting.contains(token))
                    })
                    || self.observer.held.iter().any(|held| held.token == token);
                if let (false, Ok(resource)) = (is_excused, Resource::new(key)) {
                    found = Some(Violation::KeyLeft { master, resource });
                }
            }
        }
        if let Some(violation) = found {
            self.observer.report(violation);
        }
    }
}

/// The life that a command asks for its key: in both the argument behind `PX`, or behind the token.
fn ttl_millis(command: &Command) -> Option<u64> {
    std::str::from_utf8(command.arguments().get(5)?).ok()?.parse().ok()
}

/// A reply in a few words.
pub(super) fn summary(reply: &[u8]) -> String {
    let first = reply.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let text = String::from_utf8_lossy(first);
    match reply.first() {
        Some(b'+' | b':') => text.trim_start_matches(['+', ':']).to_owned(),
        Some(b'-') => text.split(' ').next().unwrap_or_default().to_owned(),
        Some(b'_') => "nil".to_owned(),
        Some(b'$') if reply.starts_with(b"$-1") => "nil".to_owned(),
        Some(_) => "answered".to_owned(),
        None => "no answer".to_owned(),
    }
}
