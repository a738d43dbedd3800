//! What the scripts of several targets, of shared ones and of seats promise: one source of tests
//! for the model of a master and for real servers. Many are ways in which such locks go wrong.

use std::fmt::Write;

use quorlock_sim::CommandKind;

#[path = "claims_let_go.rs"]
mod let_go;
pub(crate) use let_go::*;
#[path = "queues.rs"]
mod queues;
pub(crate) use queues::*;
#[path = "claims_sharing.rs"]
mod sharing;
pub(crate) use sharing::*;
#[path = "claims_told.rs"]
mod told;
pub(crate) use told::*;

/// A server, and a clock.
pub(crate) trait Desk {
    /// The reply: numbers and texts unchanged, arrays in brackets, errors with a leading `-`.
    fn ask(&mut self, arguments: &[&str]) -> String;
    fn pass(&mut self, millis: u64);
}

/// A claim as a client makes it: its targets, and the token under which it requests them.
#[derive(Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub(crate) token: &'a str,
    pub(crate) written: &'a [&'a str],
    pub(crate) read: &'a [&'a str],
    pub(crate) group: &'a str,
    pub(crate) life: u64,
    pub(crate) number: u64,
    pub(crate) flags: &'a str,
}

const WAIT: &str = "0123456789abcdef0123456789abcdef";
/// The longest TTL of the fleet, and how many masters it has.
const FLEET: [&str; 2] = ["500", "3"];
/// The SHA-1 of the text with which every sentinel begins.
const SHARED: &str = "0ee54c81939df725e5bdbc0135f8bdddad754920";

pub(crate) fn sentinel(group: &str) -> String {
    format!("quorlock:shared:{}{}:{group}", ".".repeat(48), group.len())
}

/// A client's token, which has 40 characters.
pub(crate) fn full(token: &str) -> String {
    format!("{token:-<40}")
}

pub(crate) fn key(kind: &str, name: &str) -> String {
    format!("quorlock:{kind}/{{{name}}}")
}

impl<'a> Claim<'a> {
    pub(crate) fn write(token: &'a str, written: &'a [&'a str]) -> Self {
        Self { token, written, read: &[], group: "", life: 10_000, number: 0, flags: "-" }
    }

    pub(crate) fn read(token: &'a str, read: &'a [&'a str]) -> Self {
        Self { read, ..Self::write(token, &[]) }
    }

    pub(crate) fn of(self, group: &'a str) -> Self {
        Self { group, ..self }
    }

    pub(crate) fn with(self, flags: &'a str) -> Self {
        Self { flags, ..self }
    }

    pub(crate) fn living(self, life: u64) -> Self {
        Self { life, ..self }
    }

    pub(crate) fn raised_to(self, number: u64) -> Self {
        Self { number, ..self }
    }

    /// The command of this kind for the claim.
    pub(crate) fn words(&self, kind: CommandKind) -> Vec<String> {
        let all = || self.written.iter().chain(self.read);
        let has = |flag| self.flags.contains(flag);
        let mut keys: Vec<String> = self.written.iter().map(ToString::to_string).collect();
        for name in self.read {
            keys.extend([name.to_string(), key("want", name)]);
        }
        if has('m') {
            keys.extend(self.written.iter().map(|name| key("want", name)));
        }
        if has('f') {
            keys.extend(all().map(|name| key("fence", name)));
        }
        let mut values = vec![full(self.token), self.life.to_string(), self.number.to_string()];
        values.extend([self.flags.to_owned(), self.written.len().to_string(), self.read.len().to_string()]);
        values.extend(self.read.iter().map(|_| sentinel(self.group)));
        if has('m') {
            values.push(WAIT.to_owned());
        }
        if has('g') {
            keys.push("quorlock:restart-guard".to_owned());
            values.extend(FLEET.map(str::to_owned));
        }
        called(kind, keys, values)
    }

    fn ask(&self, desk: &mut impl Desk, kind: CommandKind) -> String {
        let words = self.words(kind);
        desk.ask(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn acquire(&self, desk: &mut impl Desk) -> String {
        self.ask(desk, CommandKind::AcquireAll)
    }

    fn extend(&self, desk: &mut impl Desk) -> String {
        self.ask(desk, CommandKind::ExtendAll)
    }

    fn keep(&self, desk: &mut impl Desk) -> String {
        self.ask(desk, CommandKind::KeepAll)
    }

    fn release(&self, desk: &mut impl Desk) -> String {
        self.ask(desk, CommandKind::ReleaseAll)
    }
}

pub(crate) fn called(kind: CommandKind, keys: Vec<String>, values: Vec<String>) -> Vec<String> {
    called_as(kind.script().unwrap().0, keys, values)
}

pub(crate) fn called_as(text: &str, keys: Vec<String>, values: Vec<String>) -> Vec<String> {
    [vec!["EVAL".to_owned(), text.to_owned(), keys.len().to_string()], keys, values].concat()
}

fn asked(desk: &mut impl Desk, words: &[String]) -> String {
    desk.ask(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn pttl(desk: &mut impl Desk, key: &str) -> i64 {
    desk.ask(&["PTTL", key]).parse().unwrap()
}

fn lives(desk: &mut impl Desk, key: &str, life: i64) {
    let left = pttl(desk, key);
    assert!((life - 3_000..=life + 1).contains(&left), "{key} lives {left} ms, and not about {life}");
}

/// Everything that a claim of `x` and `y` may change, except the expiries.
fn survey(desk: &mut impl Desk) -> String {
    let mut found = String::new();
    for name in ["x", "y"] {
        let [want, fence] = ["want", "fence"].map(|kind| key(kind, name));
        for key in [name, &want, &fence] {
            writeln!(found, "{key}: {}", desk.ask(&["GET", key])).unwrap();
        }
    }
    found
}

/// Requests the lock with a plain `SET`, as any other client does.
fn any_writer(desk: &mut impl Desk, name: &str) -> String {
    desk.ask(&["SET", name, "another", "NX", "PX", "5000"])
}

fn is_told(reply: &str, digest: &str) {
    assert!(reply.starts_with(&format!("[{digest} ")), "{reply}");
}

pub(crate) fn a_batch_is_extended_where_all_of_it_is_ours(desk: &mut impl Desk) {
    let batch = Claim::write("t", &["x", "y"]).with("f");
    assert_eq!(batch.acquire(desk), "1");
    desk.ask(&["DEL", "x"]);
    let before = survey(desk);
    assert_eq!(batch.living(60_000).raised_to(7).extend(desk), "0");
    assert_eq!(batch.raised_to(7).ask(desk, CommandKind::RaiseAll), "0");
    assert_eq!(survey(desk), before);
    lives(desk, "y", 10_000);
    assert_eq!(batch.raised_to(7).ask(desk, CommandKind::HealAll), "1");
    assert_eq!(batch.living(60_000).extend(desk), "1");
    lives(desk, "x", 60_000);
    assert_eq!(batch.living(20_000).extend(desk), "1");
    lives(desk, "y", 60_000);
}

pub(crate) fn no_key_is_put_back_beside_the_key_of_another_client(desk: &mut impl Desk) {
    let batch = Claim { read: &["y"], ..Claim::write("t", &["x"]) }.with("f");
    for foreign in [["SET", "x", "other"], ["RPUSH", "x", "other"], ["SET", "y", "other"]] {
        desk.ask(&["FLUSHALL"]);
        desk.ask(&foreign);
        let before = survey(desk);
        assert_eq!(batch.raised_to(9).ask(desk, CommandKind::HealAll), "0");
        assert_eq!(survey(desk), before);
    }
}

pub(crate) fn a_batch_has_one_number_above_all_counters(desk: &mut impl Desk) {
    desk.ask(&["SET", &key("fence", "x"), "3"]);
    desk.ask(&["SET", &key("fence", "y"), "9"]);
    let batch = Claim::write("t", &["x", "y"]).with("f");
    assert_eq!(batch.acquire(desk), "10");
    assert_eq!(["x", "y"].map(|name| desk.ask(&["GET", &key("fence", name)])), ["10", "10"]);
    assert_eq!(batch.raised_to(12).ask(desk, CommandKind::RaiseAll), "12");
    assert_eq!(batch.release(desk), "1");
    for name in ["x", "y"] {
        assert_eq!(Claim::write("t", &[name]).with("f").acquire(desk), "13");
    }
}

pub(crate) fn the_number_of_a_batch_does_not_depend_on_the_order_of_its_counters(desk: &mut impl Desk) {
    let fences = ["x", "y"].map(|name| key("fence", name));
    let batch = Claim::write("t", &["x", "y"]).with("f");
    let counters = [
        ("9", "3", "10"),
        ("9007199254740990", "1", "9007199254740991"),
        ("9007199254740991", "1", "-ERR the fencing counter is used up"),
        ("many", "1", "-ERR the fencing counter is not a number"),
        ("nan", "1", "-ERR the fencing counter is not a number"),
        ("1.5", "1", "2"),
        ("-7", "-8", "1"),
        ("absent", "5", "6"),
        ("absent", "absent", "1"),
        ("list", "1", "-WRONGTYPE"),
    ];
    for (largest, other, number) in counters {
        for pair in [[largest, other], [other, largest]] {
            for (fence, counter) in fences.iter().zip(pair) {
                desk.ask(&["DEL", fence]);
                match counter {
                    "absent" => {}
                    "list" => drop(desk.ask(&["ZADD", fence, "1", "one"])),
                    counter => drop(desk.ask(&["SET", fence, counter])),
                }
            }
            let before = survey(desk);
            let answer = batch.acquire(desk);
            assert!(answer.starts_with(number), "{pair:?}: {answer}, and not {number}");
            if number.starts_with('-') {
                assert_eq!(survey(desk), before, "{pair:?}");
            } else {
                assert_eq!(answer, number, "{pair:?}");
                assert_eq!(fences.each_ref().map(|fence| desk.ask(&["GET", fence])), [number, number]);
                assert_eq!(batch.release(desk), "1");
            }
        }
    }
}

pub(crate) fn readers_share_a_number_between_the_numbers_of_the_writers(desk: &mut impl Desk) {
    let [first, second] = ["r1", "r2"].map(|token| Claim::read(token, &["x"]).with("f"));
    assert_eq!([first.acquire(desk), second.acquire(desk)], ["1", "1"], "0 is no number");
    assert_eq!(desk.ask(&["GET", &key("fence", "x")]), "1");
    assert_eq!(first.raised_to(5).ask(desk, CommandKind::RaiseAll), "5");
    assert_eq!(second.raised_to(4).ask(desk, CommandKind::RaiseAll), "4", "it is at least that");
    assert_eq!([first.release(desk), second.release(desk)], ["1", "1"]);
    assert_eq!(Claim::write("w", &["x"]).with("f").acquire(desk), "6");
}

pub(crate) fn after_lost_counters_readers_begin_above_earlier_writers(desk: &mut impl Desk) {
    let reader = Claim::read("r1", &["x"]).with("fg");
    assert!(reader.acquire(desk).starts_with("[quarantined "));
    desk.pass(600);
    let number: u64 = reader.acquire(desk).parse().unwrap();
    assert!(number >= 1_000_000 * 1024, "{number} is not above all that was issued before");
}

pub(crate) fn a_master_that_is_quarantined_grants_and_writes_nothing(desk: &mut impl Desk) {
    let claims = [Claim::write("t", &["x", "y"]).with("fgm"), Claim::read("t", &["x", "y"]).with("gi")];
    let before = survey(desk);
    for claim in claims {
        assert!(claim.acquire(desk).starts_with("[quarantined "));
    }
    assert!(asked(desk, &take("t", 1, &["x", "y"], "fg")).starts_with("[quarantined "));
    assert_eq!(survey(desk), before);
    desk.pass(600);
    assert!(asked(desk, &take("t", 1, &["x", "y"], "fg")).starts_with("[seats 1 "));
}

pub(crate) fn one_server_behind_two_addresses_has_one_vote(desk: &mut impl Desk) {
    for claim in [Claim::write("t", &["x", "y"]), Claim::read("t", &["x"])] {
        for flags in ["-", "f", "i"] {
            desk.ask(&["FLUSHALL"]);
            assert_eq!(claim.with(flags).acquire(desk), "1");
            assert!(claim.with(flags).acquire(desk).starts_with('['));
        }
    }
    let seats = take("t", 1, &["x", "y", "z"], "-");
    desk.ask(&["FLUSHALL"]);
    assert_eq!(asked(desk, &seats), "[seats 1 0]");
    is_told(&asked(desk, &seats), &digest("t"));
    assert_eq!(desk.ask(&["EXISTS", "y", "z"]), "0");
}

pub(crate) fn a_refused_claim_changes_nothing(desk: &mut impl Desk) {
    let claim = Claim { read: &["y"], ..Claim::write("t", &["x"]) }.with("f");
    for foreign in [["SET", "x", "other"], ["SET", "y", "other"], ["RPUSH", "y", "other"]] {
        desk.ask(&["FLUSHALL"]);
        desk.ask(&foreign);
        let before = survey(desk);
        assert_ne!(claim.acquire(desk), "1");
        assert_eq!(survey(desk), before);
        assert_eq!(claim.with("-").release(desk), "0");
        assert_eq!(survey(desk), before);
    }
}

pub(crate) fn a_waiting_writer_keeps_new_readers_out_and_no_others(desk: &mut impl Desk) {
    let [inside, new] = ["r1", "r2"].map(|token| Claim::read(token, &["x"]));
    let writer = Claim::write("w", &["x"]).with("m");
    assert_eq!(inside.acquire(desk), "1");
    is_told(&writer.acquire(desk), SHARED);
    assert!(new.acquire(desk).starts_with("[wanted "));
    assert_eq!(inside.extend(desk), "1");
    assert_eq!(new.with("i").acquire(desk), "1");
    assert!(
        (1..=1_000).contains(&pttl(desk, &key("want", "x"))),
        "a dead one does not delay others for long"
    );
    is_told(&writer.with("mt").release(desk), SHARED);
    assert_eq!(Claim::read("r3", &["x"]).acquire(desk), "1");
    desk.ask(&["SET", &key("want", "x"), "another wait", "PX", "10000"]);
    writer.release(desk);
    assert!(Claim::read("r4", &["x"]).acquire(desk).starts_with("[wanted "), "that mark is not ours");
}

pub(crate) fn a_grant_leaves_the_mark_of_a_writer_and_its_release_removes_it(desk: &mut impl Desk) {
    let reader = Claim::read("r", &["x"]);
    let writer = Claim::write("w", &["x"]).with("m");
    assert_eq!(reader.acquire(desk), "1");
    is_told(&writer.acquire(desk), SHARED);
    assert_eq!(reader.release(desk), "1");
    // It may be taken back, where other masters have readers yet: new ones are kept out until then.
    assert_eq!(writer.acquire(desk), "1");
    assert_eq!(desk.ask(&["GET", &key("want", "x")]), WAIT);
    assert_eq!(writer.release(desk), "1");
    assert_eq!(desk.ask(&["EXISTS", &key("want", "x")]), "0");
}

pub(crate) fn the_largest_claim_is_taken_extended_and_released(desk: &mut impl Desk) {
    let names: Vec<String> = (0..1_152).map(|number| format!("order:{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (written, read) = names.split_at(1_024);
    let all = Claim { read, ..Claim::write("t", written) };
    assert_eq!([all.with("f").acquire(desk), all.with("f").extend(desk), all.release(desk)], ["1"; 3]);
    // A script calls a command with a thousand keys at once: these are of the second portion.
    let last = written[1_023];
    assert_eq!(desk.ask(&["EXISTS", last, names[1_151]]), "0");
    assert_eq!(Claim::write("u", &names).acquire(desk), "1");
    for name in &names {
        desk.ask(&["DEL", name]);
    }
    desk.ask(&["SET", last, &full("other"), "PX", "10000"]);
    is_told(&all.acquire(desk), &digest("other"));
    desk.ask(&["DEL", last]);
    assert_eq!(all.acquire(desk), "1");
    desk.ask(&["DEL", last]);
    assert_eq!([all.extend(desk), all.ask(desk, CommandKind::HealAll), all.extend(desk)], ["0", "1", "1"]);
    assert_eq!(all.keep(desk), "1");
    assert_ne!(desk.ask(&["GET", last]), full("t"), "it is kept without our token");
}

/// How a refusal names the holder with this token.
fn digest(token: &str) -> String {
    sha1_smol::Sha1::from(full(token)).digest().to_string()
}
