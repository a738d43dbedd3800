//! Every event of a slot reaches its watcher, in every interleaving.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use loom::thread;

use super::Slot;
use crate::front::loom_tests::{Sleeper, explore};
use crate::front::observe::Subject;
use crate::front::sync::Woken;
use crate::protocol::LossCause;
use crate::time::Instant;

#[test]
fn the_loss_cause_of_a_slot_reaches_its_watcher_and_does_not_change() {
    explore("a slot between its watcher, the machine and its holder", None, || {
        let slot = Arc::new(Slot::new(Subject::none()));
        slot.set_valid_until(Instant::ORIGIN + std::time::Duration::from_secs(1));
        let threads = [LossCause::Released, LossCause::NotHeld].map(|cause| {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                let mut woken = Woken::default();
                slot.end(cause, &mut woken);
                woken.wake();
            })
        });
        let sleeper = Arc::new(Sleeper::default());
        let watcher = slot.new_watcher();
        let cause = sleeper.sleep_until(|cx| slot.poll_lost(watcher, Instant::ORIGIN, cx));
        assert_eq!(slot.valid_until(), Instant::ORIGIN, "a lock that is lost is not valid");
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(slot.loss(), Some(cause), "what ended it first remains the cause");
    });
}
