//! Problem: operators want the numbers of the locks in the metrics that they have.
//!
//! `Locker::report` feeds the facade `metrics` at intervals, and any exporter of that facade shows
//! it. Here a recorder of a few lines prints what it has.
//!
//! Run: `cargo run -p quorlock-blocking --example metrics`, on embedded masters.
//!
//! Watch: counters only grow, and are set to absolute values. A lock that is lost because masters
//! lost their data is in `quorlock_losses_total`, with the cause. `quorlock_master_votes` is 0 for
//! a master that cannot vote: alert before a majority is.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit, counter, gauge,
};
use quorlock_blocking::{MasterState, Report};
use quorlock_embedded::{Keep, Masters};

/// Publishes counts that only grow as absolute counters, and present states as gauges.
fn publish(report: &Report) {
    let acquisitions = &report.acquisitions;
    counter!("quorlock_acquisitions_total", "outcome" => "granted").absolute(acquisitions.granted);
    counter!("quorlock_acquisitions_total", "outcome" => "abandoned").absolute(acquisitions.abandoned);
    for (reason, count) in acquisitions.refused.by_kind() {
        counter!("quorlock_acquisitions_total", "outcome" => reason).absolute(count);
    }
    counter!("quorlock_attempts_total").absolute(acquisitions.attempts);
    // The histogram's buckets in the form of Prometheus: each counts those before it, too.
    let mut so_far = 0;
    for (bound, count) in acquisitions.latency.buckets() {
        so_far += count;
        let bound = bound.map_or_else(|| "+Inf".to_owned(), |bound| bound.as_secs_f64().to_string());
        counter!("quorlock_acquisition_seconds_bucket", "le" => bound).absolute(so_far);
    }
    gauge!("quorlock_acquisition_seconds_sum").set(acquisitions.latency.sum().as_secs_f64());
    counter!("quorlock_acquisition_seconds_count").absolute(acquisitions.latency.count());
    for (outcome, count) in report.releases.by_outcome() {
        counter!("quorlock_releases_total", "outcome" => outcome).absolute(count);
    }
    for (cause, count) in report.losses.by_kind() {
        counter!("quorlock_losses_total", "cause" => cause).absolute(count);
    }
    counter!("quorlock_renewals_total").absolute(report.renewals);
    gauge!("quorlock_held").set(report.held as f64);
    gauge!("quorlock_waiting").set(report.waiting as f64);
    for master in &report.masters {
        let name = master.endpoint.to_string();
        let votes = matches!(master.state, MasterState::Ready { .. }) && master.quarantine.is_none();
        gauge!("quorlock_master_votes", "master" => name.clone()).set(f64::from(u8::from(votes)));
        counter!("quorlock_master_reconnects_total", "master" => name).absolute(master.reconnects);
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let recorder = Printer::default();
    metrics::set_global_recorder(recorder.clone()).map_err(|error| error.to_string())?;
    let masters = Masters::start(3)?;
    let locker = quorlock_blocking::open(masters.config()?)?;

    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // A service would do this every ten or sixty seconds.
            while !has_ended.load(Ordering::Relaxed) {
                publish(&locker.report());
                thread::sleep(Duration::from_millis(100));
            }
        });
        let worked = (|| -> Result<(), Box<dyn Error>> {
            for number in 0..100 {
                locker.lock(format!("invoice:{number}")).wait()?.release().wait()?;
            }
            let renewed = locker.lock("job").ttl(Duration::from_millis(600)).renew().wait()?;
            assert!(locker.try_lock("job").wait().is_err());
            thread::sleep(Duration::from_millis(500));
            // The masters lose everything, and with it the lock.
            masters.iter().try_for_each(|master| master.restart(Keep::Nothing))?;
            renewed.lost().wait();
            Ok(())
        })();
        has_ended.store(true, Ordering::Relaxed);
        worked
    })?;
    publish(&locker.report());
    let shown = recorder.show();
    println!("{shown}");
    let is_right =
        ["quorlock_acquisitions_total{outcome=granted} 101", "quorlock_losses_total{cause=not_held} 1"];
    let is_right = is_right.iter().all(|line| shown.lines().any(|shown| shown == *line));
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Stands in for an exporter.
#[derive(Clone, Default)]
struct Printer(Arc<Mutex<Values>>);

/// For each name, whether it is a gauge, and its value; of a gauge, the bits of the number.
type Values = BTreeMap<String, (bool, Arc<AtomicU64>)>;

impl Printer {
    fn value(&self, key: &Key, is_gauge: bool) -> Arc<AtomicU64> {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("{}{labels}", key.name());
        Arc::clone(&values.entry(name).or_insert_with(|| (is_gauge, Arc::default())).1)
    }

    /// The values that are not zero.
    fn show(&self) -> String {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = values.iter().map(|(name, (is_gauge, value))| {
            let value = value.load(Ordering::Relaxed);
            let value = if *is_gauge { f64::from_bits(value).to_string() } else { value.to_string() };
            (name, value)
        });
        let lines = lines.filter(|(_, value)| value != "0").map(|(name, value)| format!("{name} {value}"));
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Recorder for Printer {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.value(key, false))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.value(key, true))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
