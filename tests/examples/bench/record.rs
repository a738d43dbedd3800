//! What was measured: printed, and kept as data with the figures that have a target.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use quorlock_tests::results::Results;

use crate::panel::Panel;
use crate::table::{Table, number};
use crate::targets::TARGETS;
use crate::ways::{PEERS, RAW};

/// The table of the data from which the picture is drawn.
const PICTURE: &str = "picture";

/// The measurements so far.
pub(crate) struct Record {
    results: Results,
    columns: Vec<String>,
    /// The tables whose columns have been named.
    begun: BTreeSet<String>,
}

impl Record {
    pub(crate) fn new(rounds: usize) -> Self {
        let mut results = Results::new();
        results.servers();
        results.detail("rounds", rounds);
        Self { results, columns: Vec::new(), begun: BTreeSet::new() }
    }

    /// Begins a scenario with a letter: the columns of its lines.
    pub(crate) fn header(&mut self, columns: &[&str]) {
        self.columns = columns.iter().map(|column| (*column).to_owned()).collect();
        println!();
        print("scenario", "masters", "way", &self.columns);
    }

    /// A line of a scenario with a letter.
    pub(crate) fn row(&mut self, scenario: &str, masters: usize, way: &str, cells: &[String]) {
        let masters = masters.to_string();
        print(scenario, &masters, way, cells);
        self.begin(scenario, &["masters", "way"]);
        let words = [masters.as_str(), way].into_iter().chain(cells.iter().map(String::as_str));
        self.results.row(scenario, words);
        self.targets(scenario, &format!("{masters} masters, {way}"), way, cells);
    }

    /// A whole table, whose first column is the way.
    pub(crate) fn table(&mut self, table: &Table) {
        println!("{table}");
        self.columns = table.columns().skip(1).map(str::to_owned).collect();
        let first = table.columns().next().unwrap_or_default();
        self.begin(table.title(), &[first]);
        for row in table.rows() {
            self.results.row(table.title(), row.iter().map(String::as_str));
            if let Some((way, cells)) = row.split_first() {
                self.targets(table.title(), way, way, cells);
            }
        }
    }

    /// A part of the picture.
    pub(crate) fn panel(&mut self, panel: &Panel) {
        self.columns = ["way", "kind", "median", "least", "most"].map(str::to_owned).to_vec();
        self.begin(PICTURE, &["panel"]);
        for (way, spread) in &panel.rows {
            let kind = match *way {
                way if PEERS.contains(&way) => "peer",
                way if way.starts_with(RAW) => "floor",
                _ => "ours",
            };
            let figures = [spread.median, spread.least, spread.most].map(number);
            let words = [panel.title.as_str(), way, kind].into_iter();
            self.results.row(PICTURE, words.chain(figures.iter().map(String::as_str)));
        }
    }

    /// Keeps everything, if everything was measured.
    pub(crate) fn keep(&self, is_whole: bool) -> io::Result<()> {
        if is_whole { self.results.write() } else { Ok(()) }
    }

    pub(crate) fn detail(&mut self, what: &str, value: &str) {
        self.results.detail(what, value);
    }

    /// Names the columns of a table, once.
    fn begin(&mut self, table: &str, first: &[&str]) {
        if self.begun.insert(table.to_owned()) {
            let columns = self.columns.iter().map(String::as_str);
            self.results.row(table, first.iter().copied().chain(columns));
        }
    }

    /// The cells of a row that should be so or so.
    fn targets(&mut self, table: &str, row: &str, way: &str, cells: &[String]) {
        for (column, cell) in self.columns.iter().zip(cells) {
            let fits = |target: &&super::targets::Target| {
                table.starts_with(target.table) && target.way == way && target.column == column
            };
            if let Some(target) = TARGETS.iter().find(fits) {
                let (name, _) = table.split_once([':', ';']).unwrap_or((table, ""));
                self.results.figure(&format!("{name}, {row}: {column}"), cell, target.target);
            }
        }
    }
}

fn print(scenario: &str, masters: &str, way: &str, cells: &[String]) {
    let cells: String = cells.iter().map(|cell| format!(" {cell:>12}")).collect();
    println!("{scenario:24} {masters:7} {way:12}{cells}");
}

pub(crate) fn micros(span: Duration) -> String {
    format!("{:.0}", span.as_secs_f64() * 1e6)
}

pub(crate) fn millis(span: Duration) -> String {
    format!("{:.1}", span.as_secs_f64() * 1e3)
}
