//! Tables in Markdown, and the format of their numbers.

use std::fmt;

use crate::figures::Spread;

/// The text if nothing could be measured.
const NOTHING: &str = "–";

/// A table under a title.
#[derive(Debug)]
pub(crate) struct Table {
    title: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(title: impl Into<String>, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        Self { title: title.into(), columns, rows: Vec::new() }
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(String::as_str)
    }

    pub(crate) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "**{}**\n", self.title)?;
        writeln!(f, "| {} |", self.columns.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(self.columns.len()))?;
        self.rows.iter().try_for_each(|cells| writeln!(f, "| {} |", cells.join(" | ")))
    }
}

/// Writes a number with about three significant digits: two decimals below 10, one below 100, and
/// none above.
pub(crate) fn number(figure: f64) -> String {
    match figure.abs() {
        large if large >= 99.95 => {
            let digits = format!("{figure:.0}");
            let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |rest| ("-", rest));
            let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
            format!("{sign}{}", groups.join(","))
        }
        middle if middle >= 9.995 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

/// Writes a median, divided by `unit`.
pub(crate) fn median(spread: Option<Spread>, unit: f64) -> String {
    spread.map_or_else(|| NOTHING.to_owned(), |spread| number(spread.median / unit))
}

/// Writes a median with the smallest and the largest value of all rounds, divided by `unit`.
pub(crate) fn spread(spread: Option<Spread>, unit: f64) -> String {
    spread.map_or_else(
        || NOTHING.to_owned(),
        |Spread { median, least, most }| {
            format!("{} ({}–{})", number(median / unit), number(least / unit), number(most / unit))
        },
    )
}

/// Writes one figure, divided by `unit`.
pub(crate) fn figure(figure: Option<f64>, unit: f64) -> String {
    figure.map_or_else(|| NOTHING.to_owned(), |figure| number(figure / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_printed_as_markdown() {
        let mut table = Table::new("N = 3", &["way", "p50"]);
        table.row(["raw".to_owned(), spread(Spread::of([1.0, 2.0, 4.0]), 1.0)]);
        table.row(["ours".to_owned(), spread(None, 1.0)]);
        let expected = "**N = 3**\n\n| way | p50 |\n|---|---|\n| raw | 2.00 (1.00–4.00) |\n| ours | – |\n";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn numbers_have_three_digits_or_are_grouped() {
        let shown =
            [0.0, 0.123, 9.994, 9.996, 99.94, 99.96, 999.0, 1_000.0, 1_234_567.0, -1_234.0].map(number);
        let expected = ["0.00", "0.12", "9.99", "10.0", "99.9", "100", "999", "1,000", "1,234,567", "-1,234"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn figures_are_divided_by_their_unit() {
        assert_eq!(median(Spread::of([0.000_15]), 1e-6), "150");
        assert_eq!(figure(Some(0.25), 0.01), "25.0");
    }
}
