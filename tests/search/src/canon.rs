//! One representative for all states that differ only in the names of masters and clients.

use std::cmp::Ordering;

use super::book::Book;
use super::state::{CLIENTS, MASTERS, State};

/// A possible order of the masters: `order[place]` is the master at that place.
const ORDERS: [[u8; MASTERS]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// Which symmetries are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Symmetry {
    pub(super) masters: bool,
    pub(super) clients: bool,
}

/// Buffers for finding representatives.
#[derive(Default)]
pub(super) struct Canon {
    best: Vec<u8>,
    candidate: Vec<u8>,
    columns: [Vec<u8>; MASTERS],
    /// How many renamings lead to the representative.
    ways: u64,
}

impl Canon {
    /// The bytes of the state's representative: the smallest ones that any renaming of masters and
    /// clients gives.
    pub(super) fn bytes(&mut self, state: &State, symmetry: Symmetry, book: &mut Book) -> &[u8] {
        self.best.clear();
        self.ways = 0;
        let swaps: &[bool] = if symmetry.clients { &[false, true] } else { &[false] };
        for &is_swapped in swaps {
            self.candidate.clear();
            state.write_heads(is_swapped, &mut self.candidate);
            let heads = self.candidate.len();
            if is_swapped && self.best.get(..heads).is_some_and(|best| best < self.candidate.as_slice()) {
                break;
            }
            let ways = self.write_masters(state, is_swapped, symmetry.masters, book);
            if self.best.is_empty() || self.candidate < self.best {
                std::mem::swap(&mut self.best, &mut self.candidate);
                self.ways = ways;
            } else if self.candidate == self.best {
                self.ways += ways;
            }
        }
        &self.best
    }

    /// How many states differ only in names from the one whose bytes were requested last.
    pub(super) fn names(&self, symmetry: Symmetry) -> u64 {
        let masters = if symmetry.masters { ORDERS.len() as u64 } else { 1 };
        masters * if symmetry.clients { 2 } else { 1 } / self.ways.max(1)
    }

    /// Appends the masters and the locks, and returns how many orders of the masters give these
    /// bytes.
    fn write_masters(&mut self, state: &State, is_swapped: bool, is_symmetric: bool, book: &mut Book) -> u64 {
        for (master, column) in self.columns.iter_mut().enumerate() {
            column.clear();
            state.write_master(master, is_swapped, column);
        }
        let [first, second, third] = &self.columns;
        let compared = [first.cmp(second), first.cmp(third), second.cmp(third)];
        // Only the order with the smallest columns counts, and among equal columns the one with the
        // smallest numbers of locks.
        let is_least = |order: &&[u8; MASTERS]| !is_symmetric || is_sorted(**order, compared);
        let orders = if is_symmetric { ORDERS.as_slice() } else { &ORDERS[..1] };
        let (mut locks, mut least, mut ways) = ([u32::MAX; CLIENTS], None, 0);
        for order in orders.iter().filter(is_least) {
            let turned = turned_locks(state, is_swapped, *order, book);
            ways = if turned < locks { 1 } else { ways + u64::from(turned == locks) };
            locks = locks.min(turned);
            least = Some(order);
        }
        for &master in least.into_iter().flatten() {
            let column = self.columns.get(usize::from(master));
            self.candidate.extend_from_slice(column.map_or(&[], Vec::as_slice));
        }
        locks
            .iter()
            .take(state.shape.clients)
            .for_each(|lock| self.candidate.extend_from_slice(&lock.to_le_bytes()));
        ways
    }
}

/// Whether the columns are in ascending order, given how the first compares with the second,
/// the first with the third, and the second with the third.
fn is_sorted([a, b, c]: [u8; MASTERS], compared: [Ordering; MASTERS]) -> bool {
    let [first_second, first_third, second_third] = compared;
    let compare = |left: u8, right: u8| match (left, right) {
        (0, 1) => first_second,
        (0, _) => first_third,
        (1, 0) => first_second.reverse(),
        (1, _) => second_third,
        (_, 0) => first_third.reverse(),
        (_, _) => second_third.reverse(),
    };
    compare(a, b).is_le() && compare(b, c).is_le()
}

fn turned_locks(state: &State, is_swapped: bool, order: [u8; MASTERS], book: &mut Book) -> [u32; CLIENTS] {
    let mut locks = [0; CLIENTS];
    locks.iter_mut().zip(state.clients()).for_each(|(lock, client)| *lock = client.lock);
    if is_swapped {
        locks.swap(0, 1);
    }
    if order == [0, 1, 2] {
        return locks;
    }
    let mut places = [0; MASTERS];
    for (place, master) in (0u8..).zip(order) {
        if let Some(slot) = places.get_mut(usize::from(master)) {
            *slot = place;
        }
    }
    locks.map(|lock| if lock == 0 { 0 } else { book.turned(lock, places) })
}
