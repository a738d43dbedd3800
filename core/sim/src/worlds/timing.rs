//! How long the commands of a client's program take.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use quorlock_core::Instant;

use super::client::Client;
use super::violation::Violation;

/// How much longer a command may take, because a process runs only a little after it has been
/// woken.
pub(super) const GRACE: Duration = Duration::from_millis(15);

/// How long a command takes on its client's clock; while the process is paused it cannot end.
pub(super) struct Timed<'a> {
    client: &'a Client,
    command: &'static str,
    limit: Duration,
    began: Instant,
    /// Whether the time starts again when the process continues: the time for an answer starts when
    /// its request is sent.
    starts_again: bool,
}

impl<'a> Timed<'a> {
    pub(super) fn begin(
        client: &'a Client,
        command: &'static str,
        limit: Duration,
        starts_again: bool,
    ) -> Self {
        Self { client, command, limit, began: client.now(), starts_again }
    }

    /// Sets the limit of a command whose time depends on what masters answer.
    pub(super) fn allow(&mut self, limit: Duration) {
        self.limit = limit;
    }

    pub(super) fn end(self) {
        // Timers that were set before a jump of the clock fire later by the jump, and the driver
        // sets no timer for later deadlines.
        let leap = self.client.leapt();
        let mut end = self.began + self.limit + leap;
        let stood_until = self.client.stood_until() + leap;
        if stood_until > self.began {
            end = end.max(stood_until + if self.starts_again { self.limit } else { Duration::ZERO });
        }
        let (now, limit) = (self.client.now(), (end + GRACE).since(self.began));
        if now > end + GRACE {
            let (client, command, took) = (self.client.number(), self.command, now.since(self.began));
            self.client.find(Violation::Late { client, command, took, limit });
        }
    }
}

/// Returns the result of the future. If it has not ended after this time, it is dropped, and the
/// result is `None`.
pub(super) async fn unless<F: Future>(
    client: &Client,
    limit: Option<Duration>,
    future: F,
) -> Option<F::Output> {
    let Some(limit) = limit else { return Some(future.await) };
    let (mut future, mut over) = (pin!(future), pin!(client.sleep(limit)));
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => over.as_mut().poll(cx).map(|()| None),
    })
    .await
}
