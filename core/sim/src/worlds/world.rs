//! The world: clients, masters and the network, on one thread and in one order.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorlock_core::{Config, ConfigBuilder, ConfigError, Endpoint};

use super::client::{Client, SharedState, lock};
use super::event::Event;
use super::fault::Fault;
use super::groups::Groups;
use super::outcome::{Failure, Report};
use super::random::nanos;
use super::running::Process;
use super::securing::Channels;
use super::state::State;
use super::timeline::{Happening, Timeline};
use super::violation::Violation;
use super::when::When;

/// For how long after the last fault keys may exist that no client holds: long enough to reopen
/// every connection and to repeat every delayed request.
const SETTLING: Duration = Duration::from_secs(5);

/// After this time nothing may happen any more in a world in which no client wants anything.
const REST: Duration = Duration::from_secs(120);

/// By how much the masters' clocks differ at most.
pub(super) const LARGEST_SKEW: Duration = Duration::from_secs(9);

/// A simulated world of masters, clients, clocks and the network between them.
///
/// Time passes only when something happens, so hours take milliseconds. The same seed and the same
/// calls give the same run on every machine. An observer checks every guard, clock and key in true
/// time, and [`World::run`] ends with a [`Failure`] when a promise is broken.
///
/// ```
/// use std::time::Duration;
///
/// use quorlock_sim::{Fault, World};
///
/// let mut world = World::new(42);
/// world.inject(Duration::from_millis(3), Fault::Hang { master: 1, span: Duration::from_secs(1) });
/// for _ in 0..2 {
///     let client = world.client();
///     world.spawn(&client.clone(), async move {
///         let guard = client.locker().lock("invoice:42").await.expect("two masters are a quorum of three");
///         client.sleep(Duration::from_millis(20)).await;
///         assert!(guard.is_valid());
///     });
/// }
/// let report = world.run(Duration::from_secs(10))?;
/// assert_eq!(report.acquisitions, 2);
/// # Ok::<(), Box<quorlock_sim::Failure>>(())
/// ```
pub struct World {
    seed: u64,
    state: SharedState,
    processes: Vec<Process>,
}

impl World {
    /// Creates a world with three healthy masters and no clients.
    pub fn new(seed: u64) -> Self {
        Self::with_masters(seed, 3)
    }

    /// Creates a world with `masters` healthy masters, 1 to 64, and no clients.
    pub fn with_masters(seed: u64, masters: usize) -> Self {
        Self::build(seed, Groups::new(masters.clamp(1, 64), 0, None), LARGEST_SKEW, true)
    }

    /// Keeps no timeline. The world runs faster, and the timeline of a failure is empty.
    #[must_use]
    pub fn without_timeline(self) -> Self {
        lock(&self.state).timeline = Timeline::new(false);
        self
    }

    /// Continues when two clients hold one lock at the same time, and records it in the timeline.
    ///
    /// This is for code that must be safe even then, such as a [`Store`](super::Store) that
    /// compares fencing tokens.
    #[must_use]
    pub fn tolerate_two_holders(self) -> Self {
        lock(&self.state).observer.bears_two = true;
        self
    }

    /// With `keeps_timeline` off it runs faster, and a failure's timeline is empty.
    pub(super) fn build(seed: u64, groups: Groups, skew: Duration, keeps_timeline: bool) -> Self {
        let state = State::new(seed, groups, skew, keeps_timeline);
        Self { seed, state: Arc::new(Mutex::new(state)), processes: Vec::new() }
    }

    /// Adds a client with the default configuration.
    ///
    /// # Panics
    /// Never: the default configuration can be used for any number of masters that a world has.
    pub fn client(&mut self) -> Client {
        self.client_with(|settings| settings).expect("the default configuration for 1 to 64 masters")
    }

    /// Adds a client with the configuration that `change` returns.
    ///
    /// # Errors
    /// Returns the errors of [`ConfigBuilder::build`]. No client is added then.
    pub fn client_with(
        &mut self,
        change: impl FnOnce(ConfigBuilder) -> ConfigBuilder,
    ) -> Result<Client, ConfigError> {
        self.client_of(None, change)
    }

    /// Adds a client that has a spare in place of a master.
    pub(super) fn client_of(
        &mut self,
        spare_for: Option<(usize, usize)>,
        change: impl FnOnce(ConfigBuilder) -> ConfigBuilder,
    ) -> Result<Client, ConfigError> {
        let state = lock(&self.state);
        let list = state.list(spare_for);
        let (client, is_secured) = (state.clients.len(), state.passwords.is_some());
        let mut settings = Config::builder(state.groups.urls(&list, is_secured));
        drop(state);
        if is_secured {
            let state = SharedState::clone(&self.state);
            settings = settings.tls(Channels { client, state: SharedState::clone(&state) });
            settings = settings.credentials(move |_: &Endpoint| lock(&state).login());
        }
        let config = change(settings).build()?;
        let (client, process) = Process::start(&self.state, list, config);
        self.processes.push(process);
        Ok(client)
    }

    /// Runs a task in a client's process.
    ///
    /// The task is polled on the thread that calls [`World::run`], and may therefore be `!Send`. A
    /// process that was killed runs no tasks.
    pub fn spawn(&mut self, client: &Client, task: impl Future<Output = ()> + 'static) {
        if let Some(process) = self.processes.get_mut(client.number()) {
            process.spawn(task);
        }
    }

    /// Injects a fault: at this true time since the world began, or as [`When`] says; at once if
    /// that is past.
    ///
    /// Numbers of clients and masters beyond the last wrap around: of two clients, 5 is
    /// client 1.
    pub fn inject(&mut self, when: impl Into<When>, fault: Fault) {
        let mut state = lock(&self.state);
        match when.into() {
            When::At(at) => state.schedule(nanos(at), Event::Fault(fault)),
            When::AfterEvents(number) => state.schedule_after_events(number, fault),
            When::AtGrant { number, delay } => state.schedule_at_grant(number, nanos(delay), fault),
        }
    }

    /// Ends all faults now: masters and clients continue, and the network delivers everything.
    /// Clock drift stays.
    pub fn heal(&mut self) {
        lock(&self.state).heal();
    }

    /// Runs the world until every task has ended.
    ///
    /// # Errors
    /// Returns a [`Failure`] if a promise is broken, or if a task is still running after `limit` of
    /// true time.
    pub fn run(&mut self, limit: Duration) -> Result<Report, Box<Failure>> {
        self.look_at_guards();
        let end = lock(&self.state).now.saturating_add(nanos(limit));
        while self.processes.iter().any(Process::is_busy) {
            if self.next_at().is_none_or(|at| at > end) {
                let client = self.processes.iter().position(Process::is_busy).unwrap_or_default();
                return Err(self.failure(Violation::Unfinished { client }));
            }
            self.step()?;
        }
        Ok(self.report())
    }

    /// Runs the world for this span of true time.
    ///
    /// # Errors
    /// Returns a [`Failure`] if a promise is broken.
    pub fn pass(&mut self, span: Duration) -> Result<Report, Box<Failure>> {
        self.look_at_guards();
        let end = lock(&self.state).now.saturating_add(nanos(span));
        while self.next_at().is_some_and(|at| at <= end) {
            self.step()?;
        }
        let mut state = lock(&self.state);
        state.now = state.now.max(end);
        drop(state);
        Ok(self.report())
    }

    /// Ends all faults and runs the world until every release must have been delivered.
    ///
    /// After that no key may remain of a lock that is not held, and if all tasks have ended,
    /// nothing may happen any more.
    ///
    /// # Errors
    /// Returns a [`Failure`] if a promise is broken.
    pub fn settle(&mut self) -> Result<Report, Box<Failure>> {
        self.heal();
        self.pass(SETTLING)?;
        lock(&self.state).look_for_left_keys();
        self.verdict()?;
        if !self.processes.iter().any(Process::is_busy) {
            lock(&self.state).forget_events_without_effect();
            let end = lock(&self.state).now.saturating_add(nanos(REST));
            while self.next_at().is_some_and(|at| at <= end) {
                self.step()?;
            }
            if self.next_at().is_some() {
                return Err(self.failure(Violation::Restless));
            }
        }
        Ok(self.report())
    }

    /// Returns the result of the run so far.
    pub fn report(&self) -> Report {
        let state = lock(&self.state);
        Report {
            took: Duration::from_nanos(state.now),
            acquisitions: state.observer.granted,
            kinds: state.observer.kinds,
            requests: state.observer.requests,
            numbered: state.observer.numbered.0,
            raised: state.observer.numbered.1,
            late_grants: state.observer.late_grants(),
            events: state.steps,
        }
    }

    /// Returns everything that has happened so far.
    pub fn timeline(&self) -> Timeline {
        lock(&self.state).timeline.clone()
    }

    /// Tells all masters that nothing can be locked yet, so that they vote at once under a restart
    /// guard with this longest TTL.
    ///
    /// It does what [`Locker::bootstrap`](quorlock_core::front::Locker::bootstrap) does, before
    /// there is a client.
    pub fn bootstrap(&mut self, longest_ttl: Duration) {
        lock(&self.state).bootstrap(longest_ttl);
    }

    /// Clients that are added from now on reach the masters over channels, and log in with a
    /// password that changes.
    pub(super) fn secure(&mut self) {
        lock(&self.state).secure();
    }

    /// Cancels faults that have not happened yet.
    pub(super) fn forget_faults(&mut self) {
        lock(&self.state).forget_faults();
    }

    /// The owner of the world may have dropped guards since the last event.
    fn look_at_guards(&self) {
        for process in &self.processes {
            process.show_guards();
        }
    }

    fn next_at(&self) -> Option<u64> {
        lock(&self.state).next_at()
    }

    pub(super) fn failure(&self, violation: Violation) -> Box<Failure> {
        let mut state = lock(&self.state);
        state.note(|| Happening::Broken(violation.clone()));
        let timeline = state.timeline.clone();
        Box::new(Failure { seed: self.seed, violation, timeline })
    }

    fn verdict(&self) -> Result<(), Box<Failure>> {
        let verdict = lock(&self.state).observer.verdict().cloned();
        verdict.map_or(Ok(()), |violation| Err(self.failure(violation)))
    }

    /// Carries out the next event.
    fn step(&mut self) -> Result<(), Box<Failure>> {
        let next = lock(&self.state).next_event();
        match next {
            Some(Event::Turn { client, number }) => {
                let begins = lock(&self.state).turn_begins(client, number);
                if let Some(process) = self.processes.get_mut(client).filter(|_| begins) {
                    process.turn();
                    process.show_guards();
                }
            }
            Some(Event::Poll { client }) => {
                if let Some(process) = self.processes.get_mut(client) {
                    process.poll();
                    process.show_guards();
                }
            }
            // Wakers are called while nothing is locked.
            Some(Event::Alarm(waker)) => waker.wake(),
            Some(Event::Fault(fault)) => {
                lock(&self.state).inject(fault);
                self.bury_the_dead();
            }
            Some(event) => lock(&self.state).happen(event),
            None => {}
        }
        let mut state = lock(&self.state);
        state.replicate();
        state.observe();
        drop(state);
        self.verdict()
    }

    /// Removes the tasks of processes that have died.
    fn bury_the_dead(&mut self) {
        let is_dead: Vec<bool> = lock(&self.state).clients.iter().map(|node| node.is_dead).collect();
        for (process, _) in self.processes.iter_mut().zip(is_dead).filter(|(_, is_dead)| *is_dead) {
            process.die();
        }
    }
}

impl Drop for World {
    /// The timeline of a test whose own assertion failed.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}\n{}", self.seed, self.timeline());
        }
        // Tasks hold clients, clients the state, and the state the tasks' wakers.
        for process in &mut self.processes {
            process.die();
        }
        let events = lock(&self.state).take_events();
        drop(events);
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("seed", &self.seed)
            .field("clients", &self.processes.len())
            .finish_non_exhaustive()
    }
}
