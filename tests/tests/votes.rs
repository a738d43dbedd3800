//! A sample of the table of votes on real servers. The whole table is `cargo xtask votes`; on the
//! model of a master it runs with the simulator's tests.

// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, unreachable_pub)]

#[path = "../shared/votes/servers.rs"]
mod servers;
#[path = "../shared/votes/mod.rs"]
mod votes;

use votes::{History, Setting, Table, live};

/// The lives in which a fault was found before, on real servers.
const SAMPLE: [(History, Setting); 4] = [
    (History::RebuiltFromAnother, Setting::Replicas),
    (History::RestartedFromAnOlderSnapshot, Setting::Replicas),
    (History::KeysPutBackByHand, Setting::Guard),
    (History::TwoAddressesWithoutInfo, Setting::Plain),
];

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn real_servers_with_these_histories_count_no_more_than_the_rule_allows() {
    let lives = SAMPLE
        .map(|(history, setting)| std::thread::spawn(move || live::<servers::Servers>(history, setting)));
    let table = Table::new(lives.map(|life| life.join().unwrap()));
    println!("{table}");
    table.check();
    assert!(table.size()[0] > 0, "no life was lived");
}
