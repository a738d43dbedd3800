//! The outcome of a run.

use std::fmt;
use std::time::Duration;

use super::Trust;
use crate::chaos::Figures;
use crate::chaos::checker::{Rule, Violation};

/// The times of one failover, in nanoseconds of [`now`](crate::chaos::history::now).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timing {
    /// What happened to the old primary.
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

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The outcome for each kind of trust.
    pub parties: Vec<(Trust, Figures, Vec<Violation>)>,
}

impl Outcome {
    /// How often two clients with this kind of trust held one lock.
    pub fn two_holders(&self, trust: Trust) -> usize {
        let violations = self.violations(trust);
        violations.iter().filter(|violation| violation.rule == Rule::TwoHolders).count()
    }

    /// All promises that were broken to clients with this kind of trust.
    pub fn violations(&self, trust: Trust) -> &[Violation] {
        let party = self.parties.iter().find(|(other, ..)| *other == trust);
        party.map(|(.., violations)| &**violations).unwrap_or_default()
    }
}

/// Writes the times in seconds since the fault of the old primary.
impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = |at: u64| Duration::from_nanos(at.saturating_sub(self.began)).as_secs_f64();
        let [promoted, complete, granted] = [self.promoted, self.complete, self.granted].map(after);
        let deed = &self.deed;
        write!(f, "{deed:<18} another primary after {promoted:.1} s, complete after {complete:.1} s, ")?;
        write!(f, "first lock after {granted:.2} s")
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (trust, figures, violations) in &self.parties {
            let (name, twice) = (trust.name(), self.two_holders(*trust));
            let Figures { grants, extended, resumed, span, longest_gap, .. } = figures;
            let (span, gap) = (span.as_secs_f64(), longest_gap.as_secs_f64());
            writeln!(f, "{name}: {grants} locks in {span:.0} s, none for {gap:.1} s at most")?;
            writeln!(f, "{name}: {extended} extensions, {resumed} locks handed over and resumed")?;
            writeln!(f, "{name}: {twice} locks had two holders, {} promises were broken", violations.len())?;
        }
        Ok(())
    }
}
