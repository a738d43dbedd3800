//! Prints how long acquire and release take together, on each transport: with three healthy masters, with one of them stopped, and
//! with one killed. `cargo run --release -p quorlock-tests --example measure [PAIRS]`
#![allow(clippy::print_stdout)]

use std::time::Instant;

use quorlock_core::Config;
use quorlock_core::front::Locker;
use quorlock_tests::{RedisServer, Summary, Transport, eventually, masters};

fn main() {
    let pairs = std::env::args().nth(1).map_or(2_000, |pairs| pairs.parse().expect("a number of pairs"));
    for name in Transport::NAMES {
        let transport = Transport::named(name);
        for (fault, strike) in FAULTS {
            let masters = masters(3);
            let locker = transport.open(Config::new(masters.urls()).expect("three masters"));
            // Whatever happens once at first happens here.
            measure(&locker, 100);
            strike(&masters);
            let durations = measure(&locker, pairs);
            println!("{name}, {fault}: {}", Summary::of(&durations));
            detail(&locker, &masters);
        }
    }
}

type Strike = fn(&[RedisServer]);

const FAULTS: [(&str, Strike); 3] = [
    ("three healthy masters", |_| {}),
    ("one of three stopped", |masters| strike_last(masters, RedisServer::stop)),
    ("one of three killed", |masters| strike_last(masters, RedisServer::kill)),
];

fn strike_last(masters: &[RedisServer], strike: impl Fn(&RedisServer)) {
    masters.last().into_iter().for_each(strike);
}

fn measure(locker: &Locker, pairs: usize) -> Vec<std::time::Duration> {
    (0..pairs)
        .map(|_| {
            let start = Instant::now();
            let guard = locker.lock("job").wait().expect("a quorum is healthy");
            guard.release().wait().expect("it is still ours");
            start.elapsed()
        })
        .collect()
}

/// What an error says of the masters: one is occupied, so that the third vote is asked for.
fn detail(locker: &Locker, masters: &[RedisServer]) {
    let Some(first) = masters.first() else { return };
    eventually(std::time::Duration::from_secs(10), "the key is free", || first.set_nx("held", "foreign"));
    if let Err(error) = locker.try_lock("held").wait() {
        println!("    {error}");
    }
}
