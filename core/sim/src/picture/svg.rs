//! The whole document: title, lines, legend and notes.

use std::time::Duration;

use super::axis::Axis;
use super::ink::{Escaped, Ink, Num, width_of};
use super::labels::wrapped;
use super::legend;
use super::row::{Scene, Used, millis};
use super::style::STYLE;
use super::{Exchange, Mark, Picture, Span, Thing, Verdict};

/// How wide the picture is, in its own units.
const WIDTH: f64 = 560.0;

/// Where lanes begin, after their names.
const LANES: f64 = 94.0;

const MARGIN: f64 = 8.0;

/// The largest number of things that are shown; if there are more, the last ones.
const MOST: usize = 160;

/// The largest width of a lane's name.
const NAME: f64 = LANES - MARGIN - 2.0;

/// When a thing begins and ends, as far as it is drawn, and the lanes that it names.
fn times_of(thing: &Thing) -> (Vec<Duration>, [usize; 2]) {
    match thing {
        Thing::Exchange(Exchange { from, to, sent, arrived, answered, .. }) => {
            ([Some(*sent), *arrived, *answered].into_iter().flatten().collect(), [*from, *to])
        }
        Thing::Span(Span { lane, from, until, .. }) => (vec![*from, *until], [*lane; 2]),
        Thing::Mark(Mark { lane, at, .. }) => (vec![*at], [*lane; 2]),
    }
}

pub(super) fn draw(picture: &Picture) -> String {
    let mut things: Vec<Thing> = picture
        .things
        .iter()
        .filter(|thing| times_of(thing).1.iter().all(|lane| *lane < picture.lanes.len()))
        .cloned()
        .collect();
    things.sort_by_key(|thing| times_of(thing).0.first().copied());
    let early = things.len().saturating_sub(MOST);
    let left_out: Vec<Thing> = things.drain(..early).collect();
    let first = things.first().and_then(|thing| times_of(thing).0.first().copied()).unwrap_or_default();
    // A span that began among the left-out things may still last when the picture begins.
    things.extend(left_out.into_iter().filter_map(|thing| match thing {
        Thing::Span(span) if span.until > first => Some(Thing::Span(Span { from: first, ..span })),
        _ => None,
    }));
    let ends = |at: &Duration| picture.until.is_none_or(|until| *at <= until);
    things.retain(|thing| times_of(thing).0.first().is_some_and(ends));
    let times =
        things.iter().flat_map(|thing| times_of(thing).0).filter(ends).chain(picture.until).map(millis);
    let axis = Axis::new(times.collect(), things.len(), picture.lines);
    let scene = Scene { lanes: &picture.lanes, things: &things, axis: &axis, until: picture.until };
    let (mut ink, mut used) = (Ink::default(), Used::default());
    let mut y = heading(&mut ink, picture);
    let lines = axis.lines();
    for (place, line) in lines.iter().enumerate() {
        let (drawn, height, heights) = scene.draw(*line, place + 1 == lines.len(), &mut used);
        for (lane, at) in picture.lanes.iter().zip(heights) {
            ink.text("", (MARGIN, y + at + 5.5), &short(&lane.name));
        }
        let [left, top] = [LANES, y].map(Num);
        ink.raw(format_args!(r#"<g transform="translate({left} {top})">"#));
        ink.0.push_str(&drawn);
        ink.raw(format_args!("</g>"));
        y += height + 12.0;
    }
    y = legend::draw(&mut ink, &used, (MARGIN, WIDTH - MARGIN), y);
    let early = (early > 0).then(|| format!("The first {early} things are left out."));
    let words = match used.left_out {
        0 => None,
        1 => Some("One label found no room.".to_owned()),
        more => Some(format!("{more} labels found no room.")),
    };
    for line in picture.notes.iter().chain(&early).chain(&words).flat_map(|note| wrapped(note, 62)) {
        y += 20.0;
        ink.text("mute", (MARGIN, y), &line);
    }
    document(picture, &ink.0, y + 14.0)
}

/// The name, cut off where the lane begins.
fn short(name: &str) -> String {
    if width_of(name) <= NAME {
        return name.to_owned();
    }
    let mut short = String::new();
    for character in name.chars() {
        short.push(character);
        if width_of(&short) + width_of("…") > NAME {
            short.pop();
            break;
        }
    }
    short.push('…');
    short
}

/// The title and the verdict. Returns where they end.
fn heading(ink: &mut Ink, picture: &Picture) -> f64 {
    let mut y = 10.0;
    for line in wrapped(&picture.title, 52) {
        y += 22.0;
        ink.text("title", (MARGIN, y), &line);
    }
    let (class, text) = match &picture.verdict {
        None => return y + 14.0,
        Some(Verdict::Kept(text)) => ("good", text),
        Some(Verdict::Broken(text)) => ("bad", text),
    };
    for line in wrapped(text, 62) {
        y += 21.0;
        ink.text(class, (MARGIN, y), &line);
    }
    y + 14.0
}

fn document(picture: &Picture, drawn: &str, height: f64) -> String {
    let mut ink = Ink::default();
    let [width, height_text] = [WIDTH, height].map(Num);
    let title = Escaped(&picture.title);
    ink.raw(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%\" viewBox=\"0 0 {width} {height_text}\" \
         style=\"max-width:47rem\" role=\"img\" aria-label=\"{title}\">"
    ));
    ink.raw(format_args!("<title>{title}</title>"));
    ink.raw(format_args!("<style>\n{STYLE}\n</style>"));
    ink.rect("ground", (0.0, 0.0), (WIDTH, height), 8.0);
    ink.0.push_str(drawn);
    ink.raw(format_args!("</svg>"));
    ink.0
}
