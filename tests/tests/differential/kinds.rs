//! Random calls of the scripts of several targets and of seats, and changes of their keys by other
//! clients.

use quorlock_sim::Command;
use quorlock_sim::CommandKind::{
    self, AcquireAll, Enter, ExtendAll, HealAll, KeepAll, KeepLeaving, Leave, RaiseAll, ReleaseAll, Take,
};
use quorlock_tests::Random;

use crate::commands::{Arguments, arguments, client_token, key, token};
use crate::scripts::{Site, fleet, number, span};

pub(crate) const KINDS: [CommandKind; 10] =
    [AcquireAll, RaiseAll, ExtendAll, HealAll, ReleaseAll, KeepAll, Take, Enter, Leave, KeepLeaving];

/// The relative frequency of each script.
const SCRIPTS: [(CommandKind, usize); 6] =
    [(AcquireAll, 10), (RaiseAll, 4), (ExtendAll, 6), (HealAll, 4), (ReleaseAll, 5), (KeepAll, 3)];

/// The resources, which claims write or read. Other scripts lock only the first one.
const RESOURCES: [&str; 3] = ["a", "c", "d"];

/// The mark of the next waiter, if the resources are seats.
const NEXT: &[u8] = b"next";

/// The usual written and read targets.
const USUAL: [(&[&str], &[&str]); 5] =
    [(&[], &["d"]), (&[], &["c", "d"]), (&["c"], &["d"]), (&["c", "d"], &[]), (&["d"], &[])];
const USUAL_TOKEN: &[u8] = b"4f3c2a1b4f3c2a1b4f3c2a1b4f3c2a1b4f3c2a1b";

/// TTLs of a claim, short ones more often, and one that no server accepts.
const LIVES: [&str; 12] = ["1", "2", "3", "5", "8", "13", "20", "50", "100", "1000", "1000", "0"];
const RAISED: [&str; 6] = ["0", "1", "7", "8", "12", "9007199254740991"];
const WAITS: [&str; 2] = ["11111111111111111111111111111111", "22222222222222222222222222222222"];
/// Mostly readers. One name has a byte that ends texts in C.
const GROUPS: [&str; 8] = ["", "", "", "", "", "", "g", "a\0b"];

fn sentinel(random: &mut Random) -> Vec<u8> {
    sentinel_of(random.of(&GROUPS))
}

pub(crate) fn sentinel_of(group: &str) -> Vec<u8> {
    format!("quorlock:shared:{}{}:{group}", ".".repeat(48), group.len()).into_bytes()
}

pub(crate) fn call(random: &mut Random, kind: CommandKind, keys: &[Vec<u8>], values: Arguments) -> Arguments {
    let replicated = kind.replicated_script().filter(|_| random.one_in(6));
    let script = replicated.or(kind.script()).expect("it is a script");
    call_of(random, script, keys, values)
}

fn call_of(
    random: &mut Random,
    (text, sha1): (&str, &str),
    keys: &[Vec<u8>],
    values: Arguments,
) -> Arguments {
    let head = if random.one_in(3) { ["EVAL", text] } else { ["EVALSHA", sha1] };
    let mut call = arguments(&head.map(str::as_bytes));
    call.push(keys.len().to_string().into_bytes());
    for own in keys {
        call.push(if random.one_in(60) { key(random).to_vec() } else { own.clone() });
    }
    call.extend(values);
    call
}

/// Whether it is a call of one of these scripts, all of whose arguments are needed.
pub(crate) fn is_claim(arguments: &Arguments) -> bool {
    KINDS.contains(&Command::new(arguments.iter().cloned()).kind())
}

pub(crate) fn life(random: &mut Random) -> Vec<u8> {
    let end = if random.one_in(20) { LIVES.len() } else { LIVES.len() - 1 };
    LIVES[random.below(end)].into()
}

/// The common arguments of the scripts of one claim.
struct Aim {
    written: Vec<&'static str>,
    read: Vec<&'static str>,
    token: &'static [u8],
}

fn aim(random: &mut Random) -> Aim {
    let (mut written, mut read) = (Vec::new(), Vec::new());
    // Most calls should use the same few claims.
    if !random.one_in(4) {
        let (writes, reads) = *random.of_all(&USUAL);
        (written, read) = (writes.to_vec(), reads.to_vec());
    }
    while written.is_empty() && read.is_empty() {
        for resource in RESOURCES {
            match random.below(8) {
                0 | 1 => written.push(resource),
                2..=4 => read.push(resource),
                _ => {}
            }
        }
    }
    let token = if random.one_in(4) { client_token(random) } else { USUAL_TOKEN };
    Aim { written, read, token }
}

pub(crate) fn claim(random: &mut Random) -> Arguments {
    let aim = aim(random);
    asked(random, &aim)
}

/// The calls in the life of one claim, with other calls in between.
pub(crate) fn story(random: &mut Random) -> Vec<Arguments> {
    let aim = aim(random);
    let length = 4 + random.below(6);
    (0..length).map(|_| if random.one_in(8) { beside(random) } else { asked(random, &aim) }).collect()
}

fn asked(random: &mut Random, Aim { written, read, token }: &Aim) -> Arguments {
    let kind = SCRIPTS[random.weighted(SCRIPTS.iter().map(|(_, weight)| *weight))].0;
    let flags: String = flags(random, kind);
    let mut keys = keys_of(kind, (written, read), &flags);
    let mut values = vec![
        token.to_vec(),
        life(random),
        random.of(&RAISED).into(),
        flags.clone().into_bytes(),
        written.len().to_string().into_bytes(),
        read.len().to_string().into_bytes(),
    ];
    values.extend(read.iter().map(|_| sentinel(random)));
    if flags.contains('m') {
        values.push(random.of(&WAITS).into());
    }
    let guarded = kind.guarded_script().filter(|_| random.one_in(3));
    if flags.contains('g') || guarded.is_some() {
        keys.push(b"marker".to_vec());
        values.extend(arguments(&[span(random), fleet(random)]));
    }
    match guarded {
        Some(script) => call_of(random, script, &keys, values),
        None => call(random, kind, &keys, values),
    }
}

/// The keys of a claim's written and read targets, without a marker.
pub(crate) fn keys_of(kind: CommandKind, (written, read): (&[&str], &[&str]), flags: &str) -> Vec<Vec<u8>> {
    let named = |kind: &str, resource: &&str| format!("{kind} {resource}").into_bytes();
    let mut keys: Vec<Vec<u8>> = written.iter().map(|resource| (*resource).into()).collect();
    for resource in read {
        keys.extend([(*resource).into(), named("want", resource)]);
    }
    if flags.contains('m') {
        keys.extend(written.iter().map(|resource| named("want", resource)));
    }
    if flags.contains('f') || kind == RaiseAll {
        keys.extend(written.iter().chain(read).map(|resource| named("count", resource)));
    }
    keys
}

fn flags(random: &mut Random, kind: CommandKind) -> String {
    let may: &[(char, usize)] = match kind {
        AcquireAll => &[('f', 2), ('g', 6), ('m', 3), ('i', 3)],
        ReleaseAll => &[('m', 3), ('t', 2)],
        _ => &[('f', 2)],
    };
    let flags: String =
        may.iter().filter(|(_, times)| random.one_in(*times)).map(|(flag, _)| *flag).collect();
    if flags.is_empty() { "-".into() } else { flags }
}

/// A call of TAKE, in which the resources are seats.
pub(crate) fn take(random: &mut Random) -> Arguments {
    let first = random.below(RESOURCES.len());
    let seats = (0..=random.below(RESOURCES.len())).map(|next| RESOURCES[(first + next) % RESOURCES.len()]);
    let seats: Vec<&str> = seats.collect();
    let (is_fenced, is_guarded) = (random.one_in(2), random.one_in(6));
    let mut keys: Vec<Vec<u8>> = seats.iter().map(|seat| (*seat).into()).collect();
    let mut flags = String::from("-");
    if is_fenced {
        keys.extend(seats.iter().map(|seat| format!("count {seat}").into_bytes()));
        flags.push('f');
    }
    keys.push(NEXT.to_vec());
    let has_waited = random.one_in(4);
    if has_waited {
        flags.push('m');
    }
    if random.one_in(2) {
        flags.push('w');
    }
    let wanted = 1 + random.below(3);
    let mut values = vec![token(random).to_vec(), life(random), wanted.to_string().into_bytes()];
    if is_guarded {
        keys.push(b"marker".to_vec());
        flags.push('g');
    }
    values.extend([flags.into_bytes(), seats.len().to_string().into_bytes()]);
    if has_waited {
        // The waits are longer than a run, so that it does not depend on the clocks which waiter
        // has waited longest.
        let waited = 1_000_000 * random.below(4);
        values.extend([random.of(&["a1", "b2", "c3"]).as_bytes().to_vec(), waited.to_string().into_bytes()]);
    }
    if is_guarded {
        values.extend(arguments(&[span(random), fleet(random)]));
    }
    call(random, Take, &keys, values)
}

fn named(random: &mut Random, kind: &str) -> Vec<u8> {
    format!("{kind} {}", random.of(&RESOURCES)).into_bytes()
}

/// Other clients set a counter, a mark or a sentinel, or delete one of these keys.
pub(crate) fn beside(random: &mut Random) -> Arguments {
    match random.below(12) {
        0 => vec![b"SET".to_vec(), named(random, "count"), number(random).to_vec()],
        8.. => {
            // Without these deletions, hardly any resource would be free after a while.
            let kinds = ["want", "count"].into_iter();
            let keys = kinds.flat_map(|kind| ["c", "d"].map(|name| format!("{kind} {name}")));
            let all = ["DEL", "c", "d", "next"].map(str::to_owned).into_iter().chain(keys);
            all.map(String::into_bytes).collect()
        }
        1 => vec![b"DEL".to_vec(), named(random, "count")],
        2 => {
            let wait = random.of(&WAITS).as_bytes();
            vec![b"SET".to_vec(), named(random, "want"), wait.to_vec(), b"PX".to_vec(), life(random)]
        }
        3 => vec![b"DEL".to_vec(), named(random, "want")],
        4 => {
            let key = random.of(&RESOURCES).into();
            vec![b"SET".to_vec(), key, sentinel(random), b"PX".to_vec(), life(random)]
        }
        5 => vec![b"RPUSH".to_vec(), NEXT.to_vec(), b"x".to_vec()],
        6 => vec![b"RPUSH".to_vec(), random.of(&RESOURCES).into(), b"x".to_vec()],
        _ => vec![b"GET".to_vec(), random.of(&RESOURCES).into()],
    }
}

/// Other clients share a resource, some of them until about now; or they change or read a sorted
/// set.
pub(crate) fn members(random: &mut Random, site: &Site) -> Arguments {
    if random.one_in(2) { shared(random, site) } else { scored(random, site) }
}

fn shared(random: &mut Random, site: &Site) -> Arguments {
    let ends = [site.now - 5, site.now, site.now + 1, site.now + 4, site.now + 90, site.now + 100_000];
    let first = random.below(ends.len());
    let mut value = sentinel(random);
    for (end, last) in ends[first..].iter().zip(0..random.below(4)) {
        let token = if last == 1 { USUAL_TOKEN } else { client_token(random) };
        if random.one_in(5) {
            value.extend_from_slice(&[&[b'0'; 16], &b":"[..], &[b'-'; 40]].concat());
        }
        // No client has two entries.
        if !value.windows(token.len()).any(|part| part == token) {
            value.extend([format!("{end:016}:").as_bytes(), token].concat());
        }
    }
    vec![b"SET".to_vec(), random.of(&RESOURCES).into(), value, b"PX".to_vec(), life(random)]
}

/// Ends around now, and scores that are not numbers.
fn scored(random: &mut Random, site: &Site) -> Arguments {
    let shared = if random.one_in(10) { key(random).to_vec() } else { b"queue".to_vec() };
    let about = |random: &mut Random| {
        let end = site.now + [0, 5, 9, 10, 14, 100, 100_000][random.below(7)] - 10;
        if random.one_in(20) { b"abc".to_vec() } else { end.to_string().into_bytes() }
    };
    match random.below(6) {
        0 | 1 => {
            let mut add = vec![b"ZADD".to_vec(), shared, about(random), token(random).to_vec()];
            if random.one_in(4) {
                add.push(about(random));
                if !random.one_in(4) {
                    add.push(b"another".to_vec());
                }
            }
            add
        }
        2 => vec![b"ZREM".to_vec(), shared, token(random).to_vec(), token(random).to_vec()],
        3 => {
            let until = about(random);
            vec![b"ZREMRANGEBYSCORE".to_vec(), shared, b"-inf".to_vec(), until]
        }
        4 => {
            let look = random.of(&[&b"ZSCORE"[..], b"ZRANK"]);
            vec![look.to_vec(), shared, token(random).to_vec()]
        }
        _ => {
            let look = random.of(&[&b"ZREVRANGE"[..], b"ZRANGE"]);
            let mut look = arguments(&[look, &shared, b"0", b"-1", b"WITHSCORES"]);
            look.truncate(4 + random.below(2));
            look
        }
    }
}
