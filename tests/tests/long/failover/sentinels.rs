//! A group under real sentinels.

use std::time::Duration;

use quorlock_core::Config;
use quorlock_core::front::Locker;
use quorlock_tests::chaos::Program;
use quorlock_tests::failover::{Clientele, Deed, Found, Run, Trust};
use quorlock_tests::groups::{SentinelGroup, leading};
use quorlock_tests::{Transport, eventually};

use super::scene::{LONGEST, SOON, Turn};

/// `cargo xtask failover` runs longer.
#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn clients_with_confirmed_votes_never_hold_one_lock_together_while_primaries_fail_over() {
    let _turn = Turn::wait();
    let directory = tempfile::tempdir().unwrap();
    let program = Program { path: env!("CARGO_BIN_EXE_chaos_client").into(), arguments: Vec::new() };
    let directory = directory.path().to_owned();
    let run = Run {
        clientele: Clientele { seed: 1, clients: 8, directory, program },
        found: Found::BySentinels,
        deeds: vec![Deed::CutOff, Deed::Stop, Deed::Ask],
    };

    let outcome = run.go(|timing| eprintln!("{timing}")).unwrap();

    eprint!("{outcome}");
    assert_eq!(outcome.violations(Trust::Confirmed), []);
    assert!(
        outcome.two_holders(Trust::GuardAlone) > 0,
        "the restart guard alone was enough: this shows nothing"
    );
}

/// A locker that finds the primary through the sentinels, even if the primary is cut off from them
/// and the replicas, and counts confirmed votes.
fn open(transport: &Transport, group: &SentinelGroup) -> Locker {
    let config = Config::builder([Trust::Confirmed.url_by_sentinels(group)]).restart_guard(LONGEST);
    let config = config.ttl(LONGEST).timeout(SOON).request_timeout(Duration::from_millis(400));
    transport.open(config.address_map(leading(group.routes())).build().unwrap())
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn fencing_numbers_rise_across_five_failovers() {
    let _turn = Turn::wait();
    let group = SentinelGroup::start();
    let transport = Transport::named(Transport::NAMES[0]);
    let locker = open(&transport, &group);
    let fenced = || {
        let guard = locker.lock("job").fenced().wait().unwrap();
        let number = guard.fencing_token().unwrap();
        guard.release().wait().unwrap();
        number
    };
    let mut numbers = vec![fenced(), fenced()];

    for deed in [Deed::Ask, Deed::Kill, Deed::Ask, Deed::Stop, Deed::CutOff] {
        let old = group.await_complete();
        deed.befall(&group, old);
        deed.undo(&group, old, false);
        group.await_complete();
        numbers.extend([fenced(), fenced()]);
    }

    assert!(numbers.is_sorted_by(|earlier, later| earlier < later), "{numbers:?}");
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_holder_that_renews_at_the_old_primary_is_lost_before_the_new_one_grants() {
    let _turn = Turn::wait();
    let group = SentinelGroup::start();
    for (round, deed) in [Deed::Mute, Deed::Deaf].into_iter().enumerate() {
        let transport = Transport::named(Transport::NAMES[round % Transport::NAMES.len()]);
        let primary = group.await_complete();
        let old = open(&transport, &group);
        eventually(SOON, "the primary votes", || old.try_lock("other").wait().is_ok());
        let held = old.lock("job").renew().wait().unwrap();

        // The primary does not know of the failover yet, and the holder can reach it.
        deed.befall(&group, primary);
        let new = open(&transport, &group);
        let other = std::thread::scope(|scope| {
            let seeks = scope.spawn(|| new.lock("job").wait().unwrap());
            std::thread::sleep(LONGEST);
            deed.undo(&group, primary, false);
            seeks.join().unwrap()
        });

        assert!(!held.is_valid() && other.is_valid());
        held.lost().wait();
        group.await_complete();
    }
}
