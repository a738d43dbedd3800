//! A worker: it repeatedly takes the lock, counts the store up and releases the lock.

use std::thread;
use std::time::{Duration, Instant};

use quorlock_blocking::{FencingToken, Guard, Locker};

use super::event::Event;
use super::stage::Stage;
use super::{LONGEST_PAUSE, PAUSE, RESOURCE};

/// How long a worker works under the lock: the values are used in turn.
const WORK: [Duration; 4] = [
    Duration::from_millis(600),
    Duration::from_millis(850),
    Duration::from_millis(500),
    Duration::from_millis(700),
];
/// How long a worker does something else afterwards.
const REST: Duration = Duration::from_millis(1_300);
/// How often a paused worker checks whether to continue.
const LOOK: Duration = Duration::from_millis(20);

/// Works until the end.
pub(super) fn work(stage: &Stage, worker: usize, locker: &Locker) {
    // The workers do not start at the same time.
    thread::sleep(REST / 4 * u32::try_from(worker).unwrap_or(0));
    for turn in worker.. {
        if stage.scene().is_closing {
            return;
        }
        stage.tell(Event::Waits { worker });
        let begun = Instant::now();
        let granted = locker.lock(RESOURCE).fenced().timeout(None::<Duration>).wait();
        if stage.scene().is_closing {
            return;
        }
        match granted.map(|guard| (guard.fencing_token(), guard)) {
            Ok((Some(fence), guard)) => {
                let span = WORK.get(turn % WORK.len()).copied().unwrap_or_default();
                hold(stage, worker, guard, fence, begun.elapsed(), span);
            }
            Ok((None, _)) | Err(_) => stage.tell(Event::Fails { worker }),
        }
        thread::sleep(REST);
    }
}

fn hold(stage: &Stage, worker: usize, guard: Guard, fence: FencingToken, waited: Duration, work: Duration) {
    let stops = stage.granted(worker, &guard, fence, waited);
    let read = stage.scene().store.value;
    thread::sleep(work / 2);
    if stops {
        stand_still(stage, worker, &guard, fence);
    } else {
        thread::sleep(work / 2);
    }
    // The worker checked its guard before it paused. It does not check again here, because a real
    // pause can always happen after the last check.
    stage.write(worker, fence, read);
    if guard.is_valid() {
        stage.tell(Event::GivesBack { worker });
    }
    // After a loss there is nothing left to release; what matters is that the store refused the
    // write.
    let _ = guard.release().wait();
}

/// Does what a paused process does: nothing renews its lock, and it reads no clock.
fn stand_still(stage: &Stage, worker: usize, guard: &Guard, fence: FencingToken) {
    stage.tell(Event::Pauses { worker });
    let begun = Instant::now();
    // The end of the lock is shown to spectators. A paused worker would not notice it.
    let _ = guard.lost().wait();
    stage.tell(Event::RunsOut { worker });
    loop {
        thread::sleep(LOOK);
        let is_overtaken = stage.scene().store.largest.is_some_and(|largest| largest > fence);
        if begun.elapsed() >= PAUSE && is_overtaken || begun.elapsed() >= LONGEST_PAUSE {
            break;
        }
    }
    stage.tell(Event::GoesOn { worker });
}
