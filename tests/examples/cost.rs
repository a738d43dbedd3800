//! Prints what fencing, the restart guard and healing cost, as ratios to a lock without them: how
//! long acquire and release take together, how many pairs a second 64 callers make at once, and how
//! long a server is busy with a command. At the end it also prints what it costs if two replicas
//! confirm each vote of a primary, compared with the restart guard alone.
//!
//! `cargo xtask cost [ROUNDS]`. The ways take turns in each round, so that any other load of the
//! machine affects all of them.
#![allow(clippy::print_stdout)]

use std::thread;
use std::time::{Duration, Instant};

use quorlock_core::Config;
use quorlock_core::front::{Locker, Request};
use quorlock_tests::results::Results;
use quorlock_tests::{RedisServer, ServerOptions, Summary, Transport, eventually_equals, masters};

/// How many locks are acquired and released one after the other in each round, by one caller and by
/// each of many callers at once.
const PAIRS: usize = 200;
const AT_ONCE: usize = 64;

struct Way {
    name: &'static str,
    guarded: bool,
    /// Whether the lock is acquired by a plain `SET`.
    is_plain: bool,
    asks: fn(Request) -> Request,
}

const WAYS: [Way; 5] = [
    Way { name: "plain", guarded: false, is_plain: true, asks: |request| request },
    Way { name: "healed", guarded: false, is_plain: true, asks: |request| request.heal() },
    Way { name: "fenced", guarded: false, is_plain: false, asks: |request| request.fenced() },
    Way { name: "guarded", guarded: true, is_plain: false, asks: |request| request },
    Way {
        name: "fenced, guarded and healed",
        guarded: true,
        is_plain: false,
        asks: |request| request.fenced().heal(),
    },
];

fn main() {
    let rounds = std::env::args().nth(1).map_or(15, |rounds| rounds.parse().expect("a number of rounds"));
    let mut results = Results::new();
    results.servers();
    for name in Transport::NAMES {
        let transport = Transport::named(name);
        let masters = masters(3);
        let mut trials: Vec<Trial<'_>> =
            WAYS.iter().map(|way| Trial::new(&transport, way, &masters)).collect();
        for _ in 0..rounds {
            trials.iter_mut().for_each(|trial| trial.measure(&transport));
        }
        let first = trials.first().map(Trial::medians).unwrap_or_default();
        for trial in &trials {
            let (pair, many) = trial.medians();
            let way = format!("{name}, {}", trial.way.name);
            let (slower, fewer) = (ratio(pair, first.0), ratio(first.1, many));
            let at_once = (AT_ONCE * PAIRS) as f64 / many.as_secs_f64();
            println!(
                "{way}: pair p50 {pair:.1?} ({slower:.2}), {AT_ONCE} at once {at_once:.0} pairs/s ({fewer:.2})"
            );
            results.detail(
                &format!("{way}: p50 of a pair, µs"),
                format_args!("{:.1}", pair.as_secs_f64() * 1e6),
            );
            results.detail(&format!("{way}: {AT_ONCE} at once, pairs/s"), format_args!("{at_once:.0}"));
            if *name == "blocking" && !trial.way.is_plain {
                let what = format!("{}: p50 of a pair, to a plain lock", trial.way.name);
                results.figure(&what, format_args!("{slower:.2}"), "");
                let what = format!("{}: {AT_ONCE} at once, pairs/s to plain locks", trial.way.name);
                results.figure(&what, format_args!("{fewer:.2}"), "");
            }
        }
    }
    println!("Microseconds that a server is busy with a pair (INFO commandstats):");
    for way in &WAYS {
        let busy = on_the_server(way);
        println!("{}: {busy}", way.name);
        results.figure(&format!("{}: a server is busy with a pair for, µs", way.name), busy, "");
    }
    with_replicas(rounds, &mut results);
    results.write().expect("the results can be written");
}

/// Measures one primary with two replicas, under the restart guard: without and with `replicas=2`
/// in its URL, in turns.
fn with_replicas(rounds: usize, results: &mut Results) {
    let group = || {
        let primary = ServerOptions::new().start();
        let replicas = [(); 2].map(|()| ServerOptions::new().replica_of(&primary).start());
        eventually_equals(Duration::from_secs(10), "replicas that follow", Some(2), || {
            let mut client = primary.client().ok()?;
            client.command(&["SET", "probe", "x"]);
            client.command(&["WAIT", "2", "100"]).int()
        });
        (primary, replicas)
    };
    let Some(way) = WAYS.iter().find(|way| way.name == "guarded") else { return };
    let transport = Transport::named("blocking");
    let groups = [("", group()), ("?replicas=2", group())];
    let trials = groups.each_ref().map(|(parameter, (primary, _))| {
        let url = format!("{}{parameter}", primary.url());
        let config = Config::builder([url]).restart_guard(Duration::from_secs(10)).build();
        let locker = transport.open(config.expect("one master"));
        locker.bootstrap().wait().expect("nothing is locked yet");
        one_after_the_other(&locker, way);
        (parameter, primary, locker)
    });
    let before = trials.each_ref().map(|(_, primary, _)| processor_time(primary));
    let mut pairs = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for ((_, _, locker), pairs) in trials.iter().zip(&mut pairs) {
            pairs.push(Summary::of(&one_after_the_other(locker, way)).p50);
        }
    }
    println!("One primary with two replicas, each pair of a guarded lock:");
    for (((parameter, primary, _), before), pairs) in trials.iter().zip(before).zip(&pairs) {
        let busy = (processor_time(primary) - before) / (rounds * PAIRS) as f64;
        let p50 = Summary::of(pairs).p50;
        println!("{parameter:>12}: p50 {p50:.1?}, {:.1} µs of the primary's processor time", busy * 1e6);
        let group = format!("one primary with two replicas {parameter}");
        results
            .detail(&format!("{group}: p50 of a pair, µs"), format_args!("{:.1}", p50.as_secs_f64() * 1e6));
        results.detail(
            &format!("{group}: processor time of the primary, µs"),
            format_args!("{:.1}", busy * 1e6),
        );
    }
}

/// Seconds of processor time that a server has used.
fn processor_time(server: &RedisServer) -> f64 {
    let info = server.command(&["INFO", "cpu"]);
    let lines = info.text().unwrap_or_default().lines();
    let own = ["used_cpu_sys:", "used_cpu_user:"];
    lines
        .filter_map(|line| own.iter().find_map(|name| line.strip_prefix(name)))
        .filter_map(|seconds| seconds.trim().parse::<f64>().ok())
        .sum()
}

/// One way on one transport.
struct Trial<'a> {
    way: &'a Way,
    locker: Locker,
    /// The median time of a pair, for each round.
    pairs: Vec<Duration>,
    at_once: Vec<Duration>,
}

impl<'a> Trial<'a> {
    fn new(transport: &Transport, way: &'a Way, masters: &[RedisServer]) -> Self {
        Self { way, locker: open(transport, way, masters), pairs: Vec::new(), at_once: Vec::new() }
    }

    fn measure(&mut self, transport: &Transport) {
        self.pairs.push(Summary::of(&one_after_the_other(&self.locker, self.way)).p50);
        self.at_once.push(many_at_once(transport, &self.locker, self.way));
    }

    fn medians(&self) -> (Duration, Duration) {
        (Summary::of(&self.pairs).p50, Summary::of(&self.at_once).p50)
    }
}

fn open(transport: &Transport, way: &Way, masters: &[RedisServer]) -> Locker {
    let config = Config::builder(masters.iter().map(RedisServer::url));
    let config = if way.guarded { config.restart_guard(Duration::from_secs(10)) } else { config };
    let locker = transport.open(config.build().expect("three masters"));
    if way.guarded {
        locker.bootstrap().wait().expect("nothing is locked yet");
    }
    locker
}

fn one_after_the_other(locker: &Locker, way: &Way) -> Vec<Duration> {
    let once = |_| {
        let start = Instant::now();
        let guard = (way.asks)(locker.lock("job")).wait().expect("no other client wants it");
        guard.release().wait().expect("it is still ours");
        start.elapsed()
    };
    (0..PAIRS).map(once).collect()
}

/// How long it takes all callers together. With the blocking transport they are threads, with the
/// others tasks.
fn many_at_once(transport: &Transport, locker: &Locker, way: &Way) -> Duration {
    let start = Instant::now();
    match transport {
        Transport::Blocking => thread::scope(|scope| {
            for number in 0..AT_ONCE {
                scope.spawn(move || {
                    for _ in 0..PAIRS {
                        let request = (way.asks)(locker.lock(format!("job{number}")));
                        let _ = request.wait().expect("no other client wants it").release().wait();
                    }
                });
            }
        }),
        transport => transport.block_on(async {
            let executor = smol::LocalExecutor::new();
            let tasks: Vec<_> = (0..AT_ONCE)
                .map(|number| {
                    executor.spawn(async move {
                        for _ in 0..PAIRS {
                            let request = (way.asks)(locker.lock(format!("job{number}")));
                            let _ = request.await.expect("no other client wants it").release().await;
                        }
                    })
                })
                .collect();
            executor
                .run(async move {
                    for task in tasks {
                        task.await;
                    }
                })
                .await;
        }),
    }
    start.elapsed()
}

/// The time that a server without other load takes for this way's commands.
fn on_the_server(way: &Way) -> String {
    let masters = masters(3);
    let transport = Transport::named("blocking");
    let locker = open(&transport, way, &masters);
    one_after_the_other(&locker, way);
    let Some(first) = masters.first() else { return String::new() };
    first.command(&["CONFIG", "RESETSTAT"]);
    (0..10).for_each(|_| drop(one_after_the_other(&locker, way)));
    let stats = first.command(&["INFO", "commandstats"]);
    let text = stats.text().unwrap_or_default();
    // The server counts commands of scripts under their own names too, so only the outer commands
    // are added up.
    let outermost: &[&str] = if way.is_plain { &["set", "evalsha"] } else { &["evalsha"] };
    let total: f64 = outermost.iter().filter_map(|name| total_micros(text, name)).sum();
    format!("{:.1}", total / (10 * PAIRS) as f64)
}

/// The time of all calls of a command.
fn total_micros(stats: &str, command: &str) -> Option<f64> {
    let start = format!("cmdstat_{command}:");
    let line = stats.lines().find_map(|line| line.strip_prefix(&start))?;
    line.split(',').find_map(|field| field.strip_prefix("usec="))?.parse().ok()
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}
