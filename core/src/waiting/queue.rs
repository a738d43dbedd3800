//! Callers that wait for one resource, first come, first served.
//!
//! A waiter may leave at any place, and then learns how many are ahead of it. Tens of thousands may
//! leave at once, so leaving and counting must be fast even then: the places that are still taken
//! are counted in a binary indexed tree (Fenwick 1994), in O(log n).

use crate::protocol::LockId;
use std::collections::VecDeque;

/// Empty places are removed when there are more of them than this, and more than taken ones.
/// Smaller: more copying. Larger: a short queue keeps more memory.
const KEPT_EMPTY: usize = 16;

/// A waiter's place: the number of waiters that came before it. It stays the same when others
/// leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place(u64);

#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// In the order of arrival; a place without a lock is that of a waiter that has left.
    waiters: VecDeque<(Place, Option<LockId>)>,
    /// The number of waiters that have come so far.
    came: u64,
    /// The number of waiters taken from the front since the tree was built.
    popped: usize,
    taken: usize,
    /// Node n counts the taken places after place n − (n & −n), up to place n. Places are numbered
    /// from one here, beginning with the first waiter when the tree was built.
    tree: Vec<u32>,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.taken
    }

    pub(super) fn push(&mut self, id: LockId) -> Place {
        let place = Place(self.came);
        self.came += 1;
        self.waiters.push_back((place, Some(id)));
        self.taken += 1;
        // The new node counts the places of the nodes below it, and the new place.
        let mut below = self.tree.len();
        let node = below + 1;
        let lowest = node - (node & node.wrapping_neg());
        let mut count = 1;
        while below > lowest {
            count += self.tree.get(below - 1).copied().unwrap_or(0);
            below -= below & below.wrapping_neg();
        }
        self.tree.push(count);
        place
    }

    /// A waiter leaves its place.
    pub(super) fn leave(&mut self, place: Place) {
        let Some(at) = self.position(place) else { return };
        if self.waiters.get_mut(at).is_some_and(|(_, id)| id.take().is_some()) {
            self.count_off(self.popped + at);
        }
    }

    /// The waiter that came first.
    pub(super) fn first(&self) -> Option<LockId> {
        self.waiters.iter().find_map(|(_, id)| *id)
    }

    /// Takes the waiter that came first.
    pub(super) fn pop(&mut self) -> Option<LockId> {
        while let Some((_, waiter)) = self.waiters.pop_front() {
            self.popped += 1;
            if let Some(id) = waiter {
                self.count_off(self.popped - 1);
                return Some(id);
            }
        }
        None
    }

    /// How many are ahead of a waiter.
    pub(super) fn ahead_of(&self, place: Place) -> usize {
        let mut node = self.position(place).map_or(0, |at| self.popped + at);
        let mut count = 0;
        while node > 0 {
            count += self.tree.get(node - 1).copied().unwrap_or(0) as usize;
            node -= node & node.wrapping_neg();
        }
        count
    }

    /// The position of a place among those that are kept.
    fn position(&self, place: Place) -> Option<usize> {
        let (Place(first), _) = self.waiters.front()?;
        // If no place in between was removed, no search is needed.
        let at_most = usize::try_from(place.0.checked_sub(*first)?).ok()?;
        if self.waiters.get(at_most).is_some_and(|(there, _)| *there == place) {
            return Some(at_most);
        }
        self.waiters.binary_search_by_key(&place.0, |(there, _)| there.0).ok()
    }

    fn count_off(&mut self, number: usize) {
        self.taken -= 1;
        let mut node = number + 1;
        while let Some(count) = self.tree.get_mut(node - 1) {
            *count -= 1;
            node += node & node.wrapping_neg();
        }
        let empty = self.tree.len() - self.taken;
        if empty > KEPT_EMPTY && empty > self.taken {
            self.clear_away();
        }
    }

    fn clear_away(&mut self) {
        self.waiters.retain(|(_, id)| id.is_some());
        self.waiters.shrink_to_fit();
        self.popped = 0;
        // If all places are taken, a node counts all of its places.
        let full = |node: usize| u32::try_from(node & node.wrapping_neg()).unwrap_or(u32::MAX);
        self.tree = (1..=self.taken).map(full).collect();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(index: u32) -> LockId {
        LockId { index, generation: 0 }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push,
        Pop,
        Leave(prop::sample::Index),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => Just(Step::Push),
            1 => Just(Step::Pop),
            2 => any::<prop::sample::Index>().prop_map(Step::Leave),
        ]
    }

    proptest! {
        #[test]
        fn the_queue_keeps_its_order_and_counts_waiters_ahead_when_any_waiter_leaves(
            steps in prop::collection::vec(step(), 0..400),
        ) {
            let (mut queue, mut model) = (Queue::default(), Vec::<(LockId, Place)>::new());
            for (number, step) in (0..).zip(steps) {
                match step {
                    Step::Push => model.push((id(number), queue.push(id(number)))),
                    Step::Pop => {
                        let popped = queue.pop();
                        let expected = (!model.is_empty()).then(|| model.remove(0).0);
                        prop_assert_eq!(popped, expected);
                    }
                    Step::Leave(which) if !model.is_empty() => {
                        let (_, place) = model.remove(which.index(model.len()));
                        queue.leave(place);
                    }
                    Step::Leave(_) => {}
                }
                prop_assert_eq!(queue.len(), model.len());
                for (ahead, (_, place)) in model.iter().enumerate() {
                    prop_assert_eq!(queue.ahead_of(*place), ahead);
                }
                prop_assert!(queue.waiters.len() <= 2 * model.len() + KEPT_EMPTY + 1);
            }
        }
    }
}
