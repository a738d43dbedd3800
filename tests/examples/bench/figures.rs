//! Measurements as numbers by name, and their summary over many rounds.

use std::collections::BTreeMap;
use std::fmt;

/// The numbers of one way in one round.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Figures(BTreeMap<String, f64>);

impl Figures {
    pub(crate) fn set(&mut self, name: &str, figure: f64) {
        self.0.insert(name.to_owned(), figure);
    }

    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Reads what [`Figures`] writes: a line for each, of a name and a number.
    pub(crate) fn read(lines: &str) -> Result<Self, String> {
        let mut figures = Self::default();
        for line in lines.lines() {
            let parts = line.split_once(' ').and_then(|(name, figure)| Some((name, figure.parse().ok()?)));
            let (name, figure) = parts.ok_or_else(|| format!("no figure: {line}"))?;
            figures.set(name, figure);
        }
        Ok(figures)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, figure)| writeln!(f, "{name} {figure}"))
    }
}

/// The median of a figure over all rounds, with its smallest and its largest value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Returns `None` if there are no figures.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let upper = *sorted.get(sorted.len() / 2)?;
        let lower = *sorted.get((sorted.len() - 1) / 2)?;
        Some(Self { median: f64::midpoint(lower, upper), least, most })
    }
}

/// The figures of some ways that took turns, for all rounds.
#[derive(Default, Debug)]
pub(crate) struct Rounds(Vec<BTreeMap<&'static str, Figures>>);

impl Rounds {
    /// Adds the figures of a way in a round.
    pub(crate) fn add(&mut self, round: usize, way: &'static str, figures: Figures) {
        if self.0.len() <= round {
            self.0.resize_with(round + 1, BTreeMap::new);
        }
        if let Some(ways) = self.0.get_mut(round) {
            ways.insert(way, figures);
        }
    }

    /// A figure of a way.
    pub(crate) fn spread(&self, way: &str, name: &str) -> Option<Spread> {
        Spread::of(self.0.iter().filter_map(|round| round.get(way)?.get(name)))
    }

    /// A figure of a way as a ratio to the same figure of another way in the same round.
    pub(crate) fn ratio(&self, way: &str, to: &str, name: &str) -> Option<Spread> {
        let ratio = |round: &BTreeMap<&str, Figures>| {
            let (one, other) = (round.get(way)?.get(name)?, round.get(to)?.get(name)?);
            (other > 0.0).then_some(one / other)
        };
        Spread::of(self.0.iter().filter_map(ratio))
    }

    /// The sum of a count over all rounds.
    pub(crate) fn total(&self, way: &str, name: &str) -> f64 {
        self.0.iter().filter_map(|round| round.get(way)?.get(name)).fold(0.0, |sum, count| sum + count)
    }

    /// How many errors there were in all rounds, and how many rounds gave no figures.
    pub(crate) fn faults(&self, way: &str) -> String {
        let (errors, failed) = (self.total(way, "errors"), self.total(way, "failed"));
        if failed > 0.0 { format!("{errors}, {failed} rounds failed") } else { errors.to_string() }
    }

    /// The largest value of a figure in all rounds.
    pub(crate) fn most(&self, way: &str, name: &str) -> Option<f64> {
        self.spread(way, name).map(|spread| spread.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(figure: f64) -> Figures {
        let mut figures = Figures::default();
        figures.set("p50", figure);
        figures
    }

    #[test]
    fn the_median_of_an_even_number_of_figures_lies_between_two() {
        let spread = Spread::of([4.0, 1.0, 2.0, 8.0]).unwrap();
        assert_eq!(spread, Spread { median: 3.0, least: 1.0, most: 8.0 });
        assert_eq!(Spread::of([5.0, 1.0, 2.0]).unwrap().median, 2.0);
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn a_ratio_is_taken_within_each_round_before_the_median() {
        let mut rounds = Rounds::default();
        for (round, (raw, ours)) in [(1.0, 2.0), (10.0, 10.0), (100.0, 300.0)].into_iter().enumerate() {
            rounds.add(round, "raw", figures(raw));
            rounds.add(round, "ours", figures(ours));
        }
        let ratio = rounds.ratio("ours", "raw", "p50").unwrap();
        assert_eq!(ratio, Spread { median: 2.0, least: 1.0, most: 3.0 });
        assert_eq!(rounds.total("raw", "p50"), 111.0);
        assert_eq!(rounds.most("raw", "p50"), Some(100.0));
    }

    #[test]
    fn a_round_in_which_either_client_failed_has_no_ratio() {
        let mut rounds = Rounds::default();
        rounds.add(0, "raw", figures(1.0));
        rounds.add(1, "raw", figures(0.0));
        rounds.add(1, "ours", figures(2.0));
        assert_eq!(rounds.ratio("ours", "raw", "p50"), None);
        assert_eq!(rounds.spread("ours", "p50").unwrap().median, 2.0);
    }

    #[test]
    fn figures_survive_printing_and_parsing() {
        let mut figures = figures(1.5e-6);
        figures.set("errors", 0.0);
        assert_eq!(Figures::read(&figures.to_string()).unwrap(), figures);
        assert!(Figures::read("p50").is_err() && Figures::read("p50 fast").is_err());
    }
}
