//! What a waiting lock knows and remembers; what it does with that stands in `waiting.rs`.

use std::time::Duration;

use crate::protocol::{MasterId, Vote};
use crate::time::Instant;

/// What a waiter knows of one master.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Stand {
    /// Nothing, and nothing will be heard.
    Unknown,
    /// Nobody holds the key, or it has changed since.
    Open,
    /// Another held it when it was read. It ends then, if it is not renewed; its change is told if it is watched.
    Held { until: Option<Instant>, watched: bool },
}

/// What a lock knows and remembers because others may want it, too.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(super) struct Wait {
    /// What is known of each master while the lock is waited for; empty before the first refusal.
    pub(super) stands: Vec<Stand>,
    /// Whether others are expected to want it at the same time.
    pub(super) is_wary: bool,
    /// When another was last found to hold it.
    pub(super) met_others: Option<Instant>,
    /// What is left to the one behind it.
    pub(super) knowledge: Option<Box<Knowledge>>,
    /// When all masters are to be asked, whatever the first one says.
    pub(super) all_at: Option<Instant>,
    /// When it came to the front of its line, and until when it lets others go first if it is refused.
    pub(super) came_at: Instant,
    pub(super) patient_until: Instant,
    /// Who held it when it was last refused, how many others have held it before him, and after how many it insists.
    pub(super) holder: Option<u64>,
    pub(super) passed_over: u32,
    pub(super) lets_pass: u32,
    /// How long it waited for its turn, how long the round then took that granted it, and when that was.
    pub(super) waited: Duration,
    pub(super) took: Duration,
    pub(super) granted_at: Instant,
}

impl Wait {
    /// Whether what is asked next is to be watched.
    pub(super) fn is_wary(&self) -> bool {
        self.is_wary
    }

    /// Whether others have been heard of, and this master has not.
    pub(super) fn is_unheard(&self, master: MasterId) -> bool {
        self.stands.get(master.index()) == Some(&Stand::Unknown)
    }

    /// A round was lost for this vote. A holder who renews passes over nobody.
    pub(super) fn met(&mut self, vote: Vote) {
        if let Vote::HeldByAnother { holder: Some(holder), .. } = vote {
            if self.holder.replace(holder).is_some_and(|last| last != holder) {
                self.passed_over += 1;
            }
        }
    }

    /// Those who wait are told at the same time, one after the other, always in the same order. Who comes late each time would be passed over
    /// for ever; so after a while he asks all masters at once, and has a quorum of them while the one who came first still asks alone.
    pub(super) fn insists(&self) -> bool {
        self.passed_over >= self.lets_pass
    }

    /// It is over: the lock was granted, in a round that began at `since`.
    pub(super) fn granted(&mut self, since: Instant, now: Instant) {
        self.waited = since.since(self.came_at);
        self.took = now.since(since);
        self.granted_at = now;
        self.stands = Vec::new();
    }
}

/// How a lock begins that comes to the front of its line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// So long others get their turn first.
    pub(crate) pause: Option<Duration>,
    /// Whether others are expected to want it too.
    pub(crate) is_wary: bool,
    /// How long after it came to the front it lets others go first whenever the lock becomes free.
    pub(crate) patience: Duration,
    /// So many others may come before it until it insists.
    pub(crate) lets_pass: u32,
}

impl Turn {
    pub(crate) const AT_ONCE: Self =
        Self { pause: None, is_wary: false, patience: Duration::ZERO, lets_pass: u32::MAX };
}

/// What a lock leaves to the one behind it that it stood before: what it knew of the masters while it waited.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Knowledge {
    pub(super) votes: Vec<Vote>,
    pub(super) stands: Vec<Stand>,
    pub(super) poll_at: Instant,
    pub(super) refused_first: Option<MasterId>,
}
