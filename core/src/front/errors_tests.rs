//! The words, the texts and the contents of the front's errors. The compiler asks for a row for
//! each new variant.

use std::error::Error;
use std::io;
use std::sync::Arc;

use super::{OpenError, ReleaseError};
use crate::endpoint::{Address, Endpoint};
use crate::protocol::{Ballot, Cause, Channel, Config, ConfigError, LossCause, Resource, Security};

fn source(error: &dyn Error) -> Option<String> {
    error.source().map(ToString::to_string)
}

fn ballot() -> Arc<Ballot> {
    let targets = Resource::new("job").unwrap().into();
    Arc::new(Ballot { targets, masters: Vec::new().into(), votes: None, attempts: 1, callers_ahead: 0 })
}

#[test]
fn a_release_error_has_a_word_and_returns_its_ballot_and_its_cause() {
    fn row(error: &ReleaseError) -> (&'static str, Option<&Ballot>, Option<String>) {
        match error {
            ReleaseError::NotOurs(None) => ("not_ours", None, None),
            ReleaseError::NotOurs(Some(cause)) => ("not_ours", None, Some(cause.to_string())),
            ReleaseError::Unknown(ballot) => ("unknown", Some(ballot), None),
            ReleaseError::Invalid(error) => ("invalid", None, Some(error.to_string())),
            ReleaseError::TooManyLocks { .. } => ("too_many_locks", None, None),
            ReleaseError::DriverEnded => ("driver_ended", None, None),
            ReleaseError::Forked => ("forked", None, None),
        }
    }
    for error in [
        ReleaseError::NotOurs(None),
        ReleaseError::NotOurs(Some(LossCause::Expired)),
        ReleaseError::Unknown(ballot()),
        ReleaseError::Invalid(ConfigError::ZeroTtl),
        ReleaseError::TooManyLocks { limit: 5 },
        ReleaseError::DriverEnded,
        ReleaseError::Forked,
    ] {
        assert_eq!((error.kind(), error.ballot(), source(&error)), row(&error), "{error}");
    }
}

#[test]
fn an_open_error_has_a_word_says_what_to_do_and_returns_its_cause() {
    fn row(error: &OpenError) -> (&'static str, &'static str, Option<&'static str>) {
        match error {
            OpenError::NoRuntime => (
                "no_runtime",
                "there is no async runtime here; call `open` inside of one, or use `open_with_driver`",
                None,
            ),
            OpenError::IncompleteRuntime(_) => (
                "incomplete_runtime",
                "the async runtime here has no timers: call `enable_all` on its builder",
                None,
            ),
            OpenError::Tls(_) => ("tls", "TLS cannot be used: no roots", Some("no roots")),
            OpenError::System(_) => (
                "system",
                "could not start a thread, or could not wait for sockets: no thread left",
                Some("no thread left"),
            ),
        }
    }
    for error in [
        OpenError::NoRuntime,
        OpenError::IncompleteRuntime("timers"),
        OpenError::Tls("no roots".into()),
        io::Error::other("no thread left").into(),
    ] {
        let (kind, said, cause) = row(&error);
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, said));
        assert_eq!(source(&error).as_deref(), cause);
    }
}

/// An implementation of TLS that has no certificates to trust.
#[derive(Debug)]
struct WithoutRoots;

impl Security for WithoutRoots {
    fn prepare(&self, _: &[Endpoint]) -> Result<(), Box<dyn Error + Send + Sync>> {
        Err("no roots".into())
    }

    fn channel(&self, _: &Endpoint, _: &Address) -> Result<Box<dyn Channel>, Cause> {
        Err(Cause::Closed)
    }
}

#[test]
fn tls_is_prepared_only_for_masters_that_are_reached_over_it() {
    let plain = ["redis://a", "redis://b", "redis://c"];
    let mixed = ["redis://a", "redis://b", "rediss://c"];
    let prepare = |config: Result<Config, ConfigError>| {
        OpenError::prepare_security(&config.unwrap()).map_err(|error| error.to_string())
    };
    assert_eq!(prepare(Config::builder(plain).tls(WithoutRoots).build()), Ok(()));
    let unusable = prepare(Config::builder(mixed).tls(WithoutRoots).build());
    assert_eq!(unusable, Err("TLS cannot be used: no roots".to_owned()));
    assert_eq!(prepare(Config::new(plain)), Ok(()));
    let missing = prepare(Config::new(mixed)).unwrap_err();
    assert!(missing.starts_with("TLS cannot be used: a master "), "{missing}");
}
