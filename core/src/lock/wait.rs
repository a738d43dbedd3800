//! What a waiting lock knows and remembers; what it does with that stands in `waiting.rs`.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::protocol::{MasterId, MasterSet, Vote};
use crate::time::Instant;

/// What a waiter knows of one master.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Stand {
    /// Nothing, and nothing will be heard.
    Unknown,
    /// Nobody holds the key, or it has changed since.
    Open,
    /// Another held it when it was read: `by` is the fingerprint of its token. It ends then, if it is not renewed; its change is told if it is
    /// watched.
    Held { by: u64, until: Option<Instant>, watched: bool },
}

/// What a lock knows and remembers because others want it, too. Nothing, for most locks, and then it takes no room.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(super) struct Wait(Option<Box<Known>>);

/// How long a split may be settled: see `settling.rs`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Settling {
    pub(super) until: Instant,
    pub(super) rounds_left: u8,
}

/// See [`Wait`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Known {
    /// What is known of each master while the lock is waited for; empty before the first refusal.
    pub(super) stands: Vec<Stand>,
    /// What the masters said in the last attempt that came to a decision.
    pub(super) last_votes: Option<Vec<Vote>>,
    /// When another was last found to hold it.
    pub(super) met_others: Option<Instant>,
    /// What is left to the one behind it.
    pub(super) knowledge: Option<Box<Knowledge>>,
    /// When all masters are to be asked, whatever the first one says.
    pub(super) all_at: Option<Instant>,
    /// While a split of its last attempt is being settled.
    pub(super) settling: Option<Settling>,
    /// Until when it lets others go first if it is refused.
    pub(super) patient_until: Instant,
    /// Who held it when it was last refused, and how many others have held it before him.
    holder: Option<u64>,
    pub(super) passed_over: u32,
    /// Masters for whose sake an attempt has been repeated, because their connections had been dropped while they were quiet.
    pub(super) repeated: MasterSet,
}

static NOTHING: Known = Known {
    stands: Vec::new(),
    last_votes: None,
    met_others: None,
    knowledge: None,
    all_at: None,
    settling: None,
    patient_until: Instant::ORIGIN,
    holder: None,
    passed_over: 0,
    repeated: MasterSet::EMPTY,
};

impl Deref for Wait {
    type Target = Known;

    fn deref(&self) -> &Known {
        self.0.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for Wait {
    fn deref_mut(&mut self) -> &mut Known {
        self.0.get_or_insert_with(|| Box::new(NOTHING.clone()))
    }
}

impl Wait {
    pub(super) fn stand_mut(&mut self, master: MasterId) -> Option<&mut Stand> {
        self.0.as_mut()?.stands.get_mut(master.index())
    }

    /// What is known of the masters, which is of no use to one who does not wait any more.
    pub(super) fn take_stands(&mut self) -> Vec<Stand> {
        self.0.as_mut().map(|known| std::mem::take(&mut known.stands)).unwrap_or_default()
    }

    pub(super) fn take_last_votes(&mut self) -> Option<Vec<Vote>> {
        self.0.as_mut()?.last_votes.take()
    }

    pub(super) fn take_knowledge(&mut self) -> Option<Box<Knowledge>> {
        self.0.as_mut()?.knowledge.take()
    }
}

#[cfg(feature = "internals")]
impl Wait {
    /// Forgets what only others in its line are told of.
    pub(super) fn forget_its_line(&mut self) {
        if let Some(known) = &mut self.0 {
            let (stands, last_votes) = (std::mem::take(&mut known.stands), known.last_votes.take());
            let known = Known { stands, last_votes, repeated: known.repeated, ..NOTHING.clone() };
            self.0 = (known != NOTHING).then(|| Box::new(known));
        }
    }
}

impl Known {
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
}

/// Where a lock has come in its line, and when.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub(super) struct Way {
    /// Whether others are expected to want it at the same time.
    pub(super) is_wary: bool,
    /// Whether it goes on listening while it lets others go first.
    pub(super) listens: bool,
    /// After how many others it insists.
    pub(super) lets_pass: u32,
    /// When it came to the front, when the round began that granted it, and when it was granted.
    pub(super) came_at: Instant,
    pub(super) asked_at: Instant,
    pub(super) granted_at: Instant,
}

/// How a lock begins that comes to the front of its line.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// So long others get their turn first.
    pub(crate) pause: Option<Duration>,
    /// Whether it listens for the others' turn during the pause.
    pub(crate) listens: bool,
    /// Whether others are expected to want it too.
    pub(crate) is_wary: bool,
    /// How long after it came to the front it lets others go first whenever the lock becomes free.
    pub(crate) patience: Duration,
    /// So many others may come before it until it insists.
    pub(crate) lets_pass: u32,
}

impl Turn {
    /// It asks without a pause, and lets nobody go first.
    pub const AT_ONCE: Self =
        Self { pause: None, listens: false, is_wary: false, patience: Duration::ZERO, lets_pass: u32::MAX };
}

/// What a lock leaves to the one behind it that it stood before: what it knew of the masters while it waited.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Knowledge {
    pub(super) votes: Vec<Vote>,
    pub(super) stands: Vec<Stand>,
    pub(super) poll_at: Instant,
    pub(super) refused_first: Option<MasterId>,
}
