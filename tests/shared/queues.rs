//! What the scripts of the queue of fair waiters promise.

use quorlock_sim::CommandKind;

use super::{Desk, FLEET, asked, called, key, pttl};

/// A waiter for `x`, with a place and the token of its present attempt.
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

    fn key(self) -> String {
        format!("{}:{}", key("place", "x"), self.place)
    }

    pub(crate) fn words(self, kind: CommandKind) -> Vec<String> {
        let mut keys = vec!["x".to_owned(), self.key(), key("queue", "x")];
        let mut values = [self.token, "5000", self.place].map(str::to_owned).to_vec();
        if kind == CommandKind::Enter {
            values.extend([LEASE, TURN, self.number].map(|number| number.to_string()));
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

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const C: &str = "cccccccccccccccccccccccccccccccccccccccc";

/// The members of the queue, behind which the largest number is.
fn members(desk: &mut impl Desk) -> String {
    desk.ask(&["ZREVRANGE", &key("queue", "x"), "0", "-1"])
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
    assert_eq!(members(desk), "[~]");
    assert_eq!(queued(&b.enter(desk)), (8, true));
    desk.pass(20);
    b.stay(desk);
    assert!(pttl(desk, &key("queue", "x")) > 10 * LEASE as i64 - 20);
}

pub(crate) fn numbers_that_are_used_up_end_with_the_queue(desk: &mut impl Desk) {
    let a = Waiter { number: 9_007_199_254_740_991, ..Waiter::new(A, "a") };
    assert_eq!(a.enter(desk), "1");
    let b = Waiter::new(B, "b");
    assert!(b.enter(desk).contains("used up"));
    assert_eq!(queued(&b.enter(desk)), (1, true), "the lock is held");
}

pub(crate) fn a_place_that_was_not_renewed_keeps_no_waiter_waiting(desk: &mut impl Desk) {
    let (a, b, c) = (Waiter::new(A, "a"), Waiter::new(B, "b"), Waiter::new(C, "c"));
    desk.ask(&["SET", "x", "another", "PX", "60000"]);
    assert_eq!(queued(&a.enter(desk)), (1, true));
    assert_eq!(queued(&b.enter(desk)), (2, false));
    assert_eq!(queued(&c.enter(desk)), (3, false));
    desk.ask(&["DEL", "x"]);
    for dead in [a, b] {
        assert_eq!(desk.ask(&["PEXPIRE", &dead.key(), "1"]), "1");
    }
    desk.pass(5);
    assert_eq!(c.enter(desk), "1");
    assert_eq!(members(desk), format!("[~ {C}]"));
}

/// Clients that were restarted may have left any number of them.
pub(crate) fn a_hundred_places_that_have_ended_are_dropped_at_a_time(desk: &mut impl Desk) {
    for number in 1..=150 {
        desk.ask(&["ZADD", &key("queue", "x"), &number.to_string(), &format!("dead {number}")]);
    }
    let a = Waiter { number: 151, ..Waiter::new(A, "a") };
    let first = a.enter(desk);
    assert_eq!(queued(&first), (151, false));
    assert!(first.contains(" 1 "), "the rest a millisecond later: {first}");
    assert_eq!(a.enter(desk), "1");
    assert_eq!(members(desk), format!("[~ {A}]"));
}

pub(crate) fn a_turn_that_is_over_keeps_nobody_waiting(desk: &mut impl Desk) {
    let (a, b, c) = (Waiter::new(A, "a"), Waiter::new(B, "b"), Waiter::new(C, "c"));
    assert_eq!(a.enter(desk), "1");
    assert_eq!(queued(&b.enter(desk)), (2, false));
    assert_eq!(queued(&c.enter(desk)), (3, false));
    // The turn of the second one begins.
    assert_eq!(a.leave(desk), "1");
    let left = pttl(desk, &b.key());
    assert!(left > 0 && left <= TURN as i64, "{left}");
    assert_eq!(queued(&c.enter(desk)), (3, false));
    desk.pass(TURN + 5);
    assert_eq!(c.enter(desk), "1");
    let late = Waiter { number: 2, flags: "sx", ..b };
    assert_eq!(queued(&late.enter(desk)), (2, true), "it has its number again");
    assert_eq!(queued(&Waiter::new("d", "d").enter(desk)), (4, false));
}

/// A notification may have been lost, or the holder may have had no place.
pub(crate) fn a_renewal_that_finds_the_lock_free_begins_the_turn_of_the_first_place(desk: &mut impl Desk) {
    let (a, b) = (Waiter::new(A, "a"), Waiter::new(B, "b"));
    desk.ask(&["SET", "x", "another", "PX", "60000"]);
    assert_eq!(queued(&a.enter(desk)), (1, true));
    assert_eq!(queued(&b.enter(desk)), (2, false));
    assert_eq!(queued(&b.stay(desk)), (2, false));
    assert!(pttl(desk, &a.key()) > TURN as i64, "the lock is held");
    desk.ask(&["DEL", "x"]);
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
    assert_eq!(members(desk), format!("[~ {B}]"));
    assert!(pttl(desk, &b.key()) > TURN as i64, "its turn has not come yet");
    assert_eq!(queued(&b.stay(desk)), (2, true));
    assert_eq!(asked(desk, &a.words(CommandKind::KeepLeaving)), "0", "it was kept before");
    desk.ask(&["DEL", "x"]);
    assert_eq!(b.enter(desk), "1");
}

pub(crate) fn each_waiter_learns_the_first_place(desk: &mut impl Desk) {
    desk.ask(&["SET", "x", "another", "PX", "60000"]);
    let waiters = [A, B, C].map(|place| Waiter::new(place, "t"));
    let [first, second, third] = waiters.map(|waiter| waiter.enter(desk));
    assert_eq!(queued(&first), (1, true));
    let ahead = |reply: &str| reply.split(' ').next().unwrap().to_owned();
    assert_eq!(ahead(&second), ahead(&third));
    desk.ask(&["PEXPIRE", &waiters[0].key(), "1"]);
    desk.pass(5);
    assert_ne!(ahead(&waiters[2].stay(desk)), ahead(&third), "the second one is first now");
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
    assert_eq!(desk.ask(&["GET", "x"]), "a");
    b.enter(desk);
    let before = pttl(desk, &b.key());
    assert_eq!(a.leave(desk), "1");
    assert_eq!(desk.ask(&["EXISTS", "x", &a.key()]), "0");
    assert!(pttl(desk, &b.key()) <= before, "told, and not renewed");
    assert_eq!(b.enter(desk), "1");
    desk.ask(&["SET", "x", "another"]);
    assert_eq!(b.leave(desk), "0");
    assert_eq!((members(desk), desk.ask(&["EXISTS", &b.key()])), ("[~]".to_owned(), "0".to_owned()));
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
