//! Callers that wait for one resource, first come, first served.
//!
//! A waiter may leave at any place, and one that leaves is told how many are ahead of it. Tens of thousands may leave at once, so neither may
//! take longer the more there are: the places that are still taken are counted in a binary indexed tree (Fenwick 1994), in O(log n).

use crate::protocol::LockId;
use std::collections::VecDeque;

/// Places that were left are cleared away when there are more of them than this, and than places that are taken. Fewer would mean more copying, more would keep
/// memory behind a short queue.
const KEPT_EMPTY: usize = 16;

/// A waiter's place: how many came before it, counted from wherever the queue last cleared away the places that were left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place(u32);

#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// In the order of their coming; `None` has left.
    places: VecDeque<Option<LockId>>,
    /// The number of the first of them.
    first: usize,
    taken: usize,
    /// Node n counts the taken places from n − (n & −n) up to n, by number and counted from one.
    tree: Vec<u32>,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.taken
    }

    pub(super) fn push(&mut self, id: LockId) -> Place {
        let number = self.tree.len();
        self.places.push_back(Some(id));
        self.taken += 1;
        // The new node counts what the nodes below it count, and the new place.
        let (node, mut below) = (number + 1, number);
        let lowest = node - (node & node.wrapping_neg());
        let mut count = 1;
        while below > lowest {
            count += self.tree.get(below - 1).copied().unwrap_or(0);
            below -= below & below.wrapping_neg();
        }
        self.tree.push(count);
        Place(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// A waiter leaves its place. `moved` is told of each waiter that has another place from now on.
    pub(super) fn leave(&mut self, place: Place, moved: impl FnMut(LockId, Place)) {
        let number = place.0 as usize;
        let found = number.checked_sub(self.first).and_then(|at| self.places.get_mut(at));
        if found.is_some_and(|place| place.take().is_some()) {
            self.count_off(number);
            self.clear_away(moved);
        }
    }

    /// The waiter that came first.
    pub(super) fn first(&self) -> Option<LockId> {
        self.places.iter().find_map(|place| *place)
    }

    /// Takes the waiter that came first.
    pub(super) fn pop(&mut self, moved: impl FnMut(LockId, Place)) -> Option<LockId> {
        while let Some(place) = self.places.pop_front() {
            let number = self.first;
            self.first += 1;
            if let Some(id) = place {
                self.count_off(number);
                self.clear_away(moved);
                return Some(id);
            }
        }
        None
    }

    /// How many are ahead of a waiter.
    pub(super) fn ahead_of(&self, place: Place) -> usize {
        let (mut node, mut count) = (place.0 as usize, 0);
        while node > 0 {
            count += self.tree.get(node - 1).copied().unwrap_or(0) as usize;
            node -= node & node.wrapping_neg();
        }
        count
    }

    fn count_off(&mut self, number: usize) {
        self.taken -= 1;
        let mut node = number + 1;
        while let Some(count) = self.tree.get_mut(node - 1) {
            *count -= 1;
            node += node & node.wrapping_neg();
        }
    }

    fn clear_away(&mut self, mut moved: impl FnMut(LockId, Place)) {
        let empty = self.tree.len() - self.taken;
        if empty <= KEPT_EMPTY || empty <= self.taken {
            return;
        }
        let places = std::mem::take(&mut self.places);
        *self = Self { places: VecDeque::with_capacity(self.taken), ..Self::default() };
        for id in places.into_iter().flatten() {
            let place = self.push(id);
            moved(id, place);
        }
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
        fn whoever_leaves_the_others_keep_their_order_and_know_how_many_are_ahead(
            steps in prop::collection::vec(step(), 0..400),
        ) {
            let (mut queue, mut model) = (Queue::default(), Vec::<(LockId, Place)>::new());
            for (number, step) in (0..).zip(steps) {
                let mut moves = Vec::new();
                match step {
                    Step::Push => model.push((id(number), queue.push(id(number)))),
                    Step::Pop => {
                        let popped = queue.pop(|id, place| moves.push((id, place)));
                        let expected = (!model.is_empty()).then(|| model.remove(0).0);
                        prop_assert_eq!(popped, expected);
                    }
                    Step::Leave(which) if !model.is_empty() => {
                        let (_, place) = model.remove(which.index(model.len()));
                        queue.leave(place, |id, place| moves.push((id, place)));
                    }
                    Step::Leave(_) => {}
                }
                for (moved, to) in moves {
                    let waiter = model.iter_mut().find(|(id, _)| *id == moved);
                    prop_assert!(waiter.map(|(_, place)| *place = to).is_some());
                }
                prop_assert_eq!(queue.len(), model.len());
                for (ahead, (_, place)) in model.iter().enumerate() {
                    prop_assert_eq!(queue.ahead_of(*place), ahead);
                }
                prop_assert!(queue.places.len() <= 2 * model.len() + KEPT_EMPTY + 1);
            }
        }
    }
}
