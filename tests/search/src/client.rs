//! The state of a client, and the bytes that represent it.

use super::state::Bytes;

/// The state of a client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Stage {
    Waiting,
    Alive,
    Ended,
    /// It is examined separately: here it may have any state.
    Absent,
}

/// One client: its lock by number, its clock since it began, and what its guard promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Client {
    pub(super) stage: Stage,
    /// The lock's number in the book of locks; zero if there is none.
    pub(super) lock: u32,
    /// Ticks of its own clock since it began.
    pub(super) now: u8,
    /// The first tick at which its guard is not valid any more; zero if there is no guard.
    pub(super) guard: u8,
    /// The latest end of validity that any round sent so far can give, as the checker counts it.
    pub(super) bound: u8,
    /// How many extensions it has requested.
    pub(super) extended: u8,
    /// How many tokens its former locks have drawn.
    pub(super) drawn: u8,
    /// The largest number that was granted before the first send of the present attempt.
    pub(super) floor: u8,
    /// Whether it has ended with "held by another".
    pub(super) was_refused: bool,
    /// Whether it has downgraded its lock to a shared one.
    pub(super) shares: bool,
}

impl Client {
    pub(super) const WAITING: Self = Self {
        stage: Stage::Waiting,
        lock: 0,
        now: 0,
        guard: 0,
        bound: 0,
        extended: 0,
        drawn: 0,
        floor: 0,
        was_refused: false,
        shares: false,
    };

    /// Whether its guard is valid by its own clock.
    pub(super) fn has_valid_guard(&self) -> bool {
        self.now < self.guard
    }

    pub(super) fn is_alive(&self) -> bool {
        self.stage == Stage::Alive
    }

    /// Whether it has not requested the lock yet.
    pub(super) fn is_new(&self) -> bool {
        self.stage == Stage::Waiting && self.drawn == 0
    }

    pub(super) fn is_absent(&self) -> bool {
        self.stage == Stage::Absent
    }

    pub(super) fn leave(&mut self) {
        *self = Self { stage: Stage::Absent, was_refused: self.was_refused, ..Self::WAITING };
    }

    pub(super) fn end(&mut self) {
        *self = Self { stage: Stage::Ended, was_refused: self.was_refused, ..Self::WAITING };
    }

    /// Its lock has ended, and it requests another with its next token.
    pub(super) fn begin_anew(&mut self, drawn: u8) {
        *self = Self { drawn, ..Self::WAITING };
    }

    /// Everything except the lock's number.
    pub(super) fn head(&self) -> [u8; 5] {
        let stage = match self.stage {
            Stage::Waiting => 0,
            Stage::Alive => 1,
            Stage::Ended => 2,
            Stage::Absent => 3,
        };
        let refused = u8::from(self.was_refused) << 3 | u8::from(self.shares) << 7;
        [stage | self.floor << 2, self.now, self.guard, self.bound, self.extended | refused | self.drawn << 4]
    }
}

impl Client {
    pub(super) fn read(input: &mut Bytes<'_>) -> Self {
        let [stage, now, guard, bound, extended] = input.take();
        let floor = stage >> 2;
        let stage = match stage & 3 {
            0 => Stage::Waiting,
            1 => Stage::Alive,
            2 => Stage::Ended,
            _ => Stage::Absent,
        };
        Self {
            stage,
            lock: 0,
            now,
            guard,
            bound,
            extended: extended & 7,
            drawn: extended >> 4 & 7,
            floor,
            was_refused: extended >> 3 & 1 == 1,
            shares: extended >> 7 == 1,
        }
    }
}
