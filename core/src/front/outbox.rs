//! Carries outputs out: one thread at a time, for all.

use std::cell::Cell;
use std::ptr;

use super::sync::{AtomicBool, Ordering, TryMutex, fence};

/// What an [`Outbox`] carries out.
pub(super) trait Outputs {
    /// What the outputs are written with.
    type Writer;
    /// What remains to be done when the writer is free again.
    type Rest: Default;

    /// Takes every output that there is, and writes what is to be written.
    fn drain(&self, writer: &mut Self::Writer, rest: &mut Self::Rest);

    /// Does what remains, under no mutex. Returns whether callers were woken. It must not panic.
    fn finish(&self, rest: Self::Rest) -> bool;
}

/// Outputs wait here until they are carried out.
///
/// A thread that has changed the machine calls [`Outbox::flush`]. It carries the outputs out itself, unless another thread holds the
/// writer (which then does it for both) or the driver is gathering (which does it at the end of its turn).
///
/// Nothing is left behind, because everyone marks the box *before* looking who is at it, and looks for the mark *after* letting go:
///
/// | a thread that flushes | the thread that holds the writer | the driver that gathers |
/// |---|---|---|
/// | sets `dirty` | releases `writer` | clears `gathers` |
/// | fence | fence | fence |
/// | reads `gathers`, tries `writer` | reads `dirty` | reads `dirty` |
///
/// Of two fences one is first, so at least one side sees what the other has written. `loom_tests.rs` checks it for all
/// interleavings of two and three threads.
pub(super) struct Outbox<W> {
    writer: TryMutex<W>,
    /// There may be outputs that nobody has begun to carry out.
    dirty: AtomicBool,
    /// The driver carries out at the end of its turn, after the tasks that it has woken have run.
    gathers: AtomicBool,
}

#[cfg(not(all(test, loom)))]
std::thread_local! {
    /// The outbox that this thread is going to carry out, if any: see [`Outbox::gathered`]. Nothing is ever read through it.
    static GATHERS_HERE: Cell<*const ()> = const { Cell::new(ptr::null()) };
}
#[cfg(all(test, loom))]
loom::thread_local! {
    static GATHERS_HERE: Cell<*const ()> = Cell::new(ptr::null());
}

impl<W> Outbox<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { writer: TryMutex::new(writer), dirty: AtomicBool::new(false), gathers: AtomicBool::new(false) }
    }

    /// Waits for the writer and uses it. A thread that finds it taken meanwhile leaves its outputs to this one.
    pub(super) fn with_writer<R>(
        &self,
        outputs: &impl Outputs<Writer = W>,
        act: impl FnOnce(&mut W) -> R,
    ) -> R {
        let result = act(&mut self.writer.lock());
        fence(Ordering::SeqCst);
        self.carry_out(outputs);
        result
    }

    /// Has the outputs carried out: by the calling thread at once, unless another one is going to do that anyway. Then what many
    /// ask for goes out in one write.
    pub(super) fn flush(&self, outputs: &impl Outputs<Writer = W>) {
        self.mark();
        if !self.gathers.load(Ordering::Acquire) && GATHERS_HERE.with(Cell::get) != self.id() {
            self.carry_out(outputs);
        }
    }

    /// Carries the outputs out, also where they are gathered. Returns whether callers were woken.
    pub(super) fn flush_now(&self, outputs: &impl Outputs<Writer = W>) -> bool {
        self.mark();
        self.carry_out(outputs)
    }

    /// The driver carries out, and those whom it wakes are to run before it does so again, at the latest with
    /// [`Outbox::end_gathering`]. Returns whether there are any; if not, nothing is gathered.
    pub(super) fn begin_gathering(&self, outputs: &impl Outputs<Writer = W>) -> bool {
        self.gathers.store(true, Ordering::Release);
        let has_woken = self.flush_now(outputs);
        if !has_woken {
            self.end_gathering(outputs);
        }
        has_woken
    }

    pub(super) fn end_gathering(&self, outputs: &impl Outputs<Writer = W>) {
        if self.gathers.swap(false, Ordering::AcqRel) {
            fence(Ordering::SeqCst);
            self.carry_out(outputs);
        }
    }

    /// The driver has changed the machine in its turn. The outputs are carried out with its tick or, if that has been, with
    /// [`Outbox::end_gathering`], which it calls before it sleeps.
    pub(super) fn changed_in_turn(&self) {
        self.mark();
        self.gathers.store(true, Ordering::Release);
    }

    /// Does what may ask for many things on this thread, and carries them out after it.
    pub(super) fn gathered<R>(&self, outputs: &impl Outputs<Writer = W>, act: impl FnOnce() -> R) -> R {
        /// Also if `act` panics.
        struct Gathering<F: FnMut()>(F);
        impl<F: FnMut()> Drop for Gathering<F> {
            fn drop(&mut self) {
                (self.0)();
            }
        }
        let outer = GATHERS_HERE.with(|here| here.replace(self.id()));
        let _gathering = Gathering(|| {
            GATHERS_HERE.with(|here| here.set(outer));
            self.carry_out(outputs);
        });
        act()
    }

    fn id(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    fn mark(&self) {
        // Not a store, of which loom does not know that it cannot come between what another thread's `swap` reads and writes.
        self.dirty.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// If another thread holds the writer, it carries out for us too: it looks for the mark again after it has let go.
    fn carry_out<O: Outputs<Writer = W>>(&self, outputs: &O) -> bool {
        let mut has_woken = false;
        while self.dirty.load(Ordering::Acquire) {
            let Some(mut writer) = self.writer.try_lock() else { break };
            let mut rest = O::Rest::default();
            while self.dirty.swap(false, Ordering::AcqRel) {
                outputs.drain(&mut writer, &mut rest);
            }
            drop(writer);
            has_woken |= outputs.finish(rest);
            fence(Ordering::SeqCst);
        }
        has_woken
    }
}
