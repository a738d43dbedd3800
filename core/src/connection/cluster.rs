//! Masters in a cluster: names of keys with their tag, the node that owns the slot of the tag, and
//! slots that are being moved.
//!
//! The connection goes to some node, which answers the greeting's `GET {tag}` with `MOVED` unless
//! it is the owner. The connection goes to the named node next. A node that loses the slot later
//! answers requests in the same way.
//!
//! `ASK` and `TRYAGAIN` are not followed, and are no votes: the keys of a slot that is being moved
//! are on two nodes. If a move is given up halfway, keys stay behind, and the source grants them
//! again. So the restart guard's marker is deleted on the source, which then begins a quarantine.

use std::borrow::Cow;

use super::{Answers, Connection, State};
use crate::endpoint::{Address, Discovery, Endpoint};
use crate::protocol::{Action, Cause, ClusterFault, Fleet, Request};
use crate::time::Instant;
use crate::wire::{self, ServerError};

/// How many `MOVED` in a row are followed. One or two lead to the owner; more are a circle.
const MAX_HOPS: u8 = 5;

/// The search for the owner of a slot.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Owner {
    /// The node that was named, until the connection goes there.
    named: Option<Address>,
    /// How many nodes in a row have named another one.
    hops: u8,
}

/// Inserts the tag before the key names of a request that was just appended.
#[cold]
pub(super) fn tag_keys(tag: &str, request: &Request, before: usize, out: &mut Vec<u8>) {
    let words = out.split_off(before);
    wire::put_tagged(out, &words, tag, request.claim.names());
}

impl Connection {
    /// The name of a key, without the tag that it has on the server.
    pub(super) fn untagged<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        let Some(tag) = &self.tag else { return Some(key) };
        key.strip_prefix(b"{")?.strip_prefix(tag.as_bytes())?.strip_prefix(b"}")
    }

    /// The cause for a server's error in a cluster.
    pub(super) fn cause_of(&self, error: ServerError) -> Cause {
        let fault = self.tag.as_ref().and_then(|_| fault(error));
        fault.map_or(Cause::Server(error), Cause::Cluster)
    }

    /// Notes the node that a `MOVED` names. Returns whether it names one.
    pub(super) fn note_owner(&mut self, text: &[u8]) -> bool {
        let Some(present) = self.destination() else { return false };
        let named = named_by(text, &present);
        let Some(owner) = self.search.as_mut().map(|search| &mut search.owner) else { return false };
        owner.named = named.or(owner.named.take());
        owner.named.is_some()
    }

    /// Whether the present node has named another one as the owner.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.search.as_ref().is_some_and(|search| search.owner.named.is_some())
    }

    /// Leaves a node that is not the owner after its greeting.
    pub(super) fn follow_owner(&mut self, now: Instant, answers: &mut Answers) {
        let Some(search) = &mut self.search else { return };
        let Some(named) = search.owner.named.take() else { return };
        search.go_to(named);
        search.owner.hops += 1;
        if search.owner.hops > MAX_HOPS {
            search.owner.hops = 0;
            self.lose(Cause::Cluster(ClusterFault::NoOwner), now, answers);
        } else {
            self.abandon(answers);
            self.connect(now);
        }
    }

    /// An answer to a request says that this node does not serve the slot, or only a part of it.
    #[cold]
    pub(super) fn misplaced(&mut self, fault: ClusterFault, text: &[u8], now: Instant) {
        match fault {
            ClusterFault::SlotIsMoving => self.forget_marker(now),
            ClusterFault::Moved | ClusterFault::Down => {
                if fault == ClusterFault::Moved && self.note_owner(text) {
                    if let Some(search) = &mut self.search {
                        search.owner.named.take().into_iter().for_each(|named| search.go_to(named));
                    }
                }
                // Earlier requests are still answered here; later ones go to the new owner. If no
                // node serves the slot, the connection searches again from time to time.
                if self.is_ready() && (fault == ClusterFault::Moved || self.may_search(now)) {
                    self.state = State::Draining { since: now };
                }
            }
            ClusterFault::IsNode | ClusterFault::IsNoNode | ClusterFault::NoOwner => {}
        }
    }

    /// The keys of the slot are on two nodes. If the move is given up, the source must not vote
    /// while locks exist whose keys it no longer has.
    fn forget_marker(&mut self, now: Instant) {
        let endpoint = self.config.masters.get(self.id.index());
        if let (true, Some(endpoint)) = (self.fleet.is_some() && self.is_ready(), endpoint) {
            let before = self.outbound.len();
            encode_forget(endpoint, &mut self.outbound);
            self.await_own(Action::Forget, before, now);
        }
    }
}

/// Deletes the marker, by a command with one key: a script with several would be answered with
/// `TRYAGAIN`.
pub(super) fn encode_forget(endpoint: &Endpoint, out: &mut Vec<u8>) {
    wire::encode(out, &[b"DEL", &marker_of(endpoint)]);
}

/// The restart guard's marker on this master.
pub(super) fn marker_of(endpoint: &Endpoint) -> Cow<'static, [u8]> {
    endpoint.key_of(Fleet::MARKER.as_bytes())
}

/// The tag of a master in a cluster.
pub(super) fn tag_of(endpoint: &Endpoint) -> Option<&str> {
    match endpoint.discovery()? {
        Discovery::Cluster { tag } => Some(tag),
        Discovery::Sentinel { .. } => None,
    }
}

/// The fault of the slot that an error reports.
pub(super) fn fault(error: ServerError) -> Option<ClusterFault> {
    match error {
        ServerError::Moved => Some(ClusterFault::Moved),
        ServerError::Ask => Some(ClusterFault::SlotIsMoving),
        ServerError::Other(code) if code.as_str() == "TRYAGAIN" => Some(ClusterFault::SlotIsMoving),
        ServerError::ClusterDown => Some(ClusterFault::Down),
        _ => None,
    }
}

/// The node in `MOVED 3387 host:port`. Without a host, the host is that of the node that answers.
fn named_by(text: &[u8], present: &Address) -> Option<Address> {
    let (host, port) = std::str::from_utf8(text).ok()?.rsplit(' ').next()?.rsplit_once(':')?;
    let host = match (host, present) {
        ("", Address::Tcp { host, .. }) => host,
        (host, _) => host,
    };
    Address::tcp(host, port.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_is_read_from_the_error_that_names_it() {
        let present = Address::tcp("10.0.0.1", 7000).unwrap();
        let named = |text: &str| named_by(text.as_bytes(), &present).map(|address| address.to_string());
        assert_eq!(named("MOVED 3387 10.0.0.2:7001").unwrap(), "10.0.0.2:7001");
        assert_eq!(named("MOVED 3387 :7001").unwrap(), "10.0.0.1:7001");
        assert_eq!(named("MOVED 3387 ::1:7001").unwrap(), "[::1]:7001");
        assert_eq!(named("MOVED 3387 node-2.cluster.internal:7001").unwrap(), "node-2.cluster.internal:7001");
        for text in ["MOVED", "MOVED 3387", "MOVED 3387 a", "MOVED 3387 a:0", "MOVED 3387 a:70000"] {
            assert_eq!(named(text), None, "{text}");
        }
    }
}
