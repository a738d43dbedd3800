//! The I/O loop: sockets, a timer, a wake-up, and nothing about locks.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use async_io::Timer;
use quorlock_core::front::{Addresses, Demand, Port};
use quorlock_core::{Address, Cause, Config, MasterId};

use crate::socket::{self, Socket};

/// A master that sends without end gets its next share after the others have had theirs.
const READS_PER_TURN: usize = 16;

/// One master's connection, with its generation.
enum Link {
    None,
    Opening(u32, Pin<Box<dyn Future<Output = Result<Socket, Cause>> + Send>>),
    Open(u32, Socket),
}

struct Master {
    id: MasterId,
    address: Address,
    addresses: Addresses,
    link: Link,
}

/// The future that moves a locker's bytes, on any executor. It ends when the last clone, guard and future of the locker is gone.
///
/// *Cancel safety*: dropping it ends the locker; whoever waits is told so.
#[must_use = "a locker without its driver gets no answers"]
pub struct Driver {
    port: Port,
    masters: Vec<Master>,
    timer: Timer,
    /// For when the timer was last set.
    alarm: Option<Instant>,
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
        let buffer = vec![0; 16 * 1024].into();
        Self { port, masters, timer: Timer::never(), alarm: None, buffer, has_woken: false }
    }

    /// Sets the timer for what the machine asks for. Ready if that is now.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let now = Instant::now();
        let Some(at) = self.port.sleep().and_then(|span| now.checked_add(span)) else { return Poll::Pending };
        // Each change rouses the reactor, so a later deadline waits until the timer has run out for the earlier one.
        if self.alarm.is_none_or(|alarm| alarm <= now || at < alarm) {
            self.alarm = Some(at);
            self.timer.set_at(at);
        }
        Pin::new(&mut self.timer).poll(cx).map(|_| ())
    }
}

impl Master {
    /// Whether there is anything to do for it. If not, `cx` will be woken when there is.
    ///
    /// A full socket may be what the driver was woken for, and such a wake-up comes only once.
    fn is_ready(&self, port: &Port, cx: &mut Context<'_>) -> bool {
        match &self.link {
            Link::None => false,
            Link::Opening(..) => true,
            Link::Open(_, socket) => port.is_blocked(self.id) || socket.poll_readable(cx).is_ready(),
        }
    }

    /// Moves what can be moved now. True if there may be more.
    fn serve(&mut self, port: &Port, buffer: &mut [u8], cx: &mut Context<'_>) -> bool {
        self.poll_opening(port, cx);
        let Link::Open(generation, socket) = &self.link else { return false };
        let generation = *generation;
        for _ in 0..READS_PER_TURN {
            let cause = match socket.poll_read(cx, buffer) {
                Poll::Ready(Ok(0)) => Cause::Closed,
                Poll::Ready(Ok(bytes)) => {
                    port.received(self.id, generation, buffer.get(..bytes).unwrap_or_default());
                    // It gave all that it had: what comes later rouses the reactor, and a look now would be in vain.
                    let is_empty = bytes < buffer.len() && socket.poll_readable(cx).is_pending();
                    if is_empty && !port.is_blocked(self.id) {
                        return false;
                    }
                    continue;
                }
                Poll::Ready(Err(error)) => Cause::from(&error),
                Poll::Pending if !port.is_blocked(self.id) => return false,
                Poll::Pending => match socket.poll_write(cx, || port.retry_write(self.id)) {
                    Poll::Ready(Err(error)) => Cause::from(&error),
                    Poll::Ready(Ok(())) | Poll::Pending => return false,
                },
            };
            self.link = Link::None;
            port.closed(self.id, generation, cause);
            return false;
        }
        true
    }

    fn poll_opening(&mut self, port: &Port, cx: &mut Context<'_>) {
        let Link::Opening(generation, opening) = &mut self.link else { return };
        let generation = *generation;
        let Poll::Ready(outcome) = opening.as_mut().poll(cx) else { return };
        match outcome {
            Ok(socket) => {
                port.opened(self.id, generation, socket.clone());
                self.link = Link::Open(generation, socket);
            }
            Err(cause) => {
                self.link = Link::None;
                port.closed(self.id, generation, cause);
            }
        }
    }

    /// True if the demand has begun something that wants a first poll.
    fn carry_out(&mut self, port: &Port, demand: Demand) -> bool {
        match (demand, &self.link) {
            (Demand::Connect { generation, .. }, _) => {
                if !port.has_served(self.id) {
                    self.addresses.avoid_last();
                }
                // What was under way is dropped first, so that its addresses are known to take too long.
                self.link = Link::None;
                let opening = socket::open(self.address.clone(), self.addresses.clone());
                self.link = Link::Opening(generation, Box::pin(opening));
                return true;
            }
            (Demand::Close { generation, .. }, Link::Opening(own, _) | Link::Open(own, _)) => {
                if *own == generation {
                    self.link = Link::None;
                }
            }
            (Demand::Close { .. }, Link::None) => {}
        }
        false
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.port.is_forked() {
            return Poll::Ready(());
        }
        this.port.register(cx.waker());
        // Those who were woken have run, and what they asked for is on its way. If nothing else has happened, there is nothing else to do; above
        // all the time must not be told, since nothing has been read.
        if mem::take(&mut this.has_woken)
            && !this.masters.iter().any(|master| master.is_ready(&this.port, cx))
        {
            if this.poll_timer(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
            return Poll::Pending;
        }
        let mut again = false;
        for master in &mut this.masters {
            again |= master.serve(&this.port, &mut this.buffer, cx);
        }
        this.has_woken = this.port.tick();
        while let Some(demand) = this.port.next_demand() {
            let (Demand::Connect { master, .. } | Demand::Close { master, .. }) = demand;
            again |= this
                .masters
                .get_mut(master.index())
                .is_some_and(|master| master.carry_out(&this.port, demand));
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

impl Drop for Driver {
    /// In a forked child, sockets and timer are left alone: dropping them would take them out of the reactor that the parent uses.
    fn drop(&mut self) {
        if self.port.is_forked() {
            mem::forget(mem::take(&mut self.masters));
            mem::forget(mem::replace(&mut self.timer, Timer::never()));
        }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{self, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Waker;

    use super::*;

    /// A socket that has no room, and counts how often it was tried.
    struct Full(Arc<AtomicUsize>);

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Err(io::ErrorKind::WouldBlock.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What wakes the driver may be room in a full socket, and it is woken for that only once.
    #[test]
    fn a_full_socket_is_tried_again_also_in_a_short_turn() {
        let config = Config::new(["redis://127.0.0.1:1"]).unwrap();
        let (_locker, mut driver) = crate::open_with_driver(config);
        let Some(Demand::Connect { master, generation }) = driver.port.next_demand() else {
            panic!("it connects")
        };
        let (ours, _theirs) = UnixStream::pair().unwrap();
        driver.masters[0].link = Link::Open(generation, Socket::new(async_io::Async::new(ours).unwrap()));
        let tries = Arc::new(AtomicUsize::new(0));
        driver.port.opened(master, generation, Full(Arc::clone(&tries)));
        assert!(driver.port.is_blocked(master));
        driver.has_woken = true;
        let before = tries.load(Ordering::SeqCst);

        assert!(Pin::new(&mut driver).poll(&mut Context::from_waker(Waker::noop())).is_pending());

        assert!(tries.load(Ordering::SeqCst) > before, "the wake-up was for a socket that has room again");
    }
}
