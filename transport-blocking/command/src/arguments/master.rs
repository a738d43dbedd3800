//! `quorlock master`.

use std::net::{IpAddr, Ipv4Addr};

use lexopt::Parser;

use super::common::{Plain, plain};
use super::{Request, Subcommand};
use crate::output::{Output, Verbosity};

/// Everything that `quorlock master` was told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MasterArguments {
    /// Where the masters listen.
    pub(crate) address: IpAddr,
    /// At which ports; never empty.
    pub(crate) ports: Vec<u16>,
    verbosity: Verbosity,
    json: bool,
}

impl MasterArguments {
    /// What is information elsewhere is what this command was started for.
    pub(crate) fn output(&self) -> Output {
        let verbosity = match self.verbosity {
            Verbosity::Quiet => Verbosity::Quiet,
            Verbosity::Normal(more) => Verbosity::Normal(more.saturating_add(1)),
        };
        Output::new(verbosity, self.json)
    }
}

/// Reads what stands behind `master`.
pub(super) fn parse(parser: Parser) -> Result<Request, String> {
    let beyond = "master takes options only: write quorlock master --port PORT.";
    let read = match plain(Subcommand::Master, parser, 0, beyond)? {
        Plain::Other(request) => return Ok(request),
        Plain::Read(read, _) => read,
    };
    let verbosity = read.verbosity()?;
    if read.ports.is_empty() {
        return Err(
            "No port: name one for each master with --port PORT; 0 takes one that is free.".to_owned()
        );
    }
    let address = read.bind.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    Ok(Request::Master(MasterArguments { address, ports: read.ports, verbosity, json: read.json }))
}
