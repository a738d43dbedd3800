//! The book of locks: every state of the shipped [`Lock`] that was visited, once, and its reaction
//! to every input.
//!
//! A lock is deterministic: the same state with the same input at the same time does the same. So
//! each such step of the shipped code is run once and remembered, and a state of the world names
//! its locks by number.

use std::collections::HashMap;
use std::time::Duration;

use quorlock_core::internals::{Action, Around, Claim, Order, Sought, claims_of_permit, settle_splits};
use quorlock_core::{
    Acquire, AcquireError, Config, Entropy, EntropyFailed, Event, Instant, Target, Targets, Token, Ttl,
};

use super::input::{Heard, Input, Told};
use super::item::{Form, Item, Said};
use super::scenario::{Aim, Scenario, TICK};
use super::state::MASTERS;
use super::story;

/// A request for the masters in the mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ordered {
    pub(super) to: u8,
    pub(super) item: Item,
}

/// What a lock did with an input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Reaction {
    /// The lock afterwards; zero if it has ended.
    pub(super) lock: u32,
    pub(super) orders: Box<[Ordered]>,
    pub(super) told: Box<[Told]>,
    /// Until when the lock that was handed to its caller is valid.
    pub(super) handed: Option<u8>,
}

struct Entry {
    sought: Sought,
    /// The number of the token that it will draw next.
    drawn: u8,
    /// The tick of its deadline: the first at which it may be woken.
    deadline: Option<u8>,
    /// Whether it has sent its last releases and only collects the masters' answers to them.
    is_parting: bool,
    /// The step by which it was first visited.
    origin: (u32, Input, u8),
}

pub(super) struct Book {
    config: Config,
    /// The claim of each client.
    wanted: Vec<Acquire>,
    /// Whether the result with which a lock ends is checked. Then a lock that only waits for its
    /// end is not done yet.
    end_matters: bool,
    /// Whether permits are sought.
    permits: bool,
    /// The claims of each client, with each of its tokens and in each form, each with an item of
    /// that claim.
    claims: Vec<(Claim, Item)>,
    entries: Vec<Entry>,
    numbers: HashMap<(Sought, u8), u32>,
    reactions: HashMap<(u64, u32), u32>,
    all: Vec<Reaction>,
    turned: HashMap<(u32, [u8; MASTERS]), u32>,
}

/// The longest TTL of the restart guard: no client asks for more.
const LONGEST: Duration = Duration::from_secs(3_600);

/// How many tokens each client has.
const TOKENS: u8 = 4;

/// Tokens by number, from the one that is drawn next. Those of the first client come first.
struct Numbered(u8);

impl Entropy for Numbered {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        bytes.fill(self.0);
        self.0 += 1;
        Ok(())
    }
}

impl Book {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let config = Config::builder(["redis://m1", "redis://m2", "redis://m3"])
            .request_timeout(TICK)
            .retry_delay(TICK..=TICK);
        let config = if scenario.quarantine { config.restart_guard(LONGEST) } else { config };
        let config =
            settle_splits(config, scenario.settles).build().expect("three masters are a configuration");
        let targets: Vec<_> =
            (0..scenario.clients()).map(|client| sought_of(scenario, client, &config)).collect();
        let mut claims = Vec::new();
        for (targets, client) in targets.iter().zip(0..) {
            let downgraded = scenario.form_of(usize::from(client), true);
            let downgraded = (!downgraded.is_empty()).then(|| targets_of(downgraded, &config));
            for attempt in 0..TOKENS {
                let token = Token::from_bytes([client * TOKENS + attempt; Token::BYTES]);
                let item = Item::new(Action::Acquire, attempt, 0, 0);
                if scenario.permits {
                    let all = claims_of_permit(targets, token, scenario.fenced).into_iter();
                    let form_of = |seat: Option<u8>| seat.map_or(Form::Sought, Form::Seat);
                    claims.extend(all.map(|(claim, seat)| (claim, item.formed(form_of(seat)))));
                    continue;
                }
                claims.push((Claim::new(targets, token, scenario.fenced, None), item));
                let shared = downgraded.as_ref().map(|it| Claim::new(it, token, scenario.fenced, None));
                claims.extend(shared.map(|claim| (claim, item.formed(Form::Downgraded))));
            }
        }
        let wanted_of = |targets| Acquire {
            timeout: scenario.timeout.map(|ticks| TICK * u32::from(ticks)),
            attempts: Some(1),
            renew_for: scenario.renews.map(|ticks| TICK * u32::from(ticks)),
            fenced: scenario.fenced,
            healing: scenario.healing,
            ..Acquire::new(targets, ttl_of(scenario.ttl))
        };
        let wanted = targets.into_iter().map(wanted_of).collect();
        Self {
            config,
            wanted,
            end_matters: scenario.one_wins,
            permits: scenario.permits,
            claims,
            entries: Vec::new(),
            numbers: HashMap::new(),
            reactions: HashMap::new(),
            all: Vec::new(),
            turned: HashMap::new(),
        }
    }

    /// How many states of a lock were visited.
    pub(super) fn locks(&self) -> usize {
        self.entries.len()
    }

    /// How many steps of the shipped code were run.
    pub(super) fn steps(&self) -> usize {
        self.all.len()
    }

    /// The attempt that a lock is in, from zero.
    pub(super) fn attempt(&self, lock: u32) -> u8 {
        self.entry(lock).map_or(0, |entry| (entry.drawn - 1) % TOKENS)
    }

    /// When a lock wants to be woken.
    pub(super) fn deadline(&self, lock: u32) -> Option<u8> {
        self.entry(lock).and_then(|entry| entry.deadline)
    }

    pub(super) fn is_held(&self, lock: u32) -> bool {
        self.entry(lock).is_some_and(|entry| entry.sought.is_held())
    }

    /// Which seat a lock has, once one is chosen.
    pub(super) fn seat(&self, lock: u32) -> Option<u8> {
        self.entry(lock).and_then(|entry| u8::try_from(entry.sought.seat()?).ok())
    }

    /// Whether the lock has sent its last releases. Further inputs only lead to reports.
    pub(super) fn is_parting(&self, lock: u32) -> bool {
        self.entry(lock).is_some_and(|entry| entry.is_parting)
    }

    fn entry(&self, lock: u32) -> Option<&Entry> {
        self.entries.get((lock as usize).checked_sub(1)?)
    }

    /// Returns the reaction of the lock to the input at this tick of its client's clock.
    pub(super) fn react(&mut self, lock: u32, input: Input, now: u8) -> &Reaction {
        let key = (input.code() << 8 | u64::from(now), lock);
        let number = match self.reactions.get(&key) {
            Some(&number) => number,
            None => {
                let reaction = self.run(lock, input, now);
                let number = u32::try_from(self.all.len()).expect("fewer steps than states");
                self.all.push(reaction);
                self.reactions.insert(key, number);
                number
            }
        };
        self.all.get(number as usize).expect("what was remembered is there")
    }

    /// Runs the shipped code.
    fn run(&mut self, number: u32, input: Input, now: u8) -> Reaction {
        let before = self.entry(number).map(|entry| (entry.sought.clone(), entry.drawn));
        let entropy = Numbered(match (&before, input) {
            (Some((_, drawn)), _) => *drawn,
            (None, Input::Begin { kind, drawn, .. }) => {
                u8::try_from(kind).unwrap_or(u8::MAX) * TOKENS + drawn
            }
            (None, _) => 0,
        });
        let mut around = Around::new(&self.config, entropy);
        let at = instant(now);
        let mut handed = None;
        let after = match (before, input) {
            (None, Input::Begin { kind, attempts, .. }) => {
                let wanted = self.wanted.get(kind).expect("a client of the scenario").clone();
                let wanted = Acquire { attempts: Some(u32::from(attempts)), ..wanted };
                Some(Sought::begin(&wanted, at, &mut around).expect("tokens are there"))
            }
            (Some((mut sought, _)), input) => {
                match input {
                    Input::Begin { .. } => {}
                    Input::Answer { master, round, heard } => {
                        let master = self.config.master_ids().nth(usize::from(master)).expect("a master");
                        sought.answer(master, u32::from(round), heard.answer(), at, &mut around);
                    }
                    Input::Wake => sought.time_passed(at, &mut around),
                    Input::Take => handed = sought.take(at, &mut around),
                    Input::Extend { number, ttl } => {
                        // A lock that is not held any more refuses the extension, and nothing
                        // happens.
                        let _ = sought.extend(u64::from(number), ttl_of(ttl), at, &mut around);
                    }
                    Input::Downgrade => {
                        sought.downgrade(at, &mut around);
                    }
                    Input::Release => sought.release(at, &mut around),
                    Input::Cancel => sought.cancel(at, &mut around),
                }
                Some(sought)
            }
            (None, _) => None,
        };
        let Around { entropy, orders, events, .. } = around;
        let token = after.as_ref().and_then(Sought::fencing_token);
        let token = token.map_or(0, |token| u8::try_from(token.get()).expect("small numbers"));
        let told: Box<[Told]> = events.iter().map(|event| told_of(event, token)).collect();
        let orders: Box<[Ordered]> = orders.iter().map(|order| self.ordered(order)).collect();
        // A seat that another master assigned is released, and the answer is not waited for.
        let ends_it = |item: Item| item.action().clears() && !(self.permits && item.round() == 0);
        let parts = orders.last().is_some_and(|last| ends_it(last.item));
        let is_parting = parts || self.is_parting(number);
        let settles = after.as_ref().is_some_and(Sought::is_settling);
        let told: Box<[Told]> = if settles { Box::new([Told::Settles]) } else { told };
        let ends = |told: &Told| {
            matches!(
                told,
                Told::NotAcquired | Told::HeldByAnother | Told::Settles | Told::Released | Told::Lost
            )
        };
        let lock = match after {
            Some(mut after) if !after.is_over() && !told.iter().any(ends) => {
                after.forget_its_queue();
                self.number(after, entropy.0, is_parting, (number, input, now))
            }
            Some(after) => {
                if !settles {
                    self.assert_inert(after, at);
                }
                0
            }
            None => 0,
        };
        Reaction { lock, orders, told, handed: handed.map(tick_of) }
    }

    /// Checks that a lock that has reported its end does nothing more on any input. That is why one
    /// number represents all such locks.
    fn assert_inert(&self, mut ended: Sought, at: Instant) {
        ended.drop_bid();
        assert_eq!(ended.deadline(), None, "a lock that has ended wants to be woken");
        let mut around = Around::new(&self.config, Numbered(0));
        let mut after = ended.clone();
        let answers = [Said::Yes, Said::Counted(1), Said::No, Said::Holder].map(Heard::Said);
        for (master, heard) in
            self.config.master_ids().flat_map(|master| answers.map(|heard| (master, heard)))
        {
            for round in 0..16 {
                after.answer(master, round, heard.answer(), at, &mut around);
            }
        }
        after.time_passed(at, &mut around);
        assert_eq!(after, ended, "a lock that has ended continues");
        after.release(at, &mut around);
        let orders = around.orders;
        assert!(orders.is_empty(), "a lock that has ended gives orders: {orders:?}");
    }

    fn number(&mut self, sought: Sought, drawn: u8, is_parting: bool, origin: (u32, Input, u8)) -> u32 {
        let deadline = sought.deadline().map(tick_of);
        let is_parting = is_parting && deadline.is_none() && !self.end_matters;
        let next = u32::try_from(self.entries.len() + 1).expect("fewer locks than states");
        match self.numbers.entry((sought, drawn)) {
            std::collections::hash_map::Entry::Occupied(known) => *known.get(),
            std::collections::hash_map::Entry::Vacant(place) => {
                let (sought, _) = place.key().clone();
                self.entries.push(Entry { sought, drawn, deadline, is_parting, origin });
                place.insert(next);
                next
            }
        }
    }

    fn ordered(&self, order: &Order) -> Ordered {
        let request = &order.request;
        let known = self.claims.iter().find(|(claim, _)| *claim == request.claim);
        let known = known.map(|(_, item)| *item).expect("a token that was drawn");
        let round = request.ticket.map_or(0, |ticket| ticket.round);
        let ttl = request.ttl.as_duration().as_nanos() / TICK.as_nanos();
        let small = |number: u128| u8::try_from(number).expect("small numbers");
        Ordered {
            to: order.to.iter().fold(0, |mask, master| mask | 1 << master.index()),
            item: Item::new(request.action, known.attempt(), small(ttl), small(u128::from(round)))
                .raising_to(small(request.fence.map_or(0, |fence| u128::from(fence.get()))))
                .formed(known.form()),
        }
    }

    /// The same lock with the masters exchanged: master `m` is in `places[m]` now.
    ///
    /// It is found by repeating the lock's life with the masters exchanged, so nothing needs to
    /// look into a lock. This is correct because the shipped code treats all masters alike, which
    /// the counts of states with and without symmetry show.
    pub(super) fn turned(&mut self, lock: u32, places: [u8; MASTERS]) -> u32 {
        if let Some(&known) = self.turned.get(&(lock, places)) {
            return known;
        }
        let Some(&(before, input, now)) = self.entry(lock).map(|entry| &entry.origin) else { return 0 };
        let before = self.turned(before, places);
        let turned = self.react(before, input.turned(places), now).lock;
        self.turned.insert((lock, places), turned);
        turned
    }
}

/// A client's claim, as a value of the shipped code.
fn sought_of(scenario: &Scenario, client: usize, config: &Config) -> Targets {
    let aims = scenario.aims_of(client);
    let permits = u32::try_from(aims.len()).expect("a few seats");
    match scenario.permits {
        true => config.permits("r", permits).expect("a short name"),
        false => targets_of(aims, config),
    }
}

/// The targets of these aims, as a value of the shipped code.
fn targets_of(aims: &[Aim], config: &Config) -> Targets {
    let name = |resource| story::RESOURCES.get(resource).copied().expect("a resource that has a name");
    let target = |aim: &Aim| match *aim {
        Aim::Write(resource) => Target::write(name(resource)),
        Aim::Read(resource) => Target::read(name(resource)),
    };
    config.targets(aims.iter().map(target)).expect("a few short names")
}

/// The instant of a tick of a client's clock, far enough from the origin that nothing saturates.
fn instant(tick: u8) -> Instant {
    Instant::ORIGIN + TICK * (1_000 + u32::from(tick))
}

/// The first tick that is not before an instant.
fn tick_of(instant: Instant) -> u8 {
    let ticks = u128::from(instant.as_nanos()).div_ceil(TICK.as_nanos()).saturating_sub(1_000);
    u8::try_from(ticks).unwrap_or(u8::MAX)
}

pub(super) fn ttl_of(ticks: u8) -> Ttl {
    Ttl::new(TICK * u32::from(ticks)).expect("a TTL of some ticks")
}

/// For how many ticks a guard is valid whose round was sent at tick zero. The search counts this
/// itself, independently of the lock.
pub(super) fn validity_of(ticks: u8) -> u8 {
    let ttl = TICK.as_micros() * u128::from(ticks);
    let validity = ttl.saturating_sub(ttl / 100 + 2_000);
    u8::try_from(validity.div_ceil(TICK.as_micros())).unwrap_or(u8::MAX)
}

/// An event of a lock with this number.
fn told_of(event: &Event, number: u8) -> Told {
    match event {
        Event::Granted { valid_until, .. } => Told::Granted { until: tick_of(*valid_until), number },
        Event::NotAcquired { error: AcquireError::HeldByAnother(_), .. } => Told::HeldByAnother,
        Event::NotAcquired { .. } => Told::NotAcquired,
        Event::Renewed { valid_until, .. } => Told::Extended { until: Some(tick_of(*valid_until)) },
        Event::Extended { result, .. } => {
            Told::Extended { until: result.as_ref().ok().map(|until| tick_of(*until)) }
        }
        Event::Lost { .. } => Told::Lost,
        Event::Released { .. } => Told::Released,
        // A lock does not emit these.
        Event::WaitsForOwn { .. }
        | Event::Bootstrapped { .. }
        | Event::Inspected { .. }
        | Event::SemaphoreInspected { .. }
        | Event::ForceReleased { .. } => Told::Released,
    }
}
