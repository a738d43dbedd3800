//! Faults of other Redlock clients, and the scenarios which show that Quorlock does not have them.
//!
//! The scripted tests of the core show some of them without a server, by the same names or by those
//! named here.

/// A fault of another client, and the scenarios that show its absence.
const FAULTS: [(&str, &[&str]); 16] = [
    (
        "waits for every master",
        &[
            "a_hung_master_costs_nothing",
            "a_master_that_hangs_from_the_start_costs_nothing",
            "a_hung_master_that_was_given_up_costs_nothing",
        ],
    ),
    (
        "one dead master fails the lock",
        &[
            "a_killed_master_costs_nothing",
            "one_wrong_password_of_three_costs_nothing",
            "a_minority_that_talks_garbage_costs_nothing",
        ],
    ),
    (
        "split votes are never settled",
        &[
            "split_votes_of_two_and_four_masters_end_on_both_sides_at_once",
            "two_refusals_and_a_hung_master_are_decided_at_once",
        ],
    ),
    // In the core: `validity_is_checked_again_when_the_grant_is_taken`,
    // `a_quorum_after_the_end_of_validity_is_not_a_grant_and_is_undone`.
    (
        "a lock is returned after its validity",
        &[
            "a_stop_of_all_masters_past_the_ttl_grants_nothing_for_longer_than_its_keys",
            "a_grant_that_arrives_after_its_validity_does_not_count",
        ],
    ),
    // In the core: `the_longest_and_the_shortest_ttl_never_underflow_or_overflow`.
    ("validity underflows", &["a_grant_that_arrives_after_its_validity_does_not_count"]),
    (
        "late requests leave orphans",
        &[
            "a_master_stopped_past_several_attempts_keeps_no_key_of_theirs",
            "a_lock_released_while_a_master_was_stopped_leaves_no_key_there",
            "requests_that_are_swallowed_leave_no_key_and_no_holder",
            "connections_that_are_cut_in_the_middle_of_a_round_leave_no_key",
        ],
    ),
    (
        "a failed extension deletes the lock",
        &["an_extension_without_answers_leaves_the_lock_as_valid_as_it_was"],
    ),
    ("an extension recreates a lost lock", &["an_extension_of_a_lost_lock_says_so_and_creates_no_key"]),
    // In the core: `a_shorter_extension_that_reaches_one_of_five_masters_admits_no_second_holder`.
    (
        "an extension's quorum is not counted over all masters",
        &[
            "the_quorum_of_an_extension_is_counted_over_all_masters",
            "a_shorter_extension_that_reaches_one_of_five_masters_makes_no_second_holder",
        ],
    ),
    // In the core: `every_attempt_has_a_fresh_token_and_all_masters_get_the_same`,
    // `a_delayed_release_of_the_first_attempt_leaves_the_key_of_the_second`.
    ("one token for all attempts", &["every_attempt_has_its_own_token"]),
    (
        "cancelling cancels the clean-up",
        &[
            "an_acquisition_given_up_at_any_point_leaves_no_key",
            "an_acquisition_given_up_after_any_number_of_polls_leaves_no_key",
            "a_given_up_acquisition_is_released_behind_a_stopped_master_too",
            "a_forgotten_release_leaves_no_key",
        ],
    ),
    (
        "dropping blocks, or does nothing",
        &[
            "a_dropped_guard_leaves_no_key_and_does_not_wait",
            "a_guard_dropped_as_the_last_statement_of_main_leaves_no_key",
        ],
    ),
    // In the core: `every_unusable_setting_is_refused_with_its_own_error`,
    // `the_callers_mistakes_are_errors_and_change_nothing`.
    ("senseless settings panic or spin", &["requests_that_make_no_sense_are_errors_and_send_nothing"]),
    // In the core: `renewals_that_fail_are_tried_again_but_never_in_a_tight_loop`.
    (
        "renewal dies, outlives the lock or spins",
        &[
            "renewal_keeps_a_lock_for_several_ttls_and_ends_with_the_release",
            "renewal_of_dead_masters_does_not_spin",
            "renewal_stops_at_the_longest_hold_and_the_holder_is_told",
        ],
    ),
    // In the core: `validity_counts_from_before_the_first_send_and_not_from_the_reply`.
    ("validity is counted from the reply", &["validity_counts_from_before_the_first_request"]),
    (
        "the error does not say what each master answered",
        &[
            "no_quorum_says_what_each_master_said",
            "a_hung_master_is_named_in_the_error",
            "held_by_another_reports_the_remaining_time_at_once_and_after_a_wait",
        ],
    ),
];

/// Each scenario of the table is among these.
pub(crate) fn assert_in(all: &[&str]) {
    for (fault, scenarios) in FAULTS {
        assert!(scenarios.iter().all(|scenario| all.contains(scenario)), "{fault}: {scenarios:?}");
    }
}
