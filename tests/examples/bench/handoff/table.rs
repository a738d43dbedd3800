//! One line for each way, in columns, for eyes and for programs.

use std::time::Duration;

pub(crate) fn header(columns: &[&str]) {
    let columns: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
    println!();
    line("scenario", "masters", "way", &columns);
}

pub(crate) fn row(scenario: &str, masters: usize, way: &str, cells: &[String]) {
    line(scenario, &masters.to_string(), way, cells);
}

fn line(scenario: &str, masters: &str, way: &str, cells: &[String]) {
    let cells: String = cells.iter().map(|cell| format!(" {cell:>12}")).collect();
    println!("{scenario:8} {masters:7} {way:12}{cells}");
}

pub(crate) fn micros(span: Duration) -> String {
    format!("{:.0}", span.as_secs_f64() * 1e6)
}

pub(crate) fn millis(span: Duration) -> String {
    format!("{:.1}", span.as_secs_f64() * 1e3)
}
