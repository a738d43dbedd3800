//! The position of a time: proportional while things happen, and shortened where nothing does.

/// The width of a line, in the picture's units.
pub(super) const LINE: f64 = 458.0;

/// The largest width of a stretch without events.
const GAP: f64 = 104.0;

/// The space before the first and after the last thing.
const EDGE: f64 = 12.0;

/// About how many things a line contains.
const IN_A_LINE: usize = 13;

/// About the largest number of lines.
const MOST_LINES: usize = 14;

/// A stretch between two times at which something happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// Its times, in milliseconds,
    pub(super) from: f64,
    pub(super) until: f64,
    /// and where it begins and ends.
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) is_shortened: bool,
}

/// All stretches, one behind the other.
pub(super) struct Axis {
    pub(super) stretches: Vec<Stretch>,
    /// Units for a millisecond, where nothing is shortened.
    pub(super) scale: f64,
}

impl Axis {
    /// Creates an axis for these times in milliseconds, at which `things` things happen. If `lines`
    /// is given, it takes about that number of lines.
    pub(super) fn new(mut times: Vec<f64>, things: usize, lines: Option<usize>) -> Self {
        times.sort_by(f64::total_cmp);
        times.dedup();
        let lines = lines.unwrap_or(things.div_ceil(IN_A_LINE)).clamp(1, MOST_LINES);
        let room: f64 = (0..lines).map(|_| LINE).sum();
        let mut scale = 240.0;
        let width = |scale: f64| -> f64 {
            times
                .windows(2)
                .map(|pair| if let [a, b] = pair { ((b - a) * scale).min(GAP) } else { 0.0 })
                .sum()
        };
        // If the axis is still too wide, it is drawn at a smaller scale.
        while width(scale) > room && scale > 1e-6 {
            scale *= 0.8;
        }
        let mut left = 0.0;
        let stretches = times.windows(2).filter_map(|pair| {
            let [from, until] = *pair else { return None };
            let wide = (until - from) * scale;
            // A stretch that is only a little longer than drawn gets no sign.
            let is_shortened = wide > GAP * 1.6;
            let right = left + if is_shortened { GAP } else { wide.min(GAP * 1.6) };
            let stretch = Stretch { from, until, left, right, is_shortened };
            left = right;
            Some(stretch)
        });
        Self { stretches: stretches.collect(), scale }
    }

    /// The position of this time.
    pub(super) fn place(&self, at: f64) -> f64 {
        let behind = self.stretches.partition_point(|stretch| stretch.until < at);
        match self.stretches.get(behind).or(self.stretches.last()) {
            Some(stretch) if stretch.until > stretch.from => {
                let part = ((at - stretch.from) / (stretch.until - stretch.from)).clamp(0.0, 1.0);
                stretch.left + part * (stretch.right - stretch.left)
            }
            _ => 0.0,
        }
    }

    fn end(&self) -> f64 {
        self.stretches.last().map_or(0.0, |stretch| stretch.right)
    }

    /// Where lines begin and end. If possible, the axis is broken into lines where nothing happens.
    pub(super) fn lines(&self) -> Vec<(f64, f64)> {
        // The first things are not at the very edge.
        let (mut lines, mut left) = (Vec::new(), -EDGE);
        // A nearly empty last line is squeezed into the one before.
        while self.end() + EDGE - left > LINE * 1.15 {
            // Break after a shortened stretch in the later half of the line, or else in the widest
            // stretch there.
            let candidates = self
                .stretches
                .iter()
                .filter(|stretch| stretch.right <= left + LINE && stretch.right > left + LINE * 0.42);
            let best = candidates.max_by(|a, b| {
                let merit = |stretch: &Stretch| stretch.right - stretch.left;
                (a.is_shortened, merit(a))
                    .partial_cmp(&(b.is_shortened, merit(b)))
                    .unwrap_or(std::cmp::Ordering::Equal)
            });
            let right = match best {
                Some(stretch) if stretch.is_shortened => stretch.right - EDGE,
                Some(stretch) => (stretch.left.max(left + 1.0) + stretch.right) / 2.0,
                None => left + LINE,
            };
            lines.push((left, right));
            left = right;
        }
        lines.push((left, self.end() + EDGE));
        lines
    }
}

/// Milliseconds as people read them.
pub(super) fn time(millis: f64) -> String {
    let number = |value: f64, places: usize| {
        let text = format!("{value:.places$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    };
    match millis {
        small if small < 10.0 => format!("{} ms", number(small, 2)),
        small if small < 1_000.0 => format!("{} ms", number(small, 1)),
        small if small < 120_000.0 => format!("{} s", number(small / 1_000.0, 4)),
        large => format!("{} min", number(large / 60_000.0, 2)),
    }
}

/// A span that was left out, roughly.
pub(super) fn span(millis: f64) -> String {
    match millis {
        small if small < 10.0 => format!("{small:.1} ms"),
        small if small < 1_000.0 => format!("{small:.0} ms"),
        small if small < 120_000.0 => format!("{:.1} s", small / 1_000.0),
        large => format!("{:.0} min", large / 60_000.0),
    }
}

/// A round step of time that is at least this wide.
pub(super) fn step(scale: f64, room: f64) -> f64 {
    let mut step = 0.01;
    for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
        if step * scale >= room || step > 1e9 {
            break;
        }
        step *= factor;
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_order_and_no_line_is_much_wider_than_the_limit() {
        let axis = Axis::new(vec![0.0, 3.0, 0.5, 0.6, 5_000.0, 5_000.4, 5_000.4], 5, None);
        let places = [0.0, 0.5, 0.55, 0.6, 3.0, 2_000.0, 5_000.0, 5_000.4].map(|at| axis.place(at));
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{places:?}");
        assert!(axis.stretches.iter().any(|stretch| stretch.is_shortened));
        for (left, right) in axis.lines() {
            assert!(left < right && right - left <= LINE * 1.15);
        }
    }

    #[test]
    fn an_axis_keeps_to_the_wanted_number_of_lines_and_may_be_empty() {
        let many: Vec<f64> = (0..400).map(f64::from).collect();
        let lines = |wanted| Axis::new(many.clone(), 400, wanted).lines().len();
        assert!(lines(Some(3)) <= 4 && lines(None) > 10, "{} and {}", lines(Some(3)), lines(None));
        assert_eq!(Axis::new(Vec::new(), 0, None).place(7.0), 0.0);
        assert_eq!(Axis::new(vec![4.0], 1, None).lines(), [(-EDGE, EDGE)]);
    }

    #[test]
    fn times_and_spans_are_printed_in_fitting_units() {
        assert_eq!(
            [0.0, 0.25, 12.34, 1_500.0, 300_000.0].map(time),
            ["0 ms", "0.25 ms", "12.3 ms", "1.5 s", "5 min"]
        );
        assert_eq!([0.26, 38.4, 3_210.0, 300_000.0].map(span), ["0.3 ms", "38 ms", "3.2 s", "5 min"]);
        assert!((step(100.0, 70.0) - 1.0).abs() < 1e-9, "{}", step(100.0, 70.0));
    }
}
