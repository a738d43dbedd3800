//! One try by a fresh process: "held by another" is never reported as "too few masters answered".

use quorlock_tests::one_try::{Busy, Case};

use crate::binary;

/// The number of runs for each case. The example `one_try` makes any number.
const RUNS: usize = 15;

#[test]
fn one_try_against_a_holder_or_a_split_is_refused_as_held_by_another() {
    let _busy = Busy::start();
    for case in Case::ALL {
        let codes = case.run(binary::quorlock(), RUNS);
        assert_eq!(codes, [(Some(1), RUNS)].into(), "{}", case.name);
    }
}
