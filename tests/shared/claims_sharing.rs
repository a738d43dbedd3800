//! Keys that a group shares: who has an entry, for how long, and what other requests do to it.

use super::*;

/// The entries of a value that a group shares: when they end, and their tokens as in [`full`];
/// nothing if it is free.
pub(super) fn sharers(desk: &mut impl Desk, key: &str, group: &str) -> Vec<(u64, String)> {
    let value = desk.ask(&["GET", key]);
    let mut rest = value.strip_prefix(&sentinel(group)).unwrap();
    let mut all = Vec::new();
    while let Some((entry, others)) = rest.split_at_checked(57) {
        let (end, token) = entry.split_once(':').unwrap();
        assert_eq!(end.len(), 16);
        all.push((end.parse().unwrap(), token.trim_end_matches('-').to_owned()));
        rest = others;
    }
    assert_eq!(rest, "");
    all
}

pub(super) fn names(desk: &mut impl Desk, key: &str) -> Vec<String> {
    sharers(desk, key, "").into_iter().map(|(_, token)| token).collect()
}

pub(crate) fn readers_are_named_and_not_counted(desk: &mut impl Desk) {
    let [first, second, never] = ["r1", "r2", "r3"].map(|token| Claim::read(token, &["x"]));
    assert_eq!([first.acquire(desk), second.acquire(desk)], ["1", "1"]);
    assert_eq!([never.release(desk), never.release(desk)], ["0", "0"]);
    assert_eq!([first.release(desk), first.release(desk), first.release(desk)], ["1", "0", "0"]);
    assert_eq!(any_writer(desk, "x"), "nil");
    assert_eq!(second.release(desk), "1");
    assert_eq!(any_writer(desk, "x"), "OK");
}

pub(crate) fn a_key_lives_as_long_as_the_longest_reader(desk: &mut impl Desk) {
    let (long, short) = (Claim::read("r1", &["x"]).living(20_000), Claim::read("r2", &["x"]).living(50));
    assert_eq!([long.acquire(desk), short.acquire(desk)], ["1", "1"]);
    lives(desk, "x", 20_001);
    desk.pass(60);
    assert_eq!(any_writer(desk, "x"), "nil");
    assert_eq!(short.extend(desk), "0", "its own end has come, although others read");
    assert_eq!(long.living(30_000).extend(desk), "1");
    lives(desk, "x", 30_001);
}

pub(crate) fn a_dead_reader_is_not_kept_alive_by_others(desk: &mut impl Desk) {
    let (dead, alive) = (Claim::read("r1", &["x"]).living(10_000), Claim::read("r2", &["x"]));
    assert_eq!([dead.acquire(desk), alive.acquire(desk)], ["1", "1"]);
    let before = sharers(desk, "x", "");
    assert_eq!(alive.living(60_000).extend(desk), "1");
    let behind = sharers(desk, "x", "");
    assert_eq!((&behind[0], behind[1].0 > before[1].0), (&before[0], true));
    assert_eq!(alive.release(desk), "1");
    lives(desk, "x", 10_001);
}

pub(crate) fn a_release_that_finds_nothing_of_its_own_changes_nothing(desk: &mut impl Desk) {
    let stranger = Claim::read("r9", &["x"]);
    desk.ask(&["SET", "x", &full("writer"), "PX", "10000"]);
    is_told(&stranger.acquire(desk), &digest("writer"));
    assert_eq!(stranger.release(desk), "0");
    is_told(&stranger.with("t").release(desk), &digest("writer"));
    assert_eq!(desk.ask(&["GET", "x"]), full("writer"));
    lives(desk, "x", 10_000);
    desk.ask(&["DEL", "x"]);

    let reader = Claim::read("r1", &["x"]);
    assert_eq!(reader.acquire(desk), "1");
    assert_eq!([stranger.release(desk), reader.of("job").release(desk)], ["0", "0"]);
    assert_eq!(stranger.with("t").release(desk), "0", "it may share it at any time");
    is_told(&stranger.of("job").with("t").release(desk), SHARED);
    assert_eq!(names(desk, "x"), ["r1"]);
    lives(desk, "x", 10_001);
}

pub(crate) fn the_key_lives_as_long_as_the_sharer_that_ends_last(desk: &mut impl Desk) {
    let lives_of = [("a", 20_000), ("b", 60), ("c", 10_000), ("d", 50_000)];
    let [a, b, c, d] = lives_of.map(|(token, life)| {
        let claim = Claim::read(token, &["x"]).living(life);
        assert_eq!(claim.acquire(desk), "1");
        claim
    });
    lives(desk, "x", 50_001);
    assert_eq!(c.living(30_000).extend(desk), "1");
    assert_eq!(c.release(desk), "1");
    lives(desk, "x", 50_001);
    desk.pass(70);
    assert_eq!(b.extend(desk), "0", "its end has come");
    // The one that ends last goes. Nobody else is left but `a`, and `b`, which has ended.
    assert_eq!(d.release(desk), "1");
    lives(desk, "x", 20_001);
    assert_eq!(names(desk, "x"), ["a", "b", "", ""]);
    assert_eq!((a.release(desk), desk.ask(&["EXISTS", "x"])), ("1".to_owned(), "0".to_owned()));
}

pub(crate) fn entries_are_used_again_and_those_that_have_ended_are_removed(desk: &mut impl Desk) {
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|token| Claim::read(token, &["x"]));
    assert_eq!([a.acquire(desk), b.living(60).acquire(desk), c.acquire(desk)], ["1", "1", "1"]);
    assert_eq!(a.release(desk), "1");
    assert_eq!(names(desk, "x"), ["", "b", "c"]);
    assert_eq!(d.acquire(desk), "1");
    assert_eq!(names(desk, "x"), ["d", "b", "c"], "the free place comes first");
    desk.pass(70);
    assert_eq!(a.acquire(desk), "1");
    assert_eq!(names(desk, "x"), ["d", "b", "c", "a"], "three entries are no reason to look for dead ones");
    assert_eq!(b.living(500).acquire(desk)[..1], *"[", "it is there");
    assert_eq!(Claim::read("e", &["x"]).acquire(desk), "1");
    assert_eq!(names(desk, "x"), ["d", "c", "a", "e"], "four are one");
    lives(desk, "x", 10_001);
}

pub(crate) fn a_server_without_memory_lets_sharers_stay_and_leave(desk: &mut impl Desk) {
    let [first, second, new] = ["r1", "r2", "r3"].map(|token| Claim::read(token, &["x"]));
    desk.ask(&["SET", "y", &full("w"), "PX", "10000"]);
    assert_eq!([first.acquire(desk), second.acquire(desk)], ["1", "1"]);
    desk.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(new.acquire(desk).contains("OOM command not allowed"));
    let downgraded = Claim::read("w", &["y"]).living(20_000).extend(desk);
    let extended = first.living(20_000).extend(desk);
    let (again, left) = (first.extend(desk), second.release(desk));
    let seen = [names(desk, "x"), names(desk, "y")];
    let last = first.release(desk);
    desk.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!([downgraded, extended, again, left, last], ["1"; 5]);
    assert_eq!(seen, [vec!["r1", ""], vec!["w"]]);
    assert_eq!(desk.ask(&["EXISTS", "x"]), "0");
    lives(desk, "y", 20_001);
}

pub(crate) fn a_reader_whose_key_was_deleted_holds_nothing(desk: &mut impl Desk) {
    let (old, new) = (Claim::read("r1", &["x"]), Claim::read("r2", &["x"]));
    assert_eq!(old.acquire(desk), "1");
    desk.ask(&["DEL", "x"]);
    assert_eq!(new.acquire(desk), "1");
    assert_eq!([old.extend(desk), old.release(desk), new.extend(desk)], ["0", "0", "1"]);
}

pub(crate) fn the_name_of_a_group_is_any_bytes(desk: &mut impl Desk) {
    let long = "a long name of a group, ".repeat(40);
    for group in ["", "a\0b", "1:a", "job:42", "0000000000000001:", &long] {
        desk.ask(&["FLUSHALL"]);
        let [first, second] = ["r1", "r2"].map(|token| Claim::read(token, &["x"]).of(group));
        assert_eq!(first.acquire(desk), "1", "{group:?}");
        let another = "z".repeat(group.len().max(1));
        assert_eq!(first.of(&another).release(desk), "0", "its entry is in another group");
        assert_eq!(second.acquire(desk), "1", "{group:?}");
        assert_eq!(sharers(desk, "x", group).len(), 2);
        assert_eq!([first.extend(desk), second.release(desk), first.release(desk)], ["1", "1", "1"]);
        assert_eq!(desk.ask(&["EXISTS", "x"]), "0", "{group:?}");

        // A client that does not know the group.
        let [short, long] = [first.living(20_000), second.living(60_000)];
        assert_eq!([short.acquire(desk), long.acquire(desk)], ["1", "1"], "{group:?}");
        for (token, reply) in [("r2", "1"), ("r2", "0"), ("r3", "0")] {
            let words = called(CommandKind::ReleaseAny, vec!["x".to_owned()], vec![full(token)]);
            assert_eq!(asked(desk, &words), reply, "{group:?}");
        }
        lives(desk, "x", 20_001);
    }
}

pub(crate) fn groups_keep_each_other_out(desk: &mut impl Desk) {
    let (job, other, reader) =
        (Claim::read("a", &["x"]).of("job"), Claim::read("b", &["x"]).of("jobs"), Claim::read("c", &["x"]));
    assert_eq!([job.acquire(desk), Claim { token: "d", ..job }.acquire(desk)], ["1", "1"]);
    is_told(&other.acquire(desk), SHARED);
    is_told(&reader.acquire(desk), SHARED);
    is_told(&Claim::write("w", &["x"]).acquire(desk), SHARED);
}

pub(crate) fn a_writer_becomes_a_reader_on_a_master_that_does_not_know_yet(desk: &mut impl Desk) {
    desk.ask(&["SET", "x", &full("t"), "PX", "20000"]);
    let downgraded = Claim::read("t", &["x"]);
    assert_eq!(downgraded.extend(desk), "1");
    assert_eq!(names(desk, "x"), ["t"]);
    lives(desk, "x", 20_001);
    assert_eq!(Claim::read("r", &["x"]).acquire(desk), "1");
    assert_eq!(downgraded.release(desk), "1");
    assert_eq!(any_writer(desk, "x"), "nil");

    desk.ask(&["SET", "x", &full("t"), "PX", "20000"]);
    assert_eq!(downgraded.release(desk), "1", "it was never told at all");
    assert_eq!(any_writer(desk, "x"), "OK");
}
