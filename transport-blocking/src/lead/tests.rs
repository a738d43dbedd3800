//! What outlives the loop.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

struct Loop(Arc<AtomicBool>);

impl EventLoop for Loop {
    fn turn(&mut self) -> bool {
        false
    }

    fn rest(&mut self) {}
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_waker_that_is_kept_does_not_keep_the_event_loop() {
    let is_gone = Arc::new(AtomicBool::new(false));
    let lead = Lead::new(Loop(Arc::clone(&is_gone)), || {});
    let mut kept = None;
    lead.wait(&mut |context| {
        kept = Some(context.waker().clone());
        Poll::Ready(())
    });

    drop(lead);

    assert!(is_gone.load(Ordering::Relaxed));
    kept.unwrap().wake();
}
