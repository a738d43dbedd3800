//! `quorlock status`: what masters report about a lock, and what is never shown.

use std::fmt::Display;
use std::io::{Read, Write};
use std::time::Duration;

use quorlock_tests::{FakeMaster, Fleet, ServerOptions, masters};

use crate::binary;
use crate::running::{Ended, JOB, Running, SHOW, acquire, assert_free, call, quorlock, run};

/// A bound that is far less than a hanging command takes, and far more than two timeouts.
const BOUNDED: Duration = Duration::from_secs(15);

/// The exit code for a free lock.
const FREE: Option<i32> = Some(3);

#[track_caller]
fn status(masters: &Fleet) -> Ended {
    let ended = call(masters, &["status", JOB], None);
    assert_eq!(ended.err, "", "{}", ended.out);
    ended
}

/// The exit code and the first line.
#[track_caller]
fn verdict(masters: &Fleet) -> (Option<i32>, String) {
    let ended = status(masters);
    (ended.code, ended.out.lines().next().unwrap_or_default().to_owned())
}

/// The line about a master.
#[track_caller]
fn line(ended: &Ended, address: impl Display) -> String {
    let address = format!("  {address} ");
    let line = ended.out.lines().find(|line| line.starts_with(&address));
    line.unwrap_or_else(|| panic!("nothing about {address}: {}", ended.out)).to_owned()
}

#[test]
fn a_held_lock_is_reported_with_its_holder_and_without_its_token() {
    let masters = masters(3);
    let token = acquire(&masters, &["--ttl", "1m"]);
    let token = token.get(..40).expect("a token has 40 digits").to_owned();
    assert_eq!(masters[0].get(JOB).as_deref(), Some(token.as_str()));

    let text = status(&masters);
    assert_eq!(text.code, Some(0), "{}", text.out);
    let expected = "job: held by one holder on 3 of 3 masters (quorum 2), ";
    assert!(text.out.starts_with(expected) && text.out.contains(" s left\n"), "{}", text.out);
    for master in masters.iter() {
        let line = line(&text, master.address());
        assert!(line.contains(" holder a, ") && line.contains(" s left "), "{line}");
        assert!(line.contains("redis ") && line.contains("master, up "), "{line}");
    }

    let json = call(&masters, &["status", "--json", JOB], None);
    assert_eq!((json.code, json.err.as_str(), json.out.lines().count()), (Some(0), "", 1));
    let start = "{\"resource\":\"job\",\"state\":\"held\",\"text\":\"held by one holder on 3 of 3 masters (quorum 2), ";
    assert!(json.out.starts_with(start) && json.out.ends_with("}]}\n"), "{}", json.out);
    for part in [
        "\"quorum\":2,\"answered\":3,\"holder\":\"a\",\"ours\":null,\"held_on\":3,\"left_ms\":",
        "\"key\":\"held\",\"holder\":\"a\"",
    ] {
        assert!(json.out.contains(part), "{part}: {}", json.out);
    }
    // Not even a part of it.
    for start in (0..token.len()).step_by(8) {
        let part = &token[start..start + 8];
        assert!(!text.out.contains(part) && !json.out.contains(part), "{part} of {token}");
    }
    let quiet = call(&masters, &["status", "-q", JOB], None);
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (Some(0), "", ""));
}

#[test]
fn the_exit_code_distinguishes_held_from_free() {
    let masters = masters(3);
    for words in [&["status", JOB][..], &["status", "-q", JOB], &["status", "--json", JOB]] {
        assert_eq!(call(&masters, words, None).code, FREE, "{words:?}");
    }
    let token = acquire(&masters, &["--ttl", "1m"]);
    for words in [&["status", JOB][..], &["status", "-q", JOB], &["status", "--json", JOB]] {
        assert_eq!(call(&masters, words, None).code, Some(0), "{words:?}");
    }
    assert_eq!(call(&masters, &["release", JOB], Some(&token)).code, Some(0));
    assert_free(&masters);
    assert_eq!(status(&masters).code, FREE);
}

#[test]
fn a_lock_of_ours_is_called_ours() {
    let masters = masters(3);
    let token = acquire(&masters, &["--ttl", "1m"]);
    let told = call(&masters, &["status", JOB], Some(&token));
    assert_eq!(told.code, Some(0));
    assert!(told.out.starts_with("job: ours on 3 of 3 masters (quorum 2), "), "{}", told.out);
    assert!(line(&told, masters[0].address()).contains(" ours, "), "{}", told.out);
    assert!(!told.out.contains(&token[..8]), "{}", told.out);
    let json = |token| call(&masters, &["status", "--json", JOB], token).out;
    assert_eq!(json(Some(&token)).matches("\"holder\":\"a\",\"ours\":true,").count(), 4);
    assert_eq!(json(None).matches("\"holder\":\"a\",\"ours\":null,").count(), 4);

    // The token of another lock, and an invalid token.
    for other in ["ab".repeat(20), "other".to_owned()] {
        let told = call(&masters, &["status", JOB], Some(&other));
        assert_eq!(told.code, Some(0));
        assert!(told.out.starts_with("job: held by one holder on 3 of 3 masters"), "{}", told.out);
    }
    assert_eq!(json(Some(&"ab".repeat(20))).matches("\"ours\":false").count(), 4);

    masters[1].command(&["SET", JOB, "x"]);
    masters[2].del(JOB);
    let told = call(&masters, &["status", JOB], Some(&token));
    assert_eq!(told.code, Some(1));
    assert!(told.out.contains("split: ours on 1, holder b on 1, free on 1\n"), "{}", told.out);
}

#[test]
fn a_command_under_its_lock_sees_that_it_is_ours() {
    let masters = masters(3);
    let quorlock = binary::quorlock().to_str().expect("a path in UTF-8");
    let named = masters.urls().join(",");
    let script = format!("QUORLOCK_MASTERS={named} exec {quorlock} status {JOB}");
    let told = run(&masters, &[], &["sh", "-c", &script]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.out.starts_with("job: ours on "), "{}", told.out);
}

#[test]
fn status_changes_nothing_on_the_masters() {
    let masters = masters(3);
    acquire(&masters, &["--ttl", "1m"]);
    let before: Vec<_> = masters.iter().map(|master| master.get(JOB)).collect();
    let lives: Vec<_> = masters.iter().map(|master| master.pttl(JOB)).collect();
    status(&masters);
    let after: Vec<_> = masters.iter().map(|master| master.get(JOB)).collect();
    assert_eq!(before, after);
    for (master, before) in masters.iter().zip(lives) {
        assert!(master.pttl(JOB) <= before);
        assert_eq!(master.command(&["DBSIZE"]).int(), Some(1));
    }
}

#[test]
fn a_free_lock_is_reported_even_if_a_minority_has_a_key() {
    let masters = masters(3);
    let free = "job: free on 3 of 3 masters (quorum 2)".to_owned();
    assert_eq!(verdict(&masters), (FREE, free));
    assert!(masters[1].set_nx(JOB, "left over"));
    let told = status(&masters);
    assert_eq!(told.code, FREE);
    assert!(
        told.out.starts_with("job: free on 2 of 3 masters (quorum 2); 1 still has a key\n"),
        "{}",
        told.out
    );
    assert!(line(&told, masters[1].address()).contains("holder a, never expires"), "{}", told.out);
    assert_eq!(run(&masters, &["-n"], &SHOW).code, Some(0));
}

#[test]
fn a_lock_without_an_expiry_is_reported_as_such() {
    let masters = masters(3);
    masters.iter().for_each(|master| assert!(master.set_nx(JOB, "x")));
    let expected =
        "job: held by one holder on 3 of 3 masters (quorum 2), never expires; Quorlock sets no key \
                    that never expires: if no client holds the lock, delete it with `quorlock force-release`"
            .to_owned();
    assert_eq!(verdict(&masters), (Some(0), expected));
    let json = call(&masters, &["status", "--json", JOB], None);
    assert!(json.out.contains("\"held_on\":3,\"left_ms\":null"), "{}", json.out);
    // Two masters decide; the third may not have answered by then.
    let refused = run(&masters, &["-n"], &SHOW).err;
    let refusals = refused.matches(" held by another (never expires)").count();
    assert!(refusals >= 2 && refused.contains("`quorlock force-release`"), "{refused}");
}

#[test]
fn holders_that_split_the_masters_are_distinguished_and_exit_with_1() {
    let masters = masters(3);
    masters[0].set_nx(JOB, "one");
    masters[1].set_nx(JOB, "two");
    let told = status(&masters);
    assert_eq!(told.code, Some(1), "{}", told.out);
    let expected = "job: no quorum (2 of 3 needed), split: holder a on 1, holder b on 1, free on 1\n";
    assert!(told.out.starts_with(expected), "{}", told.out);
    assert!(line(&told, masters[1].address()).contains("holder b"), "{}", told.out);

    // The third master would decide, and does not answer.
    masters[2].kill();
    let (code, said) = verdict(&masters);
    assert_eq!(code, Some(69), "{said}");
    assert!(said.contains("not known, it depends on masters that gave no usable answer"), "{said}");
}

#[test]
fn a_key_that_is_not_a_string_is_not_a_lock() {
    let masters = masters(3);
    masters[0].command(&["LPUSH", JOB, "x"]);
    let told = status(&masters);
    assert_eq!(told.code, FREE, "{}", told.out);
    assert!(line(&told, masters[0].address()).contains("not a lock"), "{}", told.out);
    masters[1].command(&["LPUSH", JOB, "x"]);
    assert_eq!(status(&masters).code, Some(1));
}

#[test]
fn too_few_answering_masters_exit_with_69_and_a_hung_one_delays_no_command() {
    let masters = masters(3);
    acquire(&masters, &["--ttl", "1m"]);
    masters[0].stop();
    let told = status(&masters);
    assert_eq!(told.code, Some(0), "{}", told.out);
    assert!(told.out.starts_with("job: held by one holder on 2 of 3 masters"), "{}", told.out);
    assert!(line(&told, masters[0].address()).contains("no connection in 1 s"), "{}", told.out);
    assert!(told.took < BOUNDED, "{:?}", told.took);

    masters[1].stop();
    masters[2].kill();
    let told = status(&masters);
    assert_eq!(told.code, Some(69), "{}", told.out);
    assert!(
        told.out.starts_with("job: not known: 0 of 3 masters gave a usable answer (quorum 2)\n"),
        "{}",
        told.out
    );
    assert!(line(&told, masters[2].address()).contains("connection refused"), "{}", told.out);
    assert!(told.took < BOUNDED, "{:?}", told.took);
    masters[0].cont();
    masters[1].cont();
}

#[test]
fn a_master_that_came_back_empty_under_the_restart_guard_does_not_count_as_free() {
    let masters = masters(3);
    assert_eq!(call(&masters, &["bootstrap", "--restart-guard", "1m"], None).code, Some(0));
    acquire(&masters, &["--restart-guard", "1m", "--ttl", "1m"]);
    masters[1].restart();
    masters[2].restart();
    // No client with the guard has sent a request since.
    let told = status(&masters);
    assert_eq!(told.code, Some(69), "{}", told.out);
    let lost = "free; came back without its data: will be quarantined for 60.0 s";
    assert!(line(&told, masters[1].address()).contains(lost), "{}", told.out);

    assert_eq!(run(&masters, &["-n", "--restart-guard", "1m"], &SHOW).code, Some(69));
    let told = status(&masters);
    assert_eq!(told.code, Some(69), "{}", told.out);
    assert!(line(&told, masters[2].address()).contains("free; quarantined for "), "{}", told.out);
    let json = call(&masters, &["status", "--json", JOB], None);
    assert!(json.out.contains("\"quarantined_ms\":5"), "{}", json.out);
}

#[test]
fn passwords_are_used_and_never_shown() {
    let masters = Fleet::start(3, |options, _| options.password("right"));
    assert_eq!(verdict(&masters), (FREE, "job: free on 3 of 3 masters (quorum 2)".to_owned()));

    let wrong: Vec<_> =
        masters.iter().map(|master| format!("redis://:hunter2@{}", master.address())).collect();
    let none: Vec<_> = masters.iter().map(|master| format!("redis://{}", master.address())).collect();
    for urls in [wrong, none] {
        for json in [&[][..], &["--json"]] {
            let named = urls.iter().flat_map(|url| ["-m", url.as_str()]);
            let words: Vec<_> =
                ["status"].into_iter().chain(named).chain(json.iter().copied()).chain([JOB]).collect();
            let refused = Running::of(&mut quorlock(&words)).end();
            assert_eq!(refused.code, Some(64), "{}", refused.out);
            assert!(refused.out.contains("password"), "{}", refused.out);
            assert!(!refused.out.contains("hunter2") && !refused.err.contains("hunter2"), "{}", refused.out);
        }
    }
}

#[test]
fn masters_without_hello_are_asked_over_resp_2() {
    let masters = Fleet::start(3, |options, _| options.without_hello().password("right"));
    let token = acquire(&masters, &["--ttl", "1m"]);
    let told = status(&masters);
    assert_eq!(told.code, Some(0), "{}", told.out);
    assert!(told.out.starts_with("job: held by one holder on 3 of 3 masters"), "{}", told.out);
    assert!(!told.out.contains(&token), "{}", told.out);
}

#[test]
fn a_replica_has_no_vote_and_one_server_has_one() {
    let primary = quorlock_tests::master();
    let replica = ServerOptions::new().replica_of(&primary).start_any();
    let again = format!("redis://localhost:{}", primary.port());
    let words = ["status", "-m", &primary.url(), "-m", &replica.url(), "-m", &again, JOB];
    let told = Running::of(&mut quorlock(&words)).end();
    assert_eq!(told.code, Some(69), "{}", told.out);
    assert!(line(&told, replica.address()).contains("is a replica, and only masters vote"), "{}", told.out);
    // Of two addresses of one server, the first to answer has the vote.
    let (one, other) = (primary.address().to_string(), format!("localhost:{}", primary.port()));
    let named = line(&told, &one).contains(&format!("is the same server as {other}"))
        || line(&told, &other).contains(&format!("is the same server as {one}"));
    assert!(named, "{}", told.out);
}

#[test]
fn a_master_that_answers_byte_by_byte_delays_no_command() {
    let masters = masters(2);
    let dripping = FakeMaster::start(|peer, _| {
        let mut next = b"+";
        while peer.write_all(next).is_ok() {
            next = b"a";
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let words = ["status", "-m", &masters[0].url(), "-m", &masters[1].url(), "-m", &dripping.url(), JOB];
    let told = Running::of(&mut quorlock(&words)).end();
    assert_eq!(told.code, FREE, "{}", told.out);
    assert!(line(&told, dripping.address()).contains("no connection in 1 s"), "{}", told.out);
    assert!(told.took < BOUNDED, "{:?}", told.took);
}

#[test]
fn a_server_without_the_protocol_is_reported() {
    let masters = masters(2);
    let fake = FakeMaster::start(|peer, _| {
        // The client may have left. Its bytes are read first: closing with unread bytes would
        // discard the reply.
        let _ = peer.read(&mut [0; 1024]);
        let _ = peer.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let fake_url = format!("redis://{}", fake.address());
    let words = ["status", "-m", &masters[0].url(), "-m", &masters[1].url(), "-m", &fake_url, JOB];
    let told = Running::of(&mut quorlock(&words)).end();
    assert_eq!(told.code, FREE, "{}", told.out);
    assert!(line(&told, fake.address()).contains("does not speak Redis's protocol"), "{}", told.out);
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn the_smallest_permissions_are_enough() {
    let rules =
        "app on >hunter2 ~job +set +get +del +pttl +pexpire +evalsha +eval +script|load +info +select";
    let master = ServerOptions::new().acl_user(rules).start();
    let url = format!("redis://app:hunter2@{}", master.address());
    let ask = |words: &[&str]| Running::of(&mut quorlock(&[words, &["-m", &url, JOB]].concat())).end();
    assert!(master.set_nx(JOB, "another's"));
    let told = ask(&["status"]);
    assert_eq!(told.code, Some(0), "{}{}", told.out, told.err);
    assert!(told.out.contains("holder a, never expires") && told.out.contains("master, up "), "{}", told.out);
    let told = ask(&["force-release", "--yes-delete-it-whoever-holds-it"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(!master.exists(JOB));
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn unix_sockets_are_asked_too() {
    let master = ServerOptions::new().unix_socket().start();
    let told = Running::of(&mut quorlock(&["status", "-m", &master.unix_url(), JOB])).end();
    assert_eq!(told.code, FREE, "{}{}", told.out, told.err);
    assert!(told.out.starts_with("job: free on 1 of 1 masters (quorum 1)\n"), "{}", told.out);
}

#[test]
fn invalid_arguments_exit_with_64() {
    let masters = masters(1);
    for (words, says) in [
        (&["status"][..], "RESOURCE is missing"),
        (&["status", ""], "RESOURCE is empty"),
        (&["status", JOB, "more"], "one argument too many"),
        (&["status", "--ttl", "1s", JOB], "--ttl is an option of run"),
        (&["status", "quorlock:restart-guard"], "quorlock:fence"),
        (&["status", "-m", "redis://:hunter2@host:x", JOB], "master 1 of 1"),
        (&["status", "--yes-delete-it-whoever-holds-it", JOB], "force-release"),
    ] {
        let refused = call(&masters, words, None);
        assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""), "{words:?}: {}", refused.err);
        assert!(refused.err.contains(says) && !refused.err.contains("hunter2"), "{}", refused.err);
    }
}
