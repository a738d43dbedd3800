//! One primary with its replicas, and every possible failover.
//!
//! This search uses a model alone: no shipped code runs in it. It models the scripts for masters
//! with replicas (`wire/script/replicas.rs`) and the connection's handling of `WAIT`
//! (`connection/confirming.rs`), and checks whether two clients that count votes in this way can
//! ever hold one lock at once.
//!
//! - *Replication is asynchronous*: a write reaches each replica at any time, and the primary reads
//!   the acknowledgement at any time, also after the replica was promoted. The end of a link is
//!   read after the acknowledgements before it.
//! - *Any replica may be promoted at any time*, while its primary continues, and may lose its key
//!   at that moment, because its clock was ahead. Any server may follow any primary from some time
//!   on, and take its data. A server may restart without data.
//! - *What a primary knows of its replicas* is its links. One replica may have two links: `WAIT`
//!   counts both, the script does not. Lag is not modelled, because safety does not depend on it.
//! - *Requests* are executed when they are sent: validity counts from there, so a later execution
//!   only shortens it. The answer arrives at any time, or never. A client may ask any server.
//! - *Spares* follow no server at the beginning. If there are spares, only they change sides, and
//!   one of them replaces a server that has been promoted, which is outside the promises.
//! - *Time* is counted in ticks. A lock is valid for a tick less than its TTL, because of drift;
//!   keys and quarantines may end a tick early.
//!
//! Releases are left out, because they only remove keys that could refuse others. Healing is left
//! out because it would be an acquisition here, and raising because it moves no expiry. There are
//! one lock, one group and two clients, and the clocks end at the horizon.

mod state;

use std::collections::{HashMap, HashSet};
use std::fmt;

use self::state::{Client, Data, Link, Request, Server, State};

type Tick = u8;

/// How long a key lives, and how long a quarantine lasts.
const TTL: Tick = 3;
const CLIENTS: usize = 2;

/// The scenario of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// How many servers there are at the beginning: a primary and those that follow it.
    pub servers: u8,
    /// How many further servers follow no server yet.
    pub spares: u8,
    /// The `replicas=` of clients; zero is the restart guard alone.
    pub declared: u8,
    /// How often replicas are promoted.
    pub promotions: u8,
    /// How often servers begin to follow another one.
    pub changes: u8,
    /// How often servers restart without their data.
    pub restarts: u8,
    /// How often a holder extends.
    pub extensions: u8,
    /// The last tick.
    pub horizon: u8,
    /// Whether a quarantine begins with the first request, and not when the replicas are complete.
    pub early_quarantine: bool,
    /// The fault.
    pub flaw: Option<GroupFlaw>,
}

/// A fault that the search must find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupFlaw {
    /// No vote waits for replicas; the scripts check them.
    NoWait,
    /// Votes wait for one replica fewer than declared.
    OneLess,
    /// Extensions do not wait for replicas.
    ExtensionsDoNotWait,
}

/// The result of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupReport {
    /// How many different states there are.
    pub states: usize,
    /// The shortest path to two holders, a line for each step, if there is one.
    pub two_holders: Option<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Ask { client: usize, server: u8, extends: bool, early: bool },
    Confirm { client: usize },
    GiveUp { client: usize },
    Apply { server: usize, link: usize },
    Hear { server: usize, link: usize },
    Drop { server: usize, link: usize },
    Promote { server: u8, keeps_key: bool },
    Follow { server: u8, primary: u8 },
    Restart { server: u8 },
    Tick,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask { client, server, extends: false, .. } => {
                write!(f, "c{client} asks s{server} for the lock")
            }
            Self::Ask { client, server, .. } => write!(f, "c{client} asks s{server} for an extension"),
            Self::Confirm { client } => write!(f, "c{client} counts the vote"),
            Self::GiveUp { client } => write!(f, "c{client} gives up"),
            Self::Apply { server, link } => write!(f, "replica {link} of s{server} applies a write"),
            Self::Hear { server, link } => write!(f, "s{server} reads what its replica {link} acknowledged"),
            Self::Drop { server, link } => write!(f, "s{server} reads the end of its replica {link}"),
            Self::Promote { server, keeps_key: true } => write!(f, "s{server} is promoted"),
            Self::Promote { server, .. } => write!(f, "s{server} is promoted, and its key has ended"),
            Self::Follow { server, primary } => write!(f, "s{server} follows s{primary}"),
            Self::Restart { server } => write!(f, "s{server} restarts without its data"),
            Self::Tick => f.write_str("a tick passes"),
        }
    }
}

impl Group {
    /// Goes through every state.
    pub fn search(&self) -> GroupReport {
        let first = self.initial();
        let mut numbers = HashMap::from([(first.clone(), 0)]);
        let mut states = vec![(first, None)];
        let mut place = 0;
        while let Some((state, _)) = states.get(place) {
            let state = state.clone();
            for step in self.steps(&state) {
                let mut next = state.clone();
                self.take(&mut next, step);
                next.tidy();
                if numbers.contains_key(&next) {
                    continue;
                }
                numbers.insert(next.clone(), states.len());
                let holders = next.clients.iter().filter(|client| next.now < client.valid_until).count();
                states.push((next, Some((place, step))));
                if holders > 1 {
                    return GroupReport { states: states.len(), two_holders: Some(story(&states)) };
                }
            }
            place += 1;
        }
        GroupReport { states: states.len(), two_holders: None }
    }

    fn initial(&self) -> State {
        let data = Data { key: None, marker: Some((0, 0)) };
        let mut servers: Vec<_> = (0..self.servers + self.spares)
            .map(|number| {
                let follows = (number > 0 && number < self.servers).then_some(0);
                let is_spare = number >= self.servers;
                Server {
                    // A spare has no vote until it is told which server to follow.
                    follows: if is_spare { Some(number) } else { follows },
                    id: 0,
                    data: if is_spare { Data::default() } else { data },
                    links: Vec::new(),
                }
            })
            .collect();
        let links = (1..self.servers).map(Link::to).collect();
        servers.iter_mut().take(1).for_each(|primary| primary.links = Vec::clone(&links));
        State {
            now: 0,
            ids: 1,
            promotions: self.promotions,
            changes: self.changes,
            restarts: self.restarts,
            servers,
            clients: [Client::default(); CLIENTS],
        }
    }

    fn steps(&self, state: &State) -> Vec<Step> {
        let mut steps = Vec::new();
        let all = || (0..).zip(&state.servers);
        for (client, it) in state.clients.iter().enumerate() {
            let holds = state.now < it.valid_until;
            match it.request {
                None if !holds || it.extended < self.extensions => {
                    let asks = |early| {
                        all().map(move |(server, _)| Step::Ask { client, server, extends: holds, early })
                    };
                    steps.extend(asks(false).chain(asks(true)));
                }
                None => {}
                Some(Request { since, server, extends, .. }) => {
                    let links = state.server(server).links.iter();
                    let confirmed = links.filter(|link| link.unheard <= since).count();
                    if confirmed >= self.awaited(extends) {
                        steps.push(Step::Confirm { client });
                    }
                    steps.push(Step::GiveUp { client });
                }
            }
        }
        for (server, it) in state.servers.iter().enumerate() {
            for (link, to) in it.links.iter().enumerate() {
                if !to.stream.is_empty() {
                    steps.push(Step::Apply { server, link });
                }
                if to.unheard > to.unsent() {
                    steps.push(Step::Hear { server, link });
                } else if to.ended {
                    steps.push(Step::Drop { server, link });
                }
            }
        }
        for (server, it) in all() {
            let is_spare = it.follows == Some(server);
            if it.follows.is_some() && !is_spare && state.promotions > 0 {
                steps.extend([true, false].map(|keeps_key| Step::Promote { server, keeps_key }));
            }
            if state.changes > 0 && (self.spares == 0 || server >= self.servers) {
                let primaries = all().filter(|(primary, to)| *primary != server && to.follows.is_none());
                steps.extend(primaries.map(|(primary, _)| Step::Follow { server, primary }));
            }
            if state.restarts > 0 && !is_spare {
                steps.push(Step::Restart { server });
            }
        }
        if state.now < self.horizon {
            steps.push(Step::Tick);
        }
        steps
    }

    /// How many replicas must confirm a vote.
    fn awaited(&self, extends: bool) -> usize {
        let declared = usize::from(self.declared);
        match self.flaw {
            Some(GroupFlaw::NoWait) => 0,
            Some(GroupFlaw::ExtensionsDoNotWait) if extends => 0,
            Some(GroupFlaw::OneLess) => declared - 1,
            _ => declared,
        }
    }

    fn take(&self, state: &mut State, step: Step) {
        match step {
            Step::Ask { client, server, extends, early } => {
                let request = Request { extends, server, asked: state.now, since: 0 };
                state.client(client).extended += u8::from(extends);
                if self.execute(state, client, request, early) {
                    state.client(client).request = Some(request);
                }
            }
            Step::Confirm { client } => {
                let now = state.now;
                let client = state.client(client);
                let Some(request) = client.request.take() else { return };
                // An extension that is decided after the end of validity does not make the lock
                // valid again.
                if !request.extends || now < client.valid_until {
                    client.valid_until = client.valid_until.max(request.asked + TTL - 1);
                }
            }
            Step::GiveUp { client } => state.client(client).request = None,
            Step::Apply { server, link } => {
                let Some(link) = state.link(server, link) else { return };
                let data = link.stream.remove(0);
                let replica = link.replica;
                state.server_mut(replica).data = data;
            }
            Step::Hear { server, link } => {
                let Some(link) = state.link(server, link) else { return };
                link.unheard = link.unsent();
            }
            Step::Drop { server, link } => {
                state.servers.get_mut(server).into_iter().for_each(|it| drop(it.links.remove(link)));
            }
            Step::Promote { server, keeps_key } => {
                state.promotions -= 1;
                state.leave(server);
                let id = state.new_id();
                let it = state.server_mut(server);
                (it.follows, it.id) = (None, id);
                it.data.key = it.data.key.filter(|_| keeps_key);
            }
            Step::Follow { server, primary } => {
                state.changes -= 1;
                state.leave(server);
                let Server { id, data, .. } = *state.server(primary);
                let it = state.server_mut(server);
                (it.follows, it.id, it.data) = (Some(primary), id, data);
                state.server_mut(primary).links.push(Link::to(server));
            }
            Step::Restart { server } => {
                state.restarts -= 1;
                state.leave(server);
                let id = state.new_id();
                let it = state.server_mut(server);
                (it.id, it.data) = (id, Data::default());
            }
            Step::Tick => state.now += 1,
        }
    }

    /// Executes the beginning of a script, `check_replicas` and `check_marker`. Returns whether it
    /// says yes.
    fn execute(&self, state: &mut State, client: usize, request: Request, early: bool) -> bool {
        let now = state.now;
        let owner = u8::from(client > 0);
        let server = state.server_mut(request.server);
        if server.follows.is_some() {
            return false;
        }
        let is_past = |end: Tick| now + Tick::from(early) >= end;
        let is_own = server.data.marker.is_some_and(|(id, _)| id == server.id);
        let replicas: HashSet<_> = server.links.iter().map(|link| link.replica).collect();
        let are_declared = [replicas.len(), server.links.len()].map(|many| many == self.declared.into());
        let is_alone = self.declared > 0 && are_declared != [true; 2];
        let begins = !is_alone || self.early_quarantine;
        if !request.extends && !is_own && begins {
            server.data.marker = Some((server.id, now + TTL));
            state.replicate(request.server);
            return false;
        }
        if is_alone || !request.extends && server.data.marker.is_some_and(|(_, opens)| !is_past(opens)) {
            return false;
        }
        let standing = server.data.key.filter(|(_, end)| !is_past(*end));
        match (request.extends, standing) {
            (false, Some(_)) | (true, None) => return false,
            (true, Some((holder, _))) if holder != owner => return false,
            _ => server.data.key = Some((owner, now + TTL)),
        }
        state.replicate(request.server);
        true
    }
}

/// The steps that lead to the last state.
fn story(states: &[(State, Option<(usize, Step)>)]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut place = states.len() - 1;
    while let Some((state, Some((before, step)))) = states.get(place) {
        lines.push(format!("tick {}: {step}", state.now));
        place = *before;
    }
    lines.reverse();
    lines
}
