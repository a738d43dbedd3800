//! The masters: the faults of the script, and their states.

use std::io;
use std::time::Duration;

use quorlock_core::Fleet;
use quorlock_embedded::{Keep, Master, Masters, now};

use super::RESOURCE;
use super::event::{Change, Event};
use super::stage::Stage;

/// The state of a master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Up,
    Hangs,
    Dead,
    /// It does not vote for this time.
    Quarantined(Duration),
}

/// A master, as a spectator sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct View {
    pub(super) state: State,
    /// The worker whose key it has.
    pub(super) key_of: Option<usize>,
}

/// The worker whose key a master had, and when.
pub(super) struct Kept {
    pub(super) master: usize,
    pub(super) worker: usize,
    pub(super) from: Duration,
    pub(super) until: Duration,
}

/// The masters while the script runs.
pub(super) struct Cast {
    masters: Masters,
    pub(super) views: Vec<View>,
    pub(super) kept: Vec<Kept>,
    since: Vec<Duration>,
}

impl Cast {
    pub(super) fn new(masters: Masters) -> Self {
        let views = masters.iter().map(|_| View { state: State::Up, key_of: None }).collect();
        let since = masters.iter().map(|_| Duration::ZERO).collect();
        Self { masters, views, kept: Vec::new(), since }
    }

    /// Applies a change to a master, and reports it.
    pub(super) fn change(&mut self, stage: &Stage, master: usize, change: Change) -> io::Result<()> {
        let (Some(handle), Some(view)) = (self.masters.get(master), self.views.get_mut(master)) else {
            return Ok(());
        };
        match change {
            Change::Hangs => {
                handle.pause();
                view.state = State::Hangs;
            }
            Change::GoesOn => {
                handle.resume();
                view.state = State::Up;
            }
            Change::Dies => {
                handle.stop();
                view.state = State::Dead;
            }
            Change::ReturnsEmpty => {
                handle.restart(Keep::Nothing)?;
                view.state = State::Up;
            }
            // These are effects of other changes.
            Change::Quarantined { .. } | Change::Votes => {}
        }
        stage.tell(Event::Master { master, change });
        Ok(())
    }

    /// Checks all masters.
    pub(super) fn look(&mut self, stage: &Stage) {
        let at = stage.now();
        for (place, (master, view)) in self.masters.iter().zip(&mut self.views).enumerate() {
            let (key, quarantine) = if view.state == State::Dead { (None, None) } else { seen(master) };
            let state = match (view.state, quarantine) {
                (State::Up | State::Quarantined(_), Some(left)) => State::Quarantined(left),
                (State::Quarantined(_), None) => State::Up,
                (state, _) => state,
            };
            let change = match (view.state, state) {
                (State::Up, State::Quarantined(left)) => Some(Change::Quarantined { left }),
                (State::Quarantined(_), State::Up) => Some(Change::Votes),
                _ => None,
            };
            view.state = state;
            if let Some(change) = change {
                stage.tell(Event::Master { master: place, change });
            }
            let owner = key.and_then(|key| stage.scene().owner(&key));
            if owner != view.key_of {
                let Some(since) = self.since.get_mut(place) else { continue };
                if let Some(worker) = view.key_of {
                    self.kept.push(Kept { master: place, worker, from: *since, until: at });
                }
                (*since, view.key_of) = (at, owner);
            }
        }
    }

    /// All keys that masters have had so far.
    pub(super) fn all_kept(&mut self, stage: &Stage) -> &[Kept] {
        let until = stage.now();
        for (master, (view, from)) in self.views.iter_mut().zip(&self.since).enumerate() {
            if let Some(worker) = view.key_of.take() {
                self.kept.push(Kept { master, worker, from: *from, until });
            }
        }
        &self.kept
    }
}

/// The key of the lock that a master has, and for how long it is quarantined.
fn seen(master: &Master) -> (Option<Vec<u8>>, Option<Duration>) {
    let now = now();
    master.model(|model| {
        let key = model.value(0, RESOURCE.as_bytes(), now).map(<[u8]>::to_vec);
        let marker =
            model.value(0, Fleet::MARKER.as_bytes(), now).and_then(|text| std::str::from_utf8(text).ok());
        // The replication id, when it was written, and from when on the master votes.
        let opens = marker.and_then(|text| text.split(' ').nth(2)?.parse().ok()).map(Duration::from_millis);
        let left = opens.map(|opens| opens.saturating_sub(now)).filter(|left| !left.is_zero());
        (key, left)
    })
}
