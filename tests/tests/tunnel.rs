//! Locks on masters that can be reached only through a tunnel, on every transport: a connector of
//! the caller opens the connections.

#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)]

use std::io::ErrorKind;
use std::thread;
use std::time::Duration;

use quorlock_core::front::Locker;
use quorlock_core::{AcquireError, Cause, Config, ConfigBuilder, IoFault, MasterState};
use quorlock_tests::{
    Certificates, Fleet, RedisServer, Transport, Tunnel, eventually, eventually_equals, masters,
};

/// Far longer than anything takes if it works, even on a busy machine.
const SOON: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(10);

/// Names that only the tunnel resolves.
fn name(place: usize) -> String {
    format!("master{place}.behind.the.tunnel:6379")
}

fn tunnel(masters: &[RedisServer]) -> Tunnel {
    let named = masters.iter().enumerate().map(|(place, master)| (name(place), master.address()));
    Tunnel::start(named)
}

fn urls(masters: &[RedisServer]) -> impl Iterator<Item = String> {
    (0..masters.len()).map(|place| format!("redis://{}", name(place)))
}

/// Settings with which nothing times out because the machine is busy.
fn patient(urls: impl IntoIterator<Item = String>) -> ConfigBuilder {
    let config = Config::builder(urls).request_timeout(PATIENCE).connect_timeout(PATIENCE);
    config.ttl(3 * PATIENCE).timeout(SOON)
}

fn state(locker: &Locker, place: usize) -> MasterState {
    locker.masters().swap_remove(place).1
}

/// One locker takes a lock, another one is refused, waits, and gets it once it is released.
fn a_lock_is_contended(transport: &Transport, masters: &[RedisServer], urls: impl Iterator<Item = String>) {
    let tunnel = tunnel(masters);
    let config = patient(urls).build().unwrap();
    let open = || transport.open_through(tunnel.address(), config.clone());
    let (one, other) = (open(), open());
    let guard = one.lock("job").wait().unwrap();
    let refused = other.try_lock("job").wait();
    assert!(matches!(refused, Err(AcquireError::HeldByAnother(_))), "{refused:?}");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| other.lock("job").wait().unwrap());
        eventually_equals(SOON, "it waits", 1, || other.report().waiting);
        guard.release().wait().unwrap();
        waiting.join().unwrap().release().wait().unwrap();
    });
    let held_by = || masters.iter().filter(|master| master.exists("job")).count();
    eventually_equals(SOON, "no key is left", 0, held_by);
    // A quorum decides before the last master is reached.
    eventually_equals(SOON, "connections through the tunnel", 2 * masters.len(), || tunnel.carried());
    drop((one, other));
}

fn a_lock_is_contended_through_a_tunnel(transport: &Transport) {
    let masters = masters(3);
    a_lock_is_contended(transport, &masters, urls(&masters));
}

fn a_lock_is_contended_over_tls_through_a_tunnel(transport: &Transport) {
    let certificates = Certificates::shared();
    let masters = Fleet::start(3, |options, _| options.tls(certificates, "no"));
    // The certificates have other names than the tunnel.
    let parameters = format!("cacert={}&sni=localhost", certificates.root().display());
    let urls = (0..masters.len()).map(|place| format!("rediss://{}?{parameters}", name(place)));
    a_lock_is_contended(transport, &masters, urls);
}

fn a_name_that_the_tunnel_does_not_know_is_a_refused_connection(transport: &Transport) {
    let masters = masters(3);
    let tunnel = tunnel(&masters[..2]);
    let locker = transport.open_through(tunnel.address(), patient(urls(&masters)).build().unwrap());
    locker.lock("job").wait().unwrap().release().wait().unwrap();
    let refused = Cause::Connect(IoFault::new(ErrorKind::ConnectionRefused));
    eventually_equals(SOON, "it is told", MasterState::Down(refused), || state(&locker, 2));
    assert_eq!(refused.to_string(), "connection refused");
}

fn a_tunnel_that_does_not_answer_costs_the_connect_timeout_and_is_tried_again(transport: &Transport) {
    let masters = masters(1);
    let tunnel = tunnel(&masters);
    tunnel.hold(true);
    let config = patient(urls(&masters)).connect_timeout(Duration::from_millis(250)).build().unwrap();
    let locker = transport.open_through(tunnel.address(), config);
    let is_told = || matches!(state(&locker, 0), MasterState::Down(Cause::NoConnection { .. }));
    eventually(SOON, "it is told", is_told);
    tunnel.hold(false);
    let is_ready = || matches!(state(&locker, 0), MasterState::Ready { .. });
    eventually(SOON, "it is tried again", is_ready);
    eventually_equals(SOON, "what was given up is closed", 0, || tunnel.held());
}

fn a_dropped_locker_closes_the_connections_that_it_was_opening(transport: &Transport) {
    let masters = masters(3);
    let tunnel = tunnel(&masters);
    tunnel.hold(true);
    let locker = transport.open_through(tunnel.address(), patient(urls(&masters)).build().unwrap());
    eventually_equals(SOON, "all are asked for", 3, || tunnel.held());
    drop(locker);
    eventually_equals(SOON, "all are closed", 0, || tunnel.held());
}

macro_rules! all_on {
    ($transport:ident) => {
        mod $transport {
            use quorlock_tests::Transport;

            fn transport() -> Transport {
                Transport::named(stringify!($transport))
            }

            #[test]
            fn a_lock_is_contended_through_a_tunnel() {
                super::a_lock_is_contended_through_a_tunnel(&transport());
            }

            #[test]
            #[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
            fn a_lock_is_contended_over_tls_through_a_tunnel() {
                super::a_lock_is_contended_over_tls_through_a_tunnel(&transport());
            }

            #[test]
            fn a_name_that_the_tunnel_does_not_know_is_a_refused_connection() {
                super::a_name_that_the_tunnel_does_not_know_is_a_refused_connection(&transport());
            }

            #[test]
            fn a_tunnel_that_does_not_answer_costs_the_connect_timeout_and_is_tried_again() {
                super::a_tunnel_that_does_not_answer_costs_the_connect_timeout_and_is_tried_again(
                    &transport(),
                );
            }

            #[test]
            fn a_dropped_locker_closes_the_connections_that_it_was_opening() {
                super::a_dropped_locker_closes_the_connections_that_it_was_opening(&transport());
            }
        }
    };
}

#[cfg(feature = "tokio")]
all_on!(tokio);
all_on!(smol);
all_on!(blocking);
