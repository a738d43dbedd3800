//! The public API in simulated worlds.

use std::cell::RefCell;
use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use quorlock_core::front::{ReleaseError, RunError};
use quorlock_core::{AcquireError, ConfigError, ExtendError, LossCause, MasterState, Resource};
use quorlock_sim::{Client, Fault, Keep, World};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const LONG: Duration = Duration::from_secs(120);

/// A world of three masters after one client has run one task.
fn alone<F: Future<Output = ()> + 'static>(
    prepare: impl FnOnce(&mut World),
    task: impl FnOnce(Client) -> F,
) -> World {
    let mut world = World::new(21);
    prepare(&mut world);
    let client = world.client();
    world.spawn(&client.clone(), task(client));
    world.run(LONG).expect("no promise is broken");
    world
}

/// Two of three masters come back without their data.
fn forgetful(world: &mut World, at: Duration) {
    for master in 0..2 {
        world.inject(at, Fault::Crash { master, span: ms(5), keep: Keep::Nothing });
    }
}

#[test]
fn a_scope_is_renewed_returns_its_value_and_leaves_no_key() {
    let mut world = alone(
        |_| {},
        |client| async move {
            let locker = client.locker().clone();
            let value = locker.lock("job").ttl(ms(1_000)).run(|watch| async move {
                client.sleep(ms(30_000)).await;
                assert_eq!(watch.check(), Ok(()));
                Ok::<_, Infallible>(42)
            });
            assert_eq!(value.await, Ok(42));
            let failed = locker.lock("job").run(async |_| Err::<(), _>("the body's")).await;
            assert_eq!(failed, Err(RunError::Body("the body's")));
        },
    );
    world.settle().unwrap();
}

#[test]
fn a_scope_is_dropped_at_its_await_point_when_its_lock_is_lost() {
    alone(
        |world| forgetful(world, ms(500)),
        |client| async move {
            let ended = Rc::new(RefCell::new(false));
            let end = Rc::clone(&ended);
            let request = client.locker().lock("job").ttl(ms(1_000));
            let outcome = request.run(|_| async move {
                struct Ends(Rc<RefCell<bool>>);
                impl Drop for Ends {
                    fn drop(&mut self) {
                        *self.0.borrow_mut() = true;
                    }
                }
                let _ends = Ends(end);
                std::future::pending::<Result<(), Infallible>>().await
            });
            let error = outcome.await.unwrap_err();
            assert_eq!(error, RunError::Lost(LossCause::NotHeld));
            assert_eq!(error.to_string(), "stopped: a quorum of masters no longer holds the lock");
            assert!(error.source().is_some() && *ended.borrow());
            assert!(client.true_time() < ms(1_000), "{:?}", client.true_time());
        },
    );
}

#[test]
fn a_scope_without_its_lock_is_not_entered() {
    let mut world = World::new(22);
    let (holder, other) = (world.client(), world.client());
    world.spawn(&holder.clone(), async move {
        let guard = holder.locker().lock("job").await.unwrap();
        holder.sleep(ms(500)).await;
        drop(guard);
    });
    world.spawn(&other.clone(), async move {
        other.sleep(ms(100)).await;
        let body = |_| async { unreachable!("no lock") };
        let outcome: Result<(), RunError<Infallible>> = other.locker().try_lock("job").run(body).await;
        let Err(error @ RunError::NotAcquired(AcquireError::HeldByAnother(_))) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(error.to_string().starts_with("job not acquired: "), "{error}");
        assert!(error.source().is_some_and(|source| source.source().is_none()));
    });
    world.run(LONG).unwrap();
    world.settle().unwrap();
}

#[test]
fn requests_that_make_no_sense_end_at_once_and_say_what_is_wrong() {
    alone(
        |_| {},
        |client| async move {
            let (locker, began) = (client.locker(), client.true_time());
            for (request, wrong, text) in [
                (locker.lock(""), ConfigError::EmptyResource, "the resource's name is empty"),
                (locker.lock("job").ttl(ms(0)), ConfigError::ZeroTtl, "the TTL is zero"),
                (
                    locker.lock("x".repeat(Resource::MAX_BYTES + 1)),
                    ConfigError::OversizedResource { bytes: Resource::MAX_BYTES + 1 },
                    "16385 bytes",
                ),
                (
                    locker.lock("job").ttl(ms(50)),
                    ConfigError::TtlTooShort { ttl: ms(50), more_than: Duration::from_micros(202_500) },
                    "more than 202 ms",
                ),
            ] {
                let error = request.await.unwrap_err();
                assert!(error.to_string().contains(text), "{error}");
                assert!(error.source().is_some() && error.ballot().is_none());
                assert_eq!(error, AcquireError::Invalid(wrong));
            }
            assert_eq!(client.true_time(), began);
        },
    );
}

#[test]
fn renewal_ends_with_the_longest_hold_that_was_asked_for() {
    alone(
        |_| {},
        |client| async move {
            let guard = client.locker().lock("job").ttl(ms(1_000)).renew_for(ms(3_000)).await.unwrap();
            client.sleep(ms(2_900)).await;
            assert_eq!(guard.check(), Ok(()));
            assert_eq!(guard.lost().await, LossCause::Expired);
            assert!(client.true_time() < ms(4_010), "{:?}", client.true_time());
            assert_eq!(guard.check(), Err(LossCause::Expired));
            assert_eq!(guard.remaining(), Duration::ZERO);
        },
    );
}

#[test]
fn requests_use_the_timeout_and_the_longest_hold_of_the_configuration() {
    let mut world = World::new(23);
    let holder = world
        .client_with(|settings| settings.ttl(ms(1_000)).longest_hold(ms(3_000)))
        .expect("settings that work");
    let other = world.client_with(|settings| settings.timeout(ms(700))).expect("settings that work");
    world.spawn(&holder.clone(), async move {
        let guard = holder.locker().lock("job").renew().await.unwrap();
        assert_eq!(guard.lost().await, LossCause::Expired);
        let held_for = holder.true_time();
        assert!(held_for > ms(3_000) && held_for < ms(4_010), "{held_for:?}");
    });
    world.spawn(&other.clone(), async move {
        other.sleep(ms(100)).await;
        let error = other.locker().lock("job").await.unwrap_err();
        assert!(matches!(error, AcquireError::HeldByAnother(_)), "{error}");
        assert!(other.true_time() < ms(900), "{:?}", other.true_time());
    });
    world.run(LONG).unwrap();
    world.settle().unwrap();
}

#[test]
fn a_stopped_renewal_leaves_the_remaining_validity_and_manual_extensions() {
    alone(
        |_| {},
        |client| async move {
            let guard = client.locker().lock("job").ttl(ms(1_000)).renew().await.unwrap();
            guard.stop_renewal();
            client.sleep(ms(900)).await;
            let remaining = guard.extend(ms(2_000)).await.unwrap();
            assert!(remaining > ms(1_900) && guard.remaining() == remaining, "{remaining:?}");
            assert_eq!(guard.lost().await, LossCause::Expired);
        },
    );
}

#[test]
fn invalid_and_late_extensions_return_their_own_errors() {
    alone(
        |_| {},
        |client| async move {
            let guard = client.locker().lock("job").ttl(ms(500)).await.unwrap();
            let error = guard.extend(ms(0)).await.unwrap_err();
            assert_eq!(error, ExtendError::Invalid(ConfigError::ZeroTtl));
            assert!(error.to_string().starts_with("not extended: the TTL is zero"), "{error}");
            client.sleep(ms(600)).await;
            let error = guard.extend(ms(500)).await.unwrap_err();
            assert_eq!(error, ExtendError::Lost(LossCause::Expired));
            assert_eq!(error.to_string(), "not extended: the lock's validity ran out");
        },
    );
}

#[test]
fn an_extension_whose_future_is_dropped_still_extends_the_guard() {
    alone(
        |_| {},
        |client| async move {
            let guard = client.locker().lock("job").ttl(ms(500)).await.unwrap();
            {
                let mut extension = pin!(guard.extend(ms(5_000)));
                let polled = poll_fn(|cx| Poll::Ready(extension.as_mut().poll(cx))).await;
                assert!(polled.is_pending());
            }
            client.sleep(ms(100)).await;
            assert!(guard.remaining() > ms(4_500), "{:?}", guard.remaining());
            guard.release().await.unwrap();
        },
    );
}

#[test]
fn a_release_reports_whether_the_masters_still_held_the_lock() {
    alone(
        |world| forgetful(world, ms(100)),
        |client| async move {
            let guard = client.locker().lock("job").await.unwrap();
            client.sleep(ms(200)).await;
            let error = guard.release().await.unwrap_err();
            assert_eq!(error, ReleaseError::NotOurs(None));
            assert!(error.to_string().contains("a quorum of masters did not hold it"), "{error}");
        },
    );
    alone(
        |_| {},
        |client| async move {
            let guard = client.locker().lock("job").ttl(ms(500)).await.unwrap();
            guard.lost().await;
            client.sleep(ms(100)).await;
            let error = guard.release().await.unwrap_err();
            assert_eq!(error, ReleaseError::NotOurs(Some(LossCause::Expired)));
            assert!(error.to_string().ends_with("any more: the lock's validity ran out"), "{error}");
        },
    );
    alone(
        |world| {
            for master in 0..2 {
                world.inject(ms(100), Fault::Hang { master, span: LONG });
            }
        },
        |client| async move {
            let guard = client.locker().lock("job").await.unwrap();
            client.sleep(ms(200)).await;
            let error = guard.release().await.unwrap_err();
            let ReleaseError::Unknown(ballot) = &error else { panic!("{error}") };
            assert_eq!((ballot.resource().to_string(), ballot.needed()), ("job".to_owned(), 2));
            assert!(error.to_string().starts_with("the release of job is not confirmed"), "{error}");
        },
    );
}

#[test]
fn watches_outlive_their_guard_and_report_its_release() {
    alone(
        |_| {},
        |client| async move {
            let guard = client.locker().lock("job").await.unwrap();
            let (watch, lost) = (guard.watch(), guard.lost());
            let (polled, unpolled) = (lost.clone(), lost);
            let mut polled = pin!(polled);
            assert!(poll_fn(|cx| Poll::Ready(polled.as_mut().poll(cx))).await.is_pending());
            drop(guard);
            assert_eq!(polled.await, LossCause::Released);
            assert_eq!(unpolled.await, LossCause::Released);
            assert_eq!(watch.check(), Err(LossCause::Released));
            assert_eq!(watch.lost().await, LossCause::Released);
        },
    )
    .settle()
    .unwrap();
}

#[test]
fn an_acquisition_that_is_dropped_at_any_time_leaves_no_key() {
    for after in 0..12 {
        let mut world = alone(
            |_| {},
            |client| async move {
                let mut seeking = pin!(client.locker().lock("job").into_future());
                let mut over = pin!(client.sleep(Duration::from_micros(100 * after)));
                poll_fn(|cx| {
                    let _ = seeking.as_mut().poll(cx);
                    over.as_mut().poll(cx)
                })
                .await;
            },
        );
        world.settle().unwrap();
    }
}

#[test]
fn a_locker_reports_the_state_of_its_masters() {
    alone(
        |world| world.inject(ms(10), Fault::Crash { master: 2, span: LONG, keep: Keep::Everything }),
        |client| async move {
            client.sleep(ms(2_000)).await;
            let masters = client.locker().masters();
            assert_eq!(masters[0].0.to_string(), "master0:6379");
            let ready = masters.iter().map(|(_, state)| matches!(state, MasterState::Ready { .. }));
            assert_eq!(ready.collect::<Vec<_>>(), [true, true, false]);
            assert!(matches!(masters[2].1, MasterState::Down(_)), "{:?}", masters[2].1);
            assert_eq!(client.locker().config().ttl().as_duration(), Duration::from_secs(10));
        },
    );
}

#[test]
fn nothing_that_users_hold_shows_a_token() {
    alone(
        |_| {},
        |client| async move {
            let request = client.locker().lock("job").renew();
            let mut shown = format!("{:?} {request:?}", client.locker());
            assert!(shown.contains("master0") && shown.contains("job"), "{shown}");
            let seeking = request.into_future();
            shown += &format!("{seeking:?}");
            let guard = seeking.await.unwrap();
            shown += &format!("{guard:?} {:?} {:?} {:?}", guard.watch(), guard.lost(), guard.extend(ms(500)));
            let (resource, token) = (guard.resource().clone(), guard.token());
            let release = guard.release();
            shown += &format!("{release:?} {token:?}");
            release.await.unwrap();
            assert_eq!(resource, Resource::new("job").unwrap());
            assert!(!shown.contains(&token.expose()[..8]), "{shown}");
        },
    );
}
