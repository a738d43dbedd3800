//! The targets of one lock: one or several resources, and whether others may share them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use self::permits::Permits;
use super::{ConfigError, Group, Resource, Seats};

mod permits;

/// How a target is locked.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Mode {
    /// By one holder alone.
    Exclusive,
    /// Together with others of the same group.
    Shared(Group),
    /// By as many holders as there are permits, each with a permit of its own.
    #[non_exhaustive]
    Permit {
        /// The number of permits.
        of: u16,
        /// The number of permits that one holder takes.
        take: u16,
    },
}

impl Mode {
    /// Returns whether two holders with these modes may have one resource at the same time.
    pub fn is_compatible(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Shared(ours), Self::Shared(theirs)) if ours == theirs)
    }
}

/// One target of a lock, by name: an item of [`Locker::lock_all`](crate::front::Locker::lock_all).
///
/// Text and bytes become an exclusive target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    name: Vec<u8>,
    mode: Mode,
}

impl Target {
    /// Locks a resource alone: an exclusive lock.
    pub fn write(name: impl AsRef<[u8]>) -> Self {
        Self { name: name.as_ref().to_vec(), mode: Mode::Exclusive }
    }

    /// Locks a resource together with other readers.
    pub fn read(name: impl AsRef<[u8]>) -> Self {
        Self::share(name, Group::READERS)
    }

    /// Locks a resource together with others of this group.
    pub fn share(name: impl AsRef<[u8]>, group: Group) -> Self {
        Self { name: name.as_ref().to_vec(), mode: Mode::Shared(group) }
    }
}

impl<T: AsRef<[u8]>> From<T> for Target {
    fn from(name: T) -> Self {
        Self::write(name)
    }
}

/// The targets of one lock: all of them are held under one token, or none.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Targets(Inner);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Inner {
    /// One resource, exclusively, as for nearly every lock.
    One(Resource),
    All(Arc<All>),
    /// Permits of a semaphore.
    Permit(Arc<Permits>),
}

/// Several targets in the order of their keys, or one that is shared. No key occurs twice.
#[derive(PartialEq, Eq, Hash)]
struct All {
    first: (Resource, Mode),
    rest: Box<[(Resource, Mode)]>,
}

impl Targets {
    /// The most targets that are written. A master handles all of them in one script, and serves no
    /// other client meanwhile: 1,000 take about 3 ms.
    pub const MAX_WRITTEN: usize = 1024;
    /// The most targets that are read. Each takes a master ten times as long as one that is
    /// written.
    pub const MAX_READ: usize = 128;
    /// The most permits of one semaphore.
    pub const MAX_PERMITS: u16 = 1024;
    /// The most permits that one request takes.
    pub const MAX_PERMITS_AT_ONCE: u16 = Seats::MOST;
    /// The most bytes of all keys together: every request contains them.
    pub const MAX_BYTES: usize = 256 * 1024;

    /// Collects the targets of one lock. For a resource that is named twice, the stronger mode
    /// counts.
    pub(crate) fn new(prefix: &str, targets: impl IntoIterator<Item = Target>) -> Result<Self, ConfigError> {
        let mut all = BTreeMap::new();
        let mut bytes = 0;
        for Target { name, mode } in targets {
            let resource = Resource::with_prefix(prefix, &name)?;
            match all.get(&resource) {
                None => bytes += resource.key().len(),
                Some(other) if *other == mode || *other == Mode::Exclusive => continue,
                Some(_) if mode == Mode::Exclusive => {}
                Some(_) => return Err(ConfigError::ConflictingGroups { resource }),
            }
            all.insert(resource, mode);
            if bytes > Self::MAX_BYTES || all.len() > Self::MAX_WRITTEN + Self::MAX_READ {
                break;
            }
        }
        let written = all.values().filter(|mode| **mode == Mode::Exclusive).count();
        let read = all.len() - written;
        if bytes > Self::MAX_BYTES || written > Self::MAX_WRITTEN || read > Self::MAX_READ {
            return Err(ConfigError::TooManyTargets);
        }
        let mut all = all.into_iter();
        match all.next() {
            None => Err(ConfigError::NoTarget),
            Some((resource, Mode::Exclusive)) if all.len() == 0 => Ok(resource.into()),
            Some(first) => Ok(Self(Inner::All(Arc::new(All { first, rest: all.collect() })))),
        }
    }

    /// The same resources, with exclusive ones turned into readers' ones.
    pub(crate) fn downgraded(&self) -> Self {
        let read = |resource: &Resource, mode: &Mode| match mode {
            Mode::Exclusive => (resource.clone(), Mode::Shared(Group::READERS)),
            mode => (resource.clone(), mode.clone()),
        };
        let mut all = self.iter().map(|(resource, mode)| read(resource, mode));
        let first = all.next().unwrap_or_else(|| read(self.first(), &Mode::Exclusive));
        Self(Inner::All(Arc::new(All { first, rest: all.collect() })))
    }

    /// Whether these targets include all of `asked`, each in the same mode or exclusively.
    pub(crate) fn covers(&self, asked: &Self) -> bool {
        self.has_all(asked, |mode, asked| *mode == Mode::Exclusive || mode == asked)
    }

    /// Whether these targets, once [downgraded](Self::downgraded), include all of `asked`, each in
    /// the same mode.
    pub(crate) fn covers_downgraded(&self, asked: &Self) -> bool {
        let readers = Mode::Shared(Group::READERS);
        self.has_all(asked, |mode, asked| asked == if *mode == Mode::Exclusive { &readers } else { mode })
    }

    /// Whether this has each resource of `asked` in a mode that `is_enough`. Both are in the order
    /// of their keys.
    fn has_all(&self, asked: &Self, is_enough: impl Fn(&Mode, &Mode) -> bool) -> bool {
        let mut all = self.iter();
        asked.iter().all(|(resource, asked)| {
            all.find(|(other, _)| *other >= resource)
                .is_some_and(|(other, mode)| other == resource && is_enough(mode, asked))
        })
    }

    /// A digest of targets and modes, to notice a mismatch when a lock is resumed. It is zero for
    /// any one resource that is locked exclusively: there, only the masters notice another name.
    /// (FNV-1a, Fowler, Noll and Vo 1991.)
    pub(crate) fn digest(&self) -> u32 {
        if self.as_one().is_some() {
            return 0;
        }
        let mut hash = 0x811c_9dc5;
        let mut add = |bytes: &[u8]| {
            for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
                hash = (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
            }
        };
        for (resource, mode) in self.iter() {
            add(resource.key());
            match mode {
                Mode::Exclusive => add(b"w"),
                Mode::Shared(group) => {
                    add(b"s");
                    add(group.name());
                }
                Mode::Permit { .. } => add(b"p"),
            }
        }
        hash.max(1)
    }

    /// The name under which callers wait, and the mode, if there is only one such name.
    pub(crate) fn only(&self) -> Option<(&Resource, &Mode)> {
        match &self.0 {
            Inner::One(resource) => Some((resource, &Mode::Exclusive)),
            Inner::All(all) => all.rest.is_empty().then_some((&all.first.0, &all.first.1)),
            Inner::Permit(permits) => Some((&permits.queue, &permits.mode)),
        }
    }

    /// The names under which callers wait, and the mode of each.
    pub(crate) fn queues(&self) -> impl ExactSizeIterator<Item = (&Resource, &Mode)> {
        match &self.0 {
            Inner::Permit(permits) => Iter { first: Some((&permits.queue, &permits.mode)), rest: [].iter() },
            _ => self.entries(),
        }
    }

    /// Returns the resource, if there is only one and it is locked exclusively.
    pub(crate) fn as_one(&self) -> Option<&Resource> {
        match &self.0 {
            Inner::One(resource) => Some(resource),
            Inner::All(_) | Inner::Permit(_) => None,
        }
    }

    /// Returns each resource and how it is locked, in the order of their keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Resource, &Mode)> {
        self.entries()
    }

    /// Returns each resource in the order of the scripts' keys: those that are locked exclusively
    /// come first.
    pub(crate) fn written_first(&self) -> impl Iterator<Item = (&Resource, &Mode)> {
        let of = |written: bool| {
            self.entries().filter(move |(_, mode)| matches!(mode, Mode::Exclusive) == written)
        };
        of(true).chain(of(false))
    }

    fn entries(&self) -> Iter<'_> {
        match &self.0 {
            Inner::One(resource) => Iter { first: Some((resource, &Mode::Exclusive)), rest: [].iter() },
            Inner::All(all) => Iter { first: Some((&all.first.0, &all.first.1)), rest: all.rest.iter() },
            Inner::Permit(permits) => Iter { first: Some((&permits.name, &permits.mode)), rest: [].iter() },
        }
    }

    /// Returns each resource, in the order of their keys.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = &Resource> {
        self.iter().map(|(resource, _)| resource)
    }

    /// Returns the first resource, in the order of their keys.
    pub fn first(&self) -> &Resource {
        match &self.0 {
            Inner::One(resource) => resource,
            Inner::All(all) => &all.first.0,
            Inner::Permit(permits) => &permits.name,
        }
    }

    /// Returns whether every target is shared with a group.
    pub fn is_shared(&self) -> bool {
        self.iter().all(|(_, mode)| matches!(mode, Mode::Shared(_)))
    }

    /// Returns whether any target is shared with a group.
    pub fn has_shared(&self) -> bool {
        self.iter().any(|(_, mode)| matches!(mode, Mode::Shared(_)))
    }
}

/// An iterator that needs no allocation, since nearly every lock has one target.
struct Iter<'a> {
    first: Option<(&'a Resource, &'a Mode)>,
    rest: std::slice::Iter<'a, (Resource, Mode)>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Resource, &'a Mode);

    fn next(&mut self) -> Option<Self::Item> {
        self.first.take().or_else(|| self.rest.next().map(|(resource, mode)| (resource, mode)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::from(self.first.is_some()) + self.rest.len();
        (left, Some(left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl From<Resource> for Targets {
    /// An exclusive lock of one resource.
    fn from(resource: Resource) -> Self {
        Self(Inner::One(resource))
    }
}

impl fmt::Display for Targets {
    /// Prints the first name, and how many more there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first().fmt(f)?;
        match self.iter().len() - 1 {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl fmt::Debug for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(resource, mode)| (resource.to_string(), mode))).finish()
    }
}

#[cfg(test)]
mod tests;
