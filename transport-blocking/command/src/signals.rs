//! The signals that reach `quorlock` and the messages of its threads, in one queue for the one
//! thread that decides.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use nix::sys::signal::{SigSet, Signal as MaskSignal};
use rustix::process::Signal;
use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGSYS, SIGTERM, SIGTRAP,
    SIGTSTP, SIGUSR1, SIGUSR2, SIGVTALRM, SIGWINCH, SIGXCPU, SIGXFSZ,
};

/// Signals that are passed on to the command, unless the process that started `quorlock` had them
/// ignored. With those of [`of_this_system`] they are all that would end or stop `quorlock`, except
/// for SIGKILL and SIGSTOP, which cannot be caught, for the faults SIGBUS, SIGFPE, SIGILL and
/// SIGSEGV, after which no code can go on, and for those below.
///
/// The command may end by one that it does not expect, as it would without `quorlock`.
const PASSED_ON: [i32; 16] = [
    SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGSYS, SIGTERM, SIGTRAP, SIGTSTP, SIGUSR1,
    SIGUSR2, SIGVTALRM, SIGWINCH, SIGXCPU,
];

/// Signals that are caught and mean nothing to the command. SIGXFSZ: `quorlock` itself wrote a
/// message to a file that is as large as a limit allows, and now the write fails.
const DROPPED: [i32; 1] = [SIGXFSZ];

/// Signals of this system that are passed on, too.
#[cfg(target_os = "linux")]
fn of_this_system() -> impl Iterator<Item = i32> {
    use nix::libc;

    let few = [libc::SIGPWR, libc::SIGSTKFLT];
    few.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX())
}

/// Signals of this system that are passed on, too.
#[cfg(not(target_os = "linux"))]
fn of_this_system() -> impl Iterator<Item = i32> {
    std::iter::empty()
}

/// Something that the deciding thread must look at.
#[derive(Debug)]
pub(crate) enum Happening<M> {
    /// This signal was received.
    Signal(i32),
    /// Another thread has sent a message.
    Message(M),
}

/// A sender with which other threads put messages into the queue.
#[derive(Debug)]
pub(crate) struct Notifier<M>(Sender<Happening<M>>);

impl<M> Clone for Notifier<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M> Notifier<M> {
    /// Puts `message` into the queue. Once the queue has been dropped, the message is dropped.
    pub(crate) fn send(&self, message: M) {
        let _ = self.0.send(Happening::Message(message));
    }
}

/// The queue. After [`Signals::install`], signals are put into it.
#[derive(Debug)]
pub(crate) struct Signals<M> {
    sender: Sender<Happening<M>>,
    receiver: Receiver<Happening<M>>,
    /// The last signal that asked to end, or 0. The handler itself sets it, so that it is known
    /// before the signal has gone through the thread and the queue.
    asked_to_end: Arc<AtomicUsize>,
    inherited: SigSet,
    ours: SigSet,
}

impl<M: Send + 'static> Signals<M> {
    /// Catches the signals. Call it first, before there are other threads, so that no signal
    /// ends `quorlock` while it holds a lock and every thread has the same mask.
    pub(crate) fn install() -> io::Result<Self> {
        let inherited = SigSet::thread_get_mask()?;
        let mut ours = inherited;
        // The command has the terminal while it runs. Taking it back, or writing to it under `stty
        // tostop`, is not allowed from the background and stops the process that tries, unless this
        // signal is blocked.
        ours.add(MaskSignal::SIGTTOU);
        // We may have been started with this signal blocked, and then the end of the command would
        // never be seen.
        ours.remove(MaskSignal::SIGCHLD);
        ours.thread_set_mask()?;

        let ignored = ignored_signals();
        let all = PASSED_ON.into_iter().chain(of_this_system()).chain(DROPPED);
        let caught: Vec<_> = all.filter(|signal| !ignored.contains(signal)).collect();
        let asked_to_end = Arc::default();
        for signal in caught.iter().filter(|signal| asks_to_end(**signal)) {
            let value = usize::try_from(*signal).unwrap_or_default();
            signal_hook::flag::register_usize(*signal, Arc::clone(&asked_to_end), value)?;
        }
        let caught = caught.into_iter().chain([SIGCHLD, SIGCONT]);
        let mut signals = signal_hook::iterator::Signals::new(caught)?;
        let (sender, receiver) = channel();
        let to_queue = sender.clone();
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever().filter(|signal| !DROPPED.contains(signal)) {
                if to_queue.send(Happening::Signal(signal)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { sender, receiver, asked_to_end, inherited, ours })
    }

    /// The last signal that asked to end, even if it is still on its way to [`Signals::next`].
    pub(crate) fn asked_to_end(&self) -> Option<i32> {
        i32::try_from(self.asked_to_end.load(Ordering::SeqCst)).ok().filter(|signal| *signal != 0)
    }

    /// Returns a sender for other threads.
    pub(crate) fn notifier(&self) -> Notifier<M> {
        Notifier(self.sender.clone())
    }

    /// Waits for the next signal or message; `None` at `deadline`.
    pub(crate) fn next(&self, deadline: Option<Instant>) -> Option<Happening<M>> {
        let Some(deadline) = deadline else { return self.receiver.recv().ok() };
        // We keep a sender ourselves, so `None` never means the end of the queue.
        self.receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
    }

    /// Does `work` with the inherited signal mask, which a child must inherit.
    pub(crate) fn with_inherited_mask<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        self.inherited.thread_set_mask()?;
        let done = work();
        self.ours.thread_set_mask()?;
        Ok(done)
    }
}

/// Whether `signal` asks `quorlock` to end while there is no command to pass it on to. Those that
/// programs give a meaning of their own do not.
pub(crate) fn asks_to_end(signal: i32) -> bool {
    !matches!(signal, SIGCHLD | SIGCONT | SIGTSTP | SIGUSR1 | SIGUSR2 | SIGWINCH)
        && !DROPPED.contains(&signal)
}

/// The signal with this number, to be sent.
#[cfg(target_os = "linux")]
pub(crate) fn numbered(number: i32) -> Option<Signal> {
    rustix_libc_wrappers::process::SignalExt::from_raw(number)
}

/// The signal with this number, to be sent.
#[cfg(not(target_os = "linux"))]
pub(crate) fn numbered(number: i32) -> Option<Signal> {
    Signal::from_named_raw(number)
}

/// The name of `signal`, or its number.
pub(crate) fn name(signal: i32) -> String {
    signal_hook::low_level::signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}

/// The signals that the process that started us had ignored, as `nohup` does with SIGHUP. Catching
/// one and passing it on would undo that. Only Linux reports them; elsewhere the list is empty.
fn ignored_signals() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored_in(&status)
}

fn ignored_in(status: &str) -> Vec<i32> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (1..=64)
        .filter(|signal| mask.checked_shr(signal - 1).is_some_and(|bits| bits & 1 == 1))
        .map_while(|signal| i32::try_from(signal).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read() {
        assert_eq!(ignored_in("Name:\tx\nSigIgn:\t8000000000001001\n"), [1, 13, 64]);
        assert_eq!(ignored_in("SigIgn:\tnonsense"), [0; 0]);
        assert_eq!(ignored_in(""), [0; 0]);
    }

    #[test]
    fn signals_have_names() {
        assert_eq!(name(SIGTERM), "SIGTERM");
        assert_eq!(name(40), "signal 40");
    }
}
