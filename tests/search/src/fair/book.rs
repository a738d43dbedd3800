//! The waiters: locks of the shipped code with their bids, each step of which is run once and
//! remembered.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use quorlock_core::internals::{Ahead, Answer, Around, Claim, Fate, Order, Sought, claim_in_queue};
use quorlock_core::{
    Acquire, Cause, Config, Entropy, EntropyFailed, Event, FencingToken, Instant, QueuePlace, Target, Token,
    Ttl,
};

use super::item::{Does, Item, Said};
use super::state::MASTERS;

/// The life of a key, in milliseconds.
pub(super) const TTL: u16 = 2_000;
/// How many tokens and places a waiter may draw in all.
pub(super) const DRAWN: u8 = 96;

/// An input of a waiter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Input {
    /// A master gave this answer to a request of that round.
    Said { master: u8, round: u8, said: Said },
    /// A request of that round has no answer.
    Lost { master: u8, round: u8, fate: Fate },
    /// A master notifies it of its turn.
    Told { master: u8 },
    /// Its timer fires.
    Wake,
    /// The holder releases the lock.
    Release,
    /// The caller gives up.
    Cancel,
}

impl Input {
    /// The same with the masters exchanged.
    fn turned(self, places: [u8; MASTERS]) -> Self {
        let turn = |master: u8| places.get(usize::from(master)).copied().unwrap_or(master);
        match self {
            Self::Said { master, round, said } => Self::Said { master: turn(master), round, said },
            Self::Lost { master, round, fate } => Self::Lost { master: turn(master), round, fate },
            Self::Told { master } => Self::Told { master: turn(master) },
            other => other,
        }
    }
}

/// The reaction of a waiter to an input.
#[derive(Clone, Default, Debug)]
pub(super) struct Done {
    /// Requests, each for the masters in its mask.
    pub(super) orders: Vec<(u8, Item)>,
    pub(super) is_over: bool,
}

/// What is the same for all waiters: the configuration, the requested lock, and the numbers of
/// claims.
pub(super) struct Rules {
    pub(super) config: Config,
    wanted: Acquire,
    /// The numbers of token and place by their claim.
    claims: HashMap<Claim, (u8, u8)>,
}

impl Rules {
    pub(super) fn new(masters: usize) -> Self {
        let urls = (0..masters).map(|master| format!("redis://m{master}"));
        let config = Config::builder(urls).build().expect("some masters are a configuration");
        let targets = config.targets([Target::write("r")]).expect("a short name");
        let mut claims = HashMap::new();
        for token in 0..DRAWN {
            let bytes = Token::from_bytes([token; Token::BYTES]);
            claims.insert(Claim::new(&targets, bytes, false, None), (token, 0));
            for place in 1..DRAWN {
                let drawn = QueuePlace::from_bytes([place; QueuePlace::BYTES]);
                let claim = claim_in_queue(&targets, bytes, drawn).expect("one resource");
                claims.insert(claim, (token, place));
            }
        }
        let ttl = Ttl::new(Duration::from_millis(TTL.into())).expect("a TTL");
        let wanted = Acquire { fair: true, timeout: None, ..Acquire::new(targets, ttl) };
        Self { config, wanted, claims }
    }

    fn ordered(&self, order: &Order) -> (u8, Item) {
        let request = &order.request;
        let (token, place) = *self.claims.get(&request.claim).expect("a token that was drawn");
        let round = request.ticket.map_or(0, |ticket| small(ticket.round.into()));
        let number = request.fence.map_or(0, |number| small(number.get()));
        let to = order.to.iter().fold(0, |mask, master| mask | 1 << master.index());
        let is_exact = request.insists && place > 0;
        (to, Item { does: Does::of(request.action), token, place, number, is_exact, round, said: None })
    }
}

/// A waiter with its own clock. A token or a place is numbered by how many the waiter had drawn
/// before.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Life {
    sought: Sought,
    pub(super) now: Instant,
    pub(super) drawn: u8,
}

impl Life {
    pub(super) fn begin(rules: &Rules) -> (Self, Done) {
        let now = Instant::ORIGIN + Duration::from_secs(10);
        let mut around = Around::new(&rules.config, Drawn(0));
        let sought = Sought::begin(&rules.wanted, now, &mut around).expect("tokens are there");
        let mut life = Self { sought, now, drawn: 0 };
        let done = life.react(rules, &around);
        (life, done)
    }

    pub(super) fn hear(&mut self, rules: &Rules, input: Input) -> Done {
        let mut around = Around::new(&rules.config, Drawn(self.drawn));
        let sought = &mut self.sought;
        let master = |master: u8| rules.config.master_ids().nth(usize::from(master)).expect("a master");
        match input {
            Input::Said { master: from, round, said } => {
                sought.answer(master(from), round.into(), answer(said), self.now, &mut around);
            }
            Input::Lost { master: from, round, fate } => {
                let answer = Answer::Failed { cause: Cause::Closed, fate, stale: false };
                sought.answer(master(from), round.into(), answer, self.now, &mut around);
            }
            Input::Told { master: from } => sought.told(master(from), self.now, &mut around),
            Input::Wake => {
                self.now = self.now.max(sought.deadline().unwrap_or(self.now));
                sought.time_passed(self.now, &mut around);
            }
            Input::Release => sought.release(self.now, &mut around),
            Input::Cancel => sought.cancel(self.now, &mut around),
        }
        if around.events.iter().any(|event| matches!(event, Event::Granted { .. })) {
            sought.take(self.now, &mut around).expect("a grant that is new");
        }
        let mut done = self.react(rules, &around);
        // Further inputs change nothing.
        done.is_over |= matches!(input, Input::Release | Input::Cancel);
        done
    }

    fn react(&mut self, rules: &Rules, around: &Around<'_, Drawn>) -> Done {
        self.drawn = around.entropy.0;
        self.sought.forget_its_queue();
        let orders = around.orders.iter().map(|order| rules.ordered(order)).collect();
        Done { orders, is_over: self.sought.is_over() }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.sought.deadline()
    }

    pub(super) fn facts(&self, rules: &Rules) -> Facts {
        let sought = &self.sought;
        let token = sought.token().map(|token| token.to_hex());
        let place = sought.place().map(|place| place.to_hex());
        Facts {
            token: token.and_then(drawn_of).unwrap_or(0),
            place: place.and_then(drawn_of).unwrap_or(0),
            is_settled: sought.is_settled(),
            is_held: sought.is_held(),
            waits: sought.waits(),
            renews: sought.renews(),
            keeps_its_place: sought.keeps_its_place(&rules.config),
            has_timer: sought.deadline().is_some(),
            attempts: small(sought.attempts().into()),
        }
    }
}

/// The number of a token or a place, which is the value of all its bytes.
fn drawn_of(digits: [u8; 2 * Token::BYTES]) -> Option<u8> {
    let [high, low, ..] = digits;
    let digit = |digit| char::from(digit).to_digit(16);
    u8::try_from(16 * digit(high)? + digit(low)?).ok()
}

fn answer(said: Said) -> Answer {
    let ahead = |left: u16| Ahead { holder: 1, remaining: Some(Duration::from_millis(left.into())) };
    let queued = |number: u8, ahead, is_first| Answer::Queued {
        number: FencingToken::new(number.into()).expect("numbers begin with one"),
        ahead,
        is_first,
        watched: true,
    };
    match said {
        Said::Yes => Answer::Yes,
        Said::No => Answer::No,
        Said::Held { left } => {
            let Ahead { holder, remaining } = ahead(left);
            Answer::Holder { holder, remaining, watched: true }
        }
        Said::Behind { number, left } => queued(number, Some(ahead(left)), false),
        Said::First { number, left } => queued(number, Some(ahead(left)), true),
        Said::Free { number } => queued(number, None, true),
    }
}

fn small(number: u64) -> u8 {
    u8::try_from(number).expect("small numbers")
}

/// The facts about a waiter that the search uses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Facts {
    /// The number of its token.
    pub(super) token: u8,
    /// The number of its place; zero for none.
    pub(super) place: u8,
    /// Whether, as far as it knows, a quorum has its place with the agreed number.
    pub(super) is_settled: bool,
    pub(super) is_held: bool,
    /// Whether it is between two attempts.
    pub(super) waits: bool,
    /// Whether its timer renews its place.
    pub(super) renews: bool,
    pub(super) keeps_its_place: bool,
    pub(super) has_timer: bool,
    pub(super) attempts: u8,
}

/// The source of tokens and places: all bytes of each are the number of how many were drawn before.
struct Drawn(u8);

impl Entropy for Drawn {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        bytes.fill(self.0);
        self.0 += 1;
        Ok(())
    }
}

/// The number of a waiter's state in the book, and what it does then.
type Reaction = (u32, Rc<Done>);

struct Node {
    life: Life,
    facts: Facts,
    /// The step by which it was first visited; `None` for the first state.
    origin: Option<(u32, Input)>,
}

/// Every visited state of a waiter, by its number, from one.
pub(super) struct Book {
    pub(super) rules: Rules,
    nodes: Vec<Node>,
    numbers: HashMap<Life, u32>,
    reactions: HashMap<(u32, Input), Reaction>,
    first: Option<Reaction>,
    turned: HashMap<(u32, [u8; MASTERS]), u32>,
}

impl Book {
    pub(super) fn new(masters: usize) -> Self {
        Self {
            rules: Rules::new(masters),
            nodes: Vec::new(),
            numbers: HashMap::new(),
            reactions: HashMap::new(),
            first: None,
            turned: HashMap::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// A waiter that begins.
    pub(super) fn begin(&mut self) -> Reaction {
        if let Some(first) = &self.first {
            return first.clone();
        }
        let (life, done) = Life::begin(&self.rules);
        let first = (self.number(life, None), Rc::new(done));
        self.first = Some(first.clone());
        first
    }

    pub(super) fn react(&mut self, node: u32, input: Input) -> Reaction {
        if let Some(known) = self.reactions.get(&(node, input)) {
            return known.clone();
        }
        let mut life = self.life(node).clone();
        let done = life.hear(&self.rules, input);
        let next = if done.is_over { 0 } else { self.number(life, Some((node, input))) };
        let reaction = (next, Rc::new(done));
        self.reactions.insert((node, input), reaction.clone());
        reaction
    }

    fn number(&mut self, life: Life, origin: Option<(u32, Input)>) -> u32 {
        let next = u32::try_from(self.nodes.len() + 1).expect("fewer waiters than states");
        *self.numbers.entry(life).or_insert_with_key(|life| {
            let facts = life.facts(&self.rules);
            self.nodes.push(Node { life: life.clone(), facts, origin });
            next
        })
    }

    fn node(&self, node: u32) -> &Node {
        let place = (node as usize).checked_sub(1);
        place.and_then(|place| self.nodes.get(place)).expect("a waiter of the book")
    }

    pub(super) fn life(&self, node: u32) -> &Life {
        &self.node(node).life
    }

    /// The facts about a waiter; empty for one that does not exist.
    pub(super) fn facts(&self, node: u32) -> Facts {
        if node == 0 { Facts::default() } else { self.node(node).facts }
    }

    /// The same waiter with the masters exchanged: master `m` is at `places[m]` now. It is found by
    /// repeating the waiter's life with the masters exchanged, as in the other searches.
    pub(super) fn turned(&mut self, node: u32, places: [u8; MASTERS]) -> u32 {
        if node == 0 {
            return 0;
        }
        if let Some(&known) = self.turned.get(&(node, places)) {
            return known;
        }
        let turned = match self.node(node).origin {
            None => node,
            Some((before, input)) => {
                let before = self.turned(before, places);
                self.react(before, input.turned(places)).0
            }
        };
        self.turned.insert((node, places), turned);
        turned
    }
}
