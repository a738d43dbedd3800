//! What a client's program holds, and what it hands over.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Deref;
use std::rc::Rc;
use std::time::Duration;

use quorlock_core::front::{Guard, HandOverError, Permit, Permits, ReadGuard, Release};
use quorlock_core::internals::seats_of;
use quorlock_core::{Mode, Resumption, Target, Targets};

/// A lock with its handles, of which there is at least one.
pub(super) struct Locked {
    latest: Held,
    /// The earlier ones.
    others: Vec<Held>,
}

pub(super) enum Held {
    Guard(Guard),
    Reader(ReadGuard),
    Permit(Permit),
    Permits(Permits),
}

impl Held {
    pub(super) fn release(self) -> Release {
        match self {
            Self::Guard(guard) => guard.release(),
            Self::Reader(reader) => reader.release(),
            Self::Permit(permit) => permit.release(),
            Self::Permits(permits) => permits.release(),
        }
    }

    fn release_after(self, at_least: Duration) -> Release {
        match self {
            Self::Guard(guard) => guard.release_after(at_least),
            Self::Reader(reader) => reader.release_after(at_least),
            Self::Permit(permit) => permit.release_after(at_least),
            Self::Permits(permits) => permits.release_after(at_least),
        }
    }

    fn share(&self) -> Self {
        match self {
            Self::Reader(reader) => Self::Reader(reader.share()),
            _ => Self::Guard(Guard::share(self)),
        }
    }

    /// Downgrades an exclusive lock to a shared one, if the library allows that. Other locks stay
    /// as they are.
    fn downgrade(self) -> Self {
        match self {
            Self::Guard(guard) => guard.downgrade().map_or_else(Self::Guard, Self::Reader),
            held => held,
        }
    }

    fn hand_over(self) -> Result<Resumption, HandOverError> {
        match self {
            Self::Guard(guard) => guard.hand_over(),
            Self::Reader(reader) => reader.hand_over(),
            Self::Permit(permit) => permit.hand_over(),
            Self::Permits(permits) => permits.hand_over(),
        }
    }
}

impl From<Guard> for Held {
    fn from(guard: Guard) -> Self {
        Self::Guard(guard)
    }
}

impl From<Permit> for Held {
    fn from(permit: Permit) -> Self {
        Self::Permit(permit)
    }
}

impl From<Permits> for Held {
    fn from(permits: Permits) -> Self {
        Self::Permits(permits)
    }
}

impl Deref for Held {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        match self {
            Self::Guard(guard) => guard,
            Self::Reader(reader) => reader,
            Self::Permit(permit) => permit,
            Self::Permits(permits) => permits,
        }
    }
}

impl Locked {
    pub(super) fn new(guard: Held) -> Self {
        Self { latest: guard, others: Vec::new() }
    }

    /// Adds a handle of the same lock.
    pub(super) fn add(&mut self, handle: Held) {
        self.others.push(std::mem::replace(&mut self.latest, handle));
    }

    /// Makes another handle.
    pub(super) fn share(&mut self) {
        self.add(self.latest.share());
    }

    /// Whether it may be a lock of these targets: a reader's lock has no exclusive ones.
    pub(super) fn is_of(&self, targets: &Targets) -> bool {
        let is_alone = |(_, mode): (_, &Mode)| matches!(mode, Mode::Exclusive);
        !matches!(self.latest, Held::Reader(_)) || !targets.iter().any(is_alone)
    }

    /// Downgrades the lock as its only handle.
    pub(super) fn downgrade(self) -> Self {
        Self { latest: self.latest.downgrade(), ..self }
    }

    /// Gives the latest handle up. The release is one of the lock if there is no other.
    pub(super) fn release(self, at_least: Option<Duration>) -> (Release, Option<Self>) {
        let Self { latest, mut others } = self;
        let release = match at_least {
            Some(at_least) => latest.release_after(at_least),
            None => latest.release(),
        };
        (release, others.pop().map(|latest| Self { latest, others }))
    }

    /// Hands the lock over, unless it has other handles.
    pub(super) fn hand_over(self) -> Result<Resumption, Option<Box<Self>>> {
        let Self { latest, others } = self;
        latest.hand_over().map_err(|error| {
            let latest = Held::Guard(error.into_guard()?);
            Some(Box::new(Self { latest, others }))
        })
    }
}

impl Deref for Locked {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        &self.latest
    }
}

/// A lock that was handed over.
#[derive(Clone)]
pub(super) struct Handed {
    pub(super) targets: Targets,
    pub(super) proof: Resumption,
}

impl Handed {
    /// What to request to resume it, unless it is one of permits.
    pub(super) fn wanted(&self) -> Vec<Target> {
        wanted(&self.targets)
    }

    /// The name and the number of permits of the semaphore of which it is some, and how many.
    pub(super) fn permits(&self) -> Option<(&[u8], u32, u32)> {
        self.targets.iter().find_map(|(resource, mode)| match mode {
            Mode::Permit { of, .. } => {
                let many = u32::try_from(seats_of(&self.targets).len()).unwrap_or(1);
                Some((resource.name(), (*of).into(), many))
            }
            _ => None,
        })
    }

    /// The name of its resource, if there is only one and it is locked exclusively.
    pub(super) fn as_one(&self) -> Option<&[u8]> {
        let mut locked = self.targets.iter();
        match (locked.next(), locked.next()) {
            (Some((resource, Mode::Exclusive)), None) => Some(resource.name()),
            _ => None,
        }
    }
}

/// What to request to get these targets, unless they are permits.
pub(super) fn wanted(targets: &Targets) -> Vec<Target> {
    let target = |(resource, mode): (&quorlock_core::Resource, &Mode)| match mode {
        Mode::Shared(group) if group.name().is_empty() => Target::read(resource.name()),
        Mode::Shared(group) => Target::share(resource.name(), group.clone()),
        _ => Target::write(resource.name()),
    };
    targets.iter().map(target).collect()
}

/// Locks that were handed over, the first one first.
pub(super) type Letterbox = Rc<RefCell<VecDeque<Handed>>>;
