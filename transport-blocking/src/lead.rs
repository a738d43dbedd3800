//! Which thread serves the sockets: a caller that waits, or the background thread.
//!
//! At most one thread at a time *leads*: it runs the event loop, which sleeps in the poll, reads,
//! and wakes the callers whose outcome has arrived. Callers that wait meanwhile are *followers*:
//! they are parked. So a lone caller needs no other thread between its request and its answer. The
//! background thread leads when no caller does: it reads answers that no caller waits for, renews
//! locks and reconnects. It steps down as soon as a caller waits, unless many do: for a crowd it
//! stays, and writes the requests of all callers that it has woken at once.
//!
//! Two rules keep every thread served:
//!
//! - A caller neither leads nor follows while its own future is polled. That poll runs the user's
//!   code: it may take any time, wait for another caller, wait for a lock itself, or panic.
//! - A thread that steps down, or leaves the followers while no thread leads, unparks the follower
//!   that has waited longest. If the followers are many or none, it unparks the background thread.
//!
//! `loom_tests` checks both exhaustively.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use self::caller::{Caller, Signals};
use crate::sync::{AtomicUsize, Mutex, Ordering, Thread, ThreadId, current, lock, park, park_timeout};

mod caller;
#[cfg(all(loom, test))]
mod loom_tests;
#[cfg(all(not(loom), test))]
mod tests;

/// How long the background thread waits after the last leader before it leads. A caller that makes
/// one request after the other then finds no leader to interrupt. Longer: answers that no caller
/// waits for are read later. Shorter: the background thread leads between two such requests, which
/// costs each of them two thread switches.
const LINGER: Duration = Duration::from_millis(1);

/// This many callers that are parked at once are a crowd: the background thread leads for them. A
/// caller among them would lead until its own answer arrives, which is one turn, and then hand over
/// to another thread. Larger: more callers hand over in this way. Smaller: already for fewer
/// callers, the background thread is between them and the sockets.
const CROWD: usize = if cfg!(all(loom, test)) { 2 } else { 24 };

/// Turns in a row without a crowd after which the background thread stops leading. Right after a
/// turn, most callers of a crowd are not parked: they have been answered and are making the next
/// request.
const QUIET_TURNS: u32 = if cfg!(all(loom, test)) { 1 } else { 16 };

/// How long the background thread waits until the callers of a crowd that it has woken have made
/// their next requests, so that these are sent in one write. Longer: a caller that makes no further
/// request delays the others more. Shorter: more requests are written separately.
const GATHERING: Duration = Duration::from_micros(200);

/// An event loop that several threads run, one at a time.
pub(crate) trait EventLoop: Send {
    /// Sleeps until there is something to do, and does it. Returns false once the loop has ended.
    fn turn(&mut self) -> bool;

    /// Called before a leader steps down, because the next turn may come much later.
    fn rest(&mut self);
}

/// The event loop and the threads that may run it.
pub(crate) struct Lead {
    event_loop: Mutex<Box<dyn EventLoop>>,
    signals: Arc<Signals>,
    roles: Mutex<Roles>,
}

#[derive(Default)]
struct Roles {
    leader: Option<Leader>,
    /// Callers that are parked while another thread leads, the longest waiting first.
    followers: Vec<Arc<Caller>>,
    /// Unknown until the background thread has started.
    background: Option<Thread>,
    /// Whether the background thread sleeps without a limit until it must lead.
    background_sleeps: bool,
    /// Callers that have become followers.
    arrivals: u64,
    /// The value of `arrivals` before the last turn of the background thread.
    seen: u64,
    /// The value of `arrivals` for which the background thread waits.
    awaited: Option<u64>,
    /// How many leaders have taken a turn and stepped down. A change shows the background thread
    /// that callers lead.
    terms: u64,
    /// Whether a turn is needed that no caller waits for.
    needed: bool,
}

#[derive(Clone, Copy)]
struct Leader {
    thread: ThreadId,
    /// The background thread, and for how many turns it continues if no crowd returns. With none
    /// left, it steps down for the first caller.
    background: Option<u32>,
}

impl Lead {
    pub(crate) fn new(
        event_loop: impl EventLoop + 'static,
        interrupt: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            event_loop: Mutex::new(Box::new(event_loop)),
            signals: Arc::new(Signals { interrupt: Box::new(interrupt), woken: AtomicUsize::new(0) }),
            roles: Mutex::default(),
        })
    }

    /// Blocks the calling thread until `poll` is ready.
    ///
    /// # Panics
    /// If `poll` does, or a turn of the event loop on this thread.
    pub(crate) fn wait(self: &Arc<Self>, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) {
        let caller = Arc::new(Caller::new(&self.signals));
        let waker = Waker::from(Arc::clone(&caller));
        let mut context = Context::from_waker(&waker);
        loop {
            caller.begin_poll();
            if poll(&mut context).is_ready() {
                return;
            }
            self.serve_until_woken(&caller);
        }
    }

    /// Leads while no caller does, until the event loop has ended. For the background thread.
    pub(crate) fn run_in_background(&self) {
        lock(&self.roles).background = Some(current());
        loop {
            let mut roles = lock(&self.roles);
            if !roles.is_for_background() {
                roles.background_sleeps = true;
                drop(roles);
                park();
                continue;
            }
            roles.background_sleeps = false;
            let terms = roles.terms;
            if !roles.needed && roles.followers.is_empty() {
                drop(roles);
                park_timeout(LINGER);
                roles = lock(&self.roles);
            }
            let is_at_work = roles.terms != terms && !roles.needed;
            if !roles.is_for_background() || is_at_work && roles.followers.is_empty() {
                continue;
            }
            roles.leader = Some(Leader { thread: current().id(), background: Some(0) });
            drop(roles);
            match catch(|| self.lead_until(|| self.gather_crowd())) {
                Ok(true) => return,
                Ok(false) => {}
                Err(panic) => {
                    // From here on the callers lead.
                    let mut roles = lock(&self.roles);
                    roles.background = None;
                    roles.hand_over();
                    drop(roles);
                    resume_unwind(panic);
                }
            }
        }
    }

    /// Interrupts the leader, or makes another thread lead at once.
    pub(crate) fn need_attention(&self) {
        let mut roles = lock(&self.roles);
        match roles.leader {
            // Its turn looks at everything before it sleeps. After its last turn, the next leader
            // does.
            Some(leader) if leader.thread == current().id() => {}
            Some(_) => (self.signals.interrupt)(),
            None => {
                roles.needed = true;
                if roles.followers.is_empty() {
                    roles.background.iter().for_each(Thread::unpark);
                }
            }
        }
    }

    /// Leads or follows until the caller has been woken. It does neither when this returns or
    /// panics.
    fn serve_until_woken(&self, caller: &Arc<Caller>) {
        let mut follows = false;
        while !caller.is_woken() {
            follows = !self.lead_or_follow(caller);
            if follows {
                while !caller.is_woken() && self.is_led() {
                    park();
                }
            } else {
                caller.begin_leading();
                self.lead_until(|| caller.is_woken());
                caller.end_leading();
            }
        }
        if follows {
            self.leave(caller);
        }
    }

    /// Makes the caller the leader if there is none, else a follower. Returns whether it leads.
    fn lead_or_follow(&self, caller: &Arc<Caller>) -> bool {
        let mut roles = lock(&self.roles);
        match roles.leader {
            None => {
                roles.remove(caller);
                roles.leader = Some(Leader { thread: caller.thread.id(), background: None });
                true
            }
            Some(leader) => {
                if !roles.followers.iter().any(|other| Arc::ptr_eq(other, caller)) {
                    roles.followers.push(Arc::clone(caller));
                    roles.arrivals += 1;
                    if leader.background == Some(0) {
                        (self.signals.interrupt)();
                    } else if roles.awaited == Some(roles.arrivals) {
                        roles.background.iter().for_each(Thread::unpark);
                    }
                }
                false
            }
        }
    }

    /// Between two turns of the background thread: gives the callers that the last turn has woken
    /// time to make their next requests. Returns whether it must step down for a caller.
    fn gather_crowd(&self) -> bool {
        let mut roles = lock(&self.roles);
        let serves_crowd = matches!(roles.leader, Some(Leader { background: Some(1..), .. }));
        let woken = self.signals.woken.swap(0, Ordering::AcqRel) as u64;
        let until = roles.seen + woken;
        if serves_crowd && woken > 1 && roles.arrivals < until {
            roles.awaited = Some(until);
            drop(roles);
            park_timeout(GATHERING);
            roles = lock(&self.roles);
            roles.awaited = None;
        }
        roles.seen = roles.arrivals;
        let waiting = roles.followers.len();
        let Some(Leader { background: Some(turns_left), .. }) = &mut roles.leader else { return true };
        if waiting >= CROWD {
            *turns_left = QUIET_TURNS;
        } else if *turns_left > 0 {
            *turns_left -= 1;
        } else {
            return waiting > 0;
        }
        false
    }

    fn is_led(&self) -> bool {
        lock(&self.roles).leader.is_some()
    }

    /// Ends the caller's time as a follower. If it was unparked because no thread leads, another
    /// thread must be unparked.
    fn leave(&self, caller: &Arc<Caller>) {
        let mut roles = lock(&self.roles);
        roles.remove(caller);
        if roles.leader.is_none() {
            roles.hand_over();
        }
    }

    /// Takes turns until `enough`, and steps down, also if a turn panics, because a turn calls
    /// wakers of other threads' futures. Returns whether the event loop has ended.
    fn lead_until(&self, enough: impl Fn() -> bool) -> bool {
        let mut event_loop = lock(&self.event_loop);
        let mut turns = 0_u64;
        let ended = catch(|| {
            while !enough() {
                turns += 1;
                if !event_loop.turn() {
                    return true;
                }
            }
            false
        });
        let rested = catch(|| event_loop.rest());
        drop(event_loop);
        self.step_down(turns > 0);
        match (ended, rested) {
            (Ok(ended), Ok(())) => ended,
            (Err(panic), _) | (_, Err(panic)) => resume_unwind(panic),
        }
    }

    fn step_down(&self, took_turns: bool) {
        let mut roles = lock(&self.roles);
        roles.leader = None;
        if took_turns {
            roles.terms = roles.terms.wrapping_add(1);
            roles.needed = false;
        }
        roles.hand_over();
    }
}

impl Roles {
    /// Whether no thread leads, and no caller should.
    fn is_for_background(&self) -> bool {
        self.leader.is_none() && (self.followers.is_empty() || self.followers.len() >= CROWD)
    }

    fn remove(&mut self, caller: &Arc<Caller>) {
        self.followers.retain(|other| !Arc::ptr_eq(other, caller));
    }

    /// Unparks the thread that must lead, because no thread does.
    fn hand_over(&self) {
        match (self.followers.first(), &self.background) {
            (Some(_), Some(background)) if self.followers.len() >= CROWD => background.unpark(),
            (Some(next), _) => next.thread.unpark(),
            (None, Some(background)) if self.background_sleeps => background.unpark(),
            (None, _) => {}
        }
    }
}

fn catch<R>(act: impl FnOnce() -> R) -> Result<R, Box<dyn Any + Send>> {
    catch_unwind(AssertUnwindSafe(act))
}
