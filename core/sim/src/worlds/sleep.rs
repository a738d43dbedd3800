//! Sleeping by a client's clock.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::client::{SharedState, lock};
use super::event::Event;

/// The future that [`Client::sleep`](super::Client::sleep) returns. It may be dropped at any time.
#[must_use = "futures do nothing until they are polled"]
pub struct Sleep {
    client: usize,
    state: SharedState,
    until: u64,
    /// The true time of the alarm, and the waker of its task.
    alarm: Option<(u64, Waker)>,
}

impl Sleep {
    /// Sleeps until the client's clock shows `until` nanoseconds.
    pub(super) fn new(client: usize, state: SharedState, until: u64) -> Self {
        Self { client, state, until, alarm: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = lock(&this.state);
        if state.local(this.client) >= this.until {
            return Poll::Ready(());
        }
        // An earlier poll may have set the alarm. A clock that has been slowed down since needs a
        // new one, and so does another task that waits now.
        let now = state.now;
        if this.alarm.as_ref().is_none_or(|(at, waker)| *at <= now || !waker.will_wake(cx.waker())) {
            let alarm = state.alarm_time(this.client, this.until).map(|at| (at, cx.waker().clone()));
            if let Some((at, waker)) = &alarm {
                state.schedule(*at, Event::Alarm(waker.clone()));
            }
            drop(state);
            this.alarm = alarm;
        }
        Poll::Pending
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").finish_non_exhaustive()
    }
}
