//! The I/O loop: sockets, a timer, a wake-up, and nothing about locks.

use std::fmt;
use std::future::Future;
use std::mem;
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
    ///
    /// A full socket may be what the driver was woken for, and such a wake-up comes only once.
    fn is_ready(&self, port: &Port, cx: &mut Context<'_>) -> bool {
        match &self.link {
            Link::None => false,
            Link::Opening(..) => true,
            Link::Open(_, socket) => port.is_blocked(self.id) || socket.poll_readable(cx).is_ready(),
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
        if this.port.is_forked() {
            return Poll::Ready(());
        }
        this.port.register(cx.waker());
        // Those who were woken have run, and what they asked for is on its way. If nothing else has happened, there is nothing else to do; above
        // all the time must not be told, since the reactor has not run.
        if mem::take(&mut this.has_woken)
            && !this.masters.iter().any(|master| master.is_ready(&this.port, cx))
        {
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

impl Drop for Driver {
    /// In a forked child, sockets and timer are left alone: dropping them would take them out of the reactor that the parent uses.
    fn drop(&mut self) {
        if self.port.is_forked() {
            mem::forget(mem::take(&mut self.masters));
            mem::forget(self.timer.take());
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
    use std::time::Duration;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(3);

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
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let config = Config::builder(["redis://127.0.0.1:1"]).connect_timeout(10 * PATIENCE).build().unwrap();
        let (_locker, mut driver) = crate::open_with_driver(config);
        let Some(Demand::Connect { master, generation }) = driver.port.next_demand() else {
            panic!("it connects")
        };
        let (ours, _theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let (socket, _sink) = socket::split_unix(tokio::net::UnixStream::from_std(ours).unwrap()).unwrap();
        driver.masters[0].link = Link::Open(generation, socket);
        let tries = Arc::new(AtomicUsize::new(0));
        driver.port.opened(master, generation, Full(Arc::clone(&tries)));
        assert!(driver.port.is_blocked(master));
        driver.has_woken = true;
        let before = tries.load(Ordering::SeqCst);

        // The runtime finds out that there is room, and wakes the driver if that asked for it.
        let tried = std::future::poll_fn(|cx| {
            assert!(Pin::new(&mut driver).poll(cx).is_pending());
            if tries.load(Ordering::SeqCst) > before { Poll::Ready(()) } else { Poll::Pending }
        });
        let start = Instant::now();
        // The time-out wakes the driver, too, but late.
        let _ = runtime.block_on(async { tokio::time::timeout(PATIENCE, tried).await });

        assert!(start.elapsed() < PATIENCE, "the wake-up was for a socket that has room again");
    }
}
