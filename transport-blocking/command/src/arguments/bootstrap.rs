//! `quorlock bootstrap`.

use lexopt::Parser;

use super::common::{Common, Plain, plain};
use super::{Environment, Request, Subcommand};

/// Everything that `quorlock bootstrap` was told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BootstrapArguments {
    /// What other subcommands are told too.
    pub(crate) common: Common,
}

pub(super) fn parse(parser: Parser, environment: Environment) -> Result<Request, String> {
    let beyond = "bootstrap takes options only: write quorlock bootstrap --restart-guard DURATION [OPTIONS].";
    let mut read = match plain(Subcommand::Bootstrap, parser, 0, beyond)? {
        Plain::Other(request) => return Ok(request),
        Plain::Read(read, _) => read,
    };
    let mut common = read.common(environment.masters)?;
    let Some(longest) = common.restart_guard else {
        return Err(
            "No restart guard: give --restart-guard the longest TTL that any client uses, as all of them do."
                .to_owned(),
        );
    };
    // Nothing is locked here, and no guard forbids a TTL as long as its own.
    common.ttl = longest;
    Ok(Request::Bootstrap(Box::new(BootstrapArguments { common })))
}
