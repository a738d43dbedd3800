//! `quorlock extend` and `quorlock release`: a lock that was left held, by its token.

use quorlock_blocking::{AcquireError, ConfigError, ReleaseError, Resumption};

use crate::arguments::{ExtendArguments, ReleaseArguments, Terms};
use crate::cautions;
use crate::ending::Refusal;
use crate::lock::{self, is_misconfigured, open, settle};
use crate::output::{Level, Output};
use crate::subject::Subject;
use crate::waiting::milliseconds;

/// Extends the lock and leaves it held. Returns the exit code.
pub(crate) fn extend(arguments: &ExtendArguments, lock: Resumption, output: &Output) -> u8 {
    let subject = arguments.claim.subject();
    match try_extend(arguments, lock, &subject, output) {
        Ok(()) => 0,
        Err(refusal) => refusal.tell_about(&subject.fields([]), output),
    }
}

fn try_extend(
    arguments: &ExtendArguments,
    lock: Resumption,
    subject: &Subject,
    output: &Output,
) -> Result<(), Refusal> {
    let name = &subject.name;
    let locker = open(arguments.terms(), "quorlock-extend")?;
    let resumed = lock::resume(&locker, &arguments.claim, lock)?;
    let guard = resumed.map_err(|error| not_extended(name, &error))?;
    settle(&locker);
    cautions::tell(&locker, output);
    let valid = milliseconds(guard.remaining());
    guard.hand_over().map_err(|cause| Refusal::Lost(format!("{name} not extended: {cause}")))?;
    let fields = subject.fields([("valid_ms", valid)]);
    output.record(Level::Info, "extended", &format!("extended {name}"), &fields);
    Ok(())
}

/// What to do if the token is of a lock of another kind.
const TAKEN_AS_ANOTHER: &str = "its token belongs to a lock that was taken with other options; give the same resources, \
     --shared, --permits and --also as to quorlock acquire";

/// What to do if its keys cannot be kept with its token alone.
const CANNOT_BE_KEPT: &str = "--keep-for is for one lock that is not shared, and this token belongs to another kind of lock: \
     leave --keep-for out; quorlock run --at-least keeps such locks";

/// The library's error for an acquisition, as an error of an extension.
fn not_extended(name: &str, error: &AcquireError) -> Refusal {
    let sentence = match (error, error.ballot()) {
        (AcquireError::TooLate(_), Some(ballot)) => {
            format!("{name} not extended: the votes came after its validity had run out: {ballot}")
        }
        (AcquireError::Invalid(ConfigError::ResumedAsAnother), _) => {
            format!("{name} not extended: {TAKEN_AS_ANOTHER}")
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

/// Releases the lock. Returns the exit code.
pub(crate) fn release(arguments: &ReleaseArguments, lock: Resumption, output: &Output) -> u8 {
    let subject = arguments.claim.subject();
    match try_release(arguments, lock, &subject, output) {
        Ok(()) => 0,
        Err(refusal) => refusal.tell_about(&subject.fields([]), output),
    }
}

fn try_release(
    arguments: &ReleaseArguments,
    lock: Resumption,
    subject: &Subject,
    output: &Output,
) -> Result<(), Refusal> {
    let ReleaseArguments { masters, claim, .. } = arguments;
    let name = &subject.name;
    let locker = open(Terms::plain(masters, claim.resource()), "quorlock-release")?;
    let release = match arguments.keep_for {
        Some(_) if !lock.is_plain() => {
            return Err(Refusal::Configuration(format!("{name} not released: {CANNOT_BE_KEPT}")));
        }
        Some(span) => locker.release_after(claim.as_bytes(), lock.token, span),
        None => lock::release(&locker, claim, lock)?,
    };
    let outcome = release.wait();
    settle(&locker);
    outcome.map_err(|error| match &error {
        ReleaseError::NotOurs(_) => Refusal::Lost(format!("{name} not released: {error}")),
        ReleaseError::Unknown(ballot) if is_misconfigured(ballot) => {
            Refusal::Configuration(format!("{name} not released: {ballot}"))
        }
        ReleaseError::Invalid(ConfigError::ResumedAsAnother) => {
            Refusal::Configuration(format!("{name} not released: {TAKEN_AS_ANOTHER}"))
        }
        ReleaseError::Invalid(_) | ReleaseError::TooManyLocks { .. } | ReleaseError::Forked => {
            Refusal::Configuration(error.to_string())
        }
        _ => Refusal::Unconfirmed(error.to_string()),
    })?;
    output.record(Level::Info, "released", &format!("released {name}"), &subject.fields([]));
    Ok(())
}
