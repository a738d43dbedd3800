//! Short rows of small values without an allocation.

/// At most `N` values, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Row<T, const N: usize> {
    len: u8,
    places: [T; N],
}

impl<T: Copy + Default, const N: usize> Default for Row<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy + Default, const N: usize> Row<T, N> {
    pub(super) fn new() -> Self {
        Self { len: 0, places: [T::default(); N] }
    }

    pub(super) fn as_slice(&self) -> &[T] {
        self.places.get(..self.len()).unwrap_or_default()
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [T] {
        let len = self.len();
        self.places.get_mut(..len).unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a value. If there is no room the search panics, because it would otherwise skip
    /// behaviours.
    pub(super) fn push(&mut self, value: T) {
        let place = self.places.get_mut(usize::from(self.len)).expect("rows hold what a scenario can bring");
        *place = value;
        self.len += 1;
    }

    pub(super) fn remove(&mut self, place: usize) -> Option<T> {
        let value = *self.as_slice().get(place)?;
        self.as_mut_slice().get_mut(place..)?.rotate_left(1);
        self.len -= 1;
        Some(value)
    }

    pub(super) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    pub(super) fn filtered(self, keep: impl Fn(T) -> bool) -> Self {
        let mut kept = Self::new();
        self.iter().filter(|value| keep(*value)).for_each(|value| kept.push(value));
        kept
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.as_slice().iter().copied()
    }
}
