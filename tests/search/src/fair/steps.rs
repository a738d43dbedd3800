//! The possible next steps.

use std::fmt;

use super::Fair;
use super::book::{Book, Facts};
use super::queue::{Key, Place};
use super::state::{Focus, Link, Master, Seat, Stage, State};

/// One step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Begin {
        waiter: usize,
    },
    /// A timer of the waiter fires, in time or late.
    Wake {
        waiter: usize,
    },
    /// A master notifies a waiter of its turn.
    Tell {
        waiter: usize,
        master: usize,
    },
    /// The waiter that was granted the lock releases it.
    Release {
        waiter: usize,
    },
    GiveUp {
        waiter: usize,
    },
    Die {
        waiter: usize,
    },
    /// The master executes the next request of the connection.
    Execute {
        waiter: usize,
        master: usize,
    },
    /// The oldest answer arrives.
    Deliver {
        waiter: usize,
        master: usize,
    },
    /// The connection ends, or is given up with a release behind the requests on it. The next one
    /// opens at once.
    Lose {
        waiter: usize,
        master: usize,
        gives_up: bool,
    },
    /// The first request that was left behind on a former connection is executed.
    Late {
        waiter: usize,
        master: usize,
    },
    /// The master executes the release of the first holder.
    Leave {
        master: usize,
    },
    /// A lock that will not be released ends.
    EndKey {
        master: usize,
    },
    /// A place that is not renewed ends.
    EndPlace {
        master: usize,
        at: usize,
    },
    /// The master forgets the largest number that it has given.
    Forget {
        master: usize,
    },
}

impl Step {
    /// The master that the step changes, and how.
    pub(super) fn focus(self) -> Option<(usize, Focus)> {
        match self {
            Self::Execute { waiter, master } => {
                Some((master, Focus::Executed(u8::try_from(waiter).unwrap_or(u8::MAX))))
            }
            Self::Late { master, .. } | Self::Leave { master } => Some((master, Focus::Ended(0))),
            Self::EndKey { master } => Some((master, Focus::Ended(1))),
            Self::Forget { master } => Some((master, Focus::Ended(2))),
            Self::EndPlace { master, at } => {
                Some((master, Focus::Ended(u8::try_from(at + 3).unwrap_or(u8::MAX))))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin { waiter } => write!(f, "w{waiter} begins to wait"),
            Self::Wake { waiter } => write!(f, "w{waiter}'s timer fires"),
            Self::Tell { waiter, master } => {
                write!(f, "w{waiter} hears from m{master} that its turn has come")
            }
            Self::Release { waiter } => write!(f, "w{waiter} releases the lock"),
            Self::GiveUp { waiter } => write!(f, "w{waiter} gives up"),
            Self::Die { waiter } => write!(f, "w{waiter} dies"),
            Self::Execute { waiter, master } => write!(f, "m{master} executes what w{waiter} asks next"),
            Self::Deliver { waiter, master } => write!(f, "w{waiter} hears the next answer of m{master}"),
            Self::Lose { waiter, master, gives_up: false } => {
                write!(f, "the connection of w{waiter} to m{master} ends")
            }
            Self::Lose { waiter, master, gives_up: true } => {
                write!(f, "w{waiter} gives up its connection to m{master}")
            }
            Self::Late { waiter, master } => {
                write!(f, "m{master} executes what w{waiter} left behind on a former connection")
            }
            Self::Leave { master } => write!(f, "m{master} executes the release of the first holder"),
            Self::EndKey { master } => write!(f, "a lock that will not be released ends on m{master}"),
            Self::EndPlace { master, at } => write!(f, "the place {at} of m{master}'s queue ends"),
            Self::Forget { master } => write!(f, "m{master} forgets the largest number"),
        }
    }
}

/// Everything that can happen in this state, always in the same order.
pub(super) fn enabled(state: &State, fair: &Fair, book: &Book, steps: &mut Vec<Step>) {
    steps.clear();
    let budgets = state.budgets;
    let focus = state.focus();
    for (waiter, seat) in state.seats().iter().enumerate().filter(|_| focus.is_none()) {
        match seat.stage {
            Stage::New => steps.push(Step::Begin { waiter }),
            Stage::Gone => {}
            Stage::Alive => {
                let facts = book.facts(seat.node);
                if facts.is_held {
                    steps.push(Step::Release { waiter });
                } else if budgets.cancels > 0 {
                    steps.push(Step::GiveUp { waiter });
                }
                if budgets.deaths > 0 {
                    steps.push(Step::Die { waiter });
                }
                if may_wake(fair, seat, facts) {
                    steps.push(Step::Wake { waiter });
                }
            }
        }
    }
    let in_focus = |master: usize| focus.is_none_or(|(of, _)| of == master);
    for (master, it) in state.masters().iter().enumerate().filter(|(master, _)| in_focus(*master)) {
        for (waiter, (seat, link)) in state.seats().iter().zip(&it.links).enumerate() {
            of_link(state, (waiter, seat), (master, it, link), book, steps);
        }
        let ended = if let Focus::Ended(ended) = it.focus { ended } else { 0 };
        if it.has_holder() && ended < 1 {
            steps.push(Step::Leave { master });
        }
        if it.key.is_some_and(|key| is_left(state, key, book)) && ended < 1 {
            steps.push(Step::EndKey { master });
        }
        if budgets.forgets > 0 && it.counter > 0 && ended < 2 {
            steps.push(Step::Forget { master });
        }
        // Places after one that has ended move up.
        let first = usize::from(ended).saturating_sub(3);
        for (at, place) in it.queue.iter().enumerate().skip(first) {
            if is_not_renewed(state, fair, place, book) {
                steps.push(Step::EndPlace { master, at });
            }
        }
    }
}

/// Allows only steps that depend on what the master has done last: see [`Focus`].
fn of_link(
    state: &State,
    (waiter, seat): (usize, &Seat),
    (master, it, link): (usize, &Master, &Link),
    book: &Book,
    steps: &mut Vec<Step>,
) {
    let executed = executed(link);
    let number = u8::try_from(waiter).unwrap_or(u8::MAX);
    if executed < link.flight.len() {
        steps.push(Step::Execute { waiter, master });
    }
    let is_for_it = match it.focus {
        Focus::Nothing => true,
        Focus::Executed(by) => by == number && executed == 1,
        Focus::Ended(_) => false,
    };
    if executed > 0 && is_for_it {
        steps.push(Step::Deliver { waiter, master });
    }
    let may_end = matches!(it.focus, Focus::Nothing) || it.focus == Focus::Executed(number);
    if state.budgets.losses > 0 && !link.flight.is_empty() && may_end {
        steps.push(Step::Lose { waiter, master, gives_up: false });
        steps.push(Step::Lose { waiter, master, gives_up: true });
    }
    if !link.behind.is_empty() {
        steps.push(Step::Late { waiter, master });
    }
    let facts = book.facts(seat.node);
    if facts.waits && !link.is_cut && it.is_free_for(number, facts.place) {
        steps.push(Step::Tell { waiter, master });
    }
}

/// How many requests of the flight the master has executed.
pub(super) fn executed(link: &Link) -> usize {
    link.flight.iter().take_while(|item| item.said.is_some()).count()
}

/// Whether a waiter's timer may fire. A patient waiter renews its place once a quorum has answered,
/// and closes a lost round at any time.
fn may_wake(fair: &Fair, seat: &Seat, facts: Facts) -> bool {
    let is_in_time = facts.place == 0 || facts.keeps_its_place || !fair.patient;
    facts.has_timer && !facts.is_held && (!facts.renews || seat.renewals < fair.renewals && is_in_time)
}

/// Whether no client knows a lock any more: its waiter is gone, or makes another attempt.
fn is_left(state: &State, key: Key, book: &Book) -> bool {
    let Some(seat) = state.seats().get(usize::from(key.client)) else { return false };
    seat.stage == Stage::Gone || book.facts(seat.node).token != key.token
}

/// Whether a place is not renewed: its waiter is gone, has left it, or holds the lock.
fn is_not_renewed(state: &State, fair: &Fair, place: Place, book: &Book) -> bool {
    let Some(seat) = state.seats().get(usize::from(place.client)) else { return fair.lapses };
    let facts = book.facts(seat.node);
    seat.stage == Stage::Gone || facts.is_held && fair.lapses || facts.place != place.place
}
