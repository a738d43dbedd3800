//! One life of servers, and what their clients count in it.

use std::collections::BTreeMap;
use std::time::Duration;

use quorlock_core::{Acquire, Config, Event, Instant, LockId, LossCause, ReleaseOutcome, Resumption, Ttl};

use super::client::{Client, SEATS, Site};
use super::happening::{Servers, happen};
use super::table::TOO_SLOW;
use super::{
    Ask, Cell, FIRST, History, LONGEST, Life, OURS, Prior, Row, SEAT, Setting, Span, may_count, urls,
};

/// Our client does not wait for long.
const PATIENCE: Duration = Duration::from_millis(250);
/// The rival's request to the second seat may be on its way for that long.
const SLOW: Duration = Duration::from_millis(9_500);
/// The same for the first seat's answer to our patient client: at most the rest of its TTL.
const PATIENT: Duration = Duration::from_millis(4_900);
/// A client has connected again within this time.
const RECONNECTED: Duration = Duration::from_millis(500);
/// The short extension of locks that heal. It does not lengthen the life of keys.
const BRIEF: Duration = Duration::from_millis(400);

/// A lock of ours before the history.
#[derive(Default)]
struct Lock {
    id: Option<LockId>,
    resumption: Option<Resumption>,
}

/// What became of a request.
enum Answered {
    /// There was nothing to ask for.
    NotAsked,
    Refused,
    /// The answer of the seat was counted during this span.
    Counted(Span),
}

impl Answered {
    fn until(from: Instant, until: Option<Instant>) -> Self {
        until.map_or(Self::Refused, |until| Self::Counted(Span { from, until }))
    }
}

/// What one request found.
struct Found {
    counted: Option<Span>,
    /// The yeses of the seat to the rival and the newcomer, as far as they can be counted.
    theirs: Vec<Span>,
    overlaps: bool,
}

/// Lives one life. On a busy machine an answer may come too late to be counted, or a lock may end
/// too early: then the life is lived again.
pub fn live<S: Servers>(history: History, setting: Setting) -> Life {
    const TRIES: usize = 3;
    let once = || Life { history, setting, cells: lived::<S>(history, setting) };
    let mut lives = (1..TRIES).map(|_| once());
    lives.find(|life| !life.may_be_late()).unwrap_or_else(once)
}

fn lived<S: Servers>(history: History, setting: Setting) -> Result<BTreeMap<Row, Cell>, String> {
    if let Some(why) = history.is_void_in(setting) {
        return Err(why.to_owned());
    }
    let cells = Run::new(S::start(history, setting)?, history, setting).cells()?;
    let asked = Row::all().filter(|row| row.is_asked_after(history)).count();
    if cells.len() == asked { Ok(cells) } else { Err(TOO_SLOW.to_owned()) }
}

struct Run<S: Servers> {
    site: S,
    history: History,
    setting: Setting,
    /// Holds locks by the first two seats, and reaches the seat again when the history has
    /// happened.
    wide: Client<S>,
    /// Never reaches the second seat.
    narrow: Client<S>,
    /// The same, and it waits for long.
    patient: Client<S>,
    /// Had the locks that are resumed.
    giver: Client<S>,
    rival: Client<S>,
    seed: u64,
}

const ALL_SEATS: [bool; SEATS] = [true; SEATS];
const OUR_SEATS: [bool; SEATS] = [true, false, true];
const THEIR_SEATS: [bool; SEATS] = [false, true, true];

fn config(history: History, setting: Setting, request_timeout: Duration) -> Config {
    let config = Config::builder(urls(history, setting))
        .request_timeout(request_timeout)
        .reconnect_delay(Duration::from_millis(5)..=Duration::from_millis(10))
        // A single try that is refused by a part of the masters ends soon.
        .retry_delay(Duration::from_millis(1)..=Duration::from_millis(2));
    let config = if setting == Setting::Plain { config } else { config.restart_guard(LONGEST) };
    config.ttl(LONGEST).build().unwrap()
}

impl<S: Servers> Run<S> {
    fn new(mut site: S, history: History, setting: Setting) -> Self {
        let client = |site: &mut S, patience, seed, reach| {
            Client::new(site, config(history, setting, patience), seed, reach)
        };
        let mut opener = client(&mut site, PATIENCE, 1, ALL_SEATS);
        if setting != Setting::Plain && history.shares_a_server() {
            pass(&mut site, LONGEST);
        } else if setting != Setting::Plain {
            opener.until(&mut site, RECONNECTED, Client::is_ready);
            let lock = opener.machine.bootstrap(site.now()).unwrap();
            let event = opener.event_of(&mut site, lock);
            if !matches!(event, Some(Event::Bootstrapped { result: Ok(()), .. })) {
                // A busy machine: a replica has not confirmed it in time.
                pass(&mut site, LONGEST);
            }
        }
        let wide = client(&mut site, PATIENCE, 2, ALL_SEATS);
        let narrow = client(&mut site, PATIENCE, 3, OUR_SEATS);
        let patient = client(&mut site, PATIENT, 4, OUR_SEATS);
        let giver = client(&mut site, PATIENCE, 5, ALL_SEATS);
        let rival = client(&mut site, SLOW, 6, ALL_SEATS);
        Self { site, history, setting, wide, narrow, patient, giver, rival, seed: 6 }
    }

    fn client(&mut self, reach: [bool; SEATS], lags: bool) -> Client<S> {
        self.seed += 1;
        let config = config(self.history, self.setting, PATIENCE);
        let mut client = if lags {
            Client::lagging(&mut self.site, config, self.seed, reach)
        } else {
            Client::new(&mut self.site, config, self.seed, reach)
        };
        client.until(&mut self.site, RECONNECTED, Client::is_ready);
        client
    }

    /// An error if the machine is too slow.
    fn cells(mut self) -> Result<BTreeMap<Row, Cell>, String> {
        let mut locks = BTreeMap::new();
        let mut expired_at = self.site.now();
        if self.history.shares_a_server() {
            self.hold(&mut locks, |row| row.ask != Ask::Raise)?;
        } else {
            self.hold(&mut locks, Row::is_held_by_others)?;
            expired_at = self.outlive_the_keys_of_the_seat(&locks)?;
            self.hold(&mut locks, |row| !row.is_held_by_others())?;
        }
        self.site.snapshot();
        self.give(&mut locks);
        if self.history == History::PromotedWithoutTheLastWrite {
            self.site.cut_replica_off();
        }
        let asked_at = self.site.now();
        let rivals = self.rivals_vote();
        let voted = self.voted();
        happen(&mut self.site, self.history, self.setting);
        if self.history.is_split() {
            for client in [&mut self.narrow, &mut self.patient] {
                client.part_from(&mut self.site, SEAT);
                client.rejoin(SEAT);
            }
        }
        if self.history.outlives_the_quarantine() {
            // It begins when a client comes.
            self.client(ALL_SEATS, false);
            pass(&mut self.site, LONGEST + Duration::from_millis(5));
        }
        self.wide.rejoin(SEAT);
        self.restore(&locks);
        self.wide.part_from(&mut self.site, 1);
        for client in [&mut self.wide, &mut self.narrow, &mut self.patient] {
            client.until(&mut self.site, RECONNECTED, Client::is_ready);
        }
        let mut newcomer = self.client(THEIR_SEATS, self.history.is_split());
        let until = Ttl::new(LONGEST).unwrap().valid_until(asked_at);
        let mut found = BTreeMap::new();
        let history = self.history;
        for (row, lock) in locks.iter().filter(|(row, _)| row.is_asked_after(history)) {
            let counted = match self.ask(*row, lock) {
                Answered::NotAsked => continue,
                Answered::Refused => None,
                Answered::Counted(span) => Some(span),
            };
            let mut theirs = Vec::new();
            if voted.contains(row) {
                theirs.push(Span { from: asked_at, until });
            }
            let mut overlaps = false;
            if row.prior == Prior::Ours && !self.history.shares_a_server() {
                let asked = row.rivals(newcomer.machine.config());
                if let Some((_, until)) = newcomer.try_for(&mut self.site, &asked) {
                    let from = self.site.now();
                    theirs.push(Span { from, until });
                    overlaps = counted.is_some_and(|ours| from < ours.until);
                }
            }
            found.insert(*row, Found { counted, theirs, overlaps });
        }
        // Our keys on the second seat have expired, and the rival's request arrives there.
        let rest = expired_at.since(self.site.now());
        pass(&mut self.site, rest);
        self.rival.let_through(&mut self.site, 1);
        self.rival.settle(&mut self.site);
        let cells = found.into_iter().map(|(row, found)| {
            let lock = rivals.get(&row).copied();
            (row, self.cell(lock, &found))
        });
        Ok(cells.collect::<Vec<_>>().into_iter().collect())
    }

    fn cell(&mut self, rivals: Option<LockId>, found: &Found) -> Cell {
        let now = self.site.now();
        let granted = rivals.and_then(|lock| self.rival.taken(&mut self.site, lock));
        let is_valid = found.counted.is_some_and(|ours| now < ours.until);
        let is_second_vote = self.history.shares_a_server();
        let may_count = match found.counted {
            Some(ours) => may_count(ours, &found.theirs, is_second_vote),
            None => found.theirs.is_empty() && !is_second_vote,
        };
        Cell {
            counted: found.counted.is_some(),
            may_count,
            overlaps: found.overlaps || granted.is_some() && is_valid,
        }
    }

    /// Our locks before the history.
    fn hold(&mut self, locks: &mut BTreeMap<Row, Lock>, which: impl Fn(Row) -> bool) -> Result<(), String> {
        for row in Row::all().filter(|row| row.ask != Ask::Acquire && which(*row)) {
            let id = if row.ask == Ask::Raise {
                // The first seat has a larger number, and answers only later.
                let asked = row.ours(self.patient.machine.config());
                for resource in asked.targets.resources() {
                    let counter = String::from_utf8(resource.counter_key()).unwrap();
                    self.site.command(FIRST, &["SET", &counter, "10"]);
                }
                self.patient.hold_back(FIRST);
                let id = self.patient.seek(&mut self.site, &asked);
                self.patient.settle(&mut self.site);
                id
            } else {
                let (client, site) = self.holder(row);
                let asked = row.ours(client.machine.config());
                client.try_for(site, &asked).ok_or(TOO_SLOW)?.0
            };
            locks.insert(row, Lock { id: Some(id), resumption: None });
        }
        for row in Row::all().filter(|row| row.ask == Ask::Acquire) {
            locks.insert(row, Lock::default());
        }
        for client in [&mut self.wide, &mut self.narrow, &mut self.giver] {
            client.settle(&mut self.site);
        }
        Ok(())
    }

    /// The client that holds our lock, and its servers.
    fn holder(&mut self, row: Row) -> (&mut Client<S>, &mut S) {
        let client = match (row.ask, row.prior) {
            (Ask::Resume, Prior::Rivals) => &mut self.giver,
            _ if self.history.shares_a_server() => &mut self.wide,
            (_, Prior::Rivals) => &mut self.wide,
            (_, Prior::Ours) => &mut self.narrow,
        };
        (client, &mut self.site)
    }

    /// Our keys on the seat expire, and the others are extended. Returns when these have expired.
    fn outlive_the_keys_of_the_seat(&mut self, locks: &BTreeMap<Row, Lock>) -> Result<Instant, String> {
        self.wide.part_from(&mut self.site, SEAT);
        pass(&mut self.site, OURS * 9 / 10);
        for id in locks.values().filter_map(|lock| lock.id) {
            let now = self.site.now();
            self.wide.machine.extend(id, Ttl::new(OURS).unwrap(), now).map_err(|_| TOO_SLOW)?;
            let event = self.wide.event_of(&mut self.site, id);
            if !matches!(event, Some(Event::Extended { result: Ok(_), .. })) {
                return Err(TOO_SLOW.to_owned());
            }
        }
        let expired_at = self.site.now() + OURS * 101 / 100;
        pass(&mut self.site, OURS / 9);
        Ok(expired_at)
    }

    /// Locks are handed over, or a copy of them is, and they are released.
    fn give(&mut self, locks: &mut BTreeMap<Row, Lock>) {
        for (row, lock) in locks.iter_mut().filter(|(row, _)| row.ask == Ask::Resume) {
            let is_released = row.prior == Prior::Rivals && !self.history.shares_a_server();
            let (client, site) = self.holder(*row);
            let id = lock.id.take().unwrap();
            if is_released {
                lock.resumption = client.machine.resumption(id);
                client.part_from(site, 0);
                client.machine.release(id, site.now());
                client.settle(site);
            } else {
                lock.resumption = client.machine.hand_over(id, site.now());
            }
        }
    }

    /// The rival gets the vote of the seat. Its requests to the second seat are on their way.
    fn rivals_vote(&mut self) -> BTreeMap<Row, LockId> {
        self.rival.part_from(&mut self.site, 0);
        self.rival.hold_back(1);
        let mut locks = BTreeMap::new();
        for row in Row::all().filter(|row| row.prior == Prior::Rivals) {
            let asked = row.rivals(self.rival.machine.config());
            locks.insert(row, self.rival.seek(&mut self.site, &asked));
        }
        // If the second seat is the first to assign permits, others are asked when it is silent.
        self.rival.until(&mut self.site, SLOW / 15, |_| false);
        locks
    }

    /// For which rows the rival can count the vote of the seat.
    fn voted(&mut self) -> Vec<Row> {
        let is_confirmed =
            self.history != History::PromotedWithoutTheLastWrite || self.setting != Setting::Replicas;
        if self.history.shares_a_server() || !is_confirmed {
            return Vec::new();
        }
        let at_the_seat = self.site.at_the_seat();
        let keys = self.site.keys(at_the_seat);
        let has = |row: &Row| keys.iter().any(|key| row.is_held_at(key));
        Row::all().filter(|row| row.prior == Prior::Rivals).filter(has).collect()
    }

    /// An extension by all three seats restores the locks that heal.
    fn restore(&mut self, locks: &BTreeMap<Row, Lock>) {
        self.wide.until(&mut self.site, RECONNECTED, Client::is_ready);
        let healing = locks.iter().filter(|(row, _)| row.ask == Ask::Heal);
        for id in healing.filter_map(|(_, lock)| lock.id) {
            let now = self.site.now();
            if self.wide.machine.extend(id, Ttl::new(BRIEF).unwrap(), now).is_ok() {
                self.wide.event_of(&mut self.site, id);
            }
        }
        self.wide.settle(&mut self.site);
    }

    /// Asks the first seat and the last one.
    fn ask(&mut self, row: Row, lock: &Lock) -> Answered {
        let from = self.site.now();
        match (row.ask, lock.id) {
            (Ask::Acquire, _) => {
                let asked = row.ours(self.narrow.machine.config());
                let granted = self.narrow.try_for(&mut self.site, &asked);
                Answered::until(from, granted.map(|(_, until)| until))
            }
            (Ask::Resume, _) => {
                if lock.resumption.is_none() {
                    return Answered::NotAsked;
                }
                let mut receiver = self.client(OUR_SEATS, false);
                let ours = row.ours(receiver.machine.config());
                let asked = Acquire { resumption: lock.resumption, fair: false, ..ours };
                let granted = receiver.try_for(&mut self.site, &asked);
                Answered::until(from, granted.map(|(_, until)| until))
            }
            (_, None) => Answered::NotAsked,
            (Ask::Raise, Some(id)) => {
                self.patient.let_through(&mut self.site, 0);
                self.patient.event_soon(&mut self.site, id);
                Answered::until(from, self.patient.taken(&mut self.site, id))
            }
            (Ask::Extend | Ask::Heal, Some(id)) => {
                let (client, site) = self.holder(row);
                if client.machine.extend(id, Ttl::new(OURS).unwrap(), from).is_err() {
                    return Answered::NotAsked;
                }
                match client.event_of(site, id) {
                    Some(Event::Extended { result, .. }) => Answered::until(from, result.ok()),
                    Some(Event::Lost { .. }) => Answered::Refused,
                    event => panic!("{row:?}: {event:?}"),
                }
            }
            (Ask::Keep, Some(id)) => {
                let (client, site) = self.holder(row);
                let at_least = OURS * 49 / 25;
                let Ok(Some(left)) = client.machine.release_after(id, at_least, from) else {
                    return Answered::NotAsked;
                };
                match client.event_of(site, id) {
                    Some(Event::Released { outcome: ReleaseOutcome::StillOurs, .. }) => {
                        Answered::until(from, Some(from + left))
                    }
                    Some(Event::Released { .. }) => Answered::Refused,
                    Some(Event::Lost { cause: LossCause::Expired, .. }) => Answered::NotAsked,
                    Some(Event::Lost { .. }) => Answered::Refused,
                    event => panic!("{row:?}: {event:?}"),
                }
            }
            (Ask::Downgrade, Some(id)) => {
                let (client, site) = self.holder(row);
                if !client.machine.downgrade(id, from) {
                    return Answered::NotAsked;
                }
                match client.event_of(site, id) {
                    Some(Event::Renewed { valid_until, .. }) => Answered::until(from, Some(valid_until)),
                    _ => Answered::Refused,
                }
            }
            (Ask::Inspect, Some(id)) => {
                let (client, site) = self.holder(row);
                let token = client.machine.token(id);
                let resource = client.machine.config().resource(row.name()).unwrap();
                let look = client.machine.inspect(&resource, token, from).unwrap();
                match client.event_of(site, look) {
                    Some(Event::Inspected { inspection, .. }) => {
                        Answered::until(from, inspection.is_ours().then_some(from + OURS))
                    }
                    event => panic!("{row:?}: {event:?}"),
                }
            }
        }
    }
}

/// Lets time pass on all servers and clients.
fn pass<S: Site>(site: &mut S, span: Duration) {
    let end = site.now() + span;
    while site.now() < end {
        let rest = end.since(site.now());
        site.idle(rest);
    }
}
