//! Labels above lanes, which do not overlap.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ink::width_of;
use super::{Exchange, LaneKind, Mark, MarkKind, Span, SpanKind, Thing};

/// How high a line of words is.
pub(super) const LEVEL: f64 = 19.0;

/// Words that belong to a place on a lane.
#[derive(Clone, Debug)]
pub(super) struct Label {
    pub(super) lane: usize,
    /// Where they should begin.
    pub(super) at: f64,
    pub(super) text: String,
    pub(super) class: &'static str,
    /// Labels with a larger weight are placed first.
    pub(super) weight: u8,
}

/// A label that has found room.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) label: Label,
    pub(super) left: f64,
    pub(super) width: f64,
    /// How many lines of words above the lane, from 0.
    pub(super) level: usize,
}

/// The smallest distance at which a label is repeated.
const SAME: f64 = 140.0;

/// All words, with their places on the whole axis.
pub(super) fn of(things: &[Thing], place: impl Fn(Duration) -> f64) -> Vec<Label> {
    let mut labels = Vec::new();
    let mut rounds = BTreeMap::new();
    for thing in things {
        let (lane, at, text, class, weight) = match thing {
            Thing::Exchange(Exchange { from, sent, label, .. }) => {
                // One label for all requests at about the same time.
                let here = place(*sent);
                let before = rounds.insert((*from, label), here);
                if before.is_some_and(|before| here - before < SAME) {
                    continue;
                }
                (*from, *sent, label, "mute", 2)
            }
            Thing::Span(Span { lane, from, kind, label, .. }) => match kind {
                SpanKind::Valid | SpanKind::Key { .. } => (*lane, *from, label, "", 4),
                SpanKind::Fault | SpanKind::Way => (*lane, *from, label, "", 5),
                SpanKind::Broken => (*lane, *from, label, "bad", 6),
            },
            Thing::Mark(Mark { lane, at, kind, label }) => match kind {
                MarkKind::Broken | MarkKind::Lost => (*lane, *at, label, "bad", 6),
                MarkKind::Fault => (*lane, *at, label, "", 5),
                MarkKind::Note | MarkKind::Quorum => (*lane, *at, label, "", 3),
                MarkKind::Released => (*lane, *at, label, "mute", 1),
            },
        };
        if !text.is_empty() {
            labels.push(Label { lane, at: place(at), text: text.clone(), class, weight });
        }
    }
    labels
}

/// The most lines of words above a lane.
fn most(kind: LaneKind) -> usize {
    match kind {
        LaneKind::Client => 3,
        LaneKind::Master | LaneKind::Store => 2,
    }
}

/// Finds room for labels in a line of this width. The second result is the number of labels that
/// found none.
pub(super) fn place(
    mut labels: Vec<Label>,
    width: f64,
    kind: impl Fn(usize) -> LaneKind,
) -> (Vec<Placed>, usize) {
    labels.sort_by(|a, b| b.weight.cmp(&a.weight).then(a.at.total_cmp(&b.at)));
    let (mut placed, mut left_out) = (Vec::<Placed>::new(), 0);
    for label in labels {
        let wide = width_of(&label.text) + 6.0;
        let left = (label.at - 3.0).min(width - wide).max(0.0);
        let is_free = |level: &usize| {
            placed.iter().all(|other| {
                other.label.lane != label.lane
                    || other.level != *level
                    || left + wide + 4.0 <= other.left
                    || other.left + other.width + 4.0 <= left
            })
        };
        match (0..most(kind(label.lane))).find(is_free) {
            Some(level) => placed.push(Placed { label, left, width: wide, level }),
            None => left_out += 1,
        }
    }
    (placed, left_out)
}

/// The text in lines of at most `characters` characters, broken at spaces.
pub(super) fn wrapped(text: &str, characters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= characters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_beside_or_above_each_other() {
        let label = |at, weight| Label { lane: 0, at, text: "label".into(), class: "", weight };
        let labels = vec![label(0.0, 0), label(10.0, 1), label(20.0, 0), label(300.0, 0), label(95.0, 0)];
        let (placed, left_out) = place(labels, 100.0, |_| LaneKind::Master);
        assert_eq!((placed.len(), left_out), (3, 2));
        assert!(placed.iter().all(|placed| placed.left + placed.width <= 100.0));
        assert!(placed.iter().any(|placed| placed.label.weight == 1 && placed.level == 0));
    }

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), [""; 0]);
    }
}
