//! A sample of the table of votes on real servers. The whole table is `cargo xtask votes`; on the
//! model of a master it runs with the simulator's tests. The variable `QUORLOCK_VOTES_SEED` chooses
//! another sample.

use quorlock_tests::Random;

use crate::servers::RealServers;
use crate::votes::{History, Setting, Table, live};

/// Lives in which more was counted once than the rule allows.
const FAULTY_ONCE: [(History, Setting); 3] = [
    (History::RebuiltFromAnother, Setting::Replicas),
    (History::KeysPutBackByHand, Setting::Guard),
    (History::TwoAddressesWithoutInfo, Setting::Plain),
];

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn real_servers_count_no_more_than_the_rule_for_a_vote_allows() {
    let seed = std::env::var("QUORLOCK_VOTES_SEED").map_or(1, |seed| seed.parse().unwrap());
    let any: Vec<_> = Table::all().collect();
    let chosen = FAULTY_ONCE.into_iter().chain([*Random::new(seed).of_all(&any)]);
    let live = |(history, setting)| std::thread::spawn(move || live::<RealServers>(history, setting));
    let lives: Vec<_> = chosen.map(live).collect();
    let table = Table::new(lives.into_iter().map(|life| life.join().unwrap()));
    println!("seed {seed}\n{table}");
    assert_eq!(table.wrong(), Vec::<String>::new());
    assert!(table.size()[0] > 0, "no life was lived");
}
