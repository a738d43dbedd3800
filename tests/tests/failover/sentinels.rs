//! A group under real sentinels.

use std::time::Duration;

use quorlock_core::Config;
use quorlock_core::front::Locker;
use quorlock_tests::chaos::Program;
use quorlock_tests::failover::{Deed, Run, Trust};
use quorlock_tests::groups::SentinelGroup;
use quorlock_tests::{FaultProxy, Transport, eventually};

use crate::scene::{LONGEST, SOON};

/// `cargo run --release -p quorlock-tests --example failover` goes on for longer.
#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn clients_with_confirmed_votes_never_hold_one_lock_together_while_primaries_fail_over() {
    let directory = tempfile::tempdir().unwrap();
    let run = Run {
        deeds: vec![Deed::CutOff, Deed::Stop, Deed::Ask],
        seed: 1,
        clients: 8,
        directory: directory.path().to_owned(),
        program: Program { path: env!("CARGO_BIN_EXE_chaos_client").into(), arguments: Vec::new() },
    };

    let outcome = run.go().unwrap();

    eprint!("{outcome}");
    assert_eq!(outcome.violations(Trust::Confirmed), []);
    assert!(
        outcome.two_holders(Trust::GuardAlone) > 0,
        "the restart guard alone was enough: this shows nothing"
    );
}

/// A group and its name, behind which the primary is.
struct Named {
    group: SentinelGroup,
    name: FaultProxy,
}

impl Named {
    fn start() -> Self {
        let group = SentinelGroup::start();
        let primary = group.await_complete();
        let name = FaultProxy::start(group.server(primary).address());
        Self { group, name }
    }

    /// A locker that counts votes which are confirmed.
    fn open(&self, transport: &Transport) -> Locker {
        let url = Trust::Confirmed.url(self.name.address(), SentinelGroup::REPLICAS);
        let config = Config::builder([url]).restart_guard(LONGEST).ttl(LONGEST).timeout(SOON);
        transport.open(config.request_timeout(Duration::from_millis(400)).build().unwrap())
    }

    /// Another primary, to which the name leads.
    fn fail_over(&self, deed: Deed) -> usize {
        let old = self.group.await_complete();
        let new = deed.befall(&self.group, old);
        self.name.set_upstream(self.group.server(new).address());
        old
    }

    fn is_complete(&self) {
        let primary = self.group.await_complete();
        self.name.set_upstream(self.group.server(primary).address());
    }
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn fencing_numbers_rise_across_five_failovers() {
    let named = Named::start();
    let transport = Transport::named(Transport::NAMES[0]);
    let locker = named.open(&transport);
    let fenced = || {
        let guard = locker.lock("job").fenced().wait().unwrap();
        let number = guard.fencing_token().unwrap();
        guard.release().wait().unwrap();
        number
    };
    let mut numbers = vec![fenced(), fenced()];

    for deed in [Deed::Ask, Deed::Kill, Deed::Ask, Deed::Stop, Deed::CutOff] {
        let old = named.fail_over(deed);
        deed.undo(&named.group, old, false);
        named.is_complete();
        numbers.extend([fenced(), fenced()]);
    }

    assert!(numbers.is_sorted_by(|earlier, later| earlier < later), "{numbers:?}");
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_holder_that_renews_at_the_old_primary_is_lost_before_the_new_one_grants() {
    let named = Named::start();
    for (round, deed) in [Deed::Mute, Deed::Deaf].into_iter().enumerate() {
        let transport = Transport::named(Transport::NAMES[round % Transport::NAMES.len()]);
        let old = named.open(&transport);
        eventually(SOON, "the primary votes", || old.try_lock("other").wait().is_ok());
        let held = old.lock("job").renew().wait().unwrap();

        // Its connection stays, and the primary knows nothing yet.
        let cut = named.fail_over(deed);
        let new = named.open(&transport);
        let other = std::thread::scope(|scope| {
            let seeks = scope.spawn(|| new.lock("job").wait().unwrap());
            std::thread::sleep(LONGEST);
            deed.undo(&named.group, cut, false);
            seeks.join().unwrap()
        });

        assert!(!held.is_valid() && other.is_valid());
        held.lost().wait();
        named.is_complete();
    }
}
