//! What a step of a client locks, and what a guard holds, in the simulation's own words.

use std::fmt;

use quorlock_core::internals::seats_of;
use quorlock_core::{Group, Mode, Resource, Target, Targets};

/// The number of resources that one step may name.
pub const RESOURCES: usize = 4;

/// How a step locks one resource.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Access {
    /// Not at all.
    None,
    /// Exclusively.
    Write,
    /// Together with other readers.
    Read,
    /// Together with others of the group with this number, which excludes readers and all other
    /// groups.
    Share(u8),
    /// By a permit of the semaphore with its name, which has this number of permits. Such a step
    /// names one resource.
    Permit(u8),
    /// By several permits of such a semaphore at once.
    Permits {
        /// How many permits the semaphore has.
        of: u8,
        /// How many are requested.
        take: u8,
    },
}

impl Access {
    /// The target with this name; `None` if the resource is not locked. A permit is not a target.
    fn target(self, name: &str) -> Option<Target> {
        match self {
            Self::None | Self::Permit(_) | Self::Permits { .. } => None,
            Self::Write => Some(Target::write(name)),
            Self::Read => Some(Target::read(name)),
            Self::Share(group) => {
                Group::new(format!("group{group}")).ok().map(|group| Target::share(name, group))
            }
        }
    }
}

/// The name of the resource with this number.
pub(super) fn resource(number: u8) -> String {
    format!("resource{number}")
}

/// The exclusive lock of the resource with this number.
pub(super) fn one(number: u8) -> [Access; RESOURCES] {
    let mut accesses = [Access::None; RESOURCES];
    if let Some(access) = accesses.get_mut(usize::from(number)) {
        *access = Access::Write;
    }
    accesses
}

/// The targets of a step.
pub(super) fn targets(accesses: [Access; RESOURCES]) -> Vec<Target> {
    (0..).zip(accesses).filter_map(|(number, access)| access.target(&resource(number))).collect()
}

/// If a step is for permits: the number of the semaphore, how many permits it has, and how many are
/// requested.
pub(super) fn permits(accesses: [Access; RESOURCES]) -> Option<(u8, u8, u8)> {
    (0..).zip(accesses).find_map(|(number, access)| match access {
        Access::Permit(of) => Some((number, of, 1)),
        Access::Permits { of, take } => Some((number, of, take)),
        _ => None,
    })
}

/// Whether a guard names the resources of a step, all of them, and no others if it `is_whole`: an
/// owner may get a handle of a larger lock.
pub(super) fn are_targets(accesses: [Access; RESOURCES], resources: &[&Resource], is_whole: bool) -> bool {
    let wanted = (0u8..).zip(accesses).filter(|(_, access)| *access != Access::None);
    let wanted: Vec<_> = wanted.map(|(number, _)| resource(number).into_bytes()).collect();
    let is_held = |name: &Vec<u8>| resources.iter().any(|held| held.name() == name.as_slice());
    wanted.iter().all(is_held) && (!is_whole || wanted.len() == resources.len())
}

/// Whether two guards must not be valid at once: they have a resource in common, and do not share
/// it as one group; or they have the same permit. This is the observer's own rule, not that of the
/// code under test.
pub(super) fn conflict(one: &Targets, other: &Targets) -> bool {
    one.iter().any(|(resource, mode)| {
        other.iter().any(|(theirs, their_mode)| {
            let together = match (mode, their_mode) {
                (Mode::Shared(group), Mode::Shared(their_group)) => group.name() == their_group.name(),
                (Mode::Permit { .. }, Mode::Permit { .. }) => {
                    let theirs = seats_of(other);
                    !seats_of(one).iter().any(|seat| theirs.contains(seat))
                }
                // A semaphore is independent of a lock of the same name.
                (Mode::Permit { .. }, _) | (_, Mode::Permit { .. }) => true,
                _ => false,
            };
            resource.key() == theirs.key() && !together
        })
    })
}

/// The semaphore of which a guard holds a permit, and the number of permits that the guard's client
/// gave.
pub(super) fn semaphore(targets: &Targets) -> Option<(&Resource, u16)> {
    targets.iter().find_map(|(resource, mode)| match mode {
        Mode::Permit { of, .. } => Some((resource, *of)),
        _ => None,
    })
}

/// The number of guards of each kind that were handed out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Kinds {
    /// Guards that hold one resource exclusively.
    pub exclusive: u64,
    /// Guards that hold several resources, all of them exclusively.
    pub several: u64,
    /// Guards that hold one or several resources as a reader.
    pub readers: u64,
    /// Guards that share one or several resources, at least one of them in a group.
    pub groups: u64,
    /// Guards that hold several resources, some of them exclusively and some shared.
    pub mixed: u64,
    /// Guards that hold permits.
    pub permits: u64,
    /// Guards of any of these kinds that were downgraded while they were held.
    pub downgraded: u64,
}

impl Kinds {
    /// Counts one more guard of these targets.
    pub(super) fn count(&mut self, targets: &Targets) {
        if semaphore(targets).is_some() {
            self.permits += 1;
            return;
        }
        let (mut alone, mut read, mut shared) = (0, 0, 0);
        for (_, mode) in targets.iter() {
            match mode {
                Mode::Shared(group) if group.name().is_empty() => read += 1,
                Mode::Shared(_) => shared += 1,
                _ => alone += 1,
            }
        }
        let place = match (alone, read, shared) {
            (1, 0, 0) => &mut self.exclusive,
            (_, 0, 0) => &mut self.several,
            (0, _, 0) => &mut self.readers,
            (0, ..) => &mut self.groups,
            _ => &mut self.mixed,
        };
        *place += 1;
    }

    /// The smallest number of guards of any kind.
    pub fn least(&self) -> u64 {
        let Self { exclusive, several, readers, groups, mixed, permits, downgraded } = *self;
        exclusive.min(several).min(readers).min(groups).min(mixed).min(permits).min(downgraded)
    }
}

impl std::ops::AddAssign for Kinds {
    fn add_assign(&mut self, other: Self) {
        self.exclusive += other.exclusive;
        self.several += other.several;
        self.readers += other.readers;
        self.groups += other.groups;
        self.mixed += other.mixed;
        self.permits += other.permits;
        self.downgraded += other.downgraded;
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { exclusive, several, readers, groups, mixed, permits, downgraded } = self;
        write!(
            f,
            "guards: {exclusive} exclusive, {several} exclusive over several resources, {readers} of readers, \
             {groups} shared in groups, {mixed} partly exclusive and partly shared, {permits} of permits; \
             {downgraded} of all these were downgraded"
        )
    }
}

/// Targets as timelines show them: an exclusive one by its name alone.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Shown(pub(super) Targets);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (resource, mode)) in self.0.iter().enumerate() {
            let mut comma = if place == 0 { "" } else { ", " };
            match mode {
                Mode::Shared(group) => write!(f, "{comma}{resource} shared by {group:?}")?,
                Mode::Permit { of, .. } => {
                    for seat in seats_of(&self.0) {
                        write!(f, "{comma}permit {seat} of {of} of {resource}")?;
                        comma = ", ";
                    }
                }
                _ => write!(f, "{comma}{resource}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use quorlock_core::Config;

    use super::*;

    fn of(accesses: [Access; RESOURCES]) -> Targets {
        Config::builder(["redis://m"]).build().unwrap().targets(targets(accesses)).unwrap()
    }

    #[test]
    fn guards_conflict_on_a_common_resource_that_they_do_not_share_as_one_group() {
        use Access::{None, Read, Share, Write};
        let [writes, reads] = [[Write, None, None, None], [Read, None, None, None]].map(of);
        let [first, second] = [0, 1].map(|group| of([Share(group), None, None, None]));
        let mixed = of([Read, Write, None, None]);
        for (one, other) in [(&writes, &writes), (&writes, &reads), (&reads, &first), (&first, &second)] {
            assert!(conflict(one, other) && conflict(other, one), "{one:?} {other:?}");
        }
        for (one, other) in [(&reads, &reads), (&first, &first), (&reads, &mixed)] {
            assert!(!conflict(one, other) && !conflict(other, one), "{one:?} {other:?}");
        }
        assert!(conflict(&mixed, &mixed) && conflict(&writes, &mixed));
        assert!(!conflict(&of([None, Write, None, None]), &writes));
    }

    #[test]
    fn each_guard_counts_for_one_kind() {
        use Access::{None, Read, Share, Write};
        let mut kinds = Kinds::default();
        for accesses in [
            [Write, None, None, None],
            [Write, Write, None, None],
            [Read, Read, None, None],
            [Read, Share(0), None, None],
            [Write, Read, None, None],
        ] {
            assert_eq!(kinds.least(), 0);
            let targets = of(accesses);
            let resources: Vec<_> = targets.resources().collect();
            assert!(are_targets(accesses, &resources, true));
            assert!(!are_targets([Write, None, None, Read], &resources, false));
            kinds.count(&targets);
        }
        // These have their own tests.
        (kinds.permits, kinds.downgraded) = (1, 1);
        assert_eq!(kinds.least(), 1);
    }
}
