//! How a state continues without further faults: messages take no time, timers fire when
//! they are due, and no waiter gets a notification.

use std::collections::VecDeque;
use std::time::Duration;

use quorlock_core::internals::Fate;

use super::book::{DRAWN, Input, Life, TTL};
use super::item::LEFT;
use super::state::{MASTERS, Stage, State, WAITERS};
use super::world::{World, execute_next, heard, send};

/// How long it continues, in milliseconds: twice the life of everything that was left behind.
const HORIZON: u16 = 2 * (TTL + LEFT);
/// How many messages and timers there may be in that time: a waiter that asks without a pause
/// causes more.
const MOST: u32 = 2_000;

impl World {
    /// Whether one of the waiters gets the lock from here on, with the master `down` not answering.
    /// The first holder's release arrives.
    pub(super) fn gets_on(&self, state: &State, down: Option<usize>) -> bool {
        let mut onward = Onward::new(self, state, down);
        onward.exchange();
        while !onward.is_granted() {
            if onward.asks_for_ever() || !onward.pass() {
                return false;
            }
            onward.exchange();
        }
        true
    }

    /// Whether a waiter must get the lock that no one holds.
    pub(super) fn is_to_get_on(&self, state: &State, down: Option<usize>) -> bool {
        let needed = self.book.rules.config.quorum().needed();
        let reaches = |waiter: usize| {
            let up = state.masters().iter().enumerate().filter(|(master, _)| Some(*master) != down);
            up.filter(|(_, master)| !master.link(waiter).is_cut).count() >= needed
        };
        let seats = || state.seats().iter().enumerate().filter(|(_, seat)| seat.stage == Stage::Alive);
        let is_held = seats().any(|(_, seat)| self.book.facts(seat.node).is_held);
        !is_held && seats().any(|(waiter, _)| reaches(waiter))
    }

    /// Whether nothing is under way, except messages to the master that is down.
    pub(super) fn is_idle(state: &State, down: Option<usize>) -> bool {
        let up = state.masters().iter().enumerate().filter(|(master, _)| Some(*master) != down);
        let mut links = up.flat_map(|(_, master)| master.links.iter());
        state.focus().is_none() && links.all(|link| link.flight.is_empty())
    }
}

struct Onward<'a> {
    world: &'a World,
    state: State,
    lives: [Option<Life>; WAITERS],
    passed: Duration,
    /// How many inputs there have been.
    done: u32,
}

impl<'a> Onward<'a> {
    fn new(world: &'a World, state: &State, down: Option<usize>) -> Self {
        let mut state = *state;
        let mut lives = [const { None }; WAITERS];
        for (life, seat) in lives.iter_mut().zip(state.seats()) {
            *life = (seat.stage == Stage::Alive).then(|| world.book.life(seat.node).clone());
        }
        let mut lost = Vec::new();
        for (number, master) in state.masters_mut().iter_mut().enumerate() {
            master.lose_holder();
            master.key.iter_mut().for_each(|key| key.until = TTL);
            master.queue.as_mut_slice().iter_mut().for_each(|place| place.until = LEFT);
            for (waiter, link) in master.links.iter_mut().enumerate() {
                link.behind.take();
                if down == Some(number) {
                    link.is_cut = true;
                    let flight = link.flight.take();
                    lost.extend(flight.iter().map(|item| (waiter, number, item.round)));
                }
            }
        }
        let mut onward = Self { world, state, lives, passed: Duration::ZERO, done: 0 };
        for (waiter, master, round) in lost.into_iter().filter(|(.., round)| *round > 0) {
            let master = u8::try_from(master).unwrap_or(u8::MAX);
            onward.tell(waiter, Input::Lost { master, round, fate: Fate::Unknown });
        }
        onward
    }

    /// The present time in whole milliseconds.
    fn now(&self) -> u16 {
        u16::try_from(self.passed.as_millis()).unwrap_or(u16::MAX)
    }

    fn is_granted(&self) -> bool {
        let facts = |life: &Life| life.facts(&self.world.book.rules);
        self.lives.iter().flatten().any(|life| facts(life).is_held)
    }

    /// Whether there have been more messages or attempts than there can be until the horizon.
    fn asks_for_ever(&self) -> bool {
        // The next input may draw a few more.
        self.done > MOST || self.lives.iter().flatten().any(|life| life.drawn + 24 > DRAWN)
    }

    fn tell(&mut self, waiter: usize, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let Some(Some(life)) = self.lives.get_mut(waiter) else { return };
            self.done += 1;
            let done = life.hear(&self.world.book.rules, input);
            send(&mut self.state, waiter, &done.orders, &mut inputs);
        }
    }

    /// Executes all requests and delivers all answers, until there are none left, or there were too
    /// many.
    fn exchange(&mut self) {
        let now = Some(self.now());
        let mut is_quiet = false;
        while !is_quiet && !self.asks_for_ever() {
            is_quiet = true;
            for (waiter, master) in (0..WAITERS).flat_map(|waiter| (0..MASTERS).map(move |to| (waiter, to))) {
                if master >= self.state.shape.masters || waiter >= self.state.shape.waiters {
                    continue;
                }
                execute_next(&mut self.state, waiter, master, now, &self.world.fair);
                let item = self.state.master_mut(master).link_mut(waiter).flight.remove(0);
                is_quiet &= item.is_none();
                if let Some(input) = item.and_then(|item| heard(master, item)) {
                    self.tell(waiter, input);
                }
            }
        }
    }

    /// Lets time pass until the next timer fires. Returns whether that is before the horizon.
    fn pass(&mut self) -> bool {
        let due = self.lives.iter().flatten().filter_map(|life| Some(life.deadline()?.since(life.now)));
        let Some(pause) = due.min() else { return false };
        self.passed += pause;
        if self.passed > Duration::from_millis(HORIZON.into()) {
            return false;
        }
        let now = self.now();
        self.state.masters_mut().iter_mut().for_each(|master| master.expire(now));
        self.lives.iter_mut().flatten().for_each(|life| life.now = life.now + pause);
        for waiter in 0..WAITERS {
            let is_due = |life: &Life| life.deadline().is_some_and(|at| at <= life.now);
            if self.lives.get(waiter).and_then(Option::as_ref).is_some_and(is_due) {
                self.tell(waiter, Input::Wake);
            }
        }
        true
    }
}
