//! What scripts do on a master with replicas: what they read in its report of them, and that each
//! vote is a write.

use quorlock_sim::CommandKind::{self, AcquireGuarded, Attend, Extend, Heal, Open, Take};

use crate::claims::{Desk, called_as, full};
use crate::{Real, written};

const MARKER: &str = "quorlock:restart-guard";
/// What a script reads.
const INFO: &str = "redis.pcall('INFO', 'replication')";

/// A call of the form for masters with replicas. The last value counts them: 1003 for none.
fn called(kind: CommandKind, keys: &[&str], values: &[&str]) -> Vec<String> {
    let owned = |words: &[&str]| words.iter().map(ToString::to_string).collect();
    called_as(kind.replicated_script().unwrap().0, owned(keys), owned(values))
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_master_votes_only_with_exactly_the_declared_replicas_each_fresh_and_at_its_own_address() {
    let mut desk = Real::start();
    let one = "ip=10.0.0.1,port=6379,state=online,offset=9,lag=0";
    let another = "ip=10.0.0.2,port=6379,state=online,offset=9,lag=1";
    let late = another.replace("lag=1", "lag=2");
    let set_back = another.replace("lag=1", "lag=-1");
    let joining = another.replace("online", "wait_bgsave");
    let backup = another.replace("port=6379", "port=0");
    let other_port = one.replace("6379", "6380");
    for (replicas, connected, said) in [
        (&[one, another][..], 2, "[quarantined "),
        (&[one, &other_port], 2, "[quarantined "),
        (&[one], 1, "[alone 1 1]"),
        (&[], 0, "[alone 0 0]"),
        (&[one, &late], 2, "[alone 1 2]"),
        (&[one, &set_back], 2, "[alone 1 2]"),
        (&[one, &joining], 2, "[alone 1 2]"),
        (&[one, &backup], 2, "[alone 1 2]"),
        (&[one, one], 2, "[alone 1 2]"),
        (&[one, another, &other_port], 3, "[alone 3 3]"),
        (&[one, another, &late], 3, "[alone 2 3]"),
        (&[one, another], 3, "[alone 2 3]"),
        (&[one, another], 1, "[alone 2 1]"),
    ] {
        let lines = replicas.iter().enumerate().map(|(number, line)| format!("slave{number}:{line}\\r\\n"));
        let lines: String = lines.collect();
        let told = format!(
            "role:master\\r\\nconnected_slaves:{connected}\\r\\n{lines}master_replid:0123456789abcdef\\r\\n"
        );
        let mut words = called(Attend, &[MARKER], &["500", "3003"]);
        // As if the server told this.
        words[1] = words[1].replace(INFO, &format!("redis.pcall('ECHO', '{told}')"));
        desk.ask(&["FLUSHALL"]);
        let reply = desk.ask(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(reply.starts_with(said), "{replicas:?}, {connected} connected: {reply}, and not {said}");
    }
}

/// A server that has become a replica refuses only writes.
#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn each_vote_of_a_master_with_replicas_is_a_write() {
    let mut desk = Real::start();
    let mut user = desk._server.client().unwrap();
    let token = full("t");
    let fleet = ["500", "1003"];
    let lock = [&token, "9000", fleet[0], fleet[1]];
    let seat = [&token, "9000", "1", "g", "1", fleet[0], fleet[1]];
    // Whether the master votes, what is there before, the call, and the command of the write.
    for (is_open, found, words, denied) in [
        (true, "", called(AcquireGuarded, &["y", MARKER], &lock), "pexpire"),
        (true, "", called(AcquireGuarded, &["y", MARKER], &lock), "pttl"),
        (true, "", called(Take, &["y", "next", MARKER], &seat), "pexpire"),
        (false, "", called(Heal, &["y", MARKER], &lock), "pexpire"),
        (true, &token, called(Extend, &["y", MARKER], &lock), "set"),
    ] {
        for rule in ["+@all", &format!("-{denied}")] {
            desk.ask(&["ACL", "SETUSER", "few", "reset", "on", "nopass", "~*", "+@all", rule]);
            assert!(user.command(&["AUTH", "few", "any"]).is_ok());
            desk.ask(&["FLUSHALL"]);
            if is_open {
                let open = called(Open, &[MARKER], &fleet);
                assert_eq!(desk.ask(&open.iter().map(String::as_str).collect::<Vec<_>>()), "1");
            }
            if !found.is_empty() {
                desk.ask(&["SET", "y", found]);
            }
            let reply = written(&user.command(&words));
            let is_denial = reply.contains("can't run this command") || reply.contains("has no permissions");
            assert_eq!(is_denial, rule != "+@all", "{rule}: {reply}");
            assert!(is_denial || reply == "1" || reply.starts_with("[seats") || reply.starts_with("[ours"));
        }
    }
}
