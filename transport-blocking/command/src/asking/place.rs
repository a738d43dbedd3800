//! Where a master is: at its address, or at the address that sentinels or cluster nodes report.

use std::time::Instant;

use quorlock_core::{
    Address, Cause, ClusterFault, Discovery, Endpoint, Security, SentinelFault, ServerError,
};

use super::{Conversation, Reply, words};

/// The most redirections that are followed. Nodes of a healthy cluster need one or two.
const MAX_HOPS: usize = 5;

/// A server that was found, and the conversation with it.
pub(crate) struct Found {
    pub(crate) conversation: Conversation,
    /// Where it is.
    pub(crate) address: Address,
}

/// Begins a conversation with the server of a master. If the master is found by sentinels or in a
/// cluster, these are asked first, one after the other, where the server is.
pub(crate) fn find(
    master: &Endpoint,
    security: Option<&dyn Security>,
    name: &str,
    ends: Instant,
) -> Result<Found, Cause> {
    let mut failure = Cause::UnknownHost;
    for place in master.places() {
        let found = match master.discovery() {
            Some(Discovery::Sentinel { group, .. }) => primary(master, place, group, security, name, ends),
            Some(Discovery::Cluster { .. }) => owner(master, place, security, name, ends),
            _ => open(master, place, security, name, ends),
        };
        match found {
            Ok(found) => return Ok(found),
            Err(cause) => failure = cause,
        }
    }
    Err(failure)
}

/// Begins a conversation at this address, with the login of the master.
pub(crate) fn open(
    master: &Endpoint,
    address: &Address,
    security: Option<&dyn Security>,
    name: &str,
    ends: Instant,
) -> Result<Found, Cause> {
    let secured = security.filter(|_| master.tls().is_some());
    let channel = secured.map(|security| security.channel(master, address)).transpose()?;
    let conversation = Conversation::open(master, address, channel, name, ends)?;
    Ok(Found { conversation, address: address.clone() })
}

/// The primary that a sentinel names.
fn primary(
    master: &Endpoint,
    sentinel: &Address,
    group: &str,
    security: Option<&dyn Security>,
    name: &str,
    ends: Instant,
) -> Result<Found, Cause> {
    let asked = as_sentinel(master, sentinel)?;
    let secured = security.filter(|_| master.tls().is_some());
    let channel = secured.map(|security| security.channel(master, sentinel)).transpose()?;
    let mut conversation = Conversation::open(&asked, sentinel, channel, name, ends)?;
    let answer = conversation.ask(words(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", group]))?;
    let address = match &answer {
        Reply::Null => return Err(Cause::Sentinel(SentinelFault::UnknownGroup)),
        Reply::Error(ServerError::UnknownCommand) => {
            return Err(Cause::Sentinel(SentinelFault::NotASentinel));
        }
        Reply::Error(error) => return Err(Cause::Sentinel(SentinelFault::Refused(*error))),
        answer => match answer.elements() {
            Some([host, port]) => host.text().zip(port.text()).and_then(|(host, port)| named(&host, &port)),
            _ => None,
        },
    };
    open(master, &address.ok_or(Cause::UnexpectedReply)?, security, name, ends)
}

/// A sentinel as a separate server, with the sentinels' login.
fn as_sentinel(master: &Endpoint, address: &Address) -> Result<Endpoint, Cause> {
    let Address::Tcp { host, port } = address else { return Err(Cause::UnknownHost) };
    let mut sentinel = Endpoint::tcp(host, *port).map_err(|_| Cause::UnknownHost)?;
    if let Some(Discovery::Sentinel { login: Some(login), .. }) = master.discovery() {
        sentinel = sentinel.with_password(login.password());
        if let Some(user) = login.user() {
            sentinel = sentinel.with_user(user);
        }
    }
    Ok(match master.tls() {
        Some(options) => sentinel.with_tls(options.clone()),
        None => sentinel,
    })
}

/// The owner of the slot of the master's tag, found from a node of the cluster.
fn owner(
    master: &Endpoint,
    node: &Address,
    security: Option<&dyn Security>,
    name: &str,
    ends: Instant,
) -> Result<Found, Cause> {
    let mut address = node.clone();
    for _ in 0..=MAX_HOPS {
        let mut found = open(master, &address, security, name, ends)?;
        match found.conversation.ask(vec![b"GET".to_vec(), master.key_of(b"").into_owned()])? {
            Reply::Moved { host, port } => {
                let host = match (host.as_str(), &address) {
                    ("", Address::Tcp { host, .. }) => host,
                    (host, _) => host,
                };
                address = named(host, &port).ok_or(Cause::UnexpectedReply)?;
            }
            Reply::Error(ServerError::ClusterDown) => return Err(Cause::Cluster(ClusterFault::Down)),
            // A node that answers ASK still owns the slot, which is being moved.
            Reply::Error(ServerError::Ask) => return Ok(found),
            Reply::Error(error) => return Err(Cause::Server(error)),
            _ => return Ok(found),
        }
    }
    Err(Cause::Cluster(ClusterFault::NoOwner))
}

fn named(host: &str, port: &str) -> Option<Address> {
    Endpoint::tcp(host, port.parse().ok()?).ok().map(|endpoint| endpoint.address().clone())
}
