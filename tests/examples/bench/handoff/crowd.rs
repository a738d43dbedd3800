//! A thousand tasks of one thread that wait for one lock: how much memory they take, and in which
//! order they are served.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use quorlock_tests::Random;
use smol::{LocalExecutor, Task};

use super::way::Opened;
use crate::usage::resident;

const WAITERS: usize = 1_000;
const CANCELLED: usize = 500;
const TTL: Duration = Duration::from_secs(10);
/// After this time a waiter gives up.
const WITHIN: Duration = Duration::from_secs(5);
/// After this time all waiters have requested the lock, and those that poll have polled more than
/// once.
const SETTLED: Duration = Duration::from_millis(400);

/// The measurements of a crowd.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Crowd {
    /// Bytes for each waiter, including its task, in the process's resident set; 0 if the system
    /// does not report it.
    pub(crate) bytes: usize,
    pub(crate) all: Served,
    /// The waiters that were served after half of them had been cancelled.
    pub(crate) rest: Served,
}

/// How many waiters got the lock, whether in order, and how long that took.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Served {
    pub(crate) count: usize,
    pub(crate) in_order: bool,
    pub(crate) millis: usize,
}

/// Runs two crowds, one after the other, with futures that are polled by this thread. The process
/// must do nothing else, so that all growth of its memory is due to them.
pub(crate) fn both(opened: &Opened) -> Crowd {
    let (bytes, all) = wait(opened, "everybody's", 0);
    let (_, rest) = wait(opened, "that of the rest", CANCELLED);
    Crowd { bytes, all, rest }
}

fn wait(opened: &Opened, resource: &str, cancelled: usize) -> (usize, Served) {
    let asked = Cell::new(0);
    let served = RefCell::new(Vec::new());
    let executor = LocalExecutor::new();
    let waiter = || {
        let (asked, served) = (&asked, &served);
        executor.spawn(async move {
            // The request begins with its first poll. On one thread no other task runs between this
            // line and that poll.
            let number = asked.replace(asked.get() + 1);
            if let Some(held) = opened.seek(resource, TTL, WITHIN).await {
                served.borrow_mut().push(number);
                opened.give_back(held).await;
            }
        })
    };
    let story = async {
        let held = opened.seek(resource, TTL, WITHIN).await.expect("no other client wants it");
        let before = resident();
        let mut tasks: Vec<Task<()>> = (0..WAITERS).map(|_| waiter()).collect();
        opened.transport().sleep(SETTLED).await;
        let bytes = resident().saturating_sub(before) / WAITERS;
        let mut random = Random::new(7);
        for _ in 0..cancelled {
            let task = tasks.swap_remove(random.below(tasks.len()));
            task.cancel().await;
        }
        let start = Instant::now();
        opened.give_back(held).await;
        for task in tasks {
            task.await;
        }
        (bytes, start.elapsed())
    };
    let (bytes, took) = opened.transport().block_on(executor.run(story));
    let served = served.borrow();
    let millis = took.as_millis().try_into().expect("a short time");
    (bytes, Served { count: served.len(), in_order: served.is_sorted(), millis })
}

impl fmt::Display for Crowd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, all, rest } = self;
        write!(f, "{bytes} {all} {rest}")
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, in_order, millis } = self;
        write!(f, "{count} {in_order} {millis}")
    }
}

impl FromStr for Crowd {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| word.parse().map_err(|_| format!("no number: {word}"));
        let served = |words: [&str; 3]| -> Result<Served, String> {
            let [count, in_order, millis] = words;
            Ok(Served { count: number(count)?, in_order: in_order == "true", millis: number(millis)? })
        };
        let &[bytes, a, b, c, d, e, f] = words.as_slice() else { return Err(format!("no crowd: {line}")) };
        Ok(Self { bytes: number(bytes)?, all: served([a, b, c])?, rest: served([d, e, f])? })
    }
}
