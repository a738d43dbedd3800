//! The effects of the scripts of `wire/script/queue.rs` on a master, and of those of a lock without
//! a place.

use super::book::TTL;
use super::item::{Does, Item, LEFT, Said, TURN};
use super::state::{HOLDER, Master};
use super::{Fair, FairFlaw};

/// A lock on a master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    pub(super) client: u8,
    pub(super) token: u8,
    /// When it ends, in milliseconds; zero if time is not considered.
    pub(super) until: u16,
}

/// A place in a master's queue. The order of two places with the same number depends on the client,
/// as it depends on random bytes in real queues.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Place {
    pub(super) number: u8,
    pub(super) client: u8,
    /// Its number among its client's.
    pub(super) place: u8,
    /// When it ends, in milliseconds; zero if time is not considered.
    pub(super) until: u16,
}

impl Master {
    /// Carries out a request, `now` in milliseconds.
    pub(super) fn execute(&mut self, client: u8, item: Item, now: Option<u16>, fair: &Fair) -> Said {
        let flaw = fair.flaw;
        match item.does {
            Does::Enter | Does::Stay if item.place > 0 => self.enter(client, item, now, fair),
            Does::Enter | Does::Stay => match self.key {
                Some(key) => Said::Held { left: left(key.until, now) },
                None => self.grant(client, item, now),
            },
            Does::Undo | Does::Release => {
                let is_ours = self.key.is_some_and(|key| (key.client, key.token) == (client, item.token));
                let removes_all = flaw == Some(FairFlaw::UndoRemovesPlace) && item.clears();
                let goes =
                    |place: &Place| place.client == client && (removes_all || place.place == item.place);
                let leaves = item.place > 0 || removes_all;
                let was_first = self.queue.iter().next().is_some_and(|first| goes(&first));
                if leaves {
                    self.queue = self.queue.filtered(|place| !goes(&place));
                }
                if is_ours {
                    self.key = None;
                }
                if leaves && (is_ours || was_first) {
                    self.begin_turn(now);
                }
                match self.key {
                    _ if is_ours => Said::Yes,
                    Some(key) if item.does == Does::Undo => Said::Held { left: left(key.until, now) },
                    _ => Said::No,
                }
            }
        }
    }

    fn grant(&mut self, client: u8, item: Item, now: Option<u16>) -> Said {
        let until = now.map_or(0, |now| now + TTL);
        self.key = Some(Key { client, token: item.token, until });
        Said::Yes
    }

    fn enter(&mut self, client: u8, item: Item, now: Option<u16>, fair: &Fair) -> Said {
        let flaw = fair.flaw;
        let given = if flaw == Some(FairFlaw::ByArrival) { 0 } else { item.number };
        let is_own = |place: &Place| (place.client, place.place) == (client, item.place);
        let stood = self.queue.iter().find(is_own).map(|place| place.number);
        let largest = match flaw {
            Some(FairFlaw::NumbersBeginAnew) => 0,
            _ => self.queue.iter().map(|place| place.number).max().unwrap_or(0),
        };
        let number = match stood {
            Some(number) if number < given || item.is_exact && given > 0 => given,
            Some(number) => number,
            None if given > 0 => given,
            None => self.counter.max(largest) + 1,
        };
        self.counter = self.counter.max(number);
        self.queue = self.queue.filtered(|place| !is_own(&place));
        let until = now.map_or(0, |now| now + LEFT);
        self.queue.push(Place { number, client, place: item.place, until });
        let key = |place: &Place| (place.number, place.client, place.place);
        self.queue.as_mut_slice().sort_unstable_by_key(key);
        let first = self.queue.iter().next().filter(|place| !is_own(place));
        match (first, self.key) {
            (Some(_), _) => {
                // A new waiter does not look whether the first one's turn has come.
                let ends = if stood.is_some() { self.begin_turn(now) } else { None };
                Said::Behind { number, left: ends.unwrap_or(LEFT) }
            }
            (None, Some(key)) => Said::First { number, left: left(key.until, now) },
            (None, None) if item.does == Does::Stay => Said::Free { number },
            (None, None) => {
                if flaw == Some(FairFlaw::GrantRemovesPlace) {
                    self.queue = self.queue.filtered(|place| !is_own(&place));
                }
                self.grant(client, item, now)
            }
        }
    }

    /// If the lock is free, the turn of the first place begins. Returns how long it lasts then.
    fn begin_turn(&mut self, now: Option<u16>) -> Option<u16> {
        let now = now.filter(|_| self.key.is_none())?;
        let first = self.queue.as_mut_slice().first_mut()?;
        first.until = first.until.min(now + TURN);
        Some(first.until - now)
    }

    /// Ends expired places and locks.
    pub(super) fn expire(&mut self, now: u16) {
        self.key = self.key.filter(|key| key.until > now);
        self.queue = self.queue.filtered(|place| place.until > now);
    }

    /// Carries out the release of the first holder.
    pub(super) fn lose_holder(&mut self) {
        self.key = self.key.filter(|key| key.client != HOLDER);
        self.queue = self.queue.filtered(|place| place.client != HOLDER);
    }

    pub(super) fn has_holder(&self) -> bool {
        self.key.is_some_and(|key| key.client == HOLDER)
            || self.queue.iter().any(|place| place.client == HOLDER)
    }

    /// Whether a place of this client is first, and the lock is free.
    pub(super) fn is_free_for(&self, client: u8, place: u8) -> bool {
        let first = self.queue.iter().next();
        let is_next = place == 0 || first.is_some_and(|it| (it.client, it.place) == (client, place));
        self.key.is_none() && is_next
    }
}

fn left(until: u16, now: Option<u16>) -> u16 {
    now.map_or(LEFT, |now| until.saturating_sub(now))
}
