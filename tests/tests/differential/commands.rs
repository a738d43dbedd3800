//! Random commands. There are only a few keys, tokens and lives, so that commands often concern the
//! same ones.

use quorlock_tests::Random;

use crate::kinds::{beside, claim, is_claim, take};
use crate::queue::{beside_queue, queue};
use crate::scripts::{count, script, script_cache};

pub(crate) type Arguments = Vec<Vec<u8>>;

/// All keys that are ever used, and all databases.
pub(crate) const KEYS: [&[u8]; 20] = [
    b"a",
    b"invoice:42",
    b"c",
    b"d",
    b"with space",
    b"\x00\xff\r\n",
    b"counter",
    b"marker",
    b"want a",
    b"want c",
    b"want d",
    b"count a",
    b"count c",
    b"count d",
    b"next",
    b"queue",
    b"place 1",
    b"place 2",
    b"place 10",
    b"place 3",
];
pub(crate) const DATABASES: [u32; 3] = [0, 1, 15];

/// The tokens. The first ones are as long as those of clients. One is longer than the part that
/// UNDO digests, and one is a number.
const TOKENS: [&[u8]; 7] = [
    b"4f3c2a1b4f3c2a1b4f3c2a1b4f3c2a1b4f3c2a1b",
    b"99aa88bb99aa88bb99aa88bb99aa88bb99aa88bb",
    b"",
    b"10",
    b"9223372036854775807",
    b"\x00\r\n\xfe",
    b"0123456789012345678901234567890123456789012345678901234567890123 and more",
];
const LIVES: [&[u8]; 26] = [
    b"1",
    b"1",
    b"2",
    b"3",
    b"5",
    b"8",
    b"13",
    b"20",
    b"20",
    b"50",
    b"100",
    b"1000",
    b"5000",
    b"100000",
    b"0",
    b"-1",
    b"-5000",
    b"abc",
    b"1.5",
    b" 10",
    b"0x10",
    b"1e2",
    b"9223372036854775807",
    b"9223372036854775000",
    b"9000000000000000",
    b"007",
];
const PASSWORDS: [&[u8]; 4] = [b"secret", b"secret", b"wrong", b""];

type Make = fn(&mut Random) -> Arguments;

/// The kinds of commands: how often each is drawn, and the function that creates it.
const MAKERS: &[(usize, Make)] = &[
    (24, set),
    (9, |random| with_key(random, "GET")),
    (8, |random| with_key(random, "PTTL")),
    (2, |random| with_key(random, "TTL")),
    (3, |random| with_key(random, "PEXPIRETIME")),
    (2, |random| with_key(random, "PERSIST")),
    (2, |random| with_key(random, "TYPE")),
    (2, |random| with_key(random, "INCR")),
    (6, expire),
    (7, many_keys),
    (3, push),
    (36, script),
    (30, claim),
    (4, take),
    (9, beside),
    (16, queue),
    (2, beside_queue),
    (5, count),
    (4, script_cache),
    (3, hello),
    (3, auth),
    (3, select),
    (4, client),
    (4, small_talk),
    (1, info),
    (1, whole_database),
    (2, config),
    (2, nonsense),
];

/// Returns one random command.
pub(crate) fn command(random: &mut Random) -> Arguments {
    let maker = random.weighted(MAKERS.iter().map(|(weight, _)| *weight));
    let mut arguments = MAKERS[maker].1(random);
    if random.one_in(60) {
        if random.one_in(2) {
            arguments.push(random.of(&[&b""[..], b"NX", b"x"]).to_vec());
        } else if arguments.len() > 1 && !is_claim(&arguments) {
            arguments.pop();
        }
    }
    if random.one_in(8) {
        arguments[0].make_ascii_lowercase();
    }
    arguments
}

/// Bytes that end the connection, or nearly do.
pub(crate) fn garbage(random: &mut Random) -> &'static [u8] {
    random.of(&[
        b"*1\r\n:5\r\n",
        b"*abc\r\n",
        b"*\r\n",
        b"*1\r\n$-1\r\n",
        b"*1\r\n$abc\r\n",
        b"*1\r\n$4 \r\n",
        b"*2\r\n$4\r\nPING\r\n+x\r\n",
        b"*1\r\n\r\n",
        b"*1\r\n\xff\r\n",
        b"*99999999999\r\n",
        b"PING \"a\r\n",
        b"PING 'a'b\r\n",
        b"POST / HTTP/1.1\r\n",
        b"Host: localhost\r\n",
        b"*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nPING\r\n",
        b"quit now please\r\n",
        // These end nothing.
        b"\r\n",
        b"   \n",
        b"*0\r\n",
        b"*-5\r\n",
        b"*1\r\n$4\r\nPINGxx",
    ])
}

/// The bytes of a command, sometimes as a line that a person would type.
pub(crate) fn encode(random: &mut Random, arguments: &[Vec<u8>], with_lines: bool) -> Vec<u8> {
    if with_lines && random.one_in(20) && arguments.iter().all(|argument| argument.len() < 200) {
        let words: Vec<Vec<u8>> = arguments.iter().map(|argument| quoted(random, argument)).collect();
        return [words.join(&b' '), random.of(&[&b"\n"[..], b"\r\n"]).to_vec()].concat();
    }
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend(format!("${}\r\n", argument.len()).bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn quoted(random: &mut Random, argument: &[u8]) -> Vec<u8> {
    let is_plain = !argument.is_empty() && argument.iter().all(u8::is_ascii_alphanumeric);
    if is_plain && random.one_in(2) {
        return argument.to_vec();
    }
    if is_plain && random.one_in(2) {
        return [b"'", argument, b"'"].concat();
    }
    let escaped: String = argument.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    format!("\"{escaped}\"").into_bytes()
}

pub(crate) fn arguments(words: &[&[u8]]) -> Arguments {
    words.iter().map(|word| word.to_vec()).collect()
}

pub(crate) fn key(random: &mut Random) -> &'static [u8] {
    // Most commands should use the same two keys.
    KEYS[if random.one_in(3) { random.below(KEYS.len()) } else { random.below(2) }]
}

pub(crate) fn token(random: &mut Random) -> &'static [u8] {
    TOKENS[if random.one_in(4) { random.below(TOKENS.len()) } else { random.below(2) }]
}

/// A token of a client.
pub(crate) fn client_token(random: &mut Random) -> &'static [u8] {
    TOKENS[random.below(2)]
}

pub(crate) fn life(random: &mut Random) -> &'static [u8] {
    LIVES[if random.one_in(4) { random.below(LIVES.len()) } else { random.below(12) }]
}

fn with_key(random: &mut Random, name: &str) -> Arguments {
    arguments(&[name.as_bytes(), key(random)])
}

fn set(random: &mut Random) -> Arguments {
    let mut set = arguments(&[b"SET", key(random), token(random)]);
    if random.one_in(3) {
        set.extend(arguments(&[b"NX", b"PX", life(random)]));
        return set;
    }
    for _ in 0..random.below(4) {
        match random.below(10) {
            0 | 1 => set.push(b"NX".to_vec()),
            2 => set.push(b"XX".to_vec()),
            3 => set.push(b"GET".to_vec()),
            4 => set.push(b"KEEPTTL".to_vec()),
            5 => set.extend(arguments(&[b"EX", life(random)])),
            6 => {
                let at = random.of(&[&b"1000"[..], b"4000000000000", b"9223372036854775807", b"0"]);
                set.extend(arguments(&[random.of(&[&b"PXAT"[..], b"EXAT"]), at]));
            }
            7 => set.push(random.of(&[&b"px"[..], b"nx", b"NOSUCH", b"", b"PERSIST"]).to_vec()),
            _ => set.extend(arguments(&[b"PX", life(random)])),
        }
    }
    set
}

fn expire(random: &mut Random) -> Arguments {
    let name = random.of(&[&b"PEXPIRE"[..], b"PEXPIRE", b"EXPIRE"]);
    let mut expire = arguments(&[name, key(random), life(random)]);
    for _ in 0..random.below(4).saturating_sub(1) {
        expire.push(random.of(&[&b"NX"[..], b"XX", b"GT", b"LT", b"lt", b"KEEP\0x"]).to_vec());
    }
    expire
}

fn many_keys(random: &mut Random) -> Arguments {
    let name = random.of(&[&b"DEL"[..], b"DEL", b"UNLINK", b"EXISTS", b"EXISTS", b"MGET"]);
    let count = if random.one_in(20) { 12 } else { 1 + random.below(2) };
    let keys = (0..count).map(|_| key(random).to_vec());
    std::iter::once(name.to_vec()).chain(keys).collect()
}

fn push(random: &mut Random) -> Arguments {
    let mut push = arguments(&[random.of(&[&b"RPUSH"[..], b"LPUSH"]), key(random)]);
    push.extend((0..=random.below(2)).map(|_| token(random).to_vec()));
    push
}

fn hello(random: &mut Random) -> Arguments {
    let version = random.of(&[&b"2"[..], b"3", b"3", b"3", b"4", b"1", b"x", b"9223372036854775808"]);
    let mut hello = arguments(&[b"HELLO", version]);
    if random.one_in(6) {
        hello.pop();
        return hello;
    }
    if random.one_in(2) {
        let user = random.of(&[&b"default"[..], b"default", b"default", b"bob"]);
        hello.extend(arguments(&[b"AUTH", user, random.of(&PASSWORDS)]));
    }
    if random.one_in(3) {
        hello.extend(arguments(&[b"setname", name(random)]));
    }
    if random.one_in(12) {
        hello.push(random.of(&[&b"AUTH"[..], b"SETNAME", b"WHAT"]).to_vec());
    }
    hello
}

fn name(random: &mut Random) -> &'static [u8] {
    random.of(&[&b"quorlock"[..], b"quorlock", b"a b", b"", b"\xff", b"~!"])
}

fn auth(random: &mut Random) -> Arguments {
    let mut auth = arguments(&[b"AUTH"]);
    if random.one_in(2) {
        auth.push(random.of(&[&b"default"[..], b"default", b"bob"]).to_vec());
    }
    auth.push(random.of(&PASSWORDS).to_vec());
    auth
}

fn select(random: &mut Random) -> Arguments {
    arguments(&[
        b"SELECT",
        random.of(&[&b"0"[..], b"0", b"0", b"0", b"1", b"15", b"16", b"-1", b"x", b"4294967296"]),
    ])
}

fn client(random: &mut Random) -> Arguments {
    match random.below(10) {
        0..=2 => arguments(&[b"CLIENT", b"SETNAME", name(random)]),
        3..=5 => arguments(&[b"CLIENT", random.of(&[&b"GETNAME"[..], b"getname"])]),
        6 => arguments(&[b"CLIENT", b"ID"]),
        7 => arguments(&[b"CLIENT", b"INFO"]),
        8 => arguments(&[
            b"CLIENT",
            // Tracking is never turned on: the real server would send invalidations.
            random.of(&[&b"NO-EVICT"[..], b"tracking"]),
            random.of(&[&b"off"[..], b"OFF", b"x"]),
        ]),
        _ => arguments(&[b"CLIENT", random.of(&[&b"NONE"[..], b"SETNAME", b"A\0B", b"line\r\nend"])]),
    }
}

fn small_talk(random: &mut Random) -> Arguments {
    match random.below(5) {
        0 => arguments(&[b"PING"]),
        1 => arguments(&[b"PING", token(random)]),
        2 => arguments(&[b"PING", b"a", b"b"]),
        3 => arguments(&[b"TIME"]),
        _ => arguments(&[b"ECHO", token(random)]),
    }
}

fn info(random: &mut Random) -> Arguments {
    let sections = [&b"server"[..], b"replication", b"memory", b"persistence", b"SERVER", b"nothing", b"all"];
    arguments(&[b"INFO", random.of(&sections)])
}

fn whole_database(random: &mut Random) -> Arguments {
    match random.below(8) {
        0 => arguments(&[b"FLUSHALL"]),
        1 => arguments(&[b"FLUSHDB"]),
        2 => arguments(&[
            random.of(&[&b"FLUSHALL"[..], b"FLUSHDB"]),
            random.of(&[&b"ASYNC"[..], b"sync", b"x"]),
        ]),
        _ => arguments(&[b"DBSIZE"]),
    }
}

/// CONFIG commands. The memory limit and the password that they set last for a few commands only.
fn config(random: &mut Random) -> Arguments {
    let amount = random.of(&[&b"0"[..], b"0", b"0", b"1", b"100mb", b"2GB", b"10x", b"", b"-1"]);
    let password = random.of(&[&b""[..], b"", b"secret"]);
    match random.below(12) {
        0..=3 => arguments(&[b"CONFIG", b"SET", b"maxmemory", amount]),
        4 | 5 => arguments(&[b"CONFIG", b"SET", b"requirepass", password]),
        6 => arguments(&[b"CONFIG", b"SET", b"maxmemory-policy", random.of(&[&b"noeviction"[..], b"some"])]),
        7 => arguments(&[b"CONFIG", b"SET", b"maxmemory", amount, b"requirepass", password]),
        8 => arguments(&[b"CONFIG", b"SET", b"MaxMemory", b"0", b"maxmemory", b"0"]),
        9 => arguments(&[b"CONFIG", b"SET", random.of(&[&b"nothing"[..], b"maxmemory"]), b"0", b"x"]),
        _ => {
            let option = random.of(&[&b"maxmemory"[..], b"MAXMEMORY-POLICY", b"requirepass", b"nothing"]);
            arguments(&[b"CONFIG", b"GET", option])
        }
    }
}

fn nonsense(random: &mut Random) -> Arguments {
    match random.below(4) {
        0 => arguments(&[b""]),
        1 => arguments(&[b"NOSUCH"]),
        2 => arguments(&[b"NO\0SUCH", b"line\r\nend", b"a\0b", TOKENS[6], TOKENS[6], b"never shown"]),
        _ => arguments(&[b"GETTER", key(random), token(random)]),
    }
}
