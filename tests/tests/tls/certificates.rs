//! Certificates that change, and secrets that are never printed.

use std::time::Duration;

use quorlock_blocking::quorlock_core::Warning;
use quorlock_blocking::{Config, MasterState, Tls};
use quorlock_tests::{Certificates, NAMES, RedisServer, ServerOptions, eventually};

use super::faults::{cacert, pair, url};

const SOON: Duration = Duration::from_secs(20);

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
pub(crate) fn files_that_have_changed_are_read_at_the_next_connection() {
    let own = Certificates::own(NAMES, |_| {});
    let server = ServerOptions::new().tls(&own, "yes").start();
    let config = Config::new([url(&server, &format!("{}&{}", cacert(&own), pair(&own)))]).unwrap();
    let locker = quorlock_blocking::open(config).unwrap();
    locker.lock("job").wait().unwrap().release().wait().unwrap();

    // Server and client have the same files here. The server does not accept the old ones once it
    // has read the new ones.
    own.replace();
    server.restart();
    eventually(SOON, "the new certificate is shown, and the new issuer trusted", || {
        locker.try_lock("job").wait().is_ok()
    });
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
pub(crate) fn tls_files_that_become_unusable_leave_the_last_good_ones_in_use() {
    let own = Certificates::own(NAMES, |_| {});
    let server = ServerOptions::new().tls(&own, "yes").start();
    let config = Config::new([url(&server, &format!("{}&{}", cacert(&own), pair(&own)))]).unwrap();
    let locker = quorlock_blocking::open(config).unwrap();
    locker.lock("job").wait().unwrap().release().wait().unwrap();

    std::fs::write(own.key(), "half of a key").unwrap();
    end_connections(&server);
    locker.lock("job").wait().unwrap().release().wait().unwrap();
    let state = || locker.masters().remove(0).1;
    assert_eq!(state(), MasterState::Ready { warnings: vec![Warning::OutdatedFiles] });
}

pub(crate) fn end_connections(server: &RedisServer) {
    server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
pub(crate) fn values_in_code_do_what_files_do() {
    let own = Certificates::own(NAMES, |_| {});
    let server = ServerOptions::new().tls(&own, "yes").start();
    let read = |file| std::fs::read(file).unwrap();
    let tls = Tls::builder().root_pem(&read(own.root())).unwrap();
    let tls = tls.client_pem(&read(own.certificate()), &read(own.key())).unwrap().build().unwrap();
    let config = Config::builder([format!("rediss://{}", server.address())]).tls(tls).build().unwrap();
    let shown = format!("{config:?}");
    let locker = quorlock_blocking::open(config).unwrap();
    assert!(locker.lock("job").wait().is_ok());
    no_secret_in(
        &own,
        &format!("{shown} {locker:?} {:?}", Tls::builder().client_files(own.certificate(), own.key())),
    );
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
pub(crate) fn a_dangerous_option_warns_and_works() {
    let other = Certificates::own(NAMES, |_| {});
    let server = ServerOptions::new().tls(&other, "no").start();
    let tls = Tls::builder().dangerous().accept_any_certificate().build().unwrap();
    let config = Config::builder([format!("rediss://{}", server.address())]).tls(tls).build().unwrap();
    assert!(quorlock_blocking::open(config).unwrap().lock("job").wait().is_ok());
}

fn no_secret_in(certificates: &Certificates, text: &str) {
    for line in
        std::fs::read_to_string(certificates.key()).unwrap().lines().filter(|line| !line.starts_with('-'))
    {
        assert!(!text.contains(&line[..line.len().min(16)]), "{text}");
    }
}
