//! What the simulator and the exhaustive search need beyond the public surface. Behind the feature
//! `internals`.
//!
//! It is for `quorlock-sim` and `quorlock-search` of the same version only: any version may change
//! or remove any of it.
//!
//! - `quorlock-sim`: the scripts, because the model of a master recognises them by text and SHA-1;
//!   [`each_guard`] for its observer; and the two settings that turn a rule of the protocol off, to
//!   measure what the rule does.
//! - `quorlock-search`: a lock without a machine, with its inputs and outputs.

mod sought;

pub use self::sought::{Around, Sought};
use crate::front::Port;
pub use crate::lock::Order;
pub use crate::protocol::{Action, Ahead, Answer, Claim, Fate, Request, Sentinel, Ticket, Wish};
use crate::protocol::{ConfigBuilder, LockId, QueuePlace, Resource, Resumption, Targets, Token};
use crate::time::Instant;
pub use crate::wire::{
    ACQUIRE_ALL, ACQUIRE_FENCED, ACQUIRE_FENCED_GUARDED, ACQUIRE_GUARDED, ACQUIRE_READING, ALL, ATTEND,
    ENTER, EXTEND, EXTEND_ALL, EXTEND_FENCED, FORCE_RELEASE, GUARDED, HEAL_ALL, HEAL_FENCED, INSPECT, KEEP,
    KEEP_ALL, KEEP_LEAVING, LEAVE, OPEN, RAISE, RAISE_ALL, RELEASE, RELEASE_ALL, RELEASE_ANY, REPLICATED,
    Script, TAKE, UNDO,
};

/// Shows every lock that a guard may report as valid, with the end of its validity.
pub fn each_guard(port: &Port, look: impl FnMut(LockId, &Targets, Resumption, Instant)) {
    port.each_guard(look);
}

/// Returns which permits of a semaphore a guard of these targets holds, counted from zero; none for
/// other locks. [`each_guard`] shows targets in this form.
pub fn seats_of(targets: &Targets) -> Vec<u16> {
    targets.seats().numbers().collect()
}

/// Returns the possible claims of a request for one of at most two permits, each with the seat that
/// it is about: any seat, exactly one, or the other one than the chosen one.
pub fn claims_of_permit(targets: &Targets, token: Token, fenced: bool) -> Vec<(Claim, Option<u8>)> {
    let Some((name, of, _)) = targets.as_permit() else { return Vec::new() };
    let seats: Vec<_> = (0..of).map(|seat| name.seat(seat.into())).collect();
    let any_of = |seats: &[Resource]| Claim::of_seats(name, seats, 1, token, fenced, None);
    let exactly = |seat: &Resource| Claim::new(&seat.clone().into(), token, fenced, None);
    let each = (0..).zip(&seats).map(|(number, seat)| (exactly(seat), Some(number)));
    let other = (0..).zip(seats.chunks(1)).map(|(number, seat)| (any_of(seat), Some(number)));
    std::iter::once((any_of(&seats), None)).chain(each).chain(other).collect()
}

/// Returns the claim of an attempt at one resource with this place in its queue; `None` for several
/// resources.
pub fn claim_in_queue(targets: &Targets, token: Token, place: QueuePlace) -> Option<Claim> {
    Some(Claim::queued(targets.as_one()?, token, false, place))
}

/// Sets whether a further attempt asks one master before all others. That keeps clients that try at
/// the same time from splitting the votes; the default is yes.
pub fn ask_one_first(config: ConfigBuilder, wanted: bool) -> ConfigBuilder {
    config.ask_one_first(wanted)
}

/// Sets whether a single try is repeated if its votes were split among clients that asked at the
/// same instant; the default is yes.
pub fn settle_splits(config: ConfigBuilder, wanted: bool) -> ConfigBuilder {
    config.settle_splits(wanted)
}
