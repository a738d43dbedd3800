//! The kinds of locks, by the words that orders to a worker use.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use quorlock_core::front::{Guard, Locker, Permit, ReadGuard};
use quorlock_tests::Random;

use super::TTL;

const SHORT_TTL: Duration = Duration::from_secs(1);

/// The kind that is acquired and released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Lock,
    Fenced,
    Read,
    /// A reader with a TTL of a second.
    ShortRead,
    FencedRead,
    /// Some of a number of names, chosen again each time.
    Several {
        names: usize,
        of: usize,
    },
    FencedSeveral {
        names: usize,
        of: usize,
    },
    /// One of a number of permits.
    Permit {
        of: u32,
    },
}

/// What is held.
pub(crate) enum Held {
    Guard(Guard),
    Reader(ReadGuard),
    Permit(Permit),
}

impl Kind {
    /// Blocks this thread until it has a lock of this kind.
    pub(crate) fn take(self, locker: &Locker, resource: &str, random: &mut Random) -> Held {
        self.take_for(TTL, locker, resource, random)
    }

    /// The same with another TTL.
    pub(crate) fn take_for(
        self,
        ttl: Duration,
        locker: &Locker,
        resource: &str,
        random: &mut Random,
    ) -> Held {
        let several = |names, of, random: &mut Random| locker.lock_all(choice(resource, names, of, random));
        let held = match self {
            Self::Lock => locker.lock(resource).ttl(ttl).wait().map(Held::Guard),
            Self::Fenced => locker.lock(resource).fenced().ttl(ttl).wait().map(Held::Guard),
            Self::Read => locker.read(resource).ttl(ttl).wait().map(Held::Reader),
            Self::ShortRead => locker.read(resource).ttl(SHORT_TTL).wait().map(Held::Reader),
            Self::FencedRead => locker.read(resource).fenced().ttl(ttl).wait().map(Held::Reader),
            Self::Several { names, of } => several(names, of, random).ttl(ttl).wait().map(Held::Guard),
            Self::FencedSeveral { names, of } => {
                several(names, of, random).fenced().ttl(ttl).wait().map(Held::Guard)
            }
            Self::Permit { of } => {
                let semaphore = locker.semaphore(resource, of).expect("a possible number of permits");
                semaphore.acquire().ttl(ttl).wait().map(Held::Permit)
            }
        };
        held.expect("a turn in time")
    }
}

impl Held {
    /// Blocks this thread until the lock is released. If the machine is too busy to answer the
    /// release, the lock is free only when its TTL is over, and the figures show that.
    pub(crate) fn give_back(self) {
        drop(match self {
            Self::Guard(guard) => guard.release().wait(),
            Self::Reader(reader) => reader.release().wait(),
            Self::Permit(permit) => permit.release().wait(),
        });
    }
}

/// Different names of a resource's parts.
fn choice(resource: &str, names: usize, of: usize, random: &mut Random) -> Vec<String> {
    let mut all: Vec<usize> = (0..of).collect();
    (0..names).map(|_| format!("{resource}:{}", all.swap_remove(random.below(all.len())))).collect()
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock => f.write_str("lock"),
            Self::Fenced => f.write_str("fenced"),
            Self::Read => f.write_str("read"),
            Self::ShortRead => f.write_str("short-read"),
            Self::FencedRead => f.write_str("fenced-read"),
            Self::Several { names, of } => write!(f, "several:{names}:{of}"),
            Self::FencedSeveral { names, of } => write!(f, "fenced-several:{names}:{of}"),
            Self::Permit { of } => write!(f, "permit:{of}"),
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let number = |part: &str| part.parse::<usize>().map_err(|_| format!("no kind of lock: {word}"));
        match word.split(':').collect::<Vec<_>>().as_slice() {
            ["lock"] => Ok(Self::Lock),
            ["fenced"] => Ok(Self::Fenced),
            ["read"] => Ok(Self::Read),
            ["short-read"] => Ok(Self::ShortRead),
            ["fenced-read"] => Ok(Self::FencedRead),
            ["several", names, of] => Ok(Self::Several { names: number(names)?, of: number(of)? }),
            ["fenced-several", names, of] => {
                Ok(Self::FencedSeveral { names: number(names)?, of: number(of)? })
            }
            ["permit", of] => {
                Ok(Self::Permit { of: of.parse().map_err(|_| format!("no kind of lock: {word}"))? })
            }
            _ => Err(format!("no kind of lock: {word}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_survive_printing_and_parsing() {
        for word in ["lock", "fenced", "read", "short-read", "several:3:10", "fenced-several:2:2", "permit:4"]
        {
            assert_eq!(word.parse::<Kind>().unwrap().to_string(), word);
        }
        for word in ["", "locks", "several:3", "permit:x"] {
            assert!(word.parse::<Kind>().is_err(), "{word}");
        }
    }

    #[test]
    fn a_choice_has_no_name_twice() {
        let mut chosen = choice("a", 10, 10, &mut Random::new(1));
        chosen.sort_unstable();
        chosen.dedup();
        assert_eq!(chosen.len(), 10);
    }
}
