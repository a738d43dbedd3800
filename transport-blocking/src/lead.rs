//! Who serves the sockets: a caller that waits, or the background thread while nobody does.
//!
//! At any time at most one thread leads: it sleeps in the poll, reads, and wakes whom that concerns. The others who wait
//! are parked; one that leaves wakes the next. So a lone caller needs no other thread between its request and its
//! answer. The background thread takes over when nobody has led for a moment: it reads what nobody waits for, renews and
//! reconnects. It steps back as soon as somebody waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread, ThreadId};
use std::time::Duration;

use crate::reactor::Reactor;

/// How long the background thread leaves the sockets alone after somebody has led, so that a caller with one request after the
/// other need not take them back each time.
const LINGER: Duration = Duration::from_millis(1);

/// The I/O loop and those who may run it.
pub(crate) struct Lead {
    reactor: Mutex<Reactor>,
    interrupt: mio::Waker,
    roles: Mutex<Roles>,
    nobody_leads: Condvar,
}

#[derive(Default)]
struct Roles {
    leader: Option<Leader>,
    /// Parked callers, the longest waiting first.
    followers: Vec<Arc<Caller>>,
    /// Whether the background thread sleeps until it is told that nobody leads.
    background_sleeps: bool,
    /// Turns of leadership so far: whoever lingers sees by it that others are at work.
    terms: u64,
    /// Something must be done that no caller waits for.
    needed: bool,
}

#[derive(Clone, Copy, PartialEq)]
struct Leader {
    thread: ThreadId,
    is_background: bool,
}

/// A thread that waits.
struct Caller {
    thread: Thread,
    woken: AtomicBool,
    leads: AtomicBool,
    lead: Arc<Lead>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lead {
    pub(crate) fn new(reactor: Reactor, interrupt: mio::Waker) -> Arc<Self> {
        Arc::new(Self {
            reactor: Mutex::new(reactor),
            interrupt,
            roles: Mutex::default(),
            nobody_leads: Condvar::new(),
        })
    }

    /// Keeps the calling thread until `poll` is ready.
    pub(crate) fn wait(self: &Arc<Self>, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
        let caller = Arc::new(Caller {
            thread: thread::current(),
            woken: AtomicBool::new(false),
            leads: AtomicBool::new(false),
            lead: Arc::clone(self),
        });
        let waker = Waker::from(Arc::clone(&caller));
        let mut context = Context::from_waker(&waker);
        loop {
            caller.woken.store(false, Ordering::SeqCst);
            if poll(&mut context).is_ready() {
                break;
            }
            if self.try_lead_or_follow(&caller) {
                caller.leads.store(true, Ordering::SeqCst);
                // The locker does not come to its end under a caller, who is one of its users.
                self.lead_until(|| caller.woken.load(Ordering::SeqCst));
                caller.leads.store(false, Ordering::SeqCst);
            } else {
                while !caller.woken.load(Ordering::SeqCst) && self.is_led() {
                    thread::park();
                }
            }
        }
        self.leave(&caller);
    }

    /// Serves the sockets while nobody else does, until nobody uses the locker any more.
    pub(crate) fn run_in_background(self: &Arc<Self>) {
        loop {
            let mut roles = lock(&self.roles);
            while roles.leader.is_some() {
                roles.background_sleeps = true;
                roles = self.nobody_leads.wait(roles).unwrap_or_else(PoisonError::into_inner);
            }
            roles.background_sleeps = false;
            let terms = roles.terms;
            if !roles.needed {
                roles =
                    self.nobody_leads.wait_timeout(roles, LINGER).unwrap_or_else(PoisonError::into_inner).0;
            }
            if roles.leader.is_some() || (roles.terms != terms && !roles.needed) {
                continue;
            }
            roles.leader = Some(Leader { thread: thread::current().id(), is_background: true });
            drop(roles);
            if self.lead_until(|| !lock(&self.roles).followers.is_empty()) {
                return;
            }
        }
    }

    /// Interrupts whoever leads, or has the background thread lead.
    pub(crate) fn need_attention(&self) {
        let mut roles = lock(&self.roles);
        match roles.leader {
            // Its own turn sees what there is before it sleeps.
            Some(leader) if leader.thread == thread::current().id() => {}
            Some(_) => self.interrupt(),
            None => {
                roles.needed = true;
                self.nobody_leads.notify_one();
            }
        }
    }

    fn interrupt(&self) {
        // It fails only where the poll is gone, and then nobody sleeps in it.
        let _ = self.interrupt.wake();
    }

    /// Takes turns until `enough`, then steps down. True if the locker has come to its end.
    fn lead_until(&self, enough: impl Fn() -> bool) -> bool {
        let mut term = Term { lead: self, reactor: Some(lock(&self.reactor)) };
        while let Some(reactor) = term.reactor.as_mut().filter(|_| !enough()) {
            if !reactor.turn() {
                return true;
            }
        }
        false
    }

    fn try_lead_or_follow(&self, caller: &Arc<Caller>) -> bool {
        let mut roles = lock(&self.roles);
        match roles.leader {
            None => {
                roles.followers.retain(|other| !Arc::ptr_eq(other, caller));
                roles.leader = Some(Leader { thread: caller.thread.id(), is_background: false });
                true
            }
            Some(leader) => {
                if !roles.followers.iter().any(|other| Arc::ptr_eq(other, caller)) {
                    roles.followers.push(Arc::clone(caller));
                }
                if leader.is_background {
                    self.interrupt();
                }
                false
            }
        }
    }

    fn is_led(&self) -> bool {
        lock(&self.roles).leader.is_some()
    }

    fn step_down(&self) {
        let mut roles = lock(&self.roles);
        roles.leader = None;
        roles.terms = roles.terms.wrapping_add(1);
        roles.needed = false;
        self.hand_on(&roles);
    }

    /// A caller that goes leaves nobody behind who believes that somebody leads.
    fn leave(&self, caller: &Arc<Caller>) {
        let mut roles = lock(&self.roles);
        let followed = roles.followers.len();
        roles.followers.retain(|other| !Arc::ptr_eq(other, caller));
        if roles.followers.len() < followed && roles.leader.is_none() {
            self.hand_on(&roles);
        }
    }

    fn hand_on(&self, roles: &Roles) {
        match roles.followers.first() {
            Some(next) => next.thread.unpark(),
            None if roles.background_sleeps => self.nobody_leads.notify_one(),
            None => {}
        }
    }
}

/// The time for which a thread leads. It ends also if a waker of somebody else's panics in a turn: the others must not wait for a leader that is
/// gone.
struct Term<'a> {
    lead: &'a Lead,
    reactor: Option<MutexGuard<'a, Reactor>>,
}

impl Drop for Term<'_> {
    fn drop(&mut self) {
        if let Some(reactor) = self.reactor.take() {
            reactor.rest();
        }
        self.lead.step_down();
    }
}

impl Wake for Caller {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        if self.thread.id() == thread::current().id() {
            return;
        }
        if self.leads.load(Ordering::SeqCst) {
            self.lead.interrupt();
        } else {
            self.thread.unpark();
        }
    }
}

/// Keeps the calling thread until `poll` is ready, with somebody else to serve the sockets, or nobody.
pub(crate) fn wait_without_leading(poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    while poll(&mut context).is_pending() {
        thread::park();
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
