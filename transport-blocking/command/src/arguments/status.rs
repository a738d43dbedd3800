//! `quorlock status` and `quorlock force-release`: what masters have of a lock, whoever holds it.

use std::ffi::OsString;

use lexopt::Parser;
use quorlock_blocking::{Resumption, Token};

use super::common::{Common, Plain, plain, resource};
use super::{Environment, Request, Subcommand};

/// Everything that `quorlock status` was told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StatusArguments {
    /// What other subcommands are told too.
    pub(crate) common: Common,
    /// The name of the lock.
    pub(crate) resource: Vec<u8>,
    /// The token that the environment has for it, if there is one.
    pub(crate) token: Option<Token>,
}

/// Everything that `quorlock force-release` was told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ForceReleaseArguments {
    /// What other subcommands are told too.
    pub(crate) common: Common,
    /// The name of the lock.
    pub(crate) resource: Vec<u8>,
    /// Whether it need not be asked for at the terminal.
    pub(crate) is_confirmed: bool,
}

pub(super) fn parse_status(parser: Parser, mut environment: Environment) -> Result<Request, String> {
    Ok(match parse(Subcommand::Status, parser, environment.masters.take())? {
        Parsed::Other(request) => request,
        Parsed::Lock(common, resource, _) => {
            // What is no token is nobody's: a lock can be looked at without one.
            let proof = environment.proof(&resource);
            let text = proof.as_ref().and_then(|proof| proof.token.value.to_str());
            let token = text.and_then(|text| Resumption::from_text(text, None)).map(|proof| proof.token);
            Request::Status(Box::new(StatusArguments { common, resource, token }))
        }
    })
}

pub(super) fn parse_force_release(parser: Parser, environment: Environment) -> Result<Request, String> {
    Ok(match parse(Subcommand::ForceRelease, parser, environment.masters)? {
        Parsed::Other(request) => request,
        Parsed::Lock(common, resource, is_confirmed) => {
            Request::ForceRelease(Box::new(ForceReleaseArguments { common, resource, is_confirmed }))
        }
    })
}

enum Parsed {
    Other(Request),
    Lock(Common, Vec<u8>, bool),
}

fn parse(subcommand: Subcommand, parser: Parser, masters: Option<OsString>) -> Result<Parsed, String> {
    let beyond = format!("{subcommand} takes one RESOURCE: write quorlock {subcommand} [OPTIONS] RESOURCE.");
    let (mut read, name) = match plain(subcommand, parser, 1, &beyond)? {
        Plain::Other(request) => return Ok(Parsed::Other(request)),
        Plain::Read(read, name) => (read, name),
    };
    let resource = resource(name, &format!("Name the lock: quorlock {subcommand} [OPTIONS] RESOURCE."))?;
    Ok(Parsed::Lock(read.common(masters)?, resource, read.confirmed))
}
