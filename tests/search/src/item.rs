//! Requests on their way.

/// A master's answer to an item that it has executed.
use quorlock_core::internals::Action;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Said {
    /// The master has the token now, or had it until now.
    Yes,
    /// The same, with the master's counter.
    Counted(u8),
    /// The master does not have the token.
    No,
    /// Another client's token is there (to an undo, and to an acquisition by script).
    Holder,
    /// The master has lost its keys and does not vote yet (only to an acquisition).
    Quarantined,
    /// The token is there, but the master has lost its keys and does not vote yet (only to an
    /// extension or a restoration).
    ThereInQuarantine,
    /// The master has assigned this seat (only to a request for any seat).
    Seat(u8),
}

/// The claim of a request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Form {
    /// What the client requests; for a permit, any seat.
    #[default]
    Sought,
    /// The claim after the downgrade.
    Downgraded,
    /// Exactly this seat.
    Seat(u8),
}

impl Form {
    /// Its code of three bits.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Sought => 0,
            Self::Downgraded => 1,
            Self::Seat(seat) => 2 + seat,
        }
    }

    pub(super) fn of(code: u8) -> Self {
        match code {
            0 => Self::Sought,
            1 => Self::Downgraded,
            seat => Self::Seat(seat - 2),
        }
    }
}

/// One request on its way: its action, which of the client's tokens it is about, its TTL, its
/// round, and the number to which the counter is raised.
///
/// If nothing is numbered, restored or quarantined, only the lower half is used: action (2 of 3
/// bits), attempt (2), TTL in ticks (4), round (4, zero is "no waiter"), what was said (2), and two
/// marks of left-behind requests. The upper half: the action's third bit, the number to raise to
/// (4), the number that was said (4), whether "no" is a quarantine or "yes" is a seat, and the
/// claim's form (3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub(super) struct Item(pub(super) u32);

impl Item {
    /// What was said, with the number and the quarantine.
    const SAID: u32 = 3 << 12 | 31 << 21;
    /// The first of the requests that were left behind on one connection.
    const FIRST: u32 = 1 << 14;
    /// The form of its claim.
    const FORM: u32 = 7 << 26;
    /// It may be executed any number of times.
    const AGAIN: u32 = 1 << 15;

    pub(super) fn new(action: Action, attempt: u8, ttl: u8, round: u8) -> Self {
        assert!(attempt < 4 && ttl < 16 && round < 16, "attempts, TTLs and rounds fit their bits");
        let action = match action {
            Action::Acquire => 0,
            Action::Extend => 1,
            Action::Release => 2,
            Action::Undo => 3,
            Action::Raise => 1 << 16,
            Action::Heal => 1 << 16 | 1,
            // These are not requests of a lock, so no search meets them.
            Action::Attend => 1 << 16 | 2,
            Action::Open => 1 << 16 | 3,
            Action::Track
            | Action::Untrack
            | Action::Ping
            | Action::Login
            | Action::Confirm
            | Action::Forget => {
                unreachable!("connections ask for it, and there are none here")
            }
            Action::Keep | Action::Stay | Action::Inspect | Action::ForceRelease => {
                unreachable!("no client of a search asks for it")
            }
        };
        Self(action | u32::from(attempt) << 2 | u32::from(ttl) << 4 | u32::from(round) << 8)
    }

    /// The same with a number to raise the counter to.
    pub(super) fn raising_to(self, number: u8) -> Self {
        assert!(number < 16, "numbers fit their bits");
        Self(self.0 & !(15 << 17) | u32::from(number) << 17)
    }

    /// The same for a claim of this form.
    pub(super) fn formed(self, form: Form) -> Self {
        Self(self.0 & !Self::FORM | u32::from(form.code()) << 26)
    }

    pub(super) fn form(self) -> Form {
        Form::of(self.bits(26, 7))
    }

    /// Whether both items are about the same claim.
    pub(super) fn is_of(self, other: Self) -> bool {
        (self.attempt(), self.form()) == (other.attempt(), other.form())
    }

    pub(super) fn action(self) -> Action {
        match self.0 & (1 << 16 | 3) {
            0 => Action::Acquire,
            1 => Action::Extend,
            2 => Action::Release,
            3 => Action::Undo,
            0x1_0000 => Action::Raise,
            0x1_0001 => Action::Heal,
            0x1_0002 => Action::Attend,
            _ => Action::Open,
        }
    }

    pub(super) fn attempt(self) -> u8 {
        self.bits(2, 3)
    }

    pub(super) fn ttl(self) -> u8 {
        self.bits(4, 15)
    }

    pub(super) fn round(self) -> u8 {
        self.bits(8, 15)
    }

    pub(super) fn number(self) -> u8 {
        self.bits(17, 15)
    }

    pub(super) fn said(self) -> Option<Said> {
        match (self.bits(12, 3), self.bits(21, 31)) {
            (0, _) => None,
            (1, 0) => Some(Said::Yes),
            (1, seat @ 16..) => Some(Said::Seat(seat - 16)),
            (1, number) => Some(Said::Counted(number)),
            (2, 0) => Some(Said::No),
            (2, 16) => Some(Said::Quarantined),
            (2, _) => Some(Said::ThereInQuarantine),
            _ => Some(Said::Holder),
        }
    }

    pub(super) fn executed(self, said: Said) -> Self {
        let said = match said {
            Said::Yes => 1 << 12,
            Said::Counted(number) => {
                assert!(number < 16, "numbers fit their bits");
                1 << 12 | u32::from(number) << 21
            }
            Said::No => 2 << 12,
            Said::Quarantined => 2 << 12 | 16 << 21,
            Said::ThereInQuarantine => 2 << 12 | 17 << 21,
            Said::Seat(seat) => 1 << 12 | (16 | u32::from(seat)) << 21,
            Said::Holder => 3 << 12,
        };
        Self(self.0 & !Self::SAID | said)
    }

    /// The same request without a client that waits for the answer: a release that also reads the
    /// key is then a plain release.
    pub(super) fn for_nobody(self) -> Self {
        let action = if self.action() == Action::Undo { Action::Release } else { self.action() };
        let item = Self::new(action, self.attempt(), self.ttl(), 0).raising_to(self.number());
        let item = item.formed(self.form());
        self.said().map_or(item, |said| item.executed(said))
    }

    /// The request as it is left behind on a connection that is given up: its answer cannot arrive,
    /// and what only debts need is removed.
    pub(super) fn left_behind(self, is_first: bool) -> Self {
        let ttl = if self.action().clears() { 0 } else { self.ttl() };
        let action = if self.action() == Action::Undo { Action::Release } else { self.action() };
        let left = Self::new(action, self.attempt(), ttl, 0).raising_to(self.number());
        left.formed(self.form()).as_first(is_first)
    }

    pub(super) fn is_first(self) -> bool {
        self.0 & Self::FIRST != 0
    }

    pub(super) fn is_again(self) -> bool {
        self.0 & Self::AGAIN != 0
    }

    pub(super) fn again(self) -> Self {
        Self(self.0 | Self::AGAIN)
    }

    pub(super) fn as_once(self) -> Self {
        Self(self.0 & !Self::AGAIN)
    }

    pub(super) fn as_first(self, is_first: bool) -> Self {
        Self(self.0 & !Self::FIRST | if is_first { Self::FIRST } else { 0 })
    }

    fn bits(self, from: u32, mask: u32) -> u8 {
        u8::try_from(self.0 >> from & mask).unwrap_or(u8::MAX)
    }
}
