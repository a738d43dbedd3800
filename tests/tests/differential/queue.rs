//! Random calls of the scripts of the queue of fair waiters, and changes of its keys by other
//! clients.

use quorlock_sim::CommandKind::{self, Enter, KeepLeaving, Leave};
use quorlock_tests::Random;

use crate::commands::{Arguments, arguments, token};
use crate::kinds::{call, life};
use crate::scripts::{fleet, span};

/// The places of the waiters, all for the same lock.
pub(crate) const PLACES: [&str; 4] = [
    "1111111111111111111111111111111111111111",
    "2222222222222222222222222222222222222222",
    "2222222222222222222222222222222222222223",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];
/// The state of a place that waits for its turn.
pub(crate) const WAITS: u64 = 9_007_199_254_740_991;

/// How long places live: usually long enough for a queue to form.
const LEASES: [&str; 6] = ["3", "20", "1000", "1000", "1000", "1000"];
/// How long turns are: some end before the waiter asks again.
const TURNS: [&str; 4] = ["1", "5", "50", "200"];
const NUMBERS: [&str; 10] = ["0", "0", "0", "0", "1", "7", "8", "12", "9007199254740991", "9007199254740992"];

fn place(random: &mut Random) -> &'static str {
    random.of(&PLACES)
}

/// The key that the waiter with a place watches.
pub(crate) fn bell(place: &str) -> String {
    format!("place {place}")
}

/// A call with which one of the waiters enters, stays or leaves.
pub(crate) fn queue(random: &mut Random) -> Arguments {
    let place = place(random);
    let mut keys = vec![b"c".to_vec(), bell(place).into(), b"queue".to_vec()];
    let token = if random.one_in(4) { token(random).to_vec() } else { format!("token {place}").into_bytes() };
    let mut values = vec![token, life(random), place.into(), random.of(&LEASES).into()];
    if random.one_in(3) {
        let kind = if random.one_in(4) { KeepLeaving } else { Leave };
        return call(random, kind, &keys, values);
    }
    let mut flags = String::from("-");
    if random.one_in(3) {
        keys.push(b"count c".to_vec());
        flags.push('f');
    }
    if random.one_in(4) {
        flags.push('s');
    }
    if random.one_in(3) {
        flags.push('x');
    }
    let is_guarded = random.one_in(6);
    if is_guarded {
        keys.push(b"marker".to_vec());
        flags.push('g');
    }
    values.extend([random.of(&TURNS).into(), random.of(&NUMBERS).into(), flags.into_bytes()]);
    if is_guarded {
        values.extend(arguments(&[span(random), fleet(random)]));
    }
    call(random, Enter, &keys, values)
}

/// Other clients delete a key of the queue, or replace it.
pub(crate) fn beside_queue(random: &mut Random) -> Arguments {
    match random.below(9) {
        0 => arguments(&[b"DEL", b"queue"]),
        1 => {
            let value = [&b"0000000000000007"[..], b"abc", b"zzzzzzzzzzzzzzzz", b"9007199254740991"];
            arguments(&[b"SET", b"queue", random.of(&value)])
        }
        2 => arguments(&[b"RPUSH", b"queue", b"x"]),
        3 => arguments(&[b"PEXPIRE", b"queue", random.of(&[&b"1"[..], b"5", b"1000"])]),
        4 => arguments(&[b"PERSIST", random.of(&[&b"queue"[..], b"c"])]),
        5 | 6 => arguments(&[b"DEL", b"c", b"queue", b"count c"]),
        _ => arguments(&[b"DEL", b"c"]),
    }
}

/// The calls in the life of the queue, with other calls in between.
pub(crate) fn queue_story(random: &mut Random) -> Vec<Arguments> {
    let length = 4 + random.below(8);
    (0..length).map(|_| if random.one_in(10) { beside_queue(random) } else { queue(random) }).collect()
}

/// A waiter is told that its turn has come: when the place before its own leaves, and when that
/// place gets a number behind its own. Each call comes with the number of the connection that makes
/// it, one of two.
pub(crate) fn turns() -> Vec<(usize, Arguments)> {
    let of = |kind: CommandKind, place: &str, number: &str, flags: &str| {
        let keys = vec![b"c".to_vec(), bell(place).into(), b"queue".to_vec()];
        let token = format!("token {place}");
        let mut values = arguments(&[token.as_bytes(), b"9000", place.as_bytes(), b"1000"]);
        if kind == Enter {
            values.extend(arguments(&[b"50", number.as_bytes(), flags.as_bytes()]));
        }
        let (text, _) = kind.script().unwrap();
        [arguments(&[b"EVAL", text.as_bytes(), keys.len().to_string().as_bytes()]), keys, values].concat()
    };
    let [one, two, ..] = PLACES;
    vec![
        (0, of(Enter, one, "0", "-")),
        (1, of(Enter, two, "0", "-")),
        (0, of(Enter, one, "7", "s")),
        (1, of(Enter, two, "0", "s")),
        (1, of(Enter, two, "9", "s")),
        (0, of(Enter, one, "0", "s")),
        (0, of(Leave, one, "0", "-")),
        (1, of(Leave, two, "0", "-")),
        (0, of(Enter, one, "0", "-")),
        (1, of(Enter, two, "0", "-")),
        (0, of(KeepLeaving, one, "0", "-")),
        (1, of(Enter, two, "0", "s")),
    ]
}
