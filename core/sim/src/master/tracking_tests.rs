//! Which clients are notified of which change, and when. Other tests compare this with real
//! servers.

use quorlock_core::internals::{ACQUIRE_ALL, ACQUIRE_FENCED, EXTEND, RELEASE, RELEASE_ALL, Sentinel, UNDO};

use super::*;

const KEY: &str = "invoice:42";

/// A master with connections that speak RESP 3, each of which reads its own replies and pushes.
struct Desk {
    master: Master,
    sessions: Vec<Session>,
    heard: Vec<String>,
    now: Duration,
}

impl Desk {
    /// A desk whose connections all track keys, each with its options.
    fn new<const N: usize>(options: [&[&str]; N]) -> Self {
        let mut desk = Self {
            master: Master::new(1),
            sessions: vec![Session::new(); N],
            heard: vec![String::new(); N],
            now: Duration::from_millis(1_000_000),
        };
        for (number, options) in options.iter().enumerate() {
            desk.ask(number, &["HELLO", "3"]);
            let command = [&["CLIENT", "TRACKING", "ON"], *options].concat();
            assert_eq!(desk.ask(number, &command), "+OK\r\n");
        }
        desk
    }

    /// What this connection reads next: the reply, and pushes before and after it.
    fn ask(&mut self, number: usize, arguments: &[&str]) -> String {
        let mut reply = Vec::new();
        let command = Command::new(arguments.iter().copied());
        let _ = self.master.execute(&mut self.sessions[number], &command, self.now, &mut reply);
        self.heard[number] += std::str::from_utf8(&reply).unwrap();
        self.hear(number)
    }

    fn hear(&mut self, number: usize) -> String {
        for push in self.master.take_pushes() {
            let place = self.sessions.iter().position(|session| session.id() == push.session).unwrap();
            self.heard[place] += std::str::from_utf8(&push.bytes).unwrap();
        }
        std::mem::take(&mut self.heard[number])
    }

    fn pass(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }
}

fn told(key: &str) -> String {
    format!(">2\r\n$10\r\ninvalidate\r\n*1\r\n${}\r\n{key}\r\n", key.len())
}

const ALL_GONE: &str = ">2\r\n$10\r\ninvalidate\r\n_\r\n";
const OK: &str = "+OK\r\n";
const NO_LOOP: &[&str] = &["NOLOOP"];

#[test]
fn a_reader_of_a_key_is_notified_once_of_its_next_change() {
    let mut desk = Desk::new([NO_LOOP, NO_LOOP, &[]]);
    for reader in 0..3 {
        assert_eq!(desk.ask(reader, &["GET", KEY]), "_\r\n");
    }
    assert_eq!(desk.ask(0, &["SET", KEY, "a"]), OK, "NOLOOP");
    assert_eq!(desk.hear(1), told(KEY));
    assert_eq!(desk.hear(2), told(KEY));
    desk.ask(0, &["SET", KEY, "b"]);
    assert_eq!([desk.hear(1), desk.hear(2)].concat(), "", "it was not read since");
    desk.ask(2, &["GET", KEY]);
    assert_eq!(desk.ask(2, &["DEL", KEY]), format!(":1\r\n{}", told(KEY)), "behind the reply");
}

#[test]
fn every_change_is_notified_and_nothing_else() {
    let mut desk = Desk::new([NO_LOOP, NO_LOOP]);
    for (command, is_change) in [
        (&["SET", KEY, "1"][..], true),
        (&["SET", KEY, "2", "NX"], false),
        (&["INCR", KEY], true),
        (&["GET", KEY], false),
        (&["RPUSH", KEY, "x"], false),
        (&["PERSIST", KEY], false),
        (&["PEXPIRE", KEY, "1000", "GT"], false),
        (&["PEXPIRE", KEY, "1000"], true),
        (&["PERSIST", KEY], true),
        (&["PEXPIRE", KEY, "-1"], true),
        (&["PEXPIRE", KEY, "-1"], false),
        (&["DEL", KEY], false),
        (&["RPUSH", KEY, "x"], true),
        (&["UNLINK", "other", KEY], true),
    ] {
        for reads in [["GET", KEY], ["PTTL", KEY], ["EXISTS", KEY]] {
            desk.ask(0, &reads);
        }
        desk.ask(1, command);
        assert_eq!(desk.hear(0), if is_change { told(KEY) } else { String::new() }, "{command:?}");
    }
}

#[test]
fn keys_are_tracked_by_name_across_databases() {
    let mut desk = Desk::new([NO_LOOP, NO_LOOP]);
    desk.ask(1, &["SELECT", "5"]);
    desk.ask(0, &["GET", KEY]);
    desk.ask(1, &["SET", KEY, "a"]);
    assert_eq!(desk.hear(0), told(KEY));
    desk.ask(0, &["GET", KEY]);
    for command in ["FLUSHDB", "FLUSHALL"] {
        assert_eq!(desk.ask(1, &[command]), format!("+OK\r\n{ALL_GONE}"), "in spite of NOLOOP");
        assert_eq!(desk.hear(0), ALL_GONE);
    }
    desk.ask(1, &["SET", KEY, "a"]);
    assert_eq!(desk.hear(0), "", "the flush was told");
}

#[test]
fn a_script_counts_as_a_read_of_all_its_keys_by_its_caller() {
    let mut desk = Desk::new([NO_LOOP, NO_LOOP]);
    desk.ask(1, &["SET", KEY, "token", "PX", "1000"]);
    assert!(desk.ask(0, &["EVAL", UNDO.text, "1", KEY, "other"]).starts_with("*2\r\n"));
    assert_eq!(desk.ask(1, &["EVAL", EXTEND.text, "1", KEY, "token", "2000"]), ":1\r\n");
    assert_eq!(desk.hear(0), told(KEY));
    assert_eq!(desk.ask(0, &["EVALSHA", UNDO.sha1_hex, "1", KEY, "token"]), ":1\r\n");
    desk.ask(1, &["SET", KEY, "token"]);
    assert_eq!(desk.hear(0), "", "what the script reads and then deletes is read no more");

    assert!(
        desk.ask(0, &["EVAL", ACQUIRE_FENCED.text, "2", KEY, "counter", "mine", "100"]).starts_with("*2\r\n")
    );
    desk.ask(1, &["SET", "counter", "7"]);
    assert_eq!(desk.hear(0), told("counter"), "the script had no look at it");
    assert_eq!(desk.ask(1, &["EVAL", RELEASE.text, "1", KEY, "token"]), ":1\r\n");
    assert_eq!(desk.hear(0), told(KEY));

    desk.master.set_tracks_scripts(true);
    desk.ask(1, &["SET", KEY, "token"]);
    assert!(
        desk.ask(0, &["EVAL", ACQUIRE_FENCED.text, "2", KEY, "counter", "mine", "100"]).starts_with("*2\r\n")
    );
    desk.ask(1, &["SET", "counter", "8"]);
    desk.ask(1, &["DEL", KEY]);
    assert_eq!(desk.hear(0), told(KEY), "as on later servers");
}

#[test]
fn the_expiry_of_a_key_is_notified_when_it_is_next_accessed() {
    let mut desk = Desk::new([NO_LOOP, NO_LOOP]);
    let end = desk.now + Duration::from_millis(100);
    for deleted_by in [None, Some(&["GET", KEY][..]), Some(&["SET", KEY, "b", "NX"]), Some(&["DEL", KEY])] {
        desk.now = end - Duration::from_millis(100);
        desk.ask(1, &["SET", KEY, "a", "PX", "100"]);
        assert_eq!(desk.master.next_end(), None, "no client has read it");
        desk.ask(0, &["GET", KEY]);
        assert_eq!(desk.master.next_end(), Some(end + Duration::from_millis(1)));
        desk.pass(100);
        desk.master.remove_ended(desk.now);
        desk.ask(1, &["GET", KEY]);
        assert_eq!(desk.hear(0), "", "it is still there");
        desk.pass(1);
        assert_eq!(desk.hear(0), "");
        match deleted_by {
            Some(command) => drop(desk.ask(1, command)),
            None => desk.master.remove_ended(desk.now),
        }
        assert_eq!(desk.hear(0), told(KEY), "{deleted_by:?}");
        assert_eq!(desk.master.next_end(), None);
        desk.ask(1, &["DEL", KEY]);
    }
    // With NOLOOP a client is not notified of its own change, and has read the key again.
    desk.ask(1, &["SET", KEY, "a", "PX", "1"]);
    desk.ask(0, &["GET", KEY]);
    desk.pass(2);
    assert_eq!(desk.ask(0, &["GET", KEY]), "_\r\n");
    desk.ask(1, &["SET", KEY, "a"]);
    assert_eq!(desk.hear(0), told(KEY));
}

#[test]
fn a_replica_does_not_remove_expired_keys_until_it_is_promoted() {
    let mut desk = Desk::new([NO_LOOP]);
    desk.ask(0, &["SET", KEY, "a", "PX", "1"]);
    desk.ask(0, &["GET", KEY]);
    desk.pass(2);
    desk.master.set_replica(true);
    desk.master.remove_ended(desk.now);
    assert_eq!((desk.ask(0, &["GET", KEY]).as_str(), desk.master.next_end()), ("_\r\n", None));
    desk.master.promote();
    desk.master.remove_ended(desk.now);
    assert_eq!(desk.hear(0), told(KEY));
    desk.master.resync_from(&Master::new(2));
    assert_eq!(desk.hear(0), ALL_GONE);
}

#[test]
fn tracking_is_turned_on_and_off_as_in_redis() {
    let mut desk = Desk::new([&[], NO_LOOP]);
    for (command, reply) in [
        (&["CLIENT", "TRACKING"][..], "-ERR wrong number of arguments for 'client|tracking' command\r\n"),
        (&["CLIENT", "TRACKING", "x"], "-ERR syntax error\r\n"),
        (&["CLIENT", "TRACKING", "ON", "NOLOOP", "x"], "-ERR syntax error\r\n"),
        (&["CLIENT", "TRACKING", "off", "noloop"], OK),
    ] {
        assert_eq!(desk.ask(0, command), reply);
    }
    desk.ask(0, &["GET", KEY]);
    assert_eq!(desk.ask(0, &["SET", KEY, "a"]), OK, "it is off");
    desk.ask(0, &["CLIENT", "TRACKING", "ON"]);
    desk.ask(0, &["GET", KEY]);
    desk.ask(0, &["CLIENT", "TRACKING", "OFF"]);
    desk.ask(0, &["CLIENT", "TRACKING", "ON"]);
    assert_eq!(desk.ask(0, &["SET", KEY, "a"]), format!("+OK\r\n{}", told(KEY)), "what was read stays read");
    // RESP 2 has no pushes; what is read in it is remembered.
    desk.ask(0, &["HELLO", "2"]);
    for (version, heard) in [("2", String::new()), ("3", told(KEY))] {
        desk.ask(0, &["GET", KEY]);
        desk.ask(0, &["HELLO", version]);
        desk.ask(1, &["SET", KEY, "a"]);
        assert_eq!(desk.hear(0), heard, "{version}");
    }
}

#[test]
fn a_closed_connection_is_forgotten() {
    let mut desk = Desk::new([NO_LOOP, NO_LOOP]);
    let before = desk.master.clone();
    desk.ask(1, &["SET", KEY, "a", "PX", "100"]);
    for key in [KEY, "other"] {
        desk.ask(0, &["GET", key]);
    }
    let session = std::mem::take(&mut desk.sessions[0]);
    let waiting = desk.master.execute(
        &mut desk.sessions[1],
        &Command::new(["SET", "other", "a"]),
        desk.now,
        &mut Vec::new(),
    );
    assert_eq!(waiting, Flow::Open);
    desk.master.leave(&session);
    assert_eq!(desk.master.take_pushes().count(), 0);
    assert_eq!(desk.master.next_end(), None);
    desk.master.remove_all();
    assert_eq!(desk.hear(1), ALL_GONE);
    let quits =
        desk.master.execute(&mut desk.sessions[1], &Command::new(["QUIT"]), desk.now, &mut Vec::new());
    assert_eq!(quits, Flow::Close);
    let mut none = Master { executed: desk.master.executed, ..before };
    for id in 1..=2 {
        none.keyspace.tracking.leave(id);
    }
    assert!(none == desk.master, "nothing is left of any client");
}

#[test]
fn a_restart_forgets_all_readers() {
    let mut desk = Desk::new([NO_LOOP]);
    desk.ask(0, &["GET", KEY]);
    desk.master.restart(2, |_| true);
    desk.master.hold(0, KEY.as_bytes(), b"a", None);
    assert_eq!(desk.master.take_pushes().count(), 0);
}

#[test]
fn tracked_keys_and_pending_pushes_are_bounded() {
    let mut desk = Desk::new([NO_LOOP]);
    let name = "x".repeat(10_000);
    let keys = |numbers: std::ops::Range<usize>| numbers.map(|number| format!("{number:04} {name}"));
    let heard: String = keys(0..2_000).map(|key| desk.ask(0, &["GET", &key])).collect();
    let forgotten = heard.matches("invalidate").count();
    assert!((500..1_500).contains(&forgotten), "{forgotten}");
    for key in keys(1_500..2_000) {
        desk.master.hold(0, key.as_bytes(), b"a", None);
    }
    assert_eq!(desk.master.take_pushes().count(), MAX_PUSHES, "each of them of 10 kB");
}

/// The most pushes of 10 kB that wait.
const MAX_PUSHES: usize = 417;

/// The sentinel of readers.
const READERS: &str = "quorlock:shared:................................................0:";
const ONE: &str = "1111111111111111111111111111111111111111";
const ANOTHER: &str = "2222222222222222222222222222222222222222";

#[test]
fn a_waiter_behind_readers_is_notified_when_the_last_one_has_gone() {
    let mut desk = Desk::new([NO_LOOP, NO_LOOP, NO_LOOP]);
    desk.master.set_tracks_scripts(true);
    let script = |text: &'static str, token: &'static str| {
        ["EVAL", text, "2", KEY, "want", token, "5000", "0", "-", "0", "1", READERS]
    };
    for (reader, token) in [(0, ONE), (1, ANOTHER)] {
        assert_eq!(desk.ask(reader, &script(ACQUIRE_ALL.text, token)), ":1\r\n");
    }
    let write = ["EVAL", ACQUIRE_ALL.text, "1", KEY, "writer", "5000", "0", "-", "1", "0"];
    assert!(desk.ask(2, &write).contains(Sentinel::SHA1_HEX));
    desk.hear(0);
    assert_eq!(desk.ask(1, &script(RELEASE_ALL.text, ANOTHER)), ":1\r\n");
    assert_eq!(desk.hear(2), told(KEY), "its expiry was set again");
    assert!(desk.ask(2, &write).contains(Sentinel::SHA1_HEX));
    assert_eq!(desk.ask(0, &script(RELEASE_ALL.text, ONE)), ":1\r\n");
    assert_eq!(desk.hear(2), told(KEY));
    assert_eq!(desk.ask(2, &write), ":1\r\n");
}
