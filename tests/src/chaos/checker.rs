//! Whether a history may be: what the lock promises, looked for in what its clients and the store wrote down. A pure function.

use std::collections::BTreeMap;
use std::fmt;

use super::history::{Event, Seeker, What};

/// A promise, by what it means to break it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// Two grants of a resource have the same fencing token, or a grant changed its own.
    TokenTwice,
    /// A grant that had ended before another attempt began has the larger fencing token.
    TokenOrder,
    /// Two clients held one resource at the same instant, both by their own account.
    TwoHolders,
    /// A client called its lock valid after it had stood still for longer than the TTL, or without renewal a TTL after the grant.
    ValidTooLong,
    /// The store took a fencing token that is smaller than one before.
    StoreWentBack,
    /// The store refused a writer that held the lock by its own account.
    HolderRefused,
    /// Something is not as it is written down: a write without a grant, a grant without an attempt.
    Unexplained,
}

/// A promise that was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// When it could be seen.
    pub at: u64,
    /// Which promise.
    pub rule: Rule,
    /// By whom.
    pub story: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {:?}: {}", self.at, self.rule, self.story)
    }
}

/// Every promise that the history breaks, in the order in which it could be seen.
pub fn check(events: &[Event]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let attempts = attempts(events, &mut violations);
    let mut resources: BTreeMap<&str, Vec<&Attempt<'_>>> = BTreeMap::new();
    for attempt in attempts.values() {
        resources.entry(attempt.resource).or_default().push(attempt);
    }
    for attempts in resources.values() {
        tokens_are_distinct(attempts, &mut violations);
        tokens_rise(attempts, &mut violations);
        one_holder_at_a_time(attempts, &mut violations);
    }
    nobody_is_valid_too_long(events, &attempts, &mut violations);
    the_store_goes_forward(events, &attempts, &mut violations);
    violations.sort_by_key(|violation| violation.at);
    violations
}

/// One attempt, with what came of it.
#[derive(Debug)]
struct Attempt<'a> {
    by: &'a Seeker,
    resource: &'a str,
    sought: u64,
    token: Option<u64>,
    ttl: u64,
    renewed: bool,
    /// The spans of holding: one, and one more after each time that it was handed over and resumed.
    held: Vec<Held>,
}

/// From the hand-over to the last instant of which the holder knows that the lock was valid, if it has ever asked.
#[derive(Debug)]
struct Held {
    from: u64,
    to: Option<u64>,
}

impl Attempt<'_> {
    /// When it was granted.
    fn granted(&self) -> Option<u64> {
        self.held.first().map(|held| held.from)
    }

    fn was_holder_at(&self, at: u64) -> bool {
        self.held.iter().any(|held| held.from <= at && held.to.is_some_and(|to| at <= to))
    }
}

fn attempts<'a>(events: &'a [Event], violations: &mut Vec<Violation>) -> BTreeMap<&'a Seeker, Attempt<'a>> {
    let mut attempts = BTreeMap::new();
    for Event { at, what } in events {
        let (by, known) = match what {
            What::Seeks { by, resource } => {
                let (sought, held) = (*at, Vec::new());
                let attempt = Attempt {
                    by,
                    resource: resource.as_str(),
                    sought,
                    token: None,
                    ttl: 0,
                    renewed: false,
                    held,
                };
                (by, attempts.insert(by, attempt).is_none())
            }
            What::Granted { by, token, ttl, renewed } => {
                let attempt = attempts.get_mut(by).filter(|attempt| attempt.held.is_empty());
                let known = attempt.is_some();
                if let Some(attempt) = attempt {
                    attempt.held.push(Held { from: *at, to: None });
                    (attempt.token, attempt.ttl, attempt.renewed) = (*token, *ttl * 1_000_000, *renewed);
                }
                (by, known)
            }
            What::Resumed { by, token } => {
                let attempt = attempts.get_mut(by).filter(|attempt| !attempt.held.is_empty());
                let known = attempt.is_some();
                if let Some(attempt) = attempt {
                    attempt.held.push(Held { from: *at, to: None });
                    if attempt.token != *token {
                        let story = format!("{by} had {:?} and resumed with {token:?}", attempt.token);
                        violations.push(Violation { at: *at, rule: Rule::TokenTwice, story });
                    }
                }
                (by, known)
            }
            What::Valid { by } => {
                let held = attempts.get_mut(by).and_then(|attempt| attempt.held.last_mut());
                let known = held.is_some();
                if let Some(held) = held {
                    held.to = Some(*at);
                }
                (by, known)
            }
            _ => continue,
        };
        if !known {
            let story = format!("{by} is not so far: {what:?}");
            violations.push(Violation { at: *at, rule: Rule::Unexplained, story });
        }
    }
    attempts
}

fn tokens_are_distinct(attempts: &[&Attempt<'_>], violations: &mut Vec<Violation>) {
    let mut owners: BTreeMap<u64, &Attempt<'_>> = BTreeMap::new();
    let mut granted: Vec<_> =
        attempts.iter().filter_map(|attempt| Some((attempt.granted()?, attempt.token?, *attempt))).collect();
    granted.sort_by_key(|(at, ..)| *at);
    for (at, token, attempt) in granted {
        if let Some(first) = owners.insert(token, attempt) {
            let story =
                format!("{} of {} went to {} and to {}", token, attempt.resource, first.by, attempt.by);
            violations.push(Violation { at, rule: Rule::TokenTwice, story });
        }
    }
}

/// As a fenced mutex does, whose operations have a beginning and an end.
fn tokens_rise(attempts: &[&Attempt<'_>], violations: &mut Vec<Violation>) {
    let mut ends: Vec<_> = attempts
        .iter()
        .filter_map(|attempt| Some((attempt.granted()?, attempt.token?, attempt.by)))
        .collect();
    let mut starts: Vec<_> = attempts
        .iter()
        .filter_map(|attempt| Some((attempt.sought, attempt.granted()?, attempt.token?, attempt.by)))
        .collect();
    ends.sort_unstable();
    starts.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let mut largest: Option<(u64, &Seeker)> = None;
    for (sought, at, token, by) in starts {
        while let Some((_, earlier, owner)) = ends.next_if(|(end, ..)| *end < sought) {
            if largest.is_none_or(|(largest, _)| earlier > largest) {
                largest = Some((earlier, owner));
            }
        }
        if let Some((larger, owner)) = largest.filter(|(largest, _)| *largest > token) {
            let story =
                format!("{by} began after {owner} had been granted {larger}, and was granted {token}");
            violations.push(Violation { at, rule: Rule::TokenOrder, story });
        }
    }
}

fn one_holder_at_a_time(attempts: &[&Attempt<'_>], violations: &mut Vec<Violation>) {
    let mut held: Vec<_> = attempts
        .iter()
        .flat_map(|attempt| attempt.held.iter().filter_map(|held| Some((held.from, held.to?, *attempt))))
        .collect();
    held.sort_by_key(|(from, ..)| *from);
    let mut last: Option<(u64, &Seeker)> = None;
    for (from, to, attempt) in held {
        if let Some((until, other)) = last.filter(|(until, other)| from < *until && *other != attempt.by) {
            let common = (until.min(to) - from) / 1_000_000;
            let story =
                format!("{other} and {} held {} together for {common} ms", attempt.by, attempt.resource);
            violations.push(Violation { at: from, rule: Rule::TwoHolders, story });
        }
        if last.is_none_or(|(until, _)| to > until) {
            last = Some((to, attempt.by));
        }
    }
}

fn nobody_is_valid_too_long(
    events: &[Event],
    attempts: &BTreeMap<&Seeker, Attempt<'_>>,
    violations: &mut Vec<Violation>,
) {
    let mut paused: BTreeMap<&str, u64> = BTreeMap::new();
    let mut pauses: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for Event { at, what } in events {
        match what {
            What::Paused { client } => {
                paused.insert(client, *at);
            }
            What::Continued { client } => {
                if let Some(from) = paused.remove(client.as_str()) {
                    pauses.entry(client).or_default().push((from, *at));
                }
            }
            _ => {}
        }
    }
    for attempt in attempts.values() {
        for Held { from, to } in &attempt.held {
            let Some(to) = *to else { continue };
            if !attempt.renewed && to > from + attempt.ttl {
                let story = format!("{}, which is not renewed, was valid a TTL after the grant", attempt.by);
                violations.push(Violation { at: to, rule: Rule::ValidTooLong, story });
            }
            // What was granted or renewed before a pause of a TTL has run out in it, and nothing revives it.
            let of_client = pauses.get(attempt.by.client.as_str()).into_iter().flatten();
            for (stopped, continued) in of_client.filter(|(stopped, continued)| {
                from < stopped && to >= *continued && continued - stopped >= attempt.ttl
            }) {
                let pause = (continued - stopped) / 1_000_000;
                let story = format!("{} stood still for {pause} ms and was valid afterwards", attempt.by);
                violations.push(Violation { at: to, rule: Rule::ValidTooLong, story });
            }
        }
    }
}

fn the_store_goes_forward(
    events: &[Event],
    attempts: &BTreeMap<&Seeker, Attempt<'_>>,
    violations: &mut Vec<Violation>,
) {
    let mut largest: BTreeMap<&str, (u64, &Seeker)> = BTreeMap::new();
    for Event { at, what } in events {
        let What::Write { by, resource, token, accepted } = what else { continue };
        let mut broken = |rule, story| violations.push(Violation { at: *at, rule, story });
        let attempt = attempts.get(by).filter(|attempt| {
            attempt.resource == resource && attempt.token == Some(*token) && !attempt.held.is_empty()
        });
        let Some(attempt) = attempt else {
            broken(Rule::Unexplained, format!("{by} wrote {resource} with {token} and was not granted that"));
            continue;
        };
        let before = largest.get(resource.as_str()).filter(|(before, _)| before > token);
        match (accepted, before) {
            (true, Some((larger, other))) => {
                let story = format!("{by} wrote {resource} with {token} after {other} with {larger}");
                broken(Rule::StoreWentBack, story);
            }
            (false, None) => {
                broken(Rule::Unexplained, format!("{by} was refused {token} of {resource} without a cause"));
            }
            (false, Some((larger, other))) if attempt.was_holder_at(*at) => {
                let story =
                    format!("{by} held {resource} with {token} and was refused for {other} with {larger}");
                broken(Rule::HolderRefused, story);
            }
            _ => {}
        }
        if *accepted && before.is_none() {
            largest.insert(resource, (*token, by));
        }
    }
}

#[cfg(test)]
#[path = "checker_tests.rs"]
mod tests;
