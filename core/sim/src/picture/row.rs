//! One line of the picture: all lanes, for a stretch of time.

use std::collections::BTreeSet;
use std::time::Duration;

use super::axis::{self, Axis, Stretch};
use super::ink::{Ink, Num, Symbol, width_of};
use super::labels::{self, LEVEL, Placed};
use super::style::COLOURS;
use super::{Exchange, Lane, LaneKind, Mark, MarkKind, Outcome, Span, SpanKind, Thing};

/// The distance of a lane from its words above it, and from the words of the next lane below it.
const ABOVE: f64 = 13.0;
const BELOW: f64 = 14.0;

/// The smallest distance between two marks on one lane.
const BESIDE: f64 = 9.0;

/// What the legend has to explain.
#[derive(Default)]
pub(super) struct Used {
    pub(super) symbols: BTreeSet<Symbol>,
    pub(super) has_valid: bool,
    pub(super) has_key: bool,
    pub(super) has_fault: bool,
    pub(super) has_way: bool,
    pub(super) has_broken: bool,
    pub(super) has_gap: bool,
    /// How many labels found no room.
    pub(super) left_out: usize,
}

pub(super) fn millis(at: Duration) -> f64 {
    at.as_secs_f64() * 1_000.0
}

/// Everything that is drawn, on any lane.
pub(super) struct Scene<'a> {
    pub(super) lanes: &'a [Lane],
    pub(super) things: &'a [Thing],
    pub(super) axis: &'a Axis,
    /// Spans that last longer continue beyond the edge.
    pub(super) until: Option<Duration>,
}

/// One line.
struct Row<'a> {
    scene: &'a Scene<'a>,
    left: f64,
    /// How wide the line is drawn, and the factor by which that is wider than on the axis.
    width: f64,
    factor: f64,
    /// Where each lane is.
    heights: Vec<f64>,
    ink: Ink,
    symbols: Vec<(Symbol, (f64, f64))>,
}

impl Scene<'_> {
    /// The colour of a lane's client, by number.
    fn colour(&self, lane: usize) -> usize {
        let clients = self.lanes.iter().take(lane).filter(|lane| lane.kind == LaneKind::Client);
        clients.count() % COLOURS
    }

    fn kind(&self, lane: usize) -> LaneKind {
        self.lanes.get(lane).map_or(LaneKind::Master, |lane| lane.kind)
    }

    /// When a command was carried out, as far as that is known.
    fn arrival(exchange: &Exchange) -> Option<f64> {
        let half_way = || exchange.answered.map(|answered| (millis(exchange.sent) + millis(answered)) / 2.0);
        exchange.arrived.map(millis).or_else(half_way)
    }

    /// Draws the stretch of the axis between these places, and returns its height.
    pub(super) fn draw(
        &self,
        (left, right): (f64, f64),
        is_last: bool,
        used: &mut Used,
    ) -> (String, f64, Vec<f64>) {
        // All lines except the last end at the same place.
        let factor = axis::LINE / (right - left);
        let factor = if is_last { factor.min(1.0) } else { factor };
        let width = (right - left) * factor;
        let mut labels = labels::of(self.things, |at| self.axis.place(millis(at)));
        labels.retain(|label| label.at >= left && label.at < right);
        for label in &mut labels {
            label.at = (label.at - left) * factor;
        }
        let (placed, left_out) = labels::place(labels, axis::LINE, |lane| self.kind(lane));
        used.left_out += left_out;
        let mut y = 4.0;
        let heights = (0..self.lanes.len()).map(|lane| {
            let levels =
                placed.iter().filter(|placed| placed.label.lane == lane).map(|placed| placed.level + 1);
            // There are always fewer lines of labels than a `u32` can count.
            let levels = u32::try_from(levels.max().unwrap_or(0)).unwrap_or(0);
            let at = y + f64::from(levels) * LEVEL + ABOVE;
            y = at + BELOW;
            at
        });
        let heights: Vec<f64> = heights.collect();
        let mut row =
            Row { scene: self, left, width, factor, heights, ink: Ink::default(), symbols: Vec::new() };
        // Shapes beyond the line are cut off, but labels are not.
        let [drawn_width, drawn_height] = [width, y].map(Num);
        row.ink.raw(format_args!(r#"<svg width="{drawn_width}" height="{drawn_height}">"#));
        row.ground(y, used);
        row.spans(y, used);
        row.exchanges();
        row.ink.raw(format_args!("</svg>"));
        row.words(&placed);
        row.marks();
        row.symbols(used);
        row.axis(y + 4.0);
        (row.ink.0, y + 28.0, row.heights)
    }
}

impl Row<'_> {
    fn x(&self, at: f64) -> f64 {
        (self.scene.axis.place(at) - self.left) * self.factor
    }

    fn y(&self, lane: usize) -> f64 {
        self.heights.get(lane).copied().unwrap_or(0.0)
    }

    /// Whether something between these places can be seen here.
    fn shows(&self, from: f64, until: f64) -> bool {
        until >= -10.0 && from <= self.width + 10.0
    }

    /// The lanes, and where nothing happens.
    fn ground(&mut self, height: f64, used: &mut Used) {
        let axis = self.scene.axis;
        for stretch in axis.stretches.iter().filter(|stretch| stretch.is_shortened) {
            let (from, until) = (self.x(stretch.from) + 10.0, self.x(stretch.until) - 10.0);
            if self.shows(from, until) {
                used.has_gap = true;
                self.ink.rect("gap", (from, 2.0), (until - from, height - 2.0), 3.0);
            }
        }
        for place in 0..self.heights.len() {
            let y = self.y(place);
            self.ink.line("lane", (0.0, y), (self.width, y));
        }
    }

    fn spans(&mut self, height: f64, used: &mut Used) {
        let mut spans: Vec<&Span> = self
            .scene
            .things
            .iter()
            .filter_map(|thing| if let Thing::Span(span) = thing { Some(span) } else { None })
            .collect();
        // Faults are drawn below locks.
        spans.sort_by_key(|span| match span.kind {
            SpanKind::Broken => 0,
            SpanKind::Way | SpanKind::Fault => 1,
            SpanKind::Key { .. } | SpanKind::Valid => 2,
        });
        for Span { lane, from, until, kind, .. } in spans {
            let goes_on = self.scene.until.is_some_and(|end| *until > end);
            let (from, until) = (self.x(millis(*from)), self.x(millis(*until)));
            let until = if goes_on { until + 24.0 } else { until };
            if !self.shows(from, until) {
                continue;
            }
            // A span that begins or ends elsewhere continues to the edge.
            let (from, until) = (from.max(-8.0), until.min(self.width + 8.0));
            let width = (until - from).max(3.0);
            let y = self.y(*lane);
            match kind {
                SpanKind::Valid => {
                    used.has_valid = true;
                    let class = format!("bar b{}", self.scene.colour(*lane));
                    self.ink.rect(&class, (from, y - 6.0), (width, 12.0), 3.0);
                }
                SpanKind::Key { of } => {
                    used.has_key = true;
                    let class = format!("key f{}", self.scene.colour(*of));
                    self.ink.rect(&class, (from, y - 3.0), (width, 6.0), 2.0);
                }
                SpanKind::Fault => {
                    used.has_fault = true;
                    self.ink.rect("fault", (from, y - 10.0), (width, 20.0), 2.0);
                    self.ink.hatch("hatch", (from, y - 10.0), (width, 20.0));
                }
                SpanKind::Way => {
                    used.has_way = true;
                    self.ink.rect("fault", (from, y - 10.0), (width, 20.0), 2.0);
                }
                SpanKind::Broken => {
                    used.has_broken = true;
                    self.ink.rect("alarm", (from, 0.0), (width, height), 0.0);
                    self.ink.line("edge", (from, 0.0), (from, height));
                }
            }
        }
    }

    fn exchanges(&mut self) {
        let mut symbols = Vec::new();
        for thing in self.scene.things {
            let Thing::Exchange(exchange) = thing else { continue };
            let sent = self.x(millis(exchange.sent));
            let arrived = Scene::arrival(exchange).map(|at| self.x(at));
            let answered = exchange.answered.map(|at| self.x(millis(at)));
            let last = answered.or(arrived).unwrap_or(sent + 20.0);
            if !self.shows(sent, last) {
                continue;
            }
            let colour = self.scene.colour(exchange.from);
            let (from, to) = (self.y(exchange.from), self.y(exchange.to));
            let part = |share: f64| from + (to - from) * share;
            let Some(arrived) = arrived else {
                let end = (sent + 18.0, part(0.6));
                self.ink.line(&format!("say lostway c{colour}"), (sent, from), end);
                symbols.push((Symbol::Unanswered, end));
                continue;
            };
            self.ink.arrow(&format!("say c{colour}"), (sent, from), (arrived, to));
            let symbol = match exchange.outcome {
                Some(Outcome::Granted) => Symbol::Granted,
                Some(Outcome::Refused) => Symbol::Refused,
                Some(Outcome::Failed) => Symbol::Failed,
                Some(Outcome::Done) | None => Symbol::Done,
            };
            symbols.push((symbol, (arrived, to)));
            match answered {
                Some(answered) if answered > arrived => {
                    self.ink.arrow(&format!("ans c{colour}"), (arrived, to), (answered, from));
                }
                Some(_) => {}
                None if matches!(symbol, Symbol::Done) => {}
                None => {
                    let end = (arrived + 16.0, part(0.5));
                    self.ink.line(&format!("say lostway c{colour}"), (arrived, to), end);
                    symbols.push((Symbol::Unanswered, end));
                }
            }
        }
        let mut drawn: Vec<(f64, f64)> = Vec::new();
        for (symbol, (mut x, y)) in symbols {
            // No mark hides another one.
            while drawn.iter().any(|(left, height)| (x - left).abs() < BESIDE && (y - height).abs() < 1.0) {
                x += BESIDE;
            }
            drawn.push((x, y));
            self.symbols.push((symbol, (x, y)));
        }
    }

    fn marks(&mut self) {
        for thing in self.scene.things {
            let Thing::Mark(Mark { lane, at, kind, .. }) = thing else { continue };
            let at = (self.x(millis(*at)), self.y(*lane));
            let symbol = match kind {
                MarkKind::Quorum => Symbol::Quorum,
                MarkKind::Released => Symbol::Released,
                MarkKind::Lost => Symbol::Lost,
                MarkKind::Fault => Symbol::Fault,
                MarkKind::Note => Symbol::Note,
                MarkKind::Broken => Symbol::Broken,
            };
            self.symbols.push((symbol, at));
        }
    }

    /// Marks, over all else, each in the line that it belongs to.
    fn symbols(&mut self, used: &mut Used) {
        for (symbol, at) in std::mem::take(&mut self.symbols) {
            if at.0 >= 0.0 && at.0 < self.width {
                used.symbols.insert(symbol);
                self.ink.symbol(symbol, at);
            }
        }
    }

    fn words(&mut self, placed: &[Placed]) {
        for Placed { label, left, width, level } in placed {
            let level = f64::from(u32::try_from(*level).unwrap_or(0));
            let y = self.y(label.lane) - ABOVE - level * LEVEL;
            self.ink.rect("halo", (*left, y - 13.5), (*width, 17.5), 2.0);
            let class = format!("{} f{}", label.class, self.scene.colour(label.lane));
            let own = self.scene.kind(label.lane) == LaneKind::Client && label.class != "bad";
            self.ink.text(if own { &class } else { label.class }, (left + 3.0, y), &label.text);
        }
    }

    /// Times below the lanes.
    fn axis(&mut self, y: f64) {
        let axis = self.scene.axis;
        self.ink.line("axis", (0.0, y), (self.width, y));
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for stretch in axis.stretches.iter().filter(|stretch| stretch.is_shortened) {
            let middle = (self.x(stretch.from) + self.x(stretch.until)) / 2.0;
            let text = format!("… {} …", axis::span(stretch.until - stretch.from));
            if middle >= 30.0 && middle <= self.width - 30.0 {
                let half = width_of(&text) / 2.0;
                taken.push((middle - half, middle + half));
                self.ink.text("mute mid", (middle, y + 18.0), &text);
            }
        }
        let gaps = taken.len();
        let drawn = |stretch: &&Stretch| {
            !stretch.is_shortened && self.x(stretch.until) >= 0.0 && self.x(stretch.from) <= self.width
        };
        let stretches: Vec<Stretch> = axis.stretches.iter().filter(drawn).copied().collect();
        let step = axis::step(axis.scale, 60.0);
        for stretch in &stretches {
            // No stretch has room for more.
            for number in 0..4 {
                let at = (stretch.from / step).ceil() * step + f64::from(number) * step;
                if at <= stretch.until {
                    self.time(at, y, &mut taken);
                }
            }
        }
        // If no round time has found a place, another time is written. Each line has at least one
        // time, if necessary beside its place.
        for stretch in &stretches {
            self.time(stretch.from, y, &mut taken);
        }
        let is_told = |stretch: &Stretch| self.x(stretch.from) >= 0.0;
        if let (0, Some(first)) = (taken.len() - gaps, axis.stretches.iter().find(|stretch| is_told(stretch)))
        {
            let text = axis::time(first.from);
            let x = self.x(first.from);
            self.ink.line("axis", (x, y), (x, y + 4.0));
            self.ink.text("mute", (x - width_of(&text) + 6.0, y + 18.0), &text);
        }
    }

    /// Writes this time if it has a place.
    fn time(&mut self, at: f64, y: f64, taken: &mut Vec<(f64, f64)>) {
        let (x, text) = (self.x(at), axis::time(at));
        let half = width_of(&text) / 2.0;
        let (from, until) = (x - half - 4.0, x + half + 4.0);
        let is_free = taken.iter().all(|(left, right)| until <= *left || *right <= from);
        if x >= 0.0 && x <= self.width && until <= axis::LINE + 12.0 && is_free {
            taken.push((from, until));
            self.ink.line("axis", (x, y), (x, y + 4.0));
            self.ink.text("mute mid", (x, y + 18.0), &text);
        }
    }
}
