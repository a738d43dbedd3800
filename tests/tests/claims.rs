//! The scripts of several targets, of shared ones and of seats on a real server: the tests of the
//! model of a master, and the effects on keys if a command inside a script is denied.

// Helpers of tests may panic, like the tests themselves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, unreachable_pub)]

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use quorlock_sim::CommandKind::{
    self, AcquireAll, AcquireFencedGuarded, AcquireGuarded, Enter, Extend, ExtendAll, ExtendFenced, HealAll,
    HealFenced, KeepAll, KeepLeaving, Leave, RaiseAll, ReleaseAll, Take,
};
use quorlock_tests::{RawClient, RedisServer, Value};

#[macro_use]
#[path = "../shared/claims_tests.rs"]
mod claims_tests;
#[path = "../shared/claims.rs"]
mod claims;
#[path = "claims/denied.rs"]
mod denied;
#[path = "claims/replicas.rs"]
mod replicas;
#[path = "claims/told.rs"]
mod told;
use claims::{Claim, Desk, Waiter, called, full, key, sentinel, take, take_behind};

struct Real {
    _server: RedisServer,
    client: RawClient,
}

impl Real {
    fn start() -> Self {
        let server = RedisServer::start();
        let client = server.client().unwrap();
        Self { _server: server, client }
    }
}

impl Desk for Real {
    fn ask(&mut self, arguments: &[&str]) -> String {
        written(&self.client.command(arguments))
    }

    fn pass(&mut self, millis: u64) {
        thread::sleep(Duration::from_millis(millis));
    }
}

fn written(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        Value::Nil => "nil".into(),
        Value::Error(text) => format!("-{text}"),
        Value::Array(parts) => {
            let parts: Vec<_> = parts.iter().map(written).collect();
            format!("[{}]", parts.join(" "))
        }
        Value::Simple(_) | Value::Bulk(_) => value.text().unwrap().into(),
    }
}

test_claims! {
    on Real::start(),
    #[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
}

/// States that a script may find, and commands that create them.
const FOUND: [(&str, &[&[&str]]); 15] = [
    ("nothing", &[]),
    ("our token", &[&["SET", "x", "TOKEN", "PX", "5000"], OURS]),
    ("another reader", &[&["SET", "x", "SENTINEL r", "PX", "5000"]]),
    ("another reader, and a free entry", &[&["SET", "x", "SENTINEL -FREE r", "PX", "5000"]]),
    ("our entry, the last one", &[&["SET", "x", "SENTINEL t", "PX", "5000"], OURS]),
    ("another entry, and ours that ends later", &[&["SET", "x", "SENTINEL r t", "PX", "5000"], OURS]),
    ("our entry and another", &[&["SET", "x", "SENTINEL t r", "PX", "5000"], OURS]),
    ("another writer", &[&["SET", "x", "w", "PX", "5000"], &["SET", "y", "w", "PX", "5000"]]),
    ("a key that was kept", &[&["SET", "y", "KEPT", "PX", "99999"]]),
    ("a mark of ours for the next seat", &[&["SET", "quorlock:seat:next/{s}", "1 1 a1", "PX", "5000"]]),
    ("a place before ours that has ended", &[&["ZADD", "QUEUE", "1", "dead"], &["PEXPIRE", "QUEUE", "5000"]]),
    (
        "a place before ours that lives",
        &[&["ZADD", "QUEUE", "1", "q"], &["PEXPIRE", "QUEUE", "5000"], &["SET", "NEXT", "1", "PX", "900"]],
    ),
    (
        "our place, and one behind it that lives",
        &[
            &["ZADD", "QUEUE", "1", "p"],
            &["ZADD", "QUEUE", "2", "q"],
            &["PEXPIRE", "QUEUE", "5000"],
            &["SET", "NEXT", "2", "PX", "900"],
            &["SET", "x", "t", "PX", "5000"],
        ],
    ),
    (
        "another writer, and another mark for the next seat",
        &[&["SET", "x", "w", "PX", "5000"], &["SET", "quorlock:seat:next/{s}", "1 1 b2", "PX", "5000"]],
    ),
    ("a value without entries", &[&["SET", "x", "SENTINEL", "PX", "5000"]]),
];
const OURS: &[&str] = &["SET", "y", "TOKEN", "PX", "5000"];

const KINDS: [CommandKind; 10] =
    [AcquireAll, RaiseAll, ExtendAll, HealAll, ReleaseAll, KeepAll, Take, Enter, Leave, KeepLeaving];

/// Creates a part of the state.
fn make(desk: &mut Real, words: &[&str]) {
    // The entries end in the far future, each later than the one before it.
    let shared_by = |tokens: &str| {
        let ends = 99_999_999_999_900_u64..;
        let entries = ends.zip(tokens.split_whitespace());
        let entry = |(end, token): (u64, &str)| match token {
            "-FREE" => format!("{:016}:{}", 0, full("")),
            token => format!("{end:016}:{}", full(token)),
        };
        let entries: Vec<_> = entries.map(entry).collect();
        format!("{}{}", sentinel(""), entries.concat())
    };
    let meant = |word: &&str| match *word {
        "TOKEN" => full("t"),
        "KEPT" => sha1_smol::Sha1::from(full("t")).digest().to_string(),
        word if word.starts_with("SENTINEL") => shared_by(&word[8..]),
        "QUEUE" => key("queue", "x"),
        "NEXT" => format!("{}:q", key("place", "x")),
        word => word.to_owned(),
    };
    let words: Vec<_> = words.iter().map(meant).collect();
    let reply = desk.ask(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(!reply.starts_with('-'), "{reply}");
}

/// The words of a request for one claim that reads `x` and writes `y`.
fn asked(kind: CommandKind) -> Vec<String> {
    let claim = Claim { read: &["x"], ..Claim::write("t", &["y"]) }.raised_to(7);
    match kind {
        AcquireAll => claim.with("fgmi").words(kind),
        ReleaseAll => claim.with("mt").words(kind),
        KeepAll => claim.words(kind),
        Enter => Waiter { flags: "fg", ..Waiter::new("p", "t") }.words(kind),
        Leave | KeepLeaving => Waiter::new("p", "t").words(kind),
        Take => take_behind("t", 1, &["x", "y"], "fg", Some(("a1", 9))),
        _ => claim.with("f").words(kind),
    }
}

/// The permissions from the page for operators: those that scripts of any lock need, and those for
/// each kind of lock.
const ANY: &str = "+set +get +del +pttl +pexpire +eval";
const BESIDES: [&str; 4] = [
    "+exists +mget",
    "~quorlock:want* +append +exists +mget +setrange +time",
    "~quorlock:seat* +exists +mget",
    "~quorlock:place* ~quorlock:queue* +zadd +zrange +zrem",
];

/// All requests of a kind of lock.
fn calls(kind: usize) -> Vec<Vec<String>> {
    let all = |claim: Claim<'_>| {
        let mut calls: Vec<_> = [AcquireAll, ExtendAll, HealAll].map(|kind| claim.words(kind)).into();
        calls.extend([claim.words(KeepAll), claim.with("t").words(ReleaseAll)]);
        calls
    };
    match kind {
        0 => all(Claim::write("t", &["x", "y"])),
        1 => {
            let waiting = Claim::write("t", &["x"]);
            let waits = [waiting.with("m").words(AcquireAll), waiting.with("mt").words(ReleaseAll)];
            [all(Claim::read("t", &["x"])), waits.into(), all(Claim::read("t", &["x"]))].concat()
        }
        3 => {
            let (own, next) = (Waiter::new("p", "t"), Waiter::new("q", "u"));
            let entered = [own, next, Waiter { flags: "s", ..next }].map(|waiter| waiter.words(Enter));
            let left = [(own, Leave), (next, KeepLeaving)].map(|(waiter, kind)| waiter.words(kind));
            [entered.as_slice(), &left].concat()
        }
        _ => {
            let seats = [0, 1].map(|index| key(&format!("seat:{index}"), "gpu"));
            let seats = seats.each_ref().map(String::as_str);
            let released = Claim::write("b", &seats).with("t").words(ReleaseAll);
            [["a", "b", "c"].map(|token| take(token, 1, &seats, "-")).into(), vec![released]].concat()
        }
    }
}

/// The first command that is denied to a user with these rules.
fn denied(desk: &mut Real, user: &mut RawClient, kind: usize, rules: &str) -> Option<String> {
    let rules = format!("ACL SETUSER few reset on nopass ~x ~y {rules}");
    assert_eq!(desk.ask(&rules.split_whitespace().collect::<Vec<_>>()), "OK");
    assert!(user.command(&["AUTH", "few", "any"]).is_ok());
    FOUND.iter().find_map(|(_, made_by)| {
        desk.ask(&["FLUSHALL"]);
        made_by.iter().for_each(|words| make(desk, words));
        let replies: Vec<_> = calls(kind).iter().map(|words| written(&user.command(words))).collect();
        replies.into_iter().find(|reply| reply.starts_with('-'))
    })
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn the_permissions_that_the_page_names_for_a_kind_are_enough_and_none_is_too_much() {
    let page = include_str!("../../core/docs/masters.md");
    let mut desk = Real::start();
    let mut user = desk._server.client().unwrap();
    for (kind, besides) in BESIDES.iter().enumerate() {
        assert!(page.contains(&format!("| `{besides}` |")), "{besides}");
        assert_eq!(denied(&mut desk, &mut user, kind, &format!("{ANY} {besides}")), None);
        for missing in besides.split(' ') {
            let others: Vec<_> = besides.split(' ').filter(|word| *word != missing).collect();
            let reply = denied(&mut desk, &mut user, kind, &format!("{ANY} {}", others.join(" ")));
            assert!(reply.is_some(), "{missing} is not needed");
        }
    }
}

/// A request for a vote that lets a key live for only a second from now.
fn asked_for_a_vote(kind: CommandKind) -> Vec<String> {
    let claim = Claim { read: &["x"], ..Claim::write("t", &["y"]) }.living(1_000);
    let (is_fenced, is_guarded) = match kind {
        AcquireAll => return claim.with("fgi").words(kind),
        ExtendAll | HealAll => return claim.words(kind),
        Take | Enter => return asked(kind),
        AcquireGuarded => (false, true),
        AcquireFencedGuarded => (true, true),
        _ => (kind != Extend, false),
    };
    let mut keys = vec!["y".to_owned()];
    let mut values = vec![full("t"), "1000".to_owned()];
    if is_fenced {
        keys.push(key("fence", "y"));
        values.push("1".to_owned());
    }
    if is_guarded {
        keys.push("quorlock:restart-guard".to_owned());
        values.extend(["500", "3"].map(str::to_owned));
    }
    called(kind, keys, values)
}

/// A master that becomes a replica of another one loses its votes, and gets copies of that one's
/// keys. (A raised counter is not listed here: only masters that granted the same attempt are asked
/// to raise theirs.)
#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_replica_votes_with_none_of_its_copies() {
    let kinds = [
        AcquireGuarded,
        AcquireFencedGuarded,
        Extend,
        ExtendFenced,
        HealFenced,
        AcquireAll,
        ExtendAll,
        HealAll,
        Take,
        Enter,
    ];
    let mut desk = Real::start();
    let mut granted = [BTreeSet::new(), BTreeSet::new()];
    for (is_replica, granted) in [false, true].into_iter().zip(&mut granted) {
        for kind in kinds {
            for (_, made_by) in FOUND {
                desk.ask(&["FLUSHALL"]);
                votes(&mut desk);
                made_by.iter().for_each(|words| make(&mut desk, words));
                if is_replica {
                    desk.ask(&["REPLICAOF", "127.0.0.1", "1"]);
                }
                let words = asked_for_a_vote(kind);
                let reply = desk.ask(&words.iter().map(String::as_str).collect::<Vec<_>>());
                if reply.starts_with("[seats") || reply.parse().is_ok_and(|number: u64| number > 0) {
                    granted.insert(kind);
                }
                desk.ask(&["REPLICAOF", "NO", "ONE"]);
            }
        }
    }
    let [by_masters, by_replicas] = granted;
    assert_eq!(by_replicas, BTreeSet::new());
    assert_eq!(by_masters, BTreeSet::from(kinds), "else this test looks at too little");
}

/// Makes the master vote, even if it has lost data.
fn votes(desk: &mut Real) {
    let claim = Claim::write("nobody", &["z"]).with("g");
    let words = claim.words(AcquireAll);
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    assert!(desk.ask(&words).starts_with("[quarantined"));
    let marker = desk.ask(&["GET", "quorlock:restart-guard"]);
    let mut parts: Vec<&str> = marker.split(' ').collect();
    parts[2] = parts[1];
    desk.ask(&["SET", "quorlock:restart-guard", &parts.join(" ")]);
}
