//! `quorlock doctor --replacing OLD=NEW`: whether a dead master may be replaced now.

use std::net::TcpListener;

use quorlock_core::Fleet as Guard;
use quorlock_tests::{Fleet, RedisServer, ServerOptions, eventually, masters};

use crate::running::{Ended, Running, SOON, call, quorlock};

const GUARD: [&str; 2] = ["--restart-guard", "1m"];

/// Runs the doctor over these masters, with these words.
#[track_caller]
fn doctor(masters: &[&RedisServer], old: &RedisServer, new: &RedisServer, words: &[&str]) -> Ended {
    let replacing = format!("{}={}", old.address(), new.address());
    let mut command = quorlock(&[&["doctor", "--replacing", &replacing], words].concat());
    let urls: Vec<_> = masters.iter().map(|master| master.url()).collect();
    Running::of(command.env("QUORLOCK_MASTERS", urls.join(","))).end()
}

/// Three masters that vote under the guard, and a spare one.
#[track_caller]
fn scene() -> (Fleet, RedisServer) {
    let masters = masters(3);
    assert_eq!(call(&masters, &[&["bootstrap"], &GUARD[..]].concat(), None).code, Some(0));
    (masters, quorlock_tests::master())
}

/// A client with this list asks for a lock.
#[track_caller]
fn run(masters: &[&RedisServer], words: &[&str]) {
    let mut command = quorlock(&[&["run", "-n"], &GUARD[..], words, &["job", "--", "true"]].concat());
    let urls: Vec<_> = masters.iter().map(|master| master.url()).collect();
    let ended = Running::of(command.env("QUORLOCK_MASTERS", urls.join(","))).end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

#[track_caller]
fn assert_told(told: &Ended, code: i32, parts: &[String]) {
    assert_eq!((told.code, told.err.as_str()), (Some(code), ""), "{}", told.out);
    for part in parts {
        assert!(told.out.contains(part), "{part}: {}", told.out);
    }
}

#[test]
fn a_successor_may_be_named_once_the_old_master_is_off_and_nothing_is_written_to_it() {
    let (masters, new) = scene();
    let [a, old, c] = [&masters[0], &masters[1], &masters[2]];
    let (old_name, new_name) = (old.address(), new.address());
    let told = doctor(&[a, old, c], old, &new, &[]);
    assert_told(
        &told,
        1,
        &[
            format!("{new_name} may not be named now in place of {old_name}\n"),
            format!("  - {old_name} is still on: stop it for good, then wait 60.0 s\n"),
        ],
    );
    old.kill();
    // The list of the clients may be the old one or the new one.
    for list in [[a, old, c], [a, &new, c]] {
        let told = doctor(&list, old, &new, &[]);
        assert_told(
            &told,
            0,
            &[
                format!(
                    "{new_name} may be named now in place of {old_name}, if what this rests on is true\n"
                ),
                format!("{old_name}  refuses connections from here (connection refused)\n"),
                format!(
                    "{new_name}  has no marker: its quarantine begins when the first client asks it, and lasts 60.0 s\n"
                ),
                format!(
                    "  - {old_name} has been off for 60.0 s, and nothing starts it again at its address\n"
                ),
            ],
        );
    }
    assert_eq!(new.command(&["DBSIZE"]).int(), Some(0));
}

#[test]
fn a_successor_that_clients_have_asked_may_have_been_asked_too_early() {
    let (masters, new) = scene();
    let [a, old, c] = [&masters[0], &masters[1], &masters[2]];
    old.kill();
    run(&[a, &new, c], &[]);
    eventually(SOON, "the successor was asked", || new.exists(Guard::MARKER));
    let (old_name, new_name) = (old.address(), new.address());
    let told = doctor(&[a, old, c], old, &new, &[]);
    assert_told(
        &told,
        1,
        &[
            format!("it is not known whether {new_name} may be named now in place of {old_name}\n"),
            format!("{new_name}  its quarantine began "),
            format!(
                "  - a client has asked {new_name} already: that is safe only if {old_name} has been off since before 20"
            ),
            format!("delete {} on {new_name} while {old_name} is off", Guard::MARKER),
        ],
    );
    let told = doctor(&[a, old, c], old, &new, &["--json"]);
    assert_told(&told, 1, &["\"safe\":null,\"against\":[],\"not_known\":[\"a client".to_owned()]);
    let left = told.out.split_once("\"wait_ms\":").unwrap().1.split_once(',').unwrap().0;
    assert!((1..60_000).contains(&left.parse::<u64>().unwrap()), "{}", told.out);

    assert!(new.del(Guard::MARKER));
    let told = doctor(&[a, old, c], old, &new, &["--json"]);
    let parts = [
        "\"safe\":true,\"against\":[],\"not_known\":[],\"rests_on\":[\"",
        "\"longest_ttl_ms\":60000,\"wait_ms\":60000,\"old\":{\"address\":\"",
        "\"off\":true,\"said\":\"refuses",
        "\"quarantine_began\":null}}\n",
    ];
    assert_told(&told, 0, &parts.map(str::to_owned));
}

#[test]
fn a_successor_that_was_bootstrapped_may_not_be_named() {
    let (masters, _) = scene();
    let new = ServerOptions::new().append_only().start_any();
    let [a, old, c] = [&masters[0], &masters[1], &masters[2]];
    old.kill();
    let other = quorlock_tests::masters(2);
    let mut bootstrap = quorlock(&[&["bootstrap"], &GUARD[..]].concat());
    let urls = [new.url(), other[0].url(), other[1].url()].join(",");
    assert_eq!(Running::of(bootstrap.env("QUORLOCK_MASTERS", urls)).end().code, Some(0));
    let told = doctor(&[a, old, c], old, &new, &[]);
    let part = format!("  - {} votes since a bootstrap, which is no part of a replacement: ", new.address());
    assert_told(&told, 1, &[part]);
    // After a restart the marker does not count, and a quarantine will begin when clients name it.
    new.restart();
    let told = doctor(&[a, old, c], old, &new, &[]);
    assert_told(&told, 0, &[format!("{}  has a marker from before its restart: ", new.address())]);
}

#[test]
fn an_old_master_that_hangs_is_not_known_to_be_off() {
    let (masters, new) = scene();
    let [a, old, c] = [&masters[0], &masters[1], &masters[2]];
    old.stop();
    let told = doctor(&[a, old, c], old, &new, &[]);
    let part = format!("  - {} may only be hung or cut off from here: ", old.address());
    assert_told(&told, 1, &["it is not known whether ".to_owned(), part]);
    old.cont();
}

#[test]
fn other_guards_and_masters_without_a_guard_speak_against_it() {
    let (masters, new) = (masters(3), quorlock_tests::master());
    let [a, old, c] = [&masters[0], &masters[1], &masters[2]];
    old.kill();
    let told = doctor(&[a, old, c], old, &new, &[]);
    assert_told(&told, 1, &["  - no restart guard is known: give the --restart-guard".to_owned()]);
    let (others, _) = scene();
    let told = doctor(&[&others[0], old, &others[1]], old, &new, &["--restart-guard", "2m"]);
    assert_told(&told, 1, &["  - its clients use another guard: ".to_owned()]);
    let told = doctor(&[&others[0], old], old, &new, &GUARD);
    assert_told(&told, 1, &[" has clients with 3 masters: give all clients the same number".to_owned()]);
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_replica_and_a_server_of_another_place_in_the_list_are_no_successors() {
    let (masters, _) = scene();
    let [a, old, c] = [&masters[0], &masters[1], &masters[2]];
    let primary = ServerOptions::new().start();
    let replica = ServerOptions::new().replica_of(&primary).start();
    eventually(SOON, "the replica is attached", || primary.replicas() == 1);
    old.kill();
    let told = doctor(&[a, old, c], old, &replica, &[]);
    assert_told(&told, 1, &["  - the new master has no vote (is a replica".to_owned()]);
    // The same server by another name.
    let replacing = format!("{}=localhost:{}", old.address(), c.port());
    let told = call(&masters, &["doctor", "--replacing", &replacing], None);
    let part = format!("  - the new master has no vote (is the same server as {})\n", c.address());
    assert_told(&told, 1, &[part]);
}

#[test]
fn a_successor_without_a_url_gets_the_other_settings_of_the_old_master() {
    let masters = Fleet::start(3, |options, _| options.password("hunter2"));
    let new = ServerOptions::new().password("hunter2").start_any();
    assert_eq!(call(&masters, &[&["bootstrap"], &GUARD[..]].concat(), None).code, Some(0));
    let [a, old, c] = [&masters[0], &masters[1], &masters[2]];
    old.kill();
    let told = doctor(&[a, old, c], old, &new, &[]);
    assert_told(&told, 0, &[]);
    assert!(!told.out.contains("hunter2"), "{}", told.out);
    // With a URL of its own it has no password.
    let replacing = format!("{}=redis://{}", old.address(), new.address());
    let told = call(&masters, &["doctor", "--replacing", &replacing], None);
    assert_eq!(told.code, Some(1), "{}", told.out);
    assert!(told.out.contains("the new master has no vote (needs a password"), "{}", told.out);
}

#[test]
fn the_replicas_of_an_old_master_must_be_off_too() {
    let (masters, new) = scene();
    let [a, old, c] = [&masters[0], &masters[1], &masters[2]];
    old.kill();
    let join = if old.url().contains('?') { '&' } else { '?' };
    let list = [a.url(), format!("{}{join}replicas=1", old.url()), c.url()].join(",");
    let replacing = format!("{}={}", old.address(), new.address());
    let mut command = quorlock(&["doctor", "--replacing", &replacing, "--restart-guard", "1m"]);
    let told = Running::of(command.env("QUORLOCK_MASTERS", list)).end();
    let part = format!("  - the same holds for all replicas of {}: its whole group is off", old.address());
    assert_told(&told, 0, &[part]);
    assert!(!doctor(&[a, old, c], old, &new, &[]).out.contains("replicas of"));
}

#[test]
fn invalid_replacements_exit_with_64_and_say_what_to_do() {
    // Nothing is asked, so nothing listens here.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listed = format!("redis://127.0.0.1:{free}");
    for (replacing, says) in [
        ("127.0.0.1:1", "--replacing needs OLD=NEW"),
        ("=127.0.0.1:1", "--replacing needs OLD=NEW"),
        ("hunter2@a:x=b:1", "OLD of --replacing: the port is not a number"),
        ("a:1=http://hunter2", "NEW of --replacing: "),
        ("a:1=a:1", "are the same address"),
        ("a:1=b:1", "Neither OLD nor NEW of --replacing is one of the masters"),
        ("LISTED=redis+cluster://b:1?tag=q0", "A tag of a cluster cannot be replaced"),
    ] {
        let replacing = replacing.replace("LISTED", &format!("127.0.0.1:{free}"));
        let mut command = quorlock(&["doctor", "--restart-guard", "1m", "--replacing", &replacing]);
        let refused = Running::of(command.env("QUORLOCK_MASTERS", &listed)).end();
        assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""), "{replacing}: {}", refused.err);
        assert!(refused.err.contains(says) && !refused.err.contains("hunter2"), "{}", refused.err);
    }
    let both = format!("127.0.0.1:{free}=127.0.0.1:1");
    let mut command = quorlock(&["doctor", "--replacing", &both, &listed, "redis://127.0.0.1:1"]);
    let refused = Running::of(&mut command).end();
    assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""), "{}", refused.err);
    assert!(refused.err.contains("contain both OLD and NEW"), "{}", refused.err);
}
