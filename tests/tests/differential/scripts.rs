//! Random calls of Quorlock's scripts, and the keys that they find: counters that are not numbers,
//! markers from before a restart and of other fleets.

use quorlock_sim::CommandKind::{
    self, AcquireFenced, AcquireFencedGuarded, AcquireGuarded, AcquireReading, Attend, Extend, ExtendFenced,
    ForceRelease, Heal, HealFenced, Inspect, Keep, Open, Raise, Release, ReleaseAny, Undo,
};

use crate::commands::{Arguments, arguments, client_token, key, life, token};
use crate::kinds::KINDS;
use quorlock_tests::Random;

/// The arguments of each script after the lock's key: whether a counter, whether a marker; then
/// values, of which `t` is a token, `o` one of a client, `l` a life, `n` a number that the counter
/// may have, `d` a token's digest, `w` the mark of waiters, `M` the marker's name, `T` some tokens,
/// and `f` the two numbers of a fleet.
pub(crate) const SCRIPTS: [(CommandKind, &str, &str); 17] = [
    (Extend, "k", "tl"),
    (Release, "k", "t"),
    (Undo, "k", "t"),
    (Keep, "k", "tl"),
    (ForceRelease, "s", "d"),
    (ReleaseAny, "s", "o"),
    (Inspect, "skm", "TMw"),
    (AcquireFenced, "kc", "tl"),
    (Raise, "kc", "tn"),
    (ExtendFenced, "kc", "tln"),
    (HealFenced, "kc", "tln"),
    (Heal, "k", "tl"),
    (AcquireGuarded, "km", "tlf"),
    (AcquireFencedGuarded, "kcm", "tlf"),
    (AcquireReading, "k", "tl"),
    (Attend, "m", "f"),
    (Open, "m", "f"),
];

/// The beginnings of the digests of the most frequent tokens, and an invalid one.
const DIGESTS: [&[u8]; 3] = [b"a2014b189eb24687", b"c66625bd4e5ddc3e", b""];

/// Keys that may be shared, with the marks of their waiters.
const SHARED: [[&str; 2]; 3] = [["a", "want a"], ["c", "want c"], ["d", "want d"]];

/// Numbers up to the largest that doubles hold, and texts that are not numbers.
const NUMBERS: [&[u8]; 18] = [
    b"1",
    b"2",
    b"7",
    b"8",
    b"9",
    b"9007199254740991",
    b"9007199254740990",
    b"0",
    b"-3",
    b"1.5",
    b" 5 ",
    b"1e3",
    b"0x10",
    b"9223372036854775807",
    b"inf",
    b"abc",
    b"",
    b"5\x007",
];
const SPANS: [&[u8]; 10] = [b"5", b"5", b"5", b"20", b"0", b"1000", b"abc", b" 5", b"2.5", b"5\x007"];
const FLEETS: [&[u8]; 8] = [b"3", b"3", b"3", b"5", b"x", b"3\x007", b"1003", b"2003"];

/// The values of a marker: the server's replication id and time.
pub(crate) struct Site {
    pub(crate) replication_id: String,
    pub(crate) now: u64,
}

fn kind(random: &mut Random) -> (&'static str, &'static str) {
    let kind = if random.one_in(3) { *random.of_all(&KINDS) } else { random.of_all(&SCRIPTS).0 };
    let guarded = kind.guarded_script().filter(|_| random.one_in(2));
    guarded.or(kind.script()).or(kind.replicated_script()).expect("it is a script")
}

pub(crate) fn number(random: &mut Random) -> &'static [u8] {
    NUMBERS[if random.one_in(4) { random.below(NUMBERS.len()) } else { random.below(5) }]
}

pub(crate) fn span(random: &mut Random) -> &'static [u8] {
    SPANS[if random.one_in(8) { random.below(SPANS.len()) } else { 0 }]
}

pub(crate) fn fleet(random: &mut Random) -> &'static [u8] {
    FLEETS[if random.one_in(8) { random.below(FLEETS.len()) } else { 0 }]
}

pub(crate) fn script(random: &mut Random) -> Arguments {
    let (kind, keys, values) = *random.of_all(&SCRIPTS);
    let (mut keys, mut values) = (keys.to_owned(), values.to_owned());
    let plain = kind.script().or(kind.replicated_script()).expect("it is a script");
    let replicated = kind.replicated_script().filter(|_| random.one_in(3)).unwrap_or(plain);
    let guarded = kind.guarded_script().filter(|_| random.one_in(2));
    if guarded.is_some() {
        keys.push('m');
        values.push('f');
    }
    let (text, sha1) = guarded.unwrap_or(replicated);
    let mut call = if random.one_in(5) {
        arguments(&[b"EVAL", text.as_bytes()])
    } else if random.one_in(20) {
        let no_script = random.of(&[&b"abc"[..], b"0000000000000000000000000000000000000000", b""]);
        arguments(&[b"EVALSHA", no_script])
    } else if random.one_in(10) {
        arguments(&[b"EVALSHA", sha1.to_ascii_uppercase().as_bytes()])
    } else {
        arguments(&[b"EVALSHA", sha1.as_bytes()])
    };
    if random.one_in(15) {
        // The call declares no keys or too many, and has too few arguments.
        call.push(random.of(&[&b"0"[..], b"1", b"2", b"3", b"-1", b"x", b"99"]).to_vec());
        call.extend((0..random.below(6)).map(|_| key(random).to_vec()));
        return call;
    }
    call.push(keys.len().to_string().into_bytes());
    let shared = SHARED[random.below(SHARED.len())];
    for kind in keys.chars() {
        let own = match kind {
            's' => shared[0].as_bytes(),
            'c' => &b"counter"[..],
            'm' => b"marker",
            _ => key(random),
        };
        call.push(if random.one_in(30) { key(random) } else { own }.to_vec());
    }
    for kind in values.chars() {
        match kind {
            't' => call.push(token(random).to_vec()),
            'l' => call.push(life(random).to_vec()),
            'n' => call.push(number(random).to_vec()),
            'd' => call.push(random.of(&DIGESTS).to_vec()),
            'o' => call.push(client_token(random).to_vec()),
            'w' => call.push(shared[1].into()),
            'M' => call.push(b"marker".to_vec()),
            'T' => call.push([token(random), b" ", token(random)].concat()),
            _ => call.extend(arguments(&[span(random), fleet(random)])),
        }
    }
    if random.one_in(15) {
        call.pop();
    }
    call
}

/// Another client sets the counter, or reads it.
pub(crate) fn count(random: &mut Random) -> Arguments {
    match random.below(3) {
        0 => arguments(&[b"GET", b"counter"]),
        _ => arguments(&[b"SET", b"counter", number(random)]),
    }
}

/// A marker of this replication id or another, from now or earlier, of one fleet or another; or an
/// invalid one.
pub(crate) fn marker(random: &mut Random, site: &Site) -> Arguments {
    if random.one_in(4) {
        return arguments(&[random.of(&[&b"GET"[..], b"DEL"]), b"marker"]);
    }
    let other = "0123456789abcdef0123456789ABCDEF01234567";
    let id = if random.one_in(4) { random.of(&[other, "f", "no-id", ""]) } else { &site.replication_id };
    let about = |random: &mut Random, spread: [u64; 5]| site.now + spread[random.below(5)] - 10;
    let (born, opens) = (about(random, [0, 5, 9, 10, 14]), about(random, [0, 8, 11, 13, 500]));
    let mut text = format!("{id} {born} {opens} ").into_bytes();
    text.extend([span(random), b" ", fleet(random)].concat());
    match random.below(20) {
        0 => text.push(b' '),
        1 => text.insert(0, b' '),
        2 => text.truncate(text.len() / 2),
        3 => text.extend_from_slice(b"\x007"),
        _ => {}
    }
    arguments(&[b"SET", b"marker", &text])
}

pub(crate) fn script_cache(random: &mut Random) -> Arguments {
    let (text, sha1) = kind(random);
    match random.below(14) {
        0 if random.one_in(2) => arguments(&[b"SCRIPT", b"FLUSH"]),
        1 => arguments(&[b"SCRIPT", b"FLUSH", random.of(&[&b"ASYNC"[..], b"sync", b"NOW"])]),
        2 | 3 => {
            let (_, other) = kind(random);
            let upper = other.to_ascii_uppercase();
            arguments(&[b"SCRIPT", b"EXISTS", sha1.as_bytes(), upper.as_bytes(), b"abc"])
        }
        4 => arguments(&[b"SCRIPT", random.of(&[&b"NONE"[..], b"EXISTS", b""])]),
        5 => arguments(&[b"SCRIPT"]),
        _ => arguments(&[b"SCRIPT", random.of(&[&b"LOAD"[..], b"load"]), text.as_bytes()]),
    }
}
