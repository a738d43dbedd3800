//! What scripts do on a server whose user may not call each of their commands, or may not write
//! each of their keys; and on one that tells less of itself.

use std::collections::BTreeSet;

use quorlock_sim::CommandKind::{
    self, AcquireFenced, AcquireReading, Attend, ForceRelease, Heal, Keep, Open, Raise, Release, ReleaseAny,
    Undo,
};

use crate::claims::{Claim, Desk, called_as, full, key};
use crate::{
    AcquireAll, AcquireFencedGuarded, AcquireGuarded, Enter, Extend, ExtendAll, ExtendFenced, FOUND, HealAll,
    HealFenced, KINDS, KeepAll, KeepLeaving, Leave, Real, ReleaseAll, Take, asked, make, votes, written,
};

/// The scripts of one lock, with their keys (the lock, a counter, the marker) and their values: a
/// token, a life, a number, a digest, and the numbers of the fleet.
const PLAIN: [(CommandKind, &str, &str); 16] = [
    (Release, "y", "t"),
    (Extend, "y", "tl"),
    (Undo, "y", "t"),
    (Keep, "y", "tl"),
    (ForceRelease, "y", "d"),
    (ReleaseAny, "x", "t"),
    (AcquireReading, "y", "tl"),
    (AcquireFenced, "yc", "tl"),
    (Raise, "yc", "tn"),
    (ExtendFenced, "yc", "tln"),
    (HealFenced, "yc", "tln"),
    (AcquireGuarded, "ym", "tlf"),
    (AcquireFencedGuarded, "ycm", "tlf"),
    (Heal, "ym", "tlf"),
    (Attend, "m", "f"),
    (Open, "m", "f"),
];

fn text(kind: CommandKind) -> &'static str {
    kind.script().or(kind.guarded_script()).unwrap().0
}

/// The words of requests of each script. The most common claims take a shorter way through theirs,
/// so they are here beside the others.
fn requests() -> Vec<(CommandKind, Vec<String>)> {
    let plain = PLAIN.map(|(kind, keys, values)| {
        let keys = keys.chars().map(|name| match name {
            'c' => key("fence", "y"),
            'm' => "quorlock:restart-guard".to_owned(),
            name => name.to_string(),
        });
        let values = values.chars().flat_map(|value| match value {
            't' => vec![full("t")],
            'l' => vec!["9000".to_owned()],
            'n' => vec!["7".to_owned()],
            'd' => vec![sha1_smol::Sha1::from(full("t")).digest().to_string()[..16].to_owned()],
            _ => ["500", "3"].map(str::to_owned).to_vec(),
        });
        (kind, called_as(text(kind), keys.collect(), values.collect()))
    });
    let common = [
        (AcquireAll, Claim::write("t", &["x", "y"]).with("f")),
        (AcquireAll, Claim::read("t", &["x"])),
        (ReleaseAll, Claim::write("t", &["x", "y"])),
        (ReleaseAll, Claim::read("t", &["x"])),
    ];
    let common = common.map(|(kind, claim)| (kind, claim.words(kind)));
    plain.into_iter().chain(KINDS.map(|kind| (kind, asked(kind)))).chain(common).collect()
}

/// What a user may not do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Denied {
    /// Call this command.
    Call(&'static str),
    /// Set the counters, while it may set other keys. Redis and Valkey know such rules since 7.0.
    Counters,
    /// Set the locks, while it may set other keys.
    Locks,
}

/// The commands that a script calls, the counters and the locks.
fn denials(kind: CommandKind) -> BTreeSet<Denied> {
    let calls = ["call('", "all('", "told('"].into_iter().flat_map(|call| text(kind).split(call).skip(1));
    let calls = calls.filter_map(|rest| rest.split('\'').next()).map(Denied::Call);
    calls.chain([Denied::Counters, Denied::Locks]).collect()
}

/// Everything that the server holds, with the expiries as far as they do not depend on the time.
fn contents(desk: &mut Real) -> String {
    desk.ask(&[
        "EVAL",
        "local all = {} \
         for _, key in ipairs(redis.call('KEYS', '*')) do \
           local value = redis.pcall('GET', key) \
           if type(value) == 'table' then \
             value = table.concat(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES'), '-') \
           end \
           all[#all + 1] = key .. '=' .. value .. (redis.call('PTTL', key) < 0 and '=stays' or '=ends') \
         end \
         table.sort(all) \
         return table.concat(all, '\\n')",
        "0",
    ])
}

/// The text with `#` in the place of instants.
fn timeless(text: &str) -> String {
    let mut masked = String::new();
    let mut digits = String::new();
    for char in text.chars().chain([' ']) {
        if char.is_ascii_digit() {
            digits.push(char);
            continue;
        }
        masked.push_str(if digits.len() < 10 { &digits } else { "#" });
        digits.clear();
        masked.push(char);
    }
    masked
}

/// What a reply says, without how long something lasts.
fn meaning(reply: &str) -> String {
    match reply.split_once(' ') {
        Some((word, _)) if reply.starts_with('[') => word.to_owned(),
        _ => timeless(reply),
    }
}

/// The reply to a request in a state that it finds, and what is there behind it.
fn outcome(
    desk: &mut Real,
    user: &mut quorlock_tests::RawClient,
    request: &[String],
    made_by: &[&[&str]],
) -> (String, String) {
    desk.ask(&["FLUSHALL"]);
    votes(desk);
    made_by.iter().for_each(|words| make(desk, words));
    (written(&user.command(request)), contents(desk))
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_command_that_is_denied_is_reported_or_changes_nothing_and_no_key_stays_without_an_expiry() {
    let mut desk = Real::start();
    let mut user = desk._server.client().unwrap();
    let (mut failed, mut hidden) = (BTreeSet::new(), BTreeSet::new());
    let requests = requests();
    for (kind, request) in &requests {
        desk.ask(&["ACL", "SETUSER", "few", "reset", "on", "nopass", "~*", "+@all"]);
        assert!(user.command(&["AUTH", "few", "any"]).is_ok());
        let usual = FOUND.map(|(_, made_by)| outcome(&mut desk, &mut user, request, made_by));
        for denied in denials(*kind) {
            let rules = match denied {
                Denied::Call(command) => format!("~* +@all -{}", command.to_lowercase()),
                Denied::Counters => "~* +@all -set (+set ~x ~y ~quorlock:[^f]*)".to_owned(),
                Denied::Locks => "~* +@all -set (+set ~quorlock:*)".to_owned(),
            };
            let rules = format!("ACL SETUSER few reset on nopass {rules}");
            if desk.ask(&rules.split(' ').collect::<Vec<_>>()).starts_with('-') {
                continue;
            }
            assert!(user.command(&["AUTH", "few", "any"]).is_ok());
            for ((found, made_by), usual) in FOUND.iter().zip(&usual) {
                let (reply, left) = outcome(&mut desk, &mut user, request, made_by);
                let forever = left.lines().filter(|held| held.contains("=stays"));
                let forever: Vec<_> = forever
                    .filter(|held| {
                        !held.contains("quorlock:fence") && !held.contains("quorlock:restart-guard")
                    })
                    .collect();
                assert!(forever.is_empty(), "{kind} without {denied:?}, {found}: {forever:?}");
                // Redis 7.0 and older, and newer servers.
                let denials = ["can't run this command", "can't access", "has no permissions to", "NOPERM"];
                if denials.iter().any(|denial| reply.contains(denial)) {
                    assert!(reply.starts_with('-'), "{kind} without {denied:?}, {found}: {reply}");
                    failed.insert((*kind, denied));
                } else if (meaning(&reply), timeless(&left)) != (meaning(&usual.0), timeless(&usual.1)) {
                    println!("{kind} without {denied:?}, {found}: {reply} {left} and not {usual:?}");
                    hidden.insert((*kind, denied));
                }
            }
        }
    }
    // A mark or a place that cannot be written or removed expires, as does a key that is kept and
    // still has its token. A key that cannot be read counts as one that is there.
    let call = |kind, command| (kind, Denied::Call(command));
    let harmless = [
        call(HealFenced, "GET"),
        call(KeepAll, "SET"),
        (KeepAll, Denied::Locks),
        call(Take, "DEL"),
        call(Take, "SET"),
        call(Keep, "SET"),
        (Keep, Denied::Locks),
        call(Leave, "ZRANGE"),
        call(Leave, "ZREM"),
        call(KeepLeaving, "SET"),
        call(KeepLeaving, "ZRANGE"),
        call(KeepLeaving, "ZREM"),
        (KeepLeaving, Denied::Locks),
        call(Heal, "GET"),
    ];
    assert_eq!(hidden, BTreeSet::from(harmless));
    // An acquisition reads its counters with GET if it may not use MGET. An extension finds its own
    // entry. The marker is there. In none of these states are the numbers of a queue used up, does
    // a place end behind a lock that another client holds, or is our own lock kept already.
    let needless = [call(AcquireAll, "MGET"), call(ExtendAll, "APPEND"), call(Attend, "SET")];
    let of_queues =
        [(Enter, "DEL"), (Leave, "PEXPIRE"), (Leave, "PTTL"), (KeepLeaving, "DEL"), (KeepLeaving, "PTTL")];
    let of_queues = of_queues.map(|(kind, command)| call(kind, command));
    let needless = needless.into_iter().chain(of_queues).chain(harmless);
    let kinds = requests.iter().map(|(kind, _)| *kind);
    let all = kinds.flat_map(|kind| denials(kind).into_iter().map(move |denied| (kind, denied)));
    let all = all.filter(|(_, denied)| matches!(denied, Denied::Call(_)));
    let never = all.filter(|call| !failed.contains(call));
    let unexpected: Vec<_> = never.filter(|call| !needless.clone().any(|known| known == *call)).collect();
    assert!(unexpected.is_empty(), "else this test looks at too little: {unexpected:?}");
    let failed_for = |denied| -> BTreeSet<CommandKind> {
        let calls = failed.iter().filter(|call| call.1 == denied);
        calls.map(|call| call.0).collect()
    };
    let [by_counters, by_locks] = [Denied::Counters, Denied::Locks].map(failed_for);
    if !by_locks.is_empty() {
        let counts = |request: &[String]| request.iter().any(|word| word.starts_with("quorlock:fence"));
        let numbered = requests.iter().filter(|(_, request)| counts(request)).map(|(kind, _)| *kind);
        assert_eq!(by_counters, numbered.collect());
        let set_locks = [AcquireReading, AcquireGuarded, AcquireFenced, AcquireFencedGuarded, AcquireAll];
        let others = [Heal, HealFenced, HealAll, ExtendAll, KeepAll, Take, Enter];
        assert_eq!(by_locks, set_locks.into_iter().chain(others).collect());
    }
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_server_that_tells_no_replication_id_gives_no_votes() {
    let mut desk = Real::start();
    let mut tried = 0;
    for (kind, mut request) in requests() {
        // As if this were all that the server tells of its replication.
        let told =
            request[1].replace("redis.pcall('INFO', 'replication')", "redis.pcall('ECHO', 'role:master')");
        let is_guarded = request.iter().any(|word| word == "quorlock:restart-guard");
        if told == request[1] || !is_guarded {
            continue;
        }
        request[1] = told;
        desk.ask(&["FLUSHALL"]);
        let reply = desk.ask(&request.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(reply.contains("INFO tells no master_replid"), "{kind}: {reply}");
        assert_eq!(desk.ask(&["EXISTS", "quorlock:restart-guard"]), "0", "{kind}");
        tried += 1;
    }
    assert_eq!(tried, 8, "else this test looks at too little");
}
