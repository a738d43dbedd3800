//! What servers do with keys when their memory is full.

use std::fmt;

/// What a server does when its memory limit is reached (`maxmemory-policy`; Redis documentation,
/// "Key eviction").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum EvictionPolicy {
    /// `noeviction`: writes are refused.
    NoEviction,
    /// `allkeys-lru`: any key, the least recently used first.
    AllKeysLru,
    /// `allkeys-lfu`: any key, the least frequently used first.
    AllKeysLfu,
    /// `allkeys-random`: any key.
    AllKeysRandom,
    /// `volatile-lru`: keys with a TTL, the least recently used first.
    VolatileLru,
    /// `volatile-lfu`: keys with a TTL, the least frequently used first.
    VolatileLfu,
    /// `volatile-random`: keys with a TTL.
    VolatileRandom,
    /// `volatile-ttl`: keys with a TTL, the nearest end first.
    VolatileTtl,
    /// A name that this version does not know. It is treated as a policy that removes keys.
    Unknown,
}

impl EvictionPolicy {
    const NAMED: [(&str, Self); 8] = [
        ("noeviction", Self::NoEviction),
        ("allkeys-lru", Self::AllKeysLru),
        ("allkeys-lfu", Self::AllKeysLfu),
        ("allkeys-random", Self::AllKeysRandom),
        ("volatile-lru", Self::VolatileLru),
        ("volatile-lfu", Self::VolatileLfu),
        ("volatile-random", Self::VolatileRandom),
        ("volatile-ttl", Self::VolatileTtl),
    ];

    /// Returns the policy of this name, as in `maxmemory-policy`, or `None` if it is not known.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, policy)| *policy)
    }
}

impl fmt::Display for EvictionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMED.iter().find(|(_, policy)| policy == self).map(|(name, _)| *name);
        f.write_str(name.unwrap_or("an unknown policy"))
    }
}
