//! The locks by number. A number that is used again has another generation, so that an answer to a lock of the past
//! finds nothing.

use super::LockId;

#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// The id that the next [`Slab::insert`] will use.
    pub(super) fn next_id(&self) -> LockId {
        match self.free.last() {
            Some(&index) => {
                let generation = self.places.get(index as usize).map_or(0, |place| place.generation);
                LockId { index, generation }
            }
            None => LockId { index: u32::try_from(self.places.len()).unwrap_or(u32::MAX), generation: 0 },
        }
    }

    /// Fills the place that [`Slab::next_id`] named.
    pub(super) fn insert(&mut self, value: T) {
        match self.free.pop().and_then(|index| self.places.get_mut(index as usize)) {
            Some(place) => place.value = Some(value),
            None => self.places.push(Place { generation: 0, value: Some(value) }),
        }
    }

    pub(super) fn get(&self, id: LockId) -> Option<&T> {
        self.places.get(id.index()).filter(|place| place.generation == id.generation)?.value.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: LockId) -> Option<&mut T> {
        self.places.get_mut(id.index()).filter(|place| place.generation == id.generation)?.value.as_mut()
    }

    pub(super) fn remove(&mut self, id: LockId) {
        let Some(place) = self.places.get_mut(id.index()) else { return };
        if place.generation == id.generation && place.value.take().is_some() {
            place.generation = place.generation.wrapping_add(1);
            self.free.push(id.index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_used_again_has_another_id() {
        let mut slab = Slab::new();
        let first = slab.next_id();
        slab.insert("a");
        slab.remove(first);
        slab.remove(first);
        let second = slab.next_id();
        slab.insert("b");
        assert_eq!(first.index(), second.index());
        assert_ne!(first, second);
        assert_eq!((slab.get(first), slab.get(second), slab.len()), (None, Some(&"b"), 1));
    }
}
