//! Locks for tokio.
