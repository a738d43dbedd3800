//! The texts of errors, and what they contain.

use super::super::{Cause, MasterId, Resource, Vote};
use super::*;

fn job() -> Resource {
    Resource::new("job").unwrap()
}

fn ballot(votes: [Vote; 3]) -> Ballot {
    let masters = ["redis://a", "redis://b", "redis://c"].map(|url| url.parse().unwrap());
    let resource = Resource::new("job").unwrap();
    Ballot {
        targets: resource.into(),
        masters: masters.into(),
        votes: Some(votes.into()),
        attempts: 3,
        callers_ahead: 0,
    }
}

#[test]
fn contention_in_this_process_tells_how_many_callers_are_ahead() {
    for (callers_ahead, said) in [
        (
            1,
            "job not acquired: another caller in this process holds it or asked for it first; code that asks again for a lock that it holds needs an `Owner`",
        ),
        (
            3,
            "job not acquired: 3 other callers in this process hold it or asked for it first; code that asks again for a lock that it holds needs an `Owner`",
        ),
    ] {
        let ballot = Ballot { callers_ahead, ..ballot([Vote::Outstanding; 3]) };
        assert_eq!(AcquireError::HeldByAnother(Arc::new(ballot)).to_string(), said);
    }
}

#[test]
fn the_votes_of_an_acquisition_determine_its_error() {
    let held = Vote::HeldByAnother { remaining: None, holder: None };
    let closed = Vote::Failed(Cause::Closed);
    let duplicate = Vote::Failed(Cause::SameServer { other: MasterId::all(1).next().unwrap() });
    let error = |votes| AcquireError::from_ballot(Arc::new(ballot(votes)), Quorum::of(3).unwrap());
    assert!(matches!(error([Vote::Granted, Vote::Granted, held]), AcquireError::TooLate(_)));
    assert!(matches!(error([Vote::Granted, held, closed]), AcquireError::HeldByAnother(_)));
    assert!(matches!(error([duplicate, duplicate, held]), AcquireError::Misconfigured(_)));
    let no_quorum = error([held, closed, closed]);
    assert!(matches!(no_quorum, AcquireError::NoQuorum(_)));
    assert_eq!(no_quorum.ballot().map(Ballot::granted), Some(0));
    assert_eq!(AcquireError::DriverEnded.ballot(), None);
}

#[test]
fn errors_say_what_happened_and_to_which_lock() {
    let shared = || Arc::new(ballot([Vote::Granted; 3]));
    let votes = shared().to_string();
    let limit = "the limit of 5 locks is reached; release some, or raise max_locks";
    let zero = ConfigError::ZeroTtl;
    for (error, said) in [
        (AcquireError::NoQuorum(shared()).to_string(), format!("job not acquired: {votes}")),
        (
            AcquireError::TooLate(shared()).to_string(),
            format!("job not acquired: the votes came after its validity had run out: {votes}"),
        ),
        (AcquireError::from(TooManyLocks { limit: 5 }).to_string(), limit.to_owned()),
        (AcquireError::from(zero.clone()).to_string(), zero.to_string()),
        (
            AcquireError::DriverEnded.to_string(),
            "the I/O loop of this locker has ended; open another locker".to_owned(),
        ),
        (
            ExtendError::Lost(LossCause::NotHeld).to_string(),
            "not extended: a quorum of masters no longer holds the lock".to_owned(),
        ),
        (ExtendError::NoQuorum(shared()).to_string(), format!("job not extended: {votes}")),
        (ExtendError::from(zero.clone()).to_string(), format!("not extended: {zero}")),
        (LossCause::Expired.to_string(), "the lock's validity ran out".to_owned()),
    ] {
        assert_eq!(error, said);
    }
}

#[test]
fn an_error_inside_of_another_is_its_source() {
    fn source(error: &dyn Error) -> Option<String> {
        error.source().map(ToString::to_string)
    }
    let shared = || Arc::new(ballot([Vote::Granted; 3]));
    let zero = ConfigError::ZeroTtl;
    assert_eq!(source(&AcquireError::Invalid(zero.clone())), Some(zero.to_string()));
    assert_eq!(source(&AcquireError::NoQuorum(shared())), None);
    assert_eq!(source(&ExtendError::Invalid(zero.clone())), Some(zero.to_string()));
    assert_eq!(source(&ExtendError::NoQuorum(shared())), None);
    let lost = LossCause::Released;
    assert_eq!(source(&ExtendError::Lost(lost)), Some(lost.to_string()));
}

#[test]
fn each_kind_of_error_has_its_own_name() {
    let shared = || Arc::new(ballot([Vote::Granted; 3]));
    let kinds = [
        AcquireError::HeldByAnother(shared()),
        AcquireError::NoQuorum(shared()),
        AcquireError::Misconfigured(shared()),
        AcquireError::Quarantined(shared()),
        AcquireError::TooLate(shared()),
        AcquireError::NotHeld(shared()),
        AcquireError::Lost(LossCause::Expired),
        AcquireError::HeldWithout { resource: job(), missing: Missing::Renewal },
        AcquireError::WouldDeadlock { resource: job() },
        AcquireError::NotExtended(Box::new(ExtendError::TooManyExtensions)),
        AcquireError::Invalid(ConfigError::ZeroTtl),
        AcquireError::TooManyLocks { limit: 5 },
        AcquireError::NoEntropy,
        AcquireError::Forked,
        AcquireError::DriverEnded,
    ]
    .map(|error| error.kind());
    let words = "held_by_another no_quorum misconfigured quarantined too_late not_held lost held_without would_deadlock not_extended invalid too_many_locks no_entropy forked driver_ended";
    assert_eq!(kinds.join(" "), words);
}
