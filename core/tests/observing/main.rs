//! The events for a subscriber of `tracing`, none of which contains a secret. This is a separate
//! program, so that nothing is reported before there is a subscriber: `tracing` caches its decision
//! about each place in the code, and may miss a subscriber that is installed at the same moment in
//! another thread.

#![cfg(feature = "tracing")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, unreachable_pub)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Wake, Waker};

use quorlock_core::front::{Guard, Locker};
use quorlock_core::{Config, Fleet};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::set_global_default;
use tracing::{Event, Level, Metadata, Subscriber};

use driver::{Driver, ms};

mod changing;
mod nested;

// Most of this module is for other tests.
#[allow(dead_code)]
#[path = "../front/driver.rs"]
mod driver;
#[allow(dead_code)]
#[path = "../front/toy_channel.rs"]
mod toy_channel;

/// A span or an event, with its fields as text.
#[derive(Clone, Debug)]
struct Told {
    name: &'static str,
    level: Level,
    fields: BTreeMap<&'static str, String>,
}

impl Told {
    fn new(metadata: &'static Metadata<'static>) -> Self {
        assert_eq!(metadata.target(), "quorlock");
        Self { name: metadata.name(), level: *metadata.level(), fields: BTreeMap::new() }
    }

    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

/// Keeps everything: spans by number, and events.
#[derive(Clone, Default)]
struct Capture(Arc<Mutex<(Vec<Told>, Vec<Told>)>>, Arc<Mutex<Option<Locker>>>, Arc<AtomicBool>);

impl Capture {
    fn spans(&self) -> Vec<Told> {
        self.0.lock().unwrap().0.clone()
    }

    /// Makes it query this locker at every event.
    fn ask(&self, locker: Option<Locker>) {
        let before = std::mem::replace(&mut *self.1.lock().unwrap(), locker);
        drop(before);
    }

    fn is_told(&self) {
        let locker = self.1.lock().unwrap().clone();
        // This call hangs if an event comes while the machine's mutex is held.
        let _ = locker.map(|locker| locker.report());
    }

    /// The events of this name.
    fn events(&self, name: &str) -> Vec<Told> {
        self.0.lock().unwrap().1.iter().filter(|event| event.name == name).cloned().collect()
    }
}

impl Capture {
    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        self.is_told();
        let mut told = Told::new(attributes.metadata());
        attributes.record(&mut told);
        let spans = &mut self.0.lock().unwrap().0;
        spans.push(told);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.is_told();
        let place = usize::try_from(span.into_u64()).unwrap() - 1;
        values.record(&mut self.0.lock().unwrap().0[place]);
    }

    fn event(&self, event: &Event<'_>) {
        self.is_told();
        let mut told = Told::new(event.metadata());
        event.record(&mut told);
        self.0.lock().unwrap().1.push(told);
        assert!(!self.2.load(Ordering::SeqCst), "a subscriber that panics, on purpose");
    }
}

thread_local! {
    /// The capture of this thread's test.
    static HERE: RefCell<Option<Capture>> = const { RefCell::new(None) };
}

/// The program's subscriber, which passes everything on to the capture of the thread.
struct Everywhere;

impl Everywhere {
    fn here<R>(&self, tell: impl FnOnce(&Capture) -> R) -> Option<R> {
        let capture = HERE.with_borrow(Clone::clone)?;
        Some(tell(&capture))
    }
}

impl Subscriber for Everywhere {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "quorlock"
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        self.here(|capture| capture.new_span(attributes)).unwrap_or(Id::from_u64(u64::MAX))
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.here(|capture| capture.record(span, values));
    }

    fn event(&self, event: &Event<'_>) {
        self.here(|capture| capture.event(event));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn observed(act: impl FnOnce(&Capture)) {
    static SUBSCRIBED: OnceLock<()> = OnceLock::new();
    SUBSCRIBED.get_or_init(|| set_global_default(Everywhere).unwrap());
    let capture = Capture::default();
    HERE.set(Some(capture.clone()));
    act(&capture);
    HERE.set(None);
}

#[test]
fn each_acquisition_has_a_span_with_its_outcome() {
    observed(|capture| {
        let (locker, driver) = Driver::start(3);
        driver.settle();
        let guard = locker.lock("invoice:42").ttl(ms(10_000)).wait().unwrap();
        assert!(locker.try_lock("invoice:42").wait().is_err());
        assert!(
            pin!(locker.lock("other").into_future())
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        let handed = guard.hand_over().unwrap();
        let resumed = locker.resume("invoice:42", handed).wait().unwrap();
        let [granted, refused, abandoned, resumption]: [Told; 4] = capture.spans().try_into().unwrap();

        for (name, value) in [
            ("otel.kind", "client"),
            ("db.system.name", "redis"),
            ("db.operation.name", "lock"),
            ("quorlock.resource", "invoice:42"),
            ("quorlock.outcome", "granted"),
            ("quorlock.attempts", "1"),
            ("quorlock.votes.needed", "2"),
            ("quorlock.masters", "3"),
        ] {
            assert_eq!(granted.field(name), value, "{name}");
        }
        assert_eq!((granted.name, granted.level), ("quorlock.acquire", Level::INFO));
        assert!(granted.field("quorlock.votes.granted").parse::<u8>().unwrap() >= 2);
        let validity: u64 = granted.field("quorlock.validity_ms").parse().unwrap();
        assert!((9_000..10_000).contains(&validity), "{validity}");
        assert_eq!(granted.field("error.type"), "");

        assert_eq!(refused.field("quorlock.outcome"), "held_by_another");
        assert_eq!(refused.field("error.type"), "held_by_another");
        assert_eq!(refused.field("quorlock.votes.granted"), "0");
        let error = refused.field("quorlock.error");
        assert!(
            error.starts_with("invoice:42 not acquired: 0 of 3 votes, 2 needed (master0:6379 held"),
            "{error}"
        );
        assert_eq!(abandoned.field("quorlock.outcome"), "abandoned");
        assert_eq!(resumption.field("db.operation.name"), "resume");
        assert_eq!(resumption.field("quorlock.outcome"), "granted");
        drop(resumed);
    });
}

#[test]
fn an_owner_that_gets_its_lock_again_is_reported_as_reentered() {
    observed(|capture| {
        let (locker, driver) = Driver::start(3);
        driver.settle();
        let owner = locker.owner();
        let guards = [(); 2].map(|()| owner.lock("job").wait().unwrap());
        let outcomes: Vec<_> =
            capture.spans().iter().map(|span| span.field("quorlock.outcome").to_owned()).collect();
        assert_eq!(outcomes, ["granted", "reentered"]);
        drop(guards);
    });
}

#[test]
fn losses_are_warnings_and_successes_are_debug_events() {
    observed(|capture| {
        let (locker, driver) = Driver::start(3);
        driver.settle();
        let renewed = locker.lock("renewed").ttl(ms(3_000)).renew().wait().unwrap();
        let lost = locker.lock("lost").ttl(ms(1_000)).wait().unwrap();
        renewed.extend(ms(3_000)).wait().unwrap();
        driver.pass(ms(1_000));
        driver.settle();
        renewed.release().wait().unwrap();
        assert!(lost.release().wait().is_err());

        let levels = [("lost", Level::WARN), ("renewed", Level::DEBUG), ("extended", Level::DEBUG)];
        for (name, level) in levels {
            let events = capture.events(&format!("quorlock.{name}"));
            assert_eq!((events.len(), events[0].level), (1, level), "{name}");
            assert_eq!(events[0].field("db.system.name"), "redis");
        }
        let lost = &capture.events("quorlock.lost")[0];
        assert_eq!((lost.field("quorlock.resource"), lost.field("quorlock.cause")), ("lost", "expired"));
        let renewed = &capture.events("quorlock.renewed")[0];
        assert_eq!(renewed.field("quorlock.resource"), "renewed");
        assert!(renewed.field("quorlock.validity_ms").parse::<u64>().unwrap() > 2_000);
        assert_eq!(capture.events("quorlock.extended")[0].field("quorlock.outcome"), "granted");
        let released = capture.events("quorlock.released");
        let released: Vec<_> = released
            .iter()
            .map(|event| (event.level, event.field("quorlock.resource"), event.field("quorlock.outcome")))
            .collect();
        let expected = [(Level::DEBUG, "renewed", "still_ours"), (Level::DEBUG, "lost", "not_ours")];
        assert_eq!(released, expected);
    });
}

#[test]
fn masters_are_reported_when_they_connect_disconnect_or_do_not_vote() {
    observed(|capture| {
        let urls = ["redis://:mistaken@master0", "redis://master1", "redis://master2:7000"];
        let config = Config::builder(urls).restart_guard(ms(30_000)).build().unwrap();
        let (locker, driver) = Driver::over(config, true);
        driver.with_master(0, |master| master.set_password(Some("right")));
        driver.settle();
        let addresses = |events: &[Told]| -> Vec<String> {
            let address =
                |event: &Told| format!("{}:{}", event.field("server.address"), event.field("server.port"));
            events.iter().map(address).collect()
        };
        let up = capture.events("quorlock.master.up");
        assert_eq!(addresses(&up), ["master1:6379", "master2:7000"]);
        assert!(up.iter().all(|event| event.level == Level::INFO));
        let down = capture.events("quorlock.master.down");
        assert_eq!((addresses(&down), down[0].level), (vec!["master0:6379".to_owned()], Level::WARN));
        assert!(down[0].field("quorlock.cause").contains("password"), "{down:?}");
        let quarantined = capture.events("quorlock.master.quarantined");
        assert_eq!((quarantined.len(), quarantined[0].level), (2, Level::WARN));
        let remaining: u64 = quarantined[0].field("quorlock.quarantine_ms").parse().unwrap();
        assert!((29_000..=31_000).contains(&remaining), "{remaining}");

        // A master that does not vote is reported only once, and so is one that stays down.
        for _ in 0..3 {
            assert!(locker.try_lock("job").wait().is_err());
            driver.pass(ms(2_000));
            driver.settle();
        }
        assert_eq!(capture.events("quorlock.master.quarantined").len(), 2);
        assert_eq!(capture.events("quorlock.master.down").len(), 1);

        driver.pass(ms(40_000));
        driver.settle();
        locker.lock("job").wait().unwrap().release().wait().unwrap();
        driver.lose(1);
        driver.settle();
        let reconnecting = capture.events("quorlock.master.reconnecting");
        assert_eq!(
            (addresses(&reconnecting), reconnecting[0].level),
            (vec!["master1:6379".to_owned()], Level::INFO)
        );
        assert_eq!(capture.events("quorlock.master.up").len(), 3);
    });
}

#[test]
fn a_denied_permission_is_reported() {
    observed(|capture| {
        let config = Config::new(["redis://master0"]).unwrap();
        let (_locker, driver) = Driver::over(config, true);
        driver.with_master(0, |master| master.fail("INFO", Some("NOPERM this user has no permissions")));
        driver.settle();
        let denied = capture.events("quorlock.master.denied");
        assert_eq!((denied[0].level, denied[0].field("quorlock.warning")), (Level::WARN, "InfoDenied"));
    });
}

#[test]
fn a_permission_that_proves_to_be_denied_later_is_reported_once() {
    observed(|capture| {
        let (locker, driver) = Driver::over(Config::new(["redis://master0"]).unwrap(), true);
        driver.with_master(0, |master| master.fail("ENTER", Some("NOPERM this user has no permissions")));
        driver.settle();
        assert!(capture.events("quorlock.master.denied").is_empty());
        for _ in 0..3 {
            locker.lock("job").fair().wait().unwrap().release().wait().unwrap();
        }
        let denied = capture.events("quorlock.master.denied");
        let warnings: Vec<_> = denied.iter().map(|event| event.field("quorlock.warning")).collect();
        assert_eq!(warnings, ["QueueDenied"]);
        assert_eq!(capture.events("quorlock.master.up").len(), 1);
    });
}

#[test]
fn replicas_of_a_guarded_master_are_reported() {
    observed(|capture| {
        let config = Config::builder(["redis://master0"]).restart_guard(ms(30_000)).build().unwrap();
        let (_locker, driver) = Driver::over(config, true);
        driver.with_master(0, |master| master.set_replicas(1));
        driver.settle();
        let told = capture.events("quorlock.master.undeclared_replicas");
        assert_eq!((told[0].level, told[0].field("quorlock.warning")), (Level::WARN, "UndeclaredReplicas"));
        assert!(capture.events("quorlock.master.denied").is_empty());
    });
}

#[test]
fn a_client_without_the_restart_guard_that_others_use_is_reported() {
    observed(|capture| {
        let (_locker, driver) = Driver::over(Config::new(["redis://master0"]).unwrap(), true);
        driver.with_master(0, |master| master.hold(0, Fleet::MARKER.as_bytes(), b"id 1 2 60000 3", None));
        driver.settle();
        let told = capture.events("quorlock.master.no_restart_guard");
        assert_eq!((told[0].level, told[0].field("quorlock.warning")), (Level::WARN, "NoRestartGuard"));
        assert!(capture.events("quorlock.master.denied").is_empty());
    });
}

#[test]
fn a_subscriber_may_use_the_locker() {
    observed(|capture| {
        let (locker, driver) = Driver::start(3);
        capture.ask(Some(locker.clone()));
        driver.settle();
        let guard = locker.lock("job").ttl(ms(1_000)).wait().unwrap();
        assert!(locker.try_lock("job").wait().is_err());
        drop(locker.lock("job").into_future());
        driver.pass(ms(2_000));
        driver.lose(0);
        driver.settle();
        drop(guard);
        capture.ask(None);
        assert_eq!((capture.spans().len(), capture.events("quorlock.lost").len()), (2, 1));
        assert_eq!(capture.events("quorlock.master.reconnecting").len(), 1);
    });
}

#[test]
fn a_subscriber_that_panics_keeps_no_caller_from_being_woken() {
    observed(|capture| {
        let (locker, driver) = Driver::start(3);
        driver.settle();
        let guards = ["a", "b"].map(|name| locker.lock(name).ttl(ms(1_000)).wait().unwrap());
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut lost = guards.each_ref().map(Guard::lost);
        for lost in &mut lost {
            assert!(pin!(lost).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        capture.2.store(true, Ordering::SeqCst);

        driver.pass(ms(1_000));
        driver.settle();

        assert_eq!(woken.0.load(Ordering::SeqCst), 2);
        assert_eq!(capture.events("quorlock.lost").len(), 2);
    });
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn no_token_and_no_password_is_shown() {
    observed(|capture| {
        let urls = (0..3).map(|number| format!("redis://someone:geheim@master{number}"));
        let (locker, driver) = Driver::over(Config::new(urls).unwrap(), true);
        for master in 0..2 {
            driver.with_master(master, |master| master.add_user("someone", "geheim"));
        }
        driver.settle();
        let guard = locker.lock("job").fenced().heal().renew().wait().unwrap();
        let token = guard.token().expose();
        assert!(locker.try_lock("job").wait().is_err());
        driver.pass(ms(5_000));
        driver.settle();
        guard.extend(ms(20_000)).wait().unwrap();
        let resumed = locker.resume("job", guard.hand_over().unwrap()).wait().unwrap();
        resumed.release().wait().unwrap();
        assert!(locker.release("job", quorlock_core::Token::from_hex(&token).unwrap()).wait().is_err());
        let told = format!("{:?}", capture.0.lock().unwrap());
        assert!(told.contains("quorlock.master.down") && told.contains("quorlock.released"), "{told}");
        for secret in [token.as_str(), &token[..8], "geheim", "someone"] {
            assert!(!told.contains(secret), "{secret} in {told}");
        }
    });
}
