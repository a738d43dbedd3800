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
use crate::protocol::{
    Action, Answer, Cause, Claim, Fate, MasterId, MasterSet, Request, Resource, Seats, Targets, Token, Wish,
};

/// The choice of a semaphore's seats for an attempt.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Seating {
    name: Resource,
    of: u16,
    /// How many seats the attempt takes.
    take: u16,
    /// The first seat of the window, and its number of seats.
    from: u16,
    length: u16,
    /// The next window begins this many seats later.
    step: u16,
    /// The claim of all seats of the window.
    claim: Claim,
    /// The name of the wait, if others have overtaken it for too long.
    wish: Option<Wish>,
    /// With how many of the seats neither this window nor an earlier one deals as the first of
    /// those that the attempt takes.
    left: u16,
    /// Masters that may have taken any seats of the window.
    taking: MasterSet,
    /// Earlier windows, with the masters that may have taken seats of them. Seats that such a
    /// master reports late are not chosen, and their places are counted in the earlier window.
    earlier: Vec<(MasterSet, Claim)>,
    chosen: Option<Seats>,
}

/// How an attempt asks a master to assign seats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    pub(super) round: u32,
    pub(super) watch: bool,
    pub(super) waited: Option<Duration>,
}

impl Seating {
    /// For an attempt at permits with this token.
    pub(super) fn new((name, of, take): (&Resource, u16, u16), base: &Base, token: Token) -> Self {
        let seats = base.targets.seats();
        let mut seating = Self {
            name: name.clone(),
            of,
            take,
            from: first_seat(base, of, take),
            length: 0,
            step: 0,
            claim: Claim::none(),
            wish: base.wish.as_deref().copied(),
            left: of,
            taking: MasterSet::EMPTY,
            earlier: Vec::new(),
            chosen: (seats != Seats::NONE).then_some(seats),
        };
        if seating.chosen.is_none() {
            seating.next_window(token, base.is_fenced);
        }
        seating
    }

    /// Moves on to the next window: `false` if all have been tried. Windows overlap, so that free
    /// seats on both sides of a border are found.
    fn next_window(&mut self, token: Token, fenced: bool) -> bool {
        if self.left == 0 {
            return false;
        }
        if !self.taking.is_empty() {
            self.earlier.push((self.taking, self.claim.clone()));
            self.taking = MasterSet::EMPTY;
        }
        self.from = (self.from + self.step) % self.of;
        self.length = (self.left + self.take - 1).min(Seats::MOST).min(self.of);
        self.step = if self.length == self.of { self.left } else { self.left.min(stride(self.take)) };
        self.left -= self.step;
        let seats = (0..self.length).map(|place| self.name.seat(((self.from + place) % self.of).into()));
        let seats = seats.collect::<Vec<_>>();
        self.claim = Claim::of_seats(&self.name, &seats, self.take, token, fenced, self.wish);
        true
    }

    /// Another master assigns, which may know of other holders: it begins with the window with
    /// which the first one began.
    fn start_again(&mut self, token: Token, fenced: bool) {
        if self.step + self.left < self.of {
            // All seats form a circle.
            self.from = (self.from + self.step + self.left) % self.of;
            (self.step, self.left) = (0, self.of);
            self.next_window(token, fenced);
        }
    }

    /// The seats of the window with these places, if there are as many as requested.
    fn seats(&self, places: u64) -> Option<Seats> {
        let is_in_window = places.checked_shr(self.length.into()).unwrap_or(0) == 0;
        let seats = Seats::new(self.from, self.of, places).filter(|_| is_in_window);
        seats.filter(|seats| seats.count() == u32::from(self.take))
    }

    pub(super) fn chosen(&self) -> Option<Seats> {
        self.chosen
    }

    /// The locks of the chosen seats.
    pub(super) fn locks(&self) -> Option<Targets> {
        Some(Targets::of_seats(&self.name, self.chosen?))
    }

    /// Masters that may have taken any seats of a window, for each window.
    fn windows(&self) -> impl Iterator<Item = (MasterSet, &Claim)> {
        let earlier = self.earlier.iter().map(|(masters, claim)| (*masters, claim));
        earlier.chain([(self.taking, &self.claim)])
    }

    /// The earlier window from which a master may have taken seats.
    fn earlier_of(&mut self, master: MasterId) -> Option<&mut (MasterSet, Claim)> {
        self.earlier.iter_mut().find(|(masters, _)| masters.contains(master))
    }
}

impl Base {
    /// After a lost attempt: the next one does not begin with a seat that others refused. The
    /// master that assigned it may not know of its holder.
    pub(super) fn skip_seats(&mut self, chosen: Option<Seats>) {
        if let Some(seat) = chosen.and_then(|seats| seats.numbers().next()) {
            self.seat_from = seat + 1;
        }
    }
}

impl Context<'_, '_> {
    /// Has a master assign seats.
    pub(super) fn take_seats(&mut self, master: MasterId, asking: Asking) {
        let Asking { round, watch, waited } = asking;
        let request = self.request(Some(round), Action::Acquire, self.base.ttl);
        let Some(seating) = &mut self.keys.seating else { return };
        seating.taking.insert(master);
        let request = Request { claim: seating.claim.clone(), watch, waited, ..request };
        self.keys.reached.insert(master);
        self.effects.order(MasterSet::only(master), request);
    }

    /// Has another master assign seats.
    pub(super) fn take_other_seats(&mut self, master: MasterId, asking: Asking) {
        let (token, fenced) = (self.keys.token, self.base.is_fenced);
        if let Some(seating) = &mut self.keys.seating {
            seating.start_again(token, fenced);
        }
        self.take_seats(master, asking);
    }

    /// Turns a master's answer into one about the chosen seats, which this answer may choose.
    /// Returns `None` if the master has yet to answer more.
    pub(super) fn chosen_by(&mut self, master: MasterId, answer: Answer, asking: Asking) -> Option<Answer> {
        let (token, fenced) = (self.keys.token, self.base.is_fenced);
        let Some(seating) = &mut self.keys.seating else { return Some(answer) };
        if let Some((masters, claim)) = seating.earlier_of(master) {
            let claim = claim.clone();
            if !leaves_open(answer) {
                masters.remove(master);
            }
            if let Answer::Seats { .. } = answer {
                self.let_go(master, claim);
                return Some(Answer::No);
            }
            return Some(answer);
        }
        if !seating.taking.contains(master) {
            return Some(answer);
        }
        match answer {
            Answer::Seats { places, number } => {
                let seats = seating.seats(places);
                seating.chosen = seating.chosen.or(seats);
                if seats.is_none() || seats != seating.chosen {
                    let claim = seating.claim.clone();
                    self.let_go(master, claim);
                    return Some(Answer::No);
                }
                seating.taking.remove(master);
                let locks = seating.locks()?;
                self.keys.choose(&locks, fenced);
                match number {
                    Some(number) => Some(Answer::Counted(number)),
                    None if fenced => {
                        let (cause, fate) = (Cause::UnexpectedReply, Fate::Unknown);
                        Some(Answer::Failed { cause, fate, stale: false })
                    }
                    None => Some(Answer::Yes),
                }
            }
            Answer::Holder { .. } if seating.chosen.is_none() => {
                seating.taking.remove(master);
                if !seating.next_window(token, fenced) {
                    return Some(answer);
                }
                self.take_seats(master, asking);
                None
            }
            answer => {
                if !leaves_open(answer) {
                    seating.taking.remove(master);
                }
                Some(answer)
            }
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

    /// Orders requests that take the token back, at once or later. If a master may have taken any
    /// seats of a window, another request names all seats of the window, and keeps none. It comes
    /// second: such a master may have confirmed the chosen seats since, or got them back.
    pub(super) fn order_back(&mut self, to: MasterSet, request: Request) {
        let Some(seating) = &self.keys.seating else { return self.effects.order(to, request) };
        let is_chosen = seating.chosen().is_some();
        if is_chosen {
            self.effects.order(to, request.clone());
        }
        for (taking, claim) in seating.windows() {
            let of_window = MasterSet::from_bits(to.bits() & taking.bits());
            let request = match is_chosen {
                true => Request { ticket: None, action: Action::Release, ..request.clone() },
                false => request.clone(),
            };
            self.effects.order(of_window, Request { claim: claim.clone(), ..request });
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

/// Whether after this answer a master may have taken seats, or may still do so.
fn leaves_open(answer: Answer) -> bool {
    match answer {
        Answer::Failed { fate, .. } => fate != Fate::NotSent,
        Answer::Yes | Answer::Counted(_) => true,
        Answer::Seats { .. } | Answer::Holder { .. } | Answer::Queued { .. } | Answer::No => false,
    }
}
