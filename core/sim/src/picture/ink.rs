//! Shapes and words as SVG elements.

use std::fmt::{self, Write as _};

/// The size of all words but the title's, in the picture's units: 11 pixels on a screen that is 390
/// wide.
pub(super) const FONT: f64 = 16.0;

/// The approximate width of a text, rather too large than too small, because the reader's font is
/// unknown.
pub(super) fn width_of(text: &str) -> f64 {
    let parts = text.chars().map(|character| match character {
        'i' | 'j' | 'l' | '\'' | '|' | '.' | ',' | ':' | ' ' => 0.32,
        'f' | 't' | 'r' | '(' | ')' | '-' => 0.41,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 1.0,
        'A'..='Z' => 0.7,
        _ => 0.62,
    });
    parts.sum::<f64>() * FONT
}

/// A text that is valid in an element or an attribute. Control characters, which XML does not
/// allow, become spaces.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                character if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => {
                    f.write_char(' ')?;
                }
                character => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// A coordinate, rounded to tenths of a unit, so that all builds write the same digits.
#[derive(Clone, Copy)]
pub(super) struct Num(pub(super) f64);

impl fmt::Display for Num {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.1}", self.0);
        let text = text.strip_suffix(".0").unwrap_or(&text);
        f.write_str(if text == "-0" { "0" } else { text })
    }
}

/// A piece of SVG that grows.
#[derive(Default)]
pub(super) struct Ink(pub(super) String);

impl Ink {
    pub(super) fn raw(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.0.write_fmt(text);
        self.0.push('\n');
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(Num);
        self.raw(format_args!(r#"<path class="{class}" d="M{x1} {y1}L{x2} {y2}"/>"#));
    }

    pub(super) fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), round: f64) {
        let [x, y, width, height, round] = [x, y, width.max(0.0), height, round].map(Num);
        self.raw(format_args!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}" rx="{round}"/>"#
        ));
    }

    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let [x, y] = [x, y].map(Num);
        self.raw(format_args!(r#"<text class="{class}" x="{x}" y="{y}">{}</text>"#, Escaped(text)));
    }

    /// A line with a point at its end, drawn faintly, because the marks show the same.
    pub(super) fn arrow(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = (dx * dx + dy * dy).sqrt().max(0.1);
        let (ux, uy) = (dx / length, dy / length);
        // It ends before the mark on the lane.
        let tip = (to.0 - ux * 6.5, to.1 - uy * 6.5);
        let base = (tip.0 - ux * 7.0, tip.1 - uy * 7.0);
        let (left, right) = ((base.0 - uy * 3.2, base.1 + ux * 3.2), (base.0 + uy * 3.2, base.1 - ux * 3.2));
        self.line(class, from, base);
        let [a, b, c, d, e, g] = [tip.0, tip.1, left.0, left.1, right.0, right.1].map(Num);
        self.raw(format_args!(r#"<path class="{class} tip" d="M{a} {b}L{c} {d}L{e} {g}Z"/>"#));
    }

    /// Slanted lines within a rectangle.
    pub(super) fn hatch(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let mut path = String::new();
        let mut at = x;
        while at < x + width {
            let run = height.min(x + width - at);
            let [x1, y1, x2, y2] = [at, y + height, at + run, y + height - run].map(Num);
            let _ = write!(path, "M{x1} {y1}L{x2} {y2}");
            at += 7.0;
        }
        self.raw(format_args!(r#"<path class="{class}" d="{path}"/>"#));
    }

    fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        let [x, y, radius] = [x, y, radius].map(Num);
        self.raw(format_args!(r#"<circle class="{class}" cx="{x}" cy="{y}" r="{radius}"/>"#));
    }

    fn path(&mut self, class: &str, points: &[(f64, f64)], (x, y): (f64, f64), closed: bool) {
        let mut path = String::new();
        for (place, (dx, dy)) in points.iter().enumerate() {
            let letter = if place == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{letter}{} {}", Num(x + dx), Num(y + dy));
        }
        let end = if closed { "Z" } else { "" };
        self.raw(format_args!(r#"<path class="{class}" d="{path}{end}"/>"#));
    }

    /// One of the marks, around this point.
    pub(super) fn symbol(&mut self, symbol: Symbol, at: (f64, f64)) {
        match symbol {
            Symbol::Granted => {
                self.circle("yes", at, 6.5);
                self.path("tick", &[(-3.0, 0.2), (-0.9, 2.6), (3.2, -2.4)], at, false);
            }
            Symbol::Refused => {
                self.circle("no", at, 6.0);
                self.path("nox", &[(-2.6, -2.6), (2.6, 2.6)], at, false);
                self.path("nox", &[(-2.6, 2.6), (2.6, -2.6)], at, false);
            }
            Symbol::Failed => {
                self.path("warn", &[(0.0, -7.0), (7.0, 5.5), (-7.0, 5.5)], at, true);
                self.path("tick", &[(0.0, -2.5), (0.0, 1.2)], at, false);
                self.path("tick", &[(0.0, 3.0), (0.0, 3.8)], at, false);
            }
            Symbol::Done => self.circle("done", at, 4.0),
            Symbol::Unanswered => {
                self.path("gone", &[(-4.0, -4.0), (4.0, 4.0)], at, false);
                self.path("gone", &[(-4.0, 4.0), (4.0, -4.0)], at, false);
            }
            Symbol::Quorum => {
                self.path("quorum", &[(0.0, -8.5), (7.0, 0.0), (0.0, 8.5), (-7.0, 0.0)], at, true);
            }
            Symbol::Released => {
                self.path("done", &[(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)], at, true);
            }
            Symbol::Lost => {
                self.path("lost", &[(-5.0, -5.0), (5.0, 5.0)], at, false);
                self.path("lost", &[(-5.0, 5.0), (5.0, -5.0)], at, false);
            }
            Symbol::Fault => {
                let bolt = [(1.5, -9.0), (-5.0, 1.5), (-0.5, 1.5), (-1.5, 9.0), (5.0, -2.0), (0.5, -2.0)];
                self.path("bolt", &bolt, at, true);
            }
            Symbol::Note => self.circle("said", at, 3.2),
            Symbol::Broken => {
                let star = [
                    (-3.5, -8.5),
                    (3.5, -8.5),
                    (8.5, -3.5),
                    (8.5, 3.5),
                    (3.5, 8.5),
                    (-3.5, 8.5),
                    (-8.5, 3.5),
                    (-8.5, -3.5),
                ];
                self.path("broken", &star, at, true);
                self.path("tick", &[(0.0, -4.5), (0.0, 1.2)], at, false);
                self.path("tick", &[(0.0, 3.8), (0.0, 4.6)], at, false);
            }
        }
    }
}

/// A mark. All have different shapes, for readers who cannot tell the colours apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Symbol {
    Granted,
    Refused,
    Failed,
    Done,
    Unanswered,
    Quorum,
    Released,
    Lost,
    Fault,
    Note,
    Broken,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_of_xml_are_escaped() {
        assert_eq!(
            Escaped("<a & \"b\" 'c'>\u{1}\n\u{ffff}é").to_string(),
            "&lt;a &amp; &quot;b&quot; &#39;c&#39;&gt;   é"
        );
    }

    #[test]
    fn numbers_are_rounded_to_one_decimal_place() {
        assert_eq!(
            [0.0, -0.01, 1.25, -3.0, 12.96].map(|number| Num(number).to_string()),
            ["0", "0", "1.2", "-3", "13"]
        );
    }
}
