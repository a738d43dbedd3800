//! `quorlock doctor`: what masters are, which promises hold on them, and that it changes nothing.

use std::collections::BTreeSet;

use quorlock_tests::{Fleet, RedisServer, ServerOptions, eventually, masters};

use crate::running::{Ended, Running, SHOW, SOON, call, quorlock, start_over};

/// Runs `quorlock doctor` over these URLs, with these words before them.
#[track_caller]
fn doctor<U: AsRef<str>>(words: &[&str], urls: &[U]) -> Ended {
    let urls = urls.iter().map(AsRef::as_ref);
    let all: Vec<&str> = ["doctor"].into_iter().chain(words.iter().copied()).chain(urls).collect();
    Running::of(&mut quorlock(&all)).end()
}

/// The line about a promise, without its name.
#[track_caller]
fn promise<'a>(told: &'a Ended, name: &str) -> &'a str {
    let line = told.out.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("nothing about {name}: {}{}", told.out, told.err)).trim_start()
}

const PROMISES: [&str; 11] = [
    "availability",
    "exclusion",
    "restarts",
    "failover",
    "restart guard",
    "fencing",
    "wake-ups",
    "several resources",
    "readers",
    "permits",
    "fair waiting",
];

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn masters_that_keep_their_data_keep_all_promises() {
    let masters = Fleet::start(3, |options, _| options.append_only());
    let told = doctor(&[], &masters.urls());
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""), "{}", told.out);
    for name in PROMISES {
        assert!(promise(&told, name).starts_with("holds: "), "{name}: {}", told.out);
    }
    assert!(told.out.starts_with("3 of 3 masters answered (quorum 2)\n"), "{}", told.out);
    for part in ["AOF (appendfsync always)", "no memory limit", "master, no replicas", "replication id "] {
        assert_eq!(told.out.matches(part).count(), 3, "{part}: {}", told.out);
    }
}

#[test]
fn masters_that_forget_need_the_restart_guard() {
    let masters = masters(3);
    let told = call(&masters, &["doctor"], None);
    assert_eq!((told.code, told.err.as_str()), (Some(1), ""), "{}", told.out);
    let said = promise(&told, "restarts");
    assert!(said.starts_with("DOES NOT HOLD: forgets locks when it restarts: 127.0.0.1:"), "{said}");
    assert!(
        told.out.contains("- set appendonly yes and appendfsync always there, or give all"),
        "{}",
        told.out
    );
    assert!(promise(&told, "exclusion").starts_with("holds: "), "{}", told.out);

    // They are new, so they do not vote yet.
    let told = call(&masters, &["doctor", "--restart-guard", "1m"], None);
    assert_eq!(told.code, Some(1), "{}", told.out);
    let said = promise(&told, "availability");
    assert_eq!(said.matches("quarantined for 60 s more").count(), 3, "{said}");
    assert!(told.out.contains("`quorlock bootstrap` ends it"), "{}", told.out);
    let expected = "holds: a master that lost its data does not vote for 60.0 s: the restart guard is in use";
    assert_eq!(promise(&told, "restarts"), expected);

    assert_eq!(call(&masters, &["bootstrap", "--restart-guard", "1m"], None).code, Some(0));
    let told = call(&masters, &["doctor", "--restart-guard", "1m"], None);
    assert_eq!(told.code, Some(0), "{}", told.out);

    // Other clients use the guard. That does not help a client that does not.
    let told = call(&masters, &["doctor"], None);
    assert_eq!(told.code, Some(1), "{}", told.out);
    assert!(promise(&told, "restarts").starts_with("DOES NOT HOLD: forgets locks"), "{}", told.out);
    let told = call(&masters, &["doctor", "--restart-guard", "1m"], None);
    assert_eq!(told.code, Some(0), "{}", told.out);
    let expected = "holds: in use, for 60.0 s; one client without it voids it for all: give every client the same --restart-guard";
    assert_eq!(promise(&told, "restart guard"), expected);
    let told = call(&masters, &["doctor", "--restart-guard", "2m"], None);
    assert_eq!(told.code, Some(1), "{}", told.out);
    assert!(promise(&told, "restart guard").contains("its clients use another guard: "), "{}", told.out);
    // That is all there is to change.
    let mut cures = told.out.lines().filter_map(|line| line.trim_start().strip_prefix("- "));
    assert!(cures.all(|cure| cure.starts_with("give ") || cure.starts_with("before ")), "{}", told.out);
    let told = doctor(&["--restart-guard", "1m"], &masters.urls()[..1]);
    assert!(promise(&told, "exclusion").contains("another number of masters: "), "{}", told.out);
}

#[test]
fn a_restart_guard_that_clients_use_on_a_minority_of_the_masters_is_reported() {
    let masters = masters(3);
    masters[0].command(&["SET", "quorlock:restart-guard", "ab12 5000 65000 60000 3"]);
    let told = call(&masters, &["doctor"], None);
    assert_eq!(told.code, Some(1), "{}", told.out);
    let expected = format!(
        "DOES NOT HOLD: other clients use it, and this client without it voids it for all: {} (60.0 s)",
        masters[0].address()
    );
    assert_eq!(promise(&told, "restart guard"), expected);
    assert!(told.out.contains("- give every client the same --restart-guard, or delete the markers"));
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn backups_under_the_restart_guard_have_a_remark_that_breaks_no_promise() {
    let keeps = Fleet::start(2, |options, place| {
        options.append_only().config(if place == 0 { "repl-backlog-ttl 0" } else { "repl-backlog-ttl 3600" })
    });
    let remark = format!(
        " set repl-backlog-ttl 0 on {}, and make backups of one master after the other\n",
        keeps[1].address()
    );
    assert_eq!(call(&keeps, &["bootstrap", "--restart-guard", "1m"], None).code, Some(0));
    let told = doctor(&["--restart-guard", "1m"], &keeps.urls());
    assert_eq!(told.code, Some(0), "{}", told.out);
    assert!(promise(&told, "restart guard").starts_with("holds: "), "{}", told.out);
    assert!(told.out.contains(&remark), "{}", told.out);
    let told = doctor(&["--restart-guard", "1m", "--json"], &keeps.urls());
    assert!(told.out.contains("\"repl_backlog_ttl\":0,") && told.out.contains("\"repl_backlog_ttl\":3600,"));
    // Without the guard the replication id does not matter.
    keeps.iter().for_each(|master| assert!(master.del("quorlock:restart-guard")));
    let told = doctor(&[], &keeps.urls());
    assert!(!told.out.contains("repl-backlog-ttl"), "{}", told.out);
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_broken_promise_is_reported_with_its_master_and_its_cure() {
    let full = ServerOptions::new().max_memory("64mb").config("maxmemory-policy allkeys-lru").start();
    let primary = ServerOptions::new().append_only().start();
    let replica = ServerOptions::new().replica_of(&primary).start();
    eventually(SOON, "the replica is attached", || primary.replicas() == 1);
    let told = doctor(&[], &[full.url(), primary.url(), replica.url()]);
    assert_eq!(told.code, Some(1), "{}", told.out);
    for (name, part) in [
        ("availability", format!("no vote: {} (is a replica, and only masters vote)", replica.address())),
        ("exclusion", format!("when its memory is full: {} (allkeys-lru)", full.address())),
        ("restarts", format!("forgets locks when it restarts: {} (no persistence)", full.address())),
        ("failover", format!("keeps running: {} (1 replica)", primary.address())),
        ("fencing", format!("may remove counters when its memory is full: {} (allkeys-lru)", full.address())),
    ] {
        let said = promise(&told, name);
        assert!(said.starts_with("DOES NOT HOLD: ") && said.contains(&part), "{part}: {}", told.out);
    }
    assert!(told.out.contains("- set maxmemory-policy to noeviction"), "{}", told.out);
    assert!(told.out.contains("- detach the replicas"), "{}", told.out);
    let options = ["--restart-guard", "1m", "--allow-eviction", "allkeys-lru"];
    let told = doctor(&options, &[full.url(), primary.url(), replica.url()]);
    assert!(promise(&told, "exclusion").starts_with("holds: "), "{}", told.out);
}

/// A server with a user that may do what plain locks need.
fn with_few_rights(more: &str) -> (RedisServer, String) {
    let rights = "~app:* +set +get +del +pttl +pexpire +evalsha +eval +script|load +info +select";
    let server =
        ServerOptions::new().append_only().acl_user(&format!("app on >hunter2 {rights} {more}")).start();
    let url = format!("redis://app:hunter2@{}", server.address());
    (server, url)
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn denied_commands_are_reported_for_each_kind_of_lock() {
    // On servers before 7.0, only users that may open a transaction can find out what is denied.
    let (_server, url) = with_few_rights("+multi +discard");
    let told = doctor(&["--prefix", "app:"], &[&url]);
    assert_eq!((told.code, told.err.as_str()), (Some(1), ""), "{}", told.out);
    for (name, part) in [
        ("several resources", "(EXISTS, MGET app:job)"),
        ("readers", "(EXISTS, MGET, APPEND, SETRANGE app:job; SET quorlock:want/{app:job}; TIME)"),
        ("permits", "MGET quorlock:seat:0/{app:job}"),
        (
            "fair waiting",
            "(ZADD, ZRANGE, ZREM, PEXPIRE, DEL quorlock:queue/{app:job}; SET, GET, DEL, PTTL, PEXPIRE",
        ),
        ("fencing", "GET, SET quorlock:fence/{app:job}"),
        ("restart guard", "GET, SET quorlock:restart-guard; TIME"),
        ("wake-ups", "user lacks a permission (NOPERM)"),
    ] {
        let said = promise(&told, name);
        assert!(said.starts_with("DOES NOT HOLD: ") && said.contains(part), "{part}: {}", told.out);
    }
    assert!(promise(&told, "availability").starts_with("holds: "), "{}", told.out);
    assert!(!told.out.contains("hunter2"), "{}", told.out);
    // This user may not use the key of the lock.
    let told = doctor(&[], &[&url]);
    assert!(promise(&told, "availability").contains("this user may not: 127.0.0.1:"), "{}", told.out);
    assert!(promise(&told, "availability").contains("PTTL job)"), "{}", told.out);
}

/// The additional permissions of a kind of lock, from the page about masters.
fn rule_for(kind: &str) -> &'static str {
    let page = include_str!("../../../core/docs/masters.md");
    let row = page.lines().find_map(|line| line.strip_prefix(&format!("| {kind} | `")));
    row.and_then(|row| row.strip_suffix("` |")).expect("the page has a row for this kind")
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn the_rule_of_fair_waiting_is_enough_and_nothing_in_it_is_too_much() {
    let words: Vec<_> = rule_for("fair waiting").split(' ').collect();
    let told_with = |words: &[&str]| {
        let (server, url) = with_few_rights(&format!("+multi +discard {}", words.join(" ")));
        let told = doctor(&["--prefix", "app:"], &[&url]);
        (promise(&told, "fair waiting").to_owned(), server, url)
    };
    let (said, _server, url) = told_with(&words);
    assert!(said.starts_with("holds: "), "{said}");
    let ran = start_over(&[url], &["--prefix", "app:", "--fair"], &SHOW).end();
    assert_eq!((ran.code, ran.err.as_str(), ran.out.as_str()), (Some(0), "", "runs\n"));
    for left_out in &words {
        let rest: Vec<_> = words.iter().copied().filter(|word| word != left_out).collect();
        let (said, _server, _) = told_with(&rest);
        let touched = left_out.trim_start_matches(['+', '~']).trim_end_matches('*');
        let is_told =
            said.starts_with("DOES NOT HOLD: this user may not: ") && said.to_lowercase().contains(touched);
        assert!(is_told, "without {left_out}: {said}");
    }
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_fair_waiter_without_permissions_has_no_place_and_is_told_so() {
    let (_server, url) = with_few_rights("");
    let ran = start_over(&[url], &["--prefix", "app:", "--fair", "--wait", "0s"], &SHOW).end();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "runs\n"), "{}", ran.err);
    assert!(ran.err.contains("this user lacks what --fair needs"), "{}", ran.err);
}

/// The commands that a server has executed since the last call, in lower case, without their
/// subcommands.
#[track_caller]
fn executed(server: &RedisServer) -> BTreeSet<String> {
    let stats = server.command(&["INFO", "commandstats"]);
    let stats = stats.text().expect("text").to_owned();
    assert!(server.command(&["CONFIG", "RESETSTAT"]).is_ok());
    // Refused commands are listed too, with no calls.
    let calls = stats.lines().filter(|line| !line.contains(":calls=0,"));
    let names = calls.filter_map(|line| line.strip_prefix("cmdstat_")?.split([':', '|']).next());
    names.map(str::to_owned).collect()
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn doctor_changes_nothing_on_the_masters() {
    let look = |server: &RedisServer| {
        let info = server.command(&["INFO"]);
        let info = info.text().expect("text").to_owned();
        let told = ["rdb_changes_since_last_save:", "number_of_cached_scripts:", "db0:", "expired_keys:"];
        let is_told = |line: &&str| told.iter().any(|name| line.starts_with(name));
        info.lines().filter(is_told).map(str::to_owned).collect::<Vec<_>>()
    };
    let reads = BTreeSet::from(
        // The harness's commands are among these.
        ["acl", "auth", "client", "config", "get", "hello", "info", "ping", "quit", "time"]
            .map(str::to_owned),
    );
    let everything = ServerOptions::new().start();
    let (few, url) = with_few_rights("+multi +discard");
    for (server, url, also) in [
        // This user's permissions are found by ACL DRYRUN, or before 7.0 after MULTI.
        (&everything, everything.url(), ["multi", "discard"].as_slice()),
        // This user's permissions are found in a script, or before 7.0 after MULTI.
        (&few, url, &["eval", "multi", "discard"]),
    ] {
        assert!(server.set_nx("app:job", "another's"));
        executed(server);
        let before = look(server);
        let told = doctor(&["--prefix", "app:"], &[url]);
        assert_eq!(told.code, Some(1), "{}{}", told.out, told.err);
        let also: BTreeSet<_> = also.iter().map(|name| (*name).to_owned()).collect();
        let executed: Vec<_> = executed(server).difference(&reads).cloned().collect();
        assert!(executed.iter().all(|name| also.contains(name)), "{executed:?}");
        if !also.contains("eval") {
            assert_eq!(look(server), before);
        }
        assert_eq!(server.command(&["DBSIZE"]).int(), Some(1));
        assert_eq!(server.get("app:job").as_deref(), Some("another's"));
    }
}

#[test]
fn too_few_answering_masters_exit_with_69_and_invalid_arguments_with_64() {
    let masters = masters(3);
    masters[0].kill();
    let told = doctor(&[], &masters.urls());
    assert_eq!(told.code, Some(1), "{}", told.out);
    let said = promise(&told, "availability");
    let expected = "DOES NOT HOLD: 2 of 3 masters vote, 2 are needed, so locks are granted, and none more may fail; no vote: ";
    assert!(said.starts_with(expected) && said.contains("(connection refused)"), "{}", told.out);
    assert!(
        told.out.contains("- start it again. Without the restart guard, never change the list"),
        "{}",
        told.out
    );
    // Nothing is known of a master that did not answer.
    let silent = format!("did not answer: {}", masters[0].address());
    for name in &PROMISES[1..] {
        let said = promise(&told, name);
        let is_broken = said.starts_with("DOES NOT HOLD: ");
        assert!(is_broken || said == format!("not known: {silent}"), "{name}: {}", told.out);
    }
    assert_eq!(told.out.matches(&silent).count(), PROMISES.len() - 1, "{}", told.out);
    masters[1].kill();
    let told = doctor(&[], &masters.urls());
    assert_eq!(told.code, Some(69), "{}", told.out);
    assert!(promise(&told, "availability").contains("so no lock is granted; no vote: "), "{}", told.out);
    let told = doctor(&["--restart-guard", "1m"], &masters.urls());
    assert!(told.out.contains("`quorlock doctor --replacing OLD=NEW` says when"), "{}", told.out);
    for (words, says) in [
        (&["doctor"][..], "No masters"),
        (&["doctor", "redis://:hunter2@host:x"], "master 1 of 1"),
        (&["doctor", "-m", "redis://a", "redis://b"], "contradict each other"),
        (&["doctor", "--ttl", "1s", "redis://a"], "--ttl is an option of run"),
    ] {
        let refused = Running::of(&mut quorlock(words)).end();
        assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""), "{words:?}: {}", refused.err);
        assert!(refused.err.contains(says) && !refused.err.contains("hunter2"), "{}", refused.err);
    }
}

#[test]
fn passwords_are_used_and_never_shown() {
    let masters = Fleet::start(3, |options, _| options.password("right"));
    let told = doctor(&[], &masters.urls());
    assert_eq!(told.code, Some(1), "{}", told.out);
    let wrong: Vec<_> =
        masters.iter().map(|master| format!("redis://:hunter2@{}", master.address())).collect();
    for words in [&[][..], &["--json"]] {
        let refused = doctor(words, &wrong);
        assert_eq!(refused.code, Some(64), "{}", refused.out);
        assert!(refused.out.contains("wrong user or password"), "{}", refused.out);
        assert!(![&refused.out, &refused.err, &told.out].iter().any(|text| text.contains("hunter2")));
        assert!(!told.out.contains("right"), "{}", told.out);
    }
}

#[test]
fn a_password_file_is_read() {
    let masters = Fleet::start(1, |options, _| options.password("right"));
    let file = tempfile::NamedTempFile::new().unwrap();
    let url = format!("redis://{}?password-file={}", masters[0].address(), file.path().display());
    let empty = doctor(&[], &[&url]);
    assert!(empty.out.contains("no login: "), "{}", empty.out);
    std::fs::write(file.path(), "right\n").unwrap();
    let told = doctor(&["--json"], &[&url]);
    assert!(told.out.contains("\"votes\":true"), "{}{}", told.out, told.err);
}

#[test]
fn the_json_is_one_object_with_the_same_facts() {
    let masters = masters(2);
    let told = call(&masters, &["doctor", "--json"], None);
    assert_eq!((told.code, told.err.as_str(), told.out.lines().count()), (Some(1), "", 1));
    let start = "{\"text\":\"2 of 2 masters answered (quorum 2)\",\"quorum\":2,\"answered\":2,\"promises\":[{\"name\":";
    assert!(told.out.starts_with(start) && told.out.ends_with("}]}\n"), "{}", told.out);
    for part in [
        "{\"name\":\"availability\",\"holds\":true,\"text\":\"2 of 2 masters vote; none may fail\",\"cures\":[]}",
        "{\"name\":\"restarts\",\"holds\":false,",
        "\"votes\":true,\"error\":null,\"server\":\"",
        "\"appendonly\":false,",
    ] {
        assert!(told.out.contains(part), "{part}: {}", told.out);
    }
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn replicas_that_a_url_declares_break_no_promise_and_those_that_are_away_do() {
    let primary = ServerOptions::new().append_only().start();
    let _replica = ServerOptions::new().replica_of(&primary).start();
    eventually(SOON, "the replica is attached", || primary.replicas() == 1);
    let join = if primary.url().contains('?') { '&' } else { '?' };
    for (declared, said) in [(1, "holds: "), (2, "DOES NOT HOLD: has no vote without exactly the replicas")] {
        let url = format!("{}{join}replicas={declared}", primary.url());
        let told = doctor(&["--restart-guard", "1m"], &[url]);
        assert!(promise(&told, "failover").starts_with(said), "{}", told.out);
    }
}
