//! The ratios to raw as a picture: for each panel a row for each way, with a dot at the median and
//! a line from the least to the most of the rounds.

use std::fmt::Write;

use crate::figures::{Rounds, Spread};
use crate::table::number;
use crate::ways::{PEERS, RAW};

const WIDTH: f64 = 760.0;
/// Where the scale begins and ends; the names are to the left, the numbers to the right.
const LEFT: f64 = 150.0;
const RIGHT: f64 = 700.0;
const TOP: f64 = 64.0;
const ROW: f64 = 22.0;
const TITLE: f64 = 26.0;
/// The height below a panel, for the numbers of the scale and a margin.
const BELOW: f64 = 40.0;

/// The picture has different colours for light and for dark pages, and no background.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f2328;--dim:#59636e;--line:#d1d9e0;--ours:#0969da;--peer:#bc4c00}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9198a1;--line:#3d444d;--ours:#58a6ff;--peer:#f0883e}}
text{font:13px system-ui,sans-serif;fill:var(--ink)}.title{font-weight:600}.dim{fill:var(--dim);font-size:12px}
.grid{stroke:var(--line)}.one{stroke:var(--dim);stroke-dasharray:4 3}.range{stroke-width:3;stroke-opacity:.45;stroke-linecap:round}
.ours{stroke:var(--ours);fill:var(--ours)}.peer{stroke:var(--peer);fill:var(--peer)}.floor{stroke:var(--dim);fill:var(--dim)}";

/// Some ways that were measured together. Where a ratio is larger, that way takes more time.
#[derive(Debug)]
pub(crate) struct Panel {
    title: String,
    rows: Vec<(&'static str, Spread)>,
}

impl Panel {
    /// The ratios of this figure to raw, of all ways but raw itself.
    pub(crate) fn of(title: impl Into<String>, ways: &[&'static str], trials: &Rounds, figure: &str) -> Self {
        let others = ways.iter().filter(|way| **way != RAW);
        let rows = others.filter_map(|way| Some((*way, trials.ratio(way, RAW, figure)?)));
        Self { title: title.into(), rows: rows.collect() }
    }

    fn height(&self) -> f64 {
        TITLE + ROW * self.rows.len() as f64 + BELOW
    }
}

/// Larger ratios are drawn at the end of the scale with their numbers, because the others need the
/// space.
const MOST: f64 = 128.0;

/// A scale of ratios, each power of two as wide as the next.
struct Scale {
    least: f64,
    most: f64,
}

impl Scale {
    fn of(panels: &[Panel]) -> Self {
        let spreads = || panels.iter().flat_map(|panel| &panel.rows).map(|(_, spread)| spread);
        let least = spreads().map(|spread| spread.least).fold(0.9, f64::min);
        let most = spreads().map(|spread| spread.most).fold(2.0, f64::max);
        Self { least: least.max(1.0 / 64.0).log2().floor(), most: most.min(MOST).log2().ceil() }
    }

    fn x(&self, ratio: f64) -> f64 {
        let place = (ratio.log2() - self.least) / (self.most - self.least);
        LEFT + (RIGHT - LEFT) * place.clamp(0.0, 1.0)
    }

    /// The powers of two to mark on the scale, at most as many as fit without their numbers
    /// touching.
    fn ticks(&self) -> impl Iterator<Item = f64> {
        let (least, most) = (self.least, self.most);
        let step = ((most - least) / 12.0).ceil().max(1.0);
        // Multiples of `step`, so that the ratio 1 is always marked if it is on the scale.
        let first = (least / step).ceil() * step;
        (0..=64)
            .map(move |tick| first + step * f64::from(tick))
            .take_while(move |tick| *tick <= most)
            .map(f64::exp2)
    }
}

/// A whole picture.
pub(crate) fn svg(panels: &[Panel]) -> String {
    let height = TOP + panels.iter().map(Panel::height).sum::<f64>();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n<style>{STYLE}</style>\n"
    );
    text(&mut svg, 8.0, 22.0, "title", "Time as a ratio to the floor of raw sockets, in the same round");
    text(
        &mut svg,
        8.0,
        42.0,
        "dim",
        "less is better; dot: median, line: least to most of the rounds; 128 and more at the edge",
    );
    for (x, class, name) in [(LEFT + 400.0, "ours", "Quorlock"), (LEFT + 490.0, "peer", "other clients")] {
        let _ = writeln!(svg, "<circle cx=\"{x}\" cy=\"38\" r=\"5\" class=\"{class}\"/>");
        text(&mut svg, x + 10.0, 42.0, "dim", name);
    }
    let scale = Scale::of(panels);
    let mut top = TOP;
    for panel in panels {
        draw(&mut svg, panel, &scale, top);
        top += panel.height();
    }
    svg += "</svg>\n";
    svg
}

fn draw(svg: &mut String, panel: &Panel, scale: &Scale, top: f64) {
    text(svg, 8.0, top + 14.0, "title", &panel.title);
    let first = top + TITLE;
    let bottom = first + ROW * panel.rows.len() as f64;
    for tick in scale.ticks() {
        let x = scale.x(tick);
        let class = if tick == 1.0 { "one" } else { "grid" };
        line(svg, [x, first, x, bottom], class);
        let label = if tick < 1.0 { format!("1/{}", tick.recip()) } else { format!("{tick}") };
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" class=\"dim\" text-anchor=\"middle\">{label}</text>",
            bottom + 14.0
        );
    }
    for (place, (way, spread)) in panel.rows.iter().enumerate() {
        let y = first + ROW * (place as f64 + 0.5);
        let class = match *way {
            way if PEERS.contains(&way) => "peer",
            way if way.starts_with(RAW) => "floor",
            _ => "ours",
        };
        text(svg, 8.0, y + 4.0, "", way);
        line(svg, [scale.x(spread.least), y, scale.x(spread.most), y], &format!("range {class}"));
        let x = scale.x(spread.median);
        let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" class=\"{class}\"/>");
        text(svg, RIGHT + 8.0, y + 4.0, "dim", &number(spread.median));
    }
}

fn line(svg: &mut String, [x1, y1, x2, y2]: [f64; 4], class: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>"
    );
}

fn text(svg: &mut String, x: f64, y: f64, class: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{text}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(ratio: f64) -> Panel {
        let spread = Spread { median: ratio, least: ratio / 2.0, most: ratio * 2.0 };
        Panel { title: "time < 1 & more".to_owned(), rows: vec![("smol", spread), ("tokio", spread)] }
    }

    /// Checks that every element is closed, in the right order, and that texts contain no special
    /// characters.
    fn elements(svg: &str) -> Vec<String> {
        let (mut open, mut seen) = (Vec::new(), Vec::new());
        for part in svg.split('<').skip(1) {
            let (tag, text) = part.split_once('>').expect("a tag ends");
            assert!(!text.contains('>') && tag.matches('"').count() % 2 == 0, "{part}");
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop().as_deref(), Some(name));
            } else {
                let name = tag.split([' ', '/']).next().expect("a name").to_owned();
                seen.push(name.clone());
                if !tag.ends_with('/') {
                    open.push(name);
                }
            }
        }
        assert!(open.is_empty(), "{open:?}");
        seen
    }

    #[test]
    fn every_measured_way_is_a_dot_in_a_well_formed_picture() {
        let svg = svg(&[panel(1.5), panel(20.0)]);
        let elements = elements(&svg);
        let count = |name| elements.iter().filter(|element| *element == name).count();
        assert_eq!((count("svg"), count("style"), count("circle")), (1, 1, 2 + 4));
        assert!(svg.contains("time &lt; 1 &amp; more") && svg.contains("prefers-color-scheme:dark"));
    }

    #[test]
    fn the_scale_of_ratios_shows_1_and_contains_every_ratio() {
        for ratio in [0.001, 0.5, 1.0, 3.0, 5_000.0] {
            let scale = Scale::of(&[panel(ratio)]);
            let ticks: Vec<_> = scale.ticks().collect();
            assert!(ticks.contains(&1.0) && ticks.len() <= 14, "{ticks:?}");
            assert!((LEFT..=RIGHT).contains(&scale.x(ratio)));
            assert!(scale.x(1.0) < scale.x(2.0));
        }
    }

    #[test]
    fn an_empty_picture_is_well_formed() {
        elements(&svg(&[]));
    }
}
