//! How locks pass from holder to holder, in our ways and in others, as ratios to bare
//! sockets.
//!
//! `bench handoff [ROUNDS [SCENARIOS]]`, with scenarios such as `AC`; by default all.
//! `tests/README.md` says what they are. The ways take turns in each round, so that any other load
//! of the machine affects all of them.

mod crowd;
mod gates;
mod helper;
mod killed;
mod means;
mod pace;
mod raw;
mod requests;
mod turns;
mod way;
mod work;

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use quorlock_tests::{Fleet, RedisServer, Servers, Summary, masters};

use crowd::Crowd;
pub(crate) use gates::is_row;
use helper::Helper;
use killed::{Story, Waiters};
pub(crate) use requests::Requests;
use turns::Figures;
pub(crate) use turns::Turn;
use way::{FAIR, PLAIN, WAYS, Way};
use work::Workers;

use crate::record::{self, Record};

const KILLED_HOLDERS: usize = 10;
/// Far longer than a release takes, and far shorter than the TTL of a key that would be left.
const UNTIL_GONE: Duration = Duration::from_millis(500);

/// The argument before all others of this benchmark.
pub(crate) const NAME: &str = "handoff";
/// The letters of all scenarios.
pub(crate) const SCENARIOS: &str = "ARBFPCKDG";
/// The one whose rows have names.
pub(crate) const ROWS: &str = "G";
const MASTERS: [usize; 2] = [3, 5];

/// The main function of a helper's process, if this is one.
pub(crate) fn is_helper(arguments: impl Iterator<Item = String>) -> bool {
    let mut arguments = arguments.peekable();
    let is_one = arguments.next_if(|first| first == helper::HELPER).is_some();
    if is_one {
        helper::main(arguments).expect("the process that gives orders reads the answers");
    }
    is_one
}

/// Measures the scenarios of these letters, or only some rows.
pub(crate) fn main(rounds: usize, scenarios: &str, rows: &str, record: &mut Record) {
    assert_eq!(Servers::chosen(), Servers::Real, "this measures real servers");
    for count in MASTERS {
        let masters = masters(count);
        let floor = if scenarios.contains('A') {
            hand_offs(record, "A", &masters, rounds, WAYS.iter().collect(), Workers::threads, None)
        } else {
            None
        };
        if scenarios.contains('R') {
            hand_offs(record, "R", &masters, rounds, WAYS.iter().collect(), Workers::resting_threads, None);
        }
        if scenarios.contains('B') {
            hand_offs(record, "B", &masters, rounds, clients(), Workers::processes, floor);
        }
        if scenarios.contains('F') {
            queues(record, &masters, rounds);
        }
        if scenarios.contains('P') {
            pace::main(record, &masters, rounds);
        }
        if scenarios.contains('C') {
            killed_holders(record, &masters);
        }
        if scenarios.contains('K') {
            killed_waiters(record, &masters, rounds);
        }
        if scenarios.contains('D') {
            crowds(record, count);
        }
    }
    if scenarios.contains(ROWS) {
        gates::main(record, rounds, rows);
    }
}

/// How many processes take turns in one queue.
const QUEUES: [(&str, usize); 4] = [("F2", 2), ("F3", 3), ("F8", 8), ("F32", 32)];

/// Fair waiting compared with the default, among few processes and many.
fn queues(record: &mut Record, masters: &Fleet, rounds: usize) {
    let program = std::env::current_exe().expect("this program has a name");
    for (name, count) in QUEUES {
        let ways = [PLAIN, FAIR].into_iter().filter_map(Way::named).collect();
        let start = |way: &Way, masters: &[SocketAddr]| Workers::processes_of(&program, way, masters, count);
        hand_offs(record, name, masters, rounds, ways, start, None);
    }
}

fn clients() -> Vec<&'static Way> {
    WAYS.iter().filter(|way| way.is_a_client()).collect()
}

fn addresses(masters: &[RedisServer]) -> Vec<SocketAddr> {
    masters.iter().map(RedisServer::address).collect()
}

/// Measures workers in each way. Returns the gaps of the floor, if it was one of the ways.
fn hand_offs(
    record: &mut Record,
    scenario: &str,
    masters: &Fleet,
    rounds: usize,
    ways: Vec<&Way>,
    start: impl Fn(&Way, &[SocketAddr]) -> Workers,
    mut floor: Option<Gaps>,
) -> Option<Gaps> {
    let addresses = addresses(masters);
    let mut trials: Vec<_> = ways.into_iter().map(|way| (way, start(way, &addresses), Vec::new())).collect();
    for _ in 0..rounds {
        for (_, workers, figures) in &mut trials {
            figures.push(workers.round());
        }
    }
    let columns = [
        "gap_p50_us",
        "p50_to_raw",
        "gap_p99_us",
        "p99_to_raw",
        "requests",
        "to_another",
        "busiest",
        "longest",
        "passed_over",
        "turns/s",
    ];
    record.header(&columns);
    for (way, workers, figures) in &mut trials {
        let gaps = Gaps::of(figures);
        if !way.is_a_client() {
            floor = Some(gaps);
        }
        let to_raw = |gap: fn(&Gaps) -> Duration| {
            floor.map_or_else(
                || "-".to_owned(),
                |floor| format!("{:.2}", gap(&gaps).as_secs_f64() / gap(&floor).as_secs_f64()),
            )
        };
        let cells = [
            record::micros(gaps.p50),
            to_raw(|gaps| gaps.p50),
            record::micros(gaps.p99),
            to_raw(|gaps| gaps.p99),
            format!("{:.1}", workers.requests(masters)),
            format!("{:.2}", median(figures.iter().map(|figures| figures.changes))),
            format!("{:.2}", median(figures.iter().map(|figures| figures.busiest))),
            // This figure is the worst of all rounds instead of the median.
            format!("{:.2}", figures.iter().map(|figures| figures.longest_wait).fold(0.0, f64::max)),
            figures.iter().map(|figures| figures.passed_over).max().unwrap_or_default().to_string(),
            format!("{:.0}", median(figures.iter().map(|figures| figures.per_second))),
        ];
        record.row(scenario, masters.len(), way.name, &cells);
    }
    floor
}

/// The medians over rounds.
#[derive(Clone, Copy)]
struct Gaps {
    p50: Duration,
    p99: Duration,
}

impl Gaps {
    fn of(rounds: &[Figures]) -> Self {
        let over = |gap: fn(&Summary) -> Duration| {
            Summary::of(&rounds.iter().map(|figures| gap(&figures.gaps)).collect::<Vec<_>>()).p50
        };
        Self { p50: over(|gaps| gaps.p50), p99: over(|gaps| gaps.p99) }
    }
}

pub(crate) fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

fn killed_holders(record: &mut Record, masters: &Fleet) {
    let addresses = addresses(masters);
    let mut trials: Vec<_> =
        clients().into_iter().map(|way| (way, Waiters::start(way, masters, &addresses))).collect();
    for _ in 0..KILLED_HOLDERS {
        trials.iter_mut().for_each(|(_, waiters)| waiters.round());
    }
    record.header(&["first_p50_ms", "first_max_ms", "both_p50_ms", "both_max_ms"]);
    for (way, waiters) in &trials {
        let (first, both) = (Summary::of(&waiters.first), Summary::of(&waiters.both));
        let cells = [first.p50, first.max, both.p50, both.max].map(record::millis);
        record.row("C", masters.len(), way.name, &cells);
    }
}

/// How many fair waiters are killed at once.
const KILLED_WAITERS: [usize; 3] = [1, 10, 100];

fn killed_waiters(record: &mut Record, masters: &Fleet, rounds: usize) {
    let (addresses, fair) = (addresses(masters), Way::named(FAIR).expect("a way"));
    record.header(&["stall_p50_ms", "stall_max_ms", "rounds"]);
    for waiters in KILLED_WAITERS {
        let story = Story { holder: PLAIN, hold: Duration::ZERO, killed: waiters };
        let start = || Helper::start(fair, &addresses);
        let stall = |_| killed::stall(masters, &addresses, start, true, story);
        let stalls = Summary::of(&(0..rounds).map(stall).collect::<Vec<_>>());
        let cells = [record::millis(stalls.p50), record::millis(stalls.max), stalls.count.to_string()];
        record.row(&format!("K{waiters}"), masters.len(), FAIR, &cells);
    }
}

/// Measures crowds. Each way has its own masters and its own process.
fn crowds(record: &mut Record, count: usize) {
    let columns = [
        "waiter_bytes",
        "served",
        "in_order",
        "millis",
        "served_rest",
        "rest_in_order",
        "rest_millis",
        "keys_left",
    ];
    record.header(&columns);
    for way in clients() {
        let masters = masters(count);
        let mut helper = Helper::start(way, &addresses(&masters));
        let Crowd { bytes, all, rest } = helper.crowd();
        let yes = |is_so: bool| if is_so { "yes" } else { "no" }.to_owned();
        let cells = [
            bytes.to_string(),
            all.count.to_string(),
            yes(all.in_order),
            all.millis.to_string(),
            rest.count.to_string(),
            yes(rest.in_order),
            rest.millis.to_string(),
            keys_left(&masters).to_string(),
        ];
        record.row("D", count, way.name, &cells);
    }
}

/// Counts the keys that are left after all releases have had enough time.
fn keys_left(masters: &[RedisServer]) -> i64 {
    thread::sleep(UNTIL_GONE);
    masters.iter().filter_map(|master| master.command(&["DBSIZE"]).int()).sum()
}
