//! Discovery of a master whose server changes: the places to ask, and the next connection's
//! address.
//!
//! A master has one connection at a time. It is first opened to a sentinel, which names the server,
//! then closed and opened to the server. The server itself must report that it is a primary: a
//! sentinel may not know of a failover yet. If a sentinel does not know, is silent or names a
//! replica, the next one is asked at once; the ordinary pause follows after all of them.

use std::collections::VecDeque;
use std::time::Duration;

use super::cluster::Owner;
use super::handshake::encode_auth;
use super::{Answers, Connection, State};
use crate::endpoint::{Address, Discovery, Endpoint, Login};
use crate::protocol::{Cause, SentinelFault};
use crate::time::Instant;
use crate::wire::{self, Dialect, Reply, ServerError};

/// The search for a master's server.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Search {
    /// The places to ask: those of the URL first, then those learned from them.
    places: Vec<Address>,
    /// How many of them are from the URL.
    own: usize,
    /// The place that is asked now or next.
    place: usize,
    /// The server that was named, if the connection goes there.
    server: Option<Address>,
    /// The places that have failed since a connection was ready, or since a pause: one bit each.
    in_vain: u64,
    /// The first cause of these failures that may be temporary.
    transient: Option<Cause>,
    /// When the search began that requests wait for.
    began: Instant,
    /// In a cluster, the reported owner of the slot.
    pub(super) owner: Owner,
}

/// A sentinel's unanswered questions, and its answer.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Inquiry {
    awaited: VecDeque<Question>,
    named: Option<Address>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Question {
    Login,
    Master,
    Sentinels,
}

impl Search {
    /// `None` for a master whose URL gives its address.
    pub(super) fn new(endpoint: &Endpoint, now: Instant) -> Option<Box<Self>> {
        endpoint.discovery()?;
        let places: Vec<_> = endpoint.places().cloned().collect();
        let (own, owner) = (places.len(), Owner::default());
        let (server, transient) = (None, None);
        Some(Box::new(Self { places, own, place: 0, server, in_vain: 0, transient, began: now, owner }))
    }

    /// Moves on to the next place: to a learned one only when all places of the URL have failed.
    /// Returns whether there is one that has not failed.
    fn next_place(&mut self) -> bool {
        self.server = None;
        self.owner = Owner::default();
        self.leads_nowhere();
        let learned = self.own..self.places.len();
        let next = self.following().chain(learned).find(|place| !self.has_led_nowhere(*place));
        self.place = next.or_else(|| self.following().next()).unwrap_or(0);
        next.is_some()
    }

    /// The places of the URL, starting after the present place.
    fn following(&self) -> impl Iterator<Item = usize> + use<> {
        let (own, first) = (self.own, if self.place < self.own { self.place + 1 } else { 0 });
        (0..own).map(move |place| (first + place) % own)
    }

    fn leads_nowhere(&mut self) {
        self.in_vain |= 1 << self.place;
    }

    fn has_led_nowhere(&self, place: usize) -> bool {
        self.in_vain >> place & 1 == 1
    }

    fn is_exhausted(&self) -> bool {
        (0..self.places.len()).all(|place| self.has_led_nowhere(place))
    }

    /// Goes to a place that the present one has named. If that fails, the present one is not asked
    /// again.
    pub(super) fn go_to(&mut self, named: Address) {
        self.leads_nowhere();
        self.learn(named.clone());
        match self.places.iter().position(|place| *place == named) {
            Some(place) => self.place = place,
            None => self.server = Some(named),
        }
    }

    /// Adds a place to the list. If the list is full, it replaces a failed one, and is asked after
    /// the next pause: otherwise places that keep naming others would be followed without a pause.
    fn learn(&mut self, place: Address) {
        if self.places.contains(&place) {
            return;
        }
        if self.places.len() < Endpoint::MAX_PLACES {
            self.places.push(place);
            return;
        }
        let mut learned = (self.own..self.places.len()).filter(|other| *other != self.place);
        if let Some(other) = learned.find(|other| self.has_led_nowhere(*other)) {
            self.places.splice(other..=other, [place]);
        }
    }
}

impl Connection {
    /// The address for the connection that will be opened.
    pub(super) fn destination(&self) -> Option<Address> {
        let fixed = || self.config.masters.get(self.id.index()).map(Endpoint::address);
        let found =
            self.search.as_ref().map(|search| search.server.as_ref().or(search.places.get(search.place)));
        found.unwrap_or_else(fixed).cloned()
    }

    /// Whether the present or next connection is to a sentinel.
    pub(crate) fn asks_sentinel(&self) -> bool {
        self.sentinels().is_some() && self.search.as_ref().is_some_and(|search| search.server.is_none())
    }

    fn sentinels(&self) -> Option<(&str, Option<&Login>)> {
        match self.config.masters.get(self.id.index())?.discovery()? {
            Discovery::Sentinel { group, login } => Some((group, login.as_ref())),
            Discovery::Cluster { .. } => None,
        }
    }

    /// Why the search has failed. A temporary cause comes first: one misconfigured place says
    /// little while others only wait for a failover.
    pub(super) fn search_fault(&mut self, last: Cause) -> Cause {
        self.search.as_mut().and_then(|search| search.transient.take()).unwrap_or(last)
    }

    /// Starts a new search for the server.
    pub(super) fn search_anew(&mut self, now: Instant) {
        if let Some(search) = &mut self.search {
            search.server = None;
            search.in_vain = 0;
            search.transient = None;
            search.began = now;
            search.owner = Owner::default();
            if self.alone && self.tag.is_some() {
                // This node may not know of its successor yet. Perhaps only a learned node does.
                search.place = (search.place + 1) % search.places.len().max(1);
            }
        }
    }

    /// How long to wait for one place or server before the next place is asked. While requests
    /// wait, there must be time for a second place. Once all have failed there is no hurry: a
    /// stopped server answers when it resumes.
    fn leg_limit(&self) -> Duration {
        let limit = self.config.connect_timeout;
        let Some(search) = &self.search else { return limit };
        // The only known place of the cluster is the server itself.
        let another_follows = search.server.is_none() && (self.tag.is_none() || search.places.len() > 1);
        if search.is_exhausted() {
            4 * limit
        } else if another_follows && self.fault.is_none() {
            limit / 2
        } else {
            limit
        }
    }

    /// When an opening that began at `since` takes too long.
    pub(super) fn opening_deadline(&self, since: Instant) -> Instant {
        match &self.search {
            None => since + self.opening_limit(),
            Some(search) => {
                let leg = since + self.leg_limit();
                let hope = search.began + self.config.connect_timeout;
                if self.fault.is_none() { leg.min(hope) } else { leg }
            }
        }
    }

    /// An opening has taken too long: for the waiting requests, or for the place that is asked.
    pub(super) fn search_takes_long(&mut self, since: Instant, now: Instant, answers: &mut Answers) {
        let Some(began) = self.search.as_ref().map(|search| search.began) else { return };
        if self.fault.is_none() && now >= began + self.config.connect_timeout {
            self.fault = Some(self.opening_fault(now.since(began)));
            self.fail_queued(now, answers);
        }
        if now >= since + self.leg_limit() {
            self.abandon(answers);
            if let Some(search) = &mut self.search {
                let place = search.place;
                if !search.next_place() {
                    // No pause follows silence, so that all places are asked in turn, learned ones
                    // too.
                    search.place = (place + 1) % search.places.len().max(1);
                }
            }
            self.connect(now);
        }
    }

    /// A connection failed before it was ready. Returns whether the next place is asked at once.
    pub(super) fn search_goes_on(&mut self, cause: Cause, now: Instant) -> bool {
        let was_ready = matches!(self.state, State::Ready | State::Draining { .. });
        if let Some(search) = self.search.as_mut().filter(|_| !cause.is_configuration()) {
            search.transient.get_or_insert(cause);
        }
        let goes_on = self.search.as_mut().is_some_and(|search| !was_ready && search.next_place());
        if goes_on {
            self.connect(now);
        }
        goes_on
    }

    /// A connection to a sentinel is open.
    pub(super) fn inquire(&mut self, since: Instant) {
        let Some((group, login)) = self.sentinels() else { return };
        let (mut out, mut awaited) = (Vec::new(), VecDeque::new());
        if let Some(login) = login {
            encode_auth(login, Dialect::Resp2, &mut out);
            awaited.push_back(Question::Login);
        }
        wire::encode(&mut out, &[b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", group.as_bytes()]);
        wire::encode(&mut out, &[b"SENTINEL", b"SENTINELS", group.as_bytes()]);
        awaited.extend([Question::Master, Question::Sentinels]);
        self.outbound.extend_from_slice(&out);
        self.dialect = Dialect::Resp2;
        self.state = State::Asking { since, inquiry: Box::new(Inquiry { awaited, named: None }) };
    }

    /// A reply of a sentinel.
    pub(super) fn sentinel_replied(&mut self, reply: &Reply<'_>) -> Result<(), Cause> {
        let State::Asking { inquiry, .. } = &mut self.state else { return Err(Cause::UnexpectedReply) };
        let question = inquiry.awaited.pop_front().ok_or(Cause::UnexpectedReply)?;
        match (question, reply) {
            (Question::Login, Reply::Error(text)) | (Question::Master, Reply::Error(text)) => {
                Err(Cause::Sentinel(match ServerError::classify(text) {
                    ServerError::UnknownCommand => SentinelFault::NotASentinel,
                    error => SentinelFault::Refused(error),
                }))
            }
            (Question::Login, _) => Ok(()),
            (Question::Master, Reply::Null) => Err(Cause::Sentinel(SentinelFault::UnknownGroup)),
            (Question::Master, Reply::Array(fields)) => match fields.as_slice() {
                [host, port] => {
                    inquiry.named = Some(address(host, port).ok_or(Cause::UnexpectedReply)?);
                    Ok(())
                }
                _ => Err(Cause::UnexpectedReply),
            },
            (Question::Master, _) => Err(Cause::UnexpectedReply),
            (Question::Sentinels, Reply::Array(sentinels)) => {
                if let Some(search) = &mut self.search {
                    sentinels.iter().filter_map(listed).for_each(|place| search.learn(place));
                }
                Ok(())
            }
            // A sentinel's list of other sentinels is optional.
            (Question::Sentinels, _) => Ok(()),
        }
    }

    /// Follows the replies that name another server, once they have been read. Returns whether the
    /// connection leaves for the owner of the slot, so that nothing more is done here.
    pub(super) fn follow(&mut self, is_read: bool, now: Instant, answers: &mut Answers) -> bool {
        if self.is_elsewhere() {
            self.follow_owner(now, answers);
            return true;
        }
        if is_read {
            self.follow_sentinel(now, answers);
            self.look_for_successor(now, answers);
        }
        false
    }

    /// Goes on to the server that a sentinel has named, once it has answered everything.
    fn follow_sentinel(&mut self, now: Instant, answers: &mut Answers) {
        let State::Asking { inquiry, .. } = &mut self.state else { return };
        if !inquiry.awaited.is_empty() {
            return;
        }
        let named = inquiry.named.take();
        // The sentinel's address has worked, and is tried first the next time.
        self.served = true;
        self.abandon(answers);
        if let Some(search) = &mut self.search {
            search.server = named;
        }
        self.connect(now);
    }

    /// The discovered server is a primary, and is ready.
    pub(super) fn search_succeeded(&mut self) {
        if let Some(search) = &mut self.search {
            search.in_vain = 0;
            search.transient = None;
            search.owner = Owner::default();
        }
    }

    /// Checks whether another server has become the primary, because this one reports missing
    /// replicas: a server that was cut off may not know yet. Outstanding answers are awaited first.
    fn look_for_successor(&mut self, now: Instant, answers: &mut Answers) {
        if self.alone && self.may_search(now) {
            self.renew(self.generation, now, answers);
        }
    }

    /// Whether the last search is long enough ago to leave an open connection for another one.
    pub(super) fn may_search(&self, now: Instant) -> bool {
        let pause = *self.config.reconnect_delay.end();
        self.search.as_ref().is_some_and(|search| search.began + pause <= now)
    }
}

/// One sentinel in the list of another: fields and their values. One that the other cannot reach is
/// skipped.
fn listed(sentinel: &Reply<'_>) -> Option<Address> {
    let flags = sentinel.field("flags").and_then(|flags| flags.as_bytes()).unwrap_or_default();
    if flags.split(|byte| *byte == b',').any(|flag| flag == b"s_down" || flag == b"disconnected") {
        return None;
    }
    address(sentinel.field("ip")?, sentinel.field("port")?)
}

fn address(host: &Reply<'_>, port: &Reply<'_>) -> Option<Address> {
    let [host, port] = [host.as_bytes()?, port.as_bytes()?].map(|text| std::str::from_utf8(text).ok());
    Address::tcp(host?, port?.parse().ok()?).ok()
}
