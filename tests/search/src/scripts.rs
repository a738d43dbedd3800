//! The effects of the scripts of `wire::script` on the resources of a master. Each script is one
//! step.

use quorlock_core::internals::Action as Does;

use super::item::{Item, Said};
use super::places::{Key, Place, Places, RESOURCES};
use super::scenario::{Aim, Flaw};

/// The counters of a master, used if grants are numbered.
pub(super) type Counters = [u8; RESOURCES];

/// One request, as a master executes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// The targets of its claim.
    pub(super) aims: &'static [Aim],
    /// The token that it would set, with its life.
    pub(super) own: Key,
    pub(super) item: Item,
    /// Whether one of the targets is enough.
    pub(super) takes_any: bool,
    pub(super) flaw: Option<Flaw>,
}

impl Call {
    /// Runs the request, without counters if grants are not numbered.
    pub(super) fn run(self, places: &mut Places, counters: Option<&mut Counters>) -> Said {
        match *self.aims {
            _ if self.takes_any && self.item.action() == Does::Acquire => self.run_take(places),
            [Aim::Write(resource)] => {
                let counter = counters.map(|counters| of(counters, resource));
                self.run_one(of(places, resource), counter)
            }
            _ => self.run_all(places, counters),
        }
    }

    /// A master with this claim and nothing else.
    pub(super) fn alone(self) -> Places {
        let mut places = Places::default();
        self.take(&mut places);
        places
    }

    /// `SET NX PX` and the scripts of one key.
    fn run_one(self, place: &mut Place, mut counter: Option<&mut u8>) -> Said {
        let Self { own, item, .. } = self;
        let mut raise = |least: u8| {
            let counter = counter.as_deref_mut()?;
            *counter = least.max(*counter);
            Some(*counter)
        };
        let is_ours = place.is_written_by(own);
        match item.action() {
            Does::Acquire if place.is_free() => {
                let number = raise(0).and_then(|number| raise(number + 1));
                place.write(own);
                number.map_or(Said::Yes, Said::Counted)
            }
            Does::Acquire => match raise(0) {
                Some(number) if is_ours => Said::Counted(number),
                // Scripts report the holder; `SET NX` does not.
                Some(_) => Said::Holder,
                None => Said::No,
            },
            Does::Heal if place.is_free() => {
                raise(item.number());
                place.write(own);
                Said::Yes
            }
            Does::Raise if is_ours => raise(item.number()).map_or(Said::No, Said::Counted),
            Does::Extend if is_ours => {
                raise(item.number());
                place.write(own);
                Said::Yes
            }
            Does::Release | Does::Undo if is_ours => {
                place.clear();
                Said::Yes
            }
            Does::Undo if !place.is_free() => Said::Holder,
            _ => Said::No,
        }
    }

    /// The script of semaphores.
    fn run_take(self, places: &mut Places) -> Said {
        let seats = || self.aims.iter().map(|aim| aim.resource());
        if seats().any(|seat| of(places, seat).is_written_by(self.own)) {
            return Said::Holder;
        }
        let free = seats().find(|seat| of(places, *seat).is_free());
        let Some(seat) = free else { return Said::Holder };
        of(places, seat).write(self.own);
        Said::Seat(u8::try_from(seat).unwrap_or(u8::MAX))
    }

    /// The scripts of several targets, of which some may be read.
    fn run_all(self, places: &mut Places, counters: Option<&mut Counters>) -> Said {
        let Self { aims, item, .. } = self;
        let all = |holds: fn(&Self, Aim, &Place) -> bool| {
            let mut each = aims.iter().map(|aim| holds(&self, *aim, seen(places, *aim)));
            if self.flaw == Some(Flaw::BatchExtendedByAnyKey) && item.action() == Does::Extend {
                each.any(|holds| holds)
            } else {
                each.all(|holds| holds)
            }
        };
        match item.action() {
            Does::Acquire if all(Self::is_open) => {
                let number = counters.map(|counters| self.count(counters));
                self.take(places);
                number.map_or(Said::Yes, Said::Counted)
            }
            Does::Acquire => Said::Holder,
            Does::Raise if all(Self::is_ours) => {
                let Some(counters) = counters else { return Said::No };
                let largest = self.raise(counters);
                Said::Counted(largest.unwrap_or(item.number()))
            }
            Does::Extend if all(Self::is_ours) => {
                counters.and_then(|counters| self.raise(counters));
                self.take(places);
                Said::Yes
            }
            Does::Heal if all(Self::is_not_foreign) => {
                counters.and_then(|counters| self.raise(counters));
                self.take(places);
                Said::Yes
            }
            Does::Release | Does::Undo => {
                // Each target that is ours is removed, even if another one is not ours.
                let left = aims.iter().filter(|aim| self.leave(**aim, of(places, aim.resource()))).count();
                let is_held = aims.iter().any(|aim| !seen(places, *aim).is_free());
                match item.action() {
                    _ if left == aims.len() => Said::Yes,
                    Does::Undo if is_held => Said::Holder,
                    _ => Said::No,
                }
            }
            _ => Said::No,
        }
    }

    /// Whether an acquisition may take this target.
    fn is_open(&self, aim: Aim, place: &Place) -> bool {
        match aim {
            Aim::Write(_) => place.is_free(),
            Aim::Read(_) => place.written().is_none() && place.of(self.own).is_none(),
        }
    }

    /// Whether this target is ours. A read target is also ours if our token is there as a writer's:
    /// this master has not received the downgrade yet.
    fn is_ours(&self, aim: Aim, place: &Place) -> bool {
        match aim {
            Aim::Write(_) => place.is_written_by(self.own),
            Aim::Read(_) if self.flaw == Some(Flaw::ReadersCounted) => place.entry(0).is_some(),
            Aim::Read(_) => place.of(self.own).is_some(),
        }
    }

    fn is_not_foreign(&self, aim: Aim, place: &Place) -> bool {
        match aim {
            Aim::Write(_) => place.is_free() || place.is_written_by(self.own),
            Aim::Read(_) => place.written().is_none_or(|key| key.is_of(self.own)),
        }
    }

    /// Sets or extends all targets.
    fn take(&self, places: &mut Places) {
        for aim in self.aims {
            let place = of(places, aim.resource());
            match aim {
                // Only a flawed master extends a part of a batch.
                _ if self.item.action() == Does::Extend && !self.is_ours(*aim, place) => {}
                Aim::Write(_) => place.write(self.own),
                Aim::Read(_) => self.share(place),
            }
        }
    }

    /// Sets our entry. The key lives until the latest end of an entry.
    fn share(&self, place: &mut Place) {
        let entry = place.enter(self.own);
        place.shared = match self.flaw {
            Some(Flaw::KeyEndsWithTheLastReader) => self.own.life,
            _ => place.shared.max(entry.life),
        };
        if self.flaw == Some(Flaw::ReadersCounted) {
            place.level();
        }
    }

    /// Removes this target if it is ours, and returns whether it was.
    fn leave(&self, aim: Aim, place: &mut Place) -> bool {
        let was_ours = self.is_ours(aim, place);
        if place.is_written_by(self.own) {
            place.clear();
        } else if was_ours {
            let own = place.of(self.own).or_else(|| place.keys().last());
            place.keep(|key| own.is_none_or(|own| !key.is_of(own)));
            // A sentinel without an entry is removed, with its expiry.
            place.shared = place.longest();
        }
        was_ours
    }

    /// Increments the counters for a grant, and returns its number.
    fn count(&self, counters: &mut Counters) -> u8 {
        let most = self.aims.iter().map(|aim| *of(counters, aim.resource())).max().unwrap_or(0);
        let writes = self.aims.iter().any(|aim| !aim.is_shared());
        let number = if writes { most + 1 } else { most.max(1) };
        for aim in self.aims {
            let counter = of(counters, aim.resource());
            *counter = match self.flaw {
                Some(Flaw::BatchNumbersEachKey) => *counter + 1,
                _ => number,
            };
        }
        number
    }

    /// Raises all counters to the number, and returns the largest counter of the written targets.
    fn raise(&self, counters: &mut Counters) -> Option<u8> {
        for aim in self.aims {
            let counter = of(counters, aim.resource());
            *counter = self.item.number().max(*counter);
        }
        let written = self.aims.iter().filter(|aim| !aim.is_shared());
        written.map(|aim| *of(counters, aim.resource())).max()
    }
}

fn of<T>(all: &mut [T; RESOURCES], resource: usize) -> &mut T {
    all.get_mut(resource).expect("a resource of the scenario")
}

fn seen(places: &Places, aim: Aim) -> &Place {
    places.get(aim.resource()).expect("a resource of the scenario")
}
