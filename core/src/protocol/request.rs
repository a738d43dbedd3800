//! What goes down to a master and what comes up from it, in the protocol's words.

use std::time::Duration;

use super::{Cause, Claim, FencingToken, LockId, Ttl, Vote};

/// What a request does with its claim on one master.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// `SET key token NX PX ttl`; with a number and a look at the marker where that is wanted.
    Acquire,
    /// Keep the place in the queue, or put it there; nothing is locked.
    Stay,
    /// Compare the token and raise the counter.
    Raise,
    /// Compare the token and move the end of the key's life, never towards now.
    Extend,
    /// Set the key of a lock that is held where no key stands, the counter raised first.
    Heal,
    /// Compare the token and delete.
    Release,
    /// Compare the token and delete; if another holds the key, say who and for how long.
    Undo,
    /// Compare the token and let go of the key, which lives on for a while.
    Keep,
    /// Say what is at the key, and how the server is.
    Inspect,
    /// Delete the key of the holder with this fingerprint; say who holds it otherwise.
    ForceRelease,
    /// Say whether the master votes.
    Attend,
    /// Have it vote: nobody has locked anything yet.
    Open,
    /// Have the connection told when keys change that it has read.
    Track,
    /// Have it told no more.
    Untrack,
    /// Give a sign of life.
    Ping,
    /// Log in anew.
    Login,
    /// Have all replicas confirm what was asked before on the connection.
    Confirm,
    /// Delete the restart guard's marker: the keys are being moved to another server.
    Forget,
}

impl Action {
    /// Whether it takes the key away, at once or in a while; such requests are kept for a master
    /// that cannot be reached.
    pub fn clears(self) -> bool {
        matches!(self, Self::Release | Self::Undo | Self::Keep)
    }

    /// Whether it changes the key of a lock that is held, so that a waiter for that key on the same
    /// connection must read it again.
    pub(crate) fn changes_held_key(self) -> bool {
        matches!(self, Self::Extend | Self::Heal | Self::Release | Self::Keep | Self::ForceRelease)
    }

    /// Whether a yes to it carries a vote, so that the replicas of the master must confirm it.
    pub(crate) fn votes(self) -> bool {
        matches!(self, Self::Acquire | Self::Raise | Self::Extend | Self::Heal | Self::Attend | Self::Open)
    }

    /// Whether it may set the key, or a place in the queue, so that a release must follow it.
    pub fn creates(self) -> bool {
        matches!(self, Self::Acquire | Self::Heal | Self::Stay)
    }
}

/// Which lock asked, and in which of its rounds: the way home for the answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ticket {
    /// The lock.
    pub lock: LockId,
    /// Its round.
    pub round: u32,
}

/// One request to one master.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// `None` for a release that nobody waits for.
    pub ticket: Option<Ticket>,
    /// What is to be done.
    pub action: Action,
    /// With which key and token.
    pub claim: Claim,
    /// The life that it gives to a key, where it gives one.
    pub ttl: Ttl,
    /// What the counter is to be raised to, for requests that raise it; the least number of a place
    /// in the queue, for those that enter it.
    pub fence: Option<FencingToken>,
    /// Whether a refusal is to say who holds the key, and the master to tell when that changes.
    pub watch: bool,
    /// Whether an acquisition of what is read looks past those that wait to write; whether a place
    /// in the queue is to have the number given, and no larger one either.
    pub insists: bool,
    /// For how long the lock has been waited for, where an acquisition is to mark that: what it
    /// waits to write and is shared, or the next seat of a semaphore.
    pub waited: Option<Duration>,
}

impl Request {
    /// Whether it is answered with the counter's number.
    pub(crate) fn is_counted(&self) -> bool {
        self.action == Action::Raise || self.action == Action::Acquire && self.claim.is_fenced()
    }

    /// The same about the lock alone, without its place in a queue.
    pub(crate) fn without_place(self) -> Self {
        Self { claim: self.claim.without_place(), ..self }
    }
}

/// What a master said to a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Answer {
    /// The key was set, extended or deleted: the token stood there.
    Yes,
    /// The token stands there, and the counter is at this number (acquire fenced, raise).
    Counted(FencingToken),
    /// Seats of a window were set (acquire).
    Seats {
        /// A bit for each, by its place in the window.
        places: u64,
        /// Their number, if grants are numbered.
        number: Option<FencingToken>,
    },
    /// The key stands with another's token (acquire), or not with ours (extend, release, undo).
    No,
    /// Another holds the key (undo, acquire). If it is watched, the master tells when that changes.
    Holder {
        /// The fingerprint of its token.
        holder: u64,
        /// How long the key still lives, if it has an end.
        remaining: Option<Duration>,
        /// Whether the master tells when that changes.
        watched: bool,
    },
    /// It has a place in the queue, which is all that it asked for, or another one is before it
    /// (stay, acquire). The master tells when its turn comes, if it is watched.
    Queued {
        /// The number of the place.
        number: FencingToken,
        /// What is ahead; `None` if nobody is, and nobody holds the key.
        ahead: Option<Ahead>,
        /// Whether it is at the head of the queue, and waits for the key alone.
        is_first: bool,
        /// Whether the master tells when that changes.
        watched: bool,
    },
    /// No usable answer.
    Failed {
        /// Why.
        cause: Cause,
        /// What may have become of the request.
        fate: Fate,
        /// Whether the connection had been quiet for long, so that its silence says little of the
        /// master.
        stale: bool,
    },
}

/// What a place in the queue waits for: the next place before it, or the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ahead {
    /// The fingerprint of the place, or of the holder's token.
    pub holder: u64,
    /// How long it still lives, if it has an end.
    pub remaining: Option<Duration>,
}

impl Answer {
    /// The vote that it is in a round of acquisitions.
    pub(crate) fn vote(self) -> Vote {
        match self {
            Self::Yes | Self::Counted(_) | Self::Seats { .. } => Vote::Granted,
            Self::No => Vote::HeldByAnother { remaining: None, holder: None },
            Self::Holder { holder, remaining, .. } => Vote::HeldByAnother { remaining, holder: Some(holder) },
            Self::Queued { ahead, .. } => Vote::HeldByAnother {
                remaining: ahead.and_then(|ahead| ahead.remaining),
                holder: ahead.map(|ahead| ahead.holder),
            },
            Self::Failed { cause, .. } => Vote::Failed(cause),
        }
    }

    /// The vote that it is in a round of extensions or releases; `is_discounted` if the master does
    /// not count as a holder whatever it says.
    pub(crate) fn holder_vote(self, is_discounted: bool) -> Vote {
        match self {
            Self::Yes if !is_discounted => Vote::Granted,
            Self::Yes
            | Self::Counted(_)
            | Self::Seats { .. }
            | Self::No
            | Self::Holder { .. }
            | Self::Queued { .. } => Vote::NotHeld,
            Self::Failed { cause, .. } => Vote::Failed(cause),
        }
    }
}

/// What may have become of a request without a usable answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fate {
    /// It never left, or was turned away before it did anything.
    NotSent,
    /// It may have been executed, or may yet be.
    Unknown,
    /// It may have been executed, or may yet be, on a connection that was given up: a release
    /// follows each request there that may have set the key. Where this one was such a request,
    /// whatever the master says about the token from now on may be undone a moment later, so it
    /// must not be counted.
    Undone,
}
