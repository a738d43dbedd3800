//! A client's process: its driver, its tasks, and its part of the world.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Wake, Waker};

use quorlock_core::front::{Demand, Host, Port};
use quorlock_core::internals::each_guard;
use quorlock_core::{Cause, Config, EntropyFailed, Instant, IoFault, MasterId};

use super::client::{Client, SharedState, lock};
use super::link::LinkId;
use super::process::ignores_own_wakes;
use super::random::nanos;
use super::state::{Inbound, State};

/// The part of the world that a client's front can access.
struct SimHost {
    client: usize,
    state: SharedState,
}

impl Host for SimHost {
    fn now(&self) -> Instant {
        Instant::from_nanos(lock(&self.state).local(self.client))
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        if let Some(node) = lock(&self.state).clients.get_mut(self.client) {
            node.entropy.fill(bytes);
        }
        Ok(())
    }

    fn block_on(&self, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
        let _ = poll(&mut Context::from_waker(Waker::noop()));
    }
}

/// The client's end of a connection.
struct Sink {
    link: LinkId,
    state: SharedState,
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match lock(&self.state).send(self.link, bytes) {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            taken => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Wakes a task, or the driver if there is no task.
struct Rouser {
    client: usize,
    task: Option<usize>,
    state: Weak<Mutex<State>>,
}

impl Wake for Rouser {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let Some(state) = self.state.upgrade() else { return };
        let mut state = lock(&state);
        match self.task {
            Some(task) => state.wake_task(self.client, task),
            None => state.driver_woken(self.client),
        }
    }
}

/// A task with the waker that belongs to it.
struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    waker: Waker,
}

/// A client's driver and tasks: what runs in its process.
pub(super) struct Process {
    number: usize,
    state: SharedState,
    port: Option<Port>,
    waker: Waker,
    /// The masters, in the machine's words.
    masters: Box<[MasterId]>,
    tasks: BTreeMap<usize, Task>,
    spawned: usize,
    is_dead: bool,
    /// Whether the last turn has woken tasks, so that another one follows.
    has_woken: bool,
}

impl Process {
    /// A process with its client's locker.
    pub(super) fn start(state: &SharedState, list: Vec<usize>, config: Config) -> (Client, Self) {
        let number = lock(state).add_client(list);
        if let Some(longest_ttl) = config.restart_guard() {
            lock(state).guard(longest_ttl);
        }
        let host = Arc::new(SimHost { client: number, state: Arc::clone(state) });
        let masters = config.master_ids().collect();
        let (locker, port) = Port::new(config, host);
        let waker =
            Waker::from(Arc::new(Rouser { client: number, task: None, state: Arc::downgrade(state) }));
        lock(state).rouse(number);
        let client = Client { number, locker, state: Arc::clone(state) };
        let state = Arc::clone(state);
        (
            client,
            Self {
                number,
                state,
                port: Some(port),
                masters,
                waker,
                tasks: BTreeMap::new(),
                spawned: 0,
                is_dead: false,
                has_woken: false,
            },
        )
    }

    pub(super) fn spawn(&mut self, future: impl Future<Output = ()> + 'static) {
        if self.is_dead {
            return;
        }
        let task = self.spawned;
        self.spawned += 1;
        let rouser = Rouser { client: self.number, task: Some(task), state: Arc::downgrade(&self.state) };
        self.tasks.insert(task, Task { future: Box::pin(future), waker: Waker::from(Arc::new(rouser)) });
        lock(&self.state).wake_task(self.number, task);
    }

    /// Whether tasks of it have not ended.
    pub(super) fn is_busy(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// One turn of the driver, as every transport makes it: read, tick, carry out demands, sleep.
    pub(super) fn turn(&mut self) {
        let Some(port) = &mut self.port else { return };
        port.register(&self.waker);
        let writes = lock(&self.state).writes;
        lock(&self.state).set_in_turn(self.number, true);
        // A turn after one that has woken callers is not idle.
        let mut was_idle = !std::mem::take(&mut self.has_woken);
        loop {
            let next = lock(&self.state).clients.get_mut(self.number).and_then(|node| node.inbox.pop_front());
            was_idle &= next.is_none();
            match next {
                Some(Inbound::Opened(link)) => {
                    if let Some((master, generation)) = place_of(&self.state, &self.masters, link) {
                        port.opened(master, generation, Sink { link, state: Arc::clone(&self.state) });
                    }
                }
                Some(Inbound::Bytes(link, bytes)) => {
                    if let Some((master, generation)) = place_of(&self.state, &self.masters, link) {
                        port.received(master, generation, &bytes);
                    }
                }
                Some(Inbound::Ended(link, cause)) => {
                    if let Some((master, generation)) = place_of(&self.state, &self.masters, link) {
                        port.closed(master, generation, cause);
                    }
                }
                None => break,
            }
        }
        for &master in &self.masters {
            if port.is_blocked(master) && lock(&self.state).has_room(self.number, master.index()) {
                port.retry_write(master);
            }
        }
        self.has_woken = port.tick();
        while let Some(demand) = port.next_demand() {
            was_idle = false;
            match demand {
                Demand::Connect { master, generation, address } => {
                    let mut state = lock(&self.state);
                    let server = state.server_for(self.number, master.index(), &address);
                    let is_sent = server.is_some_and(|server| state.connect(self.number, server, generation));
                    drop(state);
                    if !is_sent {
                        port.closed(
                            master,
                            generation,
                            Cause::Connect(IoFault::new(io::ErrorKind::NetworkUnreachable)),
                        );
                    }
                }
                Demand::Close { master, generation } => {
                    let mut state = lock(&self.state);
                    if let Some(link) = state.client_link(self.number, master.index(), generation) {
                        state.close(link);
                    }
                }
            }
        }
        {
            let mut state = lock(&self.state);
            was_idle &= writes == state.writes;
            state.turn_ended(self.number, was_idle);
        }
        if port.is_finished() {
            self.port = None;
            lock(&self.state).close_all(self.number);
            return;
        }
        if self.has_woken {
            // Usually the woken tasks run first.
            let mut state = lock(&self.state);
            state.set_in_turn(self.number, false);
            state.rouse(self.number);
            return;
        }
        if ignores_own_wakes(self.number) {
            port.register(&self.waker);
        }
        let sleep = port.sleep();
        let mut state = lock(&self.state);
        state.set_in_turn(self.number, false);
        if let Some(span) = sleep {
            let local = state.local(self.number).saturating_add(nanos(span));
            state.set_alarm(self.number, local);
        }
    }

    /// Polls the tasks that were woken.
    pub(super) fn poll(&mut self) {
        let woken = lock(&self.state).poll_begins(self.number);
        for number in woken {
            let Some(task) = self.tasks.get_mut(&number) else { continue };
            if task.future.as_mut().poll(&mut Context::from_waker(&task.waker)).is_ready() {
                self.tasks.remove(&number);
            }
        }
    }

    /// The process dies: writes of its tasks have no effect any more.
    pub(super) fn die(&mut self) {
        self.is_dead = true;
        self.tasks.clear();
        self.port = None;
    }

    /// Shows every guard that calls itself valid to the observer.
    pub(super) fn show_guards(&self) {
        lock(&self.state).observer.look_begins(self.number);
        if let Some(port) = &self.port {
            let now = Instant::from_nanos(lock(&self.state).local(self.number));
            each_guard(port, |id, targets, proof, valid_until| {
                if now < valid_until {
                    lock(&self.state).sees_guard(self.number, id, targets, proof, valid_until);
                }
            });
        }
        lock(&self.state).look_ends(self.number);
    }
}

/// The master and generation of a connection.
fn place_of(state: &Mutex<State>, masters: &[MasterId], id: LinkId) -> Option<(MasterId, u32)> {
    let state = lock(state);
    let link = state.link(id)?;
    Some((*masters.get(state.place_in_list(link.client, link.master)?)?, link.generation))
}
