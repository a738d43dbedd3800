//! Locks that failed in a run, and whether they rested on a dead master.

use std::collections::BTreeMap;

use crate::chaos::history::{Event, Seeker, What};

/// Locks that clients did not get, or lost.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Failures {
    /// Those that rested on a master that died meanwhile, or whose client had too few masters.
    pub(super) explained: usize,
    /// The others, each with its story.
    pub(super) unexplained: Vec<String>,
}

/// When a server voted, as times of the history.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) from: u64,
    /// When it was killed: it died between these times.
    pub(super) killed: u64,
    pub(super) dead: u64,
}

/// What the judgement of a failure needs.
pub(super) struct Voters {
    /// For each server.
    pub(super) spans: Vec<Span>,
    /// The servers that each client has as its masters.
    pub(super) lists: BTreeMap<String, Vec<usize>>,
}

impl Span {
    /// A server that votes from then on.
    pub(super) fn from(from: u64) -> Self {
        Self { from, killed: u64::MAX, dead: u64::MAX }
    }
}

impl Failures {
    pub(super) fn of(events: &[Event], voters: &Voters) -> Self {
        let mut failures = Self::default();
        let mut began: BTreeMap<&Seeker, u64> = BTreeMap::new();
        for Event { at, what } in events {
            let (by, why) = match what {
                What::Seeks { by, .. } => {
                    began.insert(by, *at);
                    continue;
                }
                // Another client may hold a lock for longer than a caller waits.
                What::Refused { by, why } if !why.starts_with("held_by_another: ") => (by, why),
                What::Ended { by, how } if how != "released" => (by, how),
                _ => continue,
            };
            let from = began.get(by).copied().unwrap_or(*at);
            if voters.explain(&by.client, from, *at) {
                failures.explained += 1;
            } else {
                let after = (at - from) / 1_000_000;
                failures.unexplained.push(format!("at {at}: {by}, {after} ms after it began: {why}"));
            }
        }
        failures
    }
}

impl Voters {
    /// Whether a lock of this client may fail that was requested at `from` and failed at `to`: one
    /// of its masters died meanwhile, or fewer than a quorum of them voted all the time.
    fn explain(&self, client: &str, from: u64, to: u64) -> bool {
        let Some(list) = self.lists.get(client) else { return false };
        let spans = || list.iter().filter_map(|place| self.spans.get(*place));
        let has_died = spans().any(|span| from <= span.dead && span.killed <= to);
        let voting = spans().filter(|span| span.from <= from && to < span.killed).count();
        has_died || voting < list.len() / 2 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(lines: &[&str]) -> Failures {
        let events: Vec<Event> = lines.iter().map(|line| line.parse().unwrap()).collect();
        // Server 1 dies, and server 3 takes its place.
        let dying = Span { killed: 99, dead: 100, ..Span::from(0) };
        let spans = vec![Span::from(0), dying, Span::from(0), Span::from(300)];
        let lists = [("old", vec![0, 1, 2]), ("new", vec![0, 3, 2]), ("alone", vec![0, 1, 3])];
        let lists = lists.map(|(client, list)| (client.to_owned(), list)).into();
        Failures::of(&events, &Voters { spans, lists })
    }

    #[test]
    fn a_lock_that_rested_on_a_dead_master_may_fail() {
        for lines in [
            ["50 seeks old#1 job", "150 ended old#1 lost: not held"],
            ["50 seeks old#1 job", "100 refused old#1 no_quorum: x"],
            // Of three masters one is dead and one does not vote yet.
            ["150 seeks alone#1 job", "200 refused alone#1 no_quorum: x"],
        ] {
            assert_eq!(failures(&lines), Failures { explained: 1, unexplained: Vec::new() }, "{lines:?}");
        }
    }

    #[test]
    fn other_locks_may_not_fail() {
        for lines in [
            ["150 seeks old#1 job", "200 ended old#1 lost: not held"],
            ["50 seeks new#1 job", "200 refused new#1 no_quorum: x"],
            ["350 seeks new#1 job", "400 ended new#1 released, and not ours"],
        ] {
            let failures = failures(&lines);
            assert_eq!((failures.explained, failures.unexplained.len()), (0, 1), "{lines:?}");
        }
    }

    #[test]
    fn a_lock_that_another_client_holds_is_no_failure() {
        let lines =
            ["150 seeks old#1 job", "200 refused old#1 held_by_another: x", "300 ended new#1 released"];
        assert_eq!(failures(&lines), Failures::default());
    }
}
