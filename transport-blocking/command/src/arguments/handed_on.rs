//! `quorlock extend` and `quorlock release`: what is done with a lock that was left held.

use std::ffi::OsString;

use lexopt::Parser;
use quorlock_blocking::{FencingToken, Resumption, Token};

use super::common::{Common, Plain, plain, resource};
use super::environment::{Proof, Variable};
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

pub(super) fn parse_extend(parser: Parser, mut environment: Environment) -> Result<Request, String> {
    let (common, resource) = match parse(Subcommand::Extend, parser, environment.masters.take())? {
        Parsed::Other(request) => return Ok(request),
        Parsed::Lock(common, resource) => (common, resource),
    };
    let Proof { token, fence } = proof(&environment, &resource)?;
    let lock = resumption(&token, fence.as_ref().map(fencing_token).transpose()?)?;
    Ok(Request::Extend(Box::new(ExtendArguments { common, resource, lock })))
}

pub(super) fn parse_release(parser: Parser, mut environment: Environment) -> Result<Request, String> {
    Ok(match parse(Subcommand::Release, parser, environment.masters.take())? {
        Parsed::Other(request) => request,
        Parsed::Lock(common, resource) => {
            let token = resumption(&proof(&environment, &resource)?.token, None)?.token;
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

fn proof(environment: &Environment, resource: &[u8]) -> Result<Proof, String> {
    let name = Environment::TOKEN;
    environment.proof(resource).ok_or_else(|| {
        format!("No token: {name} is not set; evaluate the lines that quorlock acquire prints.")
    })
}

fn resumption(
    Variable { name, value }: &Variable,
    fence: Option<FencingToken>,
) -> Result<Resumption, String> {
    value.to_str().and_then(|text| Resumption::from_text(text, fence)).ok_or_else(|| {
        format!("{name} is no token: quorlock acquire prints one, of 40 hexadecimal digits or more.")
    })
}

fn fencing_token(Variable { name, value }: &Variable) -> Result<FencingToken, String> {
    let fence = value.to_str().and_then(|number| number.parse().ok()).and_then(FencingToken::new);
    fence.ok_or_else(|| format!("{name} is no number that quorlock acquire --fenced printed."))
}
