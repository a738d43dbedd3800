//! The inputs of a lock and its reports.

use std::time::Duration;

use quorlock_core::internals::{Answer, Fate};
use quorlock_core::{Cause, FencingToken};

use super::item::Said;
use super::state::MASTERS;

/// A master's answer, as a connection passes it to the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Heard {
    Said(Said),
    Failed { fate: Fate, stale: bool },
}

impl Heard {
    /// The same as a value of the shipped code.
    pub(super) fn answer(self) -> Answer {
        match self {
            Self::Said(Said::Yes) => Answer::Yes,
            Self::Said(Said::No) => Answer::No,
            Self::Said(Said::Counted(number)) => {
                Answer::Counted(FencingToken::new(u64::from(number)).expect("a counter that was raised"))
            }
            Self::Said(Said::Quarantined) => {
                let cause = Cause::Quarantined { remaining: Duration::ZERO };
                Answer::Failed { cause, fate: Fate::NotSent, stale: false }
            }
            Self::Said(Said::ThereInQuarantine) => Answer::OursInQuarantine { remaining: Duration::ZERO },
            Self::Said(Said::Seat(seat)) => Answer::Seats { places: 1 << seat, number: None },
            Self::Said(Said::Holder) => Answer::Holder { holder: 0, remaining: None, watched: false },
            Self::Failed { fate, stale } => Answer::Failed { cause: Cause::Closed, fate, stale },
        }
    }
}

/// One input of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Input {
    /// A new lock, with the next of the client's tokens.
    Begin {
        /// The first client with the same claim.
        kind: usize,
        attempts: u8,
        drawn: u8,
    },
    Answer {
        master: u8,
        round: u8,
        heard: Heard,
    },
    Wake,
    Take,
    Extend {
        number: u8,
        ttl: u8,
    },
    Downgrade,
    Release,
    Cancel,
}

impl Input {
    /// A number for it, which no other input has.
    pub(super) fn code(self) -> u64 {
        match self {
            Self::Begin { kind, attempts, drawn } => {
                u64::from(attempts) << 8 | u64::from(drawn) << 12 | (kind as u64) << 16
            }
            Self::Answer { master, round, heard } => {
                let heard = match heard {
                    Heard::Said(Said::Yes) => 0,
                    Heard::Said(Said::No) => 1,
                    Heard::Said(Said::Holder) => 2,
                    Heard::Said(Said::Quarantined) => 3,
                    Heard::Said(Said::ThereInQuarantine) => 7,
                    Heard::Said(Said::Counted(number)) => 16 | u64::from(number),
                    Heard::Said(Said::Seat(seat)) => 32 | u64::from(seat),
                    Heard::Failed { fate, stale } => {
                        let fate = match fate {
                            Fate::NotSent => 4,
                            Fate::Unknown => 5,
                            Fate::Undone => 6,
                        };
                        fate | u64::from(stale) << 3
                    }
                };
                1 | heard << 4 | u64::from(master) << 12 | u64::from(round) << 16
            }
            Self::Wake => 2,
            Self::Take => 3,
            Self::Extend { number, ttl } => 4 | u64::from(number) << 4 | u64::from(ttl) << 8,
            Self::Release => 5,
            Self::Cancel => 6,
            Self::Downgrade => 7,
        }
    }

    /// The same with the masters exchanged.
    pub(super) fn turned(self, places: [u8; MASTERS]) -> Self {
        match self {
            Self::Answer { master, round, heard } => {
                Self::Answer { master: place(places, master), round, heard }
            }
            other => other,
        }
    }
}

fn place(places: [u8; MASTERS], master: u8) -> u8 {
    places.get(usize::from(master)).copied().unwrap_or(master)
}

/// A report of a lock to its caller. An instant is the first tick of the client's clock at which
/// the guard is not valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Told {
    /// It is granted, with this fencing token; zero if it has none.
    Granted {
        until: u8,
        number: u8,
    },
    NotAcquired,
    /// It is not acquired because another holds it.
    HeldByAnother,
    /// The votes were split, and the lock tries again.
    Settles,
    Extended {
        until: Option<u8>,
    },
    Lost,
    Released,
}
