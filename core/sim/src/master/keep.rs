//! What survives a restart.

/// What a master that comes back still knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Keep {
    /// All keys, as with `appendonly yes` and `appendfsync always`.
    Everything,
    /// No key, as without persistence.
    Nothing,
    /// Every other key, as with a snapshot or an append-only file that was not synced at the end.
    Half,
}
