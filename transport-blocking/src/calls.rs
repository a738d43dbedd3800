//! Connectors of the caller. They may block, so each is called on its own thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::{mem, thread};

use quorlock_core::{Address, Cause};

use crate::connect::Opened;

/// Opens a connection to an address, for as long as that takes.
pub(crate) type Connector = Arc<dyn Fn(Address) -> Opened + Send + Sync>;

/// The calls of a connector for one master, one at a time: nothing ends a call that takes too long,
/// and threads must not pile up behind it.
pub(crate) struct Calls {
    connector: Connector,
    line: Arc<Mutex<Line>>,
}

#[derive(Default)]
struct Line {
    /// Whether a thread that calls the connector is running.
    is_calling: bool,
    /// The next opening for which the connector is called.
    next: Option<Ask>,
}

struct Ask {
    to: Address,
    answer: Sender<Opened>,
    waker: Waker,
}

/// An opening that waits for a connector. Dropping it abandons the opening: a call that has not
/// begun is not made, and a socket that a call returns later is closed.
pub(crate) struct Call {
    answer: Receiver<Opened>,
    line: Arc<Mutex<Line>>,
}

/// Nothing that runs under this mutex panics.
fn lock(line: &Mutex<Line>) -> MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Calls {
    pub(crate) fn new(connector: &Connector) -> Self {
        Self { connector: Arc::clone(connector), line: Arc::default() }
    }

    /// Begins an opening, which replaces the last one. `waker` is woken when there is an answer.
    pub(crate) fn begin(&self, to: Address, waker: Waker) -> Call {
        let (tell, answer) = mpsc::channel();
        let is_calling = {
            let mut line = lock(&self.line);
            line.next = Some(Ask { to, answer: tell.clone(), waker });
            mem::replace(&mut line.is_calling, true)
        };
        if !is_calling {
            let (connector, line) = (Arc::clone(&self.connector), Arc::clone(&self.line));
            let thread = thread::Builder::new().name("quorlock-connect".into());
            if let Err(error) = thread.spawn(move || run(&connector, &line)) {
                // The system has no thread left: the opening has failed, and the next one tries
                // again.
                *lock(&self.line) = Line::default();
                let _ = tell.send(Err(Cause::from(&error)));
            }
        }
        Call { answer, line: Arc::clone(&self.line) }
    }
}

fn run(connector: &Connector, line: &Mutex<Line>) {
    loop {
        let ask = {
            let mut line = lock(line);
            line.is_calling = line.next.is_some();
            line.next.take()
        };
        let Some(Ask { to, answer, waker }) = ask else { return };
        // Dropping the payload of a panic would call the caller's code once more.
        let opened = catch_unwind(AssertUnwindSafe(|| connector(to))).map_err(mem::forget);
        // If the opening has been abandoned meanwhile, this closes the connection.
        let _ = answer.send(opened.unwrap_or(Err(Cause::ConnectorPanicked)));
        waker.wake();
    }
}

impl Call {
    /// Returns the answer, if there is one.
    pub(crate) fn answer(&self) -> Option<Opened> {
        match self.answer.try_recv() {
            Ok(opened) => Some(opened),
            Err(TryRecvError::Empty) => None,
            // This comes only after the answer has been taken.
            Err(TryRecvError::Disconnected) => Some(Err(Cause::Closed)),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let next = lock(&self.line).next.take();
        // The waker in it is dropped under no mutex.
        drop(next);
    }
}
