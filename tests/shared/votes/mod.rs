//! The table of votes: every request whose answer a client counts, on a server with every history,
//! in every configuration.
//!
//! The rule (ARCHITECTURE.md, "One rule for a vote"): *a yes of a server to a token may be counted
//! during a span only if no yes of the same server, of a server whose data it has, or of a server
//! whose seat it took, to a conflicting claim can be counted at any instant of that span; and the
//! token's key is there for the whole span.* [`may_count`] is that rule for an observer who knows
//! the whole history.
//!
//! There are three seats, and the last one is *the seat*: its server has the history. Our client
//! reaches the first seat and the last one, so it succeeds only if it counts the seat. A rival does
//! not reach the first seat. So two guards are valid at once exactly if both count the seat. One
//! *life* of servers is one history in one configuration, with all requests, each about resources
//! of its own:
//!
//! 1. Our client has its locks, with the vote of the seat ([`Prior::Ours`]) or no longer with it
//!    ([`Prior::Rivals`]): it has not reached the seat for longer than its TTL. A lock to be
//!    resumed was released there, and the release has not reached the first seat. Then the rival
//!    has the vote of the seat, and its request to the second seat is on its way.
//! 2. The history happens.
//! 3. Our client asks the first seat and the last one, and either counts the answer or not.
//! 4. Where our keys were, a newcomer asks the seats that the rival uses. Later our keys on the
//!    second seat have expired, and the rival's request arrives there.
//!
//! Not in the table, because nobody rests a span on them: a release says what was there until now,
//! `attend` and `open` are about no claim, and an undo or an inspection of a semaphore is a look.

pub mod client;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use quorlock_core::{
    Acquire, Config, Event, Instant, LockId, LossCause, ReleaseOutcome, Resumption, Target, Targets, Ttl,
};

use client::{Client, SEATS, Site};

/// The longest TTL of the restart guard, and that of the rival. Shorter: a life may not reach its
/// third step before our own locks, with half of it, have expired. Longer: lives take longer.
pub const LONGEST: Duration = Duration::from_secs(10);
const OURS: Duration = Duration::from_secs(5);
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

/// What protects the masters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Setting {
    Plain,
    Guard,
    /// The guard, and a declared replica of the servers of the first seat and of the last one.
    Replicas,
}

impl Setting {
    pub const ALL: [Self; 3] = [Self::Plain, Self::Guard, Self::Replicas];
}

/// What has happened to the server of the seat.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum History {
    Untouched,
    RestartedWithItsData,
    RestartedEmpty,
    RestartedFromAnOlderSnapshot,
    Flushed,
    /// Flushed, and our keys put back by hand.
    KeysPutBackByHand,
    /// Rebuilt as a copy of the server of the first seat, and its replica with it.
    RebuiltFromAnother,
    /// The same, and its replica has not followed yet.
    RebuiltAlone,
    /// It is a replica of the server of the first seat.
    BecameAReplica,
    /// Its replica was promoted, with the last write, and the former primary is gone.
    PromotedWithTheLastWrite,
    /// The same without the votes of the last moment before the promotion.
    PromotedWithoutTheLastWrite,
    /// Its replica was promoted, and the rival still uses the former primary.
    FormerPrimaryGoesOn,
    /// The same, and the quarantine of the promoted one has ended.
    FormerPrimaryOutlivesTheQuarantine,
    /// It was a replica for a moment, and is a primary again.
    DemotedAndBack,
    OtherFleetsMarker,
    LaterVersionsMarker,
    /// Flushed, and its quarantine has just ended.
    QuarantineOver,
    /// The first seat and the last one lead to one server.
    TwoAddresses,
    /// The same, and the server denies `INFO`.
    TwoAddressesWithoutInfo,
    /// In a cluster, the slot of the seat belongs to another node.
    SlotMovedAway,
}

impl History {
    pub const ALL: [Self; 20] = [
        Self::Untouched,
        Self::RestartedWithItsData,
        Self::RestartedEmpty,
        Self::RestartedFromAnOlderSnapshot,
        Self::Flushed,
        Self::KeysPutBackByHand,
        Self::RebuiltFromAnother,
        Self::RebuiltAlone,
        Self::BecameAReplica,
        Self::PromotedWithTheLastWrite,
        Self::PromotedWithoutTheLastWrite,
        Self::FormerPrimaryGoesOn,
        Self::FormerPrimaryOutlivesTheQuarantine,
        Self::DemotedAndBack,
        Self::OtherFleetsMarker,
        Self::LaterVersionsMarker,
        Self::QuarantineOver,
        Self::TwoAddresses,
        Self::TwoAddressesWithoutInfo,
        Self::SlotMovedAway,
    ];

    /// Whether one server is behind two seats.
    pub fn shares_a_server(self) -> bool {
        matches!(self, Self::TwoAddresses | Self::TwoAddressesWithoutInfo)
    }

    /// Whether the seat's server has a replica at the beginning.
    pub fn has_replica(self, setting: Setting) -> bool {
        setting == Setting::Replicas
            || matches!(
                self,
                Self::PromotedWithTheLastWrite
                    | Self::PromotedWithoutTheLastWrite
                    | Self::FormerPrimaryGoesOn
                    | Self::FormerPrimaryOutlivesTheQuarantine
                    | Self::DemotedAndBack
            )
    }

    /// Whether the former server of the seat still serves clients that do not know the present one.
    fn is_split(self) -> bool {
        matches!(self, Self::FormerPrimaryGoesOn | Self::FormerPrimaryOutlivesTheQuarantine)
    }

    /// Whether the quarantine has ended before our client asks.
    fn outlives_the_quarantine(self) -> bool {
        matches!(self, Self::QuarantineOver | Self::FormerPrimaryOutlivesTheQuarantine)
    }

    /// Why there is no such life.
    fn is_void_in(self, setting: Setting) -> Option<&'static str> {
        match (self, setting) {
            (Self::OtherFleetsMarker | Self::LaterVersionsMarker, Setting::Plain) => {
                Some("there is no marker")
            }
            (history, Setting::Plain) if history.outlives_the_quarantine() => Some("there is no quarantine"),
            (Self::RebuiltAlone, Setting::Plain | Setting::Guard) => Some("no replica is declared"),
            (Self::TwoAddressesWithoutInfo, Setting::Guard | Setting::Replicas) => {
                Some("the guard refuses a server that denies INFO")
            }
            (Self::TwoAddresses, Setting::Replicas) => {
                Some("a server is refused before its replicas are counted")
            }
            _ => None,
        }
    }
}

/// Servers for one life.
pub trait Seats: Site + Sized {
    /// Starts the servers; an error says why this machine cannot make the life.
    ///
    /// # Errors
    /// A reason.
    fn start(history: History, setting: Setting) -> Result<Self, String>;

    /// The state of the seat's server now is the older snapshot.
    fn snapshot(&mut self);

    /// The seat's replica receives nothing from now on, until it is promoted.
    fn cut_replica_off(&mut self);

    fn happens(&mut self, history: History, setting: Setting);

    /// The keys on the server of a seat.
    fn keys(&mut self, seat: usize) -> Vec<String>;

    fn set(&mut self, seat: usize, key: &str, value: &str);

    /// How the seats are named to clients. The addresses do not matter: [`Site::open`] decides.
    fn urls(history: History, setting: Setting) -> [String; SEATS] {
        let first = if setting == Setting::Replicas { "redis://a?replicas=1" } else { "redis://a" };
        let seat = match (history, setting) {
            (History::SlotMovedAway, Setting::Replicas) => "redis+cluster://c:1/?tag=q&replicas=1",
            (History::SlotMovedAway, _) => "redis+cluster://c:1/?tag=q&failover=durable",
            (_, Setting::Replicas) => "redis://c?replicas=1",
            _ => "redis://c",
        };
        [first, "redis://b", seat].map(str::to_owned)
    }
}

/// What is locked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Form {
    Plain,
    Fenced,
    Batch,
    FencedBatch,
    Read,
    Mixed,
    Permit,
    FencedPermit,
    Fair,
}

impl Form {
    const ALL: [Self; 9] = [
        Self::Plain,
        Self::Fenced,
        Self::Batch,
        Self::FencedBatch,
        Self::Read,
        Self::Mixed,
        Self::Permit,
        Self::FencedPermit,
        Self::Fair,
    ];

    fn is_fenced(self) -> bool {
        matches!(self, Self::Fenced | Self::FencedBatch | Self::FencedPermit)
    }
}

/// What is asked of the seat, in this order: requests for locks that are held come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Ask {
    Extend,
    /// The key is restored, and then extended.
    Heal,
    /// The lock is released, and its keys stay.
    Keep,
    /// A writer becomes a reader.
    Downgrade,
    /// Whether an inspection says that the lock is ours.
    Inspect,
    /// The seat granted the lock before, and raises its counter now.
    Raise,
    /// Another process resumes the lock.
    Resume,
    Acquire,
}

impl Ask {
    const ALL: [Self; 8] = [
        Self::Extend,
        Self::Heal,
        Self::Keep,
        Self::Downgrade,
        Self::Inspect,
        Self::Raise,
        Self::Resume,
        Self::Acquire,
    ];
}

/// Who had the vote of the seat before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Prior {
    Ours,
    Rivals,
}

/// One request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Row {
    pub ask: Ask,
    pub prior: Prior,
    pub form: Form,
}

impl Row {
    fn all() -> impl Iterator<Item = Self> {
        let forms = |ask: Ask| Form::ALL.into_iter().filter(move |form| is_asked(ask, *form));
        let pairs = Ask::ALL.into_iter().flat_map(move |ask| forms(ask).map(move |form| (ask, form)));
        let rows =
            pairs.flat_map(|(ask, form)| [Prior::Ours, Prior::Rivals].map(|prior| Self { ask, form, prior }));
        rows.filter(|row| match row.ask {
            // It must be lost on the seat.
            Ask::Heal => row.prior == Prior::Rivals,
            // It had the vote of the seat in the same round.
            Ask::Raise => row.prior == Prior::Ours,
            _ => true,
        })
    }

    /// Whether there is something to ask for after this history.
    fn is_asked_after(self, history: History) -> bool {
        if history.outlives_the_quarantine() {
            // All locks of before have ended.
            return self.ask == Ask::Acquire;
        }
        self.ask != Ask::Raise || !history.shares_a_server()
    }

    /// Whether our lock is held by the first two seats.
    fn is_held_by_others(self) -> bool {
        self.prior == Prior::Rivals && !matches!(self.ask, Ask::Acquire | Ask::Resume)
    }

    /// No name is the beginning of another one.
    fn name(self) -> String {
        format!("{:?}:{:?}:{:?}.", self.prior, self.ask, self.form)
    }

    /// Whether the key holds its lock.
    fn is_held_at(self, key: &str) -> bool {
        let is_seat = key.contains("quorlock:seat:0") && !key.contains("quorlock:fence");
        (is_seat || !key.contains("quorlock:")) && key.contains(&self.name())
    }

    fn targets(self, config: &Config) -> Targets {
        let (name, second) = (self.name(), format!("{}second", self.name()));
        match self.form {
            Form::Plain | Form::Fenced | Form::Fair => config.resource(name).unwrap().into(),
            Form::Batch | Form::FencedBatch => {
                config.targets([Target::write(name), Target::write(second)]).unwrap()
            }
            Form::Read => config.targets([Target::read(name)]).unwrap(),
            Form::Mixed => config.targets([Target::write(name), Target::read(second)]).unwrap(),
            Form::Permit | Form::FencedPermit => config.permits(name, 1).unwrap(),
        }
    }

    /// Our request for the lock.
    fn ours(self, config: &Config) -> Acquire {
        Acquire {
            attempts: Some(1),
            fenced: self.form.is_fenced(),
            fair: self.form == Form::Fair,
            healing: self.ask == Ask::Heal,
            ..Acquire::new(self.targets(config), Ttl::new(OURS).unwrap())
        }
    }

    /// A conflicting request.
    fn rivals(self, config: &Config) -> Acquire {
        let targets = match self.form {
            Form::Permit | Form::FencedPermit => self.targets(config),
            _ => config.resource(self.name()).unwrap().into(),
        };
        Acquire { attempts: Some(1), ..Acquire::new(targets, Ttl::new(LONGEST).unwrap()) }
    }
}

fn is_asked(ask: Ask, form: Form) -> bool {
    match ask {
        Ask::Raise => matches!(form, Form::Fenced | Form::FencedBatch),
        Ask::Downgrade => matches!(form, Form::Plain | Form::Fenced),
        Ask::Inspect => form == Form::Plain,
        _ => true,
    }
}

/// During which span a yes is counted, or could be.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub from: Instant,
    pub until: Instant,
}

/// The rule: whether our yes may be counted during this span. `theirs` are all yeses to conflicting
/// claims of the servers that were, are or will be at the same seat, or have its data; if one
/// server is at two seats, its yes counts at one of them.
pub fn may_count(ours: Span, theirs: &[Span], is_second_vote: bool) -> bool {
    !is_second_vote && theirs.iter().all(|their| their.until <= ours.from || ours.until <= their.from)
}

/// What was found in one cell.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub counted: bool,
    /// What the rule says. For an answer that was not counted: whether nothing was in its way.
    pub may_count: bool,
    /// Whether two guards were valid at once.
    pub overlaps: bool,
}

impl Cell {
    fn letter(self) -> &'static str {
        match (self.counted, self.may_count) {
            (true, true) => "c",
            (false, false) => "-",
            (false, true) => "s",
            (true, false) => "!",
        }
    }
}

/// One life: the cells of one history in one configuration.
pub struct Life {
    pub history: History,
    pub setting: Setting,
    /// The cells, or why there are none.
    pub cells: Result<BTreeMap<Row, Cell>, String>,
}

/// Where more may be counted than the rule allows, and why. There is no other such list.
fn exception(history: History, setting: Setting, row: Row) -> Option<&'static str> {
    use History as H;
    match (setting, history) {
        _ if row.ask == Ask::Inspect => Some("an inspection reports the keys, and nobody rests on it"),
        (
            Setting::Plain,
            H::RestartedEmpty
            | H::RestartedFromAnOlderSnapshot
            | H::Flushed
            | H::KeysPutBackByHand
            | H::RebuiltFromAnother
            | H::PromotedWithoutTheLastWrite
            | H::FormerPrimaryGoesOn,
        ) => Some("without the restart guard, a master must not lose data or have two servers"),
        (Setting::Guard, H::FormerPrimaryOutlivesTheQuarantine) => {
            Some("the guard alone does not cover a former primary that continues: declare its replicas")
        }
        _ => None,
    }
}

/// Where an answer is not counted although nothing is in its way, and why.
fn restraint(history: History, setting: Setting, row: Row) -> Option<&'static str> {
    use History as H;
    match (setting, history) {
        (_, H::BecameAReplica) => Some("a replica has no vote"),
        (_, H::OtherFleetsMarker | H::LaterVersionsMarker) => Some("clients must agree on the guard"),
        (_, H::RebuiltAlone) => Some("a master without its replicas has no vote"),
        (_, H::SlotMovedAway) if row == Row { ask: Ask::Extend, form: Form::Plain, prior: Prior::Ours } => {
            Some("the first request after the move finds the new owner")
        }
        (_, H::SlotMovedAway) if row == Row { ask: Ask::Raise, form: Form::Fenced, prior: Prior::Ours } => {
            Some("the first request after the move finds the new owner")
        }
        (Setting::Guard | Setting::Replicas, _) if matches!(row.ask, Ask::Acquire | Ask::Resume) => {
            Some("a quarantined master does not know what it has voted for")
        }
        (Setting::Guard | Setting::Replicas, H::RestartedEmpty | H::Flushed | H::RebuiltFromAnother)
            if row.prior == Prior::Ours =>
        {
            Some("the key is not there")
        }
        (Setting::Replicas, H::PromotedWithoutTheLastWrite) => {
            Some("the promoted server is quarantined, and its client has no vote of it")
        }
        _ => None,
    }
}

/// All lives, or some of them.
pub struct Table {
    lives: Vec<Life>,
}

impl Table {
    /// All lives.
    pub fn all() -> impl Iterator<Item = (History, Setting)> {
        History::ALL.into_iter().flat_map(|history| Setting::ALL.map(|setting| (history, setting)))
    }

    pub fn new(lives: impl IntoIterator<Item = Life>) -> Self {
        Self { lives: lives.into_iter().collect() }
    }

    fn cells(&self) -> impl Iterator<Item = (History, Setting, Row, Cell)> {
        let cells = |life: &Life| life.cells.clone().into_iter().flatten();
        self.lives.iter().flat_map(move |life| {
            let (history, setting) = (life.history, life.setting);
            cells(life).map(move |(row, cell)| (history, setting, row, cell))
        })
    }

    /// How many cells there are, and how many of them are listed with a reason.
    pub fn size(&self) -> [usize; 3] {
        let differs = |counted| {
            self.cells().filter(move |(.., cell)| cell.counted == counted && cell.may_count != counted)
        };
        [self.cells().count(), differs(true).count(), differs(false).count()]
    }

    /// The cells that differ from the rule and are in neither list.
    pub fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (history, setting, row, cell) in self.cells() {
            let place =
                format!("{history:?}, {setting:?}, {:?} {:?}, vote: {:?}", row.ask, row.form, row.prior);
            if cell.overlaps && cell.may_count {
                wrong.push(format!("{place}: two guards, and the rule does not see why"));
            }
            if cell.counted && !cell.may_count && exception(history, setting, row).is_none() {
                wrong.push(format!("{place}: counted against the rule"));
            }
            if !cell.counted && cell.may_count && restraint(history, setting, row).is_none() {
                wrong.push(format!("{place}: not counted, and nothing is in the way"));
            }
        }
        wrong
    }
}

/// A line for each life: for each request and each prior vote, what became of its forms.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Of each request: who had the vote before (o: our client, r: the rival), and what became of its forms.\n\
             c: counted. -: refused. s: refused, and nothing was in the way. !: counted against the rule."
        )?;
        for Life { history, setting, cells } in &self.lives {
            write!(f, "{:34} {:8}", format!("{history:?}"), format!("{setting:?}"))?;
            match cells {
                Err(why) => write!(f, " not run: {why}")?,
                Ok(cells) => {
                    let mut before = None;
                    for (row, cell) in cells {
                        if before != Some((row.ask, row.prior)) {
                            let prior = if row.prior == Prior::Ours { "o" } else { "r" };
                            write!(f, " {:?}.{prior}:", row.ask)?;
                        }
                        before = Some((row.ask, row.prior));
                        f.write_str(cell.letter())?;
                    }
                }
            }
            writeln!(f)?;
        }
        let [cells, more, fewer] = self.size();
        write!(
            f,
            "{cells} cells; counted against the rule, with a reason: {more}; refused beyond it: {fewer}"
        )
    }
}

impl Life {
    fn may_be_late(&self) -> bool {
        let is_late = |(row, cell): (&Row, &Cell)| {
            !cell.counted && cell.may_count && restraint(self.history, self.setting, *row).is_none()
        };
        match &self.cells {
            Ok(cells) => cells.iter().any(is_late),
            Err(why) => why == TOO_SLOW,
        }
    }
}

const TOO_SLOW: &str = "the machine was too slow for the locks' TTL";

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
pub fn live<S: Seats>(history: History, setting: Setting) -> Life {
    const TRIES: usize = 3;
    let once = || Life { history, setting, cells: lived::<S>(history, setting) };
    let mut lives = (1..TRIES).map(|_| once());
    lives.find(|life| !life.may_be_late()).unwrap_or_else(once)
}

fn lived<S: Seats>(history: History, setting: Setting) -> Result<BTreeMap<Row, Cell>, String> {
    if let Some(why) = history.is_void_in(setting) {
        return Err(why.to_owned());
    }
    let cells = Run::new(S::start(history, setting)?, history, setting).cells()?;
    let asked = Row::all().filter(|row| row.is_asked_after(history)).count();
    if cells.len() == asked { Ok(cells) } else { Err(TOO_SLOW.to_owned()) }
}

struct Run<S: Seats> {
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
const SEAT: usize = 2;

fn config<S: Seats>(history: History, setting: Setting, request_timeout: Duration) -> Config {
    let config = Config::builder(S::urls(history, setting))
        .request_timeout(request_timeout)
        .reconnect_delay(Duration::from_millis(5)..=Duration::from_millis(10))
        // A single try that is refused by a part of the masters ends soon.
        .retry_delay(Duration::from_millis(1)..=Duration::from_millis(2));
    let config = if setting == Setting::Plain { config } else { config.restart_guard(LONGEST) };
    config.ttl(LONGEST).build().unwrap()
}

impl<S: Seats> Run<S> {
    fn new(mut site: S, history: History, setting: Setting) -> Self {
        let client = |site: &mut S, patience, seed, reach| {
            Client::new(site, config::<S>(history, setting, patience), seed, reach)
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
        let config = config::<S>(self.history, self.setting, PATIENCE);
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
        self.site.happens(self.history, self.setting);
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
                    self.site.set(0, &String::from_utf8(resource.counter_key()).unwrap(), "10");
                }
                self.patient.hold_back(0);
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
        let keys = self.site.keys(SEAT);
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
