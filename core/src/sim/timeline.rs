//! What happened, for a person to read.

use std::fmt::{self, Write as _};
use std::time::Duration;

use super::clock::TrueTime;

/// Who does something.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Actor {
    Client(usize),
    Master(usize),
    /// Faults and verdicts.
    World,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(number) => write!(f, "client{number}"),
            Self::Master(number) => write!(f, "master{number}"),
            Self::World => f.write_str("world"),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Entry {
    at: TrueTime,
    from: Actor,
    to: Option<Actor>,
    text: String,
}

/// What happened in a world, in true time. [`Display`](fmt::Display) writes one line for each thing; [`Timeline::to_mermaid`] draws it.
///
/// Tokens go by numbers, in the order of their coming.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Timeline {
    entries: Vec<Entry>,
    is_kept: bool,
}

impl Timeline {
    pub(super) fn new(is_kept: bool) -> Self {
        Self { entries: Vec::new(), is_kept }
    }

    /// Keeps a line, if lines are kept: a proof that runs millions of worlds keeps those of the failed one only.
    pub(super) fn note(
        &mut self,
        at: TrueTime,
        from: Actor,
        to: impl Into<Option<Actor>>,
        text: impl FnOnce() -> String,
    ) {
        if self.is_kept {
            self.entries.push(Entry { at, from, to: to.into(), text: text() });
        }
    }

    /// How many things happened.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing was kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The last `count` things only.
    #[must_use]
    pub fn last(&self, count: usize) -> Self {
        let skipped = self.entries.len().saturating_sub(count);
        Self { entries: self.entries.iter().skip(skipped).cloned().collect(), is_kept: self.is_kept }
    }

    /// A sequence diagram in the language of [Mermaid](https://mermaid.js.org/syntax/sequenceDiagram.html).
    pub fn to_mermaid(&self) -> String {
        let mut actors: Vec<Actor> = Vec::new();
        for actor in self.entries.iter().flat_map(|entry| [Some(entry.from), entry.to]).flatten() {
            if actor != Actor::World && !actors.contains(&actor) {
                actors.push(actor);
            }
        }
        actors.sort_by_key(|actor| match actor {
            Actor::Client(number) => (0, *number),
            Actor::Master(number) => (1, *number),
            Actor::World => (2, 0),
        });
        let mut drawn = String::from("sequenceDiagram\n");
        // Writing to a String cannot fail.
        for actor in &actors {
            let _ = writeln!(drawn, "    participant {actor}");
        }
        for Entry { at, from, to, text } in &self.entries {
            let text = text.replace([';', '#'], ",");
            let at = Duration::from_nanos(*at);
            let _ = match (from, to, actors.first(), actors.last()) {
                (_, Some(to), ..) => writeln!(drawn, "    {from}->>{to}: {at:?} {text}"),
                (Actor::World, None, Some(first), Some(last)) => {
                    writeln!(drawn, "    Note over {first},{last}: {at:?} {text}")
                }
                _ => writeln!(drawn, "    Note over {from}: {at:?} {text}"),
            };
        }
        drawn
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Entry { at, from, to, text } in &self.entries {
            let (millis, nanos) = (at / 1_000_000, at % 1_000_000);
            let actors = match to {
                Some(to) => format!("{from} → {to}"),
                None => from.to_string(),
            };
            writeln!(f, "{millis:>8}.{nanos:06} ms  {actors:<18}  {text}")?;
        }
        Ok(())
    }
}
