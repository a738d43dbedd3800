//! Locks for synchronous code.
