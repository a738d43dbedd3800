//! `quorlock cluster-plan`: tags whose slots are on different masters of a cluster.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crc16::{State, XMODEM};
use quorlock_blocking::Tls;
use quorlock_core::{Address, Cause, Endpoint, Failover, Security, ServerError};
use serde::Serialize;

use crate::arguments::ClusterPlanArguments;
use crate::asking::{self, Found, Reply, words};
use crate::ending::{Refusal, UNKEPT};
use crate::json;
use crate::output::{Level, Output, Verbosity, print, without_control};

/// How long all questions may take.
const WITHIN: Duration = Duration::from_secs(8);
/// The slots of a cluster (Redis cluster specification, "Key distribution model").
const SLOTS: u16 = 16_384;
/// Tags are tried in turn. This number is enough to find each of a thousand masters that share the
/// slots evenly.
const MOST_TAGS: u32 = 100_000;
/// How many nodes each URL names, if the cluster has them: a client that starts finds the tag
/// through any of them.
const NAMED: usize = 3;

/// A master of the cluster.
#[derive(Debug, PartialEq, Eq)]
struct Master {
    address: String,
    /// Its host name with its port, if it announces one.
    name: Option<String>,
    /// The first and the last slot of each range that the master has.
    slots: Vec<(u16, u16)>,
    /// All replicas, including those that are down: they may be promoted when they are back.
    replicas: usize,
}

#[derive(Serialize)]
struct Plan {
    tags: Vec<Tag>,
}

/// A tag and where its slot is.
#[derive(Serialize, Debug, PartialEq, Eq)]
struct Tag {
    tag: String,
    slot: u16,
    address: String,
    replicas: usize,
    url: String,
}

/// Prints the tags. Returns the exit code.
pub(crate) fn plan(arguments: &ClusterPlanArguments) -> u8 {
    let output = Output::new(Verbosity::Normal(0), arguments.json);
    match masters(arguments) {
        Err(refusal) => refusal.tell(None, &output),
        Ok((node, masters)) => {
            let tags = chosen(&node, &masters, arguments.masters.into());
            let found = tags.len();
            let text = if arguments.json { json::line(&Plan { tags }) } else { text(&tags) };
            let has_all = found == usize::from(arguments.masters);
            if !has_all {
                let sentence = format!(
                    "{found} masters of the cluster have slots, and {} tags were asked for",
                    arguments.masters
                );
                output.message(Level::Error, &sentence);
            }
            print(&text, if has_all { 0 } else { UNKEPT })
        }
    }
}

/// Asks one node after the other until one answers.
fn masters(arguments: &ClusterPlanArguments) -> Result<(Endpoint, Vec<Master>), Refusal> {
    let wrong = |sentence: &dyn ToString| Refusal::Configuration(sentence.to_string());
    let urls: Vec<_> = arguments.nodes.urls().collect();
    let given = arguments.nodes.tls.security().map_err(|error| wrong(&error))?;
    let security: Arc<dyn Security> = Arc::new(given.unwrap_or_else(Tls::system));
    let mut failure = String::new();
    let ends = Instant::now() + WITHIN;
    for (place, url) in urls.iter().enumerate() {
        let node: Endpoint =
            url.parse().map_err(|error| wrong(&format!("node {} of {}: {error}", place + 1, urls.len())))?;
        if node.tls().is_some() {
            security.prepare(std::slice::from_ref(&node)).map_err(|error| wrong(&error))?;
        }
        for address in &node.places().cloned().collect::<Vec<_>>() {
            match asked(&node, address, security.as_ref(), ends) {
                Ok(masters) => return Ok((node, masters)),
                Err(cause) if cause.is_configuration() => {
                    return Err(Refusal::Configuration(format!("{address} {cause}")));
                }
                Err(Cause::Server(ServerError::Other(_))) => {
                    return Err(Refusal::Configuration(format!("{address} is not a node of a cluster")));
                }
                Err(cause) => failure = format!("{address} {cause}"),
            }
        }
    }
    Err(Refusal::NoQuorum(failure))
}

fn asked(
    node: &Endpoint,
    address: &Address,
    security: &dyn Security,
    ends: Instant,
) -> Result<Vec<Master>, Cause> {
    let Found { mut conversation, address } =
        asking::open(node, address, Some(security), "quorlock-cluster-plan", ends)?;
    match conversation.ask(words(&["CLUSTER", "NODES"]))? {
        Reply::Error(error) => Err(Cause::Server(error)),
        answer => Ok(read(&answer.text().ok_or(Cause::UnexpectedReply)?, &address)),
    }
}

/// The masters that have slots, from lines `id address flags master ping pong epoch link slots…`
/// (Redis command page of CLUSTER NODES).
fn read(nodes: &str, present: &Address) -> Vec<Master> {
    let lines: Vec<Vec<&str>> = nodes.lines().map(|line| line.split(' ').collect()).collect();
    let master = |words: &Vec<&str>| {
        let [id, place, _, "-", _, _, _, _, slots @ ..] = words.as_slice() else { return None };
        // Slots that are being moved are in brackets, and also among the other slots of their
        // owner.
        let range = |slots: &&str| {
            let (first, last) = slots.split_once('-').unwrap_or((slots, slots));
            Some((first.parse().ok()?, last.parse().ok()?))
        };
        let slots: Vec<_> = slots.iter().filter_map(range).collect();
        // `ip:port@bus,hostname`, and in later versions more such fields, each with a name.
        let mut fields = place.split(',');
        let (host, port) = fields.next()?.split('@').next()?.rsplit_once(':')?;
        let hostname = fields.next().filter(|field| !field.is_empty() && !field.contains('='));
        let host = match (host, present) {
            // A node that does not know its own host is at the address at which it was asked.
            ("", Address::Tcp { host, .. }) => host,
            (host, _) => host,
        };
        let port = port.parse().ok()?;
        let [address, name] =
            [Some(host), hostname].map(|host| Some(Endpoint::tcp(host?, port).ok()?.address().to_string()));
        let replicas = lines.iter().filter(|words| words.get(3) == Some(id)).count();
        (!slots.is_empty()).then_some(Master { address: address?, name, slots, replicas })
    };
    lines.iter().filter_map(master).collect()
}

/// The first tags of `q0`, `q1`, … that are all on different masters.
fn chosen(node: &Endpoint, masters: &[Master], count: usize) -> Vec<Tag> {
    let mut taken = BTreeSet::new();
    let places = places(node, masters);
    let tags = (0..MOST_TAGS).map(|number| format!("q{number}")).filter_map(|tag| {
        let slot = slot(&tag);
        let has_it =
            |master: &Master| master.slots.iter().any(|(first, last)| (*first..=*last).contains(&slot));
        let (place, owner) = masters.iter().enumerate().find(|(_, master)| has_it(master))?;
        taken.insert(place).then(|| Tag {
            url: url(node, &places, &tag, owner.replicas),
            tag,
            slot,
            address: owner.address.clone(),
            replicas: owner.replicas,
        })
    });
    tags.take(count.min(masters.len())).collect()
}

/// The slot of all keys with this tag.
fn slot(tag: &str) -> u16 {
    State::<XMODEM>::calculate(tag.as_bytes()) % SLOTS
}

/// The nodes for the URLs: those that were given, and others. Over TLS their host names, because
/// certificates rarely have addresses.
fn places(node: &Endpoint, masters: &[Master]) -> Vec<String> {
    let mut places: Vec<_> = node.places().map(ToString::to_string).collect();
    let name = |master: &Master| master.name.clone().filter(|_| node.tls().is_some());
    for place in masters.iter().map(|master| name(master).unwrap_or_else(|| master.address.clone())) {
        if places.len() < NAMED && !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// The URL for a tag at these nodes, with the settings of the node's URL but without its password.
fn url(node: &Endpoint, places: &[String], tag: &str, replicas: usize) -> String {
    let secure = if node.tls().is_some() { "s" } else { "" };
    let mut url = format!("redis{secure}+cluster://");
    let has_password = node.password().is_some();
    if let Some(user) = node.user() {
        url += &encoded(user);
    }
    if has_password {
        url += ":PASSWORD";
    }
    if has_password || node.user().is_some() {
        url.push('@');
    }
    url += &places.join(",");
    // Writing to a string does not fail.
    let _ = write!(url, "/?tag={tag}");
    match (node.failover(), node.replicas(), replicas) {
        (Some(Failover::Durable), ..) => url += "&failover=durable",
        (Some(_), ..) => url += "&failover=may-lose-locks",
        (None, declared, present) => {
            let _ = write!(url, "&replicas={}", declared.map_or(present, usize::from));
        }
    }
    let tls = node.tls();
    let files = tls.and_then(|tls| tls.client_files());
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    for (name, value) in [
        ("password-file", node.password_file().map(text)),
        ("cacert", tls.and_then(|tls| tls.root_file()).map(text)),
        ("cert", files.map(|(certificate, _)| text(certificate))),
        ("key", files.map(|(_, key)| text(key))),
        ("sni", tls.and_then(|tls| tls.server_name()).map(str::to_owned)),
    ] {
        if let Some(value) = value {
            let _ = write!(url, "&{name}={}", encoded(&value));
        }
    }
    url
}

fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn text(tags: &[Tag]) -> String {
    let lines = tags.iter().map(|Tag { tag, slot, address, replicas, url }| {
        let replicas = match replicas {
            1 => "1 replica".to_owned(),
            many => format!("{many} replicas"),
        };
        format!("{tag}: slot {slot}, on {address} with {replicas}\n  {}\n", without_control(url))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn master(name: &str, first: u16, last: u16) -> Master {
        Master { address: format!("{name}:7000"), name: None, slots: vec![(first, last)], replicas: 1 }
    }

    #[test]
    fn masters_are_read_with_their_slots_and_all_their_replicas() {
        let nodes = "\
            07c3 127.0.0.1:30004@31004,hostname4 slave e7d1 0 1426238317239 4 connected\n\
            67ed 127.0.0.1:30002@31002,,shard-id=f0,name=h master - 0 1426238316232 2 connected 5461-9000 9002 [93->-e7d1]\n\
            292f :30003@31003 myself,master - 0 1426238318243 3 connected 10923-16383\n\
            77aa 127.0.0.1:30006@31006,hostname6,shard-id=f1 master - 0 1426238318243 3 connected 9001\n\
            6ec2 127.0.0.1:30005@31005 slave,fail e7d1 0 1426238316232 5 disconnected\n\
            e7d1 ::1:30001@31001 master - 0 0 1 connected 0-5460\n\
            beef 127.0.0.1:30009@31009 master - 0 0 1 connected\n";
        let present = Endpoint::tcp("h", 1).unwrap().address().clone();
        let read = read(nodes, &present);
        let told: Vec<_> = read
            .iter()
            .map(|master| {
                let Master { address, name, slots, replicas } = master;
                (address.as_str(), name.as_deref(), slots.as_slice(), *replicas)
            })
            .collect();
        assert_eq!(
            told,
            [
                ("127.0.0.1:30002", None, &[(5461, 9000), (9002, 9002)][..], 0),
                ("h:30003", None, &[(10_923, 16_383)], 0),
                ("127.0.0.1:30006", Some("hostname6:30006"), &[(9001, 9001)], 0),
                ("[::1]:30001", None, &[(0, 5460)], 2),
            ]
        );
    }

    #[test]
    fn slots_are_those_that_servers_compute() {
        // `CLUSTER KEYSLOT` of redis-server 7.0.15.
        assert_eq!(["q0", "q1", "q2", "123456789"].map(slot), [3387, 7450, 11_641, 12_739]);
    }

    #[test]
    fn each_tag_is_on_a_different_master() {
        let node: Endpoint = "redis://a:7000".parse().unwrap();
        let tags = |masters: &[Master], count| {
            let tags = chosen(&node, masters, count);
            tags.into_iter().map(|tag| (tag.tag, tag.address)).collect::<Vec<_>>()
        };
        let named = |all: &[(&str, &str)]| -> Vec<_> {
            all.iter().map(|(tag, address)| ((*tag).to_owned(), (*address).to_owned())).collect()
        };
        let even = [master("a", 0, 5460), master("b", 5461, 10_922), master("c", 10_923, 16_383)];
        let all = named(&[("q0", "a:7000"), ("q1", "b:7000"), ("q2", "c:7000")]);
        assert_eq!(tags(&even, 3), all);
        assert_eq!(tags(&even, 2), all[..2]);
        // No more tags than masters, and none if no master has the slot.
        assert_eq!(tags(&even, 5), all);
        assert_eq!(tags(&[master("b", 7000, 12_000)], 3), named(&[("q1", "b:7000")]));
        assert_eq!(tags(&[], 3), []);
    }

    #[test]
    fn urls_contain_everything_except_the_password() {
        for (node, replicas, expected) in [
            ("redis://a:7000", 2, "redis+cluster://a:7000/?tag=q0&replicas=2"),
            ("redis://a:7000", 0, "redis+cluster://a:7000/?tag=q0&replicas=0"),
            (
                "redis://a:7000?failover=may-lose-locks",
                0,
                "redis+cluster://a:7000/?tag=q0&failover=may-lose-locks",
            ),
            ("redis://a:7000?failover=durable", 2, "redis+cluster://a:7000/?tag=q0&failover=durable"),
            (
                "redis+cluster://w%40x:hunter2@a:7000,b:7001/?tag=z&replicas=1",
                2,
                "redis+cluster://w%40x:PASSWORD@a:7000,b:7001/?tag=q0&replicas=1",
            ),
            (
                "rediss://:hunter2@a:7000?sni=x&cacert=/a%20b",
                1,
                "rediss+cluster://:PASSWORD@a:7000/?tag=q0&replicas=1&cacert=/a%20b&sni=x",
            ),
        ] {
            let node: Endpoint = node.parse().unwrap();
            let url = url(&node, &places(&node, &[]), "q0", replicas);
            assert_eq!(url, expected);
            assert!(url.parse::<Endpoint>().is_ok(), "{url}");
        }
    }

    #[test]
    fn urls_name_more_nodes_than_were_given() {
        let mut masters = ["a", "b", "c", "d"].map(|name| master(name, 0, 1));
        masters[1].name = Some("b.internal:7000".to_owned());
        for (node, expected) in [
            ("redis://a:7000", "a:7000,b:7000,c:7000"),
            ("redis://other:7000", "other:7000,a:7000,b:7000"),
            ("redis+cluster://c:7000,d:7000/?tag=x", "c:7000,d:7000,a:7000"),
            ("redis+cluster://w:1,x:2,y:3,z:4/?tag=x", "w:1,x:2,y:3,z:4"),
            ("rediss://a:7000", "a:7000,b.internal:7000,c:7000"),
        ] {
            let node: Endpoint = node.parse().unwrap();
            assert_eq!(places(&node, &masters).join(","), expected);
            assert!(url(&node, &places(&node, &masters), "q0", 1).parse::<Endpoint>().is_ok(), "{node}");
        }
    }
}
