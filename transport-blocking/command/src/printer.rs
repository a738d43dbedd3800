//! The thread that writes to standard error.
//!
//! A write may block for as long as nobody reads: a full pipe, a terminal stopped with Ctrl-S, a
//! log collector that hangs. A lock must be given up in time all the same. So no thread that
//! decides anything writes. It puts lines into a bounded queue, which never blocks, and this thread
//! writes them. Lines that do not fit are counted, and their number is printed as soon as the
//! writer gets on.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// How many lines wait to be written. Smaller: a reader that pauses loses lines. Larger: more
/// memory while nobody reads.
const CAPACITY: usize = 256;

/// How long the end of the process waits for a write that blocks. Smaller: a slow reader loses the
/// last lines. Larger: the process stays for longer if nobody reads.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long the end of the process waits in all. On a busy machine it takes a while until the
/// writer runs, and then no reader is to blame. Smaller: lines are lost there. Larger: the process
/// stays for longer if a slow reader takes line after line.
const LONGEST: Duration = Duration::from_secs(2);

/// Removes the text of the terminal's current line.
const REMOVE: &str = "\r\x1b[K";

/// One line of a message.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// Returns the line that says how many lines before this one were not printed, in the form of
    /// this one.
    pub(crate) missing: fn(u64) -> String,
}

/// What the threads share.
#[derive(Debug)]
struct State {
    lines: VecDeque<Line>,
    /// Text that is shown once no line waits, in place of the one that is shown now.
    passing: Option<String>,
    /// Whether passing text is shown.
    is_shown: bool,
    /// Whether it has to be removed.
    hide: bool,
    /// Lines that did not fit since the last one that did, with the form of the last of them.
    missing: u64,
    form: Option<fn(u64) -> String>,
    writing_since: Option<Instant>,
}

impl State {
    fn is_idle(&self) -> bool {
        let State { lines, passing, hide, missing, writing_since, .. } = self;
        lines.is_empty() && passing.is_none() && !hide && *missing == 0 && writing_since.is_none()
    }

    /// Takes the text to write next.
    fn take(&mut self) -> Option<String> {
        let line = match self.lines.pop_front() {
            Some(line) => Some(line.text),
            // All lines that fitted were queued before those that did not.
            None => self.form.take().map(|form| form(std::mem::take(&mut self.missing))),
        };
        let hide = std::mem::take(&mut self.hide) || line.is_some();
        if hide && std::mem::take(&mut self.is_shown) {
            return Some(format!("{REMOVE}{}", line.unwrap_or_default()));
        }
        line.or_else(|| {
            let text = self.passing.take()?;
            self.is_shown = true;
            Some(format!("{REMOVE}{text}"))
        })
    }
}

/// A bounded queue of lines.
#[derive(Debug)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

impl Queue {
    const fn new() -> Self {
        let state = State {
            lines: VecDeque::new(),
            passing: None,
            is_shown: false,
            hide: false,
            missing: 0,
            form: None,
            writing_since: None,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, line: Line) {
        let mut state = self.lock();
        // Once a line is missing, later ones are missing too, until that has been printed: a line
        // must not come before the note about an earlier one.
        if state.missing > 0 || state.lines.len() >= CAPACITY {
            state.missing = state.missing.saturating_add(1);
            state.form = Some(line.missing);
        } else {
            state.lines.push_back(line);
        }
        self.changed.notify_all();
    }

    fn show(&self, text: String) {
        self.lock().passing = Some(text);
        self.changed.notify_all();
    }

    fn hide(&self) {
        let mut state = self.lock();
        state.passing = None;
        state.hide = state.is_shown;
        self.changed.notify_all();
    }

    /// Writes what is in the queue, forever.
    fn write_with(&self, mut write: impl FnMut(&str)) {
        let mut state = self.lock();
        loop {
            let Some(text) = state.take() else {
                state.writing_since = None;
                self.changed.notify_all();
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.writing_since = Some(Instant::now());
            // Who waits for the end waits for this write from now on.
            self.changed.notify_all();
            drop(state);
            write(&text);
            state = self.lock();
        }
    }

    /// Waits until everything has been written, but not longer than this for a write that blocks.
    /// Returns whether everything has.
    fn finish(&self, patience: Duration) -> bool {
        let began = Instant::now();
        let mut state = self.lock();
        while !state.is_idle() {
            let last = began + LONGEST;
            let until = state.writing_since.map_or(last, |since| last.min(since.max(began) + patience));
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// Standard error's.
static QUEUE: Queue = Queue::new();

/// Starts the thread when it is first needed. If the system has no thread left, nothing is
/// printed: writing here could block.
fn queue() -> &'static Queue {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let _ = thread::Builder::new().name("printer".to_owned()).spawn(|| {
            // Under `stty tostop`, a write from the background would stop the whole process.
            let mut mask = SigSet::empty();
            mask.add(Signal::SIGTTOU);
            let _ = mask.thread_block();
            QUEUE.write_with(write);
        });
    });
    &QUEUE
}

/// Prints `line`, without waiting for it.
pub(crate) fn say(line: Line) {
    queue().say(line);
}

/// Shows `text` in the terminal's current line, until the next text, [`hide`] or a line.
pub(crate) fn show(text: String) {
    queue().show(text);
}

/// Removes what [`show`] shows.
pub(crate) fn hide() {
    queue().hide();
}

/// Waits until everything has been printed, but not for long.
pub(crate) fn finish() {
    QUEUE.finish(PATIENCE);
}

/// One write for the whole line, so that lines of several processes do not mix. If the reader has
/// gone, errors are ignored.
fn write(line: &str) {
    let mut rest = line.as_bytes();
    let stderr = std::io::stderr();
    while !rest.is_empty() {
        match rustix::io::write(&stderr, rest) {
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            // Another program has made the terminal or pipe non-blocking for all that share it.
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], None);
            }
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::*;

    fn line(text: &str) -> Line {
        Line { text: text.to_owned(), missing: |number| format!("{number} missing") }
    }

    /// A queue whose writer waits for a permission before each line, and says what it wrote.
    fn queue() -> (Arc<Queue>, mpsc::Sender<()>, mpsc::Receiver<String>) {
        let queue = Arc::new(Queue::new());
        let (permit, permitted) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let writer = Arc::clone(&queue);
        thread::spawn(move || {
            writer.write_with(|text| {
                let _ = permitted.recv();
                let _ = tell.send(text.to_owned());
            });
        });
        (queue, permit, told)
    }

    #[test]
    fn lines_that_do_not_fit_are_counted_and_the_number_is_printed_behind_those_that_did() {
        let (queue, permit, told) = queue();
        queue.say(line("first"));
        while queue.lock().writing_since.is_none() {
            thread::yield_now();
        }
        (0..CAPACITY + 7).for_each(|number| queue.say(line(&number.to_string())));
        assert!(!queue.finish(Duration::from_millis(1)));
        (0..CAPACITY + 2).for_each(|_| permit.send(()).expect("the writer runs"));
        let all: Vec<_> = told.iter().take(CAPACITY + 2).collect();
        assert_eq!((all[0].as_str(), all[1].as_str()), ("first", "0"));
        assert_eq!(all[CAPACITY], (CAPACITY - 1).to_string());
        assert_eq!(all[CAPACITY + 1], "7 missing");
        queue.say(line("later"));
        permit.send(()).expect("the writer runs");
        assert_eq!(told.recv().as_deref(), Ok("later"));
        assert!(queue.finish(Duration::from_secs(20)));
    }

    #[test]
    fn a_writer_that_has_not_run_yet_is_waited_for() {
        let queue = Arc::new(Queue::new());
        queue.say(line("late"));
        let (tell, told) = mpsc::channel();
        let writer = Arc::clone(&queue);
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            writer.write_with(|text| {
                let _ = tell.send(text.to_owned());
            });
        });
        queue.finish(Duration::ZERO);
        assert!(queue.lock().lines.is_empty(), "the end came before the writer ran");
        assert_eq!(told.recv().as_deref(), Ok("late"));
    }

    #[test]
    fn passing_text_is_replaced_and_takes_no_place_in_the_queue() {
        let (queue, permit, told) = queue();
        queue.say(line("first"));
        while queue.lock().writing_since.is_none() {
            thread::yield_now();
        }
        (0..2 * CAPACITY).for_each(|number| queue.show(number.to_string()));
        queue.say(line("second"));
        (0..3).for_each(|_| permit.send(()).expect("the writer runs"));
        let all: Vec<_> = told.iter().take(3).collect();
        assert_eq!(all, ["first", "second", &format!("{REMOVE}{}", 2 * CAPACITY - 1)]);
        queue.say(line("third"));
        queue.show("a".to_owned());
        (0..2).for_each(|_| permit.send(()).expect("the writer runs"));
        let all: Vec<_> = told.iter().take(2).collect();
        assert_eq!(all, [format!("{REMOVE}third"), format!("{REMOVE}a")]);
        queue.hide();
        permit.send(()).expect("the writer runs");
        assert_eq!(told.recv().as_deref(), Ok(REMOVE));
        queue.hide();
        assert!(queue.finish(Duration::from_secs(20)), "nothing is left to remove");
    }
}
