//! A real cluster, whose slots change their owners.

use quorlock_tests::chaos::Program;
use quorlock_tests::failover::{Clientele, ClusterRun, ShardDeed, Trust};
use quorlock_tests::groups::Takeover;
use quorlock_tests::servers_speak_tls;

use super::scene::Turn;

/// `cargo xtask failover --cluster` runs longer.
#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn clients_with_confirmed_votes_never_hold_one_lock_together_while_slots_change_their_owners() {
    let _turn = Turn::wait();
    let directory = tempfile::tempdir().unwrap();
    let program = Program { path: env!("CARGO_BIN_EXE_chaos_client").into(), arguments: Vec::new() };
    let directory = directory.path().to_owned();
    let run = ClusterRun {
        clientele: Clientele { seed: 1, clients: 8, directory, program },
        deeds: vec![ShardDeed::Stop, ShardDeed::Move, ShardDeed::Replace(Takeover::Alone)],
        stops: if servers_speak_tls() { 0 } else { 5 },
    };

    let outcome = run.go(|timing| eprintln!("{timing}")).unwrap();

    eprint!("{outcome}");
    assert_eq!(outcome.violations(Trust::Confirmed), []);
    assert_eq!(outcome.violations(Trust::Quorum), []);
    let alone = outcome.two_holders(Trust::GuardAlone);
    assert!(alone > 0 || servers_speak_tls(), "the restart guard alone was enough: this shows nothing");
}
