//! Properties of servers and their answers: restarts, accounts, databases, roles, errors.

use std::thread::sleep;
use std::time::Duration;

use quorlock_core::Warning;

use crate::kit::*;

pub(crate) fn restarted_masters_vote_again(transport: &Transport) {
    let masters = masters(3);
    let locker = open_hasty(transport, &masters);
    locker.lock("job").wait().unwrap().release().wait().unwrap();
    for master in &*masters {
        master.restart();
    }

    let guard = locker.lock("job").timeout(SOON).wait().unwrap();

    assert!(guard.is_valid());
    all_ready(&locker);
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    held_on(&masters, &locker.lock("job").wait().unwrap(), 3);
}

pub(crate) fn scripts_that_were_flushed_are_sent_again(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    let flush = || assert!(masters.iter().all(|master| master.command(&["SCRIPT", "FLUSH"]).is_ok()));
    for _ in 0..3 {
        let guard = locker.lock("job").wait().unwrap();
        held_on(&masters, &guard, 3);
        flush();
        assert!(guard.extend(2 * TTL).wait().unwrap() > TTL);
        flush();
        assert_eq!(guard.release().wait(), Ok(Released::Freed));
        no_key(&masters, "job");

        occupy(&masters, "held");
        flush();
        let error = locker.try_lock("held").wait().unwrap_err();
        assert!(error.to_string().contains("held by another for "), "{error}");
        assert!(masters.iter().all(|master| master.del("held")));
    }
    let guard = locker.lock("dropped").wait().unwrap();
    held_on(&masters, &guard, 3);
    flush();
    drop(guard);
    no_key(&masters, "dropped");
}

pub(crate) fn passwords_are_accepted_and_wrong_ones_are_configuration_errors(transport: &Transport) {
    let masters = Fleet::start(3, |options, _| options.password("p@ss:/w%rd"));
    let locker = open(transport, &masters);
    let guard = locker.lock("job").wait().unwrap();
    assert_eq!(guard.release().wait(), Ok(Released::Freed));

    let addresses = masters.iter().map(RedisServer::address);
    for (login, cause) in [("", ServerError::NoAuth), (":wrong@", ServerError::WrongPass)] {
        let urls = addresses.clone().map(|address| url_of(format_args!("{login}{address}")));
        let locker = transport.open(patient(urls).build().unwrap());
        let error = locker.lock("job").wait().unwrap_err();
        assert!(matches!(error, AcquireError::Misconfigured(_)), "{error}");
        let votes = error.ballot().unwrap().votes();
        assert!(
            votes.filter(|(_, vote)| *vote == Vote::Failed(Cause::Server(cause))).count() >= 2,
            "{error}"
        );
        // There must be no storm of logins in this time.
        sleep(millis(500));
        assert!(masters[0].calls(Calls::Hello) < 20);
        assert!(!format!("{error} {error:?} {locker:?}").contains("wrong@"));
    }
}

pub(crate) fn one_wrong_password_of_three_costs_nothing(transport: &Transport) {
    let masters = Fleet::start(3, |options, place| if place == 1 { options.password("s") } else { options });
    let urls = masters.iter().map(|master| url_of(master.address()));
    let locker = transport.open(patient(urls).build().unwrap());

    let guard = locker.lock("job").wait().unwrap();

    assert!(guard.is_valid());
    eventually(SOON, "the state tells why", || {
        locker.masters()[1].1 == MasterState::Down(Cause::Server(ServerError::NoAuth))
    });
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
}

pub(crate) fn the_database_of_the_url_is_used(transport: &Transport) {
    let masters = masters(3);
    let locker = transport.open(patient(masters.iter().map(|m| m.url_of_database(5))).build().unwrap());

    let guard = locker.lock("job").wait().unwrap();

    assert_eq!(masters.holding("job"), 0);
    let mut client = masters[0].client().unwrap();
    client.command(&["SELECT", "5"]);
    eventually(SOON, "the key is in the fifth database", || {
        client.command(&["GET", "job"]).text() == Some(guard.token().expose().as_str())
    });
    guard.release().wait().unwrap();
    // A quorum has confirmed the release, perhaps without this master.
    eventually(SOON, "the key is gone", || client.command(&["GET", "job"]).is_nil());

    let beyond = masters.iter().map(|master| master.url_of_database(99));
    let error = transport.open(patient(beyond).build().unwrap()).lock("job").wait().unwrap_err();
    assert!(matches!(error, AcquireError::Misconfigured(_)), "{error}");
    assert!(error.to_string().contains("has no database of this number"), "{error}");
}

pub(crate) fn unix_sockets_lead_to_masters(transport: &Transport) {
    let masters = Fleet::start(3, |options, _| options.unix_socket());
    let urls: Vec<_> = masters.iter().map(RedisServer::unix_url).collect();
    let locker = transport.open(patient(&urls).build().unwrap());

    let guard = locker.lock("job").wait().unwrap();
    held_on(&masters, &guard, 3);
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    no_key(&masters, "job");

    drop(locker);
    let urls = urls.iter().map(|url| format!("{url}.nowhere"));
    let error = transport.open(patient(urls).build().unwrap()).try_lock("job").wait().unwrap_err();
    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    assert!(error.to_string().contains("no such socket"), "{error}");
}

pub(crate) fn ipv6_and_names_lead_to_masters(transport: &Transport) {
    let named = masters(1);
    let locker =
        transport.open(patient([url_of(format_args!("localhost:{}", named[0].port()))]).build().unwrap());
    held_on(&named, &locker.lock("job").wait().unwrap(), 1);

    if std::net::TcpListener::bind("[::1]:0").is_err() {
        eprintln!("there is no IPv6 on this machine's loopback");
        return;
    }
    let six = ServerOptions::new().ipv6().start_any();
    let locker = transport.open(patient([url_of(format_args!("[::1]:{}", six.port()))]).build().unwrap());
    let guard = locker.lock("job").wait().unwrap();
    assert_eq!(six.get("job"), Some(guard.token().expose()));
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
}

pub(crate) fn an_unknown_host_is_named(transport: &Transport) {
    let url = "redis://no-such-host.invalid:6379";
    let error = transport.open(hasty([url]).build().unwrap()).try_lock("job").wait().unwrap_err();
    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    assert!(error.to_string().contains("no-such-host.invalid:6379 "), "{error}");
}

pub(crate) fn a_replica_has_no_vote(transport: &Transport) {
    let primary = master();
    let replica = ServerOptions::new().replica_of(&primary).start_any();
    let locker = open(transport, std::slice::from_ref(&replica));

    let error = locker.try_lock("job").wait().unwrap_err();

    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    assert!(error.to_string().contains("is a replica, and only masters vote"), "{error}");
    assert!(!primary.exists("job"));
}

pub(crate) fn a_guarded_master_with_a_replica_is_warned_of(transport: &Transport) {
    let (primary, replica) = (master(), master());
    let warnings = |guard: Option<Duration>| {
        let mut config = patient([primary.url()]);
        if let Some(longest) = guard {
            config = config.restart_guard(longest);
        }
        let locker = transport.open(config.build().unwrap());
        let mut warned = None;
        eventually(SOON, "it votes", || {
            let MasterState::Ready { warnings } = locker.masters().remove(0).1 else { return false };
            warned = Some(warnings);
            true
        });
        warned.unwrap()
    };
    let guard = Some(Duration::from_secs(60));
    assert_eq!(warnings(guard), []);

    replica.become_replica_of(&primary);
    eventually(SOON, "the replica is attached", || primary.replicas() == 1);

    assert_eq!(warnings(guard), [Warning::UndeclaredReplicas]);
    // The marker is that of the client before.
    assert_eq!(warnings(None), [Warning::NoRestartGuard]);
}

pub(crate) fn a_master_that_becomes_a_replica_loses_its_vote(transport: &Transport) {
    let masters = masters(1);
    let other = master();
    let locker = open(transport, &masters);
    locker.lock("job").wait().unwrap().release().wait().unwrap();

    masters[0].become_replica_of(&other);

    let error = locker.try_lock("job").wait().unwrap_err();
    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    assert!(error.to_string().contains("is a replica"), "{error}");
    masters[0].become_master();
    eventually(SOON, "it votes again", || locker.try_lock("job").wait().is_ok());
}

pub(crate) fn one_server_behind_two_addresses_is_refused_by_both_names(transport: &Transport) {
    let server = master();
    let proxy = FaultProxy::start(server.address());
    let locker = transport.open(patient([server.url(), proxy.url()]).build().unwrap());

    let error = locker.lock("job").wait().unwrap_err();

    assert!(matches!(error, AcquireError::Misconfigured(_)), "{error}");
    let (one, other) = (server.address(), proxy.address());
    let text = error.to_string();
    let named = text.contains(&format!("{one} is the same server as {other}"))
        || text.contains(&format!("{other} is the same server as {one}"));
    assert!(named, "{text}");
    no_key(std::slice::from_ref(&server), "job");
}

pub(crate) fn a_key_of_a_foreign_type_is_not_called_a_lock(transport: &Transport) {
    let masters = masters(3);
    let locker = open(transport, &masters);
    for master in &*masters {
        master.command(&["RPUSH", "job", "x"]);
    }

    let error = locker.try_lock("job").wait().unwrap_err();

    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    assert!(error.to_string().contains("the key holds something that is not a lock (WRONGTYPE)"), "{error}");
    assert!(masters.iter().all(|master| master.exists("job")));
}

pub(crate) fn a_master_without_memory_has_no_vote_and_still_releases(transport: &Transport) {
    let masters = masters(1);
    let locker = open(transport, &masters);
    let guard = locker.lock("held").wait().unwrap();
    masters[0].command(&["CONFIG", "SET", "maxmemory", "1"]);

    let error = locker.try_lock("job").wait().unwrap_err();

    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    assert!(error.to_string().contains("out of memory (OOM)"), "{error}");
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    no_key(&masters, "held");
}

pub(crate) fn a_master_that_needs_replicas_has_no_vote(transport: &Transport) {
    let masters = masters(1);
    masters[0].need_replicas();
    let error = open(transport, &masters).try_lock("job").wait().unwrap_err();
    assert!(matches!(error, AcquireError::NoQuorum(_)), "{error}");
    assert!(error.to_string().contains("too few replicas (NOREPLICAS)"), "{error}");
}

pub(crate) fn a_master_kept_busy_by_a_script_has_no_vote(transport: &Transport) {
    let masters = masters(1);
    let locker = open(transport, &masters);
    all_ready(&locker);
    masters[0].be_busy();
    eventually(SOON, "it is busy", || masters[0].command(&["GET", "job"]).error().is_some());

    let error = locker.try_lock("job").wait().unwrap_err();

    assert!(error.to_string().contains("is kept busy by a script (BUSY)"), "{error}");
    masters[0].kill();
}

/// The smallest ACL rule under which everything works without a warning, on Redis 7.0.
///
/// HELLO, which logs in and names the connection, needs no permission. INFO is needed to refuse
/// replicas, and one server behind two addresses; SELECT, for URLs with a database; EVAL, for
/// servers that have forgotten their scripts.
const SMALLEST_ACL_RULE: &str =
    "~job* +set +get +del +pttl +pexpire +evalsha +eval +script|load +info +select";

/// The same with fenced locks and the restart guard.
const SMALLEST_ACL_RULE_OF_GUARDED: &str = "~job* ~quorlock:fence* ~quorlock:restart-guard \
     +set +get +del +pttl +pexpire +time +evalsha +eval +script|load +info +select";

pub(crate) fn the_smallest_acl_rule_is_enough_and_nothing_in_it_is_too_much(transport: &Transport) {
    smallest_acl_rule(transport, SMALLEST_ACL_RULE, false);
}

pub(crate) fn the_smallest_acl_rule_of_fenced_and_guarded_locks_is_enough_and_nothing_in_it_is_too_much(
    transport: &Transport,
) {
    smallest_acl_rule(transport, SMALLEST_ACL_RULE_OF_GUARDED, true);
}

fn smallest_acl_rule(transport: &Transport, rule: &str, guarded: bool) {
    let words: Vec<_> = rule.split(' ').collect();
    let without = |missing: Option<usize>| -> String {
        let kept = words.iter().enumerate().filter(|(place, _)| Some(*place) != missing);
        kept.map(|(_, word)| format!(" {word}")).collect()
    };
    let server = ServerOptions::new()
        .acl_user(&format!("all on >secret{}", without(None)))
        .config(
            &(0..words.len())
                .map(|n| format!("user u{n} on >secret{}\n", without(Some(n))))
                .collect::<String>(),
        )
        .start();

    assert_eq!(everything_works(transport, &server, "all", guarded), Ok(()));
    for (place, word) in words.iter().enumerate() {
        let outcome = everything_works(transport, &server, &format!("u{place}"), guarded);
        assert!(outcome.is_err(), "{word} is not needed");
    }
}

/// Whether this user may do everything without a warning.
fn everything_works(
    transport: &Transport,
    server: &RedisServer,
    user: &str,
    guarded: bool,
) -> Result<(), String> {
    server.command(&["FLUSHALL"]);
    server.command(&["SCRIPT", "FLUSH"]);
    let url = url_of(format_args!("{user}:secret@{}/1", server.address()));
    let config = patient([url]).client_name("quorlock").request_timeout(Duration::from_secs(2));
    let config = if guarded { config.restart_guard(4 * TTL) } else { config };
    let locker = transport.open(config.build().map_err(|error| error.to_string())?);
    if guarded {
        locker.bootstrap().wait().map_err(|error| error.to_string())?;
    }
    let lock = || {
        let request = locker.try_lock("job");
        let request = if guarded { request.fenced().heal() } else { request };
        request.wait().map_err(|error| error.to_string())
    };
    let guard = lock()?;
    guard.extend(2 * TTL).wait().map_err(|error| error.to_string())?;
    let held = lock().unwrap_err();
    guard.release().wait().map_err(|error| error.to_string())?;
    let guard = lock()?;
    server.command(&["SCRIPT", "FLUSH"]);
    guard.release().wait().map_err(|error| error.to_string())?;
    let state = locker.masters().remove(0).1;
    let fine = held.contains("held by another for") && state == MasterState::Ready { warnings: vec![] };
    if fine { Ok(()) } else { Err(format!("{held} {state:?}")) }
}

pub(crate) fn denied_info_and_script_load_are_warnings(transport: &Transport) {
    let rule = "few on >secret ~* +set +get +del +pttl +pexpire +evalsha +eval";
    let server = ServerOptions::new().acl_user(rule).start();
    let url = url_of(format_args!("few:secret@{}", server.address()));
    let locker = transport.open(patient([url]).client_name("quorlock").build().unwrap());

    let guard = locker.lock("job").wait().unwrap();

    assert!(guard.extend(2 * TTL).wait().unwrap() > TTL);
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    no_key(std::slice::from_ref(&server), "job");
    let state = locker.masters().remove(0).1;
    let MasterState::Ready { warnings } = state else { panic!("{state:?}") };
    for warning in [Warning::InfoDenied, Warning::ScriptLoadDenied] {
        assert!(warnings.contains(&warning), "{warning:?} is not in {warnings:?}");
    }
}

/// With and without the permission for COMMAND INFO, since they are looked for in different ways.
pub(crate) fn what_a_server_lacks_is_named_and_costs_only_what_needs_it(transport: &Transport) {
    let rule = "few on >secret ~* +@all -command";
    for (missing, for_fair_only) in [
        ("SET", false),
        ("GET", false),
        ("DEL", false),
        ("PTTL", false),
        ("PEXPIRE", false),
        ("EVAL", false),
        ("EVALSHA", false),
        ("ZADD", true),
    ] {
        let options = ServerOptions::new().acl_user(rule);
        let server = options.config(&format!("rename-command {missing} \"\"")).start();
        for login in ["", "few:secret@"] {
            let url = url_of(format_args!("{login}{}", server.address()));
            let locker = transport.open(patient([url]).build().unwrap());
            let alone = locker.try_lock("job").wait();
            assert_eq!(alone.is_ok(), for_fair_only, "{missing}: {alone:?}");
            let refused = match alone {
                Ok(guard) => {
                    assert_eq!(guard.release().wait(), Ok(Released::Freed), "{missing}");
                    let guard = locker.lock("job").fair().wait().unwrap();
                    assert_eq!(guard.release().wait(), Ok(Released::Freed), "{missing}");
                    let state = locker.masters().remove(0).1;
                    let MasterState::Ready { warnings } = state else { panic!("{state:?}") };
                    assert!(warnings.contains(&Warning::QueueDenied), "{warnings:?}");
                    continue;
                }
                Err(refused) => refused,
            };
            let text = refused.to_string();
            assert!(text.contains(&format!("does not know the command {missing}, ")), "{missing}: {text}");
        }
    }
}

pub(crate) fn a_server_without_hello_is_spoken_to_as_in_redis_5(transport: &Transport) {
    let masters = Fleet::start(3, |options, _| options.without_hello().password("secret"));
    let urls = masters.iter().map(|master| master.url_of_database(1));
    let locker = transport.open(patient(urls).client_name("quorlock").build().unwrap());
    all_ready(&locker);

    let guard = locker.lock("job").wait().unwrap();

    assert!(guard.extend(2 * TTL).wait().unwrap() > TTL);
    let error = locker.try_lock("job").wait().unwrap_err();
    assert!(error.to_string().contains("held by another for "), "{error}");
    assert_eq!(masters[0].client_names(), ["quorlock"]);
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    assert!(locker.lock("job").wait().is_ok());
}
