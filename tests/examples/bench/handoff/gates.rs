//! Gates of waiting: how processes that wait for one lock take turns, by default and with
//! `.fair()`. They are few or many, near or far, or beside clients of another kind; or some of them
//! are killed.
//!
//! If `QUORLOCK_BENCH_BEFORE` names another build of this program, its default is measured beside
//! these. That build must know the orders of this one: take this benchmark with the older library.

use std::path::PathBuf;
use std::time::Duration;

use quorlock_tests::chaos::history::now;
use quorlock_tests::{RedisServer, Summary, masters};

use super::helper::Helper;
use super::killed::{self, Story};
use super::requests::Requests;
use super::turns::{Figures, Span, Turn};
use super::way::{FAIR, PLAIN, Way};
use super::work::nanos;
use super::{Gaps, addresses, median, pace};
use crate::record::{self, Record};

/// Processes that do the same.
#[derive(Clone, Copy)]
struct Party {
    count: usize,
    threads: usize,
    /// How they take turns, see [`Gate`](super::means::Gate).
    means: &'static str,
    /// How long they hold the lock, in milliseconds.
    hold: u64,
    /// The round trip to the masters, in milliseconds.
    far: u64,
}

const fn party(count: usize, hold: u64) -> Party {
    Party { count, threads: 1, means: "lock", hold, far: 0 }
}

/// Parties that take turns with one lock. If there are two, the second one is the *other* party.
struct Row {
    name: String,
    masters: usize,
    span: Duration,
    parties: Vec<Party>,
}

/// A row with a span that is long enough for all workers to have several turns.
fn row(name: impl Into<String>, parties: impl Into<Vec<Party>>) -> Row {
    let (name, parties) = (name.into(), parties.into());
    let turns: u64 = parties.iter().map(|party| party.hold * party.count as u64).sum();
    Row { name, masters: 3, span: Duration::from_millis(1_000 + 3 * turns), parties }
}

/// The rows, by what is shown of them.
fn rows() -> [(&'static [Column], Vec<Row>); 3] {
    let turns = |count, hold, far| {
        row(format!("turns-{count}-hold-{hold}-far-{far}"), [Party { far, ..party(count, hold) }])
    };
    let mut alike = Vec::new();
    for (hold, far) in [(1, 0), (1, 2), (20, 0), (20, 2)] {
        alike.extend([2, 3, 4, 8, 32].map(|count| turns(count, hold, far)));
    }
    alike.extend([16, 100].map(|count| turns(count, 1, 0)));
    alike.extend([2, 8, 32].map(|count| Row { masters: 5, ..turns(count, 1, 0) }));
    alike.push(row("kept", [Party { means: "kept", ..party(3, 1) }]));
    alike.push(row("hand-over", [Party { threads: 2, means: "hand-over", ..party(3, 1) }]));

    let mut near = Vec::new();
    for hold in [20, 50, 1_200] {
        let pair = |far| [party(1, hold), Party { far, ..party(1, hold) }];
        near.extend([1, 5, 20].map(|far| row(format!("near-hold-{hold}-far-{far}"), pair(far))));
    }

    let impatient = Party { threads: 8, means: "impatient", ..party(1, 50) };
    let beside = |means| row(format!("beside-{means}"), [party(3, 1), Party { means, ..party(1, 1) }]);
    let long = |row| Row { span: Duration::from_secs(6), ..row };
    let mixed = vec![
        row("far-none", [party(3, 5)]),
        long(row("far-250", [party(3, 5), Party { far: 250, ..party(1, 5) }])),
        long(row("impatient", [party(6, 50), impatient])),
        beside("foreign"),
        beside("batch"),
        beside("plain"),
        beside("read"),
    ];
    [(ALIKE, alike), (NEAR, near), (MIXED, mixed)]
}

/// How often waiters are killed.
const KILLS: usize = 10;

/// Rows in which waiters are killed.
const KILLED: [(&str, Story); 4] = [
    ("killed-behind-plain", Story { holder: PLAIN, hold: Duration::ZERO, killed: 1 }),
    ("killed-behind-fair", Story { holder: FAIR, hold: Duration::ZERO, killed: 1 }),
    ("killed-hold-2000", Story { holder: FAIR, hold: Duration::from_secs(2), killed: 1 }),
    ("killed-10", Story { holder: FAIR, hold: Duration::ZERO, killed: 10 }),
];

/// Whether a row's name begins with these words.
fn is_chosen(name: &str, words: &str) -> bool {
    words.is_empty() || name.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Whether the name of any row begins so.
pub(crate) fn is_row(words: &str) -> bool {
    let rows = rows();
    let names = rows.iter().flat_map(|(_, rows)| rows).map(|row| row.name.as_str());
    names.chain(KILLED.map(|(name, _)| name)).any(|name| is_chosen(name, words))
}

/// A way, and the build of this program that takes it.
struct Runner {
    name: &'static str,
    way: &'static Way,
    program: PathBuf,
}

fn runners() -> Vec<Runner> {
    let this = std::env::current_exe().expect("this program has a name");
    let runner = |name, way, program| Runner { name, way: Way::named(way).expect("a way"), program };
    let before = pace::before().map(|program| runner("before", PLAIN, program));
    before.into_iter().chain([PLAIN, FAIR].map(|way| runner(way, way, this.clone()))).collect()
}

/// Measures the rows whose names begin with these words.
pub(crate) fn main(record: &mut Record, rounds: usize, words: &str) {
    for (columns, mut rows) in rows() {
        rows.retain(|row| is_chosen(&row.name, words));
        if !rows.is_empty() {
            record.header(&columns.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        }
        rows.iter().for_each(|row| row.measure(record, columns, rounds));
    }
    let killed: Vec<_> = KILLED.iter().filter(|(name, _)| is_chosen(name, words)).collect();
    if !killed.is_empty() {
        record.header(&["stall_p50_ms", "stall_max_ms"]);
    }
    killed.iter().for_each(|(name, story)| kill(record, name, *story));
}

fn kill(record: &mut Record, name: &str, story: Story) {
    let masters = masters(3);
    let addresses = addresses(&masters);
    let mut trials: Vec<_> = runners().into_iter().map(|runner| (runner, Vec::new())).collect();
    for _ in 0..KILLS {
        for (runner, stalls) in &mut trials {
            let start = || Helper::of(&runner.program, runner.way, &addresses);
            stalls.push(killed::stall(&masters, &addresses, start, runner.way.name == FAIR, story));
        }
    }
    for (runner, stalls) in &trials {
        let stalls = Summary::of(stalls);
        let cells = [stalls.p50, stalls.max].map(record::millis);
        record.row(&format!("G {name}"), masters.len(), runner.name, &cells);
    }
}

impl Row {
    fn measure(&self, record: &mut Record, columns: &[Column], rounds: usize) {
        let masters = masters(self.masters);
        let addresses = addresses(&masters);
        let others = match self.parties.as_slice() {
            [_, other] => other.count * other.threads,
            _ => 0,
        };
        let mut trials: Vec<Trial> = Vec::new();
        for runner in runners() {
            let start = |party: &Party| {
                let start = |_| Helper::far(&runner.program, runner.way, &addresses, party.far);
                (*party, (0..party.count).map(start).collect())
            };
            let parties = self.parties.iter().map(start).collect();
            let name = runner.name;
            trials.push(Trial {
                name,
                parties,
                others,
                rounds: Vec::new(),
                scripts: Vec::new(),
                requests: 0.0,
            });
        }
        for _ in 0..rounds {
            trials.iter_mut().for_each(|trial| trial.round(&masters, self.span));
        }
        if columns.iter().any(|(name, _)| *name == "requests") {
            trials.iter_mut().for_each(|trial| trial.count_requests(&masters, self.span));
        }
        for trial in &trials {
            let first = trials.first().unwrap_or(trial);
            let cells: Vec<_> = columns.iter().map(|(_, cell)| cell(trial, first)).collect();
            record.row(&format!("G {}", self.name), masters.len(), trial.name, &cells);
        }
    }
}

/// The time before the start, so that all processes have read their orders.
const UNTIL_START: Duration = Duration::from_millis(300);

/// What one way's processes did in all rounds.
struct Trial {
    name: &'static str,
    parties: Vec<(Party, Vec<Helper>)>,
    /// How many workers the other party has.
    others: usize,
    rounds: Vec<Figures>,
    /// Microseconds that scripts took on all masters for each turn, in each round.
    scripts: Vec<f64>,
    /// Requests for each turn, in a round that is not timed.
    requests: f64,
}

impl Trial {
    fn turns(&mut self, span: Duration) -> (Vec<Vec<Turn>>, Span) {
        let start = now() + nanos(UNTIL_START);
        let end = start + nanos(span);
        for (party, helpers) in &mut self.parties {
            let Party { hold, threads, means, .. } = party;
            let order = format!("gate {} {start} {end} {hold} {threads} {means}", self.name);
            helpers.iter_mut().for_each(|helper| helper.tell(&order));
        }
        let mut workers = Vec::new();
        for (party, helpers) in &mut self.parties {
            for helper in helpers {
                workers.extend((0..party.threads).map(|_| helper.turns()));
            }
        }
        (workers, Span { start, end, rest: 0 })
    }

    fn round(&mut self, masters: &[RedisServer], span: Duration) {
        let before = script_micros(masters);
        let (workers, span) = self.turns(span);
        let micros = script_micros(masters) - before;
        self.scripts.push(micros as f64 / all(&workers));
        self.rounds.push(Figures::of(&workers, span));
    }

    fn count_requests(&mut self, masters: &[RedisServer], span: Duration) {
        let requests = Requests::count(masters);
        let (workers, _) = self.turns(span);
        self.requests = requests.end() as f64 / all(&workers);
    }

    fn of(&self, figure: fn(&Figures) -> f64) -> f64 {
        median(self.rounds.iter().map(figure))
    }

    /// The worst of all rounds.
    fn worst(&self, figure: impl Fn(&Figures) -> f64) -> f64 {
        self.rounds.iter().map(figure).fold(0.0, f64::max)
    }

    fn shares(&self) -> Shares {
        let mut turns: Vec<usize> = Vec::new();
        for round in &self.rounds {
            turns.resize(round.turns.len(), 0);
            turns.iter_mut().zip(&round.turns).for_each(|(sum, count)| *sum += count);
        }
        Shares::of(&turns, self.others)
    }
}

fn all(workers: &[Vec<Turn>]) -> f64 {
    workers.iter().map(Vec::len).sum::<usize>().max(1) as f64
}

/// How long scripts have taken on these masters, with the commands in them.
fn script_micros(masters: &[RedisServer]) -> u64 {
    let taken = |master: &RedisServer| -> u64 {
        let info = master.command(&["INFO", "commandstats"]);
        let lines = info.text().expect("INFO answers text").lines();
        let scripts = lines.filter(|line| line.starts_with("cmdstat_eval"));
        let micros = scripts.filter_map(|line| line.split(',').find_map(|part| part.strip_prefix("usec=")));
        micros.filter_map(|micros| micros.parse::<u64>().ok()).sum()
    };
    masters.iter().map(taken).sum()
}

/// How the workers shared the turns.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Shares {
    /// The turns of the busiest worker and of the one with the least, as multiples of a fair share.
    busiest: f64,
    least: f64,
    turnless: usize,
    /// The turns of the other party, also as a fraction of all turns, and as a multiple of its fair
    /// share.
    others: usize,
    part: f64,
    share: f64,
}

impl Shares {
    /// The last `others` workers are the other party.
    fn of(turns: &[usize], others: usize) -> Self {
        let all = turns.iter().sum::<usize>().max(1) as f64;
        let fair = all / turns.len().max(1) as f64;
        let theirs = turns.iter().rev().take(others).sum();
        Self {
            busiest: turns.iter().max().copied().unwrap_or_default() as f64 / fair,
            least: turns.iter().min().copied().unwrap_or_default() as f64 / fair,
            turnless: turns.iter().filter(|turns| **turns == 0).count(),
            others: theirs,
            part: theirs as f64 / all,
            share: theirs as f64 / fair / others.max(1) as f64,
        }
    }
}

/// A figure by its name, of a trial beside the first one of its row.
type Column = (&'static str, fn(&Trial, &Trial) -> String);

const PER_SECOND: Column = ("turns/s", |trial, _| format!("{:.0}", trial.of(|round| round.per_second)));
const LONGEST: Column = ("longest", |trial, _| format!("{:.2}", trial.worst(|round| round.longest_wait)));
const LEAST: Column = ("least", |trial, _| format!("{:.2}", trial.shares().least));

const ALIKE: &[Column] = &[
    ("gap_p50_us", |trial, _| record::micros(Gaps::of(&trial.rounds).p50)),
    ("gap_to_first", |trial, first| {
        let gap = |trial: &Trial| Gaps::of(&trial.rounds).p50.as_secs_f64();
        format!("{:.2}", gap(trial) / gap(first))
    }),
    LONGEST,
    ("busiest", |trial, _| format!("{:.2}", trial.shares().busiest)),
    LEAST,
    ("passed_over", |trial, _| format!("{:.0}", trial.worst(|round| round.passed_over as f64))),
    ("turnless", |trial, _| trial.shares().turnless.to_string()),
    ("requests", |trial, _| format!("{:.1}", trial.requests)),
    ("requests/s", |trial, _| format!("{:.0}", trial.requests * trial.of(|round| round.per_second))),
    PER_SECOND,
    ("script_us", |trial, _| format!("{:.0}", median(trial.scripts.iter().copied()))),
];

const NEAR: &[Column] = &[LEAST, LONGEST, PER_SECOND];

const MIXED: &[Column] = &[
    PER_SECOND,
    ("first_turns/s", |trial, _| {
        let first = 1.0 - trial.shares().part;
        format!("{:.1}", first * trial.of(|round| round.per_second))
    }),
    ("other_turns", |trial, _| trial.shares().others.to_string()),
    ("other_part", |trial, _| format!("{:.2}", trial.shares().part)),
    ("other_share", |trial, _| format!("{:.2}", trial.shares().share)),
    ("other_longest", |trial, _| {
        let longest =
            |round: &Figures| round.waits.iter().rev().take(trial.others).copied().fold(0.0, f64::max);
        format!("{:.2}", trial.worst(longest))
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_multiples_of_what_each_worker_would_have() {
        let shares = Shares::of(&[6, 4, 0, 2], 2);
        assert_eq!((shares.busiest, shares.least, shares.turnless), (2.0, 0.0, 1));
        assert_eq!((shares.others, shares.part, shares.share), (2, 2.0 / 12.0, 2.0 / 6.0));
        let alone = Shares::of(&[3, 3], 0);
        assert_eq!((alone.busiest, alone.least, alone.others, alone.share), (1.0, 1.0, 0, 0.0));
    }

    #[test]
    fn rows_are_chosen_by_whole_words_and_have_different_names() {
        assert!(is_chosen("turns-3-hold-1-far-0", "turns-3") && is_chosen("kept", ""));
        assert!(!is_chosen("turns-32-hold-1-far-0", "turns-3"));
        assert!(is_row("near-hold-1200-far-20") && is_row("killed-10") && !is_row("near-hold-12"));
        let rows = rows();
        let mut names: Vec<_> =
            rows.iter().flat_map(|(_, rows)| rows).map(|row| (&row.name, row.masters)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
