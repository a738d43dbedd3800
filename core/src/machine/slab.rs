//! The locks by number. A number that is used again has another generation, so that an answer to a lock of the past
//! finds nothing.

use crate::protocol::LockId;

/// So many places are made at once: growing moves nothing, and leaves little unused.
const CHUNK: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    chunks: Vec<Vec<Place<T>>>,
    places: usize,
    free: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Self {
        Self { chunks: Vec::new(), places: 0, free: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.places - self.free.len()
    }

    /// The id that the next [`Slab::insert`] will use.
    pub(super) fn next_id(&self) -> LockId {
        match self.free.last() {
            Some(&index) => {
                let generation = self.place(index as usize).map_or(0, |place| place.generation);
                LockId { index, generation }
            }
            None => LockId { index: u32::try_from(self.places).unwrap_or(u32::MAX), generation: 0 },
        }
    }

    /// Fills the place that [`Slab::next_id`] named.
    pub(super) fn insert(&mut self, value: T) {
        if let Some(index) = self.free.pop() {
            if let Some(place) = self.place_mut(index as usize) {
                place.value = Some(value);
            }
            return;
        }
        if self.places % CHUNK == 0 {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(Place { generation: 0, value: Some(value) });
            self.places += 1;
        }
    }

    pub(super) fn get(&self, id: LockId) -> Option<&T> {
        self.place(id.index()).filter(|place| place.generation == id.generation)?.value.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: LockId) -> Option<&mut T> {
        self.place_mut(id.index()).filter(|place| place.generation == id.generation)?.value.as_mut()
    }

    /// All that there are, in no order that means anything.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten().filter_map(|place| place.value.as_ref())
    }

    pub(super) fn remove(&mut self, id: LockId) {
        let Some(place) = self.place_mut(id.index()) else { return };
        if place.generation == id.generation && place.value.take().is_some() {
            place.generation = place.generation.wrapping_add(1);
            self.free.push(id.index);
        }
    }

    fn place(&self, index: usize) -> Option<&Place<T>> {
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)
    }

    fn place_mut(&mut self, index: usize) -> Option<&mut Place<T>> {
        self.chunks.get_mut(index / CHUNK)?.get_mut(index % CHUNK)
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
