//! Forgets what makes no difference any more, so that states which cannot be distinguished are one.

use quorlock_core::internals::Action as Does;

use super::actions::{creates, is_done};
use super::book::Book;
use super::client::{Client, Stage};
use super::item::Item;
use super::links::leave_behind;
use super::places::{Key, Place};
use super::row::Row;
use super::state::{Link, MASTERS, Master, Mode, State};
use super::world::World;

impl World {
    /// Makes states equal that cannot be distinguished from now on. The documentation of the crate
    /// gives the reason for each rule.
    pub(super) fn tidy(&self, state: &mut State) {
        if self.scenario.fenced {
            tidy_numbers(state, &self.book);
        }
        if self.scenario.asynchronous && state.clients().iter().all(|client| client.stage == Stage::Ended) {
            // Numbers are checked when they are granted, and none will be granted any more.
            state.masters = [Master::new(); MASTERS];
        }
        for client in 0..state.shape.clients {
            let it = *state.client(client);
            let is_done = is_done(state, client, &self.book);
            let owner = u8::try_from(client).unwrap_or(u8::MAX);
            for master in 0..MASTERS {
                if it.is_absent() {
                    self.tidy_absent(state, client, master);
                    continue;
                }
                let Master { places, counters, links, .. } = state.master_mut(master);
                let Some(link) = links.get_mut(client) else { continue };
                if self.scenario.asynchronous {
                    self.leave_past_attempts(link, &it);
                    let is_past = |attempt| self.is_past(&it, attempt) && !is_asked(link, attempt);
                    for place in places.iter_mut().filter(|place| !place.is_free()) {
                        place.keep(|key| key.client != owner || !is_past(key.attempt));
                        // A sentinel without an entry could only refuse acquisitions, too.
                        if place.keys().next().is_none() {
                            place.clear();
                        }
                    }
                } else if it.stage == Stage::Ended {
                    while link.flight.as_slice().first().is_some_and(|item| item.said().is_some()) {
                        link.flight.remove(0);
                    }
                    link.flight.as_mut_slice().iter_mut().for_each(|item| *item = item.for_nobody());
                    link.queued.as_mut_slice().iter_mut().for_each(|item| *item = item.for_nobody());
                    link.reported = 0;
                }
                if link.is_idle() && (is_done || self.scenario.asynchronous) {
                    link.mode = Mode::Ready;
                } else if link.is_idle() && self.scenario.losses.is_none() {
                    link.mode = Mode::Opening;
                }
                if !link.behind.is_empty() {
                    let own = places.iter().flat_map(Place::keys).filter(|key| key.client == owner);
                    let standing = own.fold(0, |mask, key| mask | 1 << key.attempt);
                    // A request that was left behind raises all counters of its claim, or none.
                    let aims = self.scenario.aims_of(client).iter();
                    let counters = aims.filter_map(|aim| counters.get(aim.resource()));
                    tidy_behind(link, standing, counters.copied().min().unwrap_or(0));
                }
            }
        }
    }

    /// Whether, in an asynchronous scenario, no client waits for this attempt any more.
    fn is_past(&self, client: &Client, attempt: u8) -> bool {
        let lock = client.lock;
        let is_clearing = || !self.book.is_held(lock) && self.book.deadline(lock).is_some();
        !client.is_alive() || attempt != self.book.attempt(lock) || is_clearing()
    }

    /// Requests of attempts that are over count as left behind: their answers are ignored.
    fn leave_past_attempts(&self, link: &mut Link, client: &Client) {
        let is_past = |item: Item| self.is_past(client, item.attempt());
        let past = link.flight.filtered(|item| item.said().is_none() && is_past(item));
        link.flight = link.flight.filtered(|item| !is_past(item));
        leave_behind(&mut link.behind, past.as_slice());
    }

    /// Of an absent client, only one fact remains for each master: whether it may refuse the other
    /// client there. That matters only while the other may still request the key there.
    fn tidy_absent(&self, state: &mut State, client: usize, master: usize) {
        let other = 1 - client;
        let it = state.client(other);
        let may_try_again = match it.stage {
            Stage::Waiting => true,
            Stage::Alive => {
                let attempts = self.scenario.attempts_of(other);
                !self.book.is_parting(it.lock)
                    && (self.scenario.stale || self.book.attempt(it.lock) + 1 < attempts)
            }
            Stage::Ended | Stage::Absent => false,
        };
        let asks = state.link(other, master);
        let may_heal = self.scenario.healing && it.is_alive() && !self.book.is_parting(it.lock);
        let is_concerned = may_try_again || may_heal || may_acquire(asks) || may_read(asks);
        let mut stands = false;
        for place in state.master_mut(master).places.iter_mut().filter(|place| !place.is_free()) {
            let is_shared = place.shared > 0;
            let is_kept = |key: Key| usize::from(key.client) != client;
            stands |= !place.keys().all(is_kept);
            place.keep(is_kept);
            if is_shared && !place.keys().all(is_kept) {
                place.shared = place.longest();
            }
        }
        let mut left = Link::new();
        if is_concerned && (stands || may_acquire(state.link(client, master))) {
            left.behind.push(Item::new(Does::Acquire, 0, 0, 0).as_first(true).again());
        }
        *state.link_mut(client, master) = left;
    }

    /// Examines a client separately if it will never hold the lock again. In the state itself it
    /// becomes absent: on each master where it has the key, or may still get it, it may or may not
    /// have it. In the returned state it is alone, and the other client is absent.
    pub(super) fn part(&self, state: &mut State) -> Option<State> {
        // If grants are numbered, the other's number depends on counters that this client may have
        // raised, or may still raise. And an absent client may have one claim, not any of several
        // seats.
        let is_whole = state.shape.clients > 2
            || (self.scenario.permits && self.scenario.resources() > 1)
            || state.clients().iter().any(Client::is_absent);
        if self.scenario.fenced || is_whole {
            return None;
        }
        let client = (0..state.shape.clients).find(|&client| is_done(state, client, &self.book))?;
        let mut alone = *state;
        Self::let_leave(&mut alone, 1 - client);
        self.tidy(&mut alone);
        state.client_mut(client).leave();
        self.tidy(state);
        Some(alone)
    }

    /// Makes the client absent: at any time it may or may not have the key on every master.
    pub(super) fn let_leave(state: &mut State, client: usize) {
        for master in 0..MASTERS {
            state.link_mut(client, master).queued.push(Item::new(Does::Acquire, 0, 0, 0));
        }
        state.client_mut(client).leave();
    }
}

/// Forgets numbers with which no later grant is compared. Of the numbers that every attempt under
/// way must exceed anyway, only the largest is needed, for attempts that begin later.
fn tidy_numbers(state: &mut State, book: &Book) {
    let largest = state.largest_number();
    let mut least = largest;
    for client in state.clients_mut() {
        if client.is_alive() && !book.is_held(client.lock) {
            least = least.min(client.floor);
        } else {
            client.floor = 0;
        }
    }
    let not_larger = u16::MAX >> (15 - least);
    state.granted &= !not_larger | 1 << largest;
    if !state.clients().iter().any(|client| client.stage == Stage::Waiting) {
        state.read = 0;
    }
}

/// Whether an acquisition is on its way here that has not been executed.
fn may_acquire(link: &Link) -> bool {
    let rows = link.flight.iter().chain(link.queued.iter()).chain(link.behind.iter());
    rows.into_iter().any(|item| item.action().creates() && item.said().is_none())
}

/// Whether a request of this attempt is yet to be executed.
fn is_asked(link: &Link, attempt: u8) -> bool {
    let rows = link.flight.iter().chain(link.behind.iter());
    rows.into_iter().any(|item| item.attempt() == attempt && item.said().is_none())
}

/// Whether a request is on its way that reads the holder of the key.
fn may_read(link: &Link) -> bool {
    let rows = link.flight.iter().chain(link.queued.iter());
    rows.into_iter().any(|item| item.action() == Does::Undo && item.said().is_none())
}

/// Forgets requests that were left behind and cannot change anything, and sorts connections.
fn tidy_behind(link: &mut Link, standing: u8, counter: u8) {
    let unexecuted = |row: &[Item], attempt| row.iter().any(|item| creates(*item, attempt));
    let may_stand = |attempt| {
        standing >> attempt & 1 == 1
            || unexecuted(link.flight.as_slice(), attempt)
            || unexecuted(link.queued.as_slice(), attempt)
            || unexecuted(link.behind.as_slice(), attempt)
    };
    let mut connections: Row<Row<Item, 8>, 8> = Row::new();
    let mut starts = true;
    for item in link.behind.iter() {
        starts |= item.is_first();
        // Counters only grow, so a request that would not raise one now never will.
        let is_idle = item.action() == Does::Raise && item.number() <= counter;
        if item.action().creates() || may_stand(item.attempt()) && !is_idle {
            if starts {
                connections.push(Row::new());
            }
            if let Some(last) = connections.as_mut_slice().last_mut() {
                last.push(item.as_first(starts));
            }
            starts = false;
        }
    }
    connections.as_mut_slice().sort_unstable_by(|a, b| a.as_slice().cmp(b.as_slice()));
    link.behind = Row::new();
    let mut last: Option<Row<Item, 8>> = None;
    for connection in connections.iter() {
        let once = |item: &Item| item.as_once();
        let is_release = matches!(connection.as_slice(), [item] if item.action().clears());
        let is_again = is_release
            && last.is_some_and(|last| last.iter().map(|i| once(&i)).eq(connection.iter().map(|i| once(&i))));
        if is_again {
            if let Some(item) = link.behind.as_mut_slice().last_mut() {
                *item = item.again();
            }
        } else {
            connection.iter().for_each(|item| link.behind.push(item));
        }
        last = Some(connection);
    }
}
