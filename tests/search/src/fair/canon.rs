//! One representative for all states that differ only in the names of masters.

use super::book::Book;
use super::state::{MASTERS, State, WAITERS};

/// A possible order of the masters: `order[place]` is the master at that place. Masters that do not
/// exist keep their places.
const ORDERS: [[u8; MASTERS]; 6] = [[0, 1, 2], [1, 0, 2], [0, 2, 1], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// Buffers for finding representatives.
#[derive(Default)]
pub(super) struct Canon {
    bytes: Vec<u8>,
    columns: [Vec<u8>; MASTERS],
    /// How many orders of the masters lead to the representative.
    ways: u64,
}

impl Canon {
    /// The bytes of the state's representative, or of the state itself if masters are distinguished
    /// by name.
    pub(super) fn bytes(&mut self, state: &State, is_symmetric: bool, book: &mut Book) -> &[u8] {
        self.bytes.clear();
        state.write_head(&mut self.bytes);
        let masters = state.shape.masters;
        for (master, column) in self.columns.iter_mut().enumerate().take(masters) {
            column.clear();
            state.write_master(master, column);
        }
        let orders = Self::orders(masters, is_symmetric);
        let column = |master: &u8| self.columns.get(usize::from(*master));
        let is_least =
            |order: &&[u8; MASTERS]| order.iter().take(masters).map(column).is_sorted() || !is_symmetric;
        let (mut nodes, mut least) = ([u32::MAX; WAITERS], None);
        self.ways = 0;
        for order in orders.iter().filter(is_least) {
            let turned = turned_nodes(state, *order, book);
            self.ways = if turned < nodes { 1 } else { self.ways + u64::from(turned == nodes) };
            nodes = nodes.min(turned);
            least = Some(order);
        }
        for master in least.into_iter().flatten().take(masters) {
            let column = self.columns.get(usize::from(*master));
            self.bytes.extend_from_slice(column.map_or(&[], Vec::as_slice));
        }
        let there = nodes.iter().take(state.shape.waiters);
        there.for_each(|node| self.bytes.extend_from_slice(&node.to_le_bytes()));
        &self.bytes
    }

    /// How many states differ only in names from the last one.
    pub(super) fn names(&self, masters: usize, is_symmetric: bool) -> u64 {
        Self::orders(masters, is_symmetric).len() as u64 / self.ways.max(1)
    }

    fn orders(masters: usize, is_symmetric: bool) -> &'static [[u8; MASTERS]] {
        let count = match masters {
            _ if !is_symmetric => 1,
            1 => 1,
            2 => 2,
            _ => 6,
        };
        ORDERS.get(..count).unwrap_or(&ORDERS)
    }
}

fn turned_nodes(state: &State, order: [u8; MASTERS], book: &mut Book) -> [u32; WAITERS] {
    let mut nodes = [0; WAITERS];
    nodes.iter_mut().zip(state.seats()).for_each(|(node, seat)| *node = seat.node);
    if order == [0, 1, 2] {
        return nodes;
    }
    let mut places = [0; MASTERS];
    for (place, master) in (0u8..).zip(order) {
        places.get_mut(usize::from(master)).into_iter().for_each(|slot| *slot = place);
    }
    nodes.map(|node| book.turned(node, places))
}
