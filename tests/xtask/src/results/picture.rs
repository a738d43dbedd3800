//! The picture of the benchmark, drawn from its file: for each panel a row for each way, with a dot
//! at the median of its ratios to raw, and a line from the least to the most of the rounds.

use std::fmt::Write;

use super::Kept;

/// The table of the file that the picture is drawn from.
const TABLE: &str = "picture";

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
struct Panel<'a> {
    title: &'a str,
    rows: Vec<Row<'a>>,
}

#[derive(Debug)]
struct Row<'a> {
    way: &'a str,
    /// Ours, a peer's, or a floor.
    kind: &'a str,
    /// As it was written.
    shown: &'a str,
    median: f64,
    least: f64,
    most: f64,
}

impl<'a> Row<'a> {
    fn of(cells: &'a [String]) -> Option<Self> {
        let [way, kind, shown, least, most] = cells else { return None };
        let number = |text: &str| text.replace(',', "").parse().ok();
        Some(Self { way, kind, shown, median: number(shown)?, least: number(least)?, most: number(most)? })
    }
}

impl Panel<'_> {
    fn height(&self) -> f64 {
        TITLE + ROW * self.rows.len() as f64 + BELOW
    }
}

fn panels(kept: &Kept) -> Vec<Panel<'_>> {
    let mut panels: Vec<Panel<'_>> = Vec::new();
    // The first row has the names of the columns.
    for cells in kept.table(TABLE).skip(1) {
        let Some((title, row)) = cells.split_first().and_then(|(title, row)| Some((title, Row::of(row)?)))
        else {
            continue;
        };
        match panels.last_mut() {
            Some(panel) if panel.title == title => panel.rows.push(row),
            _ => panels.push(Panel { title, rows: vec![row] }),
        }
    }
    panels
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
    fn of(panels: &[Panel<'_>]) -> Self {
        let spreads = || panels.iter().flat_map(|panel| &panel.rows);
        let least = spreads().map(|row| row.least).fold(0.9, f64::min);
        let most = spreads().map(|row| row.most).fold(2.0, f64::max);
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

/// The whole picture.
pub(super) fn of(kept: &Kept) -> String {
    drawn(&panels(kept))
}

fn drawn(panels: &[Panel<'_>]) -> String {
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

fn draw(svg: &mut String, panel: &Panel<'_>, scale: &Scale, top: f64) {
    text(svg, 8.0, top + 14.0, "title", panel.title);
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
    for (place, row) in panel.rows.iter().enumerate() {
        let y = first + ROW * (place as f64 + 0.5);
        text(svg, 8.0, y + 4.0, "", row.way);
        line(svg, [scale.x(row.least), y, scale.x(row.most), y], &format!("range {}", row.kind));
        let x = scale.x(row.median);
        let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" class=\"{}\"/>", row.kind);
        text(svg, RIGHT + 8.0, y + 4.0, "dim", row.shown);
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

    /// A file of two panels with two ways each.
    fn kept(ratios: [f64; 2]) -> Kept {
        let mut lines = "row\tpicture\tpanel\tway\tkind\tmedian\tleast\tmost\n".to_owned();
        for (panel, ratio) in ["time < 1 & more", "rest"].iter().zip(ratios) {
            for way in ["smol", "tokio"] {
                lines += &format!(
                    "row\tpicture\t{panel}\t{way}\tours\t{ratio}\t{}\t{}\n",
                    ratio / 2.0,
                    ratio * 2.0
                );
            }
        }
        Kept { lines: Kept::lines(&lines), ..Kept::default() }
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
        let svg = of(&kept([1.5, 20.0]));
        let elements = elements(&svg);
        let count = |name| elements.iter().filter(|element| *element == name).count();
        assert_eq!((count("svg"), count("style"), count("circle")), (1, 1, 2 + 4));
        assert!(svg.contains("time &lt; 1 &amp; more") && svg.contains("prefers-color-scheme:dark"));
    }

    #[test]
    fn the_scale_of_ratios_shows_1_and_contains_every_ratio() {
        for ratio in [0.001, 0.5, 1.0, 3.0, 5_000.0] {
            let kept = kept([ratio, ratio]);
            let scale = Scale::of(&panels(&kept));
            let ticks: Vec<_> = scale.ticks().collect();
            assert!(ticks.contains(&1.0) && ticks.len() <= 14, "{ticks:?}");
            assert!((LEFT..=RIGHT).contains(&scale.x(ratio)));
            assert!(scale.x(1.0) < scale.x(2.0));
        }
    }

    #[test]
    fn an_empty_picture_is_well_formed() {
        elements(&of(&Kept::default()));
    }
}
