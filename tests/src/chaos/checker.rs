//! Checks a history: whether the records of the clients and the store agree with what the lock
//! promises. A pure function.

use std::collections::BTreeMap;
use std::fmt;

use super::history::{Event, Seeker, What};
use super::sought::Sought;

/// A promise, described by its violation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// Two grants of a resource have the same fencing token, or a grant changed its own, maybe when
    /// it was handed over.
    TokenTwice,
    /// A grant that had ended before another attempt began has the larger fencing token; readers
    /// may have the token of the writer before them, and are not compared with other readers.
    TokenOrder,
    /// Two clients held one resource or one permit at the same instant, both by their own records,
    /// and did not both read it. One of them may have handed its lock over to the other.
    TwoHolders,
    /// A permit has an index that its semaphore does not have.
    NoSuchPermit,
    /// A client called its lock valid after it had been stopped for longer than the TTL, or without
    /// renewal a TTL after the grant and the last extension.
    ValidTooLong,
    /// The store accepted a fencing token that is smaller than an earlier one.
    StoreWentBack,
    /// The store refused a writer that held the lock by its own record.
    HolderRefused,
    /// The record is inconsistent: a write without a grant, a grant without an attempt.
    Unexplained,
}

/// A promise that was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The earliest instant at which the history shows it.
    pub at: u64,
    /// Which promise.
    pub rule: Rule,
    /// What happened, in words.
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
    let mut resources: BTreeMap<String, Vec<Share<'_>>> = BTreeMap::new();
    for attempt in attempts.values() {
        for (name, reads) in attempt.sought.names(attempt.permit) {
            resources.entry(name).or_default().push(Share { attempt, reads });
        }
    }
    for (name, shares) in &resources {
        tokens_are_distinct(name, shares, &mut violations);
        tokens_rise(shares, &mut violations);
        one_holder_at_a_time(name, shares, &mut violations);
    }
    no_guard_is_valid_too_long(events, &attempts, &mut violations);
    the_store_goes_forward(events, &attempts, &mut violations);
    violations.sort_by_key(|violation| violation.at);
    violations
}

/// One attempt, with its outcome.
#[derive(Debug)]
struct Attempt<'a> {
    by: &'a Seeker,
    sought: &'a Sought,
    began: u64,
    permit: Option<u64>,
    token: Option<u64>,
    ttl: u64,
    renewed: bool,
    /// Whether another client has handed the lock over, together with its token.
    was_received: bool,
    /// The spans of holding: one, and one more after each time that it was handed over and resumed.
    held: Vec<Held>,
}

/// From the hand-over to the last instant at which the holder knew that the lock was valid, if it
/// has ever checked.
#[derive(Debug)]
struct Held {
    from: u64,
    to: Option<u64>,
    /// Until when it may be valid if it is not renewed.
    may_last: u64,
    /// Whether it had been downgraded to a reader.
    reads: bool,
}

/// What an attempt requests of one resource or permit.
#[derive(Debug)]
struct Share<'a> {
    attempt: &'a Attempt<'a>,
    reads: bool,
}

impl<'a> Attempt<'a> {
    fn new(by: &'a Seeker, sought: &'a Sought, began: u64) -> Self {
        let (permit, token, held) = (None, None, Vec::new());
        Self { by, sought, began, permit, token, ttl: 0, renewed: false, was_received: false, held }
    }

    /// It holds the lock from now on.
    fn holds(&mut self, from: u64, reads: bool) {
        self.held.push(Held { from, to: None, may_last: from + self.ttl, reads });
    }

    /// When it was granted.
    fn granted(&self) -> Option<u64> {
        self.held.first().map(|held| held.from)
    }

    fn was_holder_at(&self, at: u64) -> bool {
        self.held.iter().any(|held| held.from <= at && held.to.is_some_and(|to| at <= to))
    }
}

fn attempts<'a>(events: &'a [Event], violations: &mut Vec<Violation>) -> BTreeMap<&'a Seeker, Attempt<'a>> {
    let mut attempts: BTreeMap<&Seeker, Attempt<'_>> = BTreeMap::new();
    for Event { at, what } in events {
        let at = *at;
        let mut broken = |rule, story| violations.push(Violation { at, rule, story });
        let (by, known) = match what {
            What::Seeks { by, sought } => (by, attempts.insert(by, Attempt::new(by, sought, at)).is_none()),
            What::Granted { by, token, ttl, renewed, permit } => {
                let attempt = attempts.get_mut(by).filter(|attempt| attempt.held.is_empty());
                let known = attempt.is_some();
                if let Some(attempt) = attempt {
                    (attempt.token, attempt.ttl, attempt.renewed) = (*token, *ttl * 1_000_000, *renewed);
                    attempt.permit = *permit;
                    attempt.holds(at, false);
                    let is_there = |of: u32| permit.is_some_and(|permit| permit < of.into());
                    if attempt.sought.permits().is_some_and(|of| !is_there(of)) {
                        broken(
                            Rule::NoSuchPermit,
                            format!("{by} was granted {permit:?} of {}", attempt.sought),
                        );
                    }
                }
                (by, known)
            }
            What::Received { by, from, token, ttl, renewed } => {
                let given =
                    attempts.get(from).filter(|given| !given.held.is_empty()).map(|given| given.token);
                let attempt = attempts.get_mut(by).filter(|attempt| attempt.held.is_empty());
                let known = attempt.is_some() && given.is_some();
                if let (Some(attempt), Some(given)) = (attempt, given) {
                    (attempt.token, attempt.ttl, attempt.renewed) = (*token, *ttl * 1_000_000, *renewed);
                    attempt.was_received = true;
                    attempt.holds(at, false);
                    if given != *token {
                        let story = format!("{from} handed {given:?} over, and {by} resumed with {token:?}");
                        broken(Rule::TokenTwice, story);
                    }
                }
                (by, known)
            }
            What::Downgraded { by } => {
                let attempt = holder(&mut attempts, by);
                let known = attempt.is_some();
                if let Some(attempt) = attempt {
                    attempt.holds(at, true);
                }
                (by, known)
            }
            What::Resumed { by, token } => {
                let attempt = holder(&mut attempts, by);
                let known = attempt.is_some();
                if let Some(attempt) = attempt {
                    let reads = attempt.held.last().is_some_and(|held| held.reads);
                    attempt.holds(at, reads);
                    if attempt.token != *token {
                        let story = format!("{by} had {:?} and resumed with {token:?}", attempt.token);
                        broken(Rule::TokenTwice, story);
                    }
                }
                (by, known)
            }
            What::Extended { by, ttl } => {
                let held = holder(&mut attempts, by).and_then(|attempt| attempt.held.last_mut());
                let known = held.is_some();
                if let Some(held) = held {
                    held.may_last = held.may_last.max(at + *ttl * 1_000_000);
                }
                (by, known)
            }
            What::Valid { by } => {
                let held = holder(&mut attempts, by).and_then(|attempt| attempt.held.last_mut());
                let known = held.is_some();
                if let Some(held) = held {
                    held.to = Some(at);
                }
                (by, known)
            }
            _ => continue,
        };
        if !known {
            broken(Rule::Unexplained, format!("{by} is not so far: {what:?}"));
        }
    }
    attempts
}

/// The attempt, if it has been granted.
fn holder<'m, 'a>(
    attempts: &'m mut BTreeMap<&'a Seeker, Attempt<'a>>,
    by: &Seeker,
) -> Option<&'m mut Attempt<'a>> {
    attempts.get_mut(by).filter(|attempt| !attempt.held.is_empty())
}

/// Checks that each writer has its own token. One that was handed over is still that of the grant.
fn tokens_are_distinct(name: &str, shares: &[Share<'_>], violations: &mut Vec<Violation>) {
    let mut owners: BTreeMap<u64, &Attempt<'_>> = BTreeMap::new();
    let grants = shares.iter().filter(|share| !share.reads && !share.attempt.was_received);
    let writers = grants.map(|share| share.attempt);
    let mut granted: Vec<_> =
        writers.filter_map(|attempt| Some((attempt.granted()?, attempt.token?, attempt))).collect();
    granted.sort_by_key(|(at, ..)| *at);
    for (at, token, attempt) in granted {
        if let Some(first) = owners.insert(token, attempt) {
            let story = format!("{token} of {name} went to {} and to {}", first.by, attempt.by);
            violations.push(Violation { at, rule: Rule::TokenTwice, story });
        }
    }
}

/// Checks that tokens rise, as those of a fenced mutex whose operations have a beginning and an
/// end.
fn tokens_rise(shares: &[Share<'_>], violations: &mut Vec<Violation>) {
    let granted = |Share { attempt, reads }: &Share<'_>| {
        let (at, token) = (attempt.granted()?, attempt.token?);
        Some((attempt.began, at, token, attempt.by.clone(), *reads))
    };
    let mut starts: Vec<_> = shares.iter().filter_map(granted).collect();
    let mut ends: Vec<_> =
        starts.iter().map(|(_, at, token, by, reads)| (*at, *token, by.clone(), *reads)).collect();
    ends.sort_unstable();
    starts.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    // Of writers, and of readers.
    let mut largest: [Option<(u64, Seeker)>; 2] = [None, None];
    for (began, at, token, by, reads) in starts {
        while let Some((_, earlier, owner, reads)) = ends.next_if(|(end, ..)| *end < began) {
            let largest = &mut largest[usize::from(reads)];
            if largest.as_ref().is_none_or(|(largest, _)| earlier > *largest) {
                *largest = Some((earlier, owner));
            }
        }
        let [written, read] = &largest;
        let written = written.iter().find(|(largest, _)| *largest > token);
        let read = read.iter().find(|(largest, _)| !reads && *largest >= token);
        if let Some((larger, owner)) = written.or(read) {
            let story =
                format!("{by} began after {owner} had been granted {larger}, and was granted {token}");
            violations.push(Violation { at, rule: Rule::TokenOrder, story });
        }
    }
}

/// Checks that there is one holder at a time, or several that read.
fn one_holder_at_a_time(name: &str, shares: &[Share<'_>], violations: &mut Vec<Violation>) {
    let spans = |Share { attempt, reads }: &Share<'_>| -> Vec<_> {
        let span = |held: &Held| Some((held.from, held.to?, attempt.by.clone(), *reads || held.reads));
        attempt.held.iter().filter_map(span).collect()
    };
    let mut held: Vec<_> = shares.iter().flat_map(spans).collect();
    held.sort_by_key(|(from, ..)| *from);
    // Of writers, and of readers.
    let mut last: [Option<(u64, Seeker)>; 2] = [None, None];
    for (from, to, by, reads) in held {
        let foes = if reads { &last[..1] } else { &last[..] };
        let together = foes.iter().flatten().find(|(until, other)| from < *until && *other != by);
        if let Some((until, other)) = together {
            let common = (*until.min(&to) - from) / 1_000_000;
            let story = format!("{other} and {by} held {name} together for {common} ms");
            violations.push(Violation { at: from, rule: Rule::TwoHolders, story });
        }
        let last = &mut last[usize::from(reads)];
        if last.as_ref().is_none_or(|(until, _)| to > *until) {
            *last = Some((to, by));
        }
    }
}

fn no_guard_is_valid_too_long(
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
        for Held { from, to, may_last, .. } in &attempt.held {
            let Some(to) = *to else { continue };
            if !attempt.renewed && to > *may_last {
                let by = attempt.by;
                let story = format!("{by}, which is not renewed, was valid a TTL after the last request");
                violations.push(Violation { at: to, rule: Rule::ValidTooLong, story });
            }
            // A lock that was granted or renewed before a pause of a TTL has run out in the pause,
            // and nothing revives it.
            let of_client = pauses.get(attempt.by.client.as_str()).into_iter().flatten();
            for (stopped, continued) in of_client.filter(|(stopped, continued)| {
                from < stopped && to >= *continued && continued - stopped >= attempt.ttl
            }) {
                let pause = (continued - stopped) / 1_000_000;
                let story = format!("{} was stopped for {pause} ms and was valid afterwards", attempt.by);
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
            let writes = |(name, reads): (String, bool)| name == *resource && !reads;
            let is_its_own = attempt.sought.names(attempt.permit).any(writes);
            is_its_own && attempt.token == Some(*token) && !attempt.held.is_empty()
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
