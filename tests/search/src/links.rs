//! The connections: what `connection` does with requests, answers and losses, without its bytes.
//!
//! Each function names the one in `connection` that it follows; both must be changed together.

use quorlock_core::internals::{Action as Does, Fate};

use super::input::Heard;
use super::item::{Form, Item, Said};
use super::row::Row;
use super::state::{Debt, Mode, State};
use super::world::World;

impl World {
    pub(super) fn answer(&mut self, client: usize, master: usize, item: Item, heard: Heard) {
        self.story.arrives(client, master, item, heard);
        if item.round() > 0 {
            self.answers.push_back((u8::try_from(master).unwrap_or(u8::MAX), item.round(), heard));
        }
    }

    /// Follows `Connection::submit`, `queue` and `refuse`.
    pub(super) fn submit(&mut self, state: &mut State, client: usize, master: usize, item: Item) {
        if self.scenario.asynchronous && item.action().clears() {
            return;
        }
        let link = state.link_mut(client, master);
        match link.mode {
            Mode::Ready => {
                link.flight.push(item);
                self.story.sends(client, master, item);
            }
            Mode::Opening => {
                let unsent = |other: &Item| other.action() == Does::Acquire && other.is_of(item);
                let place = link.queued.as_slice().iter().position(unsent);
                // An undo has a client that waits for it, so it is sent behind its acquisition.
                match place.filter(|_| item.action() == Does::Release) {
                    // The acquisition has not been sent, so there is nothing to release.
                    Some(place) => {
                        link.queued.remove(place);
                        self.answer(client, master, item, Heard::Said(Said::No));
                    }
                    None => link.queued.push(item),
                }
            }
        }
    }

    /// Follows `Connection::fail_queued` and `refuse`.
    pub(super) fn refuse_queued(&mut self, state: &mut State, client: usize, master: usize) {
        let link = state.link_mut(client, master);
        let queued = link.queued.take();
        for item in queued.iter() {
            let acquires = |other: Item| other.action() == Does::Acquire && other.is_of(item);
            if item.action().clears() && !queued.iter().any(acquires) {
                link.debts.push(Debt::of(item));
            }
            self.answer(client, master, item, Heard::Failed { fate: Fate::NotSent, stale: false });
        }
    }

    /// Follows `Connection::give_up`: releases are written behind the unanswered acquisitions, and
    /// all requests without an answer are reported as possibly undone.
    pub(super) fn give_up(&mut self, state: &mut State, client: usize, master: usize, stale: bool) {
        let link = state.link_mut(client, master);
        let flight = link.flight;
        let mut behind: Row<Item, 16> = Row::new();
        flight.iter().filter(|item| item.said().is_none()).for_each(|item| behind.push(item));
        for item in flight.iter().filter(|item| item.action().creates()) {
            let is_later =
                |other: Item| other.attempt() == item.attempt() && other.form() == Form::Downgraded;
            let released = |other: Item| other.action().clears() && (other.is_of(item) || is_later(other));
            if !flight.iter().any(released) {
                // A downgrade behind it makes the release a reader's.
                let downgrades = |it: &Item| it.attempt() == item.attempt() && it.form() == Form::Downgraded;
                let form =
                    if flight.iter().any(|it| downgrades(&it)) { Form::Downgraded } else { item.form() };
                behind.push(Item::new(Does::Release, item.attempt(), 0, 0).formed(form));
            }
        }
        leave_behind(&mut link.behind, behind.as_slice());
        self.fail_flight(state, client, master, Fate::Undone, stale);
        state.link_mut(client, master).mode = Mode::Opening;
    }

    /// Follows `Connection::lose`.
    pub(super) fn close(
        &mut self,
        state: &mut State,
        client: usize,
        master: usize,
        stale: bool,
        may_come_late: bool,
    ) {
        let link = state.link_mut(client, master);
        if link.mode != Mode::Ready {
            return;
        }
        if may_come_late {
            let flight = link.flight;
            let mut behind: Row<Item, 16> = Row::new();
            flight.iter().filter(|item| item.said().is_none()).for_each(|item| behind.push(item));
            leave_behind(&mut link.behind, behind.as_slice());
        }
        self.fail_flight(state, client, master, Fate::Unknown, stale);
        if !self.scenario.asynchronous {
            state.link_mut(client, master).mode = Mode::Opening;
        }
    }

    /// Follows `Connection::fail_flight`.
    fn fail_flight(&mut self, state: &mut State, client: usize, master: usize, fate: Fate, stale: bool) {
        let link = state.link_mut(client, master);
        let (flight, reported) = (link.flight.take(), usize::from(std::mem::take(&mut link.reported)));
        for (place, item) in flight.iter().enumerate() {
            if item.action().clears() {
                state.link_mut(client, master).debts.push(Debt::of(item));
            }
            if place >= reported || fate == Fate::Undone {
                self.answer(client, master, item, Heard::Failed { fate, stale });
            }
        }
    }
}

pub(super) fn leave_behind(behind: &mut Row<Item, 12>, items: &[Item]) {
    for (place, item) in items.iter().enumerate() {
        behind.push(item.left_behind(place == 0));
    }
}
