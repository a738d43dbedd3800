//! One suite of scenarios, the same on every transport, against real servers or, if there is none,
//! embedded masters.
//!
//! `peers` lists the scenarios for each fault of other clients, and `left` those that embedded
//! masters and nodes of clusters leave out.

// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

#[path = "scenarios/asking.rs"]
mod asking;
#[path = "scenarios/asking_kinds.rs"]
mod asking_kinds;
#[cfg(feature = "tokio")]
#[path = "scenarios/blocking_calls.rs"]
mod blocking_calls;
#[path = "scenarios/drivers.rs"]
mod drivers;
#[path = "scenarios/ending.rs"]
mod ending;
#[path = "scenarios/fair.rs"]
mod fair;
#[path = "scenarios/garbage.rs"]
mod garbage;
#[path = "scenarios/granting.rs"]
mod granting;
#[path = "scenarios/holding.rs"]
mod holding;
#[path = "scenarios/kinds.rs"]
mod kinds;
#[path = "scenarios/kit.rs"]
mod kit;
#[path = "scenarios/lasting.rs"]
mod lasting;
#[path = "scenarios/left.rs"]
mod left;
#[path = "scenarios/lines.rs"]
mod lines;
#[path = "scenarios/logins.rs"]
mod logins;
#[path = "scenarios/network.rs"]
mod network;
#[path = "scenarios/owners.rs"]
mod owners;
#[path = "scenarios/owners_of_several.rs"]
mod owners_of_several;
#[path = "scenarios/peers.rs"]
mod peers;
#[path = "scenarios/replicas.rs"]
mod replicas;
#[path = "scenarios/servers.rs"]
mod servers;
#[path = "scenarios/silence.rs"]
mod silence;
#[path = "scenarios/staying.rs"]
mod staying;
#[path = "scenarios/waiting.rs"]
mod waiting;

/// Makes a module of tests, one for each scenario. A scenario that is in no list is dead code,
/// which causes a warning.
macro_rules! on {
    (
        $transport:ident:
        $($file:ident { $($scenario:ident,)+ })+;
        left_to_real_servers:
        $($left_file:ident { $($left:ident,)+ })+
    ) => {
        mod $transport {
            $($(
                #[test]
                fn $scenario() {
                    if crate::left::is_left_out(stringify!($scenario)) {
                        return;
                    }
                    crate::$file::$scenario(&quorlock_tests::Transport::named(stringify!($transport)));
                }
            )+)+

            mod left_to_real_servers {
                $($(
                    #[test]
                    #[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
                    fn $left() {
                        if crate::left::is_left_out(stringify!($left)) {
                            return;
                        }
                        crate::$left_file::$left(&quorlock_tests::Transport::named(stringify!($transport)));
                    }
                )+)+
            }

            #[test]
            fn tests_that_need_real_servers_are_reported() {
                crate::left::assert_told(&[$($(stringify!($left)),+),+]);
            }

            #[test]
            fn scenarios_that_show_faults_of_other_clients_exist() {
                let all = [$($(stringify!($scenario)),+),+, $($(stringify!($left)),+),+];
                crate::peers::assert_in(&all);
            }
        }
    };
}

macro_rules! all_scenarios_on {
    ($transport:ident) => {
        on! { $transport:
            granting {
                one_three_and_five_masters_grant_and_release,
                even_numbers_of_masters_grant_and_release,
                the_very_first_lock_after_start_holds_on_all_masters,
                every_key_is_a_plain_string_with_the_token_and_the_ttl,
                keys_may_be_any_bytes,
                a_foreign_set_nx_is_excluded_and_excludes,
                held_by_another_reports_the_remaining_time_at_once_and_after_a_wait,
                a_waiter_gets_the_lock_once_it_is_released,
                no_quorum_says_what_each_master_said,
                split_votes_of_two_and_four_masters_end_on_both_sides_at_once,
                a_wait_shorter_than_the_request_timeout_is_used_for_more_than_one_attempt,
                requests_that_make_no_sense_are_errors_and_send_nothing,
            }
            waiting {
                a_foreign_release_wakes_a_waiter,
                a_foreign_release_wakes_one_waiter_whose_release_wakes_the_other,
                a_waiter_gets_the_lock_when_its_key_ends,
                a_waiter_keeps_waiting_after_renewals_of_the_holder,
                a_waiter_without_resp3_polls,
            }
            lines {
                waiters_of_one_process_are_served_in_order,
                try_lock_does_not_overtake_waiters,
                try_acquire_does_not_wait_for_a_permit_or_overtake_waiters,
                a_thousand_waiters_keep_their_order_when_half_of_them_leave,
            }
            silence {
                a_hung_master_costs_nothing,
                a_master_that_hangs_from_the_start_costs_nothing,
                a_hung_master_that_was_given_up_costs_nothing,
                a_killed_master_costs_nothing,
                a_hung_master_is_named_in_the_error,
                beside_a_dead_master_held_by_another_is_returned_however_slow_the_third_answers,
                two_refusals_and_a_hung_master_are_decided_at_once,
                two_of_three_stopped_is_no_quorum_within_the_wait_and_leaves_no_key,
                a_hung_master_that_continues_votes_again_despite_the_backoff,
                a_master_stopped_past_several_attempts_keeps_no_key_of_theirs,
                a_lock_released_while_a_master_was_stopped_leaves_no_key_there,
                a_stop_of_all_masters_past_the_ttl_grants_nothing_for_longer_than_its_keys,
                validity_counts_from_before_the_first_request,
                a_grant_that_arrives_after_its_validity_does_not_count,
            }
            holding {
                an_extension_moves_the_end_and_a_shorter_one_never_shortens,
                an_extension_of_a_lost_lock_says_so_and_creates_no_key,
                an_extension_without_answers_leaves_the_lock_as_valid_as_it_was,
                the_quorum_of_an_extension_is_counted_over_all_masters,
                a_shorter_extension_that_reaches_one_of_five_masters_makes_no_second_holder,
                renewal_keeps_a_lock_for_several_ttls_and_ends_with_the_release,
                renewal_stops_at_the_longest_hold_and_the_holder_is_told,
                a_holder_whose_masters_die_is_told_not_later_than_the_end_of_validity,
                renewal_of_dead_masters_does_not_spin,
                keys_deleted_by_an_administrator_on_a_majority_are_reported_at_the_next_renewal,
                keys_deleted_by_an_administrator_on_a_minority_lose_nothing,
                a_watch_outlives_its_guard_and_says_released,
                no_late_answer_makes_a_released_lock_valid_again,
                an_extension_whose_future_was_dropped_is_known_to_the_guard,
            }
            lasting {
                a_healed_lock_outlives_all_masters_that_granted_it,
                a_lock_that_was_handed_over_is_extended_and_released_by_another_locker,
                a_lock_that_was_handed_over_is_released_by_its_token,
                a_process_that_was_stopped_past_its_ttl_never_calls_itself_valid,
            }
            kinds {
                several_resources_are_held_together_or_not_at_all,
                a_waiter_for_several_resources_is_notified_of_each,
                readers_share_and_a_writer_that_waits_comes_next,
                a_writer_becomes_a_reader_at_once,
                a_reader_that_was_handed_over_is_resumed_as_a_reader,
                a_lock_that_was_handed_over_is_released_only_as_its_own_kind,
                mixed_targets_read_and_write,
                permits_are_granted_up_to_their_number,
                a_permit_that_was_handed_over_has_the_same_index,
                several_permits_are_held_together_or_not_at_all,
                threads_that_want_several_permits_do_not_wait_for_each_other,
                threads_that_come_back_never_hold_more_permits_than_there_are,
            }
            fair {
                fair_waiters_are_served_in_order_of_arrival,
                fair_waiters_that_died_cost_no_more_than_a_lease,
                a_fair_waiter_that_reaches_one_master_blocks_no_other_waiter,
                fair_and_other_waiters_exclude_each_other,
                fair_requests_of_anything_else_are_errors_and_send_nothing,
            }
            owners {
                ten_thousand_nested_locks_cost_each_master_one_request_and_one_release,
                threads_of_one_owner_share_one_lock,
                a_request_goes_on_for_the_others_when_its_caller_has_gone,
                an_inner_request_fails_with_the_loss_of_the_outer_lock,
                a_panic_in_the_innermost_of_nested_locks_releases_once,
                a_scope_within_a_scope_is_one_lock,
                an_inner_request_for_more_than_the_lock_has_says_what_is_missing,
            }
            owners_of_several {
                an_owner_gets_a_part_of_what_it_holds_without_a_request,
                an_owner_reads_what_it_writes_and_what_it_has_downgraded,
            }
            ending {
                a_release_says_whether_the_lock_was_still_ours,
                a_dropped_guard_leaves_no_key_and_does_not_wait,
                a_forgotten_release_leaves_no_key,
                a_guard_dropped_as_the_last_statement_of_main_leaves_no_key,
                an_acquisition_given_up_at_any_point_leaves_no_key,
                an_acquisition_given_up_after_any_number_of_polls_leaves_no_key,
                a_given_up_acquisition_is_released_behind_a_stopped_master_too,
                a_release_that_waited_for_a_connection_which_did_not_open_is_sent_over_the_next,
                a_locker_dropped_at_once_leaves_neither_keys_nor_connections,
                a_locker_that_was_never_used_closes_its_connections,
                a_forked_child_releases_nothing_and_waits_for_nothing,
                a_scope_returns_its_value_and_leaves_no_key,
                a_scope_that_panics_leaves_no_key,
                the_future_of_a_scope_is_dropped_when_its_lock_is_lost,
            }
            asking {
                an_inspection_reports_the_holder_of_a_lock_and_for_how_long,
                a_key_of_a_plain_client_shows_in_an_inspection,
                an_inspection_does_not_wait_for_a_silent_master_for_long,
                a_lock_of_any_client_can_be_cleared_and_its_holder_is_notified,
                a_waiter_of_the_clearing_process_is_woken,
                too_few_masters_that_clear_a_lock_are_an_error,
                a_minimum_hold_time_keeps_others_out_until_it_is_over,
                a_minimum_hold_time_longer_than_the_ttl_lengthens_the_keys,
                a_minimum_hold_time_that_is_over_is_an_ordinary_release,
                a_minimum_hold_time_works_for_every_kind_of_lock,
            }
            asking_kinds {
                an_inspection_counts_readers_and_tells_when_the_last_one_ends,
                an_inspection_of_a_semaphore_tells_which_permits_are_held,
                all_permits_of_a_semaphore_are_reported_in_one_answer,
                a_thousand_readers_are_reported_in_one_answer,
                a_token_of_any_kind_of_lock_is_released,
                a_shared_lock_can_be_cleared_and_its_readers_are_told,
                a_plain_set_nx_and_each_kind_keep_each_other_out,
            }
            network {
                bytes_that_come_one_by_one_or_all_at_once_change_nothing,
                connections_that_are_cut_in_the_middle_of_a_round_leave_no_key,
                one_cut_connection_costs_a_round_nothing,
                a_cut_connection_delays_no_caller_while_a_lock_is_held,
                half_open_connections_are_found_out,
                the_first_lock_after_idle_connections_were_swallowed_succeeds,
                locks_over_forgotten_connections_are_extended_and_released,
                requests_that_are_swallowed_leave_no_key_and_no_holder,
                replies_slower_than_the_timeout_are_still_matched_in_order,
            }
            servers {
                restarted_masters_vote_again,
                scripts_that_were_flushed_are_sent_again,
                passwords_are_accepted_and_wrong_ones_are_configuration_errors,
                one_wrong_password_of_three_costs_nothing,
                the_database_of_the_url_is_used,
                ipv6_and_names_lead_to_masters,
                an_unknown_host_is_named,
                a_replica_has_no_vote,
                a_master_that_becomes_a_replica_loses_its_vote,
                a_guarded_master_with_a_replica_is_warned_of,
                one_server_behind_two_addresses_is_refused_by_both_names,
                a_key_of_a_foreign_type_is_not_called_a_lock,
                a_master_without_memory_has_no_vote_and_still_releases,
                a_master_that_needs_replicas_has_no_vote,
                a_master_kept_busy_by_a_script_has_no_vote,
                a_server_without_hello_is_spoken_to_as_in_redis_5,
            }
            logins {
                a_password_file_is_read_at_each_login,
                connections_in_use_log_in_again,
                without_a_token_a_master_has_no_vote_and_the_others_decide,
            }
            staying {
                quiet_connections_are_pinged_and_dead_ones_found,
                the_system_probes_connections_that_are_quiet,
                another_server_behind_an_address_is_distinguished_from_a_restart,
            }
            garbage {
                a_minority_that_talks_garbage_costs_nothing,
                a_majority_that_talks_garbage_is_a_clear_error,
                unsolicited_replies_grant_nothing,
                a_full_pipeline_is_a_clear_error_and_recovers,
                many_threads_each_with_its_own_lock_share_five_connections,
                many_tasks_each_with_its_own_lock_share_five_connections,
                one_key_has_one_holder_at_a_time_among_all_clients,
            };
            left_to_real_servers:
            granting {
                every_attempt_has_its_own_token,
            }
            servers {
                unix_sockets_lead_to_masters,
                the_smallest_acl_rule_is_enough_and_nothing_in_it_is_too_much,
                the_smallest_acl_rule_of_fenced_and_guarded_locks_is_enough_and_nothing_in_it_is_too_much,
                denied_info_and_script_load_are_warnings,
                what_a_server_lacks_is_named_and_costs_only_what_needs_it,
            }
            replicas {
                a_split_brain_has_two_holders_under_the_guard_alone_and_none_with_replicas,
                a_holder_at_the_old_primary_is_lost_before_the_new_one_grants,
                a_primary_that_was_stopped_during_the_failover_has_no_vote,
                while_a_replica_hangs_nothing_is_granted_or_extended,
                clients_that_disagree_about_replicas_get_an_error,
                every_kind_of_lock_is_granted_extended_and_healed_on_a_group,
            }
            logins {
                a_password_file_that_changes_under_load_fails_no_lock,
            }
            staying {
                a_name_that_leads_to_another_address_is_followed,
            }
            owners {
                the_wire_shows_one_request_and_one_release_of_nested_locks,
            }
            waiting {
                a_waiter_asks_nothing_while_it_waits,
                without_wake_ups_a_waiter_polls,
                nothing_is_tracked_when_no_caller_waits,
                denied_tracking_is_a_warning_and_the_waiter_polls,
            }
        }
    };
}

#[cfg(feature = "tokio")]
all_scenarios_on!(tokio);
all_scenarios_on!(smol);
all_scenarios_on!(blocking);
