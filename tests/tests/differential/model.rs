//! The model, at all instants at which the server may have executed a command.
//!
//! A real server reads its clock for each command, once except in one case. The test knows only
//! that each reading lies between two others, which it gets by TIME, and that readings never go
//! back. So the model executes each command at every millisecond of that span. Outcomes that do not
//! fit the server's reply are dropped, and the others continue. A script is run for each of its
//! readings at which the clock may have advanced. Of equal outcomes only the earliest is kept:
//! everything that can follow from a later one can follow from the earlier one too.

use std::time::Duration;

use quorlock_sim::{Command, Flow, Master, ProtocolError, Session};

use crate::real::{Seen, Survey};

/// A possible state of the model, with the earliest millisecond of the server's clock for it.
#[derive(Clone)]
struct State {
    master: Master,
    session: Session,
    at: u64,
}

/// What happens to a key in the millisecond of its expiry.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Ends {
    /// It exists.
    Late,
    /// It exists until the server accesses it.
    MaybeEarly,
}

pub(crate) struct States(Vec<State>);

/// The model's reply at one instant.
pub(crate) struct Reply {
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
}

impl State {
    /// The master as it is at this instant; with [`Ends::MaybeEarly`] also without the keys that
    /// end in it.
    fn masters_at(&self, at: u64, ends: Ends) -> Vec<Master> {
        let mut masters = vec![self.master.clone()];
        if ends == Ends::MaybeEarly {
            let now = Duration::from_millis(at);
            let mut without = self.master.clone();
            for held in self.master.keys(now).filter(|held| held.expires_at == Some(now)) {
                without.remove(held.database, held.key, now);
            }
            if without != self.master {
                masters.push(without);
            }
        }
        masters
    }
}

impl States {
    pub(crate) fn new(master: Master, session: Session, at: u64) -> Self {
        Self(vec![State { master, session, at }])
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for state in &mut self.0 {
            state.session.feed(bytes);
        }
    }

    /// Reads the next command, which does not depend on the clock.
    pub(crate) fn next_command(&mut self) -> Result<Option<Command>, ProtocolError> {
        let mut command = Ok(None);
        for state in &mut self.0 {
            command = state.master.next_command(&mut state.session);
        }
        command
    }

    /// Executes a command at every instant until `end`, and keeps the outcomes that fit.
    ///
    /// # Errors
    /// The model's replies, if none fits.
    pub(crate) fn execute(
        &mut self,
        command: &Command,
        end: u64,
        ends: Ends,
        fits: impl Fn(&[u8]) -> bool,
    ) -> Result<Flow, Vec<Reply>> {
        let (mut kept, mut replies, mut flow) = (Vec::<State>::new(), Vec::new(), Flow::Open);
        for before in std::mem::take(&mut self.0) {
            for at in before.at..=end {
                for master in before.masters_at(at, ends) {
                    each_pace(end - at, |steps| {
                        let passed = steps.len() as u64;
                        let (mut master, mut session, mut bytes) =
                            (master.clone(), before.session.clone(), Vec::new());
                        master.set_script_steps(Some(steps));
                        flow = master.execute(&mut session, command, Duration::from_millis(at), &mut bytes);
                        let readings = master.script_readings();
                        master.set_script_steps(None);
                        let at = at + passed;
                        if fits(&bytes) {
                            let database = session.database();
                            for (at, master) in looked_at_again(command, database, &master, at, end) {
                                keep(&mut kept, State { master, session: session.clone(), at });
                            }
                            keep(&mut kept, State { master, session, at });
                        }
                        replies.push(Reply { at, bytes });
                        readings
                    });
                }
            }
        }
        self.0 = kept;
        if self.0.is_empty() { Err(replies) } else { Ok(flow) }
    }

    /// How many outcomes are left.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the only outcome that is left, or any of those whose keys have the same contents and
    /// the same expiries as the server's. From here on, outcomes that differ only in expired keys
    /// are the same.
    ///
    /// # Errors
    /// How each outcome differs from the server, if all do.
    pub(crate) fn settle(
        self,
        ends: Ends,
        survey: impl FnOnce() -> Survey,
    ) -> Result<(Master, Session), String> {
        let mut states = self.0;
        let mut differences = String::new();
        if states.len() > 1 {
            let survey = survey();
            states.retain(|state| {
                let found = differs(&state.master, &survey, ends);
                differences.extend(found.iter().map(|what| format!("at {}: {what}\n", state.at)));
                found.is_none()
            });
        }
        let settled = states.into_iter().next().map(|state| (state.master, state.session));
        settled.ok_or(differences)
    }
}

/// Keeps a new outcome, unless an equal one is already kept; of two equal ones, the earlier stays.
fn keep(kept: &mut Vec<State>, new: State) {
    let is_same = |state: &&mut State| state.master == new.master && state.session == new.session;
    match kept.iter_mut().find(is_same) {
        Some(state) => state.at = state.at.min(new.at),
        None => kept.push(new),
    }
}

/// To change a key's expiry, a server reads its clock twice: if the key has expired by the second
/// reading, it is deleted. A key of the same name in another database is not concerned.
pub(crate) fn looked_at_again(
    command: &Command,
    database: u32,
    master: &Master,
    at: u64,
    end: u64,
) -> Vec<(u64, Master)> {
    let gives_ends = [&b"PEXPIRE"[..], b"EXPIRE", b"EVAL", b"EVALSHA"];
    if !gives_ends.iter().any(|name| command.name().eq_ignore_ascii_case(name)) {
        return Vec::new();
    }
    let mut outcomes = Vec::new();
    for later in at + 1..=end {
        let now = Duration::from_millis(later);
        let is_named = |key: &[u8]| command.arguments().iter().any(|argument| argument == key);
        let mut without = master.clone();
        let ending = master.keys(now).filter(|held| held.expires_at == Some(now));
        for held in ending.filter(|held| held.database == database && is_named(held.key)) {
            without.remove(held.database, held.key, now);
        }
        if without != *master {
            outcomes.push((later, without));
        }
    }
    outcomes
}

/// Describes the first key whose contents or expiry differ between the model and the server.
pub(crate) fn differs(master: &Master, survey: &Survey, ends: Ends) -> Option<String> {
    let now = Duration::from_millis(survey.at);
    survey.keys.iter().find_map(|Seen { database, key, text, scores, left }| {
        let held = master.keys(now).find(|held| held.database == *database && held.key == *key);
        let expected = held.map_or(-2, |held| {
            held.expires_at.map_or(-1, |end| i64::try_from((end - now).as_millis()).unwrap())
        });
        let value = held.and_then(|held| held.value);
        let members = held.and_then(|held| held.scores).cloned().unwrap_or_default();
        let is_same = expected == *left && value == text.as_deref() && members == *scores;
        let is_ending = ends == Ends::MaybeEarly && (expected, *left) == (0, -2);
        (!is_same && !is_ending).then(|| {
            let shown = |text: Option<&[u8]>| text.map(|text| text.escape_ascii().to_string());
            format!(
                "{} in database {database} at {}: the model has {:?} {members:?} for {expected} ms, \
                 the server {:?} {scores:?} for {left} ms",
                key.escape_ascii(),
                survey.at,
                shown(value),
                shown(text.as_deref()),
            )
        })
    })
}

/// Runs a command for each possible advance of the clock between its readings, by at most this many
/// milliseconds. `run` gets the readings before which the clock advances, and returns the number of
/// readings.
pub(crate) fn each_pace(most: u64, mut run: impl FnMut(Vec<usize>) -> usize) {
    let mut paces = vec![Vec::new()];
    while let Some(steps) = paces.pop() {
        let readings = run(steps.clone());
        if (steps.len() as u64) < most.min(MOST_STEPS) {
            let first = steps.last().copied().unwrap_or_default();
            paces.extend((first..readings).map(|next| [&steps[..], &[next]].concat()));
        }
    }
}

/// The most milliseconds by which the clock advances during a script in these outcomes.
const MOST_STEPS: u64 = 3;

#[test]
fn a_key_that_expires_while_it_gets_a_ttl_is_deleted_in_its_own_database() {
    let (mut master, mut session) = (Master::new(1), Session::new());
    let mut ask = |words: &[&str]| {
        let command = Command::new(words.iter().copied());
        let _ = master.execute(&mut session, &command, Duration::from_millis(1_000), &mut Vec::new());
    };
    ask(&["SET", "a", "text", "PX", "1"]);
    ask(&["SELECT", "1"]);
    ask(&["SET", "a", "text", "PX", "1"]);
    let command = Command::new(["PEXPIRE", "a", "1"]);
    let outcomes = looked_at_again(&command, session.database(), &master, 1_000, 1_001);
    let [(1_001, left)] = outcomes.as_slice() else { panic!("{} outcomes", outcomes.len()) };
    let databases: Vec<u32> = left.keys(Duration::from_millis(1_001)).map(|held| held.database).collect();
    assert_eq!(databases, [0]);
}
