//! One failover after the other, while clients contend for a lock.

use std::io;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use super::{Deed, Outcome, Timing, Trust};
use crate::chaos::client::Orders;
use crate::chaos::clients::Clients;
use crate::chaos::history::{self, Event, What, Writer, now};
use crate::chaos::{Figures, Program, checker};
use crate::eventually::poll;
use crate::groups::SentinelGroup;
use crate::proxy::FaultProxy;
use crate::random::Random;

/// The longest TTL of the clients in milliseconds, and so the quarantine of a new primary.
const LONGEST_TTL: u64 = 1_500;
/// Twice what a server needs at most to give up a `WAIT`.
const REQUEST_TIMEOUT: u64 = 400;
/// Far beyond what a quarantine, all reconnections and the TTLs take together.
const RECOVERED_WITHIN: Duration = Duration::from_secs(30);
/// How often locks are granted between one failover and the next one.
const GRANTS_BETWEEN: usize = 10;

/// A run on a group under sentinels.
#[derive(Clone, Debug)]
pub struct Run {
    /// What becomes of one primary after the other.
    pub deeds: Vec<Deed>,
    /// What clients and their faults are chosen by.
    pub seed: u64,
    /// How many clients there are of each way to trust.
    pub clients: usize,
    /// Where histories go, one file for each way to trust.
    pub directory: PathBuf,
    /// What is started as a client.
    pub program: Program,
}

/// The clients that trust in one way.
struct Party {
    trust: Trust,
    /// What they know: whichever server is the primary, for new connections.
    name: FaultProxy,
    clients: Clients,
    path: PathBuf,
    history: Writer,
}

impl Run {
    /// Does it, and returns what has come of it. The histories are left.
    ///
    /// # Errors
    /// When a client ends by itself, or when clients with confirmed votes are granted nothing although a failover is over.
    pub fn go(&self) -> io::Result<Outcome> {
        let group = SentinelGroup::start();
        let mut random = Random::new(self.seed);
        let ways = [Trust::Confirmed, Trust::GuardAlone];
        let start = |trust| self.party(trust, &group, Random::new(random.number()));
        let mut parties = ways.into_iter().map(start).collect::<io::Result<Vec<_>>>()?;
        let mut timings = Vec::new();
        parties.iter().try_for_each(|party| party.is_granted_after(now()))?;
        parties.iter().for_each(|party| party.history.note(What::Began));
        for deed in &self.deeds {
            sleep(random.millis(0..=700));
            let timing = fail_over(&group, *deed, &mut parties, &mut random)?;
            timings.push(timing);
        }
        parties.iter().for_each(|party| party.history.note(What::Over));
        let told = |Party { trust, clients, path, .. }: Party| {
            drop(clients);
            let events = history::read(&path)?;
            Ok((trust, Figures::of(&events), checker::check(&events)))
        };
        let parties = parties.into_iter().map(told).collect::<io::Result<_>>()?;
        Ok(Outcome { timings, parties })
    }

    fn party(&self, trust: Trust, group: &SentinelGroup, random: Random) -> io::Result<Party> {
        let name = FaultProxy::start(group.server(group.await_complete()).address());
        trust.prepare(&name);
        let path = self.directory.join(trust.name());
        let history = Writer::open(&path)?;
        let orders = Orders {
            name: String::new(),
            seed: 0,
            transport: String::new(),
            history: path.clone(),
            store: None,
            fenced: trust != Trust::GuardAlone,
            restart_guard: Some(LONGEST_TTL),
            request_timeout: Some(REQUEST_TIMEOUT),
            ttl: (500, LONGEST_TTL),
            hold: (0, 600),
            varied: false,
            resources: vec!["job".to_owned()],
            masters: vec![trust.url(name.address(), SentinelGroup::REPLICAS)],
        };
        let clients = Clients::start(self.program.clone(), orders, self.clients, random)?;
        Ok(Party { trust, name, clients, path, history })
    }
}

fn fail_over(
    group: &SentinelGroup,
    deed: Deed,
    parties: &mut [Party],
    random: &mut Random,
) -> io::Result<Timing> {
    let old = group.await_complete();
    let began = now();
    for party in &*parties {
        party.history.note(What::Fault { kind: deed.to_string(), detail: old.to_string() });
    }
    let new = deed.befall(group, old);
    let promoted = now();
    for party in &mut *parties {
        party.name.set_upstream(group.server(new).address());
        // Those that stay have their connections to the old primary. The others are new.
        for place in (0..party.clients.len()).step_by(2) {
            party.clients.replace(place)?;
        }
        party.clients.assert_alive()?;
    }
    // The quarantine of the new primary ends, as far as the restart guard alone knows.
    sleep(Duration::from_millis(LONGEST_TTL) + random.millis(500..=1_500));
    deed.undo(group, old, random.one_in(2));
    let last = group.await_complete();
    for party in &*parties {
        party.name.set_upstream(group.server(last).address());
    }
    let complete = now();
    let confirmed = parties.iter().find(|party| party.trust == Trust::Confirmed);
    let confirmed = confirmed.expect("they are among the clients of each run");
    confirmed.is_granted_after(complete)?;
    let events = history::read(&confirmed.path)?;
    let granted = grants_after(&events, promoted).min().unwrap_or(complete);
    Ok(Timing { deed, began, promoted, complete, granted })
}

impl Party {
    /// Waits until some locks have been granted after an instant.
    fn is_granted_after(&self, from: u64) -> io::Result<()> {
        let are_granted = || {
            // A line may be on its way.
            let events = history::read(&self.path).unwrap_or_default();
            (grants_after(&events, from).count() >= GRANTS_BETWEEN).then_some(())
        };
        poll(RECOVERED_WITHIN, are_granted).ok_or_else(|| {
            let who = self.trust.name();
            io::Error::other(format!(
                "{who}: no {GRANTS_BETWEEN} locks in {RECOVERED_WITHIN:?} after a failover"
            ))
        })
    }
}

/// When locks were granted.
fn grants_after(events: &[Event], from: u64) -> impl Iterator<Item = u64> {
    let grants = events.iter().filter(|event| matches!(event.what, What::Granted { .. }));
    grants.map(|event| event.at).filter(move |at| *at > from)
}
