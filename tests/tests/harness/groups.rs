//! Groups of servers behave as documented. The tests of failovers cover groups under sentinels.

use quorlock_tests::groups::{ClusterGroup, Takeover};

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_slot_has_another_owner_after_each_failover_and_each_move() {
    let cluster = ClusterGroup::start();
    let slot = cluster.slot("{q0}job");
    let mut owner = cluster.await_owner(slot);
    assert!(cluster.node(owner).set_nx("{q0}job", "token"));
    for how in [Some(Takeover::Agreed), Some(Takeover::Alone), Some(Takeover::Forced), None] {
        let before = owner;
        if let Some(how) = how {
            owner = cluster.fail_over(slot, how);
        } else {
            cluster.node(before).stop();
            owner = cluster.owner_after(before, slot);
            cluster.node(before).cont();
        }
        assert_ne!(owner, before, "{how:?}");
        cluster.await_complete();
        assert_eq!(cluster.node(owner).get("{q0}job").as_deref(), Some("token"));
    }

    let other = cluster.await_owner(cluster.slot("{q1}job"));
    assert_ne!(other, owner);
    let mut moves = 0;
    cluster.move_slot(slot, other, || moves += 1);
    assert_eq!((moves, cluster.await_owner(slot)), (2, other));
    assert_eq!(cluster.node(other).get("{q0}job").as_deref(), Some("token"));
    cluster.move_slot(slot, owner, || ());
    assert_eq!(cluster.node(owner).get("{q0}job").as_deref(), Some("token"));
    cluster.await_complete();
}
