//! A waiting writer and a reader that are killed, and how long others wait because of that.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use quorlock_tests::chaos::history::now;
use quorlock_tests::{Fleet, RedisServer, Summary};

use super::kind::Kind;
use super::worker::Worker;
use crate::record::{self, Record};

/// Deaths of each kind in a round.
const DEATHS: usize = 4;
/// The longest time until a waiting writer has left its mark.
const MARKED_WITHIN: Duration = Duration::from_secs(2);
const SHORT: Duration = Duration::from_millis(1);

pub(crate) fn main(record: &mut Record, masters: &Fleet, rounds: usize) {
    let addresses: Vec<_> = masters.iter().map(RedisServer::address).collect();
    record.header(&["p50_ms", "max_ms", "deaths"]);
    for (name, death) in [
        ("writer", a_waiting_writer as fn(&Fleet, &[SocketAddr], usize) -> Duration),
        ("reader", a_reader as fn(&Fleet, &[SocketAddr], usize) -> Duration),
    ] {
        let spans: Vec<_> = (0..rounds * DEATHS).map(|index| death(masters, &addresses, index)).collect();
        let spans = Summary::of(&spans);
        let cells = [record::millis(spans.p50), record::millis(spans.max), spans.count.to_string()];
        record.row("D", masters.len(), name, &cells);
    }
}

/// For how long a new reader waits because of a writer that died while it waited.
fn a_waiting_writer(masters: &Fleet, addresses: &[SocketAddr], index: usize) -> Duration {
    let resource = format!("of-a-dead-writer-{index}");
    let [mut inside, mut writer, mut reader] = [(); 3].map(|()| Worker::start(addresses));
    inside.keep(Kind::Read, &resource, Duration::from_secs(5));
    inside.granted();
    writer.keep(Kind::Lock, &resource, SHORT);
    let mark = format!("quorlock:want/{{{resource}}}");
    let until = Instant::now() + MARKED_WITHIN;
    while masters.iter().filter(|master| master.exists(&mark)).count() <= masters.len() / 2 {
        assert!(Instant::now() < until, "a waiting writer leaves its mark");
    }
    // The writer is killed at different times between two renewals of its mark.
    thread::sleep(Duration::from_millis(u64::try_from(index).unwrap_or(0) * 137 % 500));
    writer.kill();
    let killed = now();
    reader.keep(Kind::Read, &resource, SHORT);
    Duration::from_nanos(reader.granted().saturating_sub(killed))
}

/// How long after the end of a killed reader a waiting writer has the lock.
fn a_reader(masters: &Fleet, addresses: &[SocketAddr], index: usize) -> Duration {
    let resource = format!("of-a-dead-reader-{index}");
    let [mut reader, mut writer] = [(); 2].map(|()| Worker::start(addresses));
    reader.keep(Kind::ShortRead, &resource, Duration::from_secs(5));
    reader.granted();
    let end = end(masters, &resource);
    writer.keep(Kind::Lock, &resource, SHORT);
    thread::sleep(Duration::from_millis(100));
    reader.kill();
    // Redis reports the remaining life of a key in whole milliseconds, so a grant may seem to come
    // before the end of the key.
    Duration::from_nanos(writer.granted().saturating_sub(end))
}

/// When the key will have expired on a majority.
fn end(masters: &Fleet, resource: &str) -> u64 {
    let end = |master: &RedisServer| now() + u64::try_from(master.pttl(resource)).unwrap_or(0) * 1_000_000;
    let mut ends: Vec<u64> = masters.iter().map(end).collect();
    ends.sort_unstable();
    ends.get(masters.len() / 2).copied().expect("a majority")
}
