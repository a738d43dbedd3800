//! The I/O loop of async runtimes: one future that moves a locker's bytes.

use std::fmt;
use std::future::Future;
use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::dial::Addresses;
use super::host::{Host, Runtime, Socket, Timer};
use super::locker::Locker;
use super::mailbox::Demand;
use super::port::Port;
use super::stream::{self, Stream, Streamed};
use crate::endpoint::Address;
use crate::protocol::{Cause, Config, MasterId};
use crate::time::Instant;

/// The maximum number of reads from one socket in one turn, so that a flood from one master does
/// not starve the others. Larger: the others wait longer. Smaller: a busy connection needs more
/// turns.
const READS_PER_TURN: usize = 16;

/// The size of the buffer of one read, in bytes. Replies are short: a larger buffer would hardly
/// ever be filled, and a smaller one needs more system calls when many locks are decided at once.
const BUFFER_BYTES: usize = 16 * 1024;

/// The future that moves a locker's bytes. It ends when the last clone, guard and future of the
/// locker is gone.
///
/// *Cancel safety*: dropping it ends the locker, and all callers that wait for a lock get an error.
#[must_use = "a locker without its driver gets no answers"]
pub struct Driver(Box<dyn Turn>);

impl Driver {
    /// Returns a locker over the masters of `config`, and the driver that must be polled for it.
    pub fn open<R: Runtime>(config: Config, host: Arc<dyn Host>, runtime: R) -> (Locker, Self) {
        Self::open_by(config, host, runtime.clone(), Direct(runtime))
    }

    /// Returns a locker and its driver as [`Driver::open`] does, but over the caller's own
    /// connections. `connector` is called once for each connection, with the address in a master's
    /// URL or that of the discovered server, and its future returns a stream. Only the runtime's
    /// timers are used.
    ///
    /// The driver polls the future. The future, TLS and the greeting together may take one
    /// [`connect_timeout`](crate::ConfigBuilder::connect_timeout): after that the master counts as
    /// unreachable, and no request waits for it. The future is dropped when the connection is given
    /// up for a new one, which happens after four such times or the longest
    /// [`reconnect_delay`](crate::ConfigBuilder::reconnect_delay), whichever is longer. It is also
    /// dropped when the locker or the driver ends. Its error is reported like that of a socket, and
    /// its panic as [`Cause::ConnectorPanicked`].
    pub fn open_through<R, S, F>(
        config: Config,
        host: Arc<dyn Host>,
        runtime: R,
        connector: impl Fn(Address) -> F + Send + Sync + 'static,
    ) -> (Locker, Self)
    where
        R: Runtime,
        S: Stream,
        F: Future<Output = io::Result<S>> + Send + 'static,
    {
        Self::open_by(config, host, runtime, Through(Arc::new(connector)))
    }

    fn open_by<R: Runtime, C: Connect>(
        config: Config,
        host: Arc<dyn Host>,
        runtime: R,
        connect: C,
    ) -> (Locker, Self) {
        let (locker, port) = Port::new(config, host);
        let driver = Turns::new(port, locker.config(), runtime, connect);
        (locker, Self(Box::new(driver)))
    }
}

/// How a driver opens connections.
trait Connect: Send + 'static {
    type Socket: Socket;

    fn open(&self, to: Address, addresses: Addresses) -> Opening<Self::Socket>;
}

type Opening<S> = Pin<Box<dyn Future<Output = Result<S, Cause>> + Send>>;

/// Over TCP and Unix domain sockets of the runtime.
struct Direct<R>(R);

impl<R: Runtime> Connect for Direct<R> {
    type Socket = R::Socket;

    fn open(&self, to: Address, addresses: Addresses) -> Opening<R::Socket> {
        Box::pin(open(self.0.clone(), to, addresses))
    }
}

/// By the caller's connector.
struct Through<C>(Arc<C>);

impl<C, F, S> Connect for Through<C>
where
    C: Fn(Address) -> F + Send + Sync + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
    S: Stream,
{
    type Socket = Streamed<S>;

    fn open(&self, to: Address, _: Addresses) -> Opening<Streamed<S>> {
        Box::pin(stream::connect(Arc::clone(&self.0), to))
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.turn(cx)
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

/// A driver on some runtime.
trait Turn: Send {
    /// Does what can be done now. Ready when the driver is finished.
    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

struct Turns<R: Runtime, C: Connect> {
    port: Port,
    runtime: R,
    connect: C,
    masters: Vec<Master<C::Socket>>,
    /// Made at the first turn, which is inside the runtime.
    timer: Option<R::Timer>,
    /// When the timer fires; `None` once it has.
    alarm: Option<Instant>,
    buffer: Box<[u8]>,
    /// Whether the last turn has woken callers, which have had the chance to run since.
    has_woken: bool,
}

struct Master<S> {
    id: MasterId,
    addresses: Addresses,
    link: Link<S>,
}

/// One master's connection, if any, with its generation.
enum Link<S> {
    None,
    Opening(u32, Opening<S>),
    Open(u32, S),
}

impl<R: Runtime, C: Connect> Turns<R, C> {
    fn new(port: Port, config: &Config, runtime: R, connect: C) -> Self {
        let masters =
            config.master_ids().map(|id| Master { id, addresses: Addresses::new(config), link: Link::None });
        Self {
            masters: masters.collect(),
            port,
            runtime,
            connect,
            timer: None,
            alarm: None,
            buffer: vec![0; BUFFER_BYTES].into(),
            has_woken: false,
        }
    }

    /// Sets the timer for the machine's deadline. Ready if that is now.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (now, Some(at)) = self.port.wake_at() else { return Poll::Pending };
        if at <= now {
            return Poll::Ready(());
        }
        let span = at.since(now);
        let timer = self.timer.get_or_insert_with(|| self.runtime.timer(span));
        // A timer that fires early is cheap; resetting it for every request is not.
        if self.alarm.is_none_or(|alarm| alarm <= now || at < alarm) {
            timer.reset(span);
            self.alarm = Some(at);
        }
        timer.poll_elapsed(cx).map(|()| self.alarm = None)
    }
}

impl<R: Runtime, C: Connect> Turn for Turns<R, C> {
    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.port.is_forked() {
            return Poll::Ready(());
        }
        self.port.register(cx.waker());
        // The callers that the last turn woke have run, and their requests are on their way. If
        // nothing else has happened there is nothing to do. In particular the time must not be
        // passed to the machine, since nothing has been read.
        let may_rest = mem::take(&mut self.has_woken);
        if may_rest && !self.masters.iter_mut().any(|master| master.is_ready(&self.port, cx)) {
            // The last of these callers may have gone: nothing wakes the driver again.
            if self.port.is_finished() {
                return Poll::Ready(());
            }
            if self.poll_timer(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
            return Poll::Pending;
        }
        let mut again = false;
        let is_due = self.port.is_due();
        for master in &mut self.masters {
            again |= master.serve(&self.port, is_due, &mut self.buffer, cx);
        }
        self.has_woken = self.port.tick();
        while let Some(demand) = self.port.next_demand() {
            let (Demand::Connect { master, .. } | Demand::Close { master, .. }) = demand;
            if let Some(master) = self.masters.get_mut(master.index()) {
                again |= master.carry_out(&self.port, &self.connect, demand);
            }
        }
        if self.port.is_finished() {
            return Poll::Ready(());
        }
        // The woken callers run first if they share this thread: their requests go out in one
        // write.
        if again || self.has_woken || self.poll_timer(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl<S: Socket> Master<S> {
    /// Whether this link needs service. If not, `cx` is woken when there is.
    ///
    /// A full socket may be what the driver was woken for, and such a wake-up comes only once.
    fn is_ready(&mut self, port: &Port, cx: &mut Context<'_>) -> bool {
        match &mut self.link {
            Link::None => false,
            Link::Opening(..) => true,
            Link::Open(_, socket) => port.is_blocked(self.id) || socket.poll_readable(cx).is_ready(),
        }
    }

    /// Moves the bytes that can be moved now. Returns whether there may be more.
    fn serve(&mut self, port: &Port, is_due: bool, buffer: &mut [u8], cx: &mut Context<'_>) -> bool {
        if matches!(self.link, Link::Opening(..)) {
            self.poll_opening(port, cx);
        }
        if self.read(port, is_due, buffer, cx).is_ready() {
            return true;
        }
        if let (true, Link::Open(_, socket)) = (port.is_blocked(self.id), &mut self.link) {
            // Ready or pending, a later turn does the rest: `cx` is woken when there is room.
            let _ = socket.poll_write(cx, &mut || port.retry_write(self.id));
        }
        false
    }

    /// Reads what there is. Ready if there may be more, which the next turn reads.
    fn read(&mut self, port: &Port, is_due: bool, buffer: &mut [u8], cx: &mut Context<'_>) -> Poll<()> {
        let Link::Open(generation, socket) = &mut self.link else { return Poll::Pending };
        for _ in 0..READS_PER_TURN {
            let cause = match ready!(socket.poll_read(cx, buffer, is_due)) {
                Ok(0) => Cause::Closed,
                Ok(bytes) => {
                    port.received(self.id, *generation, buffer.get(..bytes).unwrap_or_default());
                    // The socket is empty now: later bytes wake the driver, and another read would
                    // find nothing.
                    if bytes < buffer.len() {
                        ready!(socket.poll_readable(cx));
                    }
                    continue;
                }
                Err(error) => Cause::from(&error),
            };
            port.closed(self.id, *generation, cause);
            self.link = Link::None;
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    fn poll_opening(&mut self, port: &Port, cx: &mut Context<'_>) {
        let Link::Opening(generation, opening) = &mut self.link else { return };
        let generation = *generation;
        match opening.as_mut().poll(cx) {
            Poll::Pending => {}
            Poll::Ready(Ok(socket)) => {
                port.opened(self.id, generation, socket.sink());
                self.link = Link::Open(generation, socket);
            }
            Poll::Ready(Err(cause)) => {
                self.link = Link::None;
                port.closed(self.id, generation, cause);
            }
        }
    }

    /// Returns whether it has started something that needs a first poll.
    fn carry_out(&mut self, port: &Port, connect: &impl Connect<Socket = S>, demand: Demand) -> bool {
        match demand {
            Demand::Connect { generation, address, .. } => {
                if !port.has_served(self.id) {
                    self.addresses.avoid_last();
                }
                // The opening under way is dropped first, so that its addresses count as too slow.
                self.link = Link::None;
                let opening = connect.open(address, self.addresses.clone());
                self.link = Link::Opening(generation, opening);
                true
            }
            Demand::Close { generation, .. } => {
                if matches!(self.link, Link::Opening(own, _) | Link::Open(own, _) if own == generation) {
                    self.link = Link::None;
                }
                false
            }
        }
    }
}

/// Resolves a name and connects to one of its addresses.
async fn open<R: Runtime>(runtime: R, address: Address, addresses: Addresses) -> Result<R::Socket, Cause> {
    match address {
        Address::Tcp { host, port } => {
            let resolved =
                runtime.clone().resolve(host, port).await.map_err(|error| Cause::unresolved(&error))?;
            let dial = addresses.dial(resolved);
            dial.race(|address| runtime.clone().connect(address), |span| runtime.sleep(span)).await
        }
        Address::Unix(path) => runtime.connect_unix(path).await.map_err(|error| Cause::from(&error)),
    }
}

impl<R: Runtime, C: Connect> Drop for Turns<R, C> {
    /// In a forked child, sockets and timer are left alone: dropping them would take them out of
    /// the reactor that the parent uses.
    fn drop(&mut self) {
        if self.port.is_forked() {
            mem::forget(mem::take(&mut self.masters));
            mem::forget(self.timer.take());
        }
    }
}
