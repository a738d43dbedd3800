//! One state of the world, and the bytes that represent it.

use super::item::Item;
use super::queue::{Key, Place};
use crate::row::Row;

/// Waiters in the world, at most.
pub(super) const WAITERS: usize = 3;
/// Masters in the world, at most.
pub(super) const MASTERS: usize = 3;
/// The client that holds the lock at the beginning.
pub(super) const HOLDER: u8 = 3;

/// How many masters and waiters there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    pub(super) masters: usize,
    pub(super) waiters: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    New,
    Alive,
    /// It has released the lock, given up or died.
    Gone,
}

/// A waiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seat {
    pub(super) stage: Stage,
    /// Its number in the book; zero if it is not alive.
    pub(super) node: u32,
    /// How often it has renewed its place, or tried again without one.
    pub(super) renewals: u8,
    /// The waiters whose place was drawn after this one's number was settled: they must not pass
    /// it.
    pub(super) behind: u8,
    /// Whether a master may have forgotten its place.
    pub(super) may_be_forgotten: bool,
}

/// The messages between a waiter and a master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Link {
    /// Whether the master cannot be reached.
    pub(super) is_cut: bool,
    /// Requests without a delivered answer; those that the master has executed come first.
    pub(super) flight: Row<Item, 8>,
    /// Requests that were left behind on former connections.
    pub(super) behind: Row<Item, 8>,
}

impl Link {
    const NEW: fn() -> Self = || Self { is_cut: false, flight: Row::new(), behind: Row::new() };

    fn write(&self, out: &mut Vec<u8>) {
        let [flight, behind] =
            [&self.flight, &self.behind].map(|row| u8::try_from(row.len()).unwrap_or(u8::MAX));
        out.push(flight | behind << 4);
        self.flight.iter().chain(self.behind.iter()).for_each(|item| item.write(out));
    }

    fn read(input: &mut Bytes<'_>) -> Self {
        let [lengths] = input.take();
        let mut link = Self::NEW();
        (0..lengths & 15).for_each(|_| link.flight.push(Item::read(input)));
        (0..lengths >> 4).for_each(|_| link.behind.push(Item::read(input)));
        link
    }
}

/// What a master has done last, if the next step must depend on it: a step on which nothing depends
/// might happen later, so it is taken later. A state with such a condition is passed through and
/// not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Focus {
    Nothing,
    /// It has executed a request of this waiter.
    Executed(u8),
    /// Something has ended there. Things that end together end in the order of these numbers.
    Ended(u8),
}

impl Focus {
    /// A number for it, which no other value has.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Nothing => 0,
            Self::Executed(waiter) => 1 + waiter,
            Self::Ended(number) => 16 + number,
        }
    }
}

/// A master with its connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Master {
    pub(super) key: Option<Key>,
    /// The places, in the order of their numbers.
    pub(super) queue: Row<Place, 8>,
    /// The largest number that it has given.
    pub(super) counter: u8,
    /// What it has done last, if the next step must depend on it.
    pub(super) focus: Focus,
    pub(super) links: [Link; WAITERS],
}

impl Master {
    pub(super) fn link(&self, waiter: usize) -> &Link {
        self.links.get(waiter).expect("a waiter of the scenario")
    }

    pub(super) fn link_mut(&mut self, waiter: usize) -> &mut Link {
        self.links.get_mut(waiter).expect("a waiter of the scenario")
    }

    fn write(&self, waiters: usize, out: &mut Vec<u8>) {
        let places = u8::try_from(self.queue.len()).unwrap_or(u8::MAX);
        let key = self.key.map_or(u8::MAX, |key| key.client | key.token << 4);
        out.extend_from_slice(&[key, self.counter, places]);
        for place in self.queue.iter() {
            out.extend_from_slice(&[place.number, place.client | place.place << 4]);
        }
        let links = || self.links.iter().take(waiters);
        out.push(links().fold(0, |mask, link| mask << 1 | u8::from(link.is_cut)));
        links().for_each(|link| link.write(out));
    }

    fn read(input: &mut Bytes<'_>, waiters: usize) -> Self {
        let [key, counter, places] = input.take();
        let (mut queue, focus) = (Row::new(), Focus::Nothing);
        for _ in 0..places {
            let [number, place] = input.take();
            queue.push(Place { number, client: place & 15, place: place >> 4, until: 0 });
        }
        let key = (key != u8::MAX).then_some(Key { client: key & 15, token: key >> 4, until: 0 });
        let [cut] = input.take();
        let mut links = [Link::NEW(); WAITERS];
        for (link, waiter) in links.iter_mut().take(waiters).zip((0..waiters).rev()) {
            *link = Link { is_cut: cut >> waiter & 1 != 0, ..Link::read(input) };
        }
        Self { key, queue, counter, focus, links }
    }
}

/// How often each of these may still happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Budgets {
    pub(super) deaths: u8,
    pub(super) cancels: u8,
    pub(super) losses: u8,
    pub(super) forgets: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct State {
    pub(super) shape: Shape,
    pub(super) budgets: Budgets,
    seats: [Seat; WAITERS],
    masters: [Master; MASTERS],
}

impl State {
    pub(super) fn new(shape: Shape, budgets: Budgets) -> Self {
        let seat = Seat { stage: Stage::New, node: 0, renewals: 0, behind: 0, may_be_forgotten: false };
        let links = [Link::NEW(); WAITERS];
        let master = Master { key: None, queue: Row::new(), counter: 0, focus: Focus::Nothing, links };
        Self { shape, budgets, seats: [seat; WAITERS], masters: [master; MASTERS] }
    }

    pub(super) fn seats(&self) -> &[Seat] {
        self.seats.get(..self.shape.waiters).unwrap_or_default()
    }

    pub(super) fn seats_mut(&mut self) -> &mut [Seat] {
        self.seats.get_mut(..self.shape.waiters).unwrap_or_default()
    }

    pub(super) fn seat(&self, waiter: usize) -> &Seat {
        self.seats.get(waiter).expect("a waiter of the scenario")
    }

    pub(super) fn seat_mut(&mut self, waiter: usize) -> &mut Seat {
        self.seats.get_mut(waiter).expect("a waiter of the scenario")
    }

    pub(super) fn masters(&self) -> &[Master] {
        self.masters.get(..self.shape.masters).unwrap_or_default()
    }

    pub(super) fn masters_mut(&mut self) -> &mut [Master] {
        self.masters.get_mut(..self.shape.masters).unwrap_or_default()
    }

    /// The master at which the next step must happen, if one must.
    pub(super) fn focus(&self) -> Option<(usize, Focus)> {
        let mut all = self.masters().iter().map(|master| master.focus).enumerate();
        all.find(|(_, focus)| *focus != Focus::Nothing)
    }

    pub(super) fn master(&self, master: usize) -> &Master {
        self.masters.get(master).expect("a master of the scenario")
    }

    pub(super) fn master_mut(&mut self, master: usize) -> &mut Master {
        self.masters.get_mut(master).expect("a master of the scenario")
    }

    /// Writes everything except the masters and the numbers of the waiters in the book.
    pub(super) fn write_head(&self, out: &mut Vec<u8>) {
        let Budgets { deaths, cancels, losses, forgets } = self.budgets;
        out.extend_from_slice(&[deaths | cancels << 4, losses | forgets << 4]);
        for seat in self.seats() {
            let stage = match seat.stage {
                Stage::New => 0,
                Stage::Alive => 1,
                Stage::Gone => 2,
            };
            out.push(stage | u8::from(seat.may_be_forgotten) << 2 | seat.behind << 3);
            out.push(seat.renewals);
        }
    }

    pub(super) fn write_master(&self, master: usize, out: &mut Vec<u8>) {
        self.master(master).write(self.shape.waiters, out);
    }

    pub(super) fn read(bytes: &[u8], shape: Shape) -> Self {
        let mut input = Bytes(bytes);
        let [first, second] = input.take();
        let budgets =
            Budgets { deaths: first & 15, cancels: first >> 4, losses: second & 15, forgets: second >> 4 };
        let mut state = Self::new(shape, budgets);
        for seat in state.seats_mut() {
            let [head, renewals] = input.take();
            seat.stage = match head & 3 {
                0 => Stage::New,
                1 => Stage::Alive,
                _ => Stage::Gone,
            };
            (seat.may_be_forgotten, seat.behind, seat.renewals) = (head & 4 != 0, head >> 3, renewals);
        }
        let waiters = shape.waiters;
        state.masters_mut().iter_mut().for_each(|master| *master = Master::read(&mut input, waiters));
        state.seats_mut().iter_mut().for_each(|seat| seat.node = u32::from_le_bytes(input.take()));
        state
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
