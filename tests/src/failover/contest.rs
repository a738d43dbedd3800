//! Clients with different kinds of trust, each of which contend for a lock, and the outcome.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use quorlock_core::Config;
use quorlock_core::front::Locker;

use super::{Account, Outcome, Timing, Trust};
use crate::chaos::checker::{self, Rule};
use crate::chaos::client::Orders;
use crate::chaos::clients::Clients;
use crate::chaos::history::{self, Event, What, Writer, now};
use crate::chaos::{Figures, Program};
use crate::eventually::poll;
use crate::groups::{Routes, leading};
use crate::random::Random;
use crate::transport::Transport;

/// The longest TTL of the clients in milliseconds, and so the quarantine of a new primary.
pub(super) const LONGEST_TTL: u64 = 1_500;
/// Twice what a server needs at most to give up a `WAIT`.
const REQUEST_TIMEOUT: u64 = 400;
/// Far longer than a quarantine, all reconnections and the TTLs together.
const RECOVERED_WITHIN: Duration = Duration::from_secs(30);
/// How long a client that was asleep checks its grant.
const LOOKED_FOR: Duration = Duration::from_millis(300);
/// How often locks are granted between one failover and the next one.
const GRANTS_BETWEEN: usize = 10;

/// The clients of a run.
#[derive(Clone, Debug)]
pub struct Clientele {
    /// The seed of their choices and of the faults.
    pub seed: u64,
    /// How many clients there are of each kind of trust.
    pub clients: usize,
    /// The directory for the histories, one file for each kind of trust.
    pub directory: PathBuf,
    /// The program that is started as a client.
    pub program: Program,
}

/// A contest of clients with several kinds of trust.
pub(super) struct Contest {
    parties: Vec<Party>,
    routes: Routes,
    /// How many failovers are over.
    over: usize,
}

/// The clients with one kind of trust.
struct Party {
    trust: Trust,
    masters: Vec<String>,
    clients: Clients,
    path: PathBuf,
    history: Writer,
}

/// Clients with connections to the present primaries, which send nothing until they request the
/// lock.
pub(super) struct Sleepers {
    name: String,
    lockers: Vec<(Account, Locker)>,
    /// It outlives its lockers.
    _transport: Transport,
}

impl Contest {
    /// Starts the clients, and waits until they are granted locks. Each kind has its own URLs.
    pub(super) fn start(
        clientele: &Clientele,
        ways: Vec<(Trust, Vec<String>)>,
        routes: &Routes,
        random: &mut Random,
    ) -> io::Result<Self> {
        let mut contest = Self { parties: Vec::new(), routes: routes.clone(), over: 0 };
        for (trust, masters) in ways {
            let path = clientele.directory.join(trust.name());
            let history = Writer::open(&path)?;
            let exchange = clientele.directory.join(format!("{}-handed-over", trust.name()));
            fs::create_dir(&exchange)?;
            let orders = Orders {
                name: String::new(),
                seed: 0,
                transport: String::new(),
                history: path.clone(),
                store: None,
                // A failover that may lose locks may also lose the counters of fencing tokens.
                fenced: trust.is_sound(),
                restart_guard: Some(LONGEST_TTL),
                request_timeout: Some(REQUEST_TIMEOUT),
                ttl: (500, LONGEST_TTL),
                hold: (0, 600),
                varied: false,
                exchange: Some(exchange),
                resources: vec!["job".to_owned()],
                masters: masters.clone(),
                routes: routes.clone(),
            };
            let random = Random::new(random.number());
            let clients = Clients::start(clientele.program.clone(), orders, clientele.clients, random)?;
            contest.parties.push(Party { trust, masters, clients, path, history });
        }
        contest.parties.iter().try_for_each(|party| party.is_granted_after(now()))?;
        contest.note(&What::Began);
        Ok(contest)
    }

    /// Records a fault.
    pub(super) fn befalls(&self, what: &str, place: usize) {
        self.note(&What::Fault { kind: what.to_owned(), detail: place.to_string() });
    }

    fn note(&self, what: &What) {
        self.parties.iter().for_each(|party| party.history.note(what.clone()));
    }

    /// Replaces every second client of one master. The others keep their connections.
    pub(super) fn renew_half(&mut self) -> io::Result<()> {
        // Where one of several masters fails over, locks are granted all the time, except those of
        // clients that are killed.
        for party in self.parties.iter_mut().filter(|party| party.masters.len() == 1) {
            for place in (0..party.clients.len()).step_by(2) {
                party.clients.replace(place)?;
            }
            party.clients.assert_alive()?;
        }
        Ok(())
    }

    /// Opens one client of each kind of trust, which pauses once its masters vote.
    pub(super) fn sleepers(&self, random: &mut Random) -> io::Result<Sleepers> {
        let transport = Transport::named(random.of(Transport::NAMES));
        let sleeper = |party: &Party| {
            let limit = Duration::from_millis(REQUEST_TIMEOUT);
            let longest = Duration::from_millis(LONGEST_TTL);
            let config =
                Config::builder(&party.masters).restart_guard(longest).ttl(longest).request_timeout(limit);
            let config =
                config.address_map(leading(self.routes.clone())).build().map_err(io::Error::other)?;
            let locker = transport.open(config);
            let guard = locker.lock("sleeper").timeout(RECOVERED_WITHIN).wait().map_err(io::Error::other)?;
            // No request may be outstanding, or the client would leave a primary that stops.
            guard.release().wait().map_err(io::Error::other)?;
            Ok((Account::open(&party.path)?, locker))
        };
        let lockers = self.parties.iter().map(sleeper).collect::<io::Result<_>>()?;
        let name = format!("sleeper.{}", self.over);
        Ok(Sleepers { name, lockers, _transport: transport })
    }

    /// A failover is over: waits until clients with confirmed votes are granted locks again. The
    /// time of the first lock is that of clients of one master.
    pub(super) fn goes_on(&mut self, deed: &str, began: u64, promoted: u64) -> io::Result<Timing> {
        let complete = now();
        let sound = || self.parties.iter().filter(|party| party.trust.is_sound());
        sound().try_for_each(|party| party.is_granted_after(complete))?;
        let confirmed = sound().next().expect("they are the first clients of each contest");
        let events = history::read(&confirmed.path)?;
        let granted = grants_after(&events, promoted).min().unwrap_or(complete);
        self.over += 1;
        Ok(Timing { deed: deed.to_owned(), began, promoted, complete, granted })
    }

    /// Whether two clients with this kind of trust have held one lock so far.
    pub(super) fn has_two_holders(&self, trust: Trust) -> io::Result<bool> {
        let party = self.parties.iter().find(|party| party.trust == trust);
        let events = party.map_or(Ok(Vec::new()), |party| history::read(&party.path))?;
        Ok(checker::check(&events).iter().any(|violation| violation.rule == Rule::TwoHolders))
    }

    /// Ends all clients, and checks their records.
    pub(super) fn end(self) -> io::Result<Outcome> {
        self.note(&What::Over);
        let told = |Party { trust, clients, path, .. }: Party| {
            drop(clients);
            let events = history::read(&path)?;
            Ok((trust, Figures::of(&events), checker::check(&events)))
        };
        let parties = self.parties.into_iter().map(told).collect::<io::Result<_>>()?;
        Ok(Outcome { parties })
    }
}

impl Sleepers {
    /// Makes the sleepers request the lock 20 ms before an event.
    pub(super) fn wake_before(&self, event: impl FnOnce()) {
        thread::scope(|scope| {
            for (account, locker) in &self.lockers {
                scope.spawn(|| {
                    let ttl = Duration::from_millis(LONGEST_TTL);
                    let request = locker.try_lock("job");
                    let Ok(holding) = account.seek(&self.name, "job", ttl, request) else { return };
                    // Another client has the lock at the new primary, or will have it in a moment.
                    let end = Instant::now() + LOOKED_FOR;
                    while holding.look() && Instant::now() < end {
                        thread::sleep(Duration::from_millis(1));
                    }
                });
            }
            thread::sleep(Duration::from_millis(20));
            event();
        });
    }
}

impl Party {
    /// Waits until some locks have been granted after an instant.
    fn is_granted_after(&self, from: u64) -> io::Result<()> {
        let are_granted = || {
            // The last line may be incomplete, so errors are ignored.
            let events = history::read(&self.path).unwrap_or_default();
            (grants_after(&events, from).count() >= GRANTS_BETWEEN).then_some(())
        };
        poll(RECOVERED_WITHIN, are_granted).ok_or_else(|| {
            let who = self.trust.name();
            io::Error::other(format!("{who}: no {GRANTS_BETWEEN} locks in {RECOVERED_WITHIN:?}"))
        })
    }
}

/// When locks were granted.
fn grants_after(events: &[Event], from: u64) -> impl Iterator<Item = u64> {
    let grants = events.iter().filter(|event| matches!(event.what, What::Granted { .. }));
    grants.map(|event| event.at).filter(move |at| *at > from)
}
