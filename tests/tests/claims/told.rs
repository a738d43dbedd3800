//! What an inspection reports to a user who may not use each of its commands, or not each of its
//! keys: the rest of the report.

use quorlock_sim::CommandKind::Inspect;
use quorlock_tests::{RawClient, Value};

use crate::claims::{Claim, Desk, called, full, key};
use crate::{AcquireAll, Real, written};

const FIELDS: [&str; 9] =
    ["keys", "sharers", "group", "mark", "seconds", "microseconds", "marker", "server", "replication"];
const MARKER: &str = "quorlock:restart-guard";
const KEYS: &str = "~x ~quorlock:want* ~quorlock:restart-guard";

/// The fields of the report, with `#` in the place of numbers: they change with the time.
fn told(user: &mut RawClient) -> Result<Vec<String>, String> {
    let values = vec![full("r"), MARKER.to_owned(), key("want", "x")];
    let words = called(Inspect, vec!["x".to_owned()], values);
    let reply = user.command(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let Value::Array(fields) = &reply else { return Err(written(&reply)) };
    let masked = |field| {
        let mut text = written(field).replace(|char: char| char.is_ascii_digit(), "#");
        while text.contains("##") {
            text = text.replace("##", "#");
        }
        text
    };
    Ok(fields.iter().map(masked).collect())
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn an_inspection_reports_everything_but_what_its_user_may_not_read() {
    let mut desk = Real::start();
    let mut user = desk._server.client().unwrap();
    for (token, life) in [("r", "10000"), ("s", "20000")] {
        let claim = Claim { life: life.parse().unwrap(), ..Claim::read(token, &["x"]) }.of("team");
        let words = claim.words(AcquireAll);
        assert_eq!(desk.ask(&words.iter().map(String::as_str).collect::<Vec<_>>()), "1");
    }
    desk.ask(&["SET", &key("want", "x"), "a wait", "PX", "60000"]);
    desk.ask(&["SET", MARKER, "a marker"]);
    let mut ask = |rules: &str| {
        let rules = format!("ACL SETUSER few reset on nopass {rules}");
        assert_eq!(desk.ask(&rules.split(' ').collect::<Vec<_>>()), "OK");
        assert!(user.command(&["AUTH", "few", "any"]).is_ok());
        told(&mut user)
    };
    let all = ask(&format!("{KEYS} +@all")).unwrap();
    assert_eq!([2, 3, 4, 5, 6].map(|field| all[field].as_str()), ["team", "#", "#", "#", "a marker"]);
    assert_eq!(all[1].lines().count(), 2);
    let without = [
        (format!("{KEYS} +@all -time"), vec![("sharers", "denied"), ("seconds", ""), ("microseconds", "")]),
        (format!("{KEYS} +@all -info"), vec![("server", ""), ("replication", "")]),
        (format!("~x ~{MARKER} +@all"), vec![("mark", "-#")]),
        ("~x ~quorlock:want* +@all".to_owned(), vec![("marker", "denied")]),
    ];
    for (rules, expected) in without {
        let told = ask(&rules).unwrap();
        let differ = FIELDS.iter().zip(all.iter().zip(&told)).filter(|(_, (all, told))| all != told);
        let differ: Vec<_> = differ.map(|(field, (_, told))| (*field, told.as_str())).collect();
        assert_eq!(differ, expected, "{rules}");
    }
    for command in ["get", "pttl"] {
        let error = ask(&format!("{KEYS} +@all -{command}")).unwrap_err();
        assert!(error.starts_with('-'), "without {command}: {error}");
    }
}
