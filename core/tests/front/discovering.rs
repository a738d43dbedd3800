//! Masters behind Sentinels and in clusters: which connections are opened, and which logins are
//! used.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quorlock_core::{Address, Config, Endpoint, Login, MasterState};

use super::driver::Driver;

/// The answer of a sentinel that names `host`, port 7, and knows no other sentinels.
fn names(host: &str) -> String {
    format!("*2\r\n${}\r\n{host}\r\n$1\r\n7\r\n*0\r\n", host.len())
}

#[test]
fn the_server_that_a_sentinel_names_is_opened_and_logged_in_to_and_counts_as_one_connection() {
    let asked = Arc::new(AtomicUsize::new(0));
    let provider = {
        let asked = Arc::clone(&asked);
        move |_: &Endpoint| {
            asked.fetch_add(1, Ordering::Relaxed);
            Ok(Login::new("pw"))
        }
    };
    let config = Config::builder(["redis+sentinel://a,b/m?failover=durable"]).credentials(provider);
    let (locker, driver) = Driver::over(config.build().unwrap(), true);
    driver.with_master(0, |master| master.set_password(Some("pw")));
    // There is no model of a sentinel, so the test gives its answers.
    driver.hush(0, true);
    driver.turn();
    driver.hears(0, names("s").as_bytes());
    assert_eq!(asked.load(Ordering::Relaxed), 0, "the login is the master's, not the sentinel's");
    driver.hush(0, false);
    driver.settle();

    assert_eq!(driver.destinations(0), ["a:26379", "s:7"]);
    assert_eq!(locker.masters()[0].1, MasterState::Ready { warnings: Vec::new() });
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let master = &locker.report().masters[0];
    assert_eq!((master.connections_asked_for, master.reconnects), (1, 0));
}

#[test]
fn servers_are_reached_where_the_map_says_and_a_map_that_panics_changes_nothing() {
    let map = |named: &Address| match named.to_string().as_str() {
        "a:26379" => Address::Tcp { host: "outside".into(), port: 1 },
        "unknown:7" => panic!("a map that panics, on purpose"),
        _ => named.clone(),
    };
    for (host, reached) in [("s", "s:7"), ("unknown", "unknown:7")] {
        let config = Config::builder(["redis+sentinel://a/m?failover=durable"]).address_map(map);
        let (_locker, driver) = Driver::over(config.build().unwrap(), true);
        driver.hush(0, true);
        driver.turn();
        driver.hears(0, names(host).as_bytes());
        driver.turn();
        assert_eq!(driver.destinations(0), ["outside:1", reached]);
    }
}
