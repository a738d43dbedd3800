//! Permits: one master assigns a seat of the semaphore, and the others are asked for exactly that one.
//!
//! A seat is an ordinary exclusive lock, so that no two holders have the same one, whatever is assigned: that the masters agree on it beforehand
//! only saves them the search. A master that is silent is not waited for: the next one is asked to assign. So several may have taken a seat,
//! and each that took another one than was chosen lets go of it.

use super::shared::{Base, Context};
use crate::protocol::{Action, Answer, Cause, Claim, Fate, MasterId, MasterSet, Request, Resource, Token};

/// The most seats that one request names. A master looks at all of them; more take it longer, fewer take more requests where nearly all are taken.
const WINDOW: u16 = 64;

/// Which seat of a semaphore an attempt gets.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Seating {
    name: Resource,
    of: u16,
    /// The first seat of the window, and how many it has.
    from: u16,
    length: u16,
    /// Of all seats of the window.
    claim: Claim,
    /// How many seats behind the window have yet to be asked for.
    left: u16,
    /// Masters that may have taken any seat of the window.
    taking: MasterSet,
    chosen: Option<u16>,
}

impl Seating {
    /// An attempt that begins with this seat.
    pub(super) fn new(name: &Resource, of: u16, from: u16, token: Token, fenced: bool) -> Self {
        let mut seating = Self {
            name: name.clone(),
            of,
            from: from % of.max(1),
            length: 0,
            claim: Claim::none(),
            left: of,
            taking: MasterSet::EMPTY,
            chosen: None,
        };
        seating.next_window(token, fenced);
        seating
    }

    /// Goes on with the seats behind the window: `false` if the circle is round.
    fn next_window(&mut self, token: Token, fenced: bool) -> bool {
        if self.left == 0 {
            return false;
        }
        self.from = (self.from + self.length) % self.of;
        self.length = self.left.min(WINDOW);
        self.left -= self.length;
        let seats: Vec<_> = (0..self.length).map(|place| self.name.seat(self.seat(place).into())).collect();
        self.claim = Claim::of_seats(&seats, token, fenced);
        true
    }

    fn seat(&self, place: u16) -> u16 {
        (self.from + place) % self.of
    }

    pub(super) fn chosen(&self) -> Option<u16> {
        self.chosen
    }

    /// Masters that are asked for exactly the seat that was chosen.
    pub(super) fn taking(&self) -> MasterSet {
        self.taking
    }

    pub(super) fn window(&self) -> &Claim {
        &self.claim
    }
}

impl Base {
    /// Behind a lost attempt: a seat that others refused is not the first that the next one asks for. The master that assigned it may not know of
    /// its holder.
    pub(super) fn skip_seat(&mut self, chosen: Option<u16>) {
        if let Some(seat) = chosen {
            self.seat_from = seat + 1;
        }
    }
}

impl Context<'_, '_> {
    /// Has a master assign a seat.
    pub(super) fn take_seat(&mut self, master: MasterId, round: u32, watch: bool) {
        let request = self.request(Some(round), Action::Acquire, self.base.ttl);
        let Some(seating) = &mut self.keys.seating else { return };
        seating.taking.insert(master);
        let request = Request { claim: seating.claim.clone(), watch, ..request };
        self.keys.reached.insert(master);
        self.effects.order(MasterSet::only(master), request);
    }

    /// What a master's answer means for the seat that was chosen, or is by this answer. `None`: there is more to come from it.
    pub(super) fn seated(
        &mut self,
        master: MasterId,
        round: u32,
        answer: Answer,
        watch: bool,
    ) -> Option<Answer> {
        let (token, fenced) = (self.keys.token, self.base.is_fenced);
        let Some(seating) = &mut self.keys.seating else { return Some(answer) };
        if !seating.taking.contains(master) {
            return Some(answer);
        }
        match answer {
            Answer::Seat { place, number } => {
                let seat = seating.seat(place);
                let chosen = *seating.chosen.get_or_insert(seat);
                if place >= seating.length || seat != chosen {
                    self.let_go_of_window(master);
                    return Some(Answer::No);
                }
                seating.taking.remove(master);
                let resource = seating.name.seat(seat.into());
                self.keys.choose(&resource.into(), fenced);
                match number {
                    Some(number) => Some(Answer::Counted(number)),
                    None if fenced => {
                        let (cause, fate) = (Cause::UnexpectedReply, Fate::Unknown);
                        Some(Answer::Failed { cause, fate, stale: false })
                    }
                    None => Some(Answer::Yes),
                }
            }
            Answer::Holder { .. } if seating.chosen.is_none() && seating.next_window(token, fenced) => {
                self.take_seat(master, round, watch);
                None
            }
            Answer::Failed { fate: Fate::NotSent, .. } | Answer::Holder { .. } | Answer::No => {
                seating.taking.remove(master);
                Some(answer)
            }
            answer => Some(answer),
        }
    }

    /// A master has taken another seat than the one that was chosen.
    fn let_go_of_window(&mut self, master: MasterId) {
        let request = self.request(None, Action::Release, self.base.longest_ttl);
        if let Some(seating) = &self.keys.seating {
            let request = Request { claim: seating.window().clone(), ..request };
            self.effects.order(MasterSet::only(master), request);
        }
        self.keys.reached.remove(master);
    }

    /// Orders what takes the token back. Where a master may have taken any seat of the window, all of them are named.
    pub(super) fn order_back(&mut self, to: MasterSet, request: Request) {
        let Some(seating) = &self.keys.seating else { return self.effects.order(to, request) };
        let taking = seating.taking();
        let of_window = MasterSet::from_bits(to.bits() & taking.bits());
        let claim = seating.window().clone();
        if seating.chosen().is_some() {
            self.effects.order(to.without(taking), request.clone());
        }
        self.effects.order(of_window, Request { claim, ..request });
    }
}
