//! `quorlock acquire`.

use lexopt::Parser;

use super::common::{Common, Plain, Seek, plain, resource};
use super::{Environment, Request, Subcommand};

/// Everything that `quorlock acquire` was told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AcquireArguments {
    /// What other subcommands are told too.
    pub(crate) common: Common,
    /// What is locked.
    pub(crate) seek: Seek,
}

pub(super) fn parse(parser: Parser, environment: Environment) -> Result<Request, String> {
    let beyond = "acquire runs no command: name one lock, as in quorlock acquire [OPTIONS] RESOURCE.";
    let (mut read, name) = match plain(Subcommand::Acquire, parser, 1, beyond)? {
        Plain::Other(request) => return Ok(request),
        Plain::Read(read, name) => (read, name),
    };
    let resource = resource(name, "Name the lock: quorlock acquire [OPTIONS] RESOURCE.")?;
    let seek = read.seek(resource)?;
    let common = read.common(environment.masters)?;
    Ok(Request::Acquire(Box::new(AcquireArguments { common, seek })))
}
