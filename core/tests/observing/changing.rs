//! Logins and servers that change.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quorlock_core::{Config, Endpoint, Login};
use quorlock_sim::Master;
use tracing::Level;

use super::driver::{Driver, ms};
use super::observed;
use super::toy_channel::{Toy, Toys};

#[test]
fn another_server_in_a_masters_place_is_reported() {
    observed(|capture| {
        let (locker, driver) = Driver::start(1);
        let mut other = Master::new(9);
        let mut session = other.accept();
        let _ = other.serve(&mut session, b"PING\r\n", Duration::ZERO, &mut Vec::new());
        driver.pass(ms(60_000));
        driver.settle();
        locker.lock("job").wait().unwrap().release().wait().unwrap();
        assert!(capture.events("quorlock.master.other_server").is_empty());

        driver.with_master(0, |master| *master = other);
        driver.lose(0);
        driver.settle();

        let told = capture.events("quorlock.master.other_server");
        assert_eq!((told[0].level, told[0].field("quorlock.warning")), (Level::WARN, "OtherServer"));
        assert_eq!(told[0].field("server.address"), "master0");
        assert_eq!(capture.events("quorlock.master.quarantined").len(), 1);
    });
}

#[test]
fn changed_files_that_cannot_be_used_are_reported() {
    observed(|capture| {
        let toy = Arc::new(Toy::default());
        let config = Config::builder(["rediss://master0"]).tls(Toys(Arc::clone(&toy))).build().unwrap();
        toy.has_outdated_files.store(true, Ordering::SeqCst);
        let (_locker, driver) = Driver::over(config, true);
        driver.settle();
        let told = capture.events("quorlock.master.outdated_files");
        assert_eq!((told[0].level, told[0].field("quorlock.warning")), (Level::WARN, "OutdatedFiles"));
        assert!(capture.events("quorlock.master.denied").is_empty());
        driver.end();
    });
}

#[test]
fn no_login_is_shown_in_events() {
    observed(|capture| {
        let login = |_: &Endpoint| Ok(Login::new("geheim").with_user("someone"));
        let config = Config::builder(["redis://master0"]).credentials(login).build().unwrap();
        let (locker, driver) = Driver::over(config, true);
        driver.settle();
        assert_eq!(locker.reauthenticate(), Ok(()));
        driver.settle();
        let told = format!("{:?}", capture.0.lock().unwrap());
        assert!(told.contains("refused the login: wrong user or password (WRONGPASS)"), "{told}");
        for secret in ["geheim", "someone"] {
            assert!(!told.contains(secret), "{secret} in {told}");
        }
    });
}
