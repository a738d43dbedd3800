//! The list of the tests of `claims.rs`, for each desk that they are run at.

/// Makes a test from each function, with these attributes and its own desk.
macro_rules! test_claims {
    (@one $desk:expr, [$($attribute:tt)*], $test:ident) => {
        #[test]
        $($attribute)*
        fn $test() {
            claims::$test(&mut $desk);
        }
    };
    (@each $desk:expr, $attributes:tt, $($test:ident,)*) => {
        $(test_claims! { @one $desk, $attributes, $test })*
    };
    (on $desk:expr, $($attribute:tt)*) => {
        test_claims! {
            @each $desk, [$($attribute)*],
            readers_are_named_and_not_counted,
            a_key_lives_as_long_as_the_longest_reader,
            a_dead_reader_is_not_kept_alive_by_others,
            a_release_that_finds_nothing_of_its_own_changes_nothing,
            the_key_lives_as_long_as_the_sharer_that_ends_last,
            entries_are_used_again_and_those_that_have_ended_are_removed,
            a_server_without_memory_lets_sharers_stay_and_leave,
            a_reader_whose_key_was_deleted_holds_nothing,
            groups_keep_each_other_out,
            the_name_of_a_group_is_any_bytes,
            a_batch_is_extended_where_all_of_it_is_ours,
            no_key_is_put_back_beside_the_key_of_another_client,
            a_batch_has_one_number_above_all_counters,
            the_number_of_a_batch_does_not_depend_on_the_order_of_its_counters,
            readers_share_a_number_between_the_numbers_of_the_writers,
            after_lost_counters_readers_begin_above_earlier_writers,
            a_master_that_is_quarantined_grants_and_writes_nothing,
            one_server_behind_two_addresses_has_one_vote,
            a_refused_claim_changes_nothing,
            a_waiting_writer_keeps_new_readers_out_and_no_others,
            a_grant_leaves_the_mark_of_a_writer_and_its_release_removes_it,
            a_writer_becomes_a_reader_on_a_master_that_does_not_know_yet,
            seats_are_taken_in_order_and_a_waiter_learns_the_first_end,
            several_seats_are_taken_or_none,
            the_client_that_has_waited_longest_gets_the_next_seat,
            a_claim_that_is_kept_loses_its_token_and_stays,
            the_largest_claim_is_taken_extended_and_released,
            the_first_thousand_sharers_are_told_and_can_be_named,
            a_long_value_of_another_client_is_named_as_a_whole,
            a_grant_and_its_undo_keep_the_place,
            a_place_keeps_its_number_and_is_raised_but_not_lowered,
            a_place_gets_the_exact_number_that_a_quorum_has,
            numbers_continue_while_the_queue_is_empty,
            numbers_that_are_used_up_end_with_the_queue,
            a_place_that_was_not_renewed_keeps_no_waiter_waiting,
            a_hundred_places_that_have_ended_are_dropped_at_a_time,
            a_turn_that_is_over_keeps_nobody_waiting,
            a_renewal_that_finds_the_lock_free_begins_the_turn_of_the_first_place,
            a_lock_that_is_kept_leaves_the_queue,
            each_waiter_learns_the_first_place,
            a_renewal_of_a_place_grants_nothing,
            a_waiter_that_leaves_removes_only_its_own_place,
            a_quarantined_master_keeps_places_and_grants_nothing,
        }
    };
}
