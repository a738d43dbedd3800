//! Random calls of the scripts of the queue of fair waiters, and changes of its keys by other
//! clients.

use quorlock_sim::CommandKind::{self, Enter, KeepLeaving, Leave};
use quorlock_tests::Random;

use crate::commands::{Arguments, arguments, token};
use crate::kinds::{call, life};
use crate::scripts::{fleet, span};

/// The places of the waiters, all for the same lock.
const PLACES: [&str; 4] = ["1", "2", "10", "3"];

/// How long places live: usually long enough for a queue to form.
const LEASES: [&str; 6] = ["3", "20", "1000", "1000", "1000", "1000"];
/// How long turns are: some end before the waiter asks again.
const TURNS: [&str; 4] = ["1", "5", "50", "200"];
const NUMBERS: [&str; 10] = ["0", "0", "0", "0", "1", "7", "8", "12", "9007199254740991", "9007199254740992"];

fn place(random: &mut Random) -> &'static str {
    random.of(&PLACES)
}

fn key_of(place: &str) -> Vec<u8> {
    format!("place {place}").into_bytes()
}

/// A call with which one of the waiters enters, stays or leaves.
pub(crate) fn queue(random: &mut Random) -> Arguments {
    let place = place(random);
    let mut keys = vec![b"c".to_vec(), key_of(place), b"queue".to_vec()];
    let token = if random.one_in(4) { token(random).to_vec() } else { format!("token {place}").into_bytes() };
    let mut values = vec![token, life(random), place.into()];
    if random.one_in(3) {
        let kind = if random.one_in(2) { KeepLeaving } else { Leave };
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
    let numbers = [random.of(&LEASES), random.of(&TURNS), random.of(&NUMBERS)];
    values.extend(numbers.map(Vec::from));
    values.push(flags.into_bytes());
    if is_guarded {
        values.extend(arguments(&[span(random), fleet(random)]));
    }
    call(random, Enter, &keys, values)
}

/// Other clients delete a key of the queue, or replace it by another type.
pub(crate) fn beside_queue(random: &mut Random) -> Arguments {
    let own = key_of(place(random));
    match random.below(10) {
        0 => arguments(&[b"DEL", b"queue"]),
        1 => arguments(&[b"SET", &own, random.of(&[&b"7"[..], b"abc", b"-3", b"1.5", b"inf", b"nan"])]),
        2 => arguments(&[b"RPUSH", random.of(&[&b"queue"[..], b"place 1"]), b"x"]),
        3 => arguments(&[b"PEXPIRE", &own, random.of(&[&b"1"[..], b"5", b"1000"])]),
        4 => arguments(&[b"ZADD", b"queue", random.of(&[&b"1"[..], b"5", b"40"]), place(random).as_bytes()]),
        5 => arguments(&[b"PERSIST", random.of(&[&b"queue"[..], b"place 1", b"c"])]),
        6 | 7 => arguments(&[b"DEL", b"c", b"queue", b"count c", b"place 1", b"place 10"]),
        _ => arguments(&[b"DEL", &own]),
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
        let keys = vec![b"c".to_vec(), key_of(place), b"queue".to_vec()];
        let token = format!("token {place}");
        let mut values = arguments(&[token.as_bytes(), b"9000", place.as_bytes()]);
        if kind == Enter {
            values.extend(arguments(&[b"1000", b"50", number.as_bytes(), flags.as_bytes()]));
        }
        let (text, _) = kind.script().unwrap();
        [arguments(&[b"EVAL", text.as_bytes(), keys.len().to_string().as_bytes()]), keys, values].concat()
    };
    let (one, two) = ("1", "2");
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
