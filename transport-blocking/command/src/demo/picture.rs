//! The demonstration as a picture.

use std::time::Duration;

use quorlock_sim::picture::{
    Exchange, Lane, LaneKind, Mark, MarkKind, Outcome, Picture, Span, SpanKind, Thing, Verdict,
};

use super::event::{Change, Event, master_name, worker_name};
use super::masters::Kept;
use super::stage::Scene;

/// About as many lines as a screen shows.
const LINES: usize = 3;

/// Draws the events and the states that were seen.
pub(super) fn svg(scene: &Scene, masters: usize, kept: &[Kept], until: Duration) -> String {
    let workers = scene.workers.len();
    let mut lanes: Vec<Lane> =
        (0..workers).map(|worker| Lane::new(worker_name(worker), LaneKind::Client)).collect();
    lanes.extend((0..masters).map(|master| Lane::new(master_name(master), LaneKind::Master)));
    lanes.push(Lane::new("store", LaneKind::Store));
    let mut drawing = Drawing { workers, store: workers + masters, until, things: Vec::new() };
    for (place, (at, event)) in scene.events.iter().enumerate() {
        let later = scene.events.get(place + 1..).unwrap_or_default();
        drawing.event(*at, *event, later);
    }
    for Kept { master, worker, from, until } in kept {
        drawing.span(workers + master, *from, *until, SpanKind::Key { of: *worker }, "");
    }
    let verdict = match (scene.violations(), scene.store.refused) {
        (0, 0) => Verdict::Kept("One held the lock at a time.".into()),
        (0, _) => Verdict::Kept("One held the lock at a time, and the late write was refused.".into()),
        (broken, _) => Verdict::Broken(format!("Promises were broken {broken} times.")),
    };
    Picture {
        title: "A lock on five masters, while things go wrong".into(),
        verdict: Some(verdict),
        lanes,
        things: drawing.things,
        until: Some(until),
        lines: Some(LINES),
        notes: vec![
            "Drawn from a run of quorlock demo: real sockets and real time, masters inside the process.".into(),
            "#7 is the seventh fencing token. The store refuses a token that is smaller than one it has seen.".into(),
        ],
    }
    .to_svg()
}

struct Drawing {
    workers: usize,
    store: usize,
    until: Duration,
    things: Vec<Thing>,
}

impl Drawing {
    fn event(&mut self, at: Duration, event: Event, later: &[(Duration, Event)]) {
        // When an event for which `ends` is true happens next; the end of the run if there is none.
        let next = |ends: &dyn Fn(Event) -> bool| {
            later.iter().find(|(_, event)| ends(*event)).map_or(self.until, |(at, _)| *at)
        };
        match event {
            Event::Holds { worker, number, .. } => {
                let ends =
                    next(&|event| event == Event::GivesBack { worker } || event == Event::RunsOut { worker });
                self.span(worker, at, ends, SpanKind::Valid, format!("#{number}"));
            }
            Event::Writes { worker, .. } => {
                self.write(worker, at, "", Outcome::Granted);
            }
            Event::Refused { worker, number, .. } => {
                self.write(worker, at, "writes late", Outcome::Refused);
                self.mark(self.store, at, MarkKind::Note, format!("refuses #{number}"));
            }
            Event::Pauses { worker } => {
                let ends = next(&|event| event == Event::GoesOn { worker });
                self.span(worker, at, ends, SpanKind::Fault, "pauses");
            }
            Event::RunsOut { worker } => self.mark(worker, at, MarkKind::Lost, "lock has run out"),
            Event::Master { master, change } => {
                let lane = self.workers + master;
                let is = |event, change| event == Event::Master { master, change };
                match change {
                    Change::Hangs => {
                        let ends = next(&|event| is(event, Change::GoesOn));
                        self.span(lane, at, ends, SpanKind::Fault, "hangs");
                    }
                    Change::Dies => {
                        let ends = next(&|event| is(event, Change::ReturnsEmpty));
                        self.span(lane, at, ends, SpanKind::Fault, "dead");
                    }
                    Change::ReturnsEmpty => self.mark(lane, at, MarkKind::Fault, "back, empty"),
                    Change::Quarantined { .. } => {
                        let ends = next(&|event| is(event, Change::Votes));
                        self.span(lane, at, ends, SpanKind::Fault, "quarantined");
                    }
                    Change::GoesOn | Change::Votes => {}
                }
            }
            Event::Broken(_) => self.mark(self.store, at, MarkKind::Broken, "promise broken"),
            Event::Waits { .. } | Event::GivesBack { .. } | Event::Fails { .. } | Event::GoesOn { .. } => {}
        }
    }

    fn write(&mut self, worker: usize, at: Duration, label: &str, outcome: Outcome) {
        let at = rounded(at);
        self.things.push(Thing::Exchange(Exchange {
            from: worker,
            to: self.store,
            label: label.to_owned(),
            sent: at,
            arrived: Some(at),
            outcome: Some(outcome),
            answered: Some(at),
        }));
    }

    fn span(
        &mut self,
        lane: usize,
        from: Duration,
        until: Duration,
        kind: SpanKind,
        label: impl Into<String>,
    ) {
        let (from, until) = (rounded(from), rounded(until));
        self.things.push(Thing::Span(Span { lane, from, until, kind, label: label.into() }));
    }

    fn mark(&mut self, lane: usize, at: Duration, kind: MarkKind, label: impl Into<String>) {
        let at = rounded(at);
        self.things.push(Thing::Mark(Mark { lane, at, kind, label: label.into() }));
    }
}

/// The resolution is the interval at which masters were checked: events at about the same time are
/// drawn at the same place.
fn rounded(at: Duration) -> Duration {
    let millis = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(millis / 25 * 25)
}
