//! The summary of a history, printed at the end of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use super::history::{Event, What};

/// How much happened.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Figures {
    /// How long the faults lasted.
    pub span: Duration,
    /// Attempts of all clients, each a call that may have asked the masters several times.
    pub attempts: usize,
    /// Those that got the lock.
    pub grants: usize,
    /// The same by the kind of lock.
    pub kinds: BTreeMap<&'static str, usize>,
    /// Guards that were downgraded.
    pub downgraded: usize,
    /// Guards that were extended by their holders' requests.
    pub extended: usize,
    /// Guards that were handed over and resumed, by the same client or by another one.
    pub resumed: usize,
    /// The longest time without a grant of any resource, not counting the time before the first
    /// one.
    pub longest_gap: Duration,
    /// How many holders ended in each way, by their own records.
    pub ends: BTreeMap<String, usize>,
    /// Writes that the store accepted.
    pub accepted: usize,
    /// Writes that the store accepted after a later grant, because that grant's first write had not
    /// come yet.
    pub late_accepted: usize,
    /// Writes that the store refused: late ones, if no promise is broken.
    pub refused: usize,
    /// What was done to masters and clients.
    pub faults: BTreeMap<String, usize>,
}

impl Figures {
    /// Counts what happened.
    pub fn of(events: &[Event]) -> Self {
        let mut figures = Self::default();
        let (mut began, mut over, mut grants) = (None, None, Vec::new());
        let mut sought = BTreeMap::new();
        let mut largest: BTreeMap<String, u64> = BTreeMap::new();
        // Grants and writes are processed in the order of time, because the lines of different
        // clients may be in another order.
        let mut in_order: Vec<_> = events.iter().collect();
        in_order.sort_by_key(|event| event.at);
        for Event { at, what } in in_order {
            match what {
                What::Began => began = Some(*at),
                What::Over => over = Some(*at),
                What::Seeks { by, sought: what } => {
                    figures.attempts += 1;
                    sought.insert(by, what);
                }
                What::Granted { by, token, permit, .. } => {
                    grants.push(*at);
                    let Some(what) = sought.get(by) else { continue };
                    *figures.kinds.entry(what.kind()).or_default() += 1;
                    for (name, _) in what.names(*permit) {
                        let largest = largest.entry(name).or_default();
                        *largest = (*largest).max(token.unwrap_or(0));
                    }
                }
                What::Downgraded { .. } => figures.downgraded += 1,
                What::Extended { .. } => figures.extended += 1,
                What::Resumed { .. } | What::Received { .. } => figures.resumed += 1,
                What::Ended { how, .. } => *figures.ends.entry(how.clone()).or_default() += 1,
                What::Write { resource, token, accepted: true, .. } => {
                    figures.accepted += 1;
                    let is_late = largest.get(resource.as_str()).is_some_and(|largest| largest > token);
                    figures.late_accepted += usize::from(is_late);
                }
                What::Write { .. } => figures.refused += 1,
                What::Fault { kind, .. } => *figures.faults.entry(kind.clone()).or_default() += 1,
                What::Refused { .. } | What::Valid { .. } | What::Paused { .. } | What::Continued { .. } => {}
            }
        }
        let between = |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from));
        if let (Some(began), Some(over)) = (began, over) {
            figures.span = between(began, over);
            let inside: BTreeSet<_> =
                grants.iter().copied().filter(|at| (began..=over).contains(at)).chain([over]).collect();
            let next = inside.iter().skip(1);
            figures.longest_gap =
                inside.iter().zip(next).map(|(from, to)| between(*from, *to)).max().unwrap_or_default();
        }
        figures.grants = grants.len();
        figures
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |counts: &BTreeMap<String, usize>| -> String {
            let texts: Vec<_> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
            texts.join(", ")
        };
        writeln!(
            f,
            "{:.1} s: {} attempts, {} grants, {} resumed; longest time without a grant {:.1} s",
            self.span.as_secs_f64(),
            self.attempts,
            self.grants,
            self.resumed,
            self.longest_gap.as_secs_f64()
        )?;
        let kinds: Vec<_> = self.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        writeln!(f, "granted: {}; {} downgraded", kinds.join(", "), self.downgraded)?;
        writeln!(f, "holders ended: {}", list(&self.ends))?;
        writeln!(
            f,
            "writes: {} accepted ({} of them late, before the first of the next holder), {} refused",
            self.accepted, self.late_accepted, self.refused
        )?;
        write!(f, "faults: {}", list(&self.faults))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_writes_and_gaps_are_counted() {
        let history = "0 began
1 seeks 1.1#1 a
2000000000 granted 1.1#1 7 500 fixed
2000000001 accepted 1.1#1 a 7
3000000000 seeks 2.1#1 a
3000000001 granted 2.1#1 8 500 fixed
3000000002 accepted 1.1#1 a 7
3000000003 accepted 2.1#1 a 8
3000000004 rejected 1.1#1 a 7
3000000005 fault flushed master 1
3000000006 ended 1.1#1 lost
7000000001 over";
        let events: Vec<_> = history.lines().map(|line| line.parse().unwrap()).collect();

        let figures = Figures::of(&events);

        assert_eq!((figures.attempts, figures.grants), (2, 2));
        assert_eq!(figures.kinds, BTreeMap::from([("exclusive", 2)]));
        assert_eq!((figures.accepted, figures.late_accepted, figures.refused), (3, 1, 1));
        assert_eq!(figures.longest_gap, Duration::from_secs(4));
        assert_eq!((figures.faults.get("flushed"), figures.ends.get("lost")), (Some(&1), Some(&1)));
    }
}
