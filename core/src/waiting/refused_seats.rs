//! Seats of a semaphore that one master assigned to a request and others refused.
//!
//! A master that has not executed another client's acquisition yet assigns the same seat once more,
//! and one that missed a release does not assign a free seat. So after a refusal another master
//! assigns: if a majority agrees and has a free seat, one of them is soon the first. A waiter asks
//! again at once, or after a pause if the refusals say that there is nothing new to learn.

/// What a bid for permits has learned from refused seats.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub(super) struct RefusedSeats {
    /// How many there were since the last longer pause, and the last one.
    since_pause: u16,
    last: Option<u16>,
    /// How many masters have assigned such a seat, one after the other, since a round in which no
    /// seat was assigned.
    assigners: u16,
}

impl RefusedSeats {
    /// Notes a lost round in which this seat was assigned, the first of `take` of a semaphore that
    /// has this many. Returns whether a waiter should ask again soon: another seat may be free that
    /// was not assigned yet. If it was the last seat again, or if there were as many as the
    /// semaphore has, the assigning masters do not know of their holders.
    pub(super) fn note(&mut self, seat: u16, of: u16, take: u16) -> bool {
        if take < of {
            self.assigners = self.assigners.saturating_add(1);
        }
        self.since_pause = self.since_pause.saturating_add(1);
        let may_have = self.last.replace(seat) != Some(seat) && self.since_pause < of;
        if !may_have {
            (self.since_pause, self.last) = (0, None);
        }
        may_have
    }

    /// Notes a lost round in which no seat was assigned: the next one begins with the first master.
    pub(super) fn none_assigned(&mut self) {
        self.assigners = 0;
    }

    /// How many masters have assigned a refused seat. The next one in order assigns now.
    pub(super) fn assigners(self) -> u16 {
        self.assigners
    }
}
