//! Requests to masters that are not about a lock, by a small client beside the library.

mod all;
mod conversation;
mod info;
mod login;
mod marker;
mod place;
mod socket;

pub(crate) use all::all;
pub(crate) use conversation::{Conversation, Reply, Words, words};
pub(crate) use info::Info;
pub(crate) use marker::{Mark, Marker, since_1970};
pub(crate) use place::{Found, find, open};
