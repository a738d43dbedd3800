//! Which states have been seen, and from where each was first reached.

use std::hash::{DefaultHasher, Hasher};

/// A set of 64-bit fingerprints: open addressing, at most five eighths full. Zero is an empty
/// place.
///
/// Two states with the same fingerprint would count as one. Among n states, the probability of that
/// is below n²/2⁶⁵: 3 in a million for ten million states, 3 in ten thousand for a hundred million.
/// The set takes 13 to 26 bytes for each state.
pub(super) struct Seen {
    places: Vec<u64>,
    taken: usize,
}

impl Seen {
    pub(super) fn new() -> Self {
        Self { places: vec![0; 1 << 12], taken: 0 }
    }

    /// Adds a fingerprint; `false` if it was there.
    pub(super) fn insert(&mut self, fingerprint: u64) -> bool {
        if self.taken * 8 >= self.places.len() * 5 {
            self.grow();
        }
        let is_new = put(&mut self.places, fingerprint);
        self.taken += usize::from(is_new);
        is_new
    }

    fn grow(&mut self) {
        let mut places = vec![0; self.places.len() * 2];
        for fingerprint in self.places.iter().copied().filter(|&fingerprint| fingerprint != 0) {
            put(&mut places, fingerprint);
        }
        self.places = places;
    }
}

fn put(places: &mut [u64], fingerprint: u64) -> bool {
    let mask = places.len() - 1;
    // Any bits of a fingerprint are as good as any others.
    let mut at = usize::try_from(fingerprint & u64::try_from(mask).unwrap_or(u64::MAX)).unwrap_or(0);
    loop {
        match places.get_mut(at) {
            Some(place) if *place == 0 => {
                *place = fingerprint;
                return true;
            }
            Some(place) if *place == fingerprint => return false,
            _ => at = (at + 1) & mask,
        }
    }
}

/// A fingerprint of these bytes (SipHash with fixed keys), never zero.
pub(super) fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish().max(1)
}

/// How each state was first reached: from which state, and by which of its steps. This takes five
/// bytes for each state.
pub(super) struct Origins {
    from: Vec<u32>,
    step: Vec<u8>,
}

impl Origins {
    /// Creates the list with the initial state, which has no predecessor.
    pub(super) fn new() -> Self {
        Self { from: vec![0], step: vec![0] }
    }

    pub(super) fn push(&mut self, from: u32, step: u8) {
        self.from.push(from);
        self.step.push(step);
    }

    pub(super) fn len(&self) -> usize {
        self.from.len()
    }

    /// The steps that lead from the initial state to this one.
    pub(super) fn steps_to(&self, state: u32) -> Vec<u8> {
        let mut steps = Vec::new();
        let mut at = state as usize;
        while at != 0 {
            let (Some(&from), Some(&step)) = (self.from.get(at), self.step.get(at)) else { break };
            steps.push(step);
            at = from as usize;
        }
        steps.reverse();
        steps
    }
}
