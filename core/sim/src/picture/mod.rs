//! A run as a picture: a lane for everybody who takes part, time to the right, and what happened as arrows, marks and bars.
//!
//! [`Picture`] is plain data. [`Failure::to_svg`](super::Failure::to_svg) and [`Timeline::picture`](super::Timeline::picture) fill it
//! from a simulated world; whoever watches real masters fills it from what he has seen. [`Picture::to_svg`] draws it.
//!
//! It is a part of the simulation, because a library that takes locks has no use for a drawing; nothing in here knows the simulation.

mod axis;
mod ink;
mod labels;
mod legend;
mod row;
mod style;
mod svg;

use std::time::Duration;

/// What is drawn. All times are counted from one beginning, by one clock.
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
    /// Stands above it.
    pub title: String,
    /// What came of it, under the title.
    pub verdict: Option<Verdict>,
    /// Who takes part, from top to bottom. Things name them by their places here.
    pub lanes: Vec<Lane>,
    /// What happened, in any order. What names a lane that is not there is left out.
    pub things: Vec<Thing>,
    /// When the picture ends, if not with the last thing. What begins later is left out, and what lasts for longer goes on beyond the edge.
    pub until: Option<Duration>,
    /// In about how many lines, if it is not for the picture to choose: fewer are an overview, more show what follows closely on something else.
    pub lines: Option<usize>,
    /// What else a reader should know, under the legend.
    pub notes: Vec<String>,
}

/// What came of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Everything that was promised was kept.
    Kept(String),
    /// A promise was broken.
    Broken(String),
}

/// Somebody who takes part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lane {
    /// Stands before the lane; cut off behind about eight characters.
    pub name: String,
    /// What it is.
    pub kind: LaneKind,
}

impl Lane {
    /// A lane of this name.
    pub fn new(name: impl Into<String>, kind: LaneKind) -> Self {
        Self { name: name.into(), kind }
    }
}

/// What a lane stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaneKind {
    /// A process that seeks locks. Each has a colour of its own.
    Client,
    /// A master that votes.
    Master,
    /// What is written under a lock.
    Store,
}

/// One thing that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Thing {
    /// A command and its answer.
    Exchange(Exchange),
    /// Something that lasts.
    Span(Span),
    /// Something that happens at one time.
    Mark(Mark),
}

/// A command that a client sends, what it comes to, and the answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// Whose lane it comes from.
    pub from: usize,
    /// Whose lane it goes to.
    pub to: usize,
    /// What is asked for, in a word or two. Commands that one client sends at one time with one label share it.
    pub label: String,
    /// When it was sent.
    pub sent: Duration,
    /// When it was carried out; drawn half way to the answer if only that is known, and as lost if nothing is.
    pub arrived: Option<Duration>,
    /// What it came to.
    pub outcome: Option<Outcome>,
    /// When the answer was there.
    pub answered: Option<Duration>,
}

/// What a command came to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// A vote for.
    Granted,
    /// A vote against.
    Refused,
    /// An error, which is no vote.
    Failed,
    /// Carried out, where nothing is voted on.
    Done,
}

/// Something that lasts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// Whose.
    pub lane: usize,
    /// When it begins.
    pub from: Duration,
    /// When it ends.
    pub until: Duration,
    /// What lasts.
    pub kind: SpanKind,
    /// What it is, in a few words.
    pub label: String,
}

/// What lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanKind {
    /// A lock is valid.
    Valid,
    /// A master keeps somebody's key.
    Key {
        /// The lane of whose it is, for its colour.
        of: usize,
    },
    /// Something is wrong with whose lane it is.
    Fault,
    /// Something is wrong on the way there.
    Way,
    /// A promise is broken, over all lanes.
    Broken,
}

/// Something that happens at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Whose.
    pub lane: usize,
    /// When.
    pub at: Duration,
    /// What.
    pub kind: MarkKind,
    /// What it is, in a few words.
    pub label: String,
}

/// What happens at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkKind {
    /// Enough masters have granted: the lock is held from here.
    Quorum,
    /// A lock is given back.
    Released,
    /// A lock is lost: its validity ends while somebody relies on it.
    Lost,
    /// Something goes wrong.
    Fault,
    /// Somebody says something.
    Note,
    /// A promise is broken.
    Broken,
}

impl Picture {
    /// Draws it as an SVG document of its own, for light and dark surroundings, with no script, font or image from elsewhere.
    ///
    /// The same picture gives the same text. It is as wide as its surroundings let it be, and can be read on a telephone: what does not fit into a
    /// line goes on in the next one. Spans in which nothing happens are shortened, and say so. A picture of more than 160 things shows the
    /// last ones.
    pub fn to_svg(&self) -> String {
        svg::draw(self)
    }
}
