//! Prints how long acquire and release take together, on each transport: with three healthy masters, with one of them stopped, and
//! with one killed. `cargo run --release -p quorlock-tests --example measure [PAIRS]`
#![allow(clippy::print_stdout)]

use std::thread;
use std::time::{Duration, Instant};

use quorlock_core::front::Locker;
use quorlock_core::{Config, MasterState};
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
        println!("{name}, from SIGCONT to the next vote: {}", Summary::of(&votes_again(&transport)));
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

fn measure(locker: &Locker, pairs: usize) -> Vec<Duration> {
    (0..pairs)
        .map(|_| {
            let start = Instant::now();
            let guard = locker.lock("job").wait().expect("a quorum is healthy");
            guard.release().wait().expect("it is still ours");
            start.elapsed()
        })
        .collect()
}

/// How long after a master goes on, which was stopped for longer than its time-outs, it stands as voting again.
fn votes_again(transport: &Transport) -> Vec<Duration> {
    let masters = masters(3);
    let locker = transport.open(Config::new(masters.urls()).expect("three masters"));
    let states = || locker.masters().into_iter().map(|(_, state)| state);
    let all_vote = || states().all(|state| matches!(state, MasterState::Ready { .. }));
    let once = |seconds| {
        eventually(Duration::from_secs(10), "all masters vote", all_vote);
        strike_last(&masters, RedisServer::stop);
        let stopped = Instant::now();
        while stopped.elapsed() < Duration::from_secs(seconds) {
            measure(&locker, 1);
            thread::sleep(Duration::from_millis(10));
        }
        let start = Instant::now();
        strike_last(&masters, RedisServer::cont);
        while !all_vote() {
            thread::sleep(Duration::from_micros(200));
        }
        start.elapsed()
    };
    [1, 1, 1, 2, 3, 4].map(once).to_vec()
}

/// What an error says of the masters: one is occupied, so that the third vote is asked for.
fn detail(locker: &Locker, masters: &[RedisServer]) {
    let Some(first) = masters.first() else { return };
    eventually(Duration::from_secs(10), "the key is free", || first.set_nx("held", "foreign"));
    if let Err(error) = locker.try_lock("held").wait() {
        println!("    {error}");
    }
}
