//! What has come of a run.

use std::fmt;
use std::time::Duration;

use super::Trust;
use crate::chaos::Figures;
use crate::chaos::checker::{Rule, Violation};

/// When things happened at one failover, in nanoseconds of [`now`](crate::chaos::history::now).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timing {
    /// What became of the old primary.
    pub deed: String,
    /// When that was.
    pub began: u64,
    /// When sentinels agreed about the new primary.
    pub promoted: u64,
    /// When all others followed it.
    pub complete: u64,
    /// The first lock after the promotion whose votes replicas had confirmed.
    pub granted: u64,
}

/// What has come of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Each failover.
    pub timings: Vec<Timing>,
    /// What each way to trust has come to.
    pub parties: Vec<(Trust, Figures, Vec<Violation>)>,
}

impl Outcome {
    /// How often two clients held one lock that trusted in this way.
    pub fn two_holders(&self, trust: Trust) -> usize {
        let violations = self.violations(trust);
        violations.iter().filter(|violation| violation.rule == Rule::TwoHolders).count()
    }

    /// All promises that were broken to clients that trusted in this way.
    pub fn violations(&self, trust: Trust) -> &[Violation] {
        let party = self.parties.iter().find(|(other, ..)| *other == trust);
        party.map(|(.., violations)| &**violations).unwrap_or_default()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from)).as_secs_f64();
        for timing in &self.timings {
            let Timing { deed, began, promoted, complete, granted } = timing;
            write!(
                f,
                "{deed:8} another primary after {:.1} s, complete after {:.1} s",
                between(*began, *promoted),
                between(*began, *complete)
            )?;
            writeln!(f, ", first lock {:.2} s later", between(*complete, *granted))?;
        }
        for (trust, figures, violations) in &self.parties {
            let (name, twice) = (trust.name(), self.two_holders(*trust));
            let Figures { grants, span, .. } = figures;
            writeln!(
                f,
                "{name}: {grants} locks in {:.0} s, {twice} of them had two holders",
                span.as_secs_f64()
            )?;
            writeln!(f, "{name}: {} promises were broken", violations.len())?;
        }
        Ok(())
    }
}
