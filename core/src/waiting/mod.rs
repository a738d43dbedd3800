//! Waiting: for each resource that this process wants, which of its locks asks, when, and which
//! master first.
//!
//! ```text
//!  a lock is requested ──▶ queue ──▶ front ──▶ attempt ──▶ granted ──▶ let go ──▶ the next one comes to the front
//!                                      ▲          │ lost
//!                   notified, or due ──┴── wait ◀─┘
//! ```
//!
//! Only the lock in front asks masters. When it ends, the next one's request follows in the same
//! write. Because no other process can get in between, that is limited: after a number of grants,
//! or a span of time, there is a pause in which others get their turn ([`pace`]).
//!
//! A lock in front whose attempt is lost knows who holds the key on which master ([`masters`]), and
//! asks again when enough of them have notified that it has changed, or when it must have ended
//! ([`plan`]). If it gives up, the next lock keeps waiting with the same knowledge: it gets the
//! bid.
//!
//! Rules of this room: it makes a lock start an attempt or read who holds the key, and gets the
//! result. It knows neither connections nor the deadlines of held locks.

mod bid;
mod by_name;
mod contenders;
mod fair;
mod front;
mod listening;
mod lost;
mod masters;
mod pace;
mod plan;
mod queue;
mod settling;

pub(crate) use bid::Bid;
pub(crate) use contenders::{Begin, Contenders, Entry, LetGo, Next, Places};
pub(crate) use front::Front;
pub(crate) use pace::Start;
