//! In no interleaving does a driver sleep past a notification.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::task::Waker;

use loom::thread;

use super::{Demand, Mailbox};
use crate::endpoint::Address;
use crate::front::loom_tests::{Sleeper, explore};
use crate::front::sync::Woken;
use crate::protocol::MasterId;
use crate::time::Instant;

const fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// A thread of the front posts something to the driver.
fn tell(mailbox: &Mailbox, demand: Option<Demand>, deadline: Instant) {
    let mut woken = Woken::default();
    mailbox.post(&mut demand.into_iter().collect(), Some(deadline), false, &mut woken);
    woken.wake();
}

/// A driver that takes turns until `is_told` sees what it waits for; `told` posts the change on
/// another thread.
fn drive(told: fn(&Mailbox), is_told: fn(&Mailbox, Option<Instant>) -> bool) {
    let mailbox = Arc::new(Mailbox::default());
    mailbox.add_user();
    tell(&mailbox, None, at(20));
    let sleeper = Arc::new(Sleeper::default());
    let waker = Waker::from(Arc::clone(&sleeper));
    let teller = thread::spawn({
        let mailbox = Arc::clone(&mailbox);
        move || told(&mailbox)
    });
    loop {
        mailbox.register(&waker, at(0));
        let armed = mailbox.arm(at(0));
        if is_told(&mailbox, armed) {
            break;
        }
        sleeper.sleep();
    }
    teller.join().unwrap();
}

#[test]
fn an_earlier_deadline_wakes_the_driver_or_is_known_before_it_sleeps() {
    explore("a deadline beside a turn of the driver", None, || {
        drive(|mailbox| tell(mailbox, None, at(10)), |_, armed| armed == Some(at(10)));
    });
}

#[test]
fn a_demand_wakes_the_driver_or_is_found_before_it_sleeps() {
    explore("a demand beside a turn of the driver", None, || {
        let demand = |mailbox: &Mailbox| {
            let master = MasterId::all(1).next().unwrap();
            tell(
                mailbox,
                Some(Demand::Connect { master, generation: 0, address: Address::Unix("/s".into()) }),
                at(20),
            );
        };
        drive(demand, |mailbox, armed| armed == Some(at(0)) && mailbox.next_demand().is_some());
    });
}

#[test]
fn the_end_of_the_last_user_wakes_the_driver_or_is_known_before_it_sleeps() {
    explore("the last user beside a turn of the driver", None, || {
        drive(Mailbox::remove_user, |mailbox, _| !mailbox.has_users());
    });
}

#[test]
fn the_driver_wakes_for_the_earlier_of_two_deadlines() {
    explore("two deadlines, one after the other", None, || {
        let two = |mailbox: &Mailbox| {
            tell(mailbox, None, at(15));
            tell(mailbox, None, at(10));
        };
        drive(two, |_, armed| armed == Some(at(10)));
    });
}
