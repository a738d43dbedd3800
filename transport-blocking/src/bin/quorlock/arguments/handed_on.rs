//! `quorlock extend` and `quorlock release`: what is done with a lock that was left held.

use std::ffi::OsString;

use lexopt::Parser;
use quorlock_blocking::{FencingToken, Resumption, Token};

use super::common::{Common, Plain, plain, resource};
use super::{Environment, Request, Subcommand};

/// Everything that `quorlock extend` was told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExtendArguments {
    /// What other subcommands are told too.
    pub(crate) common: Common,
    /// The name of the lock.
    pub(crate) resource: Vec<u8>,
    /// The proof of it.
    pub(crate) lock: Resumption,
}

/// Everything that `quorlock release` was told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReleaseArguments {
    /// What other subcommands are told too.
    pub(crate) common: Common,
    /// The name of the lock.
    pub(crate) resource: Vec<u8>,
    /// The proof of it.
    pub(crate) token: Token,
}

pub(super) fn parse_extend(parser: Parser, environment: Environment) -> Result<Request, String> {
    let (common, resource) = match parse(Subcommand::Extend, parser, environment.masters)? {
        Parsed::Other(request) => return Ok(request),
        Parsed::Lock(common, resource) => (common, resource),
    };
    let lock = proof(environment.token, fencing_token(environment.fence)?)?;
    Ok(Request::Extend(Box::new(ExtendArguments { common, resource, lock })))
}

pub(super) fn parse_release(parser: Parser, environment: Environment) -> Result<Request, String> {
    Ok(match parse(Subcommand::Release, parser, environment.masters)? {
        Parsed::Other(request) => request,
        Parsed::Lock(common, resource) => {
            let token = proof(environment.token, None)?.token;
            Request::Release(Box::new(ReleaseArguments { common, resource, token }))
        }
    })
}

enum Parsed {
    Other(Request),
    Lock(Common, Vec<u8>),
}

fn parse(subcommand: Subcommand, parser: Parser, masters: Option<OsString>) -> Result<Parsed, String> {
    let beyond = format!(
        "{subcommand} takes RESOURCE alone. The token belongs into the variable {}: arguments are for everybody to see.",
        Environment::TOKEN
    );
    let (mut read, name) = match plain(subcommand, parser, 1, &beyond)? {
        Plain::Other(request) => return Ok(Parsed::Other(request)),
        Plain::Read(read, name) => (read, name),
    };
    let resource = resource(name, &format!("Name the lock: quorlock {subcommand} [OPTIONS] RESOURCE."))?;
    Ok(Parsed::Lock(read.common(masters)?, resource))
}

fn proof(variable: Option<OsString>, fence: Option<FencingToken>) -> Result<Resumption, String> {
    let name = Environment::TOKEN;
    let digits = variable.ok_or_else(|| {
        format!("No token: {name} is not set; evaluate the lines that quorlock acquire prints.")
    })?;
    digits.to_str().and_then(|text| Resumption::from_text(text, fence)).ok_or_else(|| {
        format!("{name} is no token: quorlock acquire prints one, of 40 hexadecimal digits or more.")
    })
}

fn fencing_token(variable: Option<OsString>) -> Result<Option<FencingToken>, String> {
    let Some(number) = variable else { return Ok(None) };
    let fence = number.to_str().and_then(|number| number.parse().ok()).and_then(FencingToken::new);
    fence
        .map(Some)
        .ok_or_else(|| format!("{} is no number that quorlock acquire --fenced printed.", Environment::FENCE))
}
