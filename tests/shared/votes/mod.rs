//! The table of votes: every request whose answer a client counts, on a server with every history,
//! in every configuration.
//!
//! The rule (ARCHITECTURE.md, "One rule for a vote"): *a yes of a server to a token may be counted
//! during a span only if no yes of the same server, of a server whose data it has, or of a server
//! whose seat it took, to a conflicting claim can be counted at any instant of that span; and the
//! token's key is there for the whole span.* [`may_count`] is that rule for an observer who knows
//! the whole history.
//!
//! There are three seats, and the last one is *the seat*: its server has the history. Our client
//! reaches the first seat and the last one, so it succeeds only if it counts the seat. A rival does
//! not reach the first seat. So two guards are valid at once exactly if both count the seat. One
//! *life* of servers is one history in one configuration, with all requests, each about resources
//! of its own:
//!
//! 1. Our client has its locks, with the vote of the seat ([`Prior::Ours`]) or no longer with it
//!    ([`Prior::Rivals`]): it has not reached the seat for longer than its TTL. A lock to be
//!    resumed was released there, and the release has not reached the first seat. Then the rival
//!    has the vote of the seat, and its request to the second seat is on its way.
//! 2. The history happens.
//! 3. Our client asks the first seat and the last one, and either counts the answer or not.
//! 4. Where our keys were, a newcomer asks the seats that the rival uses. Later our keys on the
//!    second seat have expired, and the rival's request arrives there.
//!
//! Not in the table, because nobody rests a span on them: a release says what was there until now,
//! `attend` and `open` are about no claim, and an undo or an inspection of a semaphore is a look.

pub mod client;
mod happening;
mod histories;
mod life;
mod rows;
mod table;

use std::time::Duration;

use quorlock_core::Instant;

pub use self::happening::{Kept, Servers};
pub use self::histories::{History, Setting};
pub use self::life::live;
pub use self::rows::{Ask, Form, Prior, Row};
pub use self::table::{Cell, Life, Table};
use client::SEATS;

/// The longest TTL of the restart guard, and that of the rival. Shorter: a life may not reach its
/// third step before our own locks, with half of it, have expired. Longer: lives take longer.
pub const LONGEST: Duration = Duration::from_secs(10);
const OURS: Duration = Duration::from_secs(5);

/// The servers: those of the three seats, the replica of the last one, a spare one, and the replica
/// of the first one.
pub const FIRST: usize = 0;
pub const SEAT: usize = 2;
pub const REPLICA: usize = 3;
pub const SPARE: usize = 4;
pub const FIRSTS_REPLICA: usize = 5;
pub const SERVERS: usize = 6;

/// During which span a yes is counted, or could be.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub from: Instant,
    pub until: Instant,
}

/// The rule: whether our yes may be counted during this span. `theirs` are all yeses to conflicting
/// claims of the servers that were, are or will be at the same seat, or have its data; if one
/// server is at two seats, its yes counts at one of them.
pub fn may_count(ours: Span, theirs: &[Span], is_second_vote: bool) -> bool {
    !is_second_vote && theirs.iter().all(|their| their.until <= ours.from || ours.until <= their.from)
}

/// How the seats are named to clients. The addresses do not matter: [`Site::open`] decides.
///
/// [`Site::open`]: client::Site::open
fn urls(history: History, setting: Setting) -> [String; SEATS] {
    let first = if setting == Setting::Replicas { "redis://a?replicas=1" } else { "redis://a" };
    let seat = match (history, setting) {
        (History::SlotMovedAway, Setting::Replicas) => "redis+cluster://c:1/?tag=q&replicas=1",
        (History::SlotMovedAway, _) => "redis+cluster://c:1/?tag=q&failover=durable",
        (_, Setting::Replicas) => "redis://c?replicas=1",
        _ => "redis://c",
    };
    [first, "redis://b", seat].map(str::to_owned)
}
