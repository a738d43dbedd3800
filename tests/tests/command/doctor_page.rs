//! The page about the doctor shows its output for five servers. `tests/servers doctor` fetches
//! them and writes the page.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use quorlock_tests::{Certificates, NAMES, RedisServer, ServerOptions, eventually};

use crate::running::{Running, SOON, quorlock};

/// The folder of `tests/servers`.
const SERVERS_VARIABLE: &str = "QUORLOCK_SERVERS";
/// If this variable is set, the page is written.
const WRITE_VARIABLE: &str = "QUORLOCK_WRITE_PAGES";

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/docs/doctor.md")
}

fn options(server: &str) -> ServerOptions {
    let cache = std::env::var_os(SERVERS_VARIABLE).expect("tests/servers says where it keeps servers");
    ServerOptions::new().program(Path::new(&cache).join(server).join("server"))
}

/// The text without values that differ from run to run: replication ids, dates, numbers of clocks
/// and round trips, and which clock is faster.
fn masked(text: &str) -> String {
    let is_id = |word: &&str| word.len() == 40 && word.chars().all(|it| it.is_ascii_hexdigit());
    let varies =
        |line: &str| ["round trip ", "TLS "].iter().any(|start| line.trim_start().starts_with(start));
    let mask = |line: &str| match varies(line) {
        true => {
            let alike = line.replace("faster", "slower").replace("ahead of", "behind");
            alike.replace(|it: char| it.is_ascii_digit() || "+-".contains(it), "")
        }
        false => line.split([' ', ';']).filter(|word| !is_id(word)).collect::<Vec<_>>().join(" "),
    };
    text.lines().map(|line| mask(line) + "\n").collect()
}

/// The page with this output below its command.
fn with_output(page: &str, output: &str) -> String {
    let (before, rest) = page.split_once("\n$ quorlock doctor ").expect("the page has the command");
    let (command, rest) = rest.split_once('\n').expect("a line ends");
    let (_, after) = rest.split_once("```\n").expect("a block ends");
    format!("{before}\n$ quorlock doctor {command}\n{output}```\n{after}")
}

#[test]
#[ignore = "needs servers of five versions: tests/servers doctor"]
fn the_page_shows_what_the_doctor_says_of_five_servers() {
    let rights = "~app:* +set +get +del +pttl +pexpire +evalsha +eval +script|load +info +select";
    let old = options("redis-6.2").config("save 900 1").start();
    let full =
        options("valkey-8.1").append_only().max_memory("64mb").config("maxmemory-policy allkeys-lru").start();
    let end = SystemTime::now() + Duration::from_secs(9 * 24 * 60 * 60 + 60);
    let certificates = Certificates::own(NAMES, |params| params.not_after = end.into());
    let secured = || options("redis-7.4").tls(&certificates, "no");
    let followed = secured().append_only().start();
    let replica = secured().replica_of(&followed).start();
    let strict = options("redis-8.2").append_only().acl_user(&format!("worker on >secret {rights}")).start();
    let healthy = options("valkey-9.1").append_only().start();
    eventually(SOON, "the replica is attached", || followed.replicas() == 1);

    let masters = [&old, &full, &followed, &strict, &healthy];
    let url = |server: &RedisServer| match server.port() {
        port if port == strict.port() => format!("redis://worker:secret@{}", server.address()),
        port if port == followed.port() => format!("rediss://{}", server.address()),
        _ => format!("redis://{}", server.address()),
    };
    let urls = masters.map(url);
    let root = certificates.root();
    let options = ["doctor", "--prefix", "app:", "--cacert", root.to_str().expect("a path of text")];
    let words = [&options[..], &urls.each_ref().map(String::as_str)].concat();
    let told = Running::of(&mut quorlock(&words)).end();
    assert_eq!((told.code, told.err.as_str()), (Some(1), ""), "{}", told.out);
    assert!(!told.out.contains("secret"), "{}", told.out);
    let mut output = told.out;
    for (name, master) in ["a", "b", "c", "d", "e"].iter().zip(masters) {
        output = output.replace(&master.address().to_string(), &format!("{name}:6379"));
    }
    let kept = fs::read_to_string(page()).expect("the page");
    let made = with_output(&kept, &output);
    if std::env::var_os(WRITE_VARIABLE).is_some() {
        fs::write(page(), made).expect("the page is written");
    } else {
        assert!(masked(&kept) == masked(&made), "the page is not what the doctor says now:\n{output}");
    }
    drop(replica);
}
