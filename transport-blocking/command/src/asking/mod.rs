//! Requests to one server that are not about a lock, by a small client beside the library.

mod conversation;
mod login;
mod place;
mod socket;

pub(crate) use conversation::{Conversation, Reply, Words, words};
pub(crate) use place::{Found, find, open};
