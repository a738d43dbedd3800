//! Tests of the model alone. Other tests compare its answers with those of real servers.

use proptest::{collection::vec, prelude::*};

use quorlock_core::internals::{EXTEND, RELEASE, UNDO};

use super::*;

const KEY: &str = "invoice:42";

/// A master with one connection and a clock.
struct Desk {
    master: Master,
    session: Session,
    now: Duration,
}

impl Desk {
    fn new() -> Self {
        Self { master: Master::new(1), session: Session::new(), now: Duration::from_millis(1_000_000) }
    }

    fn ask(&mut self, arguments: &[&str]) -> String {
        let mut replies = Vec::new();
        let command = Command::new(arguments.iter().copied());
        let _ = self.master.execute(&mut self.session, &command, self.now, &mut replies);
        String::from_utf8(replies).unwrap()
    }

    fn pass(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    /// Whether a lock command with this token is refused, by each script.
    fn scripts(&mut self, token: &str) -> [String; 3] {
        [&EXTEND, &UNDO, &RELEASE].map(|script| self.ask(&["EVAL", script.text, "1", KEY, token, "500"]))
    }
}

#[test]
fn a_lock_is_taken_extended_and_released() {
    let mut desk = Desk::new();
    assert_eq!(desk.ask(&["SET", KEY, "token", "NX", "PX", "100"]), "+OK\r\n");
    assert_eq!(desk.ask(&["SET", KEY, "other", "NX", "PX", "100"]), "$-1\r\n");
    assert_eq!(desk.ask(&["EVALSHA", EXTEND.sha1_hex, "1", KEY, "token", "300"]), NOSCRIPT);
    assert_eq!(desk.ask(&["SCRIPT", "LOAD", EXTEND.text]), format!("$40\r\n{}\r\n", EXTEND.sha1_hex));
    assert_eq!(desk.ask(&["EVALSHA", EXTEND.sha1_hex, "1", KEY, "token", "300"]), ":1\r\n");
    assert_eq!(desk.ask(&["EVALSHA", EXTEND.sha1_hex, "1", KEY, "token", "200"]), ":1\r\n");
    assert_eq!(desk.ask(&["PTTL", KEY]), ":300\r\n", "an extension never shortens");
    let digest = sha1_smol::Sha1::from("token").digest();
    let held = format!("*2\r\n$40\r\n{digest}\r\n:300\r\n");
    assert_eq!(desk.scripts("other"), [":0\r\n".to_owned(), held, ":0\r\n".to_owned()]);
    assert_eq!(desk.scripts("token").join(""), ":1\r\n:1\r\n:0\r\n");
    assert_eq!(desk.master.keys(desk.now).count(), 0);
}

#[test]
fn a_scan_names_the_keys_that_match_at_once() {
    let mut desk = Desk::new();
    for key in ["quorlock:job", "quorlock:fence/{job}", "other", "a:quorlock:b"] {
        desk.ask(&["SET", key, "token", "PX", "100"]);
    }
    let mut scan = |words: &[&str]| {
        let answer = desk.ask(&[&["SCAN", "0"], words].concat());
        let keys = answer.strip_prefix("*2\r\n$1\r\n0\r\n*").unwrap_or_else(|| panic!("{answer}"));
        keys.lines().skip(1).filter(|line| !line.starts_with('$')).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(scan(&[]), "a:quorlock:b other quorlock:fence/{job} quorlock:job");
    for (pattern, found) in [
        ("quorlock:*", "quorlock:fence/{job} quorlock:job"),
        ("*quorlock:*", "a:quorlock:b quorlock:fence/{job} quorlock:job"),
        ("*o*b", "a:quorlock:b quorlock:job"),
        ("quorlock:job", "quorlock:job"),
        ("quorlock:job*", "quorlock:job"),
        ("quorlock:jo", ""),
        ("*job*job*", ""),
        ("", ""),
    ] {
        assert_eq!(scan(&["MATCH", pattern, "COUNT", "2"]), found, "{pattern}");
    }
    desk.pass(101);
    assert_eq!(desk.ask(&["SCAN", "0"]), "*2\r\n$1\r\n0\r\n*0\r\n");
    for (words, error) in [
        (&["SCAN", "x"][..], "-ERR invalid cursor\r\n"),
        (&["SCAN", "0", "COUNT", "0"], "-ERR syntax error\r\n"),
        (&["SCAN", "0", "MATCH"], "-ERR syntax error\r\n"),
        (&["SCAN", "0", "COUNT", "x"], "-ERR value is not an integer or out of range\r\n"),
        (
            &["SCAN", "0", "MATCH", "a?"],
            "-ERR of the special characters in a pattern this server knows only *\r\n",
        ),
    ] {
        assert_eq!(desk.ask(words), error, "{words:?}");
    }
}

#[test]
fn a_key_exists_in_its_last_millisecond_and_not_in_the_next() {
    let mut desk = Desk::new();
    desk.ask(&["SET", KEY, "token", "PX", "100"]);
    desk.pass(100);
    assert_eq!(desk.ask(&["PTTL", KEY]), ":0\r\n");
    assert_eq!(desk.master.value(0, KEY.as_bytes(), desk.now), Some(&b"token"[..]));
    desk.pass(1);
    assert_eq!(desk.ask(&["PTTL", KEY]), ":-2\r\n");
    assert_eq!(desk.master.value(0, KEY.as_bytes(), desk.now), None);
}

#[test]
fn a_restart_forgets_scripts_and_keys_that_are_not_kept() {
    let mut desk = Desk::new();
    desk.ask(&["SET", "kept", "a"]);
    desk.ask(&["SET", "lost", "b"]);
    desk.ask(&["SCRIPT", "LOAD", UNDO.text]);
    let before = desk.ask(&["INFO", "replication"]);
    desk.master.restart(2, |key| key == b"kept");
    assert_eq!(desk.ask(&["EXISTS", "kept", "lost"]), ":1\r\n");
    assert_eq!(desk.ask(&["SCRIPT", "EXISTS", UNDO.sha1_hex]), "*1\r\n:0\r\n");
    assert_ne!(desk.ask(&["INFO", "replication"]), before);
    assert_eq!(desk.master.run_id(), Master::new(2).run_id());
    assert_ne!(desk.master.run_id(), Master::new(1).run_id());
}

#[test]
fn replicas_are_reported_and_the_first_one_changes_the_replication_id() {
    let mut desk = Desk::new();
    let alone = desk.master.replication_id().to_owned();
    assert!(desk.ask(&["INFO", "replication"]).contains("\r\nconnected_slaves:0\r\n"));
    desk.master.set_replicas(1);
    assert!(desk.ask(&["INFO", "replication"]).contains("\r\nconnected_slaves:1\r\n"));
    let with_one = desk.master.replication_id().to_owned();
    assert_ne!(alone, with_one);
    desk.master.set_replicas(2);
    assert!(desk.ask(&["INFO", "replication"]).contains("\r\nconnected_slaves:2\r\n"));
    assert_eq!(desk.master.replication_id(), with_one);
}

#[test]
fn a_replica_counts_once_it_has_reported_its_offset() {
    let mut desk = Desk::new();
    let mut replica = Master::new(2);
    desk.master.attach(7000);
    let id = desk.master.replication_id().to_owned();
    replica.resync_from(&desk.master);
    desk.ask(&["SET", KEY, "token", "PX", "60000"]);
    let changes = desk.master.take_changes().unwrap();
    assert_eq!((changes.offset(), desk.master.take_changes()), (1, None));
    assert!(desk.ask(&["INFO", "replication"]).contains("port=7000,state=wait_bgsave,offset=0,lag=9"));
    assert_eq!(desk.ask(&["WAIT", "1", "1"]), ":0\r\n");
    desk.master.hear_replica(7000, 0, desk.now);
    assert!(desk.ask(&["INFO", "replication"]).contains("port=7000,state=online,offset=0,lag=0"));
    assert_eq!(desk.ask(&["WAIT", "1", "1"]), ":0\r\n");
    replica.apply(&changes);
    assert_eq!(replica.value(0, KEY.as_bytes(), desk.now), Some(&b"token"[..]));
    // A delayed acknowledgement counts from when it is read.
    desk.now += Duration::from_secs(5);
    assert!(desk.ask(&["INFO", "replication"]).contains("lag=5"));
    desk.master.hear_replica(7000, changes.offset(), desk.now);
    assert!(desk.ask(&["INFO", "replication"]).contains("state=online,offset=1,lag=0"));
    assert_eq!(desk.ask(&["WAIT", "1", "1"]), ":1\r\n");
    // A WAIT without new writes is confirmed; an earlier acknowledgement does not confirm a later
    // write.
    assert_eq!(desk.ask(&["WAIT", "1", "1"]), ":1\r\n");
    desk.ask(&["DEL", KEY]);
    assert_eq!(desk.ask(&["WAIT", "1", "1"]), ":0\r\n");

    // Its id changes at its promotion, but not when a replica follows it then.
    replica.promote();
    let promoted = replica.replication_id().to_owned();
    replica.attach(7001);
    assert!(promoted != id && replica.replication_id() == promoted);
    desk.master.detach(7000);
    assert!(desk.ask(&["INFO", "replication"]).contains("connected_slaves:0"));
}

#[test]
fn each_server_condition_is_reported_as_its_own_error() {
    let mut desk = Desk::new();
    let set = ["SET", KEY, "token"];
    desk.master.set_replica(true);
    assert!(desk.ask(&set).starts_with("-READONLY "));
    assert!(desk.ask(&["INFO", "replication"]).contains("\r\nrole:slave\r\n"));
    assert!(desk.ask(&["HELLO", "3"]).contains("$4\r\nrole\r\n$7\r\nreplica\r\n"));
    desk.master.set_replica(false);
    desk.master.set_out_of_memory(true);
    assert!(desk.ask(&set).starts_with("-OOM "));
    assert_eq!(desk.ask(&["DEL", KEY]), ":0\r\n");
    desk.master.set_out_of_memory(false);
    desk.master.set_loading(true);
    assert!(desk.ask(&set).starts_with("-LOADING ") && desk.ask(&["PING"]).starts_with("-LOADING "));
    assert!(desk.ask(&["HELLO"]).starts_with('%'));
    desk.master.set_loading(false);
    desk.master.fail("set", Some("MISCONF no disk"));
    assert_eq!(desk.ask(&set), "-MISCONF no disk\r\n");
    desk.master.fail("SET", None);
    assert_eq!(desk.ask(&set), "+OK\r\n");
    desk.master.set_knows_hello(false);
    let unknown = "-ERR unknown command 'HELLO', with args beginning with: '3' \r\n";
    assert_eq!(desk.ask(&["HELLO", "3"]), unknown);
    desk.master.fail("UNDO", Some("BUSY"));
    assert_eq!(desk.ask(&["EVALSHA", UNDO.sha1_hex, "1", KEY, "token"]), NOSCRIPT);
    desk.ask(&["SCRIPT", "LOAD", UNDO.text]);
    assert_eq!(desk.ask(&["EVALSHA", UNDO.sha1_hex, "1", KEY, "token"]), "-BUSY\r\n");
}

#[test]
fn scripts_that_write_are_refused_on_a_replica() {
    let mut desk = Desk::new();
    desk.ask(&["SET", KEY, "token", "PX", "100"]);
    desk.master.set_replica(true);
    for reply in desk.scripts("token") {
        assert!(reply.starts_with("-READONLY ") && reply.contains(" script: "), "{reply}");
    }
    assert_eq!(desk.scripts("other")[0], ":0\r\n");
}

#[test]
fn a_password_is_required_from_later_connections() {
    let mut desk = Desk::new();
    desk.ask(&["PING"]);
    desk.master.set_password(Some("secret"));
    assert_eq!(desk.ask(&["PING"]), "+PONG\r\n");
    desk.session = Session::new();
    assert_eq!(desk.ask(&["PING"]), "-NOAUTH Authentication required.\r\n");
    assert!(desk.ask(&["AUTH", "wrong"]).starts_with("-WRONGPASS "));
    assert!(desk.ask(&["HELLO", "3", "AUTH", "default", "secret"]).starts_with('%'));
    assert!(!format!("{:?} {:?}", desk.master, desk.session).contains("secret"));
}

#[test]
fn a_key_of_another_type_is_not_a_lock() {
    let mut desk = Desk::new();
    desk.master.hold_list(0, KEY.as_bytes(), None);
    let [extended, undone, released] = desk.scripts("token");
    assert_eq!((extended.as_str(), released.as_str()), (":0\r\n", ":0\r\n"));
    assert!(undone.starts_with("-WRONGTYPE "));
    assert_eq!(desk.ask(&["TYPE", KEY]), "+list\r\n");
}

#[test]
fn commands_that_are_too_large_end_the_connection() {
    let too_much = Session::MAX_COMMAND_BYTES;
    for (bytes, error) in [
        (format!("*1\r\n${}\r\n", too_much + 1), ProtocolError::Length),
        (
            format!("*2\r\n${0}\r\n{1}\r\n${0}\r\n", too_much / 2, "x".repeat(too_much / 2)),
            ProtocolError::Length,
        ),
        (format!("*{too_much}\r\n"), ProtocolError::Count),
        (format!("*{}", "1".repeat(70_000)), ProtocolError::LongCount),
        ("x".repeat(70_000), ProtocolError::LongInline),
        // The connection has already ended.
        (format!("*{}\r\n", "1".repeat(70_000)), ProtocolError::LongCount),
        (format!("{}\r\n", "x".repeat(70_000)), ProtocolError::LongInline),
    ] {
        let (mut session, mut replies) = (Session::new(), Vec::new());
        let flow = Master::new(1).serve(&mut session, bytes.as_bytes(), Duration::ZERO, &mut replies);
        assert_eq!(flow, Flow::Close);
        assert_eq!(String::from_utf8(replies).unwrap(), format!("-ERR Protocol error: {error}\r\n"));
    }
}

#[test]
fn expired_keys_do_not_accumulate() {
    let mut desk = Desk::new();
    for number in 0..10_000 {
        desk.ask(&["SET", &number.to_string(), "token", "PX", "10"]);
        desk.pass(5);
    }
    assert!(desk.master.keyspace.bytes() < 200 * 100, "{}", desk.master.keyspace.bytes());
    desk.ask(&["FLUSHALL"]);
    assert_eq!(desk.master.keyspace.bytes(), 0);
}

/// Pieces that form something similar to commands.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just(&b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n"[..]),
        Just(&b"*2\r\n$3\r\nGET\r\n"[..]),
        Just(&b"$1\r\n"[..]),
        Just(&b"*-1\r\n"[..]),
        Just(&b"*1\r\n"[..]),
        Just(&b"a"[..]),
        Just(&b"\"\\x0\r\n"[..]),
        Just(&b"HELLO 3 AUTH\n"[..]),
        Just(&b"EVAL x 9 9\n"[..]),
        Just(&b"\r\n"[..]),
        Just(&b"\0\xff"[..]),
    ];
    vec(word, 0..24).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_input_panics_and_its_split_does_not_change_the_replies(
        bytes in noise(),
        cuts in vec(0usize..64, 0..6),
    ) {
        let now = Duration::from_secs(1);
        let (mut master, mut session, mut whole) = (Master::new(1), Session::new(), Vec::new());
        let flow = master.serve(&mut session, &bytes, now, &mut whole);
        let (mut split_master, mut split_session, mut split) = (Master::new(1), Session::new(), Vec::new());
        let (mut rest, mut last) = (&bytes[..], Flow::Open);
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let (piece, others) = rest.split_at(cut.min(rest.len()));
            if last == Flow::Open {
                last = split_master.serve(&mut split_session, piece, now, &mut split);
            }
            rest = others;
        }
        prop_assert_eq!(flow, last);
        prop_assert_eq!(whole, split);
        prop_assert_eq!(master, split_master);
    }
}

const NOSCRIPT: &str = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
