//! A world that the options describe.

use std::fmt::Write as _;
use std::time::Duration;

use quorlock_sim::{ClientPlan, Fault, Plan, Step};

use super::Outcome;
use crate::arguments::WorldOptions;
use crate::arguments::faults;

/// The plan that the options describe.
fn plan(options: &WorldOptions, seed: u64) -> Plan {
    if options.random {
        return Plan::random(seed);
    }
    let lock = Step::Lock {
        resource: 0,
        ttl: options.ttl,
        timeout: options.ttl * 2 + Duration::from_secs(5),
        renewed: false,
        fenced: options.fenced,
        healing: false,
        dropped_after: None,
    };
    let steps = [lock, Step::Hold(options.ttl - options.ttl / 10), Step::Release];
    let mut plan = Plan::new(seed, options.masters, vec![ClientPlan::new(steps.to_vec()); options.clients]);
    plan.faults = options.faults.clone();
    plan.restart_guard = options.restart_guard;
    plan.bootstrapped = options.restart_guard.is_some();
    plan
}

/// Runs the plan, and shrinks it if a promise was broken.
pub(super) fn run(options: &WorldOptions, seed: u64) -> Outcome {
    let plan = plan(options, seed);
    let title = format!(
        "Simulated: {} and {}, seed {seed}",
        counted(plan.clients.len(), "client"),
        counted(plan.masters.len(), "master")
    );
    let is_assumed = |fault: &Fault| match plan.restart_guard {
        Some(_) => fault.is_assumed_with_guard(),
        None => fault.is_assumed(),
    };
    let outside = plan.faults.iter().filter(|(_, fault)| !is_assumed(fault)).count();
    let mut text = format!("{title}, {}.\n", counted(plan.faults.len(), "fault"));
    // Writing to a String cannot fail.
    if outside > 0 {
        let _ = writeln!(text, "Outside Redlock's assumptions: {}.", counted(outside, "fault"));
    }
    if let Some((smaller, failure)) = plan.shrink() {
        let verdict = format!("Broken: {}.", failure.violation);
        let _ = writeln!(text, "{verdict}");
        let _ = writeln!(text, "Shrunk to {}:", counted(smaller.faults.len(), "fault"));
        for (when, fault) in &smaller.faults {
            let _ = writeln!(text, "  {}", faults::shown(*when, *fault));
        }
        let timeline = failure.timeline.about_locks();
        return Outcome { title, text, is_broken: true, verdict, timeline, notes: Vec::new() };
    }
    let (ran, timeline) = plan.trace();
    let verdict = "No promise was broken.".to_owned();
    let _ = writeln!(text, "{verdict}");
    if let Ok(report) = ran {
        let seconds = report.took.as_secs_f64();
        let _ = writeln!(
            text,
            "{} acquisitions, {} requests about locks and {} events in {seconds:.1} s of simulated time.",
            report.acquisitions, report.requests, report.events
        );
    }
    let timeline = timeline.about_locks();
    Outcome { title, text, is_broken: false, verdict, timeline, notes: Vec::new() }
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
