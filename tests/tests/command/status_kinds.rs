//! `quorlock status` and `force-release` of locks that are shared, and of permits.

use std::time::Duration;

use quorlock_blocking::{Config, Locker};
use quorlock_core::Group;
use quorlock_tests::{Fleet, eventually, masters};

use crate::running::{Ended, JOB, call};

const MEANT: &str = "--yes-delete-it-whoever-holds-it";

fn locker(masters: &Fleet) -> Locker {
    let patience = Duration::from_secs(10);
    let config = Config::builder(masters.urls()).ttl(Duration::from_secs(60));
    quorlock_blocking::open(config.request_timeout(patience).build().unwrap()).unwrap()
}

/// Waits until all masters have the keys that a quorum has granted.
#[track_caller]
fn entries(masters: &Fleet, key: &str, count: usize) {
    eventually(Duration::from_secs(20), "entries on all masters", || {
        masters.iter().all(|master| master.sharers(key) == count)
    });
}

#[track_caller]
fn status(masters: &Fleet, words: &[&str]) -> Ended {
    let ended = call(masters, &[&["status"], words].concat(), None);
    assert_eq!(ended.err, "", "{}", ended.out);
    ended
}

#[test]
fn a_shared_lock_is_distinguished_from_an_exclusive_one_with_its_readers() {
    let masters = masters(3);
    let locker = locker(&masters);
    let readers = [(); 3].map(|()| locker.read(JOB).ttl(Duration::from_secs(30)).renew().wait().unwrap());
    entries(&masters, JOB, 3);
    let told = status(&masters, &[JOB]);
    assert_eq!(told.code, Some(0), "{}", told.out);
    let (first, rest) = told.out.split_once('\n').unwrap();
    assert!(first.starts_with("job: 3 readers, the last ends in 29."), "{first}");
    assert!(first.ends_with(" s; on 3 of 3 masters (quorum 2)"), "{first}");
    assert_eq!(rest.matches("  3 readers, 29.").count(), 3, "{rest}");
    let json = status(&masters, &["--json", JOB]).out;
    for part in
        ["\"state\":\"shared\"", "\"held_on\":3", "\"group\":null,\"sharers\":3,\"writer_waits\":false"]
    {
        assert!(json.contains(part), "{part}: {json}");
    }
    assert_eq!(json.matches("\"key\":\"shared\"").count(), 3, "{json}");
    let token = readers[0].token().expose();
    assert!(!told.out.contains(&token[..8]) && !json.contains(&token[..8]));
    let ours = call(&masters, &["status", JOB], Some(&token));
    assert!(ours.out.starts_with("job: 3 readers, of which one is ours, the last ends in "), "{}", ours.out);
    assert!(call(&masters, &["status", "--json", JOB], Some(&token)).out.contains("\"ours\":true"));

    drop(readers);
    let _member = locker.share(JOB, Group::new("job:42").unwrap()).wait().unwrap();
    entries(&masters, JOB, 1);
    let told = status(&masters, &[JOB]).out;
    assert!(told.starts_with("job: 1 of group job:42, it ends in 59."), "{told}");
    assert!(status(&masters, &["--json", JOB]).out.contains("\"group\":\"job:42\",\"sharers\":1"));
}

#[test]
fn a_waiting_writer_is_reported() {
    let masters = masters(3);
    let locker = locker(&masters);
    let _reader = locker.read(JOB).wait().unwrap();
    entries(&masters, JOB, 1);
    for master in masters.iter() {
        assert!(master.command(&["SET", "quorlock:want/{job}", "a wait", "PX", "60000"]).is_ok());
    }
    let told = status(&masters, &[JOB]).out;
    assert!(told.contains("; a writer waits\n"), "{told}");
    assert!(status(&masters, &["--json", JOB]).out.contains("\"writer_waits\":true"));
}

#[test]
fn permits_that_are_held_are_named() {
    let masters = masters(3);
    let words = ["--permits", "4", "gpu"];
    let none = status(&masters, &words);
    assert_eq!(none.code, Some(3), "{}", none.out);
    assert!(none.out.starts_with("gpu: none of 4 permits held\n"), "{}", none.out);
    for (index, on) in [(0, 3), (2, 2), (3, 1)] {
        for master in masters.iter().take(on) {
            let (seat, token) = (format!("quorlock:seat:{index}/{{gpu}}"), format!("{index:040x}"));
            assert!(master.command(&["SET", &seat, &token, "PX", "60000"]).is_ok());
        }
    }
    let told = status(&masters, &words);
    assert_eq!(told.code, Some(0), "{}", told.out);
    assert!(told.out.starts_with("gpu: permits 0 and 2 of 4 held\n"), "{}", told.out);
    assert!(told.out.contains("  permit 0: held on 3 of 3 masters, 59."), "{}", told.out);
    assert!(told.out.contains("  permit 2: held on 2 of 3 masters, 59."), "{}", told.out);
    let first = format!("  {}  3 permits ", masters[0].address());
    assert!(told.out.contains(&first), "{}", told.out);
    let quiet = status(&masters, &["-q", "--permits", "4", "gpu"]);
    assert_eq!((quiet.code, quiet.out.as_str()), (Some(0), ""));
    let ours = call(&masters, &["status", "--permits", "4", "gpu"], Some(&format!("{:040x}", 2)));
    assert!(ours.out.starts_with("gpu: permits 0 and 2 of 4 held; ours: 2\n"), "{}", ours.out);
    let json = status(&masters, &["--json", "--permits", "4", "gpu"]).out;
    let start = "{\"resource\":\"gpu\",\"state\":\"held\",\"text\":\"permits 0 and 2 of 4 held\",\"quorum\":2,\
                 \"answered\":3,\"permits\":4,\"held\":[{\"index\":0,\"ours\":null,\"held_on\":3,\"left_ms\":";
    assert!(json.starts_with(start), "{json}");
    assert!(json.contains("\"free\":[1,3],\"masters\":[{"), "{json}");
    assert!(json.contains("\"keys\":[{\"index\":0,\"key\":\"held\",\"holder\":\"a\",\"left_ms\":"), "{json}");

    masters[0].kill();
    masters[1].kill();
    let unknown = status(&masters, &words);
    assert_eq!(unknown.code, Some(69), "{}", unknown.out);
    assert!(
        unknown.out.starts_with("gpu: not known: 1 of 3 masters gave a usable answer"),
        "{}",
        unknown.out
    );
}

#[test]
fn all_readers_lose_a_lock_that_is_deleted() {
    let masters = masters(3);
    let locker = locker(&masters);
    let readers = [(); 2].map(|()| locker.read(JOB).wait().unwrap());
    entries(&masters, JOB, 2);
    let told = call(&masters, &["force-release", MEANT, JOB], None);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.err.contains("deleted job on 3 of 3 masters; 0 had no such key"), "{}", told.err);
    entries(&masters, JOB, 0);
    assert_eq!(status(&masters, &[JOB]).code, Some(3));
    drop(readers);
}

#[test]
fn one_permit_is_deleted_or_all() {
    let masters = masters(3);
    let locker = locker(&masters);
    let gpu = locker.semaphore("gpu", 4).unwrap();
    assert_eq!(gpu.inspect().wait().unwrap().held().count(), 0);
    let permits = [(); 3].map(|()| gpu.acquire().wait().unwrap());
    let seats = permits.each_ref().map(|permit| format!("quorlock:seat:{}/{{gpu}}", permit.index()));
    let on = |seat: &String| masters.iter().filter(|master| master.exists(seat)).count();
    eventually(Duration::from_secs(20), "permits", || seats.iter().all(|seat| on(seat) == 3));
    let index = permits[1].index();
    let words = ["force-release", MEANT, "--permits", "4"];
    let told = call(&masters, &[&words[..], &["--index", &index.to_string(), "gpu"]].concat(), None);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.err.contains(&format!("deleted permit {index} of gpu on 3 of 3 masters")), "{}", told.err);
    assert_eq!(seats.each_ref().map(on), [3, 0, 3]);
    let told = call(&masters, &[&words[..], &["gpu"]].concat(), None);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert_eq!(seats.each_ref().map(on), [0, 0, 0]);
    let told = call(&masters, &[&words[..], &["gpu"]].concat(), None);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.err.contains("no permit of gpu has a key"), "{}", told.err);
    drop(permits);
}

#[test]
fn a_token_of_a_reader_is_released() {
    let masters = masters(3);
    let locker = locker(&masters);
    let [ours, theirs] = [(); 2].map(|()| locker.read(JOB).wait().unwrap());
    entries(&masters, JOB, 2);
    let token = ours.token().expose();
    for code in [0, 75] {
        let told = call(&masters, &["release", JOB], Some(&token));
        assert_eq!(told.code, Some(code), "{}", told.err);
        entries(&masters, JOB, 1);
    }
    drop((ours, theirs));
}

#[test]
fn numbers_of_permits_are_checked() {
    let masters = masters(1);
    for (words, says) in [
        (&["status", "--permits", "0", "gpu"][..], "needs a number from 1 to 1024"),
        (&["status", "--permits", "1025", "gpu"], "needs a number from 1 to 1024"),
        (
            &["force-release", MEANT, "--permits", "4", "--index", "1024", "gpu"],
            "needs a number from 0 to 1023",
        ),
        (&["force-release", MEANT, "--index", "1", "gpu"], "--permits"),
    ] {
        let refused = call(&masters, words, None);
        assert_eq!((refused.code, refused.out.as_str()), (Some(64), ""), "{words:?}: {}", refused.err);
        assert!(refused.err.contains(says), "{words:?}: {}", refused.err);
    }
}
