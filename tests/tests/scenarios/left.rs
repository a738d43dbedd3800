//! The scenarios that not all servers can run, and what they need.

use std::collections::BTreeSet;

/// What embedded masters do not have, and the scenarios that need it.
const LEFT_TO_REAL_SERVERS: [(&str, &[&str]); 8] = [
    (
        "MONITOR",
        &["every_attempt_has_its_own_token", "the_wire_shows_one_request_and_one_release_of_nested_locks"],
    ),
    ("Unix domain sockets", &["unix_sockets_lead_to_masters"]),
    (
        "ACL",
        &[
            "the_smallest_acl_rule_is_enough_and_nothing_in_it_is_too_much",
            "the_smallest_acl_rule_of_fenced_and_guarded_locks_is_enough_and_nothing_in_it_is_too_much",
            "denied_info_and_script_load_are_warnings",
            "a_password_file_that_changes_under_load_fails_no_lock",
            "denied_tracking_is_a_warning_and_the_waiter_polls",
        ],
    ),
    ("renamed commands", &["what_a_server_lacks_is_named_and_costs_only_what_needs_it"]),
    ("second address", &["a_name_that_leads_to_another_address_is_followed"]),
    (
        "replication",
        &[
            "a_split_brain_has_two_holders_under_the_guard_alone_and_none_with_replicas",
            "a_holder_at_the_old_primary_is_lost_before_the_new_one_grants",
            "a_primary_that_was_stopped_during_the_failover_has_no_vote",
            "while_a_replica_hangs_nothing_is_granted_or_extended",
            "clients_that_disagree_about_replicas_get_an_error",
            "every_kind_of_lock_is_granted_extended_and_healed_on_a_group",
        ],
    ),
    ("count of all commands", &["a_waiter_asks_nothing_while_it_waits"]),
    (
        "count of connections that are told of changes",
        &["without_wake_ups_a_waiter_polls", "nothing_is_tracked_when_no_caller_waits"],
    ),
];

/// The scenarios that need real servers are those of the table.
pub(crate) fn assert_told(left: &[&str]) {
    for (what, scenarios) in LEFT_TO_REAL_SERVERS {
        eprintln!("left to real servers, because embedded masters have no {what}: {}", scenarios.join(", "));
    }
    let told: BTreeSet<_> = LEFT_TO_REAL_SERVERS.iter().flat_map(|(_, scenarios)| *scenarios).collect();
    assert_eq!(left.iter().collect::<BTreeSet<_>>(), told);
}

/// Features that nodes of clusters do not have, and the scenarios that need them.
const NOT_ON_CLUSTERS: [(&str, &[&str]); 4] = [
    (
        "REPLICAOF is not allowed there",
        &[
            "a_replica_has_no_vote",
            "a_master_that_becomes_a_replica_loses_its_vote",
            "a_guarded_master_with_a_replica_is_warned_of",
            "a_split_brain_has_two_holders_under_the_guard_alone_and_none_with_replicas",
            "a_holder_at_the_old_primary_is_lost_before_the_new_one_grants",
            "a_primary_that_was_stopped_during_the_failover_has_no_vote",
            "while_a_replica_hangs_nothing_is_granted_or_extended",
            "clients_that_disagree_about_replicas_get_an_error",
            "every_kind_of_lock_is_granted_extended_and_healed_on_a_group",
        ],
    ),
    (
        "there is one database",
        &[
            "the_database_of_the_url_is_used",
            "a_server_without_hello_is_spoken_to_as_in_redis_5",
            "the_smallest_acl_rule_is_enough_and_nothing_in_it_is_too_much",
            "the_smallest_acl_rule_of_fenced_and_guarded_locks_is_enough_and_nothing_in_it_is_too_much",
        ],
    ),
    (
        "another server is expected there",
        &[
            "another_server_behind_an_address_is_distinguished_from_a_restart",
            "one_server_behind_two_addresses_is_refused_by_both_names",
        ],
    ),
    (
        "names on the wire have the tag, and URLs have hosts",
        &["the_wire_shows_one_request_and_one_release_of_nested_locks", "unix_sockets_lead_to_masters"],
    ),
];

/// Whether a scenario cannot run on the chosen servers. The reason is printed.
pub(crate) fn is_left_out(scenario: &str) -> bool {
    let all = NOT_ON_CLUSTERS.iter().filter(|_| quorlock_tests::are_nodes_of_clusters());
    let why = all.clone().find(|(_, scenarios)| scenarios.contains(&scenario));
    if let Some((why, _)) = why {
        eprintln!("left out on nodes of clusters: {why}");
    }
    why.is_some()
}
