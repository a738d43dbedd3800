//! Permits: one master assigns seats of the semaphore, and the others are asked for exactly those.
//!
//! A seat is an ordinary exclusive lock, so no two holders have the same one, whatever is assigned:
//! the assignment only saves a search on each master. The attempt does not wait for a silent
//! master: the next one is asked to assign. So seats may be taken on several masters, and a master
//! that took other seats than the chosen ones gets a release of them.
//!
//! Several permits at once are assigned in one script, all or none, and the other masters are asked
//! for all of them or none, as for a lock of several resources. No attempt holds some of them while
//! it waits for others, so no two wait for each other.

use std::time::Duration;

use super::context::{Base, Context};
use crate::jitter::Jitter;
use crate::protocol::{
    Action, Answer, Cause, Claim, Fate, MasterId, MasterSet, Request, Resource, Seats, Sentinel, Targets,
    Token, Wish,
};

/// The choice of a semaphore's seats for an attempt.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Seating {
    name: Resource,
    of: u16,
    /// How many seats the attempt takes.
    take: u16,
    /// The first seat of each master's first window.
    from: u16,
    /// The name of the wait, if others have overtaken it for too long.
    wish: Option<Wish>,
    /// The windows of masters that may have taken any seats of theirs.
    windows: Vec<Window>,
    chosen: Option<Seats>,
}

/// Consecutive seats of which a master is to assign some. A semaphore with more seats than one
/// request may name has several windows, and each master that assigns goes through all of them.
/// They overlap, so that free seats on both sides of a border are found.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Window {
    master: MasterId,
    /// Its first seat, and its number of seats.
    from: u16,
    length: u16,
    /// The next window begins this many seats later.
    step: u16,
    /// With how many of the seats neither this window nor an earlier one deals as the first of
    /// those that the attempt takes.
    left: u16,
    /// What the master has said about its earlier windows.
    refused: Option<Answer>,
    /// The claim of all its seats.
    claim: Claim,
}

/// What a master has said in an attempt.
pub(super) enum Said {
    /// Its answer about the chosen seats, or about all of its windows.
    All(Answer),
    /// It has refused some seats, and has been asked for others.
    Some(Answer),
}

/// How an attempt asks a master to assign seats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    pub(super) round: u32,
    pub(super) watch: bool,
    pub(super) waited: Option<Duration>,
    /// Whether the round is not decided yet.
    pub(super) is_open: bool,
}

impl Seating {
    /// For an attempt at permits.
    pub(super) fn new((name, of, take): (&Resource, u16, u16), base: &Base) -> Self {
        let seats = base.targets.seats();
        Self {
            name: name.clone(),
            of,
            take,
            from: first_seat(base, of, take),
            wish: base.wish.as_deref().copied(),
            windows: Vec::new(),
            chosen: (seats != Seats::NONE).then_some(seats),
        }
    }

    /// The window that follows this one, or a master's first one; `None` if it has seen all.
    fn window_after(
        &self,
        last: Option<&Window>,
        master: MasterId,
        token: Token,
        fenced: bool,
    ) -> Option<Window> {
        let (from, left) =
            last.map_or((self.from, self.of), |last| ((last.from + last.step) % self.of, last.left));
        if left == 0 {
            return None;
        }
        let length = (left + self.take - 1).min(Seats::MOST).min(self.of);
        let step = if length == self.of { left } else { left.min(stride(self.take)) };
        let claim = self.claim_of(self.seats_of(from, length), token, fenced)?;
        Some(Window { master, from, length, step, left: left - step, refused: None, claim })
    }

    /// The numbers of consecutive seats; behind the last seat, the first one follows.
    fn seats_of(&self, from: u16, length: u16) -> impl Iterator<Item = u16> + use<> {
        let of = self.of;
        (0..length).map(move |place| (from + place) % of)
    }

    /// A claim of some of these seats; `None` if there is no seat.
    fn claim_of(&self, seats: impl Iterator<Item = u16>, token: Token, fenced: bool) -> Option<Claim> {
        let seats: Vec<_> = seats.map(|seat| self.name.seat(seat.into())).collect();
        let claim = || Claim::of_seats(&self.name, &seats, self.take, token, fenced, self.wish);
        (!seats.is_empty()).then(claim)
    }

    fn window_of(&self, master: MasterId) -> Option<usize> {
        self.windows.iter().position(|window| window.master == master)
    }

    /// The seats of the window with these places, if there are as many as requested.
    fn seats(&self, window: &Window, places: u64) -> Option<Seats> {
        let is_in_window = places.checked_shr(window.length.into()).unwrap_or(0) == 0;
        let seats = Seats::new(window.from, self.of, places).filter(|_| is_in_window);
        seats.filter(|seats| seats.count() == u32::from(self.take))
    }

    pub(super) fn chosen(&self) -> Option<Seats> {
        self.chosen
    }

    fn has_chosen(&self, seat: u16) -> bool {
        self.chosen.is_some_and(|seats| seats.numbers().any(|number| number == seat))
    }

    /// The locks of the chosen seats.
    pub(super) fn locks(&self) -> Option<Targets> {
        Some(Targets::of_seats(&self.name, self.chosen?))
    }
}

impl Context<'_, '_> {
    /// After a lost attempt: the next one does not begin with a seat that others refused. The
    /// master that assigned it may not know of its holder.
    ///
    /// Masters that know of different holders assign in turns. If each began one seat behind the
    /// last one, all of them could again and again miss the one that is free on a majority. So
    /// after a turn they begin anywhere.
    pub(super) fn skip_seats(&mut self) {
        let chosen = self.keys.seating.as_ref().and_then(|seating| Some((seating.of, seating.chosen()?)));
        let Some((of, seats)) = chosen else { return };
        let is_first_turn = self.base.attempts as usize <= self.effects.config.masters.len();
        let Some(seat) = seats.numbers().next() else { return };
        let anywhere = |jitter: &mut Jitter| u16::try_from(jitter.next() % u64::from(of.max(1))).unwrap_or(0);
        self.base.seat_from = if is_first_turn { seat + 1 } else { anywhere(self.effects.jitter) };
    }

    /// Has a master assign seats.
    pub(super) fn take_seats(&mut self, master: MasterId, asking: Asking) {
        let (token, fenced) = (self.keys.token, self.base.is_fenced);
        let Some(seating) = &mut self.keys.seating else { return };
        let Some(window) = seating.window_after(None, master, token, fenced) else { return };
        seating.windows.push(window.clone());
        self.keys.reached.insert(master);
        self.ask_for(Some(window.claim), master, asking);
    }

    /// Asks a master for any seats of a window, or for the chosen ones.
    fn ask_for(&mut self, window: Option<Claim>, master: MasterId, asking: Asking) {
        let Asking { round, watch, waited, .. } = asking;
        let request = self.request(Some(round), Action::Acquire, self.base.ttl);
        let claim = window.unwrap_or_else(|| request.claim.clone());
        self.effects.order(MasterSet::only(master), Request { claim, watch, waited, ..request });
    }

    /// Turns a master's answer into one about the chosen seats, which this answer may choose.
    pub(super) fn chosen_by(&mut self, master: MasterId, answer: Answer, asking: Asking) -> Said {
        let (token, fenced) = (self.keys.token, self.base.is_fenced);
        let Some(seating) = &mut self.keys.seating else { return Said::All(answer) };
        let Some(place) = seating.window_of(master) else { return Said::All(answer) };
        if leaves_open(answer) {
            return Said::All(answer);
        }
        let window = seating.windows.swap_remove(place);
        let answer = window.refused.map_or(answer, |earlier| of_both_windows(earlier, answer));
        match answer {
            Answer::Seats { places, number } => {
                let seats = seating.seats(&window, places);
                seating.chosen = seating.chosen.or(seats);
                if seats.is_none() || seats != seating.chosen {
                    self.let_go(master, window.claim);
                    return Said::All(Answer::No);
                }
                if let Some(locks) = seating.locks() {
                    self.keys.choose(&locks, fenced);
                }
                Said::All(match number {
                    Some(number) => Answer::Counted(number),
                    None if fenced => {
                        let (cause, fate) = (Cause::UnexpectedReply, Fate::Unknown);
                        Answer::Failed { cause, fate, stale: false }
                    }
                    None => Answer::Yes,
                })
            }
            Answer::Holder { .. } if seating.chosen.is_none() => {
                let next = seating.window_after(Some(&window), master, token, fenced);
                let Some(next) = next else { return Said::All(answer) };
                seating.windows.push(Window { refused: Some(answer), ..next.clone() });
                self.ask_for(Some(next.claim), master, asking);
                Said::Some(answer)
            }
            // It has refused a window, and was not asked for the seats that another one has chosen
            // meanwhile.
            Answer::Holder { .. } if asking.is_open => {
                self.ask_for(None, master, asking);
                Said::Some(answer)
            }
            answer => Said::All(answer),
        }
    }

    /// A master has taken other seats than the chosen ones. It never counts as a holder of those:
    /// it may refuse the release at first, and get it again later.
    fn let_go(&mut self, master: MasterId, claim: Claim) {
        let request = self.request(None, Action::Release, self.base.longest_ttl);
        self.effects.order(MasterSet::only(master), Request { claim, ..request });
        self.keys.reached.remove(master);
        self.keys.forsaken.insert(master);
    }

    /// Orders requests that take the token back, at once or later. A master that may have taken any
    /// seats of a window gets one about the chosen seats, too: it may have taken these, or healing
    /// may have restored them there.
    pub(super) fn order_back(&mut self, to: MasterSet, request: Request) {
        let Some(seating) = &self.keys.seating else { return self.effects.order(to, request) };
        if seating.chosen().is_some() {
            // In this order, so that an acquisition that was never sent is forgotten, and the
            // answer to the request says what the master has.
            self.give_other_seats_back(to, request.action);
            return self.effects.order(to, request);
        }
        for window in seating.windows.iter().filter(|window| to.contains(window.master)) {
            let claim = window.claim.clone();
            self.effects.order(MasterSet::only(window.master), Request { claim, ..request.clone() });
        }
    }

    /// Gives back what these masters may have taken beside the chosen seats. It never counts as
    /// ours, so no answer is awaited. The undo of a lost round must be an undo here, too: to a
    /// release, an answer that nothing was deleted would tell this lock to try again at once.
    pub(super) fn give_other_seats_back(&mut self, to: MasterSet, action: Action) {
        let action = if action == Action::Undo { action } else { Action::Release };
        let Some(seating) = &self.keys.seating else { return };
        for window in seating.windows.iter().filter(|window| to.contains(window.master)) {
            let others =
                seating.seats_of(window.from, window.length).filter(|seat| !seating.has_chosen(*seat));
            let Some(claim) = seating.claim_of(others, self.keys.token, self.base.is_fenced) else {
                continue;
            };
            let request = self.request(None, action, self.base.longest_ttl);
            self.effects.order(MasterSet::only(window.master), Request { claim, ..request });
        }
    }
}

/// The least distance between two windows. Smaller: more requests for an attempt at many permits.
/// Larger: such an attempt misses more of the free seats that are consecutive.
const SHORTEST_STRIDE: u16 = 16;

/// The distance between two windows for an attempt that takes this many seats. Any `take`
/// consecutive seats are in one window, except if this would need more windows than
/// [`SHORTEST_STRIDE`] allows.
fn stride(take: u16) -> u16 {
    (Seats::MOST + 1 - take).max(SHORTEST_STRIDE)
}

/// Where the first window begins. If the windows miss some consecutive seats, those of a later
/// attempt are shifted, and find them.
fn first_seat(base: &Base, of: u16, take: u16) -> u16 {
    let misses_some = stride(take) + take > Seats::MOST + 1;
    let shift = if misses_some { base.attempts % u32::from(SHORTEST_STRIDE) } else { 0 };
    let from = (u32::from(base.seat_from) + shift) % u32::from(of.max(1));
    u16::try_from(from).unwrap_or(0)
}

/// What the refusals of two windows say together. If a free seat of either is kept for a longer
/// waiter, that decides when to ask again, and otherwise the seat that ends first.
fn of_both_windows(earlier: Answer, later: Answer) -> Answer {
    let (
        Answer::Holder { holder, remaining, watched },
        Answer::Holder { holder: later_holder, remaining: later_remaining, watched: later_watched },
    ) = (earlier, later)
    else {
        return later;
    };
    let life = |remaining: Option<Duration>| remaining.unwrap_or(Duration::MAX);
    let rank = |holder, remaining| (holder != Sentinel::WANTED, life(remaining));
    let is_later = rank(later_holder, later_remaining) < rank(holder, remaining);
    let (holder, remaining) = if is_later { (later_holder, later_remaining) } else { (holder, remaining) };
    Answer::Holder { holder, remaining, watched: watched && later_watched }
}

/// Whether after this answer a master may have taken seats, or may still do so.
fn leaves_open(answer: Answer) -> bool {
    match answer {
        Answer::Failed { fate, .. } => fate != Fate::NotSent,
        Answer::Yes | Answer::OursInQuarantine { .. } | Answer::Counted(_) => true,
        Answer::Seats { .. } | Answer::Holder { .. } | Answer::Queued { .. } | Answer::No => false,
    }
}

#[cfg(test)]
#[path = "seating_tests.rs"]
mod tests;
