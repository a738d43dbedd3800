//! A client, as the code under test sees it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorlock_core::front::Locker;
use quorlock_core::{Instant, Targets, Token};

use super::clock::TrueTime;
use super::random::nanos;
use super::sleep::Sleep;
use super::state::State;
use super::timeline::Happening;
use super::violation::Violation;

pub(super) type SharedState = Arc<Mutex<State>>;

pub(super) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A client of a [`World`](super::World): a process with its own clock, whose tasks share a
/// [`Locker`]. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    pub(super) number: usize,
    pub(super) locker: Locker,
    pub(super) state: SharedState,
}

impl Client {
    /// Returns the number of the client, from 0, which faults and timelines use.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the locker of the client.
    ///
    /// Await its requests: [`Request::wait`](quorlock_core::front::Request::wait) gives up at once,
    /// because the whole world runs on one thread.
    pub fn locker(&self) -> &Locker {
        &self.locker
    }

    /// Returns the time on the client's clock.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(lock(&self.state).local(self.number))
    }

    /// Returns the true time since the world began, which no real process can know.
    pub fn true_time(&self) -> Duration {
        Duration::from_nanos(lock(&self.state).now)
    }

    /// Sleeps for this span on the client's clock, or a little longer.
    pub fn sleep(&self, span: Duration) -> Sleep {
        let until = lock(&self.state).local(self.number).saturating_add(nanos(span));
        Sleep::new(self.number, Arc::clone(&self.state), until)
    }

    /// Writes a line to the world's timeline.
    pub fn note(&self, text: impl Into<String>) {
        // Not while the state is locked: formatting the text may read the time.
        let text = text.into();
        lock(&self.state).note(|| Happening::Said { client: self.number, text });
    }

    /// Ends the run with a failure: the code under test has broken its own promise.
    pub fn report(&self, what: impl Into<String>) {
        self.find(Violation::Reported(what.into()));
    }

    /// When the last pause of its process ended, on its clock.
    pub(super) fn stood_until(&self) -> Instant {
        Instant::from_nanos(lock(&self.state).clients.get(self.number).map_or(0, |node| node.stood_until))
    }

    /// By how much its clock has jumped forward in total, which no timer notices.
    pub(super) fn leapt(&self) -> Duration {
        lock(&self.state).clients.get(self.number).map_or(Duration::ZERO, |node| node.leapt)
    }

    /// The password of the masters changes.
    pub(super) fn change_password(&self) {
        lock(&self.state).change_password();
    }

    /// Its lock was handed over with this token, so the keys may stay.
    pub(super) fn handed_over(&self, token: Token) {
        lock(&self.state).observer.delivered.handed_over(&token.to_hex());
    }

    /// It has given a copy of its lock's resumption away.
    pub(super) fn copied(&self, token: Token) {
        lock(&self.state).observer.delivered.copied(&token.to_hex());
    }

    /// A lock that was handed over will be delivered twice.
    pub(super) fn repeats(&self, token: Token) {
        lock(&self.state).observer.delivered.repeats(&token.to_hex());
    }

    /// It begins to resume a lock with this token. Returns when.
    pub(super) fn resumes(&self, token: Token) -> TrueTime {
        let mut state = lock(&self.state);
        let now = state.now;
        state.observer.delivered.resumes(self.number, &token.to_hex(), now);
        now
    }

    /// A resumption that it began then has ended, with the lock or without it.
    pub(super) fn has_resumed(&self, token: Token, began: TrueTime, is_granted: bool) {
        lock(&self.state).observer.delivered.has_resumed(self.number, &token.to_hex(), began, is_granted);
    }

    /// It has resumed or released a lock that was handed over with this token.
    pub(super) fn received(&self, token: Token) {
        lock(&self.state).observer.delivered.received(&token.to_hex());
    }

    /// It begins to wait for a lock. Returns the number of the request.
    pub(super) fn waits(&self, targets: Targets) -> u64 {
        lock(&self.state).observer.turns.begins(self.number, targets)
    }

    /// A request of it waits no more.
    pub(super) fn waits_no_more(&self, request: u64) {
        lock(&self.state).observer.turns.ends(request);
    }

    /// Its force-release begins, or has ended.
    pub(super) fn forces(&self, has_ended: bool) {
        let mut state = lock(&self.state);
        let ended = has_ended.then_some(state.now);
        state.observer.delivered.forces(self.number, ended);
    }

    /// How often its force-release has asked the master that it asked most often.
    pub(super) fn force_asks(&self) -> u32 {
        lock(&self.state).observer.delivered.force_asks(self.number)
    }

    /// The resources that it holds with this token.
    pub(super) fn targets_of(&self, token: Token) -> Option<Targets> {
        lock(&self.state).observer.targets_of(self.number, &token.to_hex())
    }

    /// It keeps others out until then, on its clock, with this token.
    pub(super) fn keeps(&self, token: Token, targets: Targets, until: Instant) {
        let mut state = lock(&self.state);
        // Another client with the same token may keep others out for a shorter time.
        if !state.observer.delivered.is_shared(&token.to_hex()) {
            state.observer.keeps(self.number, targets, until);
        }
    }

    /// It reads or writes a store.
    pub(super) fn stored(&self, what: String, is_taken: bool) {
        lock(&self.state).note(|| Happening::Stored { client: self.number, what, is_taken });
    }

    pub(super) fn find(&self, violation: Violation) {
        lock(&self.state).observer.report(violation);
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("number", &self.number).finish_non_exhaustive()
    }
}
