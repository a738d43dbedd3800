//! What a master keeps for each resource: the token of a writer, or the entries of the sharers.

use super::row::Row;

/// Resources in the world.
pub(super) const RESOURCES: usize = 3;
/// The client of the entry that represents all readers that are not examined individually.
pub(super) const CROWD: u8 = 3;
/// The life of that entry, and of a key that it keeps: unlimited.
pub(super) const LONG: u8 = 15;

/// A token on a master: the client and attempt, how many ticks it lives, and whether its presence
/// or its life is due to a request that its client had left behind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Key {
    pub(super) client: u8,
    pub(super) attempt: u8,
    pub(super) life: u8,
    pub(super) is_late: bool,
}

impl Key {
    /// Whether it has the same token.
    pub(super) fn is_of(self, other: Self) -> bool {
        (self.client, self.attempt) == (other.client, other.attempt)
    }

    /// The one that lives longer, with the token of both.
    fn or_longer(self, other: Self) -> Self {
        let is_late = self.is_late || other.is_late;
        if self.life < other.life { Self { is_late, ..other } } else { self }
    }
}

/// The resources of one master.
pub(super) type Places = [Place; RESOURCES];

/// One resource on one master.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Place {
    /// How many ticks the key with the sentinel lives; zero if the resource is not shared.
    pub(super) shared: u8,
    /// The writer's token; or the entries of its sharers, in order. A sentinel without an
    /// entry ends with its life.
    keys: Row<Key, 4>,
}

impl Place {
    pub(super) fn is_free(&self) -> bool {
        self.shared == 0 && self.keys.is_empty()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.keys.iter()
    }

    /// The token of the writer that has it.
    pub(super) fn written(&self) -> Option<Key> {
        self.keys.iter().next().filter(|_| self.shared == 0)
    }

    /// The token or the entry of this client and attempt.
    pub(super) fn of(&self, own: Key) -> Option<Key> {
        self.keys.iter().find(|key| key.is_of(own))
    }

    pub(super) fn is_written_by(&self, own: Key) -> bool {
        self.written().is_some_and(|key| key.is_of(own))
    }

    /// Sets the token of a writer, or moves its end to a later time.
    pub(super) fn write(&mut self, own: Key) {
        let key = self.written().map_or(own, |stood| stood.or_longer(own));
        self.clear();
        self.keys.push(key);
    }

    /// Sets an entry, or moves its end to a later time. If a writer's token is there, it is the
    /// client's own.
    pub(super) fn enter(&mut self, own: Key) -> Key {
        let entry = self.of(own).map_or(own, |stood| stood.or_longer(own));
        self.keys = self.keys.filtered(|key| self.shared > 0 && !key.is_of(own));
        self.keys.push(entry);
        self.put_in_order();
        entry
    }

    /// Gives all entries the life of the key.
    pub(super) fn level(&mut self) {
        let shared = self.shared;
        self.keys.as_mut_slice().iter_mut().for_each(|key| key.life = shared);
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Removes the keys for which `keep` is false. A sentinel stays.
    pub(super) fn keep(&mut self, keep: impl Fn(Key) -> bool) {
        self.keys = self.keys.filtered(keep);
    }

    /// The longest life of an entry.
    pub(super) fn longest(&self) -> u8 {
        self.keys.iter().map(|key| key.life).max().unwrap_or(0)
    }

    /// The entry at this place.
    pub(super) fn entry(&self, at: usize) -> Option<Key> {
        self.keys.as_slice().get(at).copied().filter(|_| self.shared > 0)
    }

    /// An entry ends, and the key does not.
    pub(super) fn lose_entry(&mut self, at: usize) {
        self.keys.remove(at);
    }

    /// A tick of the master's clock.
    pub(super) fn tick(&mut self) {
        if self.is_free() {
            return;
        }
        for key in self.keys.as_mut_slice().iter_mut().filter(|key| key.client != CROWD) {
            key.life -= 1;
        }
        self.keep(|key| key.life > 0);
        if self.shared > 0 && self.shared < LONG {
            self.shared -= 1;
            if self.shared == 0 {
                self.clear();
            }
        }
    }

    /// The same with the first two clients exchanged.
    fn swapped(mut self) -> Self {
        let renamed = self.keys.as_mut_slice().iter_mut().filter(|key| key.client < 2);
        renamed.for_each(|key| key.client ^= 1);
        self.put_in_order();
        self
    }

    fn put_in_order(&mut self) {
        self.keys.as_mut_slice().sort_unstable_by_key(|key| (key.client, key.attempt));
    }

    /// Writes the resource: the number of keys, the sentinel's life and a mark, then two bytes for
    /// each key.
    pub(super) fn write_bytes(mut self, is_swapped: bool, mark: bool, out: &mut Vec<u8>) {
        if is_swapped {
            self = self.swapped();
        }
        let count = u8::try_from(self.keys.len()).unwrap_or(u8::MAX);
        out.push(count | self.shared << 3 | u8::from(mark) << 7);
        for key in self.keys.iter() {
            out.extend_from_slice(&[key.client | key.attempt << 2 | u8::from(key.is_late) << 4, key.life]);
        }
    }

    /// Reads what was written, and its mark. `take` returns the next two bytes.
    pub(super) fn read_bytes(head: u8, mut take: impl FnMut() -> [u8; 2]) -> (Self, bool) {
        let mut place = Self { shared: head >> 3 & 15, ..Self::default() };
        for _ in 0..head & 7 {
            let [mark, life] = take();
            let is_late = mark >> 4 & 1 == 1;
            place.keys.push(Key { client: mark & 3, attempt: mark >> 2 & 3, life, is_late });
        }
        (place, head >> 7 == 1)
    }
}
