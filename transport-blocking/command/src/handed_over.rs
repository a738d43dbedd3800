//! `quorlock extend` and `quorlock release`: a lock that was left held, by its token.

use quorlock_blocking::{AcquireError, ReleaseError, Resumption, Token};

use crate::arguments::{ExtendArguments, ReleaseArguments, Terms};
use crate::ending::Refusal;
use crate::lock::{is_misconfigured, open, settle};
use crate::output::{JsonValue, Level, Output};
use crate::waiting::milliseconds;

/// Extends the lock and leaves it held. The exit code.
pub(crate) fn extend(arguments: &ExtendArguments, lock: Resumption, output: &Output) -> u8 {
    match try_extend(arguments, lock, output) {
        Ok(()) => 0,
        Err(refusal) => refusal.tell(Some(arguments.resource.as_bytes()), output),
    }
}

fn try_extend(arguments: &ExtendArguments, lock: Resumption, output: &Output) -> Result<(), Refusal> {
    let resource = arguments.resource.as_bytes();
    let name = String::from_utf8_lossy(resource);
    let locker = open(arguments.terms(), "quorlock-extend")?;
    let guard = locker.resume(resource, lock).wait().map_err(|error| not_extended(&name, &error))?;
    settle(&locker);
    let valid = milliseconds(guard.remaining());
    guard.hand_over().map_err(|cause| Refusal::Lost(format!("{name} not extended: {cause}")))?;
    let fields = [("resource", JsonValue::Text(&name)), ("valid_ms", valid)];
    output.record(Level::Info, "extended", &format!("extended {name}"), &fields);
    Ok(())
}

/// What the library says of an acquisition, said of an extension.
fn not_extended(name: &str, error: &AcquireError) -> Refusal {
    let sentence = match (error, error.ballot()) {
        (AcquireError::TooLate(_), Some(ballot)) => {
            format!("{name} not extended: the votes came after its validity had run out: {ballot}")
        }
        (_, Some(ballot)) => format!("{name} not extended: {ballot}"),
        (error, None) => error.to_string(),
    };
    match error {
        AcquireError::NotHeld(_) => Refusal::Lost(sentence),
        AcquireError::Misconfigured(_)
        | AcquireError::Invalid(_)
        | AcquireError::TooManyLocks { .. }
        | AcquireError::NoEntropy
        | AcquireError::Forked => Refusal::Configuration(sentence),
        _ => Refusal::NoQuorum(sentence),
    }
}

/// Releases the lock. The exit code.
pub(crate) fn release(arguments: &ReleaseArguments, token: Token, output: &Output) -> u8 {
    match try_release(arguments, token, output) {
        Ok(()) => 0,
        Err(refusal) => refusal.tell(Some(arguments.resource.as_bytes()), output),
    }
}

fn try_release(arguments: &ReleaseArguments, token: Token, output: &Output) -> Result<(), Refusal> {
    let resource = arguments.resource.as_bytes();
    let name = String::from_utf8_lossy(resource);
    let locker = open(Terms::plain(&arguments.masters, &arguments.resource), "quorlock-release")?;
    let release = match arguments.keep_for {
        Some(span) => locker.release_after(resource, token, span),
        None => locker.release(resource, token),
    };
    let outcome = release.wait();
    settle(&locker);
    outcome.map_err(|error| match &error {
        ReleaseError::NotOurs(_) => Refusal::Lost(format!("{name} not released: {error}")),
        ReleaseError::Unknown(ballot) if is_misconfigured(ballot) => {
            Refusal::Configuration(format!("{name} not released: {ballot}"))
        }
        ReleaseError::Invalid(_) | ReleaseError::TooManyLocks { .. } | ReleaseError::Forked => {
            Refusal::Configuration(error.to_string())
        }
        _ => Refusal::Unconfirmed(error.to_string()),
    })?;
    let fields = [("resource", JsonValue::Text(&name))];
    output.record(Level::Info, "released", &format!("released {name}"), &fields);
    Ok(())
}
