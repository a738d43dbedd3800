//! The outbox: the machine's outputs wait here until one thread carries them out for all, and
//! writes the bytes to the sockets without waiting.

#[cfg(all(test, loom))]
mod loom_tests;
mod queue;

use std::cell::Cell;
use std::ptr;

pub(super) use self::queue::{Queue, Sink, Trouble, write};
use super::securing::Secured;
use super::sync::{AtomicBool, AtomicU64, Ordering, TryMutex, fence};
use crate::protocol::{Cause, ChannelState, MasterId, MasterSet};

/// What an [`Outbox`] carries out.
pub(super) trait Outputs {
    /// What remains to be done when the queue is free again.
    type Rest: Default;

    /// Takes every output that there is. Bytes go into the queue.
    fn collect(&self, queue: &mut Queue, rest: &mut Self::Rest);

    /// Reports that encrypted connections cannot continue, or should not, which produces more
    /// outputs.
    fn troubled(&self, troubles: Vec<Trouble>);

    /// The bytes are written, as far as the sockets took them; `became_full` if one of them is now
    /// full.
    fn written(&self, became_full: bool, rest: &mut Self::Rest);

    /// Does what remains, under no mutex. Returns whether callers were woken. It must not panic.
    fn finish(&self, rest: Self::Rest) -> bool;
}

/// Outputs wait here until they are carried out.
///
/// A thread that has changed the machine calls [`Outbox::flush`]. It carries the outputs out
/// itself, unless another thread has the queue (which then does it for both) or the driver is
/// gathering (which does it at the end of its turn).
///
/// No output is missed, because every thread sets the mark *before* it tries the queue, and checks
/// the mark *after* unlocking the queue:
///
/// | a thread that flushes | the thread that has the queue | the driver that gathers |
/// |---|---|---|
/// | sets `dirty` | releases `queue` | clears `gathers` |
/// | fence | fence | fence |
/// | reads `gathers`, tries `queue` | reads `dirty` | reads `dirty` |
///
/// One of the two fences comes first, so at least one side sees what the other has written.
/// `loom_tests.rs` checks it for all interleavings of two and three threads.
pub(super) struct Outbox {
    queue: TryMutex<Queue>,
    /// There may be outputs that no thread has started to carry out.
    dirty: AtomicBool,
    /// The driver carries out at the end of its turn, after the tasks that it has woken have run.
    gathers: AtomicBool,
    /// Masters whose sockets are full, one bit each.
    full: AtomicU64,
}

#[cfg(not(all(test, loom)))]
std::thread_local! {
    /// The outbox that this thread will carry out, if any: see [`Outbox::gathered`]. The pointer is
    /// only compared, never read through.
    static GATHERS_HERE: Cell<*const ()> = const { Cell::new(ptr::null()) };
}
#[cfg(all(test, loom))]
loom::thread_local! {
    static GATHERS_HERE: Cell<*const ()> = Cell::new(ptr::null());
}

impl Outbox {
    pub(super) fn new(masters: usize) -> Self {
        Self {
            queue: TryMutex::new(Queue::new(masters)),
            dirty: AtomicBool::new(false),
            gathers: AtomicBool::new(false),
            full: AtomicU64::new(0),
        }
    }

    // Connections.

    /// Bytes queued for this connection from now on are written to `sink`.
    pub(super) fn open(&self, master: MasterId, generation: u32, sink: Sink, outputs: &impl Outputs) {
        self.with_queue(outputs, |queue| queue.open(master, generation, sink));
    }

    /// Bytes queued for this connection from now on are encrypted before they are written.
    pub(super) fn open_secured(
        &self,
        master: MasterId,
        generation: u32,
        secured: Secured,
        outputs: &impl Outputs,
    ) {
        self.with_queue(outputs, |queue| queue.open_secured(master, generation, secured));
    }

    /// Decrypts what came from a socket, unless the connection is gone.
    ///
    /// It needs the queue, since reading and writing share the channel's state: a caller that finds
    /// the queue locked meanwhile leaves its outputs to this thread.
    pub(super) fn decrypt(
        &self,
        master: MasterId,
        generation: u32,
        wire: &[u8],
        plain: &mut Vec<u8>,
        outputs: &impl Outputs,
    ) -> Option<Result<ChannelState, Cause>> {
        self.with_queue(outputs, |queue| queue.decrypt(master, generation, wire, plain))
    }

    /// The connection has ended: with the next write its sink is dropped.
    pub(super) fn close(&self, master: MasterId, generation: u32, outputs: &impl Outputs) {
        self.with_queue(outputs, |queue| queue.close(master, generation));
    }

    /// Whether bytes wait for room in this master's socket.
    pub(super) fn is_full(&self, master: MasterId) -> bool {
        MasterSet::from_bits(self.full.load(Ordering::SeqCst)).contains(master)
    }

    /// A full socket has room again. Returns whether it took everything.
    pub(super) fn retry(&self, master: MasterId, outputs: &impl Outputs) -> bool {
        self.with_queue(outputs, |queue| queue.retry(master))
    }

    /// Waits for the queue and uses it. A thread that finds it locked meanwhile leaves its outputs
    /// to this one.
    fn with_queue<R>(&self, outputs: &impl Outputs, act: impl FnOnce(&mut Queue) -> R) -> R {
        let result = {
            let mut queue = self.queue.lock();
            let result = act(&mut queue);
            self.full.store(queue.full().bits(), Ordering::SeqCst);
            if queue.has_troubles() {
                self.dirty.swap(true, Ordering::AcqRel);
            }
            result
        };
        fence(Ordering::SeqCst);
        self.carry_out(outputs);
        result
    }

    // Flushing.

    /// Has the outputs carried out: by the calling thread at once, or by another thread that is
    /// about to do so anyway. In the second case the requests of many callers go out in one write.
    pub(super) fn flush(&self, outputs: &impl Outputs) {
        self.mark();
        if !self.gathers.load(Ordering::Acquire) && GATHERS_HERE.with(Cell::get) != ptr::from_ref(self).cast()
        {
            self.carry_out(outputs);
        }
    }

    /// Carries the outputs out, even while they are gathered. Returns whether callers were woken.
    pub(super) fn flush_now(&self, outputs: &impl Outputs) -> bool {
        self.mark();
        self.carry_out(outputs)
    }

    // Gathering: many outputs in one write.

    /// Carries out the outputs for the driver. The callers that this wakes run before the driver
    /// carries out outputs again, at the latest with [`Outbox::end_gathering`]. Returns whether
    /// there are such callers; if not, nothing is gathered.
    pub(super) fn begin_gathering(&self, outputs: &impl Outputs) -> bool {
        self.gathers.store(true, Ordering::Release);
        self.mark();
        let has_woken = self.carry_out(outputs);
        if !has_woken {
            self.end_gathering(outputs);
        }
        has_woken
    }

    pub(super) fn end_gathering(&self, outputs: &impl Outputs) {
        if self.gathers.swap(false, Ordering::AcqRel) {
            fence(Ordering::SeqCst);
            self.carry_out(outputs);
        }
    }

    /// The driver has changed the machine in its turn. The outputs are carried out with its tick
    /// or, if that is over, with [`Outbox::end_gathering`], which it calls before it sleeps.
    pub(super) fn changed_in_turn(&self) {
        self.mark();
        self.gathers.store(true, Ordering::Release);
    }

    /// Runs `act`, which may make many requests on this thread, and carries them out afterwards.
    pub(super) fn gathered<R>(&self, outputs: &impl Outputs, act: impl FnOnce() -> R) -> R {
        /// Ends the gathering when it is dropped, also if `act` panics.
        struct Gathering<F: FnMut()>(F);
        impl<F: FnMut()> Drop for Gathering<F> {
            fn drop(&mut self) {
                (self.0)();
            }
        }
        let outer = GATHERS_HERE.with(|here| here.replace(ptr::from_ref(self).cast()));
        let _gathering = Gathering(|| {
            GATHERS_HERE.with(|here| here.set(outer));
            // The outputs of `act` are marked. If the driver gathers, it finds the mark.
            if !self.gathers.load(Ordering::Acquire) {
                self.carry_out(outputs);
            }
        });
        act()
    }

    fn mark(&self) {
        // Not a store: loom does not know that a store cannot come between the read and the write
        // of another thread's `swap`.
        self.dirty.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// If another thread has the queue, it carries out ours, too: it checks the mark again after
    /// unlocking.
    fn carry_out<O: Outputs>(&self, outputs: &O) -> bool {
        let mut has_woken = false;
        while self.dirty.load(Ordering::Acquire) {
            let Some(mut queue) = self.queue.try_lock() else { break };
            let mut rest = O::Rest::default();
            while self.dirty.swap(false, Ordering::AcqRel) {
                outputs.collect(&mut queue, &mut rest);
                let became_full = queue.write();
                // This comes before the driver is notified, so that the driver finds the full
                // socket.
                self.full.store(queue.full().bits(), Ordering::SeqCst);
                if queue.has_troubles() {
                    outputs.troubled(queue.take_troubles());
                    self.dirty.swap(true, Ordering::AcqRel);
                }
                outputs.written(became_full, &mut rest);
            }
            drop(queue);
            has_woken |= outputs.finish(rest);
            fence(Ordering::SeqCst);
        }
        has_woken
    }
}
