//! `--restart-guard` and `quorlock bootstrap`: masters that lost their data do not vote.

use std::time::Duration;

use quorlock_tests::{FakeMaster, Fleet, RedisServer, ServerOptions, eventually, master, masters};

use crate::running::{Ended, JOB, Running, SHOW, SOON, acquire, call, exported, quorlock, run, start_over};

const GUARD: [&str; 2] = ["--restart-guard", "1m"];
/// The key of the restart guard's marker.
const MARKER: &str = quorlock_core::Fleet::MARKER;
const BOOTSTRAP: [&str; 3] = ["bootstrap", "--restart-guard", "1m"];

/// Three masters that vote.
#[track_caller]
fn voting() -> Fleet {
    let masters = masters(3);
    let told = call(&masters, &BOOTSTRAP, None);
    assert_eq!((told.code, told.out.as_str()), (Some(0), ""), "{}", told.err);
    assert!(told.err.ends_with(RESTS_ON), "{}", told.err);
    masters
}

/// What a bootstrap says when the masters did not vote before.
const RESTS_ON: &str = "quorlock: all masters vote now. That rests on you: no client has held a lock on them within the last 60.0 s\n";

fn quarantined(master: &RedisServer) -> String {
    format!("{} quarantined for ", master.address())
}

#[test]
fn new_masters_refuse_until_a_bootstrap() {
    let masters = masters(3);
    for words in [
        &["run", "-n", "--restart-guard", "1m", JOB, "echo", "runs"][..],
        &["acquire", "-n", "--restart-guard", "1m", JOB],
    ] {
        let refused = call(&masters, words, None);
        assert_eq!((refused.code, refused.out.as_str()), (Some(69), ""), "{}", refused.err);
        assert!(refused.err.contains(" quarantined for "), "{}", refused.err);
    }

    let told = call(&masters, &BOOTSTRAP, None);
    assert_eq!(told.code, Some(0));
    assert!(told.err.ends_with(RESTS_ON), "{}", told.err);
    let told = call(&masters, &[&BOOTSTRAP[..], &["-v"]].concat(), None);
    assert_eq!((told.code, told.err.as_str()), (Some(0), "quorlock: all masters vote\n"));

    let ended = run(&masters, &[&GUARD[..], &["-n"]].concat(), &SHOW);
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(0), "runs\n", ""));
    acquire(&masters, &GUARD);
}

#[test]
fn a_master_that_comes_back_empty_does_not_vote_and_is_named() {
    let masters = voting();
    let options = [&GUARD[..], &["-n"]].concat();
    masters[1].restart();
    let ended = run(&masters, &options, &SHOW);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "runs\n"), "{}", ended.err);

    masters[2].restart();
    let refused = run(&masters, &options, &SHOW);
    assert_eq!((refused.code, refused.out.as_str()), (Some(69), ""), "{}", refused.err);
    for master in &masters[1..] {
        assert!(refused.err.contains(&quarantined(master)), "{}", refused.err);
    }
    // Without the guard no client notices.
    assert_eq!(run(&masters, &["-n"], &SHOW).code, Some(0));
}

#[test]
fn a_bootstrap_exits_with_1_and_changes_nothing_if_some_masters_vote_already() {
    let masters = voting();
    masters[0].restart();
    for _ in 0..2 {
        let refused = call(&masters, &BOOTSTRAP, None);
        assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{}", refused.err);
        for master in &masters[1..] {
            assert!(refused.err.contains(&master.address().to_string()), "{}", refused.err);
        }
    }
    masters[1].restart();
    let refused = run(&masters, &[&GUARD[..], &["-n"]].concat(), &SHOW);
    assert_eq!(refused.code, Some(69), "{}", refused.err);
    assert!(refused.err.contains(&quarantined(&masters[0])), "{}", refused.err);
}

#[test]
fn replicas_are_reported_by_bootstrap_and_status() {
    let (masters, replica) = (masters(3), master());
    replica.become_replica_of(&masters[1]);
    eventually(SOON, "the replica is attached", || masters[1].replicas() == 1);
    let quiet = call(&masters, &["status", JOB], None);
    // Without the guard nothing is promised about a promotion.
    assert!(!quiet.out.contains("promotion"), "{}", quiet.out);

    let says = format!(
        "{} has replicas that its URL does not declare, so the restart guard does not cover their promotion: add replicas=",
        masters[1].address()
    );
    let told = call(&masters, &BOOTSTRAP, None);
    assert_eq!(told.code, Some(0));
    assert!(told.err.starts_with(&format!("quorlock: {says}\n")), "{}", told.err);

    let told = call(&masters, &["status", JOB], None);
    let lines: Vec<_> = told.out.lines().filter(|line| line.contains("promotion")).collect();
    assert_eq!(lines.len(), 1, "{}", told.out);
    let says = "has a replica that its URL does not declare, so the restart guard does not cover its promotion: add replicas=";
    assert!(lines[0].contains(&masters[1].address().to_string()) && lines[0].contains(says), "{}", told.out);
    let json = call(&masters, &["status", "--json", JOB], None);
    assert_eq!(json.out.matches("\"replicas\":1,\"warning\":\"has a replica").count(), 1, "{}", json.out);
    assert_eq!(json.out.matches("\"replicas\":0,\"warning\":null").count(), 2, "{}", json.out);
}

#[test]
fn a_bootstrap_needs_all_masters() {
    let masters = masters(3);
    masters[2].kill();
    let refused = call(&masters, &[&BOOTSTRAP[..], &["--json"]].concat(), None);
    assert_eq!((refused.code, refused.out.as_str()), (Some(69), ""), "{}", refused.err);
    assert!(refused.err.starts_with("{\"event\":\"no_quorum\",\"level\":\"error\","), "{}", refused.err);
    assert!(refused.err.contains(&format!("{} connection refused", masters[2].address())), "{}", refused.err);
    masters[2].restart();
    assert_eq!(call(&masters, &BOOTSTRAP, None).code, Some(0));
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_bootstrap_of_masters_that_have_been_used_changes_nothing() {
    let masters = Fleet::start(2, |options, _| options.config("maxmemory 0"));
    for (key, said) in [
        ("quorlock:fence/{job}", "a fencing counter"),
        // Of another prefix, and with a tag of its own.
        ("quorlock:fence:{app:user}:mail", "a fencing counter"),
        ("quorlock:seat:2/{gpu}", "a permit"),
        ("quorlock:queue/{job}", "a queue"),
    ] {
        masters[1].set_nx(key, "1");
        // Keys of others are beside it.
        assert!(masters[0].set_nx("job", "of another client"));
        let refused = call(&masters, &[&BOOTSTRAP[..], &["--json"]].concat(), None);
        assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{}", refused.err);
        assert!(refused.err.starts_with("{\"event\":\"in_use\",\"level\":\"error\","), "{}", refused.err);
        let named = format!("{} has {said} ({key})", masters[1].address());
        assert!(refused.err.contains(&named), "{}", refused.err);
        assert_eq!(masters.holding(MARKER), 0, "a quarantine has begun");
        assert!(masters[1].del(key) && masters[0].del("job"));
    }
    assert_eq!(call(&masters, &BOOTSTRAP, None).code, Some(0));
    // Masters that vote are in use, and another bootstrap changes nothing.
    assert!(masters[0].set_nx("quorlock:fence/{job}", "1"));
    let told = call(&masters, &BOOTSTRAP, None);
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""));
}

/// A master that waits for its replica to confirm a vote does not read the release behind it, and
/// never does once the process has ended.
#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_try_that_fails_while_a_vote_is_confirmed_leaves_no_key() {
    let (masters, replica) = (masters(3), master());
    replica.become_replica_of(&masters[2]);
    eventually(SOON, "the replica is attached", || masters[2].replicas() == 1);
    let confirming = format!("{}?replicas=1", masters[2].url());
    let call = |others: [String; 2], words: &[&str]| {
        let urls = [others.join(","), confirming.clone()].join(",");
        Running::of(quorlock(words).env("QUORLOCK_MASTERS", urls)).end()
    };
    let voting = || call([masters[0].url(), masters[1].url()], &BOOTSTRAP).code == Some(0);
    eventually(SOON, "all masters vote", voting);
    // The others fail once the third one has been asked.
    let failing = [(); 2].map(|()| FakeMaster::start(|_, _| std::thread::sleep(Duration::from_millis(150))));
    replica.stop();
    let words = [&["acquire", "-n", "--ttl", "1m"], &GUARD[..], &[JOB]].concat();
    let tried = call(failing.each_ref().map(FakeMaster::url), &words);
    assert_eq!(tried.code, Some(69), "{}", tried.err);
    eventually(Duration::from_secs(5), "no key is left", || !masters[2].exists(JOB));
    replica.cont();
}

#[test]
fn a_call_without_the_guard_that_others_use_is_warned() {
    let masters = voting();
    let warned = |told: &Ended| {
        let lines: Vec<_> = told.err.lines().filter(|line| line.contains("voids it for all")).collect();
        let is_named = |master: &&RedisServer| {
            let says =
                format!("quorlock: {} is used with the restart guard by other clients", master.address());
            lines.iter().any(|line| line.starts_with(&says))
        };
        // The third one may not be connected yet.
        let named = masters.iter().filter(is_named).count();
        assert!(told.code == Some(0) && (named >= 2 || lines.is_empty()), "{}", told.err);
        named > 0
    };
    let run = |options: &[&str]| call(&masters, &[&["run"], options, &[JOB, "--", "true"]].concat(), None);
    assert!(warned(&run(&[])));
    assert!(!warned(&run(&["-q"])));
    assert!(!warned(&run(&GUARD)));
    assert!(run(&["--json"]).err.contains("{\"event\":\"no_restart_guard\",\"level\":\"warning\","));
    let taken = call(&masters, &["acquire", "--ttl", "10s", JOB], None);
    assert!(warned(&taken));
    let token = exported(&taken.out, "QUORLOCK_TOKEN").unwrap();
    assert!(warned(&call(&masters, &["extend", "--ttl", "10s", JOB], Some(&token))));
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_bootstrap_says_which_masters_it_could_not_search() {
    let denying = ServerOptions::new().acl_user("app on >hunter2 ~* &* +@all -scan").start();
    let full = ServerOptions::new().start();
    let fill = "for key = 1, 450000 do redis.call('SET', key, '') end";
    full.command(&["EVAL", fill, "0"]);
    let denied = format!("redis://app:hunter2@{}", denying.address());
    let searched = full.url();
    let words = [&BOOTSTRAP[..], &["-m", &denied, "-m", &searched]].concat();
    let told = Running::of(&mut quorlock(&words)).end();
    assert_eq!((told.code, told.out.as_str()), (Some(0), ""), "{}", told.err);
    let unsearched = |master: &RedisServer, why: &str| {
        format!("{} was not fully searched for signs of earlier use ({why})\n", master.address())
    };
    for line in [
        unsearched(&denying, "SCAN: user lacks a permission (NOPERM)"),
        unsearched(&full, "it has too many keys"),
    ] {
        assert!(told.err.contains(&line), "{}", told.err);
    }
    assert!(told.err.ends_with(RESTS_ON), "{}", told.err);
}

#[test]
fn clients_with_different_guards_exit_with_64_and_both_are_named() {
    let masters = voting();
    let token = acquire(&masters, &[&GUARD[..], &["--ttl", "30s"]].concat());
    for words in [
        &["run", "-n", "--restart-guard", "2m", "other", "echo", "runs"][..],
        &["acquire", "-n", "--restart-guard", "2m", "other"],
        &["extend", "--restart-guard", "2m", JOB],
        &["bootstrap", "--restart-guard", "2m"],
    ] {
        let refused = call(&masters, words, Some(&token));
        assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""), "{words:?}: {}", refused.err);
        let both = [
            "3 masters and a longest TTL of 60 s",
            "3 masters and a longest TTL of 2 min",
            "use the same settings in all clients",
        ];
        assert!(both.iter().all(|part| refused.err.contains(part)), "{words:?}: {}", refused.err);
    }
}

#[test]
fn a_ttl_beyond_the_longest_exits_with_64_and_both_are_named() {
    let masters = voting();
    for words in [
        &["run", "-n", "--restart-guard", "1m", "--ttl", "61s", JOB, "echo", "runs"][..],
        &["acquire", "-n", "--restart-guard", "1m", "--ttl", "61s", JOB],
        &["extend", "--restart-guard", "1m", "--ttl", "61s", JOB],
    ] {
        let refused = call(&masters, words, Some(&"ab".repeat(20)));
        assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""), "{words:?}: {}", refused.err);
        assert!(refused.err.contains("61 s") && refused.err.contains("60 s"), "{}", refused.err);
    }
}

#[test]
fn invalid_bootstrap_arguments_exit_with_64() {
    let masters = masters(1);
    for (words, says) in [
        (&["bootstrap"][..], "--restart-guard"),
        (&["bootstrap", "--restart-guard", "0"], "--restart-guard"),
        (&["bootstrap", "--restart-guard", "1m", JOB], "one argument too many"),
        (&["bootstrap", "--restart-guard", "1m", "--ttl", "1s"], "--ttl is an option of run"),
        (&["bootstrap", "--restart-guard", "1m", "-m", "redis://:hunter2@host:x"], "master 1 of 1"),
    ] {
        let refused = call(&masters, words, None);
        assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""), "{words:?}: {}", refused.err);
        assert!(refused.err.contains(says) && !refused.err.contains("hunter2"), "{}", refused.err);
    }
    // The client was refused before it sent any request.
    let refused = run(&masters, &[&GUARD[..], &["-n"]].concat(), &SHOW);
    assert_eq!(refused.code, Some(69), "{}", refused.err);
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn masters_that_may_evict_locks_exit_with_64_unless_eviction_is_allowed() {
    let master = ServerOptions::new().max_memory("100mb").config("maxmemory-policy allkeys-lru").start();
    let options = [&GUARD[..], &["-n"]].concat();
    let refused = start_over(&[master.url()], &options, &SHOW).end();
    assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""), "{}", refused.err);
    assert!(refused.err.contains("allow allkeys-lru"), "{}", refused.err);

    let allowed =
        [&options[..], &["--allow-eviction", "volatile-ttl", "--allow-eviction=allkeys-lru"]].concat();
    let refused = start_over(&[master.url()], &allowed, &SHOW).end();
    assert_eq!(refused.code, Some(69), "{}", refused.err);
    assert!(refused.err.contains(&quarantined(&master)), "{}", refused.err);
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn commands_that_grant_nothing_need_no_guard_if_the_url_declares_replicas() {
    let primary = ServerOptions::new().start();
    let _replica = ServerOptions::new().replica_of(&primary).start();
    eventually(SOON, "the replica is attached", || primary.replicas() == 1);
    let join = if primary.url().contains('?') { '&' } else { '?' };
    let url = format!("{}{join}replicas=1", primary.url());
    let asked = |words: &[&str]| Running::of(quorlock(words).env("QUORLOCK_MASTERS", &url)).end();

    let refused = asked(&["run", JOB, "--", "true"]);
    assert_eq!(refused.code, Some(64), "{}", refused.err);
    let free = asked(&["status", JOB]);
    assert_eq!((free.code, free.err.as_str()), (Some(3), ""), "{}", free.out);
    assert!(!free.out.contains("promotion"), "{}", free.out);
    primary.client().unwrap().command(&["SET", JOB, "0".repeat(40).as_str()]);
    assert_eq!(asked(&["status", JOB]).code, Some(0));
    assert_eq!(asked(&["force-release", "--yes-delete-it-whoever-holds-it", JOB]).code, Some(0));
}
