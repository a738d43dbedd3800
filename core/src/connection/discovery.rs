//! Finding a master whose server changes: who is asked, and where the next connection goes.
//!
//! A master has one connection at a time. It is opened to a sentinel first, which names the server
//! and is left again, then to the server. That one has to say itself that it is a primary: a
//! sentinel may not have heard of a failover yet. Where one does not know, is silent or names a
//! replica, the next one is asked at once; after all of them follows the ordinary pause.

use std::collections::VecDeque;
use std::time::Duration;

use super::cluster::Owner;
use super::handshake::encode_auth;
use super::{Answers, Connection, State};
use crate::endpoint::{Address, Discovery, Endpoint, Login};
use crate::protocol::{Cause, SentinelFault};
use crate::time::Instant;
use crate::wire::{self, Dialect, Reply, ServerError};

/// Where a master is looked for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Search {
    /// Who is asked: the places of the URL first, then those that were learned from them.
    places: Vec<Address>,
    /// How many of them are of the URL.
    own: usize,
    /// Which of them is asked next, or now.
    place: usize,
    /// The server that was named, if the connection goes there.
    server: Option<Address>,
    /// Which places have led nowhere since a connection was ready, or since a pause: one bit each.
    in_vain: u64,
    /// The first cause since then that may pass by itself.
    transient: Option<Cause>,
    /// Since when requests wait for what is found.
    began: Instant,
    /// In a cluster, who is said to own the slot.
    pub(super) owner: Owner,
}

/// The questions to a sentinel that are not answered yet, and its answer.
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
    /// `None` for a master that is where its URL says.
    pub(super) fn new(endpoint: &Endpoint, now: Instant) -> Option<Box<Self>> {
        endpoint.discovery()?;
        let places: Vec<_> = endpoint.places().cloned().collect();
        let (own, owner) = (places.len(), Owner::default());
        let (server, transient) = (None, None);
        Some(Box::new(Self { places, own, place: 0, server, in_vain: 0, transient, began: now, owner }))
    }

    /// Moves on to the next place: to one that was learned only when all of the URL have led
    /// nowhere. Returns whether there is one that has not.
    fn next_place(&mut self) -> bool {
        self.server = None;
        self.owner = Owner::default();
        self.leads_nowhere();
        let learned = self.own..self.places.len();
        let next = self.following().chain(learned).find(|place| !self.has_led_nowhere(*place));
        self.place = next.or_else(|| self.following().next()).unwrap_or(0);
        next.is_some()
    }

    /// The places of the URL, from the one behind the present place on.
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

    /// Goes to a place that another one has named, which is not asked again if that leads nowhere.
    pub(super) fn go_to(&mut self, named: Address) {
        self.leads_nowhere();
        self.learn(named.clone());
        match self.places.iter().position(|place| *place == named) {
            Some(place) => self.place = place,
            None => self.server = Some(named),
        }
    }

    /// Where no more are kept, one that has led nowhere makes room. The new one is asked behind the
    /// next pause: or those that name ever more places would be followed without one.
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
    /// Where the connection that is to be opened goes.
    pub(super) fn destination(&self) -> Option<Address> {
        let fixed = || self.config.masters.get(self.id.index()).map(Endpoint::address);
        let found =
            self.search.as_ref().map(|search| search.server.as_ref().or(search.places.get(search.place)));
        found.unwrap_or_else(fixed).cloned()
    }

    /// Whether the present connection is to a sentinel, or is to be.
    pub(crate) fn asks_sentinel(&self) -> bool {
        self.sentinels().is_some() && self.search.as_ref().is_some_and(|search| search.server.is_none())
    }

    fn sentinels(&self) -> Option<(&str, Option<&Login>)> {
        match self.config.masters.get(self.id.index())?.discovery()? {
            Discovery::Sentinel { group, login } => Some((group, login.as_ref())),
            Discovery::Cluster { .. } => None,
        }
    }

    /// Why the search has failed. One place that is misconfigured says little while others are only
    /// waiting for a failover.
    pub(super) fn search_fault(&mut self, last: Cause) -> Cause {
        self.search.as_mut().and_then(|search| search.transient.take()).unwrap_or(last)
    }

    /// Begins to look for the server anew.
    pub(super) fn search_anew(&mut self, now: Instant) {
        if let Some(search) = &mut self.search {
            search.server = None;
            search.in_vain = 0;
            search.transient = None;
            search.began = now;
            search.owner = Owner::default();
            if self.alone && self.tag.is_some() {
                // It may be one that does not know of its successor yet. Perhaps only a node that
                // was learned does.
                search.place = (search.place + 1) % search.places.len().max(1);
            }
        }
    }

    /// How long to wait for one place or server before the next place is asked. While requests
    /// wait, there must be time for a second place. Once all have failed there is no hurry: one
    /// that stands still answers when it goes on.
    fn leg_limit(&self) -> Duration {
        let limit = self.config.connect_timeout;
        let Some(search) = &self.search else { return limit };
        // The only place in a cluster that is known is the server itself.
        let another_follows = search.server.is_none() && (self.tag.is_none() || search.places.len() > 1);
        if search.is_exhausted() {
            4 * limit
        } else if another_follows && self.fault.is_none() {
            limit / 2
        } else {
            limit
        }
    }

    /// When an opening that began at `since` has taken too long.
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

    /// An opening has taken long: for the requests that wait, or for the place that is asked.
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
                    // Silence has no pause behind it, and so all go on being asked in turn, learned
                    // ones too.
                    search.place = (place + 1) % search.places.len().max(1);
                }
            }
            self.connect(now);
        }
    }

    /// A connection has failed that was not ready yet. Returns whether the next place is asked at
    /// once.
    pub(super) fn search_goes_on(&mut self, cause: Cause, now: Instant) -> bool {
        let was_ready = matches!(self.state, State::Ready | State::Draining);
        if let Some(search) = self.search.as_mut().filter(|_| !cause.is_configuration()) {
            search.transient.get_or_insert(cause);
        }
        let goes_on = self.search.as_mut().is_some_and(|search| !was_ready && search.next_place());
        if goes_on {
            self.connect(now);
        }
        goes_on
    }

    /// A connection to a sentinel stands.
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
            // Its list is a help and no more.
            (Question::Sentinels, _) => Ok(()),
        }
    }

    /// Goes where replies have pointed to, once they have been read. Returns whether that is the
    /// owner of the slot, and so nothing more is done here.
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
        // The address has served, and is the first to be tried again.
        self.served = true;
        self.abandon(answers);
        if let Some(search) = &mut self.search {
            search.server = named;
        }
        self.connect(now);
    }

    /// The server that was found is a primary, and is ready.
    pub(super) fn search_succeeded(&mut self) {
        if let Some(search) = &mut self.search {
            search.in_vain = 0;
            search.transient = None;
            search.owner = Owner::default();
        }
    }

    /// Looks whether another server has become the primary, because this one says that it lacks
    /// replicas: one that was cut off may not know yet. Answers that are awaited are waited for.
    fn look_for_successor(&mut self, now: Instant, answers: &mut Answers) {
        if self.alone && self.may_search(now) {
            self.renew(self.generation, now, answers);
        }
    }

    /// Whether the last search began long enough ago to leave a connection that stands for another.
    pub(super) fn may_search(&self, now: Instant) -> bool {
        let pause = *self.config.reconnect_delay.end();
        self.search.as_ref().is_some_and(|search| search.began + pause <= now)
    }
}

/// One sentinel in the list of another: fields and their values. One that the other does not reach
/// is none that could be asked.
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
