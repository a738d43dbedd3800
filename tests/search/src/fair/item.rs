//! One request of a waiter to a master, and the master's answer.

use quorlock_core::internals::Action;

use super::state::Bytes;

/// The kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Does {
    /// It enters the queue, and acquires the lock; without a place it acquires the lock alone.
    #[default]
    Enter,
    /// It keeps the place.
    Stay,
    /// It takes the token back, and reads the holder of the lock.
    Undo,
    /// It takes the token back, and leaves the queue if it has a place.
    Release,
}

impl Does {
    pub(super) fn of(action: Action) -> Self {
        match action {
            Action::Acquire => Self::Enter,
            Action::Stay => Self::Stay,
            Action::Undo => Self::Undo,
            Action::Release => Self::Release,
            other => unreachable!("no waiter of this search asks for {other:?}"),
        }
    }
}

/// How long another waiter's place lives, if nothing depends on that: one lease.
pub(super) const LEFT: u16 = 1_000;

/// How long a turn is.
pub(super) const TURN: u16 = 200;

/// The answer of a master. Lives are in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Said {
    Yes,
    No,
    /// Another holds the lock.
    Held {
        left: u16,
    },
    /// Another place is before this one. The number is that of this place.
    Behind {
        number: u8,
        left: u16,
    },
    /// It is first, and another holds the lock.
    First {
        number: u8,
        left: u16,
    },
    /// It is first, and the lock is free.
    Free {
        number: u8,
    },
}

impl Said {
    fn code(self) -> (u8, u8) {
        match self {
            Self::Yes => (1, 0),
            Self::No => (2, 0),
            Self::Held { .. } => (3, 0),
            Self::Behind { number, .. } => (4, number),
            Self::First { number, .. } => (5, number),
            Self::Free { number } => (6, number),
        }
    }

    fn of(code: u8, number: u8) -> Option<Self> {
        let left = LEFT;
        match code {
            0 => None,
            1 => Some(Self::Yes),
            2 => Some(Self::No),
            3 => Some(Self::Held { left }),
            4 => Some(Self::Behind { number, left }),
            5 => Some(Self::First { number, left }),
            _ => Some(Self::Free { number }),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Item {
    pub(super) does: Does,
    /// The number of the token among its waiter's.
    pub(super) token: u8,
    /// The number of the place among its waiter's; zero for none.
    pub(super) place: u8,
    /// The number that the place must have there; zero for one that the master chooses.
    pub(super) number: u8,
    /// Whether the place must have exactly that number, not a larger one.
    pub(super) is_exact: bool,
    /// The round that waits for the answer; zero if none does.
    pub(super) round: u8,
    pub(super) said: Option<Said>,
}

impl Item {
    /// The release that follows a request that was left behind or not answered.
    pub(super) fn release(self) -> Self {
        let place = if self.does == Does::Undo { 0 } else { self.place };
        Self { does: Does::Release, token: self.token, place, ..Self::default() }
    }

    pub(super) fn clears(self) -> bool {
        matches!(self.does, Does::Undo | Does::Release)
    }

    /// The same request without a client that waits for the answer: an undo is then a release.
    pub(super) fn for_nobody(self) -> Self {
        let does = if self.does == Does::Undo { Does::Release } else { self.does };
        Self { does, round: 0, ..self }
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        let fits = self.token < 16 && self.place < 16 && self.number < 16;
        let (code, said) = self.said.map_or((0, 0), Said::code);
        assert!(fits && said < 16, "tokens, places and numbers fit their bits");
        let does = match self.does {
            Does::Enter => 0,
            Does::Stay => 1,
            Does::Undo => 2,
            Does::Release => 3,
        };
        out.extend_from_slice(&[
            does | u8::from(self.is_exact) << 2 | code << 3,
            self.token | self.place << 4,
            self.number | said << 4,
            self.round,
        ]);
    }

    pub(super) fn read(input: &mut Bytes<'_>) -> Self {
        let [head, token, number, round] = input.take();
        let does = match head & 3 {
            0 => Does::Enter,
            1 => Does::Stay,
            2 => Does::Undo,
            _ => Does::Release,
        };
        Self {
            does,
            token: token & 15,
            place: token >> 4,
            number: number & 15,
            is_exact: head & 4 != 0,
            round,
            said: Said::of(head >> 3, number >> 4),
        }
    }
}
