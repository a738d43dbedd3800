//! `quorlock master`: embedded masters from the command line.

use std::net::{SocketAddr, TcpListener, TcpStream};

use quorlock_tests::{RawClient, eventually};
use rustix::process::Signal;

use crate::running::{Running, SHOW, SOON, quorlock, start_over};

/// Runs `quorlock master` and waits until it names the URLs of all its masters.
#[track_caller]
fn serve(options: &[&str]) -> (Running, Vec<String>) {
    let mut serving = Running::of(&mut quorlock(&[&["master"], options].concat()));
    eventually(SOON, "it listens", || serving.err().contains("QUORLOCK_MASTERS=") || !serving.goes_on());
    let err = serving.err();
    let (_, urls) = err.trim_end().rsplit_once("QUORLOCK_MASTERS=").unwrap_or_else(|| panic!("{err}"));
    let urls = urls.split(',').map(str::to_owned).collect();
    (serving, urls)
}

/// A port on which nothing listens, until another process takes it.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn address(url: &str) -> SocketAddr {
    url.strip_prefix("redis://").unwrap().parse().unwrap()
}

#[test]
fn three_masters_grant_locks_until_a_signal_ends_them() {
    for signal in [Signal::TERM, Signal::INT] {
        let (serving, urls) = serve(&["--port", "0", "--port", "0", "--port", "0"]);
        assert_eq!(urls.len(), 3);
        for url in &urls {
            assert!(serving.err().contains(&format!("listens at {url}\n")), "{}", serving.err());
        }

        let ended = start_over(&urls, &["-n"], &SHOW).end();
        assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(0), "runs\n", ""));
        let mut client = RawClient::connect(address(&urls[0]));
        assert_eq!(client.command(&["DBSIZE"]).int(), Some(0));

        serving.signal(signal);
        let ended = serving.end_by_itself();
        assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{}", ended.err);
        assert!(ended.err.ends_with("ends the masters\n"), "{}", ended.err);
        assert!(urls.iter().all(|url| TcpStream::connect(address(url)).is_err()));
    }
}

#[test]
fn a_stopped_process_of_masters_hangs_and_continues_later() {
    let (serving, urls) = serve(&["--port", "0"]);
    let (_others, two) = serve(&["--port", "0", "--port", "0"]);
    serving.signal(Signal::STOP);
    let ended = start_over(&[urls, two].concat(), &["-n"], &SHOW).end();
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "runs\n"), "{}", ended.err);
    serving.signal(Signal::CONT);
    serving.signal(Signal::TERM);
    assert_eq!(serving.end_by_itself().code, Some(0));
}

#[test]
fn the_port_that_is_named_is_taken_and_used_again_at_once() {
    let port = free_port().to_string();
    for _ in 0..2 {
        let (serving, urls) = serve(&["--port", &port]);
        assert_eq!(urls, [format!("redis://127.0.0.1:{port}")]);
        let mut client = RawClient::connect(address(&urls[0]));
        assert_eq!(client.command(&["PING"]).text(), Some("PONG"));
        serving.signal(Signal::TERM);
        assert_eq!(serving.end_by_itself().code, Some(0));
    }
}

#[test]
fn a_port_in_use_exits_with_71_and_no_master_is_left() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().port().to_string();
    let free = free_port().to_string();
    for options in [&["--port", &free, "--port", &taken][..], &["--port", &free, "--port", &free]] {
        let ended = Running::of(&mut quorlock(&[&["master"], options].concat())).end_by_itself();
        assert_eq!((ended.code, ended.out.as_str()), (Some(71), ""), "{}", ended.err);
        let last = options.last().unwrap();
        assert!(ended.err.starts_with(&format!("quorlock: 127.0.0.1:{last} is in use")), "{}", ended.err);
        assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    }
}

#[test]
fn arguments_that_make_no_sense_exit_with_64_and_a_message() {
    for (options, says) in [
        (&[][..], "--port"),
        (&["--port"], "--port"),
        (&["--port", "x"], "65535"),
        (&["--port", "65536"], "65535"),
        (&["--port", "-1"], "--port"),
        (&["--port", "0", "7001"], "one argument too many"),
        (&["--port", "0", "--bogus"], "--bogus"),
        (&["--port", "0", "-m", "redis://a"], "-m"),
        (&["--port", "0", "-q", "-v"], "--quiet and --verbose"),
        (&["--port", "0", "--json=yes"], "--json"),
        (&["--port", "0", "--bind", "0.0.0.0"], "loopback"),
        (&["--port", "0", "--bind", "192.0.2.1"], "loopback"),
        (&["--port", "0", "--bind", "::"], "loopback"),
        (&["--port", "0", "--bind", "localhost"], "127.0.0.1"),
        (&["--port", "0", "--bind"], "--bind"),
    ] {
        let ended = Running::of(&mut quorlock(&[&["master"], options].concat())).end_by_itself();
        assert_eq!((ended.code, ended.out.as_str()), (Some(64), ""), "{options:?}: {}", ended.err);
        assert_eq!(ended.err.lines().count(), 1, "{options:?}: {}", ended.err);
        assert!(ended.err.contains(says), "{options:?}: {}", ended.err);
    }
}

#[test]
fn json_is_one_object_a_line_and_quiet_is_nothing() {
    let (serving, urls) = {
        let mut serving = Running::of(&mut quorlock(&["master", "--port", "0", "--json"]));
        eventually(SOON, "it listens", || serving.err().lines().count() == 2 || !serving.goes_on());
        let err = serving.err();
        let url = err.lines().next().unwrap().rsplit('"').nth(1).unwrap().to_owned();
        (serving, [url])
    };
    serving.signal(Signal::TERM);
    let err = serving.end_by_itself().err;
    let lines: Vec<_> = err.lines().collect();
    assert!(lines[0].starts_with("{\"event\":\"listening\",\"level\":\"info\",\"text\":\""), "{err}");
    assert!(lines[0].ends_with(&format!(",\"url\":\"{}\"}}", urls[0])), "{err}");
    assert!(lines[1].starts_with("{\"event\":\"ready\",\"level\":\"info\",\"text\":\""), "{err}");
    assert!(lines[1].ends_with(&format!(",\"masters\":\"{}\"}}", urls[0])), "{err}");
    let ended = "{\"event\":\"ended\",\"level\":\"info\",\"text\":\"SIGTERM ends the masters\"}";
    assert_eq!(lines[2..], [ended]);

    let port = free_port();
    let mut serving = Running::of(&mut quorlock(&["master", "--port", &port.to_string(), "-q"]));
    eventually(SOON, "it listens", || TcpStream::connect(("127.0.0.1", port)).is_ok() || !serving.goes_on());
    serving.signal(Signal::TERM);
    let ended = serving.end_by_itself();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
}

#[test]
fn another_address_of_the_loopback_may_be_named() {
    if TcpListener::bind("[::1]:0").is_err() {
        eprintln!("there is no IPv6 on this machine's loopback");
        return;
    }
    let (_serving, urls) = serve(&["--bind", "::1", "--port", "0"]);
    assert!(urls[0].starts_with("redis://[::1]:"), "{urls:?}");
    let ended = start_over(&urls, &["-n"], &SHOW).end();
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "runs\n"), "{}", ended.err);
}

#[test]
fn the_help_of_master_fits_80_columns() {
    for words in [&["master", "--help"][..], &["master", "-h"], &["master", "--port", "0", "-h"]] {
        let ended = Running::of(&mut quorlock(words)).end_by_itself();
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{words:?}");
        assert!(ended.out.contains("Usage: quorlock master"), "{}", ended.out);
        assert!(ended.out.contains("not servers for production"), "{}", ended.out);
        assert!(ended.out.lines().all(|line| line.chars().count() <= 80), "{}", ended.out);
    }
}

#[test]
fn masters_lack_the_features_of_the_chosen_dialect() {
    let (_serving, urls) = serve(&["--port", "0", "--like", "twemproxy"]);
    let ended = start_over(&urls, &["-n"], &SHOW).end();
    assert_eq!(ended.code, Some(69), "{}", ended.err);
    assert!(ended.err.contains("closed before any answer: is this a TLS port"), "{}", ended.err);

    let refused = Running::of(&mut quorlock(&["master", "--port", "0", "--like", "other"])).end();
    let expected =
        "quorlock: --like needs one of these: redis, enterprise, kvrocks, garnet, envoy, twemproxy.\n";
    assert_eq!((refused.code, refused.err.as_str()), (Some(64), expected));
}

#[test]
fn bootstrap_looks_through_masters_in_memory() {
    let (_serving, urls) = serve(&["--port", "0"]);
    let call = |words: &[&str]| Running::of(&mut quorlock(&[words, &["-m", &urls[0]]].concat())).end();
    let fenced = call(&["acquire", "--fenced", "--ttl", "1s", "job"]);
    assert_eq!(fenced.code, Some(0), "{}", fenced.err);
    let used = call(&["bootstrap", "--restart-guard", "1m"]);
    assert_eq!(used.code, Some(1), "{}", used.err);
    assert!(used.err.contains("has a fencing counter (quorlock:fence/{job})"), "{}", used.err);

    let (_serving, urls) = serve(&["--port", "0"]);
    let told = Running::of(&mut quorlock(&["bootstrap", "--restart-guard", "1m", "-m", &urls[0]])).end();
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(!told.err.contains("not fully searched"), "{}", told.err);
}
