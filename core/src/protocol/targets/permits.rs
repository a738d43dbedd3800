//! Permits of a semaphore as a lock's targets.

use std::sync::Arc;

use super::{All, Inner, Mode, Targets};
use crate::protocol::{ConfigError, Resource, Seats};

#[derive(PartialEq, Eq, Hash)]
pub(super) struct Permits {
    pub(super) name: Resource,
    /// The name under which callers wait for a permit. No lock has this name.
    pub(super) queue: Resource,
    pub(super) mode: Mode,
    /// The held permits.
    pub(super) seats: Seats,
}

impl Targets {
    /// The target of one permit of a semaphore with `of` permits.
    pub(crate) fn permit(name: Resource, of: u32) -> Result<Self, ConfigError> {
        let permits = u16::try_from(of).ok().filter(|of| (1..=Self::MAX_PERMITS).contains(of));
        let of = permits.ok_or(ConfigError::UnusablePermits { permits: of })?;
        let (queue, mode) = (name.seats(), Mode::Permit { of, take: 1 });
        Ok(Self(Inner::Permit(Arc::new(Permits { name, queue, mode, seats: Seats::NONE }))))
    }

    /// `take` permits of the semaphore at once.
    pub(crate) fn permits(&self, take: u32) -> Result<Self, ConfigError> {
        let Some((name, of, _)) = self.as_permit() else { return Ok(self.clone()) };
        let most = of.min(Self::MAX_PERMITS_AT_ONCE);
        let taken = u16::try_from(take).ok().filter(|take| (1..=most).contains(take));
        let refused = ConfigError::UnusablePermitsAtOnce { permits: take, most: most.into() };
        let (queue, mode) = (name.seats(), Mode::Permit { of, take: taken.ok_or(refused)? });
        Ok(Self(Inner::Permit(Arc::new(Permits { name: name.clone(), queue, mode, seats: Seats::NONE }))))
    }

    /// Returns the semaphore's name, its number of permits, and how many to take, if the targets
    /// are permits.
    pub(crate) fn as_permit(&self) -> Option<(&Resource, u16, u16)> {
        match &self.0 {
            Inner::Permit(permits) => match permits.mode {
                Mode::Permit { of, take } => Some((&permits.name, of, take)),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn is_permit(&self) -> bool {
        matches!(self.0, Inner::Permit(_))
    }

    /// The same targets with these permits.
    pub(crate) fn at_seats(&self, seats: Seats) -> Self {
        match &self.0 {
            Inner::Permit(permits) => {
                let Permits { name, queue, mode, .. } = &**permits;
                let [name, queue] = [name, queue].map(Clone::clone);
                Self(Inner::Permit(Arc::new(Permits { name, queue, mode: mode.clone(), seats })))
            }
            _ => self.clone(),
        }
    }

    /// The held permits.
    pub(crate) fn seats(&self) -> Seats {
        match &self.0 {
            Inner::Permit(permits) => permits.seats,
            _ => Seats::NONE,
        }
    }

    /// The locks for these permits of the semaphore `name`, under one token.
    pub(crate) fn of_seats(name: &Resource, seats: Seats) -> Self {
        let mut all: Vec<_> = seats.numbers().map(|seat| (name.seat(seat.into()), Mode::Exclusive)).collect();
        all.sort_unstable();
        let mut all = all.into_iter();
        match all.next() {
            Some((seat, _)) if all.len() == 0 => seat.into(),
            Some(first) => Self(Inner::All(Arc::new(All { first, rest: all.collect() }))),
            None => name.clone().into(),
        }
    }
}
