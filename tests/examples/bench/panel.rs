//! Ratios to raw of ways that were measured together, for the picture.

use crate::figures::{Rounds, Spread};
use crate::ways::RAW;

/// Some ways that were measured together. Where a ratio is larger, that way takes more time.
#[derive(Debug)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) rows: Vec<(&'static str, Spread)>,
}

impl Panel {
    /// The ratios of this figure to raw, of all ways but raw itself.
    pub(crate) fn of(title: impl Into<String>, ways: &[&'static str], trials: &Rounds, figure: &str) -> Self {
        let others = ways.iter().filter(|way| **way != RAW);
        let rows = others.filter_map(|way| Some((*way, trials.ratio(way, RAW, figure)?)));
        Self { title: title.into(), rows: rows.collect() }
    }
}
