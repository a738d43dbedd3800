//! Judges changes: with each of them on, a test must fail.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::building::number;
use crate::change::{Change, Form};
use crate::judges::{AT_ONCE, Ended, Judges};
use crate::results::{Found, Results, Verdict};

/// The tests of a change run in groups, the quickest first: those that take at most this long, and
/// then the others.
const TIERS: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(300)];
/// How many tests run before the others, because they have noticed most changes of the same file;
/// and how many because they reach the fewest changes.
const LEARNED: usize = 8;
const CLOSEST: usize = 6;

/// What is noted of a change that no test reaches, in the place of the test that fails.
const NOT_REACHED: &str = "no test reaches it";

/// How often each test has noticed a change of each file.
#[derive(Default)]
pub(crate) struct Learned(BTreeMap<(String, String), usize>);

impl Learned {
    pub(crate) fn note(&mut self, file: &str, found: &Found) {
        if found.verdict == Verdict::Caught {
            *self.0.entry((file.to_owned(), found.by.clone())).or_default() += 1;
        }
    }

    fn times(&self, file: &str, test: &str) -> usize {
        self.0.get(&(file.to_owned(), test.to_owned())).copied().unwrap_or_default()
    }
}

/// Judges these changes, and notes each result at once. Those with a reason why no test has to
/// notice them only meet the quickest tests, and those that reach the fewest changes: they would
/// take as long as all others together.
pub(crate) fn judge(
    all: &[Change],
    which: &[usize],
    reasons: &BTreeMap<&str, &str>,
    judges: &Judges,
    sources: u64,
    results: &mut Results,
) -> Outcome {
    let mut learned = Learned::default();
    for change in all {
        if let Some(found) = results.of(change, sources) {
            learned.note(&change.file, found);
        }
    }
    let left: Vec<_> = which
        .iter()
        .copied()
        .filter(|at| all.get(*at).is_some_and(|it| results.of(it, sources).is_none()))
        .collect();
    eprintln!("judging {} changes; {} are known", left.len(), which.len() - left.len());
    let shared = Mutex::new((left.into_iter(), learned, results));
    let work = || -> Result<(), String> {
        loop {
            let mut guard = shared.lock().map_err(|error| error.to_string())?;
            let Some(at) = guard.0.next() else { return Ok(()) };
            let change = all.get(at).ok_or("a change")?;
            let mut groups = groups(number(at), change, judges, &guard.1);
            if reasons.contains_key(change.name.as_str()) {
                groups.retain(|(tier, _), _| *tier < TIERS.len());
            }
            let groups: Vec<_> = groups.into_values().collect();
            drop(guard);
            let found =
                one(number(at), change, judges, &groups, sources).map_err(|error| error.to_string())?;
            let mut guard = shared.lock().map_err(|error| error.to_string())?;
            println!("{:8} {:5.1} s  {}", found.verdict.word(), found.seconds, change.name);
            guard.1.note(&change.file, &found);
            guard.2.note(found).map_err(|error| error.to_string())?;
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker panicked")?)
    })?;
    Ok(())
}

/// The tests that reach a change, in groups of one judge each, by the number of their tier.
fn groups(
    number: usize,
    change: &Change,
    judges: &Judges,
    learned: &Learned,
) -> BTreeMap<(usize, usize), Vec<usize>> {
    let is_script = matches!(change.form, Form::Script(..));
    let mut left: Vec<_> = judges.tests.iter().enumerate().collect();
    left.retain(|(_, test)| test.reached.contains(&number) && (test.is_real() || !is_script));
    // Most specific first.
    left.sort_by_key(|(_, test)| (test.time > TIERS[0], test.reached.len()));
    let mut by_success: Vec<_> =
        left.iter().map(|(at, test)| (learned.times(&change.file, &test.name), *at)).collect();
    by_success.retain(|(times, _)| *times > 0);
    by_success.sort_by_key(|(times, _)| std::cmp::Reverse(*times));
    let closest = left.iter().take(CLOSEST).map(|(at, _)| *at);
    let first: Vec<_> = by_success.iter().take(LEARNED).map(|(_, at)| *at).chain(closest).collect();
    let tier = |at: usize, time: Duration| match first.contains(&at) {
        true => 0,
        false => 1 + TIERS.iter().filter(|tier| time > **tier).count(),
    };
    let mut groups = BTreeMap::<_, Vec<usize>>::new();
    for (at, test) in left {
        groups.entry((tier(at, test.time), test.judge)).or_default().push(at);
    }
    groups
}

fn one(
    number: usize,
    change: &Change,
    judges: &Judges,
    groups: &[Vec<usize>],
    sources: u64,
) -> Outcome<Found> {
    let start = Instant::now();
    let mut ended = (Verdict::Survives, if groups.is_empty() { NOT_REACHED } else { "" }.to_owned());
    for group in groups {
        match judges.run(number, group)? {
            Ended::Well => continue,
            Ended::Failed(test) => ended = (Verdict::Caught, test),
            Ended::Never => {
                let judge = group.first().map_or("", |test| judges.name(*test));
                ended = (Verdict::Never, judge.to_owned());
            }
        }
        break;
    }
    let (verdict, by) = ended;
    let (print, seconds) = (change.print(sources), start.elapsed().as_secs_f32());
    Ok(Found { print, verdict, seconds, by, name: change.name.clone() })
}
