//! The I/O loop: sockets, a timer, a wake-up, and nothing about locks.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use quorlock_core::front::{Addresses, Demand, Port};
use quorlock_core::{Address, Cause, Config, MasterId};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::socket::{self, Sink, Socket};

/// Reads from one socket in one turn, so that a flood from one master does not starve the others.
const READS_PER_TURN: usize = 16;

type Opening = Pin<Box<dyn Future<Output = Result<(Socket, Sink), Cause>> + Send>>;

/// One master's connection, if any, with its generation.
enum Link {
    None,
    Opening(u32, Opening),
    Open(u32, Socket),
}

struct Master {
    id: MasterId,
    address: Address,
    addresses: Addresses,
    link: Link,
}

/// The future that moves a locker's bytes. It ends when the last clone, guard and future of the locker is gone.
///
/// *Cancel safety*: dropping it ends the locker; whoever waits is told so.
#[must_use = "a locker without its driver gets no answers"]
pub struct Driver {
    port: Port,
    masters: Vec<Master>,
    /// Made at the first poll, which is inside the runtime that will drive it.
    timer: Option<Pin<Box<Sleep>>>,
    buffer: Box<[u8]>,
    /// Whether the last turn has woken somebody, who has had the chance to run since.
    has_woken: bool,
}

impl Driver {
    pub(crate) fn new(port: Port, config: &Config) -> Self {
        let masters = config.master_ids().zip(config.masters());
        let masters = masters
            .map(|(id, endpoint)| Master {
                id,
                address: endpoint.address().clone(),
                addresses: Addresses::new(config),
                link: Link::None,
            })
            .collect();
        Self { port, masters, timer: None, buffer: vec![0; 16 * 1024].into(), has_woken: false }
    }

    fn carry_out(&mut self, demand: Demand) {
        let (Demand::Connect { master, .. } | Demand::Close { master, .. }) = demand;
        let Some(master) = self.masters.get_mut(master.index()) else { return };
        match demand {
            Demand::Connect { generation, .. } => {
                if !self.port.has_served(master.id) {
                    master.addresses.avoid_last();
                }
                // What was under way is dropped first, so that its addresses are known to take too long.
                master.link = Link::None;
                let opening = socket::open(master.address.clone(), master.addresses.clone());
                master.link = Link::Opening(generation, Box::pin(opening));
            }
            Demand::Close { generation, .. } => {
                if matches!(master.link, Link::Opening(own, _) | Link::Open(own, _) if own == generation) {
                    master.link = Link::None;
                }
            }
        }
    }

    /// Sets the timer for what the machine asks for. True if that is now.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(span) = self.port.sleep() else { return Poll::Pending };
        if span.is_zero() {
            return Poll::Ready(());
        }
        let at = Instant::now() + span;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
        // A timer that fires early is cheap; setting it anew for every request is not.
        if timer.is_elapsed() || at < timer.deadline() {
            timer.as_mut().reset(at);
        }
        timer.as_mut().poll(cx)
    }
}

impl Master {
    /// Whether there is anything to do for it. If not, `cx` will be woken when there is.
    fn is_ready(&self, cx: &mut Context<'_>) -> bool {
        match &self.link {
            Link::None => false,
            Link::Opening(..) => true,
            Link::Open(_, socket) => socket.poll_readable(cx).is_ready(),
        }
    }

    /// Reads what there is, also what the reactor has not seen yet if something `is_due`. True if there may be more.
    fn serve(&mut self, port: &Port, is_due: bool, buffer: &mut [u8], cx: &mut Context<'_>) -> bool {
        if let Link::Opening(generation, opening) = &mut self.link {
            let generation = *generation;
            match opening.as_mut().poll(cx) {
                Poll::Pending => return false,
                Poll::Ready(Ok((socket, sink))) => {
                    port.opened(self.id, generation, sink);
                    self.link = Link::Open(generation, socket);
                }
                Poll::Ready(Err(cause)) => {
                    self.link = Link::None;
                    port.closed(self.id, generation, cause);
                }
            }
        }
        let Link::Open(generation, socket) = &mut self.link else { return false };
        let generation = *generation;
        for _ in 0..READS_PER_TURN {
            let cause = match socket.poll_read(cx, is_due, buffer) {
                Poll::Pending => return port.is_blocked(self.id) && self.wait_for_room(port, cx),
                Poll::Ready(Ok(bytes @ 1..)) => {
                    port.received(self.id, generation, buffer.get(..bytes).unwrap_or_default());
                    continue;
                }
                Poll::Ready(Ok(0)) => Cause::Closed,
                Poll::Ready(Err(error)) => Cause::from(&error),
            };
            self.link = Link::None;
            port.closed(self.id, generation, cause);
            return false;
        }
        true
    }

    fn wait_for_room(&self, port: &Port, cx: &mut Context<'_>) -> bool {
        let Link::Open(_, socket) = &self.link else { return false };
        socket.poll_room(cx, || port.retry_write(self.id)).is_ready()
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.port.register(cx.waker());
        // Those who were woken have run, and what they asked for is on its way. If nothing else has happened, there is nothing else to do; above
        // all the time must not be told, since the reactor has not run.
        if std::mem::take(&mut this.has_woken) && !this.masters.iter().any(|master| master.is_ready(cx)) {
            if this.poll_timer(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
            return Poll::Pending;
        }
        let mut again = false;
        let is_due = this.port.is_due();
        for master in &mut this.masters {
            again |= master.serve(&this.port, is_due, &mut this.buffer, cx);
        }
        this.has_woken = this.port.tick();
        while let Some(demand) = this.port.next_demand() {
            // What is being opened wants a first poll.
            again |= matches!(demand, Demand::Connect { .. });
            this.carry_out(demand);
        }
        if this.port.is_finished() {
            return Poll::Ready(());
        }
        // Those who were woken run first, if this thread is theirs: what they ask for goes out in one write.
        if again || this.has_woken || this.poll_timer(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}
