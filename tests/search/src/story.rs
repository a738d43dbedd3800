//! A behaviour as people read it: a timeline, and a sequence diagram.

use std::fmt::{self, Write as _};

use quorlock_core::internals::{Action as Does, Fate};

use super::actions::Action;
use super::input::{Heard, Input, Told};
use super::item::{Form, Item, Said};
use super::scenario::{Aim, TICK, seat_aims};

/// A party of a story.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Party {
    Client(usize),
    Master(usize),
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(client) => f.write_str(name(*client)),
            Self::Master(master) => write!(f, "m{}", master + 1),
        }
    }
}

fn name(client: usize) -> &'static str {
    ["A", "B"].get(client).copied().unwrap_or("C")
}

/// One event: its time, actor, target and text.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Line {
    tick: u32,
    from: Party,
    to: Option<Party>,
    text: String,
}

/// What happens, line by line. Lines are recorded only after [`Story::listen`], not during a
/// search.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Story {
    /// The targets of each client's locks, and those after a downgrade.
    forms: [[&'static [Aim]; 3]; 2],
    tick: u32,
    lines: Option<Vec<Line>>,
}

impl Story {
    pub(super) fn new(forms: [[&'static [Aim]; 3]; 2]) -> Self {
        Self { forms, ..Self::default() }
    }

    /// Records lines from now on.
    pub(super) fn listen(&mut self) {
        *self = Self { lines: Some(Vec::new()), ..Self::new(self.forms) };
    }

    pub(super) fn stop(&mut self) -> Self {
        std::mem::take(self)
    }

    pub(super) fn mark(&self) -> usize {
        self.lines.as_ref().map_or(0, Vec::len)
    }

    /// Removes the lines since this mark.
    pub(super) fn back_to(&mut self, mark: usize, tick: u32) {
        self.tick = tick;
        if let Some(lines) = &mut self.lines {
            lines.truncate(mark);
        }
    }

    pub(super) fn ticks(&self) -> u32 {
        self.tick
    }

    fn aims_of(&self, client: usize, form: Form) -> &'static [Aim] {
        let [claims, downgraded] = &self.forms;
        let forms = match form {
            Form::Sought => claims,
            Form::Downgraded => downgraded,
            Form::Seat(seat) => return seat_aims(Some(seat)),
        };
        forms.get(client).copied().unwrap_or_default()
    }

    fn add(&mut self, from: Party, to: Option<Party>, text: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(Line { tick: self.tick, from, to, text: text() });
        }
    }

    pub(super) fn says(&mut self, from: Party, text: impl FnOnce() -> String) {
        self.add(from, None, text);
    }

    pub(super) fn happens(&mut self, action: Action) {
        if self.lines.is_none() {
            return;
        }
        let (by, text) = match action {
            Action::Tick => {
                self.tick += 1;
                return;
            }
            Action::Expire { master, entry: Some(_), .. } => {
                (Party::Master(master), "a reader's entry expires".to_owned())
            }
            Action::Expire { master, resource: 0, .. } => {
                (Party::Master(master), "its key expires".to_owned())
            }
            Action::Expire { master, resource, .. } => {
                (Party::Master(master), format!("its key {} expires", resource_name(resource)))
            }
            Action::Evict { master, resource } => {
                (Party::Master(master), format!("loses its key {}", resource_name(resource)))
            }
            Action::Visit { master } => (Party::Master(master), "another reader comes".to_owned()),
            Action::Part { master } => {
                (Party::Master(master), "executes the release of another reader".to_owned())
            }
            Action::Open { master } => (Party::Master(master), "votes again".to_owned()),
            Action::Count { master, .. } => (Party::Master(master), "has counted one grant more".to_owned()),
            Action::Crash { master } => (Party::Master(master), "crashes and starts again".to_owned()),
            Action::GiveUp { client, master, .. } => {
                (Party::Client(client), format!("gives up the silent connection to m{}", master + 1))
            }
            Action::Close { client, master, .. } => {
                (Party::Client(client), format!("loses the connection to m{}", master + 1))
            }
            Action::Copy { client, master } => {
                (Party::Client(client), format!("has its request to m{} doubled on the way", master + 1))
            }
            Action::OpeningFails { client, master } => {
                (Party::Client(client), format!("waits too long for a connection to m{}", master + 1))
            }
            Action::Connected { client, master } => {
                (Party::Client(client), format!("is connected to m{} again", master + 1))
            }
            Action::Late { client, master, twice, .. } => {
                let again = if twice { ", for the first time of two" } else { "" };
                (
                    Party::Master(master),
                    format!("continues with an old connection of {}{again}:", name(client)),
                )
            }
            Action::Begin { .. }
            | Action::Take { .. }
            | Action::Extend { .. }
            | Action::Downgrade { .. }
            | Action::Release { .. }
            | Action::Cancel { .. }
            | Action::Wake { .. }
            | Action::Execute { .. }
            | Action::Refuse { .. }
            | Action::Deliver { .. }
            | Action::Overdue { .. } => return,
        };
        self.add(by, None, || text);
    }

    /// Records an input of the client's own. Answers are recorded when they arrive.
    pub(super) fn hears(&mut self, client: usize, input: Input, now: u8) {
        let text = match input {
            Input::Begin { .. } => "seeks the lock".to_owned(),
            Input::Extend { ttl, .. } => format!("asks for an extension of {ttl} ticks"),
            Input::Downgrade => "shares the lock with readers".to_owned(),
            Input::Release => "releases".to_owned(),
            Input::Cancel => "gives the lock up".to_owned(),
            Input::Wake => format!("is woken at its tick {now}"),
            Input::Take | Input::Answer { .. } => return,
        };
        self.add(Party::Client(client), None, || text);
    }

    pub(super) fn tells(&mut self, client: usize, told: Told) {
        let text = match told {
            Told::Granted { until, number: 0 } => format!("has a quorum, valid until its tick {until}"),
            Told::Granted { number, .. } => format!("has a quorum for the number {number}"),
            Told::NotAcquired => "does not get the lock".to_owned(),
            Told::HeldByAnother => "is told that another holds the lock".to_owned(),
            Told::Settles => "finds the votes split, and is going to try again".to_owned(),
            Told::Extended { until: Some(until) } => format!("has extended, valid until its tick {until}"),
            Told::Extended { until: None } => "has not extended".to_owned(),
            Told::Lost => "is told that the lock is lost".to_owned(),
            Told::Released => "is told what the release found".to_owned(),
        };
        self.add(Party::Client(client), None, || text);
    }

    pub(super) fn sends(&mut self, client: usize, master: usize, item: Item) {
        let aims = self.aims_of(client, item.form());
        self.add(Party::Client(client), Some(Party::Master(master)), || describe(client, aims, item));
    }

    pub(super) fn executes(&mut self, client: usize, master: usize, item: Item, said: Said, is_late: bool) {
        let late = if is_late { " (the answer is lost)" } else { "" };
        let aims = self.aims_of(client, item.form());
        self.add(Party::Master(master), None, || {
            format!("executes {}: {}{late}", describe(client, aims, item), said_of(said))
        });
    }

    pub(super) fn arrives(&mut self, client: usize, master: usize, item: Item, heard: Heard) {
        if self.lines.is_none() {
            return;
        }
        let what = describe(client, self.aims_of(client, item.form()), item);
        match heard {
            Heard::Said(said) => {
                let text = || format!("{} to {what}", said_of(said));
                self.add(Party::Master(master), Some(Party::Client(client)), text);
            }
            Heard::Failed { fate, stale } => self.add(Party::Client(client), None, || {
                let fate = match fate {
                    Fate::NotSent => "was not sent",
                    Fate::Unknown => "has no answer",
                    Fate::Undone => "has no answer, and a release behind it",
                };
                let stale = if stale { ", on a connection long quiet" } else { "" };
                format!("{what} to m{} {fate}{stale}", master + 1)
            }),
        }
    }

    /// The timeline: times, actors and texts, and at its end the violation.
    pub(super) fn as_text(&self, end: &dyn fmt::Display) -> String {
        let mut text = String::new();
        for line in self.lines.iter().flatten() {
            let millis = u128::from(line.tick) * TICK.as_millis();
            let who = match line.to {
                Some(to) => format!("{} to {to}", line.from),
                None => line.from.to_string(),
            };
            let _ = writeln!(text, "{millis:>3} ms  {who:<8}  {}", line.text);
        }
        let _ = writeln!(text, "{:>3} ms  {:<8}  {end}", u128::from(self.tick) * TICK.as_millis(), "=>");
        text
    }

    /// The same as a Mermaid sequence diagram.
    pub(super) fn as_mermaid(&self) -> String {
        let mut text =
            String::from("sequenceDiagram\n    participant A\n    participant m1\n    participant m2\n");
        text.push_str("    participant m3\n    participant B\n");
        if !self.aims_of(2, Form::Sought).is_empty() {
            text.push_str("    participant C\n");
        }
        let mut tick = None;
        for line in self.lines.iter().flatten() {
            if tick != Some(line.tick) {
                tick = Some(line.tick);
                let _ = writeln!(text, "    Note over A,B: {} ms", u128::from(line.tick) * TICK.as_millis());
            }
            let _ = match line.to {
                Some(to) => writeln!(text, "    {}->>{to}: {}", line.from, line.text),
                None => writeln!(text, "    Note over {}: {}", line.from, line.text),
            };
        }
        text
    }
}

/// The names of the resources.
pub(super) const RESOURCES: [&str; 3] = ["r", "s", "t"];

fn resource_name(resource: usize) -> &'static str {
    RESOURCES.get(resource).copied().unwrap_or_default()
}

/// `r` of a lock of one resource, `r+s` of a batch, and `r shared` of a reader.
fn names(aims: &[Aim]) -> String {
    let name = |aim: &Aim| match *aim {
        Aim::Write(resource) => resource_name(resource).to_owned(),
        Aim::Read(resource) => format!("{} shared", resource_name(resource)),
    };
    aims.iter().map(name).collect::<Vec<_>>().join("+")
}

fn describe(client: usize, aims: &[Aim], item: Item) -> String {
    let (token, names) = (format!("{}{}", name(client), item.attempt() + 1), names(aims));
    let millis = u128::from(item.ttl()) * TICK.as_millis();
    match item.action() {
        Does::Acquire if matches!(aims, [Aim::Write(_)]) => format!("SET {names} {token} NX PX {millis}"),
        Does::Acquire => format!("ACQUIRE {names} {token} {millis}"),
        Does::Extend => format!("EXTEND {names} {token} {millis}"),
        Does::Raise => format!("RAISE {names} {token} to {}", item.number()),
        Does::Heal => format!("HEAL {names} {token}"),
        // No client of a search sends these.
        Does::Attend | Does::Open | Does::Keep | Does::Stay | Does::Inspect | Does::ForceRelease => {
            String::new()
        }
        Does::Release => format!("RELEASE {names} {token}"),
        Does::Undo => format!("UNDO {names} {token}"),
        Does::Track | Does::Untrack => "CLIENT TRACKING".to_owned(),
        Does::Ping => "PING".to_owned(),
        Does::Login => "AUTH".to_owned(),
        Does::Confirm => "WAIT".to_owned(),
        Does::Forget => "DEL".to_owned(),
    }
}

fn said_of(said: Said) -> String {
    match said {
        Said::Yes => "yes".to_owned(),
        Said::Counted(number) => format!("yes, number {number}"),
        Said::No => "no".to_owned(),
        Said::Holder => "another's".to_owned(),
        Said::Quarantined => "quarantined".to_owned(),
        Said::ThereInQuarantine => "there, but quarantined".to_owned(),
        Said::Seat(seat) => format!("yes, {}", resource_name(seat.into())),
    }
}
