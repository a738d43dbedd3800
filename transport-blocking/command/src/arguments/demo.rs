//! `quorlock demo`.

use std::path::PathBuf;

use lexopt::Parser;

use super::common::{Plain, plain};
use super::{Request, Subcommand};

/// Everything that `quorlock demo` was told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DemoArguments {
    /// Where the picture goes.
    pub(crate) svg: Option<PathBuf>,
}

/// Reads what stands behind `demo`.
pub(super) fn parse(parser: Parser) -> Result<Request, String> {
    let beyond = "demo takes options only: write quorlock demo [--svg FILE | --no-svg].";
    let read = match plain(Subcommand::Demo, parser, 0, beyond)? {
        Plain::Other(request) => return Ok(request),
        Plain::Read(read, _) => read,
    };
    let svg = match (read.svg, read.no_svg) {
        (Some(_), true) => {
            return Err("--svg and --no-svg contradict each other: give one of them.".to_owned());
        }
        (None, true) => None,
        (named, false) => Some(named.unwrap_or_else(|| PathBuf::from("quorlock-demo.svg"))),
    };
    Ok(Request::Demo(DemoArguments { svg }))
}
