//! The effects of steps: on the shipped locks, on models of the connections, and on masters that
//! run the scripts.

use std::collections::VecDeque;

use quorlock_core::internals::{Action as Does, Fate};

use super::actions::{Action, executed};
use super::book::{Book, Ordered, validity_of};
use super::client::Stage;
use super::input::{Heard, Input, Told};
use super::item::Item;
use super::places::{Place, Places};
use super::properties::{self, Violation};
use super::row::Row;
use super::scenario::{Flaw, Scenario};
use super::state::{Budgets, MASTERS, Mode, Shape, State};
use super::story::{Party, Story};

/// The rules by which states follow each other.
pub(super) struct World {
    pub(super) scenario: Scenario,
    pub(super) book: Book,
    pub(super) story: Story,
    orders: VecDeque<Ordered>,
    pub(super) answers: VecDeque<(u8, u8, Heard)>,
}

impl World {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let is_one_world = scenario.asynchronous || scenario.locks == [1, 1];
        assert!(is_one_world && !(scenario.fenced && scenario.alone), "the scenario goes together");
        Self {
            book: Book::new(scenario),
            scenario: scenario.clone(),
            story: Story::new([scenario.claims, scenario.downgraded]),
            orders: VecDeque::new(),
            answers: VecDeque::new(),
        }
    }

    pub(super) fn initial(&self) -> State {
        let Scenario { losses, crashes, evictions, duplicates, .. } = self.scenario;
        let losses = losses.unwrap_or(u8::MAX);
        let shape = Shape { clients: self.scenario.clients(), resources: self.scenario.resources() };
        let mut state = State::initial(shape, Budgets { losses, crashes, evictions, duplicates });
        if self.scenario.alone {
            Self::let_leave(&mut state, 1);
        }
        self.tidy(&mut state);
        state
    }

    /// Writes the state after this step into `next`, and checks whether it is allowed.
    pub(super) fn step(&mut self, state: &State, action: Action, next: &mut State) -> Result<(), Violation> {
        *next = *state;
        self.orders.clear();
        self.answers.clear();
        self.story.happens(action);
        self.act(next, action)?;
        self.tidy(next);
        properties::check(next, &self.scenario, &self.book)
    }

    fn act(&mut self, state: &mut State, action: Action) -> Result<(), Violation> {
        match action {
            Action::Begin { client } => {
                let it = state.client_mut(client);
                let (drawn, left) = (it.drawn, self.scenario.tokens_of(client) - it.drawn);
                let attempts = self.scenario.attempts_of(client).min(left);
                it.stage = Stage::Alive;
                let kind = self.scenario.kind_of(client);
                self.call(state, client, Input::Begin { kind, attempts, drawn })
            }
            Action::Take { client } => self.call(state, client, Input::Take),
            Action::Extend { client, ttl } => {
                let number = state.client(client).extended;
                state.client_mut(client).extended += 1;
                self.call(state, client, Input::Extend { number, ttl })
            }
            Action::Downgrade { client } => {
                // The holder considers itself a reader from now on. The masters receive the
                // downgrade later.
                state.client_mut(client).shares = self.scenario.flaw != Some(Flaw::WritesUntilShared);
                self.call(state, client, Input::Downgrade)
            }
            Action::Release { client } => {
                // The holder ends the guard first and then sends the release, so the guard is not
                // valid from now on.
                state.client_mut(client).guard = 0;
                self.call(state, client, Input::Release)
            }
            Action::Cancel { client } => {
                state.client_mut(client).guard = 0;
                self.call(state, client, Input::Cancel)
            }
            Action::Wake { client } => {
                let it = state.client_mut(client);
                it.now = it.now.max(self.book.deadline(it.lock).unwrap_or(0));
                self.call(state, client, Input::Wake)
            }
            Action::Execute { client, master } | Action::Refuse { client, master } => {
                let link = state.link(client, master);
                let place = executed(link);
                let Some(item) = link.flight.as_slice().get(place).copied() else { return Ok(()) };
                let said = if matches!(action, Action::Refuse { .. }) {
                    self.refuse(state, client, master, item)
                } else {
                    self.execute(state, client, master, item, false)?
                };
                if let Some(slot) = state.link_mut(client, master).flight.as_mut_slice().get_mut(place) {
                    *slot = item.executed(said);
                }
                Ok(())
            }
            Action::Copy { client, master } => {
                state.budgets.duplicates -= 1;
                let link = state.link_mut(client, master);
                let next = link.flight.as_slice().get(executed(link)).copied();
                next.into_iter().for_each(|item| link.behind.push(item.left_behind(true)));
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
                spend(&mut state.budgets.losses);
                self.give_up(state, client, master, stale);
                self.settle(state, client)
            }
            Action::Close { client, master, stale } => {
                spend(&mut state.budgets.losses);
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
                    let release = Item::new(Does::Release, debt.attempt, debt.life, 0);
                    link.flight.push(release.formed(debt.form));
                }
                for item in link.queued.take().iter() {
                    self.submit(state, client, master, item);
                }
                self.settle(state, client)
            }
            Action::Late { client, master, place, twice } => {
                self.execute_late(state, client, master, place, twice)
            }
            Action::Expire { master, resource, entry } => {
                let place = state.master_mut(master).place_mut(resource);
                match entry {
                    Some(entry) => place.lose_entry(entry),
                    None => place.clear(),
                }
                Ok(())
            }
            Action::Evict { master, resource } => {
                state.budgets.evictions -= 1;
                state.master_mut(master).place_mut(resource).clear();
                Ok(())
            }
            Action::Visit { master } => {
                self.crowd(Does::Acquire, state.master_mut(master));
                Ok(())
            }
            Action::Part { master } => {
                self.crowd(Does::Release, state.master_mut(master));
                Ok(())
            }
            Action::Crash { master } => {
                state.budgets.crashes -= 1;
                if !self.scenario.crash_keeps_data {
                    let quarantine = self.scenario.quarantine_ticks();
                    let is_ours = |place: &Place| place.keys().any(|key| key.client == 0);
                    let mut aims = self.scenario.aims_of(0).iter();
                    let lost = state.master_mut(master);
                    lost.lost_a_vote = self.scenario.alone
                        && quarantine > 0
                        && !aims.all(|aim| is_ours(lost.place(aim.resource())));
                    (lost.places, lost.quarantine) = (Places::default(), quarantine);
                }
                for client in 0..state.shape.clients {
                    // Requests that had not been executed are lost with the process.
                    self.close(state, client, master, false, false);
                    state.link_mut(client, master).behind = Row::new();
                    self.settle(state, client)?;
                }
                Ok(())
            }
            Action::Open { master } => {
                let opened = state.master_mut(master);
                (opened.quarantine, opened.lost_a_vote) = (0, false);
                Ok(())
            }
            Action::Count { master, resource } => {
                let counter = state.master_mut(master).counters.get_mut(resource);
                counter.into_iter().for_each(|counter| *counter += 1);
                Ok(())
            }
            Action::Tick => {
                self.tick(state);
                Ok(())
            }
        }
    }

    // The clients.

    /// Passes an input to the lock, and carries out everything that follows at once.
    fn call(&mut self, state: &mut State, client: usize, input: Input) -> Result<(), Violation> {
        self.react(state, client, input)?;
        self.settle(state, client)
    }

    /// Carries orders down and answers up until there are none, in the order of the machine's own
    /// `settle`.
    pub(super) fn settle(&mut self, state: &mut State, client: usize) -> Result<(), Violation> {
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
        let (is_reader, granted) = (self.scenario.only_reads(client), state.granted);
        // A reader may have the number of the writer before it, and is not compared with other
        // readers.
        let floor = state.largest_number().max(if is_reader { 0 } else { state.read });
        let it = state.client_mut(client);
        if !it.is_alive() {
            return Ok(());
        }
        let fenced = self.scenario.fenced;
        let downgrades = !self.scenario.form_of(client, true).is_empty();
        let reaction = self.book.react(it.lock, input, it.now);
        self.story.hears(client, input, it.now);
        self.orders.extend(reaction.orders.iter());
        for order in &reaction.orders {
            if order.item.action() == Does::Acquire {
                it.floor = floor;
            }
            // A permit is requested several times in one round, and validity counts from the
            // beginning of the round.
            let is_late = self.scenario.permits && !matches!(input, Input::Begin { .. });
            let begins = order.item.action() == Does::Acquire && !is_late;
            if begins || order.item.action() == Does::Extend {
                it.bound = it.bound.max(it.now + validity_of(order.item.ttl()));
            }
        }
        let (former, mut number) = (it.lock, 0);
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
            if let Told::Granted { number: token, .. } = *told {
                violation = violation
                    .or(properties::numbered(token, it.floor, granted, is_reader).filter(|_| fenced));
                number = token;
            }
            match *told {
                Told::Extended { until: Some(until) } if it.guard > 0 => {
                    it.guard = until;
                    it.shares |= downgrades && self.scenario.flaw == Some(Flaw::WritesUntilShared);
                }
                Told::HeldByAnother => (it.guard, it.was_refused) = (0, self.scenario.one_wins),
                Told::Lost | Told::NotAcquired | Told::Settles | Told::Released => it.guard = 0,
                _ => {}
            }
        }
        if self.scenario.asynchronous {
            // From now on the lock would only release, which concerns no number, and keys vanish
            // anyway.
            let extensions = self.scenario.extensions_of(client);
            if self.book.is_parting(it.lock) || number > 0 && extensions == 0 {
                it.lock = 0;
            }
        }
        if it.lock == 0 {
            let drawn = self.book.attempt(former) + 1;
            if self.scenario.asynchronous && drawn < self.scenario.tokens_of(client) {
                it.begin_anew(drawn);
            } else {
                it.end();
            }
        }
        if fenced && number > 0 {
            if is_reader {
                state.read = state.read.max(number);
            } else {
                state.granted |= 1 << number;
            }
        }
        violation.map_or(Ok(()), Err)
    }
}

fn spend(budget: &mut u8) {
    if *budget != u8::MAX {
        *budget -= 1;
    }
}
