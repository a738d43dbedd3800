//! One caller that takes and gives back each kind in turn: what a pair costs beside one of a fenced lock.

use std::time::{Duration, Instant};

use quorlock_tests::{Fleet, Random, RedisServer};

use super::kind::Kind;
use super::median;
use super::worker::open;
use crate::handoff::{Requests, table};
use crate::usage::Meter;

const KINDS: [Kind; 7] = [
    Kind::Fenced,
    Kind::Lock,
    Kind::Read,
    Kind::FencedRead,
    Kind::Several { names: 2, of: 2 },
    Kind::FencedSeveral { names: 2, of: 2 },
    Kind::Permit { of: 4 },
];
/// Pairs of one round. The kinds take turns after each pair, so that whatever else the machine does meets all of them.
const PAIRS: u32 = 400;
const COUNTED: usize = 100;

pub(crate) fn main(masters: &Fleet, rounds: usize) {
    let addresses: Vec<_> = masters.iter().map(RedisServer::address).collect();
    let locker = open(&addresses);
    let mut random = Random::new(1);
    let mut pair = |kind: Kind, index: usize| {
        let start = Instant::now();
        // Of its own for each kind, as nobody waits here.
        kind.take(&locker, &format!("alone-{index}"), &mut random).give_back();
        start.elapsed()
    };
    let mut medians: Vec<Vec<Duration>> = vec![Vec::new(); KINDS.len()];
    for _ in 0..rounds {
        let mut spans: Vec<Vec<Duration>> = vec![Vec::new(); KINDS.len()];
        for _ in 0..PAIRS {
            for (index, kind) in KINDS.into_iter().enumerate() {
                if let Some(spans) = spans.get_mut(index) {
                    spans.push(pair(kind, index));
                }
            }
        }
        for (medians, spans) in medians.iter_mut().zip(&spans) {
            medians.push(median(spans));
        }
    }
    table::header(&["pair_p50_us", "to_fenced", "client_us", "requests"]);
    let fenced = medians.first().cloned().unwrap_or_default();
    for (index, kind) in KINDS.into_iter().enumerate() {
        let meter = Meter::start();
        for _ in 0..PAIRS {
            pair(kind, index);
        }
        let (_, busy) = meter.stop();
        let requests = Requests::count(masters);
        for _ in 0..COUNTED {
            pair(kind, index);
        }
        let requests = requests.end() as f64 / COUNTED as f64;
        let own = medians.get(index).cloned().unwrap_or_default();
        let mut ratios: Vec<f64> =
            own.iter().zip(&fenced).map(|(own, fenced)| own.as_secs_f64() / fenced.as_secs_f64()).collect();
        ratios.sort_by(f64::total_cmp);
        let ratio = ratios.get(ratios.len() / 2).copied().unwrap_or_default();
        let cells = [
            table::micros(median(&own)),
            format!("{ratio:.2}"),
            table::micros(busy / PAIRS),
            format!("{requests:.1}"),
        ];
        table::row("O", masters.len(), &kind.to_string(), &cells);
    }
}
