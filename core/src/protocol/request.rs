//! Requests to a master and its answers, in the protocol's terms.

use std::time::Duration;

use super::{Cause, Claim, FencingToken, LockId, Ttl, Vote};

/// What a request asks of one master. Most actions are about the keys and the token of the
/// request's claim; some are about the master or the connection alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// `SET key token NX PX ttl`; with a fencing number and a check of the marker if requested.
    Acquire,
    /// Renew the place in the queue, or enter it; nothing is locked.
    Stay,
    /// Compare the token and raise the counter.
    Raise,
    /// Compare the token and extend the key's life; never shorten it.
    Extend,
    /// Raise the counter, then set a held lock's key where it is missing.
    Heal,
    /// Compare the token and delete.
    Release,
    /// Compare the token and delete; if another holder has the key, report it and its remaining
    /// time.
    Undo,
    /// Compare the token and give the lock up, but keep its key for a while.
    Keep,
    /// Report the key's content and the server's state.
    Inspect,
    /// Delete the key of the holder with this fingerprint; otherwise report the holder.
    ForceRelease,
    /// Report whether the master votes.
    Attend,
    /// Make it vote: nothing has been locked yet.
    Open,
    /// Turn on notifications about changes of keys that the connection has read.
    Track,
    /// Turn notifications off.
    Untrack,
    /// Check that the connection is alive.
    Ping,
    /// Log in again.
    Login,
    /// Wait until all replicas confirm the previous requests of the connection.
    Confirm,
    /// Delete the restart guard's marker: the keys are being moved to another server.
    Forget,
}

impl Action {
    /// Whether the action removes the key, at once or later. Such requests are kept for a master
    /// that cannot be reached.
    pub fn clears(self) -> bool {
        matches!(self, Self::Release | Self::Undo | Self::Keep)
    }

    /// Whether the action changes the key of a held lock, so that a waiter for that key on the same
    /// connection must read it again.
    pub(crate) fn changes_held_key(self) -> bool {
        matches!(self, Self::Extend | Self::Heal | Self::Release | Self::Keep | Self::ForceRelease)
    }

    /// Whether `Yes` to the action counts for some time, so that the master's replicas must confirm
    /// it.
    pub(crate) fn votes(self) -> bool {
        self.rests_on_key() || matches!(self, Self::Acquire | Self::Raise | Self::Attend | Self::Open)
    }

    /// Whether `Yes` to the action rests on the key that the master has, and not on a vote that it
    /// gives. The restart guard's marker is then looked at behind the work on the key, which is
    /// done in a quarantine, too.
    pub(crate) fn rests_on_key(self) -> bool {
        matches!(self, Self::Extend | Self::Heal | Self::Keep)
    }

    /// Whether the action may set the key, or a place in the queue, so that a release must follow
    /// it.
    pub fn creates(self) -> bool {
        matches!(self, Self::Acquire | Self::Heal | Self::Stay)
    }
}

/// The lock that asked, and its round: where to route the answer.
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
    /// `None` for a release without a waiting caller.
    pub ticket: Option<Ticket>,
    /// What to do.
    pub action: Action,
    /// The key and the token.
    pub claim: Claim,
    /// The TTL for the key, if the request sets one.
    pub ttl: Ttl,
    /// For requests that raise the counter: the number to raise it to. For requests that enter a
    /// queue: the smallest number that the place may have.
    pub fence: Option<FencingToken>,
    /// Whether a refusal names the key's holder, and the master notifies when that changes.
    pub watch: bool,
    /// For a reader's acquisition: whether it ignores waiting writers. For a place in the queue:
    /// whether it must have exactly the given number.
    pub insists: bool,
    /// How long the caller has waited for the lock, if the acquisition leaves a mark: on a shared
    /// resource that it waits to write, or on the next seat of a semaphore.
    pub waited: Option<Duration>,
    /// For a place in the queue: how long its turn may be, if that is known.
    pub turn: Option<Duration>,
    /// Whether another locker may know the token, and count its key.
    pub is_copied: bool,
    /// Whether it was sent over an earlier connection, and may have been executed there.
    pub is_second_try: bool,
}

impl Request {
    /// A request that numbers, watches and marks nothing. Without a ticket, nobody waits for its
    /// answer.
    pub(crate) fn new(ticket: Option<Ticket>, action: Action, claim: Claim, ttl: Ttl) -> Self {
        Self {
            ticket,
            action,
            claim,
            ttl,
            fence: None,
            watch: false,
            insists: false,
            waited: None,
            turn: None,
            is_copied: false,
            is_second_try: false,
        }
    }

    /// Whether it may be sent again over the next connection, after one that had been quiet for
    /// long: a request that is executed twice, or late, must do no harm. An acquisition would, as
    /// its release may already be behind the first one. So would `Open`: the master may have lost
    /// votes since, and must not vote at once then.
    pub(crate) fn may_be_tried_again(&self) -> bool {
        let does_harm = self.action.creates() || self.action == Action::Open;
        self.ticket.is_some() && !does_harm && !self.is_second_try
    }

    /// What an answer to this try says about both tries. That the key is not ours says nothing if
    /// the first try may have deleted it.
    pub(crate) fn of_both_tries(&self, answer: Answer) -> Answer {
        let may_have_deleted = self.is_second_try && matches!(self.action, Action::Release | Action::Keep);
        match answer {
            Answer::No if may_have_deleted => {
                Answer::Failed { cause: Cause::Closed, fate: Fate::Unknown, stale: false }
            }
            answer => answer,
        }
    }

    /// Whether a release must follow the request if its answer does not come. Another locker may
    /// count a key that was restored.
    pub(crate) fn is_taken_back(&self) -> bool {
        self.action.creates() && !(self.action == Action::Heal && self.is_copied)
    }

    /// Whether it is answered with the counter's number.
    pub(crate) fn is_counted(&self) -> bool {
        self.action == Action::Raise || self.action == Action::Acquire && self.claim.is_fenced()
    }

    /// The same request for the lock alone, without a place in a queue.
    pub(crate) fn without_place(self) -> Self {
        Self { claim: self.claim.without_place(), ..self }
    }
}

/// A master's answer to a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Answer {
    /// The key was set, extended or deleted: it has, or had, our token.
    Yes,
    /// The key has our token, but the master is in the restart guard's quarantine (extend, heal,
    /// keep): it may have lost a vote for another client.
    OursInQuarantine {
        /// The rest of the quarantine.
        remaining: Duration,
    },
    /// The key has our token, and the counter is at this number (acquire fenced, raise).
    Counted(FencingToken),
    /// Seats of a window were set (acquire).
    Seats {
        /// A bit for each seat, by its place in the window.
        places: u64,
        /// Their number, if grants are numbered.
        number: Option<FencingToken>,
    },
    /// The key has another token (acquire), or does not have ours (extend, release, undo).
    No,
    /// Another holder has the key (undo, acquire). If it is watched, the master notifies when that
    /// changes.
    Holder {
        /// The fingerprint of its token.
        holder: u64,
        /// How long the key still lives, if it has an end.
        remaining: Option<Duration>,
        /// Whether the master notifies when that changes.
        watched: bool,
    },
    /// The waiter has a place in the queue. Its request asked for no more (stay), or another place
    /// is before it (acquire). If the place is watched, the master notifies when its turn comes.
    Queued {
        /// The number of the place.
        number: FencingToken,
        /// What is ahead; `None` if no other place is before it and the key is free.
        ahead: Option<Ahead>,
        /// Whether the place is at the head of the queue, and waits only for the key.
        is_first: bool,
        /// Whether the master notifies when that changes.
        watched: bool,
    },
    /// No usable answer.
    Failed {
        /// Why.
        cause: Cause,
        /// Whether the request may have been executed.
        fate: Fate,
        /// Whether the connection had been quiet for long, so that its silence says little about
        /// the master.
        stale: bool,
    },
}

/// What a place in the queue waits for: the first place, or the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ahead {
    /// The fingerprint of the place, or of the holder's token.
    pub holder: u64,
    /// How long it still lives, if it has an end.
    pub remaining: Option<Duration>,
}

impl Answer {
    /// The vote that this answer is in a round of acquisitions.
    pub(crate) fn vote(self) -> Vote {
        match self {
            Self::Yes | Self::Counted(_) | Self::Seats { .. } => Vote::Granted,
            Self::No => Vote::HeldByAnother { remaining: None, holder: None },
            Self::Holder { holder, remaining, .. } => Vote::HeldByAnother { remaining, holder: Some(holder) },
            Self::Queued { ahead, .. } => Vote::HeldByAnother {
                remaining: ahead.and_then(|ahead| ahead.remaining),
                holder: ahead.map(|ahead| ahead.holder),
            },
            Self::OursInQuarantine { remaining } => Vote::Failed(Cause::Quarantined { remaining }),
            Self::Failed { cause, .. } => Vote::Failed(cause),
        }
    }

    /// The vote that this answer is in a round of extensions or releases. If `is_discounted`, the
    /// master does not count as a holder whatever it answers.
    pub(crate) fn holder_vote(self, is_discounted: bool) -> Vote {
        match self {
            Self::Yes if !is_discounted => Vote::Granted,
            Self::Yes
            | Self::Counted(_)
            | Self::Seats { .. }
            | Self::No
            | Self::Holder { .. }
            | Self::Queued { .. } => Vote::NotHeld,
            Self::OursInQuarantine { remaining } => Vote::Failed(Cause::Quarantined { remaining }),
            Self::Failed { cause, .. } => Vote::Failed(cause),
        }
    }
}

/// What may have happened to a request without a usable answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fate {
    /// The request was never sent, or was rejected before it did anything.
    NotSent,
    /// The request may have been executed, or may still be.
    Unknown,
    /// The request may have been executed, or may still be, on a connection that was given up. On
    /// that connection, a release follows each request that may have set the key. If this was such
    /// a request, any later answer about the token may be undone a moment later, so it must not
    /// count.
    Undone,
}
