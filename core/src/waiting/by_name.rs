//! Values by resource, found by a digest of its name.
//!
//! Names of locks usually begin alike. A tree in their order reads most of a name at each step; one
//! in the order of their digests compares numbers, and names only if those are equal.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::protocol::Resource;

/// A map from resources to values.
#[derive(Clone, Debug)]
pub(super) struct ByName<T> {
    buckets: BTreeMap<u64, Bucket<T>>,
    len: usize,
}

/// The resources of one digest.
#[derive(Clone, Debug)]
enum Bucket<T> {
    One(Resource, T),
    /// An attacker can create names with the same digest. A tree finds even one of those in
    /// logarithmic time.
    Several(BTreeMap<Resource, T>),
}

impl<T> ByName<T> {
    pub(super) fn new() -> Self {
        Self { buckets: BTreeMap::new(), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&T> {
        match self.buckets.get(&digest(key))? {
            Bucket::One(resource, value) => (resource.key() == key).then_some(value),
            Bucket::Several(values) => values.get(key),
        }
    }

    pub(super) fn get_mut(&mut self, key: &[u8]) -> Option<&mut T> {
        match self.buckets.get_mut(&digest(key))? {
            Bucket::One(resource, value) => (resource.key() == key).then_some(value),
            Bucket::Several(values) => values.get_mut(key),
        }
    }

    /// The resource must have no value.
    pub(super) fn insert(&mut self, resource: Resource, value: T) {
        self.len += 1;
        match self.buckets.entry(digest(resource.key())) {
            Entry::Vacant(place) => {
                place.insert(Bucket::One(resource, value));
            }
            Entry::Occupied(mut place) => {
                let mut values = match place.insert(Bucket::Several(BTreeMap::new())) {
                    Bucket::One(other, its_value) => BTreeMap::from([(other, its_value)]),
                    Bucket::Several(values) => values,
                };
                values.insert(resource, value);
                place.insert(Bucket::Several(values));
            }
        }
    }

    /// All values, in the order of the resources.
    pub(super) fn in_order(&self) -> BTreeMap<&Resource, &T> {
        let mut all = BTreeMap::new();
        for bucket in self.buckets.values() {
            match bucket {
                Bucket::One(resource, value) => {
                    all.insert(resource, value);
                }
                Bucket::Several(values) => all.extend(values),
            }
        }
        all
    }

    pub(super) fn retain(&mut self, keeps: impl Fn(&T) -> bool) {
        let mut len = 0;
        self.buckets.retain(|_, bucket| {
            let kept = match bucket {
                Bucket::One(_, value) => usize::from(keeps(value)),
                Bucket::Several(values) => {
                    values.retain(|_, value| keeps(value));
                    values.len()
                }
            };
            len += kept;
            kept > 0
        });
        self.len = len;
    }
}

/// The digest of a name. It is the same in every process; the multiplier is that of Knuth's
/// multiplicative hashing (TAOCP 3, 6.4).
fn digest(key: &[u8]) -> u64 {
    let mix = |hash: u64, part: u64| (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    let words = key.chunks_exact(size_of::<u64>());
    let rest = words.remainder().iter().fold(0, |part, byte| part << 8 | u64::from(*byte));
    let words = words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    mix(words.fold(key.len() as u64, mix), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(name: &[u8]) -> Resource {
        Resource::new(name).unwrap()
    }

    /// Two names that begin with different words but have the same digest.
    fn alike() -> [Vec<u8>; 2] {
        let mix = |part: u64| (16 ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
        let (first, second) = (*b"resource", *b"Resource");
        let differ = mix(u64::from_le_bytes(first)) ^ mix(u64::from_le_bytes(second));
        let tail = *b"0123abcd";
        let other = (u64::from_le_bytes(tail) ^ differ).to_le_bytes();
        [[first, tail].concat(), [second, other].concat()]
    }

    #[test]
    fn names_with_one_digest_have_a_value_each() {
        let [one, other] = alike();
        assert_eq!(digest(&one), digest(&other));
        let third = b"resource:3".to_vec();
        let mut values = ByName::new();
        for (value, name) in [&one, &other, &third].into_iter().enumerate() {
            assert_eq!(values.get(name), None);
            assert_eq!(values.get_mut(name), None);
            values.insert(resource(name), value);
        }
        for (value, name) in [&one, &other, &third].into_iter().enumerate() {
            assert_eq!(values.get(name), Some(&value));
            assert_eq!(values.get_mut(name).copied(), Some(value));
        }
        assert_eq!(values.in_order().into_values().copied().collect::<Vec<_>>(), [1, 0, 2]);
        for (kept, left) in [(1, 1), (0, 0)] {
            let mut values = values.clone();
            values.retain(|value| *value == kept);
            assert_eq!((values.len(), values.get(&[&one, &other][left][..])), (1, Some(&kept)));
            values.retain(|_| false);
            assert_eq!((values.len(), values.buckets.len()), (0, 0));
        }
        assert_eq!(values.len(), 3);
    }
}
