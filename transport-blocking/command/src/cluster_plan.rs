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
/// Tags are tried in turn. So many find each of a thousand masters that share the slots evenly.
const MOST_TAGS: u32 = 100_000;

/// One range of slots and who has it.
#[derive(Debug, PartialEq, Eq)]
struct Range {
    first: u16,
    last: u16,
    /// The id of the node, or its address where it tells none.
    master: String,
    address: String,
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

/// Prints them. The exit code.
pub(crate) fn plan(arguments: &ClusterPlanArguments) -> u8 {
    let output = Output::new(Verbosity::Normal(0), arguments.json);
    match ranges(arguments) {
        Err(refusal) => refusal.tell(None, &output),
        Ok((node, ranges)) => {
            let tags = chosen(&node, &ranges, arguments.masters.into());
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

/// Asks one node after the other, until one answers.
fn ranges(arguments: &ClusterPlanArguments) -> Result<(Endpoint, Vec<Range>), Refusal> {
    let wrong = |sentence: &dyn ToString| Refusal::Configuration(sentence.to_string());
    let urls: Vec<_> = arguments.nodes.urls().collect();
    if urls.is_empty() {
        return Err(Refusal::Configuration("name a node of the cluster, such as redis://host:7000".into()));
    }
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
                Ok(ranges) => return Ok((node, ranges)),
                Err(cause) if cause.is_configuration() => {
                    return Err(Refusal::Configuration(format!("{address} {cause}")));
                }
                Err(Cause::Server(ServerError::Other(_))) => {
                    return Err(Refusal::Configuration(format!("{address} is no node of a cluster")));
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
) -> Result<Vec<Range>, Cause> {
    let Found { mut conversation, address } =
        asking::open(node, address, Some(security), "quorlock-cluster-plan", ends)?;
    match conversation.ask(words(&["CLUSTER", "SLOTS"]))? {
        Reply::Error(error) => Err(Cause::Server(error)),
        Reply::Array(ranges) => {
            let read = ranges.iter().map(|range| read(range, &address));
            read.collect::<Option<_>>().ok_or(Cause::UnexpectedReply)
        }
        _ => Err(Cause::UnexpectedReply),
    }
}

/// `[first, last, master, replica…]`, each node as `[host, port, id, …]`.
fn read(range: &Reply, present: &Address) -> Option<Range> {
    let number = |reply: &Reply| match reply {
        Reply::Integer(number) => u16::try_from(*number).ok(),
        _ => None,
    };
    let [first, last, master, replicas @ ..] = range.elements()? else { return None };
    let [host, port, rest @ ..] = master.elements()? else { return None };
    // A node that does not know its host is where it was asked.
    let host = host.text().filter(|host| !host.is_empty()).or_else(|| match present {
        Address::Tcp { host, .. } => Some(host.clone()),
        Address::Unix(_) => None,
    })?;
    let address = Endpoint::tcp(&host, number(port)?).ok()?.to_string();
    Some(Range {
        first: number(first)?,
        last: number(last)?,
        master: rest.first().and_then(Reply::text).unwrap_or_else(|| address.clone()),
        address,
        replicas: replicas.len(),
    })
}

/// The first tags of `q0`, `q1`, … that are on masters of which none has another one.
fn chosen(node: &Endpoint, ranges: &[Range], count: usize) -> Vec<Tag> {
    let mut taken = BTreeSet::new();
    let masters: BTreeSet<_> = ranges.iter().map(|range| &range.master).collect();
    let count = count.min(masters.len());
    let tags = (0..MOST_TAGS).map(|number| format!("q{number}")).filter_map(|tag| {
        let slot = slot(&tag);
        let owner = ranges.iter().find(|range| (range.first..=range.last).contains(&slot))?;
        taken.insert(&owner.master).then(|| Tag {
            url: url(node, &tag, owner.replicas),
            tag,
            slot,
            address: owner.address.clone(),
            replicas: owner.replicas,
        })
    });
    tags.take(count).collect()
}

/// The slot of all keys with this tag.
fn slot(tag: &str) -> u16 {
    State::<XMODEM>::calculate(tag.as_bytes()) % SLOTS
}

/// The URL for a tag, with what the URL of the node says and without its password.
fn url(node: &Endpoint, tag: &str, replicas: usize) -> String {
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
    let places: Vec<_> = node.places().map(ToString::to_string).collect();
    url += &places.join(",");
    // Writing to a string does not fail.
    let _ = write!(url, "/?tag={tag}");
    match (node.failover(), node.replicas(), replicas) {
        (Some(Failover::Durable), ..) => url += "&failover=durable",
        (Some(_), ..) | (None, 0, 0) => url += "&failover=may-lose-locks",
        (None, 0, replicas) => {
            let _ = write!(url, "&replicas={replicas}");
        }
        (None, declared, _) => {
            let _ = write!(url, "&replicas={declared}");
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

    fn range(first: u16, last: u16, master: &str, replicas: usize) -> Range {
        let (master, address) = (master.to_owned(), format!("{master}:7000"));
        Range { first, last, master, address, replicas }
    }

    #[test]
    fn slots_are_those_that_servers_compute() {
        // `CLUSTER KEYSLOT` of redis-server 7.0.15.
        assert_eq!(["q0", "q1", "q2", "123456789"].map(slot), [3387, 7450, 11_641, 12_739]);
    }

    #[test]
    fn each_tag_is_on_a_master_of_its_own() {
        let node: Endpoint = "redis://a:7000".parse().unwrap();
        let tags = |ranges: &[Range], count| {
            let tags = chosen(&node, ranges, count);
            tags.into_iter().map(|tag| (tag.tag, tag.address)).collect::<Vec<_>>()
        };
        let named = |all: &[(&str, &str)]| -> Vec<_> {
            all.iter().map(|(tag, address)| ((*tag).to_owned(), (*address).to_owned())).collect()
        };
        let even = [range(0, 5460, "a", 1), range(5461, 10_922, "b", 1), range(10_923, 16_383, "c", 1)];
        let all = named(&[("q0", "a:7000"), ("q1", "b:7000"), ("q2", "c:7000")]);
        assert_eq!(tags(&even, 3), all);
        assert_eq!(tags(&even, 2), all[..2]);
        // No more than there are masters, and none where nobody has the slot.
        assert_eq!(tags(&even, 5), all);
        assert_eq!(tags(&[range(7000, 12_000, "b", 0)], 3), named(&[("q1", "b:7000")]));
        assert_eq!(tags(&[], 3), []);
    }

    #[test]
    fn urls_have_all_but_the_password() {
        for (node, replicas, expected) in [
            ("redis://a:7000", 2, "redis+cluster://a:7000/?tag=q0&replicas=2"),
            ("redis://a:7000", 0, "redis+cluster://a:7000/?tag=q0&failover=may-lose-locks"),
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
            let url = url(&node.parse().unwrap(), "q0", replicas);
            assert_eq!(url, expected);
            assert!(url.parse::<Endpoint>().is_ok(), "{url}");
        }
    }
}
