//! Error messages: each names the value and what to do about it, and none shows a secret.

use std::io;
use std::ops::RangeInclusive;

use quorlock_core::{
    AcquireError, Cause, Config, ConfigBuilder, Event, ExtendError, IoFault, LossCause, MasterState,
    Resource, Ttl, WireFault,
};

use super::world::{Flow, World, ms, one_try, settings, wanted};

const fn days(days: u64) -> std::time::Duration {
    ms(days * 24 * 3_600 * 1_000)
}

fn refused(settings: ConfigBuilder) -> String {
    settings.build().unwrap_err().to_string()
}

#[test]
fn each_unusable_configuration_has_its_own_message() {
    let none: [&str; 0] = [];
    let many = (0..65).map(|number| format!("redis://host{number}"));
    for (message, text) in [
        (
            refused(Config::builder(none)),
            "no master is named; name at least one, for example redis://127.0.0.1:6379",
        ),
        (refused(Config::builder(many)), "65 masters are named, but at most 64 are possible"),
        (
            refused(Config::builder(["redis://u:secret@a", "redis://A:6379"])),
            "A:6379 is named twice; each master has one vote, so name it once",
        ),
        (
            refused(Config::builder(["redis://"])),
            "master 1 of 1: the host is missing: write redis://host:port",
        ),
        (
            refused(Config::builder(["redis://a:0"])),
            "master 1 of 1: the port is not a number from 1 to 65535",
        ),
        (
            refused(Config::builder(["unix://"])),
            "master 1 of 1: the path of the socket is missing: write unix:///run/redis.sock",
        ),
        (
            refused(Config::builder(["redis://a?secret=1"])),
            "master 1 of 1: the parameter `secret` is not known here: all URLs take password-file, replicas and failover, \
             unix:// also db, user and pass, those over TLS also cacert, cert, key and sni, redis+sentinel:// also \
             sentinel-user and sentinel-pass, and redis+cluster:// also tag",
        ),
        (
            refused(Config::builder(["rediss://a#insecure"])),
            "master 1 of 1: the server's certificate is always verified: give a private issuer's certificate with cacert=; \
             if that certificate is for another name than the host, give the name with sni=",
        ),
        (
            refused(Config::builder(["redis://a?cacert=/ca.pem"])),
            "master 1 of 1: cacert, cert, key and sni are for TLS: write rediss:// or valkeys://, or rediss+sentinel:// or \
             rediss+cluster://",
        ),
        (
            refused(Config::builder(["redis://a?replicas=17"]).restart_guard(ms(10_000))),
            "master 1 of 1: replicas= is the number of all replicas of the master, 0 to 16",
        ),
        (
            refused(Config::builder(["redis://a?replicas=0"])),
            "replicas= of a:6379 needs the restart guard: set restart_guard (--restart-guard) to the longest TTL of all clients",
        ),
        (
            refused(Config::builder(["redis+sentinel://a,b/m"]).restart_guard(ms(10_000))),
            "a failover of m@a:26379,b:26379 would lose locks, and nothing prevents two holders: set a restart guard and \
             replicas=K, the number of all its replicas, 0 if it has none; or write failover=durable if the service loses no \
             write that it has acknowledged; or write failover=may-lose-locks if no harm is done when two clients now and then \
             hold one lock",
        ),
        (
            refused(Config::builder(["unix:///s?db=1&db=2"])),
            "master 1 of 1: `db` is given more than once; give it once",
        ),
        (
            refused(settings(1).ttl(ms(0))),
            "the TTL is zero; masters count whole milliseconds, so use 1 ms or more",
        ),
        (refused(settings(1).ttl(days(500))), "the TTL of 500 d is longer than the longest possible, 366 d"),
        (
            refused(settings(1).ttl(ms(52))),
            "a TTL of 52 ms leaves no validity; it must be more than 52 ms \
             (TTL × 0.01 + 2 ms for drift, and one request timeout)",
        ),
        (
            refused(settings(1).ttl(ms(20_000)).restart_guard(ms(10_000))),
            "the TTL of 20 s is longer than the restart guard's longest TTL, 10 s; use a shorter TTL, or set a longer \
             restart_guard in all clients",
        ),
        (
            refused(settings(1).ttl(ms(10_050)).restart_guard(ms(10_000))),
            "the TTL is longer than the restart guard's longest TTL, 10 s; use a shorter TTL, or set a longer \
             restart_guard in all clients",
        ),
        (refused(settings(1).connect_timeout(ms(0))), "connect_timeout is zero; use 1 ms or more"),
        (
            refused(settings(1).request_timeout(days(500))),
            "request_timeout of 500 d is longer than the longest possible, 366 d",
        ),
        (
            refused(settings(1).retry_delay(RangeInclusive::new(ms(2), ms(1)))),
            "retry_delay has its lower bound above its upper one; swap them",
        ),
        (refused(settings(1).max_locks(0)), "max_locks is zero; use 1 or more"),
        (
            refused(settings(1).client_name("two words")),
            "the client name must be printable ASCII without spaces, as CLIENT SETNAME requires",
        ),
    ] {
        assert_eq!(message, text);
    }
}

#[test]
fn no_fencing_numbers_where_a_failover_may_lose_them() {
    let mut world = World::cold(Config::builder(["redis+sentinel://a/m?failover=may-lose-locks"]));
    let fenced = quorlock_core::Acquire { fenced: true, ..one_try() };
    let now = world.now;
    assert_eq!(
        world.nodes[0].machine.acquire(&fenced, now).unwrap_err().to_string(),
        "no fencing tokens with failover=may-lose-locks: a failover of m@a:26379 loses their counters, which \
         would start again; use a restart guard and replicas=K"
    );
}

#[test]
fn a_ttl_beyond_all_numbers_is_refused_like_one_that_is_too_long() {
    let error = Ttl::new(std::time::Duration::MAX).unwrap_err().to_string();
    assert!(error.contains("is longer than the longest"), "{error}");
}

#[test]
fn each_impossible_request_has_its_own_message() {
    let mut world = World::ready(settings(3).max_locks(1));
    let lock = world.hold(&wanted(ms(10_000)));
    let now = world.now;
    let error = world.nodes[0].machine.acquire(&one_try(), now).unwrap_err();
    assert_eq!(error.to_string(), "the limit of 1 locks is reached; release some, or raise max_locks");
    world.each(|master| master.flow = Flow::Stopped);
    let ttl = Ttl::new(ms(10_000)).unwrap();
    let error = (0..100).find_map(|_| world.nodes[0].machine.extend(lock, ttl, now).err()).unwrap();
    assert_eq!(error, ExtendError::TooManyExtensions);
    assert_eq!(error.to_string(), "not extended: too many extensions of this lock are under way");
    world.cancel(lock);
    let error = world.nodes[0].machine.extend(lock, ttl, now).unwrap_err();
    assert_eq!(error.to_string(), "not extended: the lock was released");
}

#[test]
fn an_acquisition_that_is_too_late_says_what_the_masters_said() {
    let mut world = World::of(3);
    let lock = world.acquire(&quorlock_core::Acquire { attempts: Some(1), ..wanted(ms(200)) });
    assert!(matches!(world.events_now()[..], [Event::Granted { .. }]));
    world.suspend(ms(195));
    assert_eq!(world.take(lock), None);
    let error = world.refusal();
    assert!(matches!(error, AcquireError::TooLate(_)), "{error}");
    let text = error.to_string();
    assert!(
        text.starts_with("invoice:42 not acquired: the votes came after its validity had run out: "),
        "{text}"
    );
    assert_eq!(error.ballot().unwrap().resource(), &Resource::new("invoice:42").unwrap());
}

#[test]
fn an_extension_without_a_quorum_says_what_the_masters_said() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    world.masters[0].flow = Flow::Stopped;
    world.masters[1].fails("EXTEND", "READONLY You can't write against a read only replica.");
    world.extend(lock, ms(20_000));
    let event = world.next_event();
    let Event::Extended { result: Err(error @ ExtendError::NoQuorum(_)), .. } = event else {
        panic!("{event:?}")
    };
    let text = error.to_string();
    assert!(text.starts_with("invoice:42 not extended: 1 of 3 votes, 2 needed (a:6379 "), "{text}");
    assert!(text.ends_with("c:6379 granted)"), "{text}");
}

#[test]
fn each_loss_cause_and_wire_fault_has_its_own_message() {
    for (message, text) in [
        (LossCause::NotHeld.to_string(), "a quorum of masters no longer holds the lock"),
        (LossCause::Released.to_string(), "the lock was released"),
        (WireFault::Streamed.to_string(), "a value of unknown length"),
        (WireFault::Attribute.to_string(), "an attribute that was not asked for"),
        (WireFault::Terminator.to_string(), "a string or null without CR LF where it should end"),
        (WireFault::TooLong.to_string(), "a reply of more than 64 KiB"),
        (WireFault::TooManyElements.to_string(), "a reply of more than 512 elements"),
        (WireFault::TooDeep.to_string(), "a reply nested more than four deep"),
        (WireFault::Refused.to_string(), "a value that does not fit its type"),
    ] {
        assert_eq!(message, text);
    }
}

#[test]
fn errors_of_sockets_are_distinguished_by_the_side_that_ended_them() {
    for kind in [
        io::ErrorKind::ConnectionReset,
        io::ErrorKind::ConnectionAborted,
        io::ErrorKind::BrokenPipe,
        io::ErrorKind::UnexpectedEof,
        io::ErrorKind::WriteZero,
    ] {
        assert_eq!(Cause::from(&io::Error::from(kind)), Cause::Closed);
    }
    let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    assert_eq!(Cause::from(&refused), Cause::Connect(IoFault::new(io::ErrorKind::ConnectionRefused)));
}

#[test]
fn a_missing_socket_and_a_replica_are_named() {
    let mut world = World::cold(Config::builder(["unix:///run/no.sock", "redis://b", "redis://c"]));
    world.masters[1].server.set_replica(true);
    world.pump();
    let generation = world.generation(0);
    let (id, now) = (world.id(0), world.now);
    let missing = Cause::Connect(IoFault::new(io::ErrorKind::NotFound));
    world.nodes[0].machine.closed(id, generation, missing, now);
    let state = world.nodes[0].machine.masters().next().unwrap().1;
    assert_eq!(state, MasterState::Down(missing));
    world.acquire(&one_try());
    let text = world.refusal().to_string();
    assert!(text.contains("no such socket, b:6379 is a replica, and only masters vote, "), "{text}");
}

#[test]
fn a_machine_shows_neither_tokens_nor_passwords_nor_names() {
    let mut world = World::cold(Config::builder(["redis://user:secret@a", "redis://b", "redis://c"]));
    world.masters[0].server.add_user("user", "secret");
    world.pump();
    let lock = world.hold(&wanted(ms(10_000)));
    world.masters[1].flow = Flow::Stopped;
    world.extend(lock, ms(20_000));
    let (token, shown) = (world.expose(lock), format!("{:?}", world.nodes[0].machine));
    assert!(shown.contains("in_flight: 1") && shown.contains("held: 1"), "{shown}");
    for secret in ["secret", super::world::KEY, &token, &token[..8]] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
