//! The legend, with the marks that occur.

use super::ink::{Ink, Symbol, width_of};
use super::row::Used;

const MEANINGS: [(Symbol, &str); 11] = [
    (Symbol::Granted, "granted"),
    (Symbol::Refused, "refused"),
    (Symbol::Failed, "error"),
    (Symbol::Done, "carried out"),
    (Symbol::Unanswered, "no answer"),
    (Symbol::Quorum, "quorum: held from here"),
    (Symbol::Released, "given back"),
    (Symbol::Lost, "lost"),
    (Symbol::Fault, "fault"),
    (Symbol::Note, "says"),
    (Symbol::Broken, "broken promise"),
];

const LINE: f64 = 26.0;

/// Draws the legend below `top`, and returns where it ends.
pub(super) fn draw(ink: &mut Ink, used: &Used, (left, right): (f64, f64), top: f64) -> f64 {
    let (mut x, mut y) = (left, top + 14.0);
    let mut next = |text: &str, sign: f64| {
        let width = sign + 6.0 + width_of(text);
        if x > left && x + width > right {
            (x, y) = (left, y + LINE);
        }
        let at = (x, y);
        x += width + 12.0;
        at
    };
    for (symbol, text) in MEANINGS.iter().filter(|(symbol, _)| used.symbols.contains(symbol)) {
        let (x, y) = next(text, 16.0);
        ink.symbol(*symbol, (x + 8.0, y));
        ink.text("", (x + 22.0, y + 5.5), text);
    }
    if used.has_valid {
        let (x, y) = next("valid", 30.0);
        ink.rect("bar b0", (x, y - 6.0), (30.0, 12.0), 3.0);
        ink.text("", (x + 36.0, y + 5.5), "valid");
    }
    if used.has_key {
        let (x, y) = next("key kept", 30.0);
        ink.rect("key f0", (x, y - 3.0), (30.0, 6.0), 2.0);
        ink.text("", (x + 36.0, y + 5.5), "key kept");
    }
    if used.has_fault {
        let (x, y) = next("something is wrong here", 30.0);
        ink.rect("fault", (x, y - 8.0), (30.0, 16.0), 2.0);
        ink.hatch("hatch", (x, y - 8.0), (30.0, 16.0));
        ink.text("", (x + 36.0, y + 5.5), "something is wrong here");
    }
    if used.has_way {
        let (x, y) = next("on the way", 30.0);
        ink.rect("fault", (x, y - 8.0), (30.0, 16.0), 2.0);
        ink.text("", (x + 36.0, y + 5.5), "on the way");
    }
    if used.has_broken {
        let (x, y) = next("two hold at once", 30.0);
        ink.rect("alarm", (x, y - 8.0), (30.0, 16.0), 0.0);
        ink.line("edge", (x, y - 8.0), (x, y + 8.0));
        ink.text("", (x + 36.0, y + 5.5), "two hold at once");
    }
    if used.has_gap {
        let text = "nothing happens: shortened";
        let (x, y) = next(text, 30.0);
        ink.rect("gap", (x, y - 8.0), (30.0, 16.0), 3.0);
        ink.text("", (x + 36.0, y + 5.5), text);
    }
    y + LINE / 2.0
}
