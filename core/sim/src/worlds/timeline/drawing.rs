//! A timeline as a picture.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Actor, Entry, Happening, Key, Timeline, faults};
use crate::master::CommandKind;
use crate::picture::{
    Exchange, Lane, LaneKind, Mark, MarkKind, Outcome, Picture, Span, SpanKind, Thing, Verdict,
};
use crate::worlds::clock::TrueTime;
use crate::worlds::fault::Fault;
use crate::worlds::reading::Named;
use crate::worlds::violation::Violation;

/// A message that was sent this shortly before the end may still have been on its way.
const ON_ITS_WAY: TrueTime = 41_000_000;

const fn time(at: TrueTime) -> Duration {
    Duration::from_nanos(at)
}

pub(super) fn picture(timeline: &Timeline, title: String) -> Picture {
    let mut notes = vec!["Numbers in parentheses tell attempts apart. Handshakes, reads of keys and what masters tell unasked are not shown.".to_owned()];
    let mut entries = timeline.entries.as_slice();
    let healed = entries.iter().position(|entry| entry.what == Happening::Healed);
    let is_broken = entries.iter().any(|entry| matches!(entry.what, Happening::Broken(_)));
    if let (Some((run, _)), false) = (healed.and_then(|place| entries.split_at_checked(place)), is_broken) {
        entries = run;
        notes.push("Nor is how every client gets a lock after all faults have ended.".to_owned());
    }
    let actors = Timeline::actors(entries);
    let mut drawing = Drawing {
        end: entries.last().map_or(0, |entry| entry.at),
        healed: entries.iter().find(|entry| entry.what == Happening::Healed).map(|entry| entry.at),
        has_one_key: keys(entries).len() <= 1,
        actors,
        held: BTreeMap::new(),
        both: Vec::new(),
        until: entries.last().map_or(0, |entry| entry.at),
        verdict: Verdict::Kept("No promise was broken.".to_owned()),
        things: Vec::new(),
    };
    for entry in entries {
        drawing.add(entry);
    }
    drawing.ends();
    drawing.keys(&timeline.keys);
    let lanes = drawing.actors.iter().map(|actor| {
        let kind = match actor {
            Actor::Client(_) => LaneKind::Client,
            Actor::Store => LaneKind::Store,
            Actor::Master(_) | Actor::World => LaneKind::Master,
        };
        Lane::new(actor.to_string(), kind)
    });
    let lanes = lanes.collect();
    let (verdict, things, until) = (Some(drawing.verdict), drawing.things, Some(time(drawing.until)));
    Picture { title, verdict, lanes, things, until, lines: None, notes }
}

fn keys(entries: &[Entry]) -> BTreeSet<&str> {
    let sent = entries.iter().filter_map(|entry| match &entry.what {
        Happening::Sent { command, .. } => word(command.kind).map(|_| command.key.as_str()),
        _ => None,
    });
    sent.collect()
}

/// The label of a command, if it is about a lock.
pub(super) fn word(kind: CommandKind) -> Option<&'static str> {
    match kind {
        CommandKind::Set
        | CommandKind::AcquireFenced
        | CommandKind::AcquireGuarded
        | CommandKind::AcquireFencedGuarded
        | CommandKind::AcquireReading
        | CommandKind::AcquireAll
        | CommandKind::Take => Some("lock"),
        CommandKind::Extend | CommandKind::ExtendFenced | CommandKind::ExtendAll => Some("extend"),
        CommandKind::Heal | CommandKind::HealFenced | CommandKind::HealAll => Some("put back"),
        CommandKind::Raise | CommandKind::RaiseAll => Some("raise"),
        CommandKind::Release | CommandKind::ReleaseAll => Some("release"),
        CommandKind::Undo => Some("take back"),
        CommandKind::Keep | CommandKind::KeepAll => Some("keep"),
        _ => None,
    }
}

struct Drawing {
    actors: Vec<Actor>,
    end: TrueTime,
    /// When the picture ends: with the run, or with the broken promise.
    until: TrueTime,
    /// When all faults end.
    healed: Option<TrueTime>,
    has_one_key: bool,
    /// The present guards, by client and token: since when, until when, and their labels.
    held: BTreeMap<(usize, usize), (TrueTime, TrueTime, String)>,
    /// The places of spans in which two hold at once, with those clients, that have not ended.
    both: Vec<(usize, [usize; 2])>,
    verdict: Verdict,
    things: Vec<Thing>,
}

impl Drawing {
    fn lane(&self, actor: Actor) -> usize {
        self.actors.iter().position(|other| *other == actor).unwrap_or(usize::MAX)
    }

    fn label(&self, command: &Named) -> Option<String> {
        let mut label = word(command.kind)?.to_owned();
        if !self.has_one_key {
            label = format!("{label} {}", command.key);
        }
        Some(match command.token {
            Some(token) => format!("{label} ({token})"),
            None => label,
        })
    }

    fn mark(&mut self, actor: Actor, at: TrueTime, kind: MarkKind, label: impl Into<String>) {
        let (lane, at, label) = (self.lane(actor), time(at), label.into());
        self.things.push(Thing::Mark(Mark { lane, at, kind, label }));
    }

    fn span(
        &mut self,
        actor: Actor,
        from: TrueTime,
        until: TrueTime,
        kind: SpanKind,
        label: impl Into<String>,
    ) {
        let (lane, label) = (self.lane(actor), label.into());
        self.things.push(Thing::Span(Span { lane, from: time(from), until: time(until), kind, label }));
    }

    fn add(&mut self, Entry { at, what }: &Entry) {
        let at = *at;
        match what {
            Happening::Sent { client, master, command, is_executed } => {
                let is_lost = !is_executed && at + ON_ITS_WAY < self.end;
                if let Some(label) = self.label(command).filter(|_| is_lost) {
                    let (from, to) = (self.lane(Actor::Client(*client)), self.lane(Actor::Master(*master)));
                    let (arrived, outcome, answered) = (None, None, None);
                    let sent = time(at);
                    self.things.push(Thing::Exchange(Exchange {
                        from,
                        to,
                        label,
                        sent,
                        arrived,
                        outcome,
                        answered,
                    }));
                }
            }
            Happening::Executed { client, master, command, answer, sent, heard, .. } => {
                if let Some(label) = self.label(command) {
                    let (from, to) = (self.lane(Actor::Client(*client)), self.lane(Actor::Master(*master)));
                    let is_on_its_way = at + ON_ITS_WAY >= self.end;
                    let answered = heard.or(is_on_its_way.then_some(at)).map(time);
                    self.things.push(Thing::Exchange(Exchange {
                        from,
                        to,
                        label,
                        sent: time(sent.unwrap_or(at)),
                        arrived: Some(time(at)),
                        outcome: Some(answer.outcome),
                        answered,
                    }));
                }
            }
            Happening::Holds { client, token, fence, ends, .. } => {
                let fence = fence.map(|fence| format!(", number {fence}")).unwrap_or_default();
                let (client, token) = (*client, *token);
                match self.held.get_mut(&(client, token)) {
                    Some((_, until, _)) => *until = *ends,
                    None => {
                        self.held.insert((client, token), (at, *ends, format!("holds ({token}{fence})")));
                        self.mark(Actor::Client(client), at, MarkKind::Quorum, "");
                    }
                }
            }
            Happening::LetGo { client, token, was_valid, .. } => {
                let Some((from, ends, label)) = self.held.remove(&(*client, *token)) else { return };
                self.one_is_left(*client, ends.min(at));
                let actor = Actor::Client(*client);
                self.span(actor, from, ends.min(at), SpanKind::Valid, label);
                if *was_valid {
                    self.mark(actor, at, MarkKind::Released, "");
                } else {
                    self.mark(actor, ends.min(at), MarkKind::Lost, "validity over");
                }
            }
            Happening::Stored { client, what, is_taken } => {
                let outcome = Some(if *is_taken { Outcome::Granted } else { Outcome::Refused });
                let (from, to) = (self.lane(Actor::Client(*client)), self.lane(Actor::Store));
                let (label, sent) = (what.clone(), time(at));
                let (arrived, answered) = (Some(sent), Some(sent));
                self.things.push(Thing::Exchange(Exchange {
                    from,
                    to,
                    label,
                    sent,
                    arrived,
                    outcome,
                    answered,
                }));
            }
            Happening::Said { client, text } => {
                self.mark(Actor::Client(*client), at, MarkKind::Note, text.as_str());
            }
            Happening::Fault(fault) => self.fault(at, *fault),
            Happening::GivenUp(violation) => self.breaks(at, violation),
            Happening::Broken(violation) => {
                self.verdict = Verdict::Broken(format!("Broken: {violation}."));
                self.breaks(at, violation);
                // A broken promise may last longer than the run.
                if let Some(Thing::Span(Span { until, .. })) = self.things.last() {
                    self.until = self.until.max(u64::try_from(until.as_nanos()).unwrap_or(0));
                }
            }
            // These are not drawn. The end of a fault is the end of its band.
            Happening::Pushed { .. }
            | Happening::Healed
            | Happening::GoesOn { .. }
            | Happening::Back { .. }
            | Happening::Copies { .. }
            | Happening::Follows { .. }
            | Happening::Learns { .. }
            | Happening::OwnsSlot { .. }
            | Happening::SlotMoves { .. }
            | Happening::Promoted { .. } => {}
        }
    }

    fn fault(&mut self, at: TrueTime, fault: Fault) {
        let (actor, label) = faults::shown(fault);
        let span = u64::try_from(fault.span().as_nanos()).unwrap_or(u64::MAX);
        if span == 0 {
            return self.mark(actor, at, MarkKind::Fault, label);
        }
        let healed = self.healed.filter(|healed| *healed >= at).unwrap_or(TrueTime::MAX);
        let until = at.saturating_add(span).min(healed);
        let is_between = matches!(
            fault,
            Fault::Partition { .. }
                | Fault::Mute { .. }
                | Fault::Clog { .. }
                | Fault::Unreachable { .. }
                | Fault::Slow { .. }
        );
        self.span(actor, at, until, if is_between { SpanKind::Way } else { SpanKind::Fault }, label);
    }

    fn breaks(&mut self, at: TrueTime, violation: &Violation) {
        let actor = match violation {
            Violation::TwoHolders { first, second } => {
                // Until one of them is over.
                let mine = self.held.iter().filter(|((client, _), _)| client == first || client == second);
                let until = mine.map(|(_, (_, ends, _))| *ends).min().unwrap_or(at).max(at);
                self.both.push((self.things.len(), [*first, *second]));
                return self.span(Actor::Client(*second), at, until, SpanKind::Broken, "two hold at once");
            }
            Violation::LostUpdate { client, .. } => {
                return self.mark(Actor::Client(*client), at, MarkKind::Broken, "undoes an update");
            }
            Violation::TooFewMasters { client, .. }
            | Violation::Revived { client }
            | Violation::GrantedWhileKept { client, .. }
            | Violation::GrantedTooLate { client }
            | Violation::TurnMissed { client, .. }
            | Violation::ForcedTooLate { client }
            | Violation::ValidTooLong { client, .. }
            | Violation::Late { client, .. }
            | Violation::NoProgress { client, .. }
            | Violation::Spinning { client }
            | Violation::Unfinished { client } => Some(Actor::Client(*client)),
            Violation::CounterBroken { master }
            | Violation::VotedInQuarantine { master }
            | Violation::KeyLeft { master, .. } => Some(Actor::Master(*master)),
            Violation::TooManyPermits { .. }
            | Violation::NumberTwice { .. }
            | Violation::NumberTooSmall { .. }
            | Violation::Restless
            | Violation::Reported(_) => self.actors.first().copied(),
        };
        if let Some(actor) = actor {
            self.mark(actor, at, MarkKind::Broken, "promise broken");
        }
    }

    /// One of two simultaneous holders has ended.
    fn one_is_left(&mut self, client: usize, at: TrueTime) {
        let things = &mut self.things;
        self.both.retain(|(place, clients)| {
            if !clients.contains(&client) {
                return true;
            }
            if let Some(Thing::Span(span)) = things.get_mut(*place) {
                span.until = span.until.min(time(at));
            }
            false
        });
    }

    fn keys(&mut self, keys: &[Key]) {
        let end = self.end;
        for key in keys.iter().filter(|key| key.from <= end) {
            let kind = SpanKind::Key { of: self.lane(Actor::Client(key.client)) };
            self.span(Actor::Master(key.master), key.from, key.until, kind, "");
        }
    }

    /// The remaining guards last until their end of validity.
    fn ends(&mut self) {
        for ((client, _), (from, ends, label)) in std::mem::take(&mut self.held) {
            self.span(Actor::Client(client), from, ends, SpanKind::Valid, label);
        }
    }
}
