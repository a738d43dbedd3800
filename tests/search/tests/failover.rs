//! Failovers of one group by the shipped code: what the restart guard alone lets happen, and what
//! no order of steps does with `replicas=`.

use quorlock_search::{Failover, FailoverReport};

const PAIR: Failover = Failover {
    declared: 1,
    attempts: [1, 1],
    extensions: [1, 0],
    moves: [1, 1],
    changes: 1,
    horizon: 2,
    ahead: 30,
    early_quarantine: false,
    bound: usize::MAX,
};

#[track_caller]
fn safe(failover: Failover) {
    let FailoverReport { states, complete, holders, two_holders, .. } = failover.search();
    // Nothing would be safe about locks that nobody is granted.
    assert_eq!(holders, [true; 2], "{failover:?}, after {states} states");
    assert_eq!(two_holders, None, "{failover:?}, after {states} states");
    assert!(complete || states >= failover.bound, "{failover:?}");
}

#[test]
fn the_guard_alone_has_two_holders_in_a_split_brain() {
    let report = Failover { declared: 0, ..PAIR }.search();
    assert!(report.two_holders.is_some(), "{report:?}");
}

#[test]
fn a_replica_that_confirms_votes_leaves_one_holder() {
    safe(PAIR);
}

/// Then only the confirmation of each vote is left as a defence, so this test sees a fault in it.
#[test]
fn where_quarantines_begin_early_confirmed_votes_are_enough() {
    safe(Failover { early_quarantine: true, ..PAIR });
}

/// A scenario in which the clients may do more: each tries twice, moves twice and extends once.
const MORE: Failover = Failover { attempts: [2; 2], extensions: [1; 2], moves: [2; 2], ..PAIR };

#[test]
#[ignore = "takes minutes; PROOFS.md has the results"]
fn every_failover_up_to_the_third_tick_has_one_holder() {
    for early_quarantine in [false, true] {
        safe(Failover { early_quarantine, horizon: 3, ..PAIR });
    }
}

#[test]
#[ignore = "takes minutes; PROOFS.md has the results"]
fn more_attempts_extensions_and_moves_have_one_holder_up_to_a_bound() {
    safe(Failover { early_quarantine: true, bound: 2_000_000, ..MORE });
}
