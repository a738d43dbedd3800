//! The front of a resource in this process: the only lock that may ask masters for it, or those
//! that share it.

use std::collections::BTreeMap;

use crate::protocol::{Group, LockId, Mode};

/// The locks in front.
#[derive(Clone, Debug, Default)]
pub(crate) enum Front {
    #[default]
    Nobody,
    /// A single lock.
    One(LockId),
    /// Several that share.
    Sharers(Box<Sharers>),
}

#[derive(Clone, Debug)]
pub(crate) struct Sharers {
    /// The mode of all of them.
    mode: Mode,
    /// Each lock with the number of permits that it takes.
    locks: BTreeMap<LockId, u16>,
    /// The sum of those permits.
    taken: u32,
}

impl Front {
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Nobody)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Nobody => 0,
            Self::One(_) => 1,
            Self::Sharers(sharers) => sharers.locks.len(),
        }
    }

    pub(crate) fn locks(&self) -> impl Iterator<Item = LockId> {
        let (one, sharers) = match self {
            Self::Nobody => (None, None),
            Self::One(id) => (Some(*id), None),
            Self::Sharers(sharers) => (None, Some(sharers.locks.keys().copied())),
        };
        one.into_iter().chain(sharers.into_iter().flatten())
    }

    /// Whether another one can join.
    pub(super) fn has_room_for(&self, mode: &Mode) -> bool {
        match (self, mode) {
            (Self::Nobody, _) => true,
            (Self::Sharers(sharers), Mode::Permit { of, take }) => {
                matches!(sharers.mode, Mode::Permit { .. })
                    && sharers.taken + u32::from(*take) <= u32::from(*of)
            }
            (Self::Sharers(sharers), mode) => sharers.mode.is_compatible(mode),
            _ => false,
        }
    }

    /// Whether any other lock may join.
    pub(super) fn may_grow(&self) -> bool {
        matches!(self, Self::Sharers(_))
    }

    pub(super) fn add(&mut self, id: LockId, mode: &Mode) {
        debug_assert!(self.has_room_for(mode), "only those that may be together are in front");
        let take = match mode {
            Mode::Permit { take, .. } => *take,
            Mode::Exclusive | Mode::Shared(_) => 1,
        };
        match (&mut *self, mode) {
            (Self::Sharers(sharers), _) => {
                sharers.locks.insert(id, take);
                sharers.taken += u32::from(take);
            }
            (_, Mode::Exclusive) => *self = Self::One(id),
            (_, mode) => {
                let locks = BTreeMap::from([(id, take)]);
                *self = Self::Sharers(Box::new(Sharers { mode: mode.clone(), locks, taken: take.into() }));
            }
        }
    }

    /// The lock in front shares the resource with readers from now on.
    pub(super) fn share(&mut self, id: LockId) {
        if matches!(self, Self::One(one) if *one == id) {
            *self = Self::Nobody;
            self.add(id, &Mode::Shared(Group::READERS));
        }
    }

    pub(super) fn remove(&mut self, id: LockId) {
        let is_last = match self {
            Self::Nobody => false,
            Self::One(one) => *one == id,
            Self::Sharers(sharers) => sharers.locks.remove(&id).is_some_and(|take| {
                sharers.taken -= u32::from(take);
                sharers.locks.is_empty()
            }),
        };
        if is_last {
            *self = Self::Nobody;
        }
    }
}
