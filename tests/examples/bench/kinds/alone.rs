//! One caller that acquires and releases each kind in turn: the cost of a pair compared with a
//! fenced lock.

use std::time::{Duration, Instant};

use quorlock_tests::{Fleet, Random, RedisServer};

use super::kind::Kind;
use super::worker::open;
use super::{median, middle};
use crate::handoff::Requests;
use crate::record::{self, Record};
use crate::usage::Meter;

/// The kind with which the others are compared comes first.
const KINDS: [Kind; 7] = [
    Kind::Fenced,
    Kind::Lock,
    Kind::Read,
    Kind::FencedRead,
    Kind::Several { names: 2, of: 2 },
    Kind::FencedSeveral { names: 2, of: 2 },
    Kind::Permit { of: 4 },
];
/// Pairs of one round. The kinds take turns after each pair, so that any other load of the machine
/// meets all of them.
const PAIRS: u32 = 400;
const COUNTED: usize = 100;

/// What was measured of one kind: a median for each round.
#[derive(Clone, Default)]
struct Measured {
    acquired: Vec<Duration>,
    pairs: Vec<Duration>,
}

pub(crate) fn main(record: &mut Record, masters: &Fleet, rounds: usize) {
    let addresses: Vec<_> = masters.iter().map(RedisServer::address).collect();
    let locker = open(&addresses);
    let mut random = Random::new(1);
    let mut pair = |kind: Kind| {
        let start = Instant::now();
        // Different names for each kind, because no client waits here.
        let held = kind.take(&locker, &format!("alone-{kind}"), &mut random);
        let acquired = start.elapsed();
        held.give_back();
        (acquired, start.elapsed())
    };
    let mut all = vec![Measured::default(); KINDS.len()];
    for _ in 0..rounds {
        let mut spans = vec![(Vec::new(), Vec::new()); KINDS.len()];
        for _ in 0..PAIRS {
            for (kind, (acquired, pairs)) in KINDS.into_iter().zip(&mut spans) {
                let (first, whole) = pair(kind);
                acquired.push(first);
                pairs.push(whole);
            }
        }
        for (measured, (acquired, pairs)) in all.iter_mut().zip(spans) {
            measured.acquired.push(median(&acquired));
            measured.pairs.push(median(&pairs));
        }
    }
    record.header(&["acquire_us", "acquire_to_fenced", "pair_us", "pair_to_fenced", "client_us", "requests"]);
    let fenced = all.first().cloned().unwrap_or_default();
    for (kind, measured) in KINDS.into_iter().zip(&all) {
        let meter = Meter::start();
        for _ in 0..PAIRS {
            pair(kind);
        }
        let (_, busy) = meter.stop();
        let requests = Requests::count(masters);
        for _ in 0..COUNTED {
            pair(kind);
        }
        let requests = requests.end() as f64 / COUNTED as f64;
        let cells = [
            record::micros(median(&measured.acquired)),
            ratio(&measured.acquired, &fenced.acquired),
            record::micros(median(&measured.pairs)),
            ratio(&measured.pairs, &fenced.pairs),
            record::micros(busy / PAIRS),
            format!("{requests:.1}"),
        ];
        record.row("O", masters.len(), &kind.to_string(), &cells);
    }
}

/// The median of the rounds' ratios.
fn ratio(own: &[Duration], to: &[Duration]) -> String {
    format!("{:.2}", middle(own.iter().zip(to).map(|(own, to)| own.as_secs_f64() / to.as_secs_f64())))
}
