//! What `quorlock doctor` reports about encrypted connections.

use std::time::{Duration, SystemTime};

use quorlock_tests::rcgen::date_time_ymd;
use quorlock_tests::{Certificates, NAMES, RedisServer, ServerOptions};

use crate::running::{Ended, Running, quorlock};

#[track_caller]
fn doctor(words: &[&str]) -> Ended {
    Running::of(&mut quorlock(&[&["doctor"], words].concat())).end()
}

/// Runs `quorlock doctor` on a server whose issuer is trusted.
#[track_caller]
fn ask(server: &RedisServer, certificates: &Certificates, more: &[&str]) -> Ended {
    let url = format!("rediss://{}?cacert={}", server.address(), certificates.root().display());
    doctor(&[more, &[&url]].concat())
}

/// Starts a server with this TLS version.
fn server(version: &str, certificates: &Certificates) -> RedisServer {
    let options = ServerOptions::new().append_only().config(&format!("tls-protocols {version}"));
    options.tls(certificates, "no").start()
}

/// Certificates, of which the server's expires after `hours`.
fn ending_in(hours: u64) -> Certificates {
    let end = SystemTime::now() + Duration::from_secs(hours * 60 * 60);
    Certificates::own(NAMES, |params| params.not_after = end.into())
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn the_version_and_the_end_of_the_certificate_are_reported() {
    // Dates up to 2049 are written in one form, and later ones in another.
    for (version, year) in [("TLSv1.2", 2049), ("TLSv1.3", 2049), ("TLSv1.3", 2050)] {
        let own = Certificates::own(NAMES, |params| params.not_after = date_time_ymd(year, 12, 31));
        let told = ask(&server(version, &own), &own, &[]);
        assert_eq!((told.code, told.err.as_str()), (Some(0), ""), "{}", told.out);
        let line = told.out.lines().find(|line| line.trim_start().starts_with("TLS ")).expect(&told.out);
        let version = version.replace("TLSv", "TLS ");
        let (begin, end) =
            (format!("  {version}; its certificate ends in "), format!(" days, {year}-12-31T00:00:00Z"));
        let days = line.strip_prefix(&begin).and_then(|line| line.strip_suffix(&end)).expect(line);
        assert!(days.parse::<u32>().is_ok(), "{line}");
    }
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_certificate_that_ends_within_two_weeks_is_warned_of() {
    for (hours, says, is_soon) in [
        (20, "ends in less than a day, ", true),
        (36, "ends in 1 day, ", true),
        (14 * 24 - 1, "ends in 13 days, ", true),
        (14 * 24 + 1, "ends in 14 days, ", false),
    ] {
        let own = ending_in(hours);
        let server = server("TLSv1.3", &own);
        let told = ask(&server, &own, &[]);
        // Nothing is broken yet.
        assert_eq!(told.code, Some(0), "{}", told.out);
        assert!(told.out.contains(says), "{says}: {}", told.out);
        assert_eq!(told.out.contains(": WARNING: renew it now\n"), is_soon, "{hours}: {}", told.out);
        let told = ask(&server, &own, &["--json"]);
        let part = "\"tls\":\"TLS 1.3\",\"certificate_ends\":\"2";
        assert!(told.out.contains(part), "{}", told.out);
        assert!(told.out.contains(&format!("\"certificate_days\":{},", hours / 24)), "{}", told.out);
    }
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn masters_are_examined_over_tls() {
    let certificates = Certificates::shared();
    let master = ServerOptions::new().append_only().tls(certificates, "no").start();
    let secured = format!("rediss://{}", master.address());
    let root = certificates.root();
    let told = doctor(&["--cacert", root.to_str().unwrap(), &secured]);
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""), "{}", told.out);
    assert!(told.out.contains("AOF (appendfsync always)"), "{}", told.out);

    let others = Certificates::own(&[], |_| {});
    let told = doctor(&[&format!("{secured}?cacert={}", others.root().display())]);
    assert!(told.out.contains("from an issuer that is not trusted here"), "{}{}", told.out, told.err);
    let told = doctor(&[&format!("redis://{}", master.address())]);
    assert_eq!(told.code, Some(69), "{}", told.out);
    assert!(told.out.contains("closed before any answer: is this a TLS port"), "{}", told.out);
}

#[test]
fn no_tls_facts_are_reported_for_a_plain_connection() {
    let master = ServerOptions::new().start_embedded();
    let told = doctor(&[&master.url()]);
    assert!(!told.out.contains("TLS"), "{}", told.out);
    let told = doctor(&["--json", &master.url()]);
    let part = "\"tls\":null,\"certificate_ends\":null,\"certificate_days\":null,";
    assert!(told.out.contains(part), "{}", told.out);
}
