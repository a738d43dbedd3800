//! Strategies for [proptest](https://docs.rs/proptest): faults, schedules of faults, programs of
//! clients and whole plans.
//!
//! ```
//! use proptest::prelude::*;
//! use quorlock_sim::strategies;
//!
//! proptest! {
//!     # #![proptest_config(ProptestConfig::with_cases(8))]
//!     # fn doctest(plan in strategies::plans()) { prop_assert!(plan.run().is_ok()); }
//!     # /*
//!     #[test]
//!     fn no_two_holders(plan in strategies::plans()) {
//!         plan.run().map_err(|failure| TestCaseError::fail(failure.to_string()))?;
//!     }
//!     # */
//! }
//! # doctest();
//! ```

use std::ops::Range;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::access::{Access, RESOURCES};
use super::assumed::ASSUMED_DRIFT_PPM;
use super::fault::{Fault, PushFate, Refusal};
use super::plan::{ClientPlan, Plan};
use super::step::Step;
use super::when::When;
use crate::master::Keep;

/// The longest TTL, in milliseconds.
const LONGEST_TTL: u64 = 6_000;

/// For how long a client pauses, or its clock jumps, in milliseconds. If this did not exceed the
/// TTLs that tests give their locks, no generated fault would outlast a lock. The documentation of
/// [`faults`] and the page about testing name the bound.
const DELAYS: Range<u64> = 1..3_000;

fn millis(range: Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

/// Generates faults within Redlock's assumptions, for worlds of any size: numbers of clients and
/// masters wrap around.
///
/// One fault delays a client by less than 3 s: it pauses, or its clock jumps. See [`schedules`] for
/// what that means for the TTL in a test.
pub fn faults() -> impl Strategy<Value = Fault> {
    let pair = (0usize..8, 0usize..8);
    let reason = prop_oneof![
        Just(Refusal::OutOfMemory),
        Just(Refusal::ReadOnly),
        Just(Refusal::Loading),
        Just(Refusal::NoAuth)
    ];
    let push_fate = prop_oneof![Just(PushFate::Late), Just(PushFate::Lost), Just(PushFate::Repeated)];
    prop_oneof![
        (0usize..8, millis(1..2_000)).prop_map(|(master, span)| Fault::Hang { master, span }),
        (0usize..8, millis(1..2_000)).prop_map(|(master, span)| Fault::Crash {
            master,
            span,
            keep: Keep::Everything
        }),
        (0usize..8, reason, millis(1..2_000)).prop_map(|(master, reason, span)| Fault::Refuse {
            master,
            reason,
            span
        }),
        (0usize..8, push_fate, millis(1..2_000)).prop_map(|(master, fate, span)| Fault::Pushes {
            master,
            fate,
            span
        }),
        (0usize..8).prop_map(|master| Fault::ForgetScripts { master }),
        pair.clone().prop_map(|(client, master)| Fault::Cut { client, master }),
        pair.clone().prop_map(|(client, master)| Fault::HangUp { client, master }),
        pair.clone().prop_map(|(client, master)| Fault::HalfOpen { client, master }),
        (pair.clone(), millis(1..2_000)).prop_map(|((client, master), span)| Fault::Partition {
            client,
            master,
            span
        }),
        (pair.clone(), millis(1..2_000)).prop_map(|((client, master), span)| Fault::Mute {
            client,
            master,
            span
        }),
        (pair.clone(), millis(1..2_000)).prop_map(|((client, master), span)| Fault::Clog {
            client,
            master,
            span
        }),
        (pair.clone(), millis(1..2_000)).prop_map(|((client, master), span)| Fault::Unreachable {
            client,
            master,
            span
        }),
        (pair, millis(1..400), millis(1..2_000)).prop_map(|((client, master), delay, span)| Fault::Slow {
            client,
            master,
            delay,
            span
        }),
        (0usize..8, millis(DELAYS)).prop_map(|(client, span)| Fault::Pause { client, span }),
        (0usize..8, millis(DELAYS)).prop_map(|(client, by)| Fault::ClientJump { client, by }),
        (0usize..8).prop_map(|client| Fault::Kill { client }),
        (0usize..8, drift()).prop_map(|(client, gain_ppm)| Fault::ClientDrift { client, gain_ppm }),
        (0usize..8, drift()).prop_map(|(master, gain_ppm)| Fault::MasterDrift { master, gain_ppm }),
    ]
}

/// Generates faults in which masters lose their data, which the restart guard protects against.
pub fn losses() -> impl Strategy<Value = Fault> {
    let kept = prop_oneof![Just(Keep::Nothing), Just(Keep::Half)];
    prop_oneof![
        (0usize..8, millis(1..2_000), kept).prop_map(|(master, span, keep)| Fault::Crash {
            master,
            span,
            keep
        }),
        (0usize..8).prop_map(|master| Fault::Flush { master }),
        (0usize..8).prop_map(|master| Fault::Save { master }),
        (0usize..8, millis(1..2_000)).prop_map(|(master, span)| Fault::Restore { master, span }),
        (0usize..8, 0usize..4, millis(1..2_000)).prop_map(|(master, further, span)| Fault::Resync {
            master,
            further,
            span
        }),
    ]
}

/// Generates faults between the servers of a group, for worlds whose masters have replicas
/// ([`Plan::replicas`]).
pub fn failovers() -> impl Strategy<Value = Fault> {
    let server = || 0usize..12;
    prop_oneof![
        3 => (server(), millis(1..1_500))
            .prop_map(|(master, learned_within)| Fault::Promote { master, learned_within }),
        3 => (server(), any::<bool>()).prop_map(|(master, closes)| Fault::Follow { master, closes }),
        2 => (server(), millis(1..2_500)).prop_map(|(master, span)| Fault::Isolate { master, span }),
        1 => (server(), millis(1..300), millis(1..2_500))
            .prop_map(|(master, delay, span)| Fault::SlowReplication { master, delay, span }),
    ]
}

/// Generates up to `most` faults, each with its time: an instant within `horizon`, or a number of
/// events after which it happens. Most events happen while requests are under way.
///
/// A fault delays a client by less than 3 s ([`faults`]). **Give the locks of the code under test a
/// TTL well below that**, such as one second. A lock with the default TTL of 10 s outlasts each
/// single delay: then hardly any schedule makes a holder late, and code that never calls
/// [`Guard::check`] passes as well. For requests that set no TTL, [`World::client_with`] sets it.
/// Before you trust a test, remove the check from your code, and see the test fail.
///
/// [`Guard::check`]: quorlock_core::front::Guard::check
/// [`World::client_with`]: crate::World::client_with
pub fn schedules(most: usize, horizon: Duration) -> impl Strategy<Value = Vec<(When, Fault)>> {
    schedules_of(faults().boxed(), most, horizon)
}

fn schedules_of(
    faults: BoxedStrategy<Fault>,
    most: usize,
    horizon: Duration,
) -> impl Strategy<Value = Vec<(When, Fault)>> {
    let horizon = u64::try_from(horizon.as_millis()).unwrap_or(u64::MAX).max(1);
    let when = prop_oneof![
        millis(0..horizon).prop_map(When::At),
        // About a thousand events happen in a second of requests.
        (0..horizon).prop_map(When::AfterEvents),
    ];
    vec((when, faults), 0..=most)
}

/// Generates one step of a client.
pub fn steps() -> impl Strategy<Value = Step> {
    let dropped_after = || option::weighted(0.15, millis(1..200));
    prop_oneof![
        4 => (0u8..2, millis(150..LONGEST_TTL), millis(5..3_000), any::<[bool; 3]>(), dropped_after()).prop_map(
            |(resource, ttl, timeout, [renewed, fenced, healing], dropped_after)| {
                Step::Lock { resource, ttl, timeout, renewed, fenced, healing, dropped_after }
            }
        ),
        1 => Just(Step::HandOn),
        1 => (millis(150..LONGEST_TTL), any::<[bool; 2]>())
            .prop_map(|(ttl, [renewed, healing])| Step::Resume { ttl, renewed, healing }),
        1 => Just(Step::Copy),
        1 => Just(Step::Repeat),
        1 => Just(Step::Share),
        1 => Just(Step::Nest),
        1 => Just(Step::ReleaseHanded),
        3 => millis(1..800).prop_map(Step::Hold),
        2 => (millis(150..LONGEST_TTL), dropped_after())
            .prop_map(|(ttl, dropped_after)| Step::Extend { ttl, dropped_after }),
        3 => Just(Step::Release),
        1 => millis(1..LONGEST_TTL).prop_map(Step::ReleaseAfter),
        1 => Just(Step::Drop),
        1 => Just(Step::StopRenewal),
        1 => millis(1..500).prop_map(Step::Rest),
    ]
}

/// Generates how one lock uses each of the resources: some of the first three are locked
/// exclusively, read, or shared by one of two groups; or it is one of a semaphore's permits.
pub fn accesses() -> impl Strategy<Value = [Access; RESOURCES]> {
    let access = || {
        prop_oneof![
            3 => Just(Access::None),
            2 => Just(Access::Write),
            2 => Just(Access::Read),
            1 => (0u8..2).prop_map(Access::Share),
        ]
    };
    let all = [access(), access(), access()]
        .prop_map(|[first, second, third]| [first, second, third, Access::None]);
    let all = all.prop_filter("a lock has a target", |all| all.iter().any(|access| *access != Access::None));
    let permit = (1u8..4).prop_map(|of| [Access::Permit(of), Access::None, Access::None, Access::None]);
    prop_oneof![4 => all, 1 => permit]
}

/// Generates one step of a client with locks of every kind, including several resources, shared
/// ones, and permits.
pub fn mixed_steps() -> impl Strategy<Value = Step> {
    let dropped_after = option::weighted(0.15, millis(1..200));
    let lock_all = (
        accesses(),
        millis(150..LONGEST_TTL),
        millis(5..3_000),
        any::<[bool; 3]>(),
        prop::bool::weighted(0.15),
        dropped_after,
    );
    prop_oneof![
        3 => lock_all.prop_map(
            |(accesses, ttl, timeout, [renewed, fenced, healing], once, dropped_after)| {
                Step::LockAll { accesses, once, ttl, timeout, renewed, fenced, healing, dropped_after }
            }
        ),
        1 => Just(Step::Downgrade),
        7 => steps(),
    ]
}

/// Generates a client whose clock drifts within Redlock's assumptions.
pub fn clients() -> impl Strategy<Value = ClientPlan> {
    clients_of(steps())
}

fn clients_of(steps: impl Strategy<Value = Step>) -> impl Strategy<Value = ClientPlan> {
    (vec(steps, 1..30), drift(), prop::bool::weighted(0.2))
        .prop_map(|(steps, gain_ppm, is_owner)| ClientPlan { gain_ppm, is_owner, ..ClientPlan::new(steps) })
}

fn drift() -> impl Strategy<Value = i32> {
    -ASSUMED_DRIFT_PPM..=ASSUMED_DRIFT_PPM
}

/// Generates whole runs: one to five masters, up to four clients, and faults of every kind. With
/// the restart guard masters also lose their data.
pub fn plans() -> impl Strategy<Value = Plan> {
    plans_of(clients())
}

/// Generates whole runs as [`plans`] does, in which clients also lock several resources at once,
/// share them, and acquire permits.
pub fn mixed_plans() -> impl Strategy<Value = Plan> {
    plans_of(clients_of(mixed_steps()))
}

/// Generates whole runs in which masters have replicas, clients declare them, and masters fail
/// over: one to three masters with one or two replicas each, up to four clients, the restart guard,
/// and faults of every kind.
pub fn failover_plans() -> impl Strategy<Value = Plan> {
    let any_fault = prop_oneof![4 => faults(), 1 => losses(), 4 => failovers()].boxed();
    let faults = schedules_of(any_fault, 20, Duration::from_secs(4));
    let masters = (vec(drift(), 1..=3), 1u8..=2, any::<bool>());
    let longest = millis(LONGEST_TTL..LONGEST_TTL + 500);
    (any::<u64>(), masters, vec(clients(), 1..=4), longest, faults).prop_map(
        |(seed, (masters, replicas, bootstrapped), clients, longest, faults)| Plan {
            masters,
            replicas,
            declared: Some(replicas),
            faults,
            restart_guard: Some(longest),
            bootstrapped,
            ..Plan::new(seed, 1, clients)
        },
    )
}

fn plans_of(clients: impl Strategy<Value = ClientPlan>) -> impl Strategy<Value = Plan> {
    let horizon = Duration::from_secs(4);
    let any_fault = prop_oneof![6 => faults(), 1 => losses()].boxed();
    let guarded =
        (millis(LONGEST_TTL..LONGEST_TTL + 500), any::<bool>(), schedules_of(any_fault, 20, horizon))
            .prop_map(|(longest, bootstrapped, faults)| (Some(longest), bootstrapped, faults));
    let plain = schedules(20, horizon).prop_map(|faults| (None, false, faults));
    let masters = vec(drift(), 1..=5);
    (any::<u64>(), masters, vec(clients, 1..=4), prop_oneof![plain, guarded]).prop_map(
        |(seed, masters, clients, (restart_guard, bootstrapped, faults))| Plan {
            masters,
            faults,
            restart_guard,
            bootstrapped,
            ..Plan::new(seed, 1, clients)
        },
    )
}
