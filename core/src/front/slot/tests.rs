use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Wake;

use super::*;
use crate::protocol::LockId;

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
fn a_loss_that_a_watcher_notices_first_keeps_its_cause_and_is_told_to_others() {
    let slot = held();
    let (first, second) = (slot.new_watcher(), slot.new_watcher());
    let flag = Arc::new(Flag::default());
    assert!(poll(&slot, second, &Waker::from(Arc::clone(&flag))).is_pending());
    let cx = Context::from_waker(Waker::noop());
    assert_eq!(slot.poll_lost(first, Instant::from_nanos(1), &cx), Poll::Ready(LossCause::Expired));
    assert!(flag.0.load(Ordering::SeqCst));

    slot.end(LossCause::Released, &mut Woken::default());
    assert_eq!(poll(&slot, second, Waker::noop()), Poll::Ready(LossCause::Expired));
    assert_eq!((slot.loss(), slot.valid_until()), (Some(LossCause::Expired), Instant::ORIGIN));
}

#[test]
fn an_extension_that_comes_after_the_loss_is_an_error() {
    let slot = held();
    let (extension, lock) = (ExtensionId(1), LockId { index: 0, generation: 0 });
    slot.expect_extension(extension);
    slot.end(LossCause::Expired, &mut Woken::default());
    let extended = Event::Extended { lock, extension, result: Ok(Instant::from_nanos(9)) };
    slot.deliver(extended, &mut Woken::default());
    assert_eq!(
        slot.poll_extended(extension, &Context::from_waker(Waker::noop())),
        Poll::Ready(Err(ExtendError::Lost(LossCause::Expired)))
    );
    assert_eq!(slot.valid_until(), Instant::ORIGIN);
}

#[test]
fn an_extension_that_is_forgotten_does_not_concern_the_others() {
    let (slot, lock) = (held(), LockId { index: 0, generation: 0 });
    let extensions = [1, 2, 3].map(ExtensionId);
    extensions.iter().for_each(|extension| slot.expect_extension(*extension));
    slot.forget_extension(extensions[1]);
    let result = Ok(Instant::from_nanos(9));
    for extension in extensions {
        let extended = Event::Extended { lock, extension, result: result.clone() };
        slot.deliver(extended, &mut Woken::default());
    }
    let cx = Context::from_waker(Waker::noop());
    let polled = extensions.map(|extension| slot.poll_extended(extension, &cx));
    assert_eq!(polled, [Poll::Ready(result.clone()), Poll::Pending, Poll::Ready(result)]);
    assert!(super::lock(&slot.inner).others().extended.is_empty());
}

#[test]
fn a_grant_that_is_put_back_is_there_for_the_next_caller_unless_another_outcome_is() {
    let lock = LockId { index: 0, generation: 0 };
    let refused = Event::NotAcquired { lock, error: AcquireError::DriverEnded };
    for (came, is_granted) in [(None, true), (Some(refused), false)] {
        let (slot, flag) = (held(), Arc::new(Flag::default()));
        came.into_iter().for_each(|event| slot.deliver(event, &mut Woken::default()));
        let (first, second) = (slot.new_watcher(), slot.new_watcher());
        let waits = poll(&slot, first, &Waker::from(Arc::clone(&flag)));
        assert!(waits.is_pending());
        let mut woken = Woken::default();
        slot.put_grant_back(&mut woken);
        woken.wake();
        assert!(flag.0.load(Ordering::SeqCst));
        let cx = Context::from_waker(Waker::noop());
        assert_eq!(slot.poll_granted(second, &cx), Poll::Ready(is_granted));
    }
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
