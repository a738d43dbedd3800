//! Everything in a world except the clients' code: the order of events, the processes and the
//! network between them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

use quorlock_core::internals::OPEN;
use quorlock_core::{Cause, Fleet, Ttl};

use super::clock::{Clock, TrueTime};
use super::event::{Event, Scheduled};
use super::fault::Fault;
use super::following::Part;
use super::groups::Groups;
use super::link::{Link, LinkId, Path};
use super::observer::Observer;
use super::process::Kept;
use super::pushes::Pushing;
use super::random::Random;
use super::timeline::{Happening, Timeline};
use crate::master::{Command, Keep, Master, Session, Snapshot};

/// Where the masters' clocks start, as the time since the Unix epoch; the clients' clocks start
/// anywhere.
const MASTERS_START: Duration = Duration::from_secs(1_750_000_000);

/// A master's process.
#[derive(Debug)]
pub(super) struct MasterNode {
    pub(super) model: Master,
    pub(super) clock: Clock,
    pub(super) hangs_until: TrueTime,
    pub(super) away_until: TrueTime,
    /// It answers with errors before this.
    pub(super) refuses_until: TrueTime,
    /// The keys that survive while it is down.
    pub(super) kept: Kept,
    pub(super) saved: Option<Snapshot>,
    /// Whether it is off until it returns, also if all faults end.
    pub(super) has_left: bool,
    /// The number of its starts, so that no two starts have the same run id.
    pub(super) incarnations: u64,
    pub(super) pushing: Pushing,
    pub(super) part: Part,
}

/// An event of a client's socket.
#[derive(Debug)]
pub(super) enum Inbound {
    Opened(LinkId),
    Bytes(LinkId, Vec<u8>),
    Ended(LinkId, Cause),
}

/// A client's process.
#[derive(Debug)]
pub(super) struct ClientNode {
    pub(super) clock: Clock,
    pub(super) entropy: Random,
    pub(super) paused_until: TrueTime,
    /// When its last pause ended, on its clock.
    pub(super) stood_until: u64,
    /// By how much its clock has jumped forward in total.
    pub(super) leapt: Duration,
    pub(super) is_dead: bool,
    pub(super) inbox: VecDeque<Inbound>,
    /// When the driver runs next, and the number of that turn.
    pub(super) turn: Option<(TrueTime, u64)>,
    pub(super) turns: u64,
    /// Whether its driver is in a turn.
    pub(super) is_in_turn: bool,
    /// When the present window of true time began, and how many turns in it had nothing to do.
    pub(super) idle_turns: (TrueTime, u32),
    /// Whether a poll of tasks is scheduled.
    pub(super) poll_is_due: bool,
    /// The tasks that were woken, in order.
    pub(super) woken: VecDeque<usize>,
    /// Its connections to each master that it has not closed.
    pub(super) links: Vec<Vec<LinkId>>,
    /// The groups that are its masters, unless they are in a cluster.
    pub(super) list: Vec<usize>,
    /// For each of them the server to which it opens connections.
    pub(super) named: Vec<usize>,
    /// For each place of the list, the server that it connected to last, and since when, if it had
    /// connected to another one before.
    pub(super) met: BTreeMap<usize, (usize, Option<TrueTime>)>,
    pub(super) paths: Vec<Path>,
}

/// The world without the clients' code.
#[derive(Debug)]
pub(super) struct State {
    pub(super) now: TrueTime,
    scheduled: u64,
    queue: BinaryHeap<Reverse<Scheduled>>,
    pub(super) random: Random,
    /// All servers.
    pub(super) masters: Vec<MasterNode>,
    pub(super) groups: Groups,
    pub(super) clients: Vec<ClientNode>,
    pub(super) links: Vec<Link>,
    pub(super) observer: Observer,
    pub(super) timeline: Timeline,
    /// If masters are reached over channels, how often their password has changed.
    pub(super) passwords: Option<u32>,
    /// How many events have happened.
    pub(super) steps: u64,
    /// How many writes clients have made.
    pub(super) writes: u64,
    /// Whether all faults have ended. Then messages are not slow any more either.
    pub(super) is_calm: bool,
    /// Faults by the number of events after which they happen.
    counted: BTreeMap<u64, Vec<Fault>>,
    /// Faults by the number of the grant after which they happen, each with its delay.
    granted: BTreeMap<u64, Vec<(u64, Fault)>>,
    grants: u64,
}

impl State {
    /// The masters' clocks differ by up to `skew`.
    pub(super) fn new(seed: u64, groups: Groups, skew: Duration, keeps_timeline: bool) -> Self {
        let mut random = Random::new(seed);
        let masters = (0..groups.servers())
            .map(|place| MasterNode {
                model: Master::new(identity(place, 0)),
                clock: Clock::new(MASTERS_START + random.within(Duration::ZERO..=skew), 0),
                hangs_until: 0,
                away_until: 0,
                refuses_until: 0,
                kept: Kept::Own(Keep::Everything),
                saved: None,
                has_left: false,
                incarnations: 0,
                pushing: Pushing::default(),
                part: Part::default(),
            })
            .collect::<Vec<_>>();
        let mut state = Self {
            now: 0,
            scheduled: 0,
            queue: BinaryHeap::new(),
            random,
            observer: Observer::new(groups.masters(), masters.len()),
            masters,
            groups,
            clients: Vec::new(),
            links: Vec::new(),
            timeline: Timeline::new(keeps_timeline),
            passwords: None,
            steps: 0,
            writes: 0,
            is_calm: false,
            counted: BTreeMap::new(),
            granted: BTreeMap::new(),
            grants: 0,
        };
        state.begin_following();
        state.begin_slots();
        state
    }

    pub(super) fn add_client(&mut self, list: Vec<usize>) -> usize {
        let start = self.random.within(Duration::from_secs(1)..=Duration::from_secs(1_000));
        self.clients.push(ClientNode {
            clock: Clock::new(start, 0),
            entropy: self.random.fork(),
            paused_until: 0,
            stood_until: 0,
            leapt: Duration::ZERO,
            is_dead: false,
            inbox: VecDeque::new(),
            turn: None,
            turns: 0,
            is_in_turn: false,
            idle_turns: (0, 0),
            poll_is_due: false,
            woken: VecDeque::new(),
            links: vec![Vec::new(); self.masters.len()],
            named: self.groups.named(&list),
            met: BTreeMap::new(),
            list,
            paths: vec![Path::default(); self.masters.len()],
        });
        self.clients.len() - 1
    }

    /// A client has the restart guard on.
    pub(super) fn guard(&mut self, longest: Duration) {
        let now = self.now;
        let founders = (0..self.masters.len()).map(|server| self.groups.is_founder(server));
        let clocks = self.masters.iter().map(|node| node.clock.read(now)).zip(founders);
        self.observer.outages.guard(longest, clocks);
    }

    /// All masters are told that nothing can be locked yet.
    pub(super) fn bootstrap(&mut self, longest: Duration) {
        let Ok(longest_ttl) = Ttl::new(longest) else { return };
        let masters = u32::try_from(self.groups.masters()).unwrap_or(0);
        let replicas = self.groups.declared.map(u16::from);
        let marked = Fleet { longest_ttl, masters, replicas }.marked();
        let [longest, marked] =
            [longest_ttl.as_millis(), marked].map(|number| number.to_string().into_bytes());
        let marker = self.groups.key(Fleet::MARKER.as_bytes());
        // In a cluster, only the owner of the slot accepts the command.
        let groups = &self.groups;
        for (_, node) in self.masters.iter_mut().enumerate().filter(|(server, _)| groups.is_founder(*server))
        {
            if node.model.is_replica() {
                continue;
            }
            let command = Command::new([b"EVAL", OPEN.text.as_bytes(), b"1", &marker, &longest, &marked]);
            let server_now = Duration::from_nanos(node.clock.read(self.now));
            let _ = node.model.execute(&mut Session::new(), &command, server_now, &mut Vec::new());
        }
        self.observer.outages.opened = true;
    }

    // The order of events.

    pub(super) fn schedule(&mut self, at: TrueTime, event: Event) {
        let number = self.scheduled;
        self.scheduled += 1;
        self.queue.push(Reverse(Scheduled { at: at.max(self.now), number, event }));
    }

    /// When the next event happens.
    pub(super) fn next_at(&self) -> Option<TrueTime> {
        self.queue.peek().map(|Reverse(next)| next.at)
    }

    /// Schedules a fault for when `number` events have happened.
    pub(super) fn schedule_after_events(&mut self, number: u64, fault: Fault) {
        self.counted.entry(number).or_default().push(fault);
    }

    /// Schedules a fault for this long after that grant.
    pub(super) fn schedule_at_grant(&mut self, number: u64, delay: u64, fault: Fault) {
        self.granted.entry(number).or_default().push((delay, fault));
    }

    /// A master has executed a request for a lock and granted it.
    pub(super) fn grant_happens(&mut self, client: usize, master: usize) {
        let due = self.granted.remove(&self.grants);
        self.grants += 1;
        for (delay, fault) in due.into_iter().flatten() {
            let fault = fault.counted_from(client, master);
            if delay == 0 && !matches!(fault, Fault::Kill { .. }) {
                self.inject(fault);
            } else {
                self.schedule(self.now + delay, Event::Fault(fault));
            }
        }
    }

    /// Makes it the time of the next event.
    pub(super) fn next_event(&mut self) -> Option<Event> {
        while let Some(due) = self.counted.first_entry().filter(|due| *due.key() <= self.steps) {
            for fault in due.remove() {
                self.schedule(self.now, Event::Fault(fault));
            }
        }
        let Reverse(next) = self.queue.pop()?;
        self.now = next.at;
        self.steps += 1;
        Some(next.event)
    }

    /// Cancels all later faults.
    pub(super) fn forget_faults(&mut self) {
        self.counted.clear();
        self.granted.clear();
        self.queue.retain(|Reverse(next)| !matches!(next.event, Event::Fault(_)));
    }

    /// Leaves only the actions of clients and masters: abandoned sleeps, and ends of faults that
    /// have ended already, have no effect.
    pub(super) fn forget_events_without_effect(&mut self) {
        self.forget_faults();
        self.forget_rounds();
        self.queue.retain(|Reverse(next)| {
            !matches!(
                next.event,
                Event::Alarm(_)
                    | Event::Resume { .. }
                    | Event::Continue { .. }
                    | Event::Restart { .. }
                    | Event::Promote { .. }
                    | Event::Mend { .. }
                    | Event::Round { .. }
                    | Event::LatePushes { .. }
                    | Event::Parcel(_)
                    | Event::Beat { .. }
                    | Event::Learns { .. }
                    | Event::OwnerIsTold { .. }
                    | Event::SlotStep { .. }
                    | Event::WaitEnds { .. }
            )
        });
    }

    /// All pending events, to be dropped while the state is unlocked: a waker may own the last
    /// reference to a task.
    pub(super) fn take_events(&mut self) -> impl Drop + use<> {
        std::mem::take(&mut self.queue).into_vec()
    }

    pub(super) fn note(&mut self, what: impl FnOnce() -> Happening) {
        self.timeline.note(self.now, what);
    }

    // Connections.

    pub(super) fn link(&self, id: LinkId) -> Option<&Link> {
        self.links.get(id.0)
    }

    pub(super) fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.get_mut(id.0)
    }

    pub(super) fn link_ids(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.links.len()).map(LinkId)
    }

    pub(super) fn path_mut(&mut self, client: usize, master: usize) -> Option<&mut Path> {
        self.clients.get_mut(client).and_then(|node| node.paths.get_mut(master))
    }

    pub(super) fn path(&self, client: usize, master: usize) -> Path {
        self.clients.get(client).and_then(|node| node.paths.get(master)).copied().unwrap_or_default()
    }
}

pub(super) fn identity(master: usize, incarnation: u64) -> u64 {
    // Far apart, so that no two processes of one world share a value.
    (master as u64 + 1) << 32 | incarnation
}
