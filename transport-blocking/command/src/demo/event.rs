//! The events of the demonstration, and their texts.

use std::time::Duration;

use quorlock_blocking::FencingToken;

use crate::duration::spoken;

/// An event. Workers and masters are named by their indices; the numbers of grants start at 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// A worker wants the lock.
    Waits { worker: usize },
    /// It has the lock.
    Holds { worker: usize, number: usize, fence: FencingToken, waited: Duration },
    /// The store accepts its write.
    Writes { worker: usize, number: usize, value: u64 },
    /// The store refuses the write, because it has seen a larger number.
    Refused { worker: usize, number: usize, larger: usize },
    /// It gives the lock back.
    GivesBack { worker: usize },
    /// It could not get the lock.
    Fails { worker: usize },
    /// It is paused.
    Pauses { worker: usize },
    /// Its lock has ended, which it cannot notice.
    RunsOut { worker: usize },
    /// It runs again.
    GoesOn { worker: usize },
    /// Something happens to a master.
    Master { master: usize, change: Change },
    /// A promise is broken.
    Broken(Breach),
}

/// What happens to a master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Hangs,
    GoesOn,
    Dies,
    ReturnsEmpty,
    Quarantined { left: Duration },
    Votes,
}

/// A promise that is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Breach {
    TwoHolders { worker: usize },
    SmallerNumber { worker: usize },
    LostWrite { worker: usize },
}

/// The style of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tone {
    Plain,
    Quiet,
    Fault,
    Alarm,
}

impl Event {
    /// Whether the script causes it.
    pub(super) fn is_fault(self) -> bool {
        match self {
            Self::Pauses { .. } => true,
            Self::Master { change, .. } => {
                matches!(change, Change::Hangs | Change::Dies | Change::ReturnsEmpty)
            }
            _ => false,
        }
    }

    pub(super) fn tone(self) -> Tone {
        match self {
            Self::Refused { .. } | Self::Broken(_) => Tone::Alarm,
            Self::Pauses { .. } | Self::RunsOut { .. } | Self::GoesOn { .. } | Self::Master { .. } => {
                Tone::Fault
            }
            Self::Waits { .. } | Self::GivesBack { .. } => Tone::Quiet,
            Self::Holds { .. } | Self::Writes { .. } | Self::Fails { .. } => Tone::Plain,
        }
    }

    /// The name of the worker or master that it is about.
    pub(super) fn who(self) -> String {
        match self {
            Self::Waits { worker }
            | Self::Holds { worker, .. }
            | Self::Writes { worker, .. }
            | Self::Refused { worker, .. }
            | Self::GivesBack { worker }
            | Self::Fails { worker }
            | Self::Pauses { worker }
            | Self::RunsOut { worker }
            | Self::GoesOn { worker }
            | Self::Broken(
                Breach::TwoHolders { worker }
                | Breach::SmallerNumber { worker }
                | Breach::LostWrite { worker },
            ) => worker_name(worker),
            Self::Master { master, .. } => master_name(master),
        }
    }

    pub(super) fn words(self) -> String {
        match self {
            Self::Waits { .. } => "wants the lock".into(),
            Self::Holds { number, waited, .. } => {
                format!("holds the lock with fencing token #{number}, after {}", spoken(waited))
            }
            Self::Writes { number, value, .. } => format!("writes {value} with #{number}: taken"),
            Self::Refused { number, larger, .. } => {
                format!("writes late with #{number}: REFUSED, #{larger} was there")
            }
            Self::GivesBack { .. } => "releases it".into(),
            Self::Fails { .. } => "could not get the lock and tries again".into(),
            Self::Pauses { .. } => "PAUSES under the lock, as in a long garbage collection".into(),
            Self::RunsOut { .. } => "does not notice that its lock has run out".into(),
            Self::GoesOn { .. } => "continues as if it held the lock".into(),
            Self::Master { change, .. } => match change {
                Change::Hangs => "HANGS: it accepts connections and answers nothing".into(),
                Change::GoesOn => "continues".into(),
                Change::Dies => "is KILLED".into(),
                Change::ReturnsEmpty => "is RESTARTED EMPTY: it has forgotten every lock".into(),
                Change::Quarantined { left } => {
                    format!("quarantined by the restart guard: no vote for {}", spoken(left))
                }
                Change::Votes => "votes again".into(),
            },
            Self::Broken(breach) => match breach {
                Breach::TwoHolders { .. } => "BROKEN PROMISE: it holds the lock while another does".into(),
                Breach::SmallerNumber { .. } => "BROKEN PROMISE: its fencing token is no larger".into(),
                Breach::LostWrite { .. } => "BROKEN PROMISE: it undid the write of another".into(),
            },
        }
    }
}

pub(super) fn worker_name(worker: usize) -> String {
    format!("worker-{}", worker + 1)
}

pub(super) fn master_name(master: usize) -> String {
    format!("master-{}", master + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_fits_a_line_of_80_columns() {
        let fence = FencingToken::MAX;
        let (worker, number, waited) = (3, 99, Duration::from_millis(99_900));
        let changes = [
            Change::Hangs,
            Change::GoesOn,
            Change::Dies,
            Change::ReturnsEmpty,
            Change::Quarantined { left: Duration::from_millis(1_999) },
            Change::Votes,
        ];
        let breaches =
            [Breach::TwoHolders { worker }, Breach::SmallerNumber { worker }, Breach::LostWrite { worker }];
        let events = [
            Event::Waits { worker },
            Event::Holds { worker, number, fence, waited },
            Event::Writes { worker, number, value: 99 },
            Event::Refused { worker, number, larger: 99 },
            Event::GivesBack { worker },
            Event::Fails { worker },
            Event::Pauses { worker },
            Event::RunsOut { worker },
            Event::GoesOn { worker },
        ];
        let masters = changes.into_iter().map(|change| Event::Master { master: 4, change });
        for event in events.into_iter().chain(masters).chain(breaches.map(Event::Broken)) {
            // The time and the name, which are printed before the text, take 21 columns.
            assert!(event.words().chars().count() <= 79 - 21, "{}", event.words());
            assert!(event.who().chars().count() <= 8, "{}", event.who());
        }
    }
}
