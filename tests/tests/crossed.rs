//! Permits whose requests reach the masters in another order from each process, so that votes
//! cross.
//!
//! Each locker has its own proxy in front of each master. The delays of the proxies differ from
//! locker to locker, and change while the lockers contend: what the first master grants to one
//! locker, the next one grants to another. Sometimes the requests of one locker to one master are
//! stopped for longer than the keys live. A record that is independent of the masters tells which
//! clients held which permits (`crossed/account.rs`).
//!
//! `QUORLOCK_CROSSED_SECONDS` sets how long the whole test lasts (default 16), and
//! `QUORLOCK_CROSSED_SEED` the seed of the delays (default 1).

// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

#[path = "crossed/account.rs"]
mod account;

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use account::{Hold, check};
use quorlock_core::Config;
use quorlock_core::front::{Guard, Locker, Semaphore};
use quorlock_tests::{Direction, FaultProxy, Random, RedisServer, Transport, masters};

/// The numbers of masters.
const MASTERS: std::ops::RangeInclusive<usize> = 1..=7;
/// The numbers of permits.
const PERMITS: [u32; 3] = [1, 2, 4];
/// The number of lockers: some are left over even if every permit is held by another locker.
const LOCKERS: usize = 7;
/// Short enough that keys end while a request is delayed.
const TTL: Duration = Duration::from_millis(120);
/// How long each order of delays lasts.
const ORDER: Duration = Duration::from_millis(30);
/// The longest of the delays of a locker, twice the head start of the master that is asked first.
/// The others are spread evenly below it.
const LONGEST: Duration = Duration::from_millis(8);

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn no_more_permits_are_held_than_there_are_when_votes_cross() {
    let seconds = number("QUORLOCK_CROSSED_SECONDS", 16);
    let mut random = Random::new(number("QUORLOCK_CROSSED_SEED", 1));
    let worlds = MASTERS.count() * PERMITS.len();
    let span = Duration::from_secs(seconds) / u32::try_from(worlds).unwrap();
    let masters = masters(*MASTERS.end());
    let proxies: Vec<Vec<FaultProxy>> = (0..LOCKERS).map(|_| before(&masters)).collect();
    let transports: Vec<_> = Transport::NAMES.iter().map(|name| Transport::named(name)).collect();
    let mut full = 0;
    for count in MASTERS {
        let open = |place: usize| {
            let urls = proxies[place].iter().take(count).map(FaultProxy::url);
            let config = Config::builder(urls).ttl(TTL).request_timeout(TTL / 2).build().unwrap();
            transports[place % transports.len()].open(config)
        };
        let lockers: Vec<_> = (0..LOCKERS).map(open).collect();
        for permits in PERMITS {
            let holds = contend(&lockers, permits, &proxies, count, span, &mut random);
            let (most, broken) = check(permits, &holds);
            let grants = holds.len();
            eprintln!("{count} masters, {permits} permits: {grants} grants, {most} at once at most");
            assert!(broken.is_empty(), "{count} masters, {permits} permits: {}", broken[0]);
            assert!(grants > 0, "nothing was granted");
            full += usize::from(most == permits as usize);
        }
    }
    // Two masters or a short span may keep some permits unused.
    assert!(full > worlds / 2, "the permits of {full} semaphores were all in use");
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |value| value.parse().unwrap())
}

/// A proxy in front of each of the masters.
fn before(masters: &[RedisServer]) -> Vec<FaultProxy> {
    masters.iter().map(|master| FaultProxy::start(master.address())).collect()
}

/// Makes all lockers contend for a semaphore while the order of their requests changes.
fn contend(
    lockers: &[Locker],
    permits: u32,
    proxies: &[Vec<FaultProxy>],
    count: usize,
    span: Duration,
    random: &mut Random,
) -> Vec<Hold> {
    let end = Instant::now() + span;
    let holds = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for (by, locker) in lockers.iter().enumerate() {
            let semaphore = locker.semaphore(format!("gpu{permits}"), permits).unwrap();
            let (holds, mut random) = (&holds, Random::new(random.number()));
            scope.spawn(move || {
                while Instant::now() < end {
                    let hold = turn(by, &semaphore, &mut random);
                    holds.lock().unwrap().extend(hold);
                }
            });
        }
        while Instant::now() < end {
            proxies.iter().for_each(|of_locker| shuffle(&of_locker[..count], random));
            let (locker, master) = (random.below(LOCKERS), random.below(count));
            let still = random.one_in(4).then(|| &proxies[locker][master]);
            still.inspect(|proxy| proxy.stall(Direction::ToServer));
            thread::sleep(ORDER);
            if let Some(proxy) = still {
                thread::sleep(TTL);
                proxy.heal();
            }
        }
    });
    holds.into_inner().unwrap()
}

/// Gives each of a locker's masters another delay, on the way there or on the way back.
fn shuffle(of_locker: &[FaultProxy], random: &mut Random) {
    let mut left: Vec<_> = of_locker.iter().collect();
    let step = LONGEST / u32::try_from(left.len().max(2) - 1).unwrap();
    for place in (0..left.len()).rev() {
        let proxy = left.swap_remove(random.below(left.len()));
        let (slow, quick) = if random.one_in(4) {
            (Direction::ToClient, Direction::ToServer)
        } else {
            (Direction::ToServer, Direction::ToClient)
        };
        proxy.delay(quick, Duration::ZERO);
        proxy.delay(slow, step * u32::try_from(place).unwrap());
    }
}

/// One acquisition of one or two permits, and how long they were held.
fn turn(by: usize, semaphore: &Semaphore, random: &mut Random) -> Option<Hold> {
    let several = semaphore.permits() > 1 && random.one_in(4);
    // Some holds end with the keys and not with a release.
    let hold = if random.one_in(32) { 2 * TTL } else { random.millis(0..=4) };
    if several {
        let permits = semaphore.acquire_many(2).timeout(TTL).wait().ok()?;
        let hold = held(by, permits.indexes().collect(), &permits, hold);
        drop(permits);
        hold
    } else {
        let permit = semaphore.acquire().timeout(TTL).wait().ok()?;
        let hold = held(by, vec![permit.index()], &permit, hold);
        permit.release().wait().ok();
        hold
    }
}

/// Checks the guard repeatedly. The time is read after the grant, and before each check, so a
/// recorded span is never longer than the real one.
fn held(by: usize, indexes: Vec<u32>, guard: &Guard, span: Duration) -> Option<Hold> {
    let from = Instant::now();
    let mut to = None;
    loop {
        let asked = Instant::now();
        if !guard.is_valid() {
            break;
        }
        to = Some(asked);
        if asked >= from + span {
            break;
        }
        thread::sleep(Duration::from_micros(500));
    }
    Some(Hold { by, indexes, from, to: to? })
}
