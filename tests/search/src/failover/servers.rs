//! The servers of the group, and the messages between them.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

use quorlock_core::internals::OPEN;
use quorlock_core::{Fleet, Ttl};
use quorlock_sim::{Changes, Command, Master, Session};

use super::client::{TICK, TTL};
use super::{Failover, SERVERS, fingerprint};

/// Where the servers' clocks begin.
const START: Duration = Duration::from_secs(1_750_000_000);

/// One server of the group. Most steps change one of them, so states share the others.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) model: Rc<Master>,
    /// The digest of the model, once it was computed. It is kept because most of a model seldom
    /// changes.
    digest: Cell<Option<[u64; 2]>>,
    /// By how much its clock is ahead.
    ahead: Duration,
    /// The other server, as its replica.
    pub(super) link: Option<Link>,
}

impl Hash for Server {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let digest = self.digest.get().unwrap_or_else(|| fingerprint(&self.model));
        self.digest.set(Some(digest));
        (digest, self.ahead, &self.link).hash(state);
    }
}

/// A replica, as its primary sees it.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Link {
    /// The changes that it has not applied yet.
    pub(super) stream: Vec<Changes>,
    /// Its last acknowledgement, if the primary has not read it.
    pub(super) unread: Option<u64>,
    /// Whether it has stopped following, which the primary reads last.
    pub(super) ended: bool,
}

/// The port by which the primary knows its replica.
const PORT: u16 = 6380;

impl Server {
    pub(super) fn group(failover: &Failover) -> [Self; SERVERS] {
        let mut servers = [0, 1].map(|number| {
            let mut model = Master::new(number);
            model.set_early_quarantine(failover.early_quarantine);
            let ahead = Duration::from_millis(if number == 0 { 0 } else { failover.ahead.into() });
            Self { model: Rc::new(model), digest: Cell::new(None), ahead, link: None }
        });
        let [primary, replica] = &mut servers;
        let replicas = (failover.declared > 0).then_some(failover.declared.into());
        let longest_ttl = Ttl::new(TTL).expect("it is not zero");
        let fleet = Fleet { longest_ttl, masters: 1, replicas };
        let [ttl, marked] = [longest_ttl.as_millis(), fleet.marked()].map(|number| number.to_string());
        let open = Command::new(["EVAL", OPEN.text, "1", Fleet::MARKER, &ttl, &marked]);
        let clock = primary.clock(0);
        let _ = primary.model().execute(&mut Session::new(), &open, clock, &mut Vec::new());
        primary.take_in(replica, 0);
        // The first replica has changed the replication id, so the masters are bootstrapped again.
        let _ = primary.model().execute(&mut Session::new(), &open, clock, &mut Vec::new());
        primary.replicate();
        let sent = primary.link.as_mut().map(|link| std::mem::take(&mut link.stream));
        sent.into_iter().flatten().for_each(|changes| replica.model().apply(&changes));
        primary.hear_all(0);
        servers
    }

    pub(super) fn model(&mut self) -> &mut Master {
        self.digest.set(None);
        Rc::make_mut(&mut self.model)
    }

    pub(super) fn clock(&self, tick: u8) -> Duration {
        START + TICK * u32::from(tick) + self.ahead
    }

    /// Another server begins to follow this one, with a copy of its keys.
    pub(super) fn take_in(&mut self, other: &mut Self, tick: u8) {
        self.model().attach(PORT);
        self.refresh(tick);
        let _ = self.model().take_changes();
        other.model().resync_from(&self.model);
        other.model().detach_all();
        other.link = None;
        self.link = Some(Link { unread: Some(self.model.offset()), ..Link::default() });
    }

    /// Sends changes to the replica.
    pub(super) fn replicate(&mut self) {
        let changes = self.model().take_changes();
        if let Some(link) = self.link.as_mut().filter(|link| !link.ended) {
            link.stream.extend(changes);
        }
    }

    /// Makes the replica's last acknowledgement less than a second old, which does not prove that
    /// it still follows.
    pub(super) fn refresh(&mut self, tick: u8) {
        let clock = self.clock(tick);
        self.model().hear_replica(PORT, 0, clock);
    }

    /// Reads that the replica has applied everything.
    fn hear_all(&mut self, tick: u8) {
        let offset = self.model.offset();
        self.link.iter_mut().for_each(|link| link.unread = Some(offset));
        self.hear(tick);
    }

    /// Reads what the replica has acknowledged.
    pub(super) fn hear(&mut self, tick: u8) {
        let clock = self.clock(tick);
        let unread = self.link.as_mut().and_then(|link| link.unread.take());
        unread.into_iter().for_each(|offset| self.model().hear_replica(PORT, offset, clock));
    }

    /// Reads the end of the replica.
    pub(super) fn lose_replica(&mut self) {
        self.link = None;
        self.model().detach(PORT);
    }
}
