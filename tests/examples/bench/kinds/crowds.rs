//! Many processes that want the same names: batches that overlap, a writer among readers, permits.

use std::net::SocketAddr;
use std::time::Duration;

use quorlock_tests::chaos::history::now;
use quorlock_tests::{Fleet, Random, RedisServer, Summary};

use super::kind::{Held, Kind};
use super::middle;
use super::worker::{self, RESOURCE, Work, Worker};
use crate::handoff::{Requests, Turn};
use crate::record::{self, Record};

const SPAN: Duration = Duration::from_secs(2);
/// The time before the start, so that all begin at once.
const UNTIL_START: Duration = Duration::from_millis(20);

fn addresses(masters: &Fleet) -> Vec<SocketAddr> {
    masters.iter().map(RedisServer::address).collect()
}

fn start(count: usize, addresses: &[SocketAddr]) -> Vec<Worker> {
    (0..count).map(|_| Worker::start(addresses)).collect()
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).expect("a short span")
}

/// The turns of all workers, a list for each, and the span.
fn round(workers: &mut [Worker], kind: Kind, threads: usize, hold: Duration) -> (Vec<Vec<Turn>>, u64, u64) {
    let start = now() + nanos(UNTIL_START);
    let end = start + nanos(SPAN);
    for worker in workers.iter_mut() {
        worker.work(Work { kind, threads, start, end, hold, rest: Duration::ZERO });
    }
    (workers.iter_mut().map(Worker::turns).collect(), start, end)
}

/// Requests for each turn, in a round that is not timed.
fn requests(masters: &Fleet, workers: &mut [Worker], kind: Kind, hold: Duration) -> f64 {
    let requests = Requests::count(masters);
    let (turns, ..) = round(workers, kind, 1, hold);
    requests.end() as f64 / turns.iter().map(Vec::len).sum::<usize>().max(1) as f64
}

fn longest_wait(turns: &[Vec<Turn>]) -> Duration {
    let waits = turns.iter().flatten().map(|turn| turn.granted - turn.asked);
    Duration::from_nanos(waits.max().unwrap_or_default())
}

/// Eight processes, each of which takes three of ten names at a time.
pub(crate) fn batches(record: &mut Record, masters: &Fleet, rounds: usize) {
    let addresses = addresses(masters);
    let mut workers = start(8, &addresses);
    let (kind, hold) = (Kind::Several { names: 3, of: 10 }, Duration::from_millis(1));
    let (mut longest, mut pace) = (Duration::ZERO, Vec::new());
    for _ in 0..rounds {
        let (turns, ..) = round(&mut workers, kind, 1, hold);
        longest = longest.max(longest_wait(&turns));
        pace.push(turns.iter().map(Vec::len).sum::<usize>() as f64 / SPAN.as_secs_f64());
    }
    let pace = middle(pace.into_iter());
    let requests = requests(masters, &mut workers, kind, hold);
    record.header(&["requests", "longest_ms", "turns/s"]);
    let cells = [format!("{requests:.1}"), record::millis(longest), format!("{pace:.0}")];
    record.row("B", masters.len(), "3 of 10, 8", &cells);
}

/// Thirty-two readers in eight processes that leave no gap, and a writer that arrives sometimes.
pub(crate) fn a_writer_among_readers(record: &mut Record, masters: &Fleet, rounds: usize) {
    let addresses = addresses(masters);
    let hold = Duration::from_millis(50);
    let (mut readers, mut writer) = (start(8, &addresses), Worker::start(&addresses));
    let (mut waits, mut behind, mut reads) = (Vec::new(), Vec::new(), 0);
    for _ in 0..rounds {
        let start = now() + nanos(UNTIL_START);
        let end = start + nanos(SPAN);
        for reader in &mut readers {
            reader.work(Work { kind: Kind::Read, threads: 4, start, end, hold, rest: Duration::ZERO });
        }
        // The writer starts while all readers read, and ends before they do.
        let (start, end) = (start + nanos(hold), end - nanos(hold) * 4);
        let rest = Duration::from_millis(73);
        writer.work(Work { kind: Kind::Lock, threads: 1, start, end, hold: Duration::from_millis(1), rest });
        let read: Vec<Turn> = readers.iter_mut().flat_map(Worker::turns).collect();
        reads += read.len();
        for turn in writer.turns() {
            waits.push(Duration::from_nanos(turn.granted - turn.asked));
            // The end of the last reader that was let in before the writer.
            let last = read.iter().filter(|read| read.granted < turn.granted).map(|read| read.released).max();
            if let Some(last) = last.filter(|last| *last > turn.asked) {
                behind.push(Duration::from_nanos(turn.granted.saturating_sub(last)));
            }
            let together =
                read.iter().find(|read| read.granted < turn.released && turn.granted < read.released);
            assert!(together.is_none(), "a reader and the writer: {together:?}, {turn:?}");
        }
    }
    let beyond: Vec<_> = waits.iter().map(|wait| wait.saturating_sub(hold)).collect();
    let (beyond, behind) = (Summary::of(&beyond), Summary::of(&behind));
    record.header(&["beyond_p50", "beyond_p99", "behind_p50", "behind_p99", "writes", "reads"]);
    let mut cells: Vec<_> =
        [beyond.p50, beyond.p99, behind.p50, behind.p99].map(record::millis).into_iter().collect();
    cells.extend([beyond.count.to_string(), reads.to_string()]);
    record.row("W", masters.len(), "32 readers", &cells);
}

/// Processes that want one of four permits.
pub(crate) fn permits(record: &mut Record, masters: &Fleet, rounds: usize) {
    let hold = Duration::from_millis(2);
    record.header(&PERMIT_COLUMNS);
    for count in [4, 8, 32] {
        let crowd = Crowd { permits: 4, free: 4, count, hold };
        record.row("P", masters.len(), &format!("{count} processes"), &crowd.measure(masters, rounds));
    }
}

/// Processes that want the only free permit of many: a look at all of them takes several windows.
pub(crate) fn the_last_permit(record: &mut Record, masters: &Fleet, rounds: usize) {
    let locker = worker::open(&addresses(masters));
    let hold = Duration::from_millis(1);
    record.header(&PERMIT_COLUMNS);
    for permits in [64, 65, 128, 1_024] {
        let kind = Kind::Permit { of: permits };
        let mut random = Random::new(u64::from(permits));
        let mut held: Vec<Held> =
            (0..permits).map(|_| kind.take_for(HELD_FOR, &locker, RESOURCE, &mut random)).collect();
        held.swap_remove(0).give_back();
        for count in [2, 4, 8] {
            let crowd = Crowd { permits, free: 1, count, hold };
            let row = format!("1 of {permits}, {count}");
            record.row("F", masters.len(), &row, &crowd.measure(masters, rounds));
        }
        held.into_iter().for_each(Held::give_back);
    }
}

const PERMIT_COLUMNS: [&str; 6] = ["requests", "in_use", "longest", "longest_ms", "most_at_once", "turns/s"];
/// The TTL of the permits that are held all the time: longer than any measurement.
const HELD_FOR: Duration = Duration::from_secs(3_600);

/// Processes that want one of some permits.
struct Crowd {
    permits: u32,
    /// How many of them nobody else holds.
    free: u32,
    count: usize,
    hold: Duration,
}

impl Crowd {
    fn measure(&self, masters: &Fleet, rounds: usize) -> [String; PERMIT_COLUMNS.len()] {
        let kind = Kind::Permit { of: self.permits };
        let mut workers = start(self.count, &addresses(masters));
        let (mut used, mut longest, mut shares, mut most, mut pace) =
            (Vec::new(), Duration::ZERO, 0.0_f64, 0, Vec::new());
        for _ in 0..rounds {
            let (turns, start, end) = round(&mut workers, kind, 1, self.hold);
            let all: Vec<Turn> = turns.iter().flatten().copied().collect();
            let in_span = |turn: &Turn| turn.released.min(end).saturating_sub(turn.granted.max(start));
            let held: u64 = all.iter().map(in_span).sum();
            used.push(held as f64 / (f64::from(self.free) * nanos(SPAN) as f64));
            let share = nanos(SPAN) as f64 * self.count as f64 / all.len().max(1) as f64;
            let waited = longest_wait(&turns);
            longest = longest.max(waited);
            shares = shares.max(nanos(waited) as f64 / share);
            most = most.max(most_at_once(&all));
            pace.push(all.len() as f64 / SPAN.as_secs_f64());
        }
        assert!(most <= self.free as usize, "{most} held one of {} free permits", self.free);
        [
            format!("{:.1}", requests(masters, &mut workers, kind, self.hold)),
            format!("{:.2}", middle(used.into_iter())),
            format!("{shares:.2}"),
            record::millis(longest),
            most.to_string(),
            format!("{:.0}", middle(pace.into_iter())),
        ]
    }
}

/// How many turns were held at the same time, at most.
fn most_at_once(turns: &[Turn]) -> usize {
    let begins = turns.iter().map(|turn| turn.granted);
    begins
        .map(|at| turns.iter().filter(|turn| turn.granted <= at && at < turn.released).count())
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_simultaneous_holders_are_counted() {
        let turn = |granted, released| Turn { asked: 0, granted, released };
        assert_eq!(most_at_once(&[turn(0, 10), turn(5, 15), turn(10, 12), turn(20, 30)]), 2);
        assert_eq!(most_at_once(&[]), 0);
    }
}
