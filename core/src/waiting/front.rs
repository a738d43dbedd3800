//! The front of a resource in this process: the only lock that may ask masters for it, or those
//! that share it. A writer comes beside readers that hold the resource. It cannot get it before
//! they leave, but sets its mark on masters, so that they keep new readers of other processes out.

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
    /// The writer that waits beside them.
    writer: Option<LockId>,
}

impl Front {
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Nobody)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Nobody => 0,
            Self::One(_) => 1,
            Self::Sharers(sharers) => sharers.locks.len() + usize::from(sharers.writer.is_some()),
        }
    }

    pub(crate) fn locks(&self) -> impl Iterator<Item = LockId> {
        let (one, sharers) = match self {
            Self::Nobody => (None, None),
            Self::One(id) => (Some(*id), None),
            Self::Sharers(sharers) => (sharers.writer, Some(sharers.locks.keys().copied())),
        };
        sharers.into_iter().flatten().chain(one)
    }

    /// Whether another one can join. A writer can if all readers are taken: it must not overtake a
    /// reader that has yet to get the resource, or may have to seek it again.
    pub(super) fn has_room_for(&self, mode: &Mode, is_taken: impl Fn(LockId) -> bool) -> bool {
        match (self, mode) {
            (Self::Nobody, _) => true,
            (Self::Sharers(sharers), _) if sharers.writer.is_some() => false,
            (Self::Sharers(sharers), Mode::Exclusive) => {
                matches!(sharers.mode, Mode::Shared(_)) && sharers.locks.keys().copied().all(is_taken)
            }
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
        matches!(self, Self::Sharers(sharers) if sharers.writer.is_none())
    }

    /// The lock that is alone in front, or waits beside readers.
    pub(crate) fn writer(&self) -> Option<LockId> {
        match self {
            Self::Nobody => None,
            Self::One(id) => Some(*id),
            Self::Sharers(sharers) => sharers.writer,
        }
    }

    /// The number of readers beside which this writer waits.
    pub(super) fn readers_beside(&self, id: LockId) -> usize {
        match self {
            Self::Sharers(sharers) if sharers.writer == Some(id) => sharers.locks.len(),
            _ => 0,
        }
    }

    pub(super) fn add(&mut self, id: LockId, mode: &Mode) {
        debug_assert!(self.has_room_for(mode, |_| true), "only those that may be together are in front");
        let take = match mode {
            Mode::Permit { take, .. } => *take,
            Mode::Exclusive | Mode::Shared(_) => 1,
        };
        match (&mut *self, mode) {
            (Self::Sharers(sharers), Mode::Exclusive) => sharers.writer = Some(id),
            (Self::Sharers(sharers), _) => {
                sharers.locks.insert(id, take);
                sharers.taken += u32::from(take);
            }
            (_, Mode::Exclusive) => *self = Self::One(id),
            (_, mode) => {
                let locks = BTreeMap::from([(id, take)]);
                let (mode, taken) = (mode.clone(), take.into());
                *self = Self::Sharers(Box::new(Sharers { mode, locks, taken, writer: None }));
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
        match self {
            Self::One(one) if *one == id => *self = Self::Nobody,
            Self::Nobody | Self::One(_) => {}
            Self::Sharers(sharers) => {
                sharers.writer.take_if(|writer| *writer == id);
                sharers.taken -= sharers.locks.remove(&id).map_or(0, u32::from);
                if sharers.locks.is_empty() {
                    *self = sharers.writer.map_or(Self::Nobody, Self::One);
                }
            }
        }
    }
}
