//! Masters that are replaced in the right order, under load.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use quorlock_core::{Config, Fleet};

use super::failures::{Failures, Span, Voters};
use crate::chaos::checker::{self, Violation};
use crate::chaos::client::Orders;
use crate::chaos::clients::Clients;
use crate::chaos::history::{self, Event, What, Writer, now};
use crate::chaos::{Figures, Program};
use crate::eventually::poll;
use crate::fleet::Fleet as Servers;
use crate::random::Random;
use crate::transport::Transport;

/// The longest TTL of the clients in milliseconds, and so the quarantine of a successor.
const LONGEST_TTL: u64 = 1_000;
/// The shortest TTL of the clients in milliseconds.
const SHORTEST_TTL: u64 = 500;
/// The longest time for which a client holds a lock, in milliseconds.
const LONGEST_HOLD: u64 = 300;
/// Clients of each kind: with fencing tokens, and without. They contend for the same locks.
const CLIENTS: usize = 3;
/// Far longer than anything takes that works.
const SOON: Duration = Duration::from_secs(30);

/// A run.
#[derive(Clone, Debug)]
pub struct Run {
    /// How many masters there are.
    pub masters: usize,
    /// How many of them are replaced, one after the other: fewer than half.
    pub replacements: usize,
    /// The seed of the choices.
    pub seed: u64,
    /// The file for the history.
    pub history: PathBuf,
    /// The program that is started as a client.
    pub program: Program,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What happened.
    pub figures: Figures,
    /// Promises that were broken.
    pub violations: Vec<Violation>,
    /// Locks that rested on a dead master and failed.
    pub explained: usize,
    /// Other locks that failed.
    pub unexplained: Vec<String>,
}

/// A run that goes on.
struct Scene<'a> {
    run: &'a Run,
    servers: Servers,
    /// The servers in the newest list.
    list: Vec<usize>,
    voters: Voters,
    /// With fencing tokens, and without.
    clients: [Clients; 2],
    history: Writer,
    random: Random,
}

impl Run {
    /// Carries out the run. The history stays in its file.
    ///
    /// # Errors
    /// When a client ends by itself, or when no lock is granted any more.
    pub fn go(&self) -> io::Result<Outcome> {
        let mut scene = Scene::start(self)?;
        scene.history.note(What::Began);
        scene.await_grants()?;
        for turn in 0..self.replacements {
            scene.replace(turn)?;
        }
        scene.history.note(What::Over);
        let Scene { clients, voters, .. } = scene;
        drop(clients);
        let events = history::read(&self.history)?;
        let Failures { explained, unexplained } = Failures::of(&events, &voters);
        let (figures, violations) = (Figures::of(&events), checker::check(&events));
        Ok(Outcome { figures, violations, explained, unexplained })
    }

    fn orders(&self, name: &str, fenced: bool, masters: Vec<String>) -> Orders {
        Orders {
            name: name.to_owned(),
            seed: 0,
            transport: String::new(),
            history: self.history.clone(),
            store: None,
            fenced,
            restart_guard: Some(LONGEST_TTL),
            request_timeout: None,
            ttl: (SHORTEST_TTL, LONGEST_TTL),
            hold: (0, LONGEST_HOLD),
            varied: false,
            exchange: None,
            resources: ["invoice", "report"].map(str::to_owned).to_vec(),
            masters,
            routes: Vec::new(),
        }
    }
}

impl<'a> Scene<'a> {
    fn start(run: &'a Run) -> io::Result<Self> {
        let servers = Servers::start(run.masters + run.replacements, |options, _| options);
        let list: Vec<usize> = (0..run.masters).collect();
        let urls: Vec<String> = list.iter().map(|place| servers[*place].url()).collect();
        let longest = Duration::from_millis(LONGEST_TTL);
        let config = Config::builder(&urls).restart_guard(longest).ttl(longest).build();
        let locker = Transport::named("blocking").open(config.map_err(io::Error::other)?);
        poll(SOON, || locker.bootstrap().wait().ok()).ok_or_else(|| io::Error::other("no bootstrap"))?;
        // A successor does not vote before it is named.
        let spans =
            (0..servers.len()).map(|place| Span::from(if place < run.masters { 0 } else { u64::MAX }));
        let voters = Voters { spans: spans.collect(), lists: BTreeMap::new() };
        let mut random = Random::new(run.seed);
        let mut start = |name: &str, fenced| {
            let orders = run.orders(name, fenced, urls.clone());
            Clients::start(run.program.clone(), orders, CLIENTS, Random::new(random.number()))
        };
        let clients = [start("fenced-", true)?, start("plain-", false)?];
        let history = Writer::open(&run.history)?;
        let mut scene = Self { run, servers, list, voters, clients, history, random };
        scene.note_lists();
        Ok(scene)
    }

    /// Records which masters the present clients have that are not known yet.
    fn note_lists(&mut self) {
        for name in self.clients.iter().flat_map(Clients::names) {
            self.voters.lists.entry(name.to_owned()).or_insert_with(|| self.list.clone());
        }
    }

    /// Replaces a master in the right order.
    fn replace(&mut self, turn: usize) -> io::Result<()> {
        sleep(self.random.millis(0..=500));
        // Only masters of the first list die, so that old lists lack as many as possible.
        let first: Vec<usize> = self.list.iter().copied().filter(|old| *old < self.run.masters).collect();
        let old = *self.random.of_all(&first);
        let new = self.run.masters + turn;
        self.fault("killed", old);
        self.voters.spans[old].killed = now();
        self.servers[old].kill();
        self.voters.spans[old].dead = now();

        sleep(Duration::from_millis(LONGEST_TTL));
        self.list.iter_mut().filter(|place| **place == old).for_each(|place| *place = new);
        let urls: Vec<String> = self.list.iter().map(|place| self.servers[*place].url()).collect();
        self.clients.iter_mut().for_each(|clients| clients.set_masters(urls.clone()));
        self.fault("named", new);
        // Some clients keep their old lists until the next replacement, or to the end.
        let is_last = turn + 1 == self.run.replacements;
        let places: Vec<_> = (0..CLIENTS).flat_map(|place| [(0, place), (1, place)]).collect();
        for (kind, place) in places {
            if self.random.one_in(if is_last { 6 } else { 3 }) {
                continue;
            }
            self.clients[kind].replace(place)?;
            self.note_lists();
            sleep(self.random.millis(0..=250));
        }
        self.await_vote(new)?;
        self.await_grants()
    }

    fn fault(&self, kind: &str, place: usize) {
        self.history.note(What::Fault { kind: kind.to_owned(), detail: place.to_string() });
    }

    /// Waits for the end of a successor's quarantine.
    fn await_vote(&mut self, place: usize) -> io::Result<()> {
        let server = &self.servers[place];
        let marker = poll(SOON, || server.get(Fleet::MARKER));
        let opens = marker.as_deref().and_then(|marker| marker.split(' ').nth(2)?.parse::<u64>().ok());
        let opens = opens.ok_or_else(|| io::Error::other("no client has asked the successor"))?;
        let time = || {
            let time = server.command(&["TIME"]);
            let text = time.array()?.first()?.text()?.parse::<u64>().ok()?;
            (text * 1_000 > opens).then_some(())
        };
        poll(SOON, time).ok_or_else(|| io::Error::other("the clock does not go on"))?;
        self.voters.spans[place] = Span::from(now());
        Ok(())
    }

    /// Waits until each kind of client has been granted some locks from now on.
    fn await_grants(&mut self) -> io::Result<()> {
        self.clients.iter_mut().try_for_each(Clients::assert_alive)?;
        let from = now();
        let are_granted = || {
            // The last line may be incomplete, so errors are ignored.
            let events = history::read(&self.run.history).unwrap_or_default();
            let granted = |kind: &str| {
                let is_grant = |event: &&Event| {
                    let What::Granted { by, .. } = &event.what else { return false };
                    event.at > from && by.client.starts_with(kind)
                };
                events.iter().filter(is_grant).count() >= 3
            };
            ["fenced-", "plain-"].into_iter().all(granted).then_some(())
        };
        poll(SOON, are_granted).ok_or_else(|| io::Error::other(format!("no locks within {SOON:?}")))
    }
}

impl Outcome {
    /// Whether all promises were kept, and no lock failed without a reason.
    pub fn is_good(&self) -> bool {
        self.violations.is_empty() && self.unexplained.is_empty()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { grants, span, longest_gap, .. } = &self.figures;
        write!(
            f,
            "{grants} locks in {:.1} s, none for {:.1} s at most; {} promises broken; {} locks failed that rested \
             on dead masters, {} others",
            span.as_secs_f64(),
            longest_gap.as_secs_f64(),
            self.violations.len(),
            self.explained,
            self.unexplained.len()
        )
    }
}
