//! The texts of errors, and what they contain.

use super::super::{
    BootstrapError, Cause, Deletion, ForceReleaseError, ForceReleased, InspectError, MasterId, Resource, Vote,
};
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

fn released(deletions: [Result<Deletion, Cause>; 3]) -> ForceReleased {
    let masters = ballot([Vote::NotAsked; 3]).masters;
    let deletions = deletions.into();
    ForceReleased { resource: job(), masters, quorum: Quorum::of(3).unwrap(), deletions }
}

fn too_few() -> ForceReleaseError {
    let outcome = released([Ok(Deletion::Deleted), Ok(Deletion::OtherType), Err(Cause::Closed)]);
    ForceReleaseError::TooFew(Box::new(outcome))
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
    let ended = "the I/O loop of this locker has ended; open another locker";
    let zero = ConfigError::ZeroTtl;
    for (error, said) in [
        (AcquireError::NoQuorum(shared()).to_string(), format!("job not acquired: {votes}")),
        (
            AcquireError::TooLate(shared()).to_string(),
            format!("job not acquired: the votes came after its validity had run out: {votes}"),
        ),
        (AcquireError::from(TooManyLocks { limit: 5 }).to_string(), limit.to_owned()),
        (AcquireError::from(zero.clone()).to_string(), zero.to_string()),
        (AcquireError::DriverEnded.to_string(), ended.to_owned()),
        (
            AcquireError::NoEntropy.to_string(),
            "could not get random bytes from the operating system".to_owned(),
        ),
        (
            ExtendError::Lost(LossCause::NotHeld).to_string(),
            "not extended: a quorum of masters no longer holds the lock".to_owned(),
        ),
        (ExtendError::NoQuorum(shared()).to_string(), format!("job not extended: {votes}")),
        (ExtendError::from(zero.clone()).to_string(), format!("not extended: {zero}")),
        (LossCause::Expired.to_string(), "the lock's validity ran out".to_owned()),
        (
            too_few().to_string(),
            "deleted job on 1 of 3 masters; 0 had no such key: too few to free it".to_owned(),
        ),
        (ForceReleaseError::from(zero.clone()).to_string(), zero.to_string()),
        (ForceReleaseError::from(TooManyLocks { limit: 5 }).to_string(), limit.to_owned()),
        (ForceReleaseError::Forked.to_string(), FORKED.to_owned()),
        (ForceReleaseError::DriverEnded.to_string(), ended.to_owned()),
        (InspectError::from(zero.clone()).to_string(), zero.to_string()),
        (InspectError::from(TooManyLocks { limit: 5 }).to_string(), limit.to_owned()),
        (InspectError::Forked.to_string(), FORKED.to_owned()),
        (InspectError::DriverEnded.to_string(), ended.to_owned()),
    ] {
        assert_eq!(error, said);
    }
}

#[test]
fn a_bootstrap_names_the_masters_that_vote_already() {
    let masters = ballot([Vote::NotAsked; 3]).masters;
    let rest = "already vote and others do not, so locks may be held: wait for the quarantine to end";
    for (count, said) in
        [(1, format!("a:6379 {}", rest.replace("vote", "votes"))), (2, format!("a:6379, b:6379 {rest}"))]
    {
        assert_eq!(BootstrapError::InUse(masters[..count].to_vec()).to_string(), said);
    }
}

#[test]
fn a_forced_release_that_was_not_enough_tells_what_it_did() {
    assert_eq!(too_few().outcome().map(ForceReleased::deleted), Some(1));
    assert_eq!(ForceReleaseError::Forked.outcome(), None);
}

#[test]
fn a_lock_is_free_once_a_quorum_has_deleted_its_key_or_had_none() {
    let (deleted, absent) = (Ok(Deletion::Deleted), Ok(Deletion::Absent));
    let (contended, closed) = (Ok(Deletion::Contended), Err(Cause::Closed));
    for (deletions, is_enough) in [
        ([deleted, deleted, closed], true),
        ([deleted, absent, contended], true),
        ([closed, absent, absent], true),
        ([deleted, contended, closed], false),
        ([Ok(Deletion::OtherType), absent, closed], false),
    ] {
        assert_eq!(released(deletions).is_enough(), is_enough, "{deletions:?}");
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
    assert_eq!(source(&InspectError::Invalid(zero.clone())), Some(zero.to_string()));
    assert_eq!(source(&InspectError::Forked), None);
    assert_eq!(source(&ForceReleaseError::Invalid(zero.clone())), Some(zero.to_string()));
    assert_eq!(source(&too_few()), None);
    let lost = LossCause::Released;
    assert_eq!(source(&ExtendError::Lost(lost)), Some(lost.to_string()));
    assert_eq!(source(&AcquireError::Lost(lost)), Some(lost.to_string()));
    let not_extended = ExtendError::Lost(lost);
    assert_eq!(
        source(&AcquireError::NotExtended(Box::new(not_extended.clone()))),
        Some(not_extended.to_string())
    );
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
    let kinds = [
        ExtendError::Lost(LossCause::Expired),
        ExtendError::NoQuorum(shared()),
        ExtendError::Invalid(ConfigError::ZeroTtl),
        ExtendError::TooManyExtensions,
    ];
    assert_eq!(kinds.map(|error| error.kind()).join(" "), "lost no_quorum invalid too_many_extensions");
    let kinds = [
        BootstrapError::NoRestartGuard,
        BootstrapError::InUse(Vec::new()),
        BootstrapError::Unreached(shared()),
        BootstrapError::TooManyLocks { limit: 5 },
        BootstrapError::Forked,
        BootstrapError::DriverEnded,
    ];
    let words = "no_restart_guard in_use unreached too_many_locks forked driver_ended";
    assert_eq!(kinds.map(|error| error.kind()).join(" "), words);
    let kinds = [
        InspectError::Invalid(ConfigError::ZeroTtl),
        InspectError::TooManyLocks { limit: 5 },
        InspectError::Forked,
        InspectError::DriverEnded,
    ];
    assert_eq!(kinds.map(|error| error.kind()).join(" "), "invalid too_many_locks forked driver_ended");
    let kinds = [
        too_few(),
        ForceReleaseError::Invalid(ConfigError::ZeroTtl),
        ForceReleaseError::TooManyLocks { limit: 5 },
        ForceReleaseError::Forked,
        ForceReleaseError::DriverEnded,
    ];
    let words = "too_few invalid too_many_locks forked driver_ended";
    assert_eq!(kinds.map(|error| error.kind()).join(" "), words);
}
