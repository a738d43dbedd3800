//! Short rows of small values without an allocation, and the items that stand in them.

use crate::connection::Action;

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

    /// Appends a value. A row that is too short would make the search skip behaviours, so that is a fault.
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

    pub(super) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.as_slice().iter().copied()
    }
}

/// What a master said to an item that it has executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Said {
    /// The token stood there, or does now.
    Yes,
    /// It did not.
    No,
    /// Another's token stands there (only to an undo).
    Holder,
}

/// One request on its way: what is done, with which of the client's tokens, for how long, and for which round.
///
/// It is packed into 16 bits: action (2), attempt (2), TTL in ticks (4), round (4, zero is "nobody waits"), what was said (2), and
/// two marks of left-behind requests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub(super) struct Item(pub(super) u16);

impl Item {
    const SAID: u16 = 3 << 12;
    /// The first of the requests that were left behind on one connection.
    const FIRST: u16 = 1 << 14;
    /// It may be executed any number of times.
    const AGAIN: u16 = 1 << 15;

    pub(super) fn new(action: Action, attempt: u8, ttl: u8, round: u8) -> Self {
        assert!(attempt < 4 && ttl < 16 && round < 16, "attempts, TTLs and rounds fit their bits");
        let action = match action {
            Action::Acquire => 0,
            Action::Extend => 1,
            Action::Release => 2,
            Action::Undo => 3,
            Action::Raise | Action::Heal | Action::Attend | Action::Open => {
                unimplemented!("the search does not know it yet")
            }
        };
        Self(action | u16::from(attempt) << 2 | u16::from(ttl) << 4 | u16::from(round) << 8)
    }

    pub(super) fn action(self) -> Action {
        match self.0 & 3 {
            0 => Action::Acquire,
            1 => Action::Extend,
            2 => Action::Release,
            _ => Action::Undo,
        }
    }

    pub(super) fn attempt(self) -> u8 {
        self.bits(2, 3)
    }

    pub(super) fn ttl(self) -> u8 {
        self.bits(4, 15)
    }

    pub(super) fn round(self) -> u8 {
        self.bits(8, 15)
    }

    pub(super) fn said(self) -> Option<Said> {
        match self.bits(12, 3) {
            0 => None,
            1 => Some(Said::Yes),
            2 => Some(Said::No),
            _ => Some(Said::Holder),
        }
    }

    pub(super) fn executed(self, said: Said) -> Self {
        let said = match said {
            Said::Yes => 1,
            Said::No => 2,
            Said::Holder => 3,
        };
        Self(self.0 & !Self::SAID | said << 12)
    }

    /// The same for nobody: a release is a release whether or not it reads the key.
    pub(super) fn for_nobody(self) -> Self {
        let item = if self.action() == Action::Undo {
            Self::new(Action::Release, self.attempt(), self.ttl(), 0)
        } else {
            Self::new(self.action(), self.attempt(), self.ttl(), 0)
        };
        self.said().map_or(item, |said| item.executed(said))
    }

    /// As it is left behind on a connection that is given up: without a way home, and without what only debts need.
    pub(super) fn left_behind(self, is_first: bool) -> Self {
        let item = self.for_nobody();
        let ttl = if item.action().clears() { 0 } else { item.ttl() };
        let left = Self::new(item.action(), item.attempt(), ttl, 0);
        Self(left.0 | if is_first { Self::FIRST } else { 0 })
    }

    pub(super) fn is_first(self) -> bool {
        self.0 & Self::FIRST != 0
    }

    pub(super) fn is_again(self) -> bool {
        self.0 & Self::AGAIN != 0
    }

    pub(super) fn again(self) -> Self {
        Self(self.0 | Self::AGAIN)
    }

    pub(super) fn as_once(self) -> Self {
        Self(self.0 & !Self::AGAIN)
    }

    pub(super) fn as_first(self, is_first: bool) -> Self {
        Self(self.0 & !Self::FIRST | if is_first { Self::FIRST } else { 0 })
    }

    fn bits(self, from: u16, mask: u16) -> u8 {
        u8::try_from(self.0 >> from & mask).unwrap_or(u8::MAX)
    }
}
