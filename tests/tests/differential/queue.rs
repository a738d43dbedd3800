//! Random calls of the scripts of the queue of fair waiters, and changes of its keys by other
//! clients.

use quorlock_sim::CommandKind::{self, Enter, Leave};
use quorlock_tests::Random;

use crate::commands::{Arguments, arguments, token};
use crate::kinds::{call, life};
use crate::scripts::{fleet, span};

/// The places of the waiters, all for the same lock. The third place is also a token.
const PLACES: [&str; 4] = ["1", "2", "10", "3"];

/// How long places live: usually long enough for a queue to form.
const LEASES: [&str; 6] = ["3", "20", "1000", "1000", "1000", "1000"];
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
    let mut values = vec![token, place.into()];
    if random.one_in(3) {
        return call(random, Leave, &keys, values);
    }
    keys.push(b"ticket".to_vec());
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
    values.extend([life(random), random.of(&LEASES).into(), random.of(&NUMBERS).into(), flags.into_bytes()]);
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
        1 => arguments(&[b"SET", b"ticket", random.of(&[&b"7"[..], b"abc", b"-3", b"1.5", b"inf", b"nan"])]),
        2 => arguments(&[b"RPUSH", random.of(&[&b"queue"[..], b"ticket"]), b"x"]),
        3 => arguments(&[b"PEXPIRE", &own, random.of(&[&b"1"[..], b"5", b"1000"])]),
        4 => arguments(&[b"ZADD", b"queue", random.of(&[&b"1"[..], b"5", b"40"]), place(random).as_bytes()]),
        5 => arguments(&[b"PERSIST", random.of(&[&b"queue"[..], b"ticket", b"c"])]),
        6 | 7 => arguments(&[b"DEL", b"c", b"queue", b"ticket", b"count c", b"place 1", b"place 10"]),
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
        let mut keys = vec![b"c".to_vec(), key_of(place), b"queue".to_vec()];
        let mut values = arguments(&[format!("token {place}").as_bytes(), place.as_bytes()]);
        if kind == Enter {
            keys.push(b"ticket".to_vec());
            values.extend(arguments(&[b"9000", b"1000", number.as_bytes(), flags.as_bytes()]));
        }
        let (text, _) = kind.script().unwrap();
        [arguments(&[b"EVAL", text.as_bytes(), keys.len().to_string().as_bytes()]), keys, values].concat()
    };
    vec![
        (0, of(Enter, "1", "0", "-")),
        (1, of(Enter, "2", "0", "-")),
        (0, of(Enter, "1", "7", "s")),
        (1, of(Enter, "2", "0", "s")),
        (1, of(Enter, "2", "9", "s")),
        (0, of(Enter, "1", "0", "s")),
        (0, of(Leave, "1", "0", "-")),
        (1, of(Leave, "2", "0", "-")),
    ]
}
