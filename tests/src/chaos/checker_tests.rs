//! Hand-written histories: good ones, and one for each way in which they can be bad.

use super::{Rule, check};

/// The broken rules of a history that has milliseconds instead of nanoseconds at the beginning of
/// each line.
fn rules(history: &str) -> Vec<Rule> {
    let events: Vec<_> = history
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let (at, rest) = line.split_once(' ').unwrap();
            format!("{at}000000 {rest}").parse().unwrap()
        })
        .collect();
    check(&events).iter().map(|violation| violation.rule).collect()
}

#[test]
fn one_holder_after_the_other_is_good() {
    let history = "
        1 seeks 1.1#1 a
        2 seeks 2.1#1 a
        3 granted 1.1#1 7 1000 renewed
        4 valid 1.1#1
        5 accepted 1.1#1 a 7
        6 valid 1.1#1
        7 ended 1.1#1 released
        8 granted 2.1#1 9 1000 fixed
        9 valid 2.1#1
        10 accepted 2.1#1 a 9
        11 rejected 1.1#1 a 7
        12 ended 2.1#1 lost";
    assert_eq!(rules(history), []);
}

#[test]
fn each_resource_is_checked_by_itself() {
    let history = "
        1 seeks 1.1#1 a
        2 granted 1.1#1 7 1000 renewed
        3 valid 1.1#1
        4 seeks 2.1#1 b
        5 granted 2.1#1 7 1000 renewed
        6 valid 2.1#1
        7 accepted 1.1#1 a 7
        8 accepted 2.1#1 b 7
        9 valid 2.1#1
        9 valid 1.1#1";
    assert_eq!(rules(history), []);
}

#[test]
fn one_token_for_two_grants_is_bad() {
    let history = "
        1 seeks 1.1#1 a
        2 granted 1.1#1 7 1000 renewed
        3 ended 1.1#1 released
        4 seeks 1.1#2 a
        5 granted 1.1#2 7 1000 renewed";
    assert_eq!(rules(history), [Rule::TokenTwice]);
}

#[test]
fn a_smaller_token_is_bad_unless_the_attempts_overlap() {
    let history = "
        1 seeks 1.1#1 a
        2 granted 1.1#1 7 1000 renewed
        3 seeks 2.1#1 a
        4 granted 2.1#1 6 1000 renewed";
    assert_eq!(rules(history), [Rule::TokenOrder]);
    let overlapping = "
        1 seeks 1.1#1 a
        2 seeks 2.1#1 a
        3 granted 1.1#1 7 1000 renewed
        4 granted 2.1#1 6 1000 renewed";
    assert_eq!(rules(overlapping), []);
}

#[test]
fn a_token_is_compared_with_all_earlier_ones() {
    let history = "
        1 seeks 1.1#1 a
        2 granted 1.1#1 90 1000 renewed
        3 seeks 2.1#1 a
        4 granted 2.1#1 91 1000 renewed
        5 seeks 3.1#1 a
        6 granted 3.1#1 89 1000 renewed";
    assert_eq!(rules(history), [Rule::TokenOrder]);
}

#[test]
fn two_holders_at_one_instant_are_bad() {
    let history = "
        1 seeks 1.1#1 a
        2 seeks 2.1#1 a
        3 granted 1.1#1 7 1000 renewed
        4 granted 2.1#1 8 1000 renewed
        5 valid 2.1#1
        6 valid 1.1#1";
    assert_eq!(rules(history), [Rule::TwoHolders]);
}

#[test]
fn a_long_holder_overlaps_with_one_behind_a_shorter_one_too() {
    let history = "
        1 seeks 1.1#1 a
        2 granted 1.1#1 1 1000 renewed
        3 seeks 2.1#1 a
        4 granted 2.1#1 2 1000 renewed
        5 valid 2.1#1
        6 seeks 3.1#1 a
        7 granted 3.1#1 3 1000 renewed
        8 valid 3.1#1
        9 valid 1.1#1";
    assert_eq!(rules(history), [Rule::TwoHolders, Rule::TwoHolders]);
}

#[test]
fn a_holder_that_does_not_report_itself_valid_does_not_count() {
    // The second client was granted the lock while the first was stopped, and the first notices
    // that.
    let history = "
        1 seeks 1.1#1 a
        2 granted 1.1#1 7 500 renewed
        3 valid 1.1#1
        4 paused 1.1
        600 seeks 2.1#1 a
        601 granted 2.1#1 8 500 renewed
        602 valid 2.1#1
        610 continued 1.1
        611 ended 1.1#1 lost
        612 valid 2.1#1";
    assert_eq!(rules(history), []);
}

#[test]
fn validity_after_a_pause_of_a_ttl_is_bad() {
    let story = |continued: u32, valid: u32, ttl: u32| {
        rules(&format!(
            "
            1 seeks 1.1#1 a
            2 granted 1.1#1 7 {ttl} renewed
            3 valid 1.1#1
            10 paused 1.1
            {continued} continued 1.1
            {valid} valid 1.1#1"
        ))
    };
    assert_eq!(story(510, 511, 500), [Rule::ValidTooLong]);
    assert_eq!(story(509, 511, 500), []);
    // The check was before the pause and the record after it: the clock was read before the pause.
    assert_eq!(story(510, 9, 500), []);
}

#[test]
fn a_lock_that_is_not_renewed_ends_with_its_ttl() {
    let history = "
        1 seeks 1.1#1 a
        2 granted 1.1#1 - 500 fixed
        502 valid 1.1#1
        503 valid 1.1#1";
    assert_eq!(rules(history), [Rule::ValidTooLong]);
}

#[test]
fn a_lock_that_was_handed_over_is_held_again_from_its_resumption_on() {
    let story = |token: u32, granted: u32| {
        rules(&format!(
            "
            1 seeks 1.1#1 a
            2 granted 1.1#1 7 500 fixed
            3 valid 1.1#1
            10 resumed 1.1#1 {token}
            505 valid 1.1#1
            6 seeks 2.1#1 a
            {granted} granted 2.1#1 8 500 fixed
            {granted} valid 2.1#1
            506 ended 1.1#1 released"
        ))
    };
    assert_eq!(story(7, 506), []);
    assert_eq!(story(7, 8), []);
    assert_eq!(story(7, 11), [Rule::TwoHolders]);
    assert_eq!(story(6, 506), [Rule::TokenTwice]);
}

#[test]
fn a_store_that_takes_a_smaller_token_is_bad() {
    let history = "
        1 seeks 1.1#1 a
        2 granted 1.1#1 7 500 fixed
        3 seeks 2.1#1 a
        4 granted 2.1#1 8 500 fixed
        5 accepted 2.1#1 a 8
        6 accepted 1.1#1 a 7
        7 rejected 1.1#1 a 7";
    assert_eq!(rules(history), [Rule::StoreWentBack]);
}

#[test]
fn a_late_write_before_the_first_of_the_next_holder_is_good() {
    let history = "
        1 seeks 1.1#1 a
        2 granted 1.1#1 7 500 fixed
        600 seeks 2.1#1 a
        601 granted 2.1#1 8 500 fixed
        602 accepted 1.1#1 a 7
        603 accepted 2.1#1 a 8
        604 rejected 1.1#1 a 7";
    assert_eq!(rules(history), []);
}

#[test]
fn a_refused_write_of_a_valid_holder_and_a_refusal_without_a_cause_are_bad() {
    let history = "
        1 seeks 1.1#1 a
        1 seeks 2.1#1 a
        2 granted 2.1#1 8 500 fixed
        3 accepted 2.1#1 a 8
        4 granted 1.1#1 7 500 fixed
        5 rejected 1.1#1 a 7
        6 valid 1.1#1";
    assert_eq!(rules(history), [Rule::HolderRefused]);
    let groundless = "
        1 seeks 1.1#1 a
        2 granted 1.1#1 7 500 fixed
        3 rejected 1.1#1 a 7";
    assert_eq!(rules(groundless), [Rule::Unexplained]);
}

#[test]
fn a_lock_that_was_never_granted_is_unexplained() {
    assert_eq!(rules("1 granted 1.1#1 7 500 fixed"), [Rule::Unexplained]);
    assert_eq!(rules("1 valid 1.1#1"), [Rule::Unexplained]);
    assert_eq!(rules("1 resumed 1.1#1 7"), [Rule::Unexplained]);
    assert_eq!(rules("1 accepted 1.1#1 a 7"), [Rule::Unexplained]);
    let other = "
        1 seeks 1.1#1 a
        2 granted 1.1#1 7 500 fixed
        3 accepted 1.1#1 a 9";
    assert_eq!(rules(other), [Rule::Unexplained]);
}

#[test]
fn readers_hold_a_resource_together_and_no_writer_beside_them() {
    let story = |second: &str, token: u32| {
        rules(&format!(
            "
            1 seeks 1.1#1 a=read
            2 granted 1.1#1 7 1000 renewed
            3 seeks 2.1#1 {second}
            4 granted 2.1#1 {token} 1000 renewed
            5 valid 2.1#1
            6 valid 1.1#1"
        ))
    };
    assert_eq!(story("a=read", 7), []);
    assert_eq!(story("a=read,b", 8), []);
    assert_eq!(story("a", 8), [Rule::TwoHolders]);
    assert_eq!(story("b,a", 8), [Rule::TwoHolders]);
    assert_eq!(story("b,c", 7), []);
}

#[test]
fn a_reader_has_a_token_between_those_of_the_writers_around_it() {
    let story = |reader: u32, writer: u32| {
        rules(&format!(
            "
            1 seeks 1.1#1 a
            2 granted 1.1#1 7 1000 renewed
            3 ended 1.1#1 released
            4 seeks 2.1#1 a=read
            5 granted 2.1#1 {reader} 1000 renewed
            6 ended 2.1#1 released
            7 seeks 3.1#1 a
            8 granted 3.1#1 {writer} 1000 renewed"
        ))
    };
    assert_eq!(story(7, 8), []);
    assert_eq!(story(6, 8), [Rule::TokenOrder]);
    assert_eq!(story(8, 8), [Rule::TokenOrder]);
}

#[test]
fn a_writer_that_was_downgraded_is_a_reader_from_then_on() {
    let story = |granted: u32, second: &str| {
        rules(&format!(
            "
            1 seeks 1.1#1 a
            2 granted 1.1#1 7 1000 renewed
            9 valid 1.1#1
            10 downgraded 1.1#1
            20 valid 1.1#1
            3 seeks 2.1#1 {second}
            {granted} granted 2.1#1 8 1000 renewed
            19 valid 2.1#1"
        ))
    };
    assert_eq!(story(11, "a=read"), []);
    assert_eq!(story(8, "a=read"), [Rule::TwoHolders]);
    assert_eq!(story(11, "a"), [Rule::TwoHolders]);
}

#[test]
fn each_permit_has_one_holder_and_its_own_tokens() {
    let story = |first: u32, second: u32, token: u32| {
        rules(&format!(
            "
            1 seeks 1.1#1 a=2
            2 granted 1.1#1 7 1000 renewed {first}
            3 seeks 2.1#1 a=2
            4 granted 2.1#1 {token} 1000 renewed {second}
            5 valid 2.1#1
            6 valid 1.1#1
            7 accepted 1.1#1 a.{first} 7"
        ))
    };
    assert_eq!(story(0, 1, 3), []);
    assert_eq!(story(1, 1, 8), [Rule::TwoHolders]);
    assert_eq!(story(0, 2, 3), [Rule::NoSuchPermit]);
    let lock_of_the_name = "
        1 seeks 1.1#1 a=1
        2 granted 1.1#1 7 1000 renewed 0
        3 seeks 2.1#1 a
        4 granted 2.1#1 7 1000 renewed
        5 valid 2.1#1
        6 valid 1.1#1";
    assert_eq!(rules(lock_of_the_name), []);
}

#[test]
fn a_batch_may_write_only_what_it_locked_for_writing() {
    let story = |resource: &str| {
        rules(&format!(
            "
            1 seeks 1.1#1 a,b,c=read
            2 granted 1.1#1 7 1000 renewed
            3 accepted 1.1#1 {resource} 7"
        ))
    };
    assert_eq!((story("a"), story("b"), story("c")), (vec![], vec![], vec![Rule::Unexplained]));
}

#[test]
fn a_lock_that_is_handed_over_is_held_by_one_client_at_a_time() {
    let history = "
        1 seeks 1.1#1 a
        2 granted 1.1#1 7 1000 fixed
        3 valid 1.1#1
        4 seeks 2.1#1 a
        5 received 2.1#1 1.1#1 7 1000 fixed
        6 ended 1.1#1 handed over
        7 valid 2.1#1
        8 seeks 3.1#1 a
        9 received 3.1#1 2.1#1 7 1000 fixed
        10 valid 3.1#1";
    assert_eq!(rules(history), []);
    // The giver's guard is still valid when the receiver has its own.
    let both = history.replace("6 ended 1.1#1 handed over", "6 valid 1.1#1");
    assert_eq!(rules(&both), [Rule::TwoHolders]);
    // Another client holds the lock when it is resumed.
    let other = "
        1 seeks 1.1#1 a
        2 granted 1.1#1 7 1000 fixed
        3 seeks 3.1#1 a
        4 granted 3.1#1 8 1000 fixed
        5 seeks 2.1#1 a
        6 received 2.1#1 1.1#1 7 1000 fixed
        7 valid 2.1#1
        8 valid 3.1#1";
    assert_eq!(rules(other), [Rule::TokenOrder, Rule::TwoHolders]);
}

#[test]
fn a_lock_is_received_with_its_token_from_a_holder() {
    let history = "
        1 seeks 1.1#1 a
        2 granted 1.1#1 7 1000 fixed
        3 seeks 2.1#1 a
        4 received 2.1#1 1.1#1 8 1000 fixed";
    assert_eq!(rules(history), [Rule::TokenTwice]);
    let from_nobody = history.replace("granted 1.1#1 7 1000 fixed", "refused 1.1#1 late");
    assert_eq!(rules(&from_nobody), [Rule::Unexplained]);
}

#[test]
fn an_extension_lets_a_lock_without_renewal_last_longer() {
    let history = "
        1 seeks 1.1#1 a
        2 granted 1.1#1 7 1000 fixed
        900 extended 1.1#1 500
        1400 valid 1.1#1";
    assert_eq!(rules(history), []);
    assert_eq!(rules(&history.replace("1400 valid", "1401 valid")), [Rule::ValidTooLong]);
    assert_eq!(rules("1 seeks 1.1#1 a\n2 extended 1.1#1 500"), [Rule::Unexplained]);
}
