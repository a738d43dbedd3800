//! Locks for smol.
