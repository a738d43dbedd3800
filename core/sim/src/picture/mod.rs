//! Runs as SVG pictures: a lane for each participant, time to the right, events as arrows, marks
//! and bars.
//!
//! [`Picture`] is plain data. [`Failure::to_svg`](super::Failure::to_svg) and
//! [`Timeline::picture`](super::Timeline::picture) fill it from a simulated world; the command
//! `quorlock demo` fills it from real masters. [`Picture::to_svg`] draws it.
//!
//! The module is here because a world draws its timeline. It depends on nothing else in this crate.

mod axis;
mod ink;
mod labels;
mod legend;
mod row;
mod style;
mod svg;

use std::time::Duration;

/// The data of a picture. All times are relative to one origin on one clock.
///
/// ```
/// use std::time::Duration;
///
/// use quorlock_sim::picture::{Exchange, Lane, LaneKind, Outcome, Picture, Thing};
///
/// let at = Duration::from_micros;
/// let picture = Picture {
///     title: "One request".into(),
///     lanes: vec![Lane::new("worker", LaneKind::Client), Lane::new("redis-1", LaneKind::Master)],
///     things: vec![Thing::Exchange(Exchange {
///         from: 0,
///         to: 1,
///         label: "lock".into(),
///         sent: at(100),
///         arrived: Some(at(350)),
///         outcome: Some(Outcome::Granted),
///         answered: Some(at(600)),
///     })],
///     ..Picture::default()
/// };
/// assert!(picture.to_svg().starts_with("<svg "));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Picture {
    /// The title above the picture.
    pub title: String,
    /// The result of the run, shown under the title.
    pub verdict: Option<Verdict>,
    /// The participants, from top to bottom. Things refer to them by index.
    pub lanes: Vec<Lane>,
    /// The events, in any order. Those that refer to a lane that does not exist are left out.
    pub things: Vec<Thing>,
    /// When the picture ends, if not with the last event. Events that begin later are left out, and
    /// those that last longer continue beyond the edge.
    pub until: Option<Duration>,
    /// The approximate number of lines, if the picture is not to choose. Few lines give an
    /// overview, many show events that follow each other closely.
    pub lines: Option<usize>,
    /// Remarks, shown under the legend.
    pub notes: Vec<String>,
}

/// The result of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All promises were kept.
    Kept(String),
    /// A promise was broken.
    Broken(String),
}

/// A participant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lane {
    /// The name before the lane, which is cut off after about eight characters.
    pub name: String,
    /// What kind of participant it is.
    pub kind: LaneKind,
}

impl Lane {
    /// Creates a lane with this name.
    pub fn new(name: impl Into<String>, kind: LaneKind) -> Self {
        Self { name: name.into(), kind }
    }
}

/// The kind of a participant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaneKind {
    /// A process that takes locks. Each has its own colour.
    Client,
    /// A master that votes.
    Master,
    /// The data that is written under a lock.
    Store,
}

/// One event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Thing {
    /// A command and its answer.
    Exchange(Exchange),
    /// A state that lasts for some time.
    Span(Span),
    /// An event at one instant.
    Mark(Mark),
}

/// A command of a client, its outcome and the answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// The lane of the sender.
    pub from: usize,
    /// The lane of the receiver.
    pub to: usize,
    /// The request, in a word or two. If a client sends several commands with the same label
    /// shortly after each other, the label is drawn once.
    pub label: String,
    /// When it was sent.
    pub sent: Duration,
    /// When it was executed. If this is not known, the command is drawn as executed halfway between
    /// sending and answer; without an answer, as lost.
    pub arrived: Option<Duration>,
    /// Its outcome.
    pub outcome: Option<Outcome>,
    /// When the answer arrived.
    pub answered: Option<Duration>,
}

/// The outcome of a command.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// A vote for the client.
    Granted,
    /// A vote against the client.
    Refused,
    /// An error, which is not a vote.
    Failed,
    /// Executed, without a vote.
    Done,
}

/// A state that lasts for some time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// The lane.
    pub lane: usize,
    /// When it begins.
    pub from: Duration,
    /// When it ends.
    pub until: Duration,
    /// The kind of state.
    pub kind: SpanKind,
    /// A description in a few words.
    pub label: String,
}

/// The kind of a [`Span`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanKind {
    /// A lock is valid.
    Valid,
    /// A master keeps the key of a client.
    Key {
        /// The lane of the client, for its colour.
        of: usize,
    },
    /// The participant is faulty.
    Fault,
    /// The network to the participant is faulty.
    Way,
    /// A promise is broken; drawn over all lanes.
    Broken,
}

/// An event at one instant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// The lane.
    pub lane: usize,
    /// The instant.
    pub at: Duration,
    /// The kind of event.
    pub kind: MarkKind,
    /// A description in a few words.
    pub label: String,
}

/// The kind of a [`Mark`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkKind {
    /// A quorum has granted: the lock is held from here on.
    Quorum,
    /// A lock is released.
    Released,
    /// A lock is lost: its validity ends while its holder relies on it.
    Lost,
    /// A fault.
    Fault,
    /// A remark.
    Note,
    /// A promise is broken.
    Broken,
}

impl Picture {
    /// Draws the picture as a self-contained SVG document, for light and dark backgrounds.
    ///
    /// The same data gives the same text. The document scales with its container and can be read on
    /// a phone: what does not fit into a line continues in the next one. Spans without events are
    /// shortened, and marked as such. If there are more than 160 events, only the last ones are
    /// shown.
    pub fn to_svg(&self) -> String {
        svg::draw(self)
    }
}
