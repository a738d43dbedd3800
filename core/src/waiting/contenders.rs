//! All resources that this process wants: for each the locks in front, those that wait behind them,
//! and what is known about rivals.

use std::time::Duration;

use super::bid::Bid;
use super::by_name::ByName;
use super::front::Front;
use super::pace::{LetsPass, Pace, Start};
use super::queue::{Place, Queue};
use crate::jitter::Jitter;
use crate::lock::{Grant, Queueing};
use crate::protocol::{Acquire, LockId, Mode, Resource, Targets};
use crate::time::Instant;

#[cfg(test)]
mod tests;

/// How many resources are kept, wanted or not, before unwanted ones are looked for. Larger: more
/// memory. Smaller: more frequent looks.
const KEPT: usize = 1024;

/// One resource. It is small, since every held lock has one.
#[derive(Clone, Debug, Default)]
struct Contender {
    front: Front,
    /// `None` while no lock waits and nothing is remembered about rivals.
    known: Option<Box<Known>>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    queue: Queue,
    pace: Pace,
}

impl Contender {
    /// How many wait behind those in front.
    fn waiting(&self) -> usize {
        self.known.as_ref().map_or(0, |known| known.queue.len())
    }

    /// Whether a lock waits. If none does, what is known about the resource is dropped if it equals
    /// what is known about a resource that was never wanted.
    fn still_waited_for(&mut self) -> bool {
        let waits = self.waiting() > 0;
        if !waits && self.known.as_ref().is_some_and(|known| known.pace == Pace::default()) {
            self.known = None;
        }
        waits
    }

    fn has_room_for(&self, mode: &Mode, is_taken: impl Fn(LockId) -> bool) -> bool {
        self.waiting() == 0 && self.front.has_room_for(mode, is_taken)
    }
}

/// Where a requested lock starts.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// The lock is in front.
    Front(Start),
    /// The lock waits behind others.
    Behind(Places),
    /// The lock has a single try. No other lock waits, and the masters know more about the holder
    /// than this process.
    Outside,
    /// The lock has a single try, and this many callers came before it.
    Refused { others: usize },
}

/// The places of a lock that is not in front everywhere: one in the queue of each target, in the
/// order of the targets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Places {
    One(Place),
    /// `None`: it is in front there.
    Several(Box<[Option<Place>]>),
}

impl Places {
    fn iter(&self) -> impl Iterator<Item = Option<Place>> {
        let (one, several): (_, &[Option<Place>]) = match self {
            Self::One(place) => (Some(Some(*place)), &[]),
            Self::Several(several) => (None, several),
        };
        one.into_iter().chain(several.iter().copied())
    }

    /// The lock is now in front for this target.
    pub(crate) fn comes_to_front(&mut self, target: usize) {
        if let Self::Several(several) = self {
            if let Some(place) = several.get_mut(target) {
                *place = None;
            }
        }
    }

    /// Whether it must still wait. A lock of a single target comes to the front with that.
    pub(crate) fn is_behind(&self) -> bool {
        matches!(self, Self::Several(several) if several.iter().any(Option::is_some))
    }
}

/// A lock has released its targets.
#[derive(Clone, Debug)]
pub(crate) struct LetGo {
    pub(crate) id: LockId,
    pub(crate) targets: Targets,
    /// Its grant, if it was granted.
    pub(crate) grant: Option<Grant>,
    pub(crate) bid: Option<Box<Bid>>,
    /// Its place in the masters' queues, if it ended without a grant.
    pub(crate) place: Option<Box<Queueing>>,
}

/// A lock that has come to the front of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Next {
    pub(crate) id: LockId,
    pub(crate) begin: Begin,
    /// Whether more may come to the front together with it.
    pub(crate) may_follow: bool,
}

/// How a lock begins that has come to the front.
#[derive(Clone, Debug)]
pub(crate) enum Begin {
    Start(Start),
    /// The lock continues its predecessor's wait.
    GoOn(Box<Bid>),
}

/// All resources that a lock of this process wants, or wanted recently.
#[derive(Clone, Debug)]
pub(crate) struct Contenders {
    by_resource: ByName<Contender>,
    tidy_at: usize,
    longest_patience: Duration,
}

impl Contenders {
    /// `longest_patience` limits how long a lock lets others go first.
    pub(crate) fn new(longest_patience: Duration) -> Self {
        Self { by_resource: ByName::new(), tidy_at: KEPT, longest_patience }
    }

    /// The locks in front.
    pub(crate) fn front(&self, resource: &[u8]) -> Option<&Front> {
        Some(&self.by_resource.get(resource)?.front)
    }

    /// Each lock in front of a resource.
    pub(crate) fn all_in_front(&self) -> impl Iterator<Item = (&Resource, LockId)> {
        let fronts = self.by_resource.in_order().into_iter();
        fronts.flat_map(|(resource, contender)| contender.front.locks().map(move |id| (resource, id)))
    }

    /// How long, or for how many turns, a lock in front lets others go first.
    pub(crate) fn lets_pass(&self, targets: &Targets) -> LetsPass {
        let contender = targets.queues().next().and_then(|(first, _)| self.by_resource.get(first.key()));
        let known = contender.and_then(|contender| contender.known.as_ref());
        known.map_or_else(LetsPass::default, |known| known.pace.lets_pass())
    }

    /// How many callers are ahead of a waiter: those in front, and those that came earlier.
    pub(crate) fn ahead_of(&self, targets: &Targets, places: &Places) -> usize {
        let ahead = |((resource, _), place): ((&Resource, &Mode), Option<Place>)| {
            let contender = self.by_resource.get(resource.key())?;
            let before = contender.known.as_ref()?.queue.ahead_of(place?);
            Some(contender.front.len() + before)
        };
        targets.queues().zip(places.iter()).filter_map(ahead).max().unwrap_or(1)
    }

    /// A queue in which the lock with these places waits behind others.
    pub(crate) fn behind_at<'a>(&self, targets: &'a Targets, places: &Places) -> Option<&'a Resource> {
        let mut queues = targets.queues().zip(places.iter());
        queues.find_map(|((resource, _), place)| place.map(|_| resource))
    }

    // Coming.

    /// A lock is requested: it comes to the front of an empty queue, or behind the others.
    pub(crate) fn enter(
        &mut self,
        wanted: &Acquire,
        id: LockId,
        is_taken: impl Fn(LockId) -> bool,
        jitter: &mut Jitter,
        now: Instant,
    ) -> Entry {
        let Some((resource, mode)) = wanted.targets.only() else {
            return self.enter_all(wanted, id, is_taken, now);
        };
        let Some(contender) = self.by_resource.get_mut(resource.key()) else {
            self.begin(resource, mode, id, now);
            return Entry::Front(Start::default());
        };
        if contender.has_room_for(mode, |id| !wanted.is_single_try() && is_taken(id)) {
            contender.front.add(id, mode);
            // A single try does not let others go first, and sharers do not take turns.
            let is_plain = wanted.is_single_try() || matches!(mode, Mode::Shared(_));
            let known = contender.known.get_or_insert_default();
            return Entry::Front(match contender.front.readers_beside(id) {
                0 if is_plain => Start::default(),
                0 => known.pace.come(jitter, now),
                readers => Start::default().beside(readers),
            });
        }
        if !wanted.is_single_try() {
            return Entry::Behind(Places::One(contender.known.get_or_insert_default().queue.push(id)));
        }
        let waiting = contender.waiting();
        if waiting == 0 && contender.front.locks().all(is_taken) {
            Entry::Outside
        } else {
            Entry::Refused { others: waiting + contender.front.len() }
        }
    }

    /// A lock of several targets is in all their queues at once. All queues have the same order,
    /// that of arrival, so there are no circular waits.
    fn enter_all(
        &mut self,
        wanted: &Acquire,
        id: LockId,
        is_taken: impl Fn(LockId) -> bool,
        now: Instant,
    ) -> Entry {
        // A single try does not wait beside readers.
        if wanted.is_single_try() {
            let contenders = wanted.targets.queues();
            let full = contenders
                .filter_map(|(resource, mode)| Some((self.by_resource.get(resource.key())?, mode)))
                .filter(|(contender, mode)| !contender.has_room_for(mode, |_| false));
            let (mut others, mut all_taken) = (0, true);
            for (contender, _) in full {
                others = others.max(contender.waiting() + contender.front.len());
                all_taken &= contender.waiting() == 0 && contender.front.locks().all(&is_taken);
            }
            match others {
                0 => {}
                _ if all_taken => return Entry::Outside,
                others => return Entry::Refused { others },
            }
        }
        let queues = wanted.targets.queues();
        let places: Box<[_]> =
            queues.map(|(resource, mode)| self.join(resource, mode, id, &is_taken, now)).collect();
        if places.iter().any(Option::is_some) {
            return Entry::Behind(Places::Several(places));
        }
        let start =
            if wanted.is_single_try() { Start::default() } else { self.start(&wanted.targets, id, now) };
        Entry::Front(start)
    }

    /// Enters one queue. Returns the lock's place in it; `None` if it is in front.
    fn join(
        &mut self,
        resource: &Resource,
        mode: &Mode,
        id: LockId,
        is_taken: impl Fn(LockId) -> bool,
        now: Instant,
    ) -> Option<Place> {
        let Some(contender) = self.by_resource.get_mut(resource.key()) else {
            self.begin(resource, mode, id, now);
            return None;
        };
        if contender.has_room_for(mode, is_taken) {
            contender.front.add(id, mode);
            return None;
        }
        Some(contender.known.get_or_insert_default().queue.push(id))
    }

    /// A lock wants an unknown resource.
    fn begin(&mut self, resource: &Resource, mode: &Mode, id: LockId, now: Instant) {
        if self.by_resource.len() >= self.tidy_at {
            self.tidy(now);
        }
        let mut contender = Contender::default();
        contender.front.add(id, mode);
        self.by_resource.insert(resource.clone(), contender);
    }

    /// How a lock begins that is in front for all its targets. Sharers do not take turns.
    pub(crate) fn start(&mut self, targets: &Targets, id: LockId, now: Instant) -> Start {
        let mut start = Start::default();
        if !targets.is_shared() {
            for (resource, _) in targets.queues() {
                let known =
                    self.by_resource.get_mut(resource.key()).and_then(|contender| contender.known.as_mut());
                if let Some(known) = known {
                    start = start.and(known.pace.come_anew(now));
                }
            }
        }
        start.beside(self.readers_beside(targets, id))
    }

    /// How a lock goes on that waits beside readers, one of which has left. If it is alone now, it
    /// begins as if it were requested now: sharers do not take turns.
    pub(crate) fn start_behind_reader(
        &mut self,
        targets: &Targets,
        id: LockId,
        jitter: &mut Jitter,
        now: Instant,
    ) -> Start {
        let only = targets.only().and_then(|(resource, _)| self.by_resource.get_mut(resource.key()));
        match only.filter(|contender| contender.front.readers_beside(id) == 0) {
            Some(contender) => contender.known.get_or_insert_default().pace.come(jitter, now),
            None => self.start(targets, id, now),
        }
    }

    /// The number of readers of this process beside which a lock waits.
    fn readers_beside(&self, targets: &Targets, id: LockId) -> usize {
        let beside = |(resource, _): (&Resource, _)| {
            self.by_resource.get(resource.key()).map_or(0, |contender| contender.front.readers_beside(id))
        };
        targets.queues().map(beside).max().unwrap_or(0)
    }

    fn tidy(&mut self, now: Instant) {
        let is_forgotten = |contender: &Contender| {
            contender.front.is_empty()
                && contender.known.as_ref().is_none_or(|known| known.pace.is_forgotten(now))
        };
        self.by_resource.retain(|contender| !is_forgotten(contender));
        self.tidy_at = KEPT.max(2 * self.by_resource.len());
    }

    // Leaving.

    /// A lock that waited behind others has left. Returns whether others may come to the front
    /// because of that.
    pub(crate) fn leave(&mut self, targets: &Targets, places: &Places) -> bool {
        let mut frees = false;
        for ((resource, _), place) in targets.queues().zip(places.iter()) {
            let Some(contender) = self.by_resource.get_mut(resource.key()) else { continue };
            match (place, &mut contender.known) {
                (Some(place), Some(known)) => {
                    known.queue.leave(place);
                    frees |= contender.front.may_grow();
                }
                (Some(_), None) => debug_assert!(false, "a waiter that leaves is in a queue"),
                (None, _) => frees = true,
            }
        }
        frees
    }

    /// A lock leaves the front again, with no lock behind it.
    pub(crate) fn leave_front(&mut self, targets: &Targets, id: LockId) {
        for (resource, _) in targets.queues() {
            if let Some(contender) = self.by_resource.get_mut(resource.key()) {
                contender.front.remove(id);
            }
        }
    }

    /// A lock in front shares a resource with readers from now on.
    pub(crate) fn share(&mut self, resource: &Resource, id: LockId) {
        if let Some(contender) = self.by_resource.get_mut(resource.key()) {
            contender.front.share(id);
        }
    }

    /// A lock has released a resource; `grant` is its grant, if it had one. Returns whether others
    /// wait for it; [`Contenders::next`] returns those that come to the front.
    pub(crate) fn let_go(&mut self, resource: &Resource, let_go: &LetGo, now: Instant) -> bool {
        let Some(contender) = self.by_resource.get_mut(resource.key()) else { return false };
        contender.front.remove(let_go.id);
        let LetGo { targets, grant, bid, .. } = let_go;
        // If no lock was granted or met rivals, and none waits, there is nothing to keep. Sharers
        // do not take turns.
        if targets.is_shared() || contender.known.is_none() && grant.is_none() && bid.is_none() {
            return contender.still_waited_for();
        }
        let known = contender.known.get_or_insert_default();
        if let Some(bid) = bid {
            known.pace.met_others(bid.met_others);
            known.pace.woke(bid.woke_late);
        }
        if let Some(grant) = *grant {
            let waited = bid.as_ref().map_or(Duration::ZERO, |bid| bid.waited(grant));
            let passed_over = bid.as_ref().map_or(0, |bid| bid.passed_over);
            known.pace.let_go(grant, waited, passed_over, self.longest_patience, now);
        }
        contender.still_waited_for()
    }

    /// The next lock that comes to the front of a resource, and how it begins there. `is` returns a
    /// waiter's mode.
    pub(crate) fn next(
        &mut self,
        resource: &Resource,
        let_go: &mut LetGo,
        is: impl Fn(LockId) -> Mode,
        is_taken: impl Fn(LockId) -> bool,
        jitter: &mut Jitter,
        now: Instant,
    ) -> Option<Next> {
        let contender = self.by_resource.get_mut(resource.key())?;
        let known = contender.known.as_mut()?;
        let mode = is(known.queue.first()?);
        if !contender.front.has_room_for(&mode, is_taken) {
            return None;
        }
        let id = known.queue.pop()?;
        contender.front.add(id, &mode);
        let may_follow = contender.front.may_grow();
        let readers = contender.front.readers_beside(id);
        let takes_turns = readers == 0 && !matches!(mode, Mode::Shared(_)) && let_go.targets.only().is_some();
        let start = if !takes_turns {
            known.pace.come_anew(now)
        } else if let_go.grant.is_some() {
            known.pace.hand_over(jitter, now)
        } else {
            // A failed lock has kept no other process out.
            known.pace.come_anew(now)
        };
        let start = start.beside(readers);
        let kept = let_go.bid.take_if(|bid| takes_turns && bid.is_worth_keeping());
        let begin = match kept {
            Some(bid) => Begin::GoOn(Box::new(bid.passed_on(start, known.pace.lets_pass(), now))),
            None if matches!(mode, Mode::Shared(_)) => Begin::Start(Start::default()),
            None => Begin::Start(start),
        };
        Some(Next { id, begin, may_follow })
    }
}
