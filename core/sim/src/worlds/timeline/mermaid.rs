//! A timeline as a sequence diagram.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Actor, Entry, Timeline};

pub(super) fn draw(entries: &[Entry]) -> String {
    let actors = Timeline::actors(entries);
    let mut drawn = String::from("sequenceDiagram\n");
    // Writing to a String cannot fail.
    for actor in &actors {
        let _ = writeln!(drawn, "    participant {actor}");
    }
    for Entry { at, what } in entries {
        let text = what.to_string().replace([';', '#'], ",");
        let at = Duration::from_nanos(*at);
        let (from, to) = what.actors();
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
