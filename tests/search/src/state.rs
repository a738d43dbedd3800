//! One state of the world, and the bytes that stand for it.

use super::item::Item;
use super::row::Row;

/// Clients in the world.
pub(super) const CLIENTS: usize = 2;
/// Masters in the world.
pub(super) const MASTERS: usize = 3;

/// How a client stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Stage {
    Waiting,
    Alive,
    Ended,
    /// It is looked at apart: here it is whatever it may be.
    Absent,
}

/// One client: its lock by number, its clock since it began, and what its guard promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Client {
    pub(super) stage: Stage,
    /// The number in the book of locks; zero where there is none.
    pub(super) lock: u32,
    /// Ticks of its own clock since it began.
    pub(super) now: u8,
    /// The tick at which its guard is not valid any more; zero where there is no guard.
    pub(super) guard: u8,
    /// The latest end of validity that any round sent so far can give, as the checker counts it.
    pub(super) bound: u8,
    /// How many extensions it has asked for.
    pub(super) extended: u8,
    /// How many tokens its former locks have drawn.
    pub(super) drawn: u8,
    /// The largest number that was granted before the first send of the present attempt.
    pub(super) floor: u8,
    /// Whether it was told that another holds the lock.
    pub(super) was_refused: bool,
}

impl Client {
    const WAITING: Self = Self {
        stage: Stage::Waiting,
        lock: 0,
        now: 0,
        guard: 0,
        bound: 0,
        extended: 0,
        drawn: 0,
        floor: 0,
        was_refused: false,
    };

    /// Whether its own clock calls its guard valid.
    pub(super) fn has_valid_guard(&self) -> bool {
        self.now < self.guard
    }

    pub(super) fn is_alive(&self) -> bool {
        self.stage == Stage::Alive
    }

    /// Whether it has not sought the lock yet.
    pub(super) fn is_new(&self) -> bool {
        self.stage == Stage::Waiting && self.drawn == 0
    }

    pub(super) fn is_absent(&self) -> bool {
        self.stage == Stage::Absent
    }

    pub(super) fn leave(&mut self) {
        *self = Self { stage: Stage::Absent, was_refused: self.was_refused, ..Self::WAITING };
    }

    pub(super) fn end(&mut self) {
        *self = Self { stage: Stage::Ended, was_refused: self.was_refused, ..Self::WAITING };
    }

    /// Its lock is over, and it seeks another with its next token.
    pub(super) fn begin_anew(&mut self, drawn: u8) {
        *self = Self { drawn, ..Self::WAITING };
    }

    /// All but the lock's number.
    fn head(&self) -> [u8; 5] {
        let stage = match self.stage {
            Stage::Waiting => 0,
            Stage::Alive => 1,
            Stage::Ended => 2,
            Stage::Absent => 3,
        };
        let refused = u8::from(self.was_refused) << 3;
        [stage | self.floor << 2, self.now, self.guard, self.bound, self.extended | refused | self.drawn << 4]
    }
}

/// A key on a master: whose token, how many ticks it lives, and whether it is there, or for so long, by a request that its client
/// had left behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    pub(super) client: u8,
    pub(super) attempt: u8,
    pub(super) life: u8,
    pub(super) is_late: bool,
}

impl Key {
    /// Whether it has the same token.
    pub(super) fn is_of(self, other: Self) -> bool {
        (self.client, self.attempt) == (other.client, other.attempt)
    }
}

/// A client's connection to a master, as `connection` keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// Requests are sent.
    Ready,
    /// There is none: requests wait until it stands, or until they are refused.
    Opening,
}

/// A release that is owed: the attempt, and for how many ticks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Debt {
    pub(super) attempt: u8,
    pub(super) life: u8,
}

/// Everything between one client and one master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Link {
    pub(super) mode: Mode,
    /// How many of the flight have been reported as unanswered.
    pub(super) reported: u8,
    /// Requests without a delivered answer; those that the master has executed come first and carry what it said.
    pub(super) flight: Row<Item, 8>,
    pub(super) queued: Row<Item, 5>,
    pub(super) debts: Row<Debt, 4>,
    /// Requests that were left behind on former connections, connection after connection.
    pub(super) behind: Row<Item, 12>,
}

impl Link {
    pub(super) fn new() -> Self {
        Self {
            mode: Mode::Ready,
            reported: 0,
            flight: Row::new(),
            queued: Row::new(),
            debts: Row::new(),
            behind: Row::new(),
        }
    }

    /// Whether nothing of the client's is on its way or waits, what was left behind apart.
    pub(super) fn is_idle(&self) -> bool {
        self.flight.is_empty() && self.queued.is_empty() && self.debts.is_empty()
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mode = match self.mode {
            Mode::Ready => 0,
            Mode::Opening => 1,
        };
        let lengths = [self.flight.len(), self.queued.len(), self.debts.len(), self.behind.len()];
        let [flight, queued, debts, behind] = lengths.map(|len| u8::try_from(len).unwrap_or(u8::MAX));
        // The lengths come first, so that no two states have the same bytes.
        // Items are written by halves: most scenarios need the lower ones only.
        let items = || self.flight.iter().chain(self.queued.iter()).chain(self.behind.iter());
        let is_wide = items().any(|item| item.0 > u32::from(u16::MAX));
        let modes = mode | u8::from(is_wide) << 1 | self.reported << 2;
        out.extend_from_slice(&[modes, flight | queued << 4, debts | behind << 4]);
        for item in items() {
            let [a, b, c, d] = item.0.to_le_bytes();
            out.extend_from_slice(&[a, b]);
            if is_wide {
                out.extend_from_slice(&[c, d]);
            }
        }
        out.extend(self.debts.iter().map(|debt| debt.attempt | debt.life << 4));
    }

    fn read(input: &mut Input<'_>) -> Self {
        let [modes, lengths, more] = input.take();
        let mut link = Self::new();
        link.mode = if modes & 1 == 0 { Mode::Ready } else { Mode::Opening };
        let is_wide = modes & 2 != 0;
        link.reported = modes >> 2;
        (0..lengths & 15).for_each(|_| link.flight.push(Item::read(input, is_wide)));
        (0..lengths >> 4).for_each(|_| link.queued.push(Item::read(input, is_wide)));
        (0..more >> 4).for_each(|_| link.behind.push(Item::read(input, is_wide)));
        for _ in 0..more & 15 {
            let [debt] = input.take();
            link.debts.push(Debt { attempt: debt & 15, life: debt >> 4 });
        }
        link
    }
}

/// One master with what leads to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Master {
    pub(super) key: Option<Key>,
    /// The largest number that it has given to a grant.
    pub(super) counter: u8,
    /// For how many ticks it refuses acquisitions, because it has lost its keys.
    pub(super) quarantine: u8,
    pub(super) links: [Link; CLIENTS],
}

impl Master {
    pub(super) fn new() -> Self {
        Self { key: None, counter: 0, quarantine: 0, links: [Link::new(); CLIENTS] }
    }

    pub(super) fn link(&self, client: usize) -> &Link {
        self.links.get(client).expect("there are two clients")
    }

    pub(super) fn link_mut(&mut self, client: usize) -> &mut Link {
        self.links.get_mut(client).expect("there are two clients")
    }

    fn write(&self, is_swapped: bool, out: &mut Vec<u8>) {
        let [mut mark, life] = self.key.map_or([0, 0], |key| {
            let client = key.client ^ u8::from(is_swapped);
            [1 | client << 1 | key.attempt << 2 | u8::from(key.is_late) << 4, key.life]
        });
        let has_more = self.counter > 0 || self.quarantine > 0;
        mark |= u8::from(has_more) << 5;
        out.extend_from_slice(&[mark, life]);
        if has_more {
            out.extend_from_slice(&[self.counter, self.quarantine]);
        }
        let [first, second] = &self.links;
        let (first, second) = if is_swapped { (second, first) } else { (first, second) };
        first.write(out);
        second.write(out);
    }

    fn read(input: &mut Input<'_>) -> Self {
        let [mark, life] = input.take();
        let key = (mark & 1 == 1).then_some(Key {
            client: mark >> 1 & 1,
            attempt: mark >> 2 & 3,
            life,
            is_late: mark >> 4 & 1 == 1,
        });
        let [counter, quarantine] = if mark >> 5 & 1 == 1 { input.take() } else { [0, 0] };
        Self { key, counter, quarantine, links: [Link::read(input), Link::read(input)] }
    }
}

/// Everything that decides what can happen next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct State {
    pub(super) clients: [Client; CLIENTS],
    pub(super) masters: [Master; MASTERS],
    /// How many connections may still end, masters crash, and requests be executed twice.
    pub(super) losses: u8,
    pub(super) crashes: u8,
    pub(super) duplicates: u8,
    /// The numbers that were granted, by bits.
    pub(super) granted: u16,
}

impl State {
    pub(super) fn initial(losses: u8, crashes: u8, duplicates: u8) -> Self {
        let (clients, masters) = ([Client::WAITING; CLIENTS], [Master::new(); MASTERS]);
        Self { clients, masters, losses, crashes, duplicates, granted: 0 }
    }

    /// The largest number that was granted, zero if none was.
    pub(super) fn largest_number(&self) -> u8 {
        u8::try_from(self.granted.checked_ilog2().unwrap_or(0)).unwrap_or(u8::MAX)
    }

    pub(super) fn client(&self, client: usize) -> &Client {
        self.clients.get(client).expect("there are two clients")
    }

    pub(super) fn client_mut(&mut self, client: usize) -> &mut Client {
        self.clients.get_mut(client).expect("there are two clients")
    }

    pub(super) fn master(&self, master: usize) -> &Master {
        self.masters.get(master).expect("there are three masters")
    }

    pub(super) fn master_mut(&mut self, master: usize) -> &mut Master {
        self.masters.get_mut(master).expect("there are three masters")
    }

    pub(super) fn link(&self, client: usize, master: usize) -> &Link {
        self.master(master).link(client)
    }

    pub(super) fn link_mut(&mut self, client: usize, master: usize) -> &mut Link {
        self.master_mut(master).link_mut(client)
    }

    /// Reads what [`Canon::write`](super::canon::Canon::write) wrote.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut input = Input(bytes);
        let [losses, budgets, low, high] = input.take();
        let (crashes, duplicates) = (budgets & 15, budgets >> 4);
        let clients = [(); CLIENTS].map(|()| Client::read(&mut input));
        let masters = [(); MASTERS].map(|()| Master::read(&mut input));
        let mut state =
            Self { clients, masters, losses, crashes, duplicates, granted: u16::from_le_bytes([low, high]) };
        for client in &mut state.clients {
            client.lock = u32::from_le_bytes(input.take());
        }
        state
    }

    /// The part that is compared first: what is left to happen, and the clients without their locks.
    pub(super) fn write_heads(&self, is_swapped: bool, out: &mut Vec<u8>) {
        let [low, high] = self.granted.to_le_bytes();
        out.extend_from_slice(&[self.losses, self.crashes | self.duplicates << 4, low, high]);
        let [first, second] = &self.clients;
        let (first, second) = if is_swapped { (second, first) } else { (first, second) };
        out.extend_from_slice(&first.head());
        out.extend_from_slice(&second.head());
    }

    pub(super) fn write_master(&self, master: usize, is_swapped: bool, out: &mut Vec<u8>) {
        self.master(master).write(is_swapped, out);
    }
}

impl Item {
    fn read(input: &mut Input<'_>, is_wide: bool) -> Self {
        Self(if is_wide { u32::from_le_bytes(input.take()) } else { u16::from_le_bytes(input.take()).into() })
    }
}

impl Client {
    fn read(input: &mut Input<'_>) -> Self {
        let [stage, now, guard, bound, extended] = input.take();
        let floor = stage >> 2;
        let stage = match stage & 3 {
            0 => Stage::Waiting,
            1 => Stage::Alive,
            2 => Stage::Ended,
            _ => Stage::Absent,
        };
        Self {
            stage,
            lock: 0,
            now,
            guard,
            bound,
            extended: extended & 7,
            drawn: extended >> 4,
            floor,
            was_refused: extended >> 3 & 1 == 1,
        }
    }
}

/// Bytes that were written by this module, read from the front.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (front, rest) = self.0.split_first_chunk().expect("a state is read as it was written");
        self.0 = rest;
        *front
    }
}
