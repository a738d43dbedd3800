//! What the scripts of the queue of fair waiters promise.

use quorlock_sim::CommandKind;

use super::{Desk, FLEET, asked, called, key, pttl};

/// A waiter for `x`, with a place and the token of its present attempt. The name of its place is the
/// letter as often as a name has digits.
#[derive(Clone, Copy)]
pub(crate) struct Waiter<'a> {
    pub(crate) place: &'a str,
    pub(crate) token: &'a str,
    /// The smallest number that its place may get.
    pub(crate) number: u64,
    pub(crate) flags: &'a str,
}

pub(crate) const LEASE: u64 = 1_000;
const TURN: u64 = 50;

impl<'a> Waiter<'a> {
    pub(crate) fn new(place: &'a str, token: &'a str) -> Self {
        Self { place, token, number: 0, flags: "-" }
    }

    fn name(self) -> String {
        self.place.repeat(40)
    }

    pub(crate) fn words(self, kind: CommandKind) -> Vec<String> {
        let bell = format!("{}:{}", key("place", "x"), self.name());
        let mut keys = vec!["x".to_owned(), bell, key("queue", "x")];
        let mut values = vec![self.token.to_owned(), "5000".to_owned(), self.name(), LEASE.to_string()];
        if kind == CommandKind::Enter {
            values.extend([TURN, self.number].map(|number| number.to_string()));
            values.push(self.flags.to_owned());
            if self.flags.contains('f') {
                keys.push(key("fence", "x"));
            }
            if self.flags.contains('g') {
                keys.push("quorlock:restart-guard".to_owned());
                values.extend(FLEET.map(str::to_owned));
            }
        }
        called(kind, keys, values)
    }

    fn enter(self, desk: &mut impl Desk) -> String {
        asked(desk, &self.words(CommandKind::Enter))
    }

    fn stay(self, desk: &mut impl Desk) -> String {
        Self { flags: "s", ..self }.enter(desk)
    }

    fn leave(self, desk: &mut impl Desk) -> String {
        asked(desk, &self.words(CommandKind::Leave))
    }

    fn undo(self, desk: &mut impl Desk) -> String {
        let words = called(CommandKind::Undo, vec!["x".to_owned()], vec![self.token.to_owned()]);
        asked(desk, &words)
    }
}

/// The number of a place, and whether it is the first one, according to the script's reply.
fn queued(reply: &str) -> (u64, bool) {
    let words: Vec<&str> = reply.trim_matches(['[', ']']).split(' ').collect();
    assert_eq!(words.len(), 4, "{reply}");
    (words[2].parse().unwrap(), words[3] == "1")
}

const A: &str = "a";
const B: &str = "b";
const C: &str = "c";

/// The places in the queue, the first one first.
fn places(desk: &mut impl Desk) -> String {
    let value = desk.ask(&["GET", &key("queue", "x")]);
    let entries = value.as_bytes().get(16..).unwrap_or_default().chunks(92);
    entries.map(|entry| char::from(entry[52])).collect()
}

/// The place of this waiter ends now.
fn ends(desk: &mut impl Desk, waiter: Waiter<'_>) {
    let mut value = desk.ask(&["GET", &key("queue", "x")]);
    let entry = value.find(&waiter.name()).unwrap() - 52;
    value.replace_range(entry + 16..entry + 32, "0000000000000001");
    desk.ask(&["SET", &key("queue", "x"), &value, "PX", "9000"]);
}

pub(crate) fn a_grant_and_its_undo_keep_the_place(desk: &mut impl Desk) {
    let (a, b) = (Waiter::new(A, "a"), Waiter::new(B, "b"));
    assert_eq!(a.enter(desk), "1");
    assert_eq!(queued(&b.enter(desk)), (2, false));
    assert_eq!(a.undo(desk), "1");
    assert_eq!(queued(&b.enter(desk)), (2, false), "the lock is free, and the other one comes before");
    assert_eq!(Waiter::new(A, "a2").enter(desk), "1", "each attempt has its own token");
    assert_eq!(desk.ask(&["GET", "x"]), "a2");
}

pub(crate) fn a_place_keeps_its_number_and_is_raised_but_not_lowered(desk: &mut impl Desk) {
    desk.ask(&["SET", "x", "another", "PX", "60000"]);
    let (a, b) = (Waiter::new(A, "a"), Waiter::new(B, "b"));
    assert_eq!(queued(&a.enter(desk)), (1, true));
    assert_eq!(queued(&b.enter(desk)), (2, false));
    assert_eq!(queued(&Waiter { number: 7, ..a }.stay(desk)), (7, false));
    assert_eq!(queued(&Waiter { number: 3, ..a }.stay(desk)), (7, false));
    assert_eq!(queued(&b.stay(desk)), (2, true));
    assert_eq!(queued(&Waiter::new(C, "c").enter(desk)), (8, false), "behind all that were given");
}

pub(crate) fn a_place_gets_the_exact_number_that_a_quorum_has(desk: &mut impl Desk) {
    let (a, b) = (Waiter::new(A, "a"), Waiter::new(B, "b"));
    assert_eq!(a.enter(desk), "1");
    assert_eq!(queued(&Waiter { number: 5, ..b }.enter(desk)), (5, false));
    let exact = Waiter { flags: "sx", ..b };
    assert_eq!(queued(&exact.enter(desk)), (5, false), "without a number it keeps its own");
    assert_eq!(a.leave(desk), "1");
    let c = Waiter { number: 9, ..Waiter::new(C, "c") };
    assert_eq!(queued(&Waiter { flags: "sx", ..c }.enter(desk)), (9, false));
    // From now on this waiter is ahead of the other one, which is not the first any more.
    assert_eq!(queued(&Waiter { flags: "sx", number: 3, ..c }.enter(desk)), (3, true));
    assert_eq!(queued(&b.stay(desk)), (5, false));
    assert_eq!(Waiter { flags: "x", number: 2, ..c }.enter(desk), "1");
    assert_eq!(queued(&Waiter { number: 6, ..exact }.enter(desk)), (6, false));
}

pub(crate) fn numbers_continue_while_the_queue_is_empty(desk: &mut impl Desk) {
    desk.ask(&["SET", "x", "another", "PX", "60000"]);
    let (a, b) = (Waiter::new(A, "a"), Waiter::new(B, "b"));
    assert_eq!(queued(&Waiter { number: 7, ..a }.enter(desk)), (7, true));
    assert_eq!(a.leave(desk), "0");
    assert_eq!(places(desk), "");
    assert_eq!(queued(&b.enter(desk)), (8, true));
    desk.pass(20);
    b.stay(desk);
    assert!(pttl(desk, &key("queue", "x")) > 10 * LEASE as i64 - 20);
}

pub(crate) fn numbers_that_are_used_up_end_with_the_queue(desk: &mut impl Desk) {
    desk.ask(&["SET", &key("queue", "x"), "9007199254740991", "PX", "300"]);
    let a = Waiter::new(A, "a");
    for _ in 0..2 {
        assert!(a.enter(desk).contains("used up"));
        desk.pass(100);
    }
    desk.pass(150);
    assert_eq!(a.enter(desk), "1");
}

pub(crate) fn a_place_that_was_not_renewed_keeps_no_waiter_waiting(desk: &mut impl Desk) {
    let (a, b, c) = (Waiter::new(A, "a"), Waiter::new(B, "b"), Waiter::new(C, "c"));
    desk.ask(&["SET", "x", "another", "PX", "60000"]);
    assert_eq!(queued(&a.enter(desk)), (1, true));
    assert_eq!(queued(&b.enter(desk)), (2, false));
    assert_eq!(queued(&c.enter(desk)), (3, false));
    desk.ask(&["DEL", "x"]);
    ends(desk, a);
    ends(desk, b);
    assert_eq!(c.enter(desk), "1");
    assert_eq!(places(desk), "c");
}

/// A leader's lock is held for days, and its standbys are restarted now and then.
pub(crate) fn places_that_have_ended_are_dropped_where_they_are_met(desk: &mut impl Desk) {
    desk.ask(&["SET", "x", "another", "PX", "60000"]);
    let waiters = [A, B, C, "d", "e"].map(|place| Waiter::new(place, "t"));
    waiters.iter().for_each(|waiter| drop(waiter.enter(desk)));
    ends(desk, waiters[1]);
    ends(desk, waiters[2]);
    assert_eq!(queued(&waiters[3].stay(desk)), (4, false));
    assert_eq!(places(desk), "ade");
    ends(desk, waiters[0]);
    ends(desk, waiters[3]);
    assert_eq!(waiters[4].leave(desk), "0");
    assert_eq!(places(desk), "");
}

pub(crate) fn a_turn_that_is_over_keeps_nobody_waiting(desk: &mut impl Desk) {
    let (a, b, c) = (Waiter::new(A, "a"), Waiter::new(B, "b"), Waiter::new(C, "c"));
    assert_eq!(a.enter(desk), "1");
    assert_eq!(queued(&b.enter(desk)), (2, false));
    assert_eq!(queued(&c.enter(desk)), (3, false));
    // The turn of the second one begins.
    assert_eq!(a.leave(desk), "1");
    assert_eq!(queued(&c.enter(desk)), (3, false));
    desk.pass(TURN + 5);
    assert_eq!(c.enter(desk), "1");
    // It has kept its number, and its next turn is half as long.
    assert_eq!(queued(&b.stay(desk)), (2, true));
    assert_eq!(c.leave(desk), "1");
    assert_eq!(queued(&a.enter(desk)), (4, false));
    desk.pass(TURN / 2 + 5);
    assert_eq!(a.enter(desk), "1");
}

/// A notification may have been lost, or the holder may have had no place.
pub(crate) fn a_renewal_that_finds_the_lock_free_begins_the_turn_of_the_first_place(desk: &mut impl Desk) {
    let (a, b) = (Waiter::new(A, "a"), Waiter::new(B, "b"));
    desk.ask(&["SET", "x", "another", "PX", "60000"]);
    assert_eq!(queued(&a.enter(desk)), (1, true));
    assert_eq!(queued(&b.enter(desk)), (2, false));
    desk.ask(&["DEL", "x"]);
    desk.pass(TURN + 5);
    assert_eq!(queued(&b.stay(desk)), (2, false));
    desk.pass(TURN + 5);
    assert_eq!(b.enter(desk), "1");
}

/// Otherwise the place of a holder keeps all others waiting as long as it lives.
pub(crate) fn a_lock_that_is_kept_leaves_the_queue(desk: &mut impl Desk) {
    let (a, b) = (Waiter::new(A, "a"), Waiter::new(B, "b"));
    assert_eq!(a.enter(desk), "1");
    assert_eq!(queued(&b.enter(desk)), (2, false));
    assert_eq!(asked(desk, &a.words(CommandKind::KeepLeaving)), "1");
    assert_eq!(places(desk), "b");
    assert_eq!(desk.ask(&["EXISTS", "x"]), "1");
    assert_eq!(queued(&b.stay(desk)), (2, true));
    assert_eq!(asked(desk, &a.words(CommandKind::KeepLeaving)), "0", "it was kept before");
    desk.ask(&["DEL", "x"]);
    assert_eq!(b.enter(desk), "1");
}

pub(crate) fn each_waiter_learns_the_next_place_before_its_own(desk: &mut impl Desk) {
    desk.ask(&["SET", "x", "another", "PX", "60000"]);
    let waiters = [A, B, C].map(|place| Waiter::new(place, "t"));
    let [first, second, third] = waiters.map(|waiter| waiter.enter(desk));
    assert_eq!(queued(&first), (1, true));
    let ahead = |reply: &str| reply.split(' ').next().unwrap().to_owned();
    assert_ne!(ahead(&second), ahead(&third));
    ends(desk, waiters[1]);
    assert_eq!(ahead(&waiters[2].stay(desk)), ahead(&second), "the one before that");
}

pub(crate) fn a_renewal_of_a_place_grants_nothing(desk: &mut impl Desk) {
    let a = Waiter::new(A, "a");
    assert_eq!(a.stay(desk), "[free 0 1 1]");
    assert_eq!(desk.ask(&["EXISTS", "x"]), "0");
    assert_eq!(a.enter(desk), "1");
    // One server behind two addresses has one vote.
    assert_eq!(queued(&a.enter(desk)), (1, true));
}

pub(crate) fn a_waiter_that_leaves_removes_only_its_own_place(desk: &mut impl Desk) {
    let (a, b) = (Waiter::new(A, "a"), Waiter::new(B, "b"));
    assert_eq!(a.enter(desk), "1");
    b.enter(desk);
    assert_eq!(b.leave(desk), "0");
    assert_eq!((desk.ask(&["GET", "x"]), places(desk)), ("a".to_owned(), "a".to_owned()));
    b.enter(desk);
    assert_eq!(a.leave(desk), "1");
    assert_eq!((desk.ask(&["EXISTS", "x"]), places(desk)), ("0".to_owned(), "b".to_owned()));
    assert_eq!(b.enter(desk), "1");
    desk.ask(&["SET", "x", "another"]);
    assert_eq!(b.leave(desk), "0");
    assert_eq!(places(desk), "");
}

pub(crate) fn a_quarantined_master_keeps_places_and_grants_nothing(desk: &mut impl Desk) {
    let a = Waiter { flags: "fg", ..Waiter::new(A, "a") };
    assert!(a.enter(desk).starts_with("[quarantined "));
    assert_eq!(desk.ask(&["EXISTS", "x", &key("fence", "x")]), "0");
    desk.pass(501);
    assert_eq!(queued(&Waiter { flags: "g", ..Waiter::new(B, "b") }.enter(desk)), (2, false));
    let number: u64 = a.enter(desk).parse().unwrap();
    assert!(number > 1024, "lost counters begin above all that were issued");
}
