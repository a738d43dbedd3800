//! What happens: the shipped locks above, connections as the shipped ones keep them, and masters that run the scripts.

use std::collections::VecDeque;

use super::actions::{Action, acquires, executed, is_done};
use super::book::{Book, Heard, Input, Ordered, Told, validity_of};
use super::properties::{self, Violation};
use super::row::{Item, Row, Said};
use super::scenario::Scenario;
use super::state::{CLIENTS, Client, Debt, Key, Link, MASTERS, Mode, Stage, State};
use super::story::{Party, Story};
use crate::connection::{Action as Does, Fate};

/// The rules by which states follow each other.
pub(super) struct World {
    pub(super) scenario: Scenario,
    pub(super) book: Book,
    pub(super) story: Story,
    orders: VecDeque<Ordered>,
    answers: VecDeque<(u8, u8, Heard)>,
}

impl World {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self {
            book: Book::new(scenario),
            scenario: scenario.clone(),
            story: Story::default(),
            orders: VecDeque::new(),
            answers: VecDeque::new(),
        }
    }

    pub(super) fn initial(&self) -> State {
        let Scenario { losses, crashes, duplicates, .. } = self.scenario;
        State::initial(losses.unwrap_or(u8::MAX), crashes, duplicates)
    }

    /// What is after this, in `next`, and whether it may be.
    pub(super) fn step(&mut self, state: &State, action: Action, next: &mut State) -> Result<(), Violation> {
        *next = *state;
        self.story.happens(action);
        self.act(next, action)?;
        self.tidy(next);
        properties::check(next, &self.scenario, &self.book)
    }

    fn act(&mut self, state: &mut State, action: Action) -> Result<(), Violation> {
        match action {
            Action::Begin { client } => {
                let attempts = self.scenario.attempts.get(client).copied().unwrap_or(1);
                state.client_mut(client).stage = Stage::Alive;
                self.call(state, client, Input::Begin { attempts })
            }
            Action::HandOver { client } => self.call(state, client, Input::HandOver),
            Action::Extend { client, ttl } => {
                let number = state.client(client).extended;
                state.client_mut(client).extended += 1;
                self.call(state, client, Input::Extend { number, ttl })
            }
            Action::Release { client } => {
                // The holder lets go first and asks then, so the guard is not valid from now on.
                state.client_mut(client).guard = 0;
                self.call(state, client, Input::Release)
            }
            Action::Cancel { client } => {
                state.client_mut(client).guard = 0;
                self.call(state, client, Input::Cancel)
            }
            Action::Wake { client } => self.call(state, client, Input::Wake),
            Action::Execute { client, master } => {
                let link = state.link_mut(client, master);
                let place = executed(link);
                let Some(item) = link.flight.as_slice().get(place).copied() else { return Ok(()) };
                let said = self.execute(state, client, master, item, false)?;
                if let Some(slot) = state.link_mut(client, master).flight.as_mut_slice().get_mut(place) {
                    *slot = item.executed(said);
                }
                Ok(())
            }
            Action::Deliver { client, master } => {
                let link = state.link_mut(client, master);
                let Some(item) = link.flight.remove(0) else { return Ok(()) };
                link.reported = link.reported.saturating_sub(1);
                let Some(said) = item.said() else { return Ok(()) };
                self.answer(client, master, item, Heard::Said(said));
                self.settle(state, client)
            }
            Action::Overdue { client, master } => {
                let link = state.link_mut(client, master);
                let Some(item) = link.flight.as_slice().get(usize::from(link.reported)).copied() else {
                    return Ok(());
                };
                link.reported += 1;
                self.answer(client, master, item, Heard::Failed { fate: Fate::Unknown, stale: false });
                self.settle(state, client)
            }
            Action::GiveUp { client, master, stale } => {
                spend(&mut state.losses);
                self.give_up(state, client, master, stale);
                self.settle(state, client)
            }
            Action::Close { client, master, stale } => {
                spend(&mut state.losses);
                self.close(state, client, master, stale, true);
                self.settle(state, client)
            }
            Action::OpeningFails { client, master } => {
                self.refuse_queued(state, client, master);
                self.settle(state, client)
            }
            Action::Connected { client, master } => {
                let link = state.link_mut(client, master);
                link.mode = Mode::Ready;
                for debt in link.debts.take().iter() {
                    link.flight.push(Item::new(Does::Release, debt.attempt, debt.life, 0));
                }
                for item in link.queued.take().iter() {
                    self.submit(state, client, master, item);
                }
                self.settle(state, client)
            }
            Action::Late { client, master, place, twice } => {
                self.execute_late(state, client, master, place, twice)
            }
            Action::Expire { master } => {
                state.master_mut(master).key = None;
                Ok(())
            }
            Action::Other { master } => {
                let client = u8::from(!state.client(0).is_absent());
                state.master_mut(master).key = Some(Key::of_nobody(client));
                Ok(())
            }
            Action::Crash { master } => {
                state.crashes -= 1;
                if !self.scenario.crash_keeps_data {
                    state.master_mut(master).key = None;
                }
                for client in 0..CLIENTS {
                    // What had not been executed dies with the process.
                    self.close(state, client, master, false, false);
                    state.link_mut(client, master).behind = Row::new();
                    self.settle(state, client)?;
                }
                Ok(())
            }
            Action::Tick => {
                self.tick(state);
                Ok(())
            }
        }
    }

    // The clients.

    /// An input for the lock, and all that follows from it at once.
    fn call(&mut self, state: &mut State, client: usize, input: Input) -> Result<(), Violation> {
        self.react(state, client, input)?;
        self.settle(state, client)
    }

    /// Carries orders down and answers up until there are none, in the order of the machine's own `settle`.
    fn settle(&mut self, state: &mut State, client: usize) -> Result<(), Violation> {
        loop {
            if let Some(order) = self.orders.pop_front() {
                for master in (0..MASTERS).filter(|master| order.to >> master & 1 == 1) {
                    self.submit(state, client, master, order.item);
                }
            } else if let Some((master, round, heard)) = self.answers.pop_front() {
                self.react(state, client, Input::Answer { master, round, heard })?;
            } else {
                return Ok(());
            }
        }
    }

    fn react(&mut self, state: &mut State, client: usize, input: Input) -> Result<(), Violation> {
        let it = state.client_mut(client);
        if !it.is_alive() {
            return Ok(());
        }
        let reaction = self.book.react(it.lock, input, it.now);
        self.story.hears(client, input, it.now);
        self.orders.extend(reaction.orders.iter());
        for order in &reaction.orders {
            if matches!(order.item.action(), Does::Acquire | Does::Extend) {
                it.bound = it.bound.max(it.now + validity_of(order.item.ttl()));
            }
        }
        it.lock = reaction.lock;
        let mut violation = None;
        if let Some(until) = reaction.handed {
            violation = violation.or(properties::granted(it, until));
            it.guard = until;
            self.story
                .says(Party::Client(client), || format!("takes the guard, valid until its tick {until}"));
        }
        for told in &reaction.told {
            self.story.tells(client, *told);
            violation = violation.or(properties::told(it, *told));
            match *told {
                Told::Extended { until: Some(until) } if it.guard > 0 => it.guard = until,
                Told::Lost | Told::NotAcquired | Told::Released => it.guard = 0,
                _ => {}
            }
        }
        if it.lock == 0 {
            it.end();
        }
        violation.map_or(Ok(()), Err)
    }

    // The connections.

    fn answer(&mut self, client: usize, master: usize, item: Item, heard: Heard) {
        self.story.arrives(client, master, item, heard);
        if item.round() > 0 {
            self.answers.push_back((u8::try_from(master).unwrap_or(u8::MAX), item.round(), heard));
        }
    }

    /// As `Connection::submit`, `queue` and `refuse`.
    fn submit(&mut self, state: &mut State, client: usize, master: usize, item: Item) {
        let link = state.link_mut(client, master);
        match link.mode {
            Mode::Ready => {
                link.flight.push(item);
                self.story.sends(client, master, item);
            }
            Mode::Opening => {
                let unsent = |other: &Item| acquires(*other, item.attempt());
                let place = link.queued.as_slice().iter().position(unsent);
                match place.filter(|_| item.action().clears()) {
                    // Its acquisition has not left, so there is nothing to release.
                    Some(place) => {
                        link.queued.remove(place);
                        self.answer(client, master, item, Heard::Said(Said::No));
                    }
                    None => link.queued.push(item),
                }
            }
        }
    }

    /// As `Connection::fail_queued` and `refuse`.
    fn refuse_queued(&mut self, state: &mut State, client: usize, master: usize) {
        let link = state.link_mut(client, master);
        for item in link.queued.take().iter() {
            if item.action().clears() {
                link.debts.push(Debt { attempt: item.attempt(), life: item.ttl() });
            }
            self.answer(client, master, item, Heard::Failed { fate: Fate::NotSent, stale: false });
        }
    }

    /// As `Connection::give_up`: releases are written behind the unanswered acquisitions, and all that was not
    /// answered is reported as possibly undone.
    fn give_up(&mut self, state: &mut State, client: usize, master: usize, stale: bool) {
        let link = state.link_mut(client, master);
        let flight = link.flight;
        let mut behind: Row<Item, 16> = Row::new();
        flight.iter().filter(|item| item.said().is_none()).for_each(|item| behind.push(item));
        for item in flight.iter().filter(|item| item.action() == Does::Acquire) {
            let released = |other: Item| other.action().clears() && other.attempt() == item.attempt();
            if !flight.iter().any(released) {
                behind.push(Item::new(Does::Release, item.attempt(), 0, 0));
            }
        }
        leave_behind(&mut link.behind, behind.as_slice());
        self.fail_flight(state, client, master, Fate::Undone, stale);
        state.link_mut(client, master).mode = Mode::Opening;
    }

    /// As `Connection::lose`.
    fn close(&mut self, state: &mut State, client: usize, master: usize, stale: bool, may_come_late: bool) {
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
        state.link_mut(client, master).mode = Mode::Opening;
    }

    /// As `Connection::fail_flight`.
    fn fail_flight(&mut self, state: &mut State, client: usize, master: usize, fate: Fate, stale: bool) {
        let link = state.link_mut(client, master);
        let (flight, reported) = (link.flight.take(), usize::from(std::mem::take(&mut link.reported)));
        for (place, item) in flight.iter().enumerate() {
            if item.action().clears() {
                let debt = Debt { attempt: item.attempt(), life: item.ttl() };
                state.link_mut(client, master).debts.push(debt);
            }
            if place >= reported || fate == Fate::Undone {
                self.answer(client, master, item, Heard::Failed { fate, stale });
            }
        }
    }

    // The masters.

    /// `SET NX PX` and the scripts of `wire::script`.
    fn execute(
        &mut self,
        state: &mut State,
        client: usize,
        master: usize,
        item: Item,
        is_late: bool,
    ) -> Result<Said, Violation> {
        let late = self.scenario.late;
        let owner = u8::try_from(client).unwrap_or(u8::MAX);
        let key = &mut state.master_mut(master).key;
        let before = *key;
        let is_own = |key: Key| (key.client, key.attempt) == (owner, item.attempt());
        let life = item.ttl() + late;
        let said = match (item.action(), &mut *key) {
            (Does::Acquire, None) => {
                *key = Some(Key { client: owner, attempt: item.attempt(), life, is_late });
                Said::Yes
            }
            (Does::Acquire, Some(_)) => Said::No,
            (action, Some(held)) if is_own(*held) => {
                match action {
                    Does::Extend => held.life = held.life.max(life),
                    _ => *key = None,
                }
                Said::Yes
            }
            (Does::Undo, Some(_)) => Said::Holder,
            _ => Said::No,
        };
        let after = *key;
        self.story.executes(client, master, item, said, is_late);
        properties::executed(before, after, item.action(), is_own).map_or(Ok(said), Err)
    }

    fn execute_late(
        &mut self,
        state: &mut State,
        client: usize,
        master: usize,
        place: usize,
        twice: bool,
    ) -> Result<(), Violation> {
        let Some(item) = state.link(client, master).behind.as_slice().get(place).copied() else {
            return Ok(());
        };
        if twice {
            state.duplicates -= 1;
        } else if !item.is_again() {
            let behind = &mut state.link_mut(client, master).behind;
            behind.remove(place);
            if let Some(next) = behind.as_mut_slice().get_mut(place).filter(|next| !next.is_first()) {
                *next = next.as_first(true);
            }
        }
        self.execute(state, client, master, item, true).map(|_| ())
    }

    /// A tick of all clocks. A client's clock that nothing depends on any more stands still, so that there is an end of states.
    fn tick(&mut self, state: &mut State) {
        for client in state.clients.iter_mut().filter(|client| client.is_alive()) {
            let is_awaited = self.book.deadline(client.lock).is_some_and(|deadline| client.now < deadline);
            if is_awaited || client.now < client.bound {
                client.now += 1;
            }
        }
        for master in &mut state.masters {
            if let Some(key) = master.key.as_mut().filter(|key| !key.is_nobodys()) {
                key.life -= 1;
            }
            master.key = master.key.filter(|key| key.life > 0);
            for link in &mut master.links {
                link.debts.as_mut_slice().iter_mut().for_each(|debt| debt.life -= 1);
                let debts = link.debts.take();
                debts.iter().filter(|debt| debt.life > 0).for_each(|debt| link.debts.push(debt));
            }
        }
    }

    // What makes no difference any more.

    /// Brings states together that cannot be told apart from now on. Each rule is argued for in the module's documentation.
    fn tidy(&self, state: &mut State) {
        for client in 0..CLIENTS {
            let it = *state.client(client);
            let is_done = is_done(state, client, &self.book);
            let owner = u8::try_from(client).unwrap_or(u8::MAX);
            for master in 0..MASTERS {
                if it.is_absent() {
                    self.tidy_absent(state, client, master);
                    continue;
                }
                let key = state.master(master).key.filter(|key| key.client == owner);
                let link = state.link_mut(client, master);
                if it.stage == Stage::Ended {
                    while link.flight.as_slice().first().is_some_and(|item| item.said().is_some()) {
                        link.flight.remove(0);
                    }
                    link.flight.as_mut_slice().iter_mut().for_each(|item| *item = item.for_nobody());
                    link.queued.as_mut_slice().iter_mut().for_each(|item| *item = item.for_nobody());
                    link.reported = 0;
                }
                if link.is_idle() && is_done {
                    link.mode = Mode::Ready;
                } else if link.is_idle() && self.scenario.losses.is_none() {
                    link.mode = Mode::Opening;
                }
                if !link.behind.is_empty() {
                    tidy_behind(link, key);
                }
            }
        }
    }

    /// What an absent client does to a master matters only to an acquisition of the other that is yet to come.
    fn tidy_absent(&self, state: &mut State, client: usize, master: usize) {
        let other = 1 - client;
        let it = state.client(other);
        let may_try_again = match it.stage {
            Stage::Waiting => true,
            Stage::Alive => {
                let attempts = self.scenario.attempts.get(other).copied().unwrap_or(1);
                !self.book.is_parting(it.lock)
                    && (self.scenario.stale || self.book.attempt(it.lock) + 1 < attempts)
            }
            Stage::Ended | Stage::Absent => false,
        };
        let link = state.link(other, master);
        let may_touch = is_done(state, other, &self.book) && !(link.is_idle() && link.behind.is_empty());
        let is_concerned = may_try_again || may_acquire(link) || may_touch;
        let mut left = Link::new();
        if is_concerned && may_acquire(state.link(client, master)) {
            left.behind.push(Item::new(Does::Acquire, 0, 0, 0).as_first(true).again());
        }
        *state.link_mut(client, master) = left;
        let key = &mut state.master_mut(master).key;
        if let Some(held) = key.filter(|key| usize::from(key.client) == client) {
            *key = is_concerned.then_some(Key::of_nobody(held.client));
        }
    }

    /// A client that will never hold the lock again is looked at apart: in the state itself it becomes whatever may take and
    /// lose keys where it may still do so, and in the state that is returned it stands alone, and the other becomes that.
    pub(super) fn part(&self, state: &mut State) -> Option<State> {
        if state.clients.iter().any(Client::is_absent) {
            return None;
        }
        let client = (0..CLIENTS).find(|&client| is_done(state, client, &self.book))?;
        let mut alone = *state;
        let other = 1 - client;
        for master in 0..MASTERS {
            alone.link_mut(other, master).queued.push(Item::new(Does::Acquire, 0, 0, 0));
        }
        alone.client_mut(other).leave();
        self.tidy(&mut alone);
        state.client_mut(client).leave();
        self.tidy(state);
        Some(alone)
    }
}

/// Whether an acquisition is on this way that has not been executed.
fn may_acquire(link: &Link) -> bool {
    let rows = link.flight.iter().chain(link.queued.iter()).chain(link.behind.iter());
    rows.into_iter().any(|item| item.action() == Does::Acquire && item.said().is_none())
}

fn spend(budget: &mut u8) {
    if *budget != u8::MAX {
        *budget -= 1;
    }
}

fn leave_behind(behind: &mut Row<Item, 12>, items: &[Item]) {
    for (place, item) in items.iter().enumerate() {
        behind.push(item.left_behind(place == 0));
    }
}

/// Forgets what was left behind and can change nothing, and puts connections in one order.
fn tidy_behind(link: &mut Link, key: Option<Key>) {
    let unexecuted = |row: &[Item], attempt| row.iter().any(|item| acquires(*item, attempt));
    let may_stand = |attempt| {
        key.is_some_and(|key| key.attempt == attempt)
            || unexecuted(link.flight.as_slice(), attempt)
            || unexecuted(link.queued.as_slice(), attempt)
            || unexecuted(link.behind.as_slice(), attempt)
    };
    let mut connections: Row<Row<Item, 8>, 8> = Row::new();
    let mut starts = true;
    for item in link.behind.iter() {
        starts |= item.is_first();
        if item.action() == Does::Acquire || may_stand(item.attempt()) {
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
