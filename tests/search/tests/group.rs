//! Failovers of one group: what the restart guard alone lets happen, and what no order of steps
//! does with `replicas=`.

use quorlock_search::{Group, GroupFlaw, GroupReport};

const PAIR: Group = Group {
    servers: 2,
    spares: 0,
    declared: 1,
    promotions: 1,
    changes: 1,
    restarts: 0,
    extensions: 1,
    horizon: 7,
    early_quarantine: false,
    flaw: None,
};

#[track_caller]
fn safe(group: Group) {
    let GroupReport { states, two_holders } = group.search();
    assert_eq!(two_holders, None, "{group:?}, after {states} states");
}

#[track_caller]
fn broken(group: Group) {
    let GroupReport { states, two_holders } = group.search();
    assert!(two_holders.is_some(), "{group:?}: the search sees nothing in {states} states");
}

#[test]
fn the_guard_alone_has_two_holders_in_a_split_brain() {
    broken(Group { declared: 0, ..PAIR });
}

#[test]
fn a_replica_that_confirms_votes_leaves_one_holder() {
    safe(PAIR);
    safe(Group { promotions: 2, changes: 2, horizon: 6, ..PAIR });
    safe(Group { restarts: 1, horizon: 6, ..PAIR });
}

/// There are two lines of defence: votes that all replicas confirm, and a quarantine that begins
/// when the replicas are complete. Each is enough if the declared replicas are all other servers.
#[test]
fn either_defence_alone_is_enough_and_without_both_there_are_two_holders() {
    let early = Group { early_quarantine: true, ..PAIR };
    safe(early);
    safe(Group { flaw: Some(GroupFlaw::NoWait), ..PAIR });
    broken(Group { flaw: Some(GroupFlaw::NoWait), ..early });
}

#[test]
fn the_search_finds_extensions_that_do_not_wait_for_replicas() {
    broken(Group { flaw: Some(GroupFlaw::ExtensionsDoNotWait), early_quarantine: true, ..PAIR });
}

#[test]
fn the_search_finds_that_one_replica_need_not_confirm() {
    let three = Group { servers: 3, declared: 2, changes: 2, extensions: 0, early_quarantine: true, ..PAIR };
    broken(Group { flaw: Some(GroupFlaw::OneLess), ..three });
    safe(Group { horizon: 4, early_quarantine: false, ..three });
    safe(Group { horizon: 3, ..three });
}

/// A replica that was promoted keeps running, while another server has taken its place as a
/// replica. The documentation says that this must not happen.
#[test]
fn the_search_finds_that_a_replica_replaces_a_server_that_still_runs() {
    broken(Group { spares: 1, changes: 2, extensions: 0, ..PAIR });
}
