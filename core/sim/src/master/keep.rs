//! The keys that survive a restart.

/// The keys that a master still has when it comes back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Keep {
    /// All keys, as with `appendonly yes` and `appendfsync always`.
    Everything,
    /// No key, as without persistence.
    Nothing,
    /// Every other key, as with a snapshot or an append-only file that was not synced at the end.
    Half,
}

impl Keep {
    /// Returns a function that returns for each key whether it survives: for
    /// [`Master::restart`](super::Master::restart).
    pub fn choice(self) -> impl FnMut(&[u8]) -> bool {
        let mut every_other = false;
        move |_| {
            every_other = !every_other;
            match self {
                Self::Everything => true,
                Self::Nothing => false,
                Self::Half => every_other,
            }
        }
    }
}
