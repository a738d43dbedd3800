//! One state of the world, and the bytes that represent it.

use super::client::Client;
use super::item::{Form, Item};
use super::places::{Place, Places, RESOURCES};
use super::row::Row;
use super::scripts::Counters;

/// Clients in the world. In most scenarios the last one does not exist.
pub(super) const CLIENTS: usize = 3;
/// Masters in the world.
pub(super) const MASTERS: usize = 3;

/// A client's connection to a master, as `connection` keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// Requests are sent.
    Ready,
    /// There is no connection: requests wait until it is open, or until they are refused.
    Opening,
}

/// A release that is owed: the attempt, the form of its claim, and for how many ticks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Debt {
    pub(super) attempt: u8,
    pub(super) form: Form,
    pub(super) life: u8,
}

impl Debt {
    pub(super) fn of(item: Item) -> Self {
        Self { attempt: item.attempt(), form: item.form(), life: item.ttl() }
    }
}

/// Everything between one client and one master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Link {
    pub(super) mode: Mode,
    /// How many requests of the flight have been reported as unanswered.
    pub(super) reported: u8,
    /// Requests without a delivered answer. Those that the master has executed come first, with its
    /// answers.
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

    /// Whether no request of the client is on its way or waits, except those that were left behind.
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
        let debt = |debt: Debt| [debt.attempt | debt.form.code() << 3, debt.life];
        out.extend(self.debts.iter().flat_map(debt));
    }

    fn read(input: &mut Bytes<'_>) -> Self {
        let [modes, lengths, more] = input.take();
        let mut link = Self::new();
        link.mode = if modes & 1 == 0 { Mode::Ready } else { Mode::Opening };
        let is_wide = modes & 2 != 0;
        link.reported = modes >> 2;
        (0..lengths & 15).for_each(|_| link.flight.push(Item::read(input, is_wide)));
        (0..lengths >> 4).for_each(|_| link.queued.push(Item::read(input, is_wide)));
        (0..more >> 4).for_each(|_| link.behind.push(Item::read(input, is_wide)));
        for _ in 0..more & 15 {
            let [debt, life] = input.take();
            link.debts.push(Debt { attempt: debt & 7, form: Form::of(debt >> 3), life });
        }
        link
    }
}

/// How many clients and resources a scenario has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    pub(super) clients: usize,
    pub(super) resources: usize,
}

/// One master with the connections to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Master {
    pub(super) places: Places,
    /// The largest number that it has given to a grant of each resource.
    pub(super) counters: Counters,
    /// For how many ticks it refuses acquisitions, because it has lost its keys.
    pub(super) quarantine: u8,
    /// Whether one of those keys may have been a vote for another client, which may still count it
    /// during the quarantine. Only with other clients that are not in the state.
    pub(super) lost_a_vote: bool,
    pub(super) links: [Link; CLIENTS],
}

impl Master {
    pub(super) fn new() -> Self {
        let links = [Link::new(); CLIENTS];
        let (places, counters) = ([Place::default(); RESOURCES], [0; RESOURCES]);
        Self { places, counters, quarantine: 0, lost_a_vote: false, links }
    }

    pub(super) fn link(&self, client: usize) -> &Link {
        self.links.get(client).expect("a client of the scenario")
    }

    pub(super) fn link_mut(&mut self, client: usize) -> &mut Link {
        self.links.get_mut(client).expect("a client of the scenario")
    }

    pub(super) fn place(&self, resource: usize) -> &Place {
        self.places.get(resource).expect("a resource of the scenario")
    }

    pub(super) fn place_mut(&mut self, resource: usize) -> &mut Place {
        self.places.get_mut(resource).expect("a resource of the scenario")
    }

    fn write(&self, is_swapped: bool, shape: Shape, out: &mut Vec<u8>) {
        let has_more = self.counters != [0; RESOURCES] || self.quarantine > 0;
        // The mark is on the last resource, which is read just before what it announces.
        for (resource, place) in self.places.iter().enumerate().take(shape.resources) {
            place.write_bytes(is_swapped, has_more && resource + 1 == shape.resources, out);
        }
        if has_more {
            out.extend_from_slice(&self.counters);
            out.push(self.quarantine << 1 | u8::from(self.lost_a_vote));
        }
        let [first, second, third] = &self.links;
        let (first, second) = if is_swapped { (second, first) } else { (first, second) };
        first.write(out);
        second.write(out);
        if shape.clients > 2 {
            third.write(out);
        }
    }

    fn read(input: &mut Bytes<'_>, shape: Shape) -> Self {
        let (mut master, mut has_more) = (Self::new(), false);
        for place in master.places.iter_mut().take(shape.resources) {
            let [head] = input.take();
            (*place, has_more) = Place::read_bytes(head, || input.take());
        }
        if has_more {
            master.counters = input.take();
            let [quarantine] = input.take();
            (master.quarantine, master.lost_a_vote) = (quarantine >> 1, quarantine & 1 == 1);
        }
        master.links.iter_mut().take(shape.clients).for_each(|link| *link = Link::read(input));
        master
    }
}

/// Everything that decides what can happen next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct State {
    pub(super) shape: Shape,
    all: [Client; CLIENTS],
    pub(super) masters: [Master; MASTERS],
    pub(super) budgets: Budgets,
    /// The numbers that were granted to writers, as bits.
    pub(super) granted: u16,
    /// The largest number that was granted to a reader.
    pub(super) read: u8,
}

/// How often connections may still end, masters crash, keys be lost, and requests be executed
/// twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Budgets {
    pub(super) losses: u8,
    pub(super) crashes: u8,
    pub(super) evictions: u8,
    pub(super) duplicates: u8,
}

impl State {
    pub(super) fn initial(shape: Shape, budgets: Budgets) -> Self {
        let (mut all, masters) = ([Client::WAITING; CLIENTS], [Master::new(); MASTERS]);
        all.iter_mut().skip(shape.clients).for_each(Client::end);
        Self { shape, all, masters, budgets, granted: 0, read: 0 }
    }

    /// The clients that there are.
    pub(super) fn clients(&self) -> &[Client] {
        self.all.get(..self.shape.clients).unwrap_or_default()
    }

    pub(super) fn clients_mut(&mut self) -> &mut [Client] {
        self.all.get_mut(..self.shape.clients).unwrap_or_default()
    }

    /// The largest number that was granted to a writer; zero if none was.
    pub(super) fn largest_number(&self) -> u8 {
        u8::try_from(self.granted.checked_ilog2().unwrap_or(0)).unwrap_or(u8::MAX)
    }

    pub(super) fn client(&self, client: usize) -> &Client {
        self.all.get(client).expect("a client of the scenario")
    }

    pub(super) fn client_mut(&mut self, client: usize) -> &mut Client {
        self.all.get_mut(client).expect("a client of the scenario")
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
    pub(super) fn read(bytes: &[u8], shape: Shape) -> Self {
        let mut input = Bytes(bytes);
        let [losses, more, read, low, high] = input.take();
        let (crashes, evictions, duplicates) = (more & 3, more >> 2 & 3, more >> 4);
        let budgets = Budgets { losses, crashes, evictions, duplicates };
        let mut state = Self::initial(shape, budgets);
        (state.granted, state.read) = (u16::from_le_bytes([low, high]), read);
        state.clients_mut().iter_mut().for_each(|client| *client = Client::read(&mut input));
        state.masters.iter_mut().for_each(|master| *master = Master::read(&mut input, shape));
        for client in state.clients_mut() {
            client.lock = u32::from_le_bytes(input.take());
        }
        state
    }

    /// Writes the part that is compared first: how often events may still happen, and the clients
    /// without their locks.
    pub(super) fn write_heads(&self, is_swapped: bool, out: &mut Vec<u8>) {
        let [low, high] = self.granted.to_le_bytes();
        let Budgets { losses, crashes, evictions, duplicates } = self.budgets;
        out.extend_from_slice(&[losses, crashes | evictions << 2 | duplicates << 4, self.read, low, high]);
        let [first, second, third] = &self.all;
        let (first, second) = if is_swapped { (second, first) } else { (first, second) };
        out.extend_from_slice(&first.head());
        out.extend_from_slice(&second.head());
        if self.shape.clients > 2 {
            out.extend_from_slice(&third.head());
        }
    }

    pub(super) fn write_master(&self, master: usize, is_swapped: bool, out: &mut Vec<u8>) {
        self.master(master).write(is_swapped, self.shape, out);
    }
}

impl Item {
    fn read(input: &mut Bytes<'_>, is_wide: bool) -> Self {
        Self(if is_wide { u32::from_le_bytes(input.take()) } else { u16::from_le_bytes(input.take()).into() })
    }
}

/// Bytes that were written by this module, read from the front.
pub(super) struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    pub(super) fn take<const N: usize>(&mut self) -> [u8; N] {
        let (front, rest) = self.0.split_first_chunk().expect("a state is read as it was written");
        self.0 = rest;
        *front
    }
}
