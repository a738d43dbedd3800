use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Wake;

use super::*;

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn held() -> Slot {
    let slot = Slot::new(Subject::none());
    slot.set_valid_until(Instant::from_nanos(1));
    slot
}

fn poll(slot: &Slot, watcher: Waiter, waker: &Waker) -> Poll<LossCause> {
    slot.poll_lost(watcher, Instant::ORIGIN, &Context::from_waker(waker))
}

#[test]
fn a_loss_that_a_watcher_notices_first_keeps_its_cause() {
    let slot = held();
    let watcher = slot.new_watcher();
    let cx = Context::from_waker(Waker::noop());
    assert!(slot.poll_lost(watcher, Instant::ORIGIN, &cx).is_pending());
    let end = Instant::from_nanos(1);
    assert_eq!(slot.poll_lost(watcher, end, &cx), Poll::Ready(LossCause::Expired));

    slot.end(LossCause::Released, &mut Woken::default());
    assert_eq!(slot.loss(), Some(LossCause::Expired));
    assert_eq!(slot.valid_until(), Instant::ORIGIN);
}

#[test]
fn a_watcher_that_is_forgotten_leaves_no_waker_behind() {
    let slot = held();
    let stays = Arc::new(Flag::default());
    let waker = Waker::from(Arc::clone(&stays));
    let watcher = slot.new_watcher();
    assert!(poll(&slot, watcher, &waker).is_pending());
    for _ in 0..100 {
        // Each with another waker, as in a set of futures that is rebuilt for each turn of a
        // loop, and one whose waker stays.
        let other = Waker::from(Arc::new(Flag::default()));
        for waker in [&other, &waker] {
            let watcher = slot.new_watcher();
            assert!(poll(&slot, watcher, waker).is_pending());
            slot.forget(watcher);
        }
    }
    assert_eq!(lock(&slot.inner).others().waiting.len(), 1);

    let mut woken = Woken::default();
    slot.end(LossCause::Released, &mut woken);
    woken.wake();
    assert!(stays.0.load(Ordering::SeqCst));
    assert_eq!(poll(&slot, watcher, &waker), Poll::Ready(LossCause::Released));
}

#[test]
fn a_future_that_moves_to_another_task_is_woken_there() {
    let slot = held();
    let watcher = slot.new_watcher();
    let flags = [Arc::new(Flag::default()), Arc::new(Flag::default())];
    for flag in &flags {
        let waker = Waker::from(Arc::clone(flag));
        assert!(poll(&slot, watcher, &waker).is_pending());
    }
    let mut woken = Woken::default();
    slot.end(LossCause::Released, &mut woken);
    woken.wake();
    assert_eq!(flags.map(|flag| flag.0.load(Ordering::SeqCst)), [false, true]);
}
