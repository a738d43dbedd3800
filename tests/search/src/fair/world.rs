//! The effects of steps: the shipped waiters, connections between them and the masters, and the
//! queues.

use std::collections::{HashSet, VecDeque};

use quorlock_core::internals::Fate;

use super::book::{Book, Input};
use super::item::{Does, Item};
use super::queue::{Key, Place};
use super::state::{Budgets, Focus, HOLDER, Shape, Stage, State, WAITERS};
use super::steps::{Step, enabled, executed};
use super::{Fair, FairViolation};
use crate::visited::fingerprint;

/// Why a step does not lead to a further state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    /// It would be one more attempt than the scenario allows.
    Beyond,
    Violation(FairViolation),
}

/// The result of some steps.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next<'a> {
    State(&'a State),
    Violation(FairViolation),
    /// Other steps from this state lead beyond what is searched.
    CutOff(&'a State),
}

/// Steps that depend on each other, and the states between such steps that were passed through.
#[derive(Default)]
struct Way {
    steps: Vec<Step>,
    passed: HashSet<u64>,
    bytes: Vec<u8>,
}

impl Way {
    /// Whether it reaches this state for the first time.
    fn passes(&mut self, state: &State) -> bool {
        self.bytes.clear();
        state.write_head(&mut self.bytes);
        for (number, master) in state.masters().iter().enumerate() {
            state.write_master(number, &mut self.bytes);
            self.bytes.push(master.focus.code());
        }
        state.seats().iter().for_each(|seat| self.bytes.extend(seat.node.to_le_bytes()));
        self.passed.insert(fingerprint(&self.bytes))
    }
}

/// The rules by which states follow each other.
pub(super) struct World {
    pub(super) fair: Fair,
    pub(super) book: Book,
}

impl World {
    pub(super) fn new(fair: &Fair) -> Self {
        Self { fair: *fair, book: Book::new(fair.masters) }
    }

    pub(super) fn initial(&self) -> State {
        let Fair { masters, waiters, deaths, cancels, losses, forgets, .. } = self.fair;
        let budgets = Budgets { deaths, cancels, losses, forgets };
        let mut state = State::new(Shape { masters, waiters }, budgets);
        for (number, master) in state.masters_mut().iter_mut().enumerate() {
            master.counter = self.fair.numbers.get(number).copied().unwrap_or(0);
            if self.fair.held >> number & 1 != 0 {
                master.counter += 1;
                master.key = Some(Key { client: HOLDER, token: 0, until: 0 });
                master.queue.push(Place { number: master.counter, client: HOLDER, place: 0, until: 0 });
            }
            for (link, reach) in master.links.iter_mut().zip(self.fair.reach) {
                link.is_cut = reach >> number & 1 == 0;
            }
        }
        state
    }

    /// Visits all states that come next, each after one step, or after several steps of which each
    /// depends on the one before. `visit` gets the steps with the state after them, or the state
    /// before a step that is not taken. It returns whether to go on.
    pub(super) fn each_next(
        &mut self,
        state: &State,
        visit: &mut impl FnMut(&mut Self, &[Step], Next<'_>) -> bool,
    ) {
        self.each_from(state, &mut Way::default(), visit);
    }

    fn each_from(
        &mut self,
        state: &State,
        way: &mut Way,
        visit: &mut impl FnMut(&mut Self, &[Step], Next<'_>) -> bool,
    ) -> bool {
        let mut steps = Vec::new();
        enabled(state, &self.fair, &self.book, &mut steps);
        let mut is_cut_off = false;
        for step in steps {
            way.steps.push(step);
            let goes_on = match self.step(state, step) {
                Ok(after) if after.focus().is_none() => visit(self, &way.steps, Next::State(&after)),
                Ok(after) => !way.passes(&after) || self.each_from(&after, way, visit),
                Err(Stop::Violation(violation)) => visit(self, &way.steps, Next::Violation(violation)),
                Err(Stop::Beyond) => {
                    is_cut_off = true;
                    true
                }
            };
            if !goes_on {
                return false;
            }
            way.steps.pop();
        }
        !is_cut_off || visit(self, &way.steps, Next::CutOff(state))
    }

    /// Returns the state after this step.
    fn step(&mut self, state: &State, step: Step) -> Result<State, Stop> {
        let mut next = *state;
        next.masters_mut().iter_mut().for_each(|master| master.focus = Focus::Nothing);
        self.act(&mut next, step)?;
        tidy(&mut next);
        if let Some((master, focus)) = step.focus() {
            next.master_mut(master).focus = focus;
        }
        Ok(next)
    }

    fn act(&mut self, state: &mut State, step: Step) -> Result<(), Stop> {
        match step {
            Step::Begin { waiter } => {
                let (node, done) = self.book.begin();
                let seat = state.seat_mut(waiter);
                (seat.stage, seat.node) = (Stage::Alive, node);
                self.follow_order(state, waiter, 0)?;
                let mut inputs = VecDeque::new();
                send(state, waiter, &done.orders, &mut inputs);
                self.tell_all(state, waiter, inputs)
            }
            Step::Wake { waiter } => {
                let seat = state.seat_mut(waiter);
                seat.renewals += u8::from(self.book.facts(seat.node).renews);
                self.tell(state, waiter, Input::Wake)
            }
            Step::Tell { waiter, master } => {
                let master = u8::try_from(master).unwrap_or(u8::MAX);
                self.tell(state, waiter, Input::Told { master })
            }
            Step::Release { waiter } => self.tell(state, waiter, Input::Release),
            Step::GiveUp { waiter } => {
                state.budgets.cancels -= 1;
                self.tell(state, waiter, Input::Cancel)
            }
            Step::Die { waiter } => {
                state.budgets.deaths -= 1;
                end(state, waiter);
                Ok(())
            }
            Step::Execute { waiter, master } => {
                execute_next(state, waiter, master, None, &self.fair);
                Ok(())
            }
            Step::Deliver { waiter, master } => {
                let item = state.master_mut(master).link_mut(waiter).flight.remove(0);
                item.and_then(|item| heard(master, item))
                    .map_or(Ok(()), |input| self.tell(state, waiter, input))
            }
            Step::Lose { waiter, master, gives_up } => {
                state.budgets.losses -= 1;
                self.lose(state, waiter, master, gives_up)
            }
            Step::Late { waiter, master } => {
                let it = state.master_mut(master);
                if let Some(item) = it.link_mut(waiter).behind.remove(0) {
                    it.execute(u8::try_from(waiter).unwrap_or(u8::MAX), item, None, &self.fair);
                }
                Ok(())
            }
            Step::Leave { master } => {
                state.master_mut(master).lose_holder();
                Ok(())
            }
            Step::EndKey { master } => {
                state.master_mut(master).key = None;
                Ok(())
            }
            Step::EndPlace { master, at } => {
                state.master_mut(master).queue.remove(at);
                Ok(())
            }
            Step::Forget { master } => {
                state.budgets.forgets -= 1;
                state.master_mut(master).counter = 0;
                Ok(())
            }
        }
    }

    fn tell(&mut self, state: &mut State, waiter: usize, input: Input) -> Result<(), Stop> {
        self.tell_all(state, waiter, VecDeque::from([input]))
    }

    /// Passes an input to a waiter, and carries out everything that follows at once.
    fn tell_all(
        &mut self,
        state: &mut State,
        waiter: usize,
        mut inputs: VecDeque<Input>,
    ) -> Result<(), Stop> {
        while let Some(input) = inputs.pop_front() {
            let seat = state.seat(waiter);
            if seat.stage != Stage::Alive {
                return Ok(());
            }
            let before = seat.node;
            let (node, done) = self.book.react(before, input);
            let most = self.fair.attempts.get(waiter).copied().unwrap_or(0);
            if self.book.facts(node).attempts > most {
                return Err(Stop::Beyond);
            }
            state.seat_mut(waiter).node = node;
            self.follow_order(state, waiter, before)?;
            send(state, waiter, &done.orders, &mut inputs);
            if done.is_over {
                end(state, waiter);
            }
        }
        Ok(())
    }

    /// Records the order of the waiters, and the holder of the lock.
    fn follow_order(&self, state: &mut State, waiter: usize, before: u32) -> Result<(), Stop> {
        let (was, is) = (self.book.facts(before), self.book.facts(state.seat(waiter).node));
        let others = || (0..state.shape.waiters).filter(|other| *other != waiter);
        if is.is_held && !was.is_held {
            let facts = |other: &usize| self.book.facts(state.seat(*other).node);
            if others().any(|other| facts(&other).is_held) {
                return Err(Stop::Violation(FairViolation::TwoHolders));
            }
            if is.place > 0 && others().any(|other| state.seat(other).behind >> waiter & 1 != 0) {
                return Err(Stop::Violation(FairViolation::Overtaken));
            }
        }
        if is.place != was.place {
            state.seat_mut(waiter).behind = 0;
            let is_new = is.place > 0;
            for (other, seat) in
                state.seats_mut().iter_mut().enumerate().filter(|(other, _)| *other != waiter)
            {
                debug_assert_ne!(other, waiter, "no waiter is behind itself");
                let facts = self.book.facts(seat.node);
                let waits = facts.is_settled && !facts.is_held && !seat.may_be_forgotten;
                seat.behind &= !(1 << waiter);
                seat.behind |= u8::from(is_new && waits) << waiter;
            }
        }
        Ok(())
    }

    /// A connection ends. Requests that were not executed may be executed late. With `gives_up`,
    /// releases follow behind them, as `Connection::give_up` writes them. Releases that are still
    /// needed are owed, and come first on the next connection.
    fn lose(&mut self, state: &mut State, waiter: usize, master: usize, gives_up: bool) -> Result<(), Stop> {
        let link = state.master_mut(master).link_mut(waiter);
        let flight = link.flight.take();
        let left: Vec<Item> = flight.iter().filter(|item| item.said.is_none()).collect();
        let is_released = |item: &Item| {
            let of_same = |other: Item| (other.token, other.place) == (item.token, item.place);
            flight.iter().any(|other| other.clears() && other.round > 0 && of_same(other))
        };
        let created = left.iter().filter(|item| matches!(item.does, Does::Enter | Does::Stay));
        let releases: Vec<Item> =
            created.filter(|item| gives_up && !is_released(item)).map(|item| item.release()).collect();
        left.iter().for_each(|item| link.behind.push(item.for_nobody()));
        releases.iter().for_each(|item| link.behind.push(*item));
        flight.iter().filter(|item| item.clears()).for_each(|item| link.flight.push(item.release()));
        if releases.iter().any(|item| item.place > 0) {
            let seat = state.seat_mut(waiter);
            (seat.may_be_forgotten, seat.behind) = (true, 0);
        }
        let fate = if gives_up { Fate::Undone } else { Fate::Unknown };
        let master = u8::try_from(master).unwrap_or(u8::MAX);
        let lost = flight.iter().filter(|item| item.round > 0);
        let inputs = lost.map(|item| Input::Lost { master, round: item.round, fate }).collect();
        self.tell_all(state, waiter, inputs)
    }
}

/// The input that an answer is for a waiter; `None` if the waiter does not wait for it.
pub(super) fn heard(master: usize, item: Item) -> Option<Input> {
    let master = u8::try_from(master).unwrap_or(u8::MAX);
    let said = item.said?;
    (item.round > 0).then_some(Input::Said { master, round: item.round, said })
}

/// Sends orders to the masters. Orders to masters that cannot be reached fail at once.
pub(super) fn send(state: &mut State, waiter: usize, orders: &[(u8, Item)], inputs: &mut VecDeque<Input>) {
    for (to, item) in orders {
        for (number, master) in (0u8..).zip(state.masters_mut()) {
            if to >> number & 1 == 0 {
                continue;
            }
            let link = master.link_mut(waiter);
            if !link.is_cut {
                link.flight.push(*item);
            } else if item.round > 0 {
                inputs.push_back(Input::Lost { master: number, round: item.round, fate: Fate::NotSent });
            }
        }
    }
}

/// The master executes the next request of the connection.
pub(super) fn execute_next(state: &mut State, waiter: usize, master: usize, now: Option<u16>, fair: &Fair) {
    let it = state.master_mut(master);
    let at = executed(it.link(waiter));
    let Some(item) = it.link(waiter).flight.as_slice().get(at).copied() else { return };
    let said = it.execute(u8::try_from(waiter).unwrap_or(u8::MAX), item, now, fair);
    if let Some(slot) = it.link_mut(waiter).flight.as_mut_slice().get_mut(at) {
        slot.said = Some(said);
    }
}

/// A waiter is gone: the answers of the masters are lost.
fn end(state: &mut State, waiter: usize) {
    let seat = state.seat_mut(waiter);
    (seat.stage, seat.node, seat.renewals, seat.behind) = (Stage::Gone, 0, 0, 0);
    seat.may_be_forgotten = false;
    for other in state.seats_mut() {
        other.behind &= !(1 << waiter);
    }
}

/// Forgets answers without a receiver.
fn tidy(state: &mut State) {
    let gone: [bool; WAITERS] =
        std::array::from_fn(|waiter| state.seats().get(waiter).is_some_and(|seat| seat.stage == Stage::Gone));
    for master in state.masters_mut() {
        for (link, is_gone) in master.links.iter_mut().zip(gone).filter(|(link, _)| !link.flight.is_empty()) {
            let is_vain = |item: Item| item.said.is_some() && (is_gone || item.round == 0);
            if link.flight.iter().any(is_vain) {
                link.flight = link.flight.filtered(|item| !is_vain(item));
            }
            if is_gone {
                link.flight.as_mut_slice().iter_mut().for_each(|item| *item = item.for_nobody());
            }
        }
    }
}
