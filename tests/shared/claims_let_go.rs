//! Seats that are taken, and targets whose keys are kept at their release.

use super::*;

/// The words of a TAKE of `wanted` seats of a window.
pub(crate) fn take(token: &str, wanted: u16, seats: &[&str], flags: &str) -> Vec<String> {
    take_behind(token, wanted, seats, flags, None)
}

/// The same from a client that has waited for this many milliseconds, and now requests to be next.
pub(crate) fn take_behind(
    token: &str,
    wanted: u16,
    seats: &[&str],
    flags: &str,
    waited: Option<(&str, u64)>,
) -> Vec<String> {
    let flags = format!("{flags}{}", if waited.is_some() { "m" } else { "" });
    let mut keys: Vec<String> = seats.iter().map(ToString::to_string).collect();
    let mut values = [&full(token), "10000", &wanted.to_string(), &flags].map(str::to_owned).to_vec();
    values.push(seats.len().to_string());
    if flags.contains('f') {
        keys.extend(seats.iter().map(|seat| key("fence", seat)));
    }
    keys.push(key("seat:next", "s"));
    if let Some((name, millis)) = waited {
        values.extend([name.to_owned(), millis.to_string()]);
    }
    if flags.contains('g') {
        keys.push("quorlock:restart-guard".to_owned());
        values.extend(FLEET.map(str::to_owned));
    }
    called(CommandKind::Take, keys, values)
}

pub(crate) fn the_client_that_has_waited_longest_gets_the_next_seat(desk: &mut impl Desk) {
    let (seats, mark) = (["s1", "s2"], key("seat:next", "s"));
    let waits = |name: &'static str, millis| take_behind(name, 1, &["s1", "s2"], "-", Some((name, millis)));
    let fresh = |token| take(token, 1, &["s1", "s2"], "-");
    assert_eq!(asked(desk, &take("f", 2, &seats, "-")), "[seats 1 2 0]");
    is_told(&asked(desk, &waits("b", 2_000)), &digest("f"));
    assert!((900..=1_000).contains(&pttl(desk, &mark)), "a dead one does not delay others for long");
    let of_b = desk.ask(&["GET", &mark]);
    is_told(&asked(desk, &waits("c", 500)), &digest("f"));
    assert_eq!(desk.ask(&["GET", &mark]), of_b, "the other one has waited for longer");
    is_told(&asked(desk, &waits("a", 9_000)), &digest("f"));
    assert_ne!(desk.ask(&["GET", &mark]), of_b);

    assert_eq!(Claim::write("f", &["s1"]).release(desk), "1");
    for later in [fresh("d"), waits("b", 2_000)] {
        assert!(asked(desk, &later).starts_with("[wanted "));
    }
    desk.pass(5);
    assert_eq!(asked(desk, &waits("a", 9_000)), "[seats 1 0]");
    assert_eq!(desk.ask(&["EXISTS", &mark]), "0", "it has had its turn");

    // A request for two seats keeps two free.
    let both = take_behind("b", 2, &seats, "-", Some(("b", 60)));
    is_told(&asked(desk, &both), &digest("f"));
    assert!((1..=60).contains(&pttl(desk, &mark)), "no longer than it has waited");
    assert_eq!(Claim::write("a", &["s1"]).release(desk), "1");
    assert!(asked(desk, &fresh("d")).starts_with("[wanted "));
    desk.pass(61);
    assert_eq!(asked(desk, &fresh("d")), "[seats 1 0]", "it is gone");
    assert_eq!(Claim::write("d", &["s1"]).release(desk), "1");

    desk.ask(&["RPUSH", &mark, "a foreign type"]);
    assert_eq!(asked(desk, &fresh("d")), "[seats 1 0]", "no seat is held by a mark");
}

pub(crate) fn seats_are_taken_in_order_and_a_waiter_learns_the_first_end(desk: &mut impl Desk) {
    let seats = ["s1", "s2", "s3"];
    desk.ask(&["RPUSH", "s1", "a foreign type"]);
    assert_eq!(asked(desk, &take("a", 1, &seats, "f")), "[seats 2 1]");
    assert_eq!(asked(desk, &take("b", 1, &seats, "f")), "[seats 3 1]");
    // The clock may go on between two looks, and the ends may be in the same millisecond.
    desk.ask(&["PEXPIRE", "s2", "5000"]);
    is_told(&asked(desk, &take("c", 1, &seats, "-")), &digest("a"));
    desk.ask(&["PERSIST", "s2"]);
    is_told(&asked(desk, &take("c", 1, &seats, "-")), &digest("b"));
    assert_eq!(Claim::write("b", &seats).release(desk), "0");
    assert_eq!(asked(desk, &take("c", 1, &seats, "f")), "[seats 3 2]");
}

pub(crate) fn several_seats_are_taken_or_none(desk: &mut impl Desk) {
    let seats = ["s1", "s2", "s3", "s4"];
    desk.ask(&["SET", &key("fence", "s3"), "7"]);
    desk.ask(&["SET", "s2", &full("other"), "PX", "5000"]);
    assert_eq!(asked(desk, &take("a", 2, &seats, "f")), "[seats 1 3 8]");
    assert_eq!(
        desk.ask(&["MGET", "s1", "s3", &key("fence", "s1"), &key("fence", "s3")]),
        format!("[{0} {0} 8 8]", full("a"))
    );
    let before = survey(desk);
    is_told(&asked(desk, &take("b", 2, &seats, "f")), &digest("other"));
    is_told(&asked(desk, &take("a", 1, &seats, "f")), &digest("a"));
    assert_eq!(survey(desk), before);
    assert_eq!(asked(desk, &take("b", 1, &seats, "-")), "[seats 4 0]");
    assert_eq!(Claim::write("a", &["s1", "s3"]).release(desk), "1");
    desk.ask(&["SET", &key("fence", "s1"), "9007199254740991"]);
    assert!(asked(desk, &take("c", 2, &seats, "f")).contains("used up"));
    assert_eq!(desk.ask(&["EXISTS", "s1", "s3"]), "0");
}

pub(crate) fn a_claim_that_is_kept_loses_its_token_and_stays(desk: &mut impl Desk) {
    let claim = Claim { read: &["y"], ..Claim::write("t", &["x", "z"]) };
    assert_eq!(claim.acquire(desk), "1");
    assert_eq!(Claim::read("r", &["y"]).living(3_000).acquire(desk), "1");
    assert_eq!(claim.living(20_000).keep(desk), "1");
    let kept = digest("t");
    assert_eq!(desk.ask(&["MGET", "x", "z"]), format!("[{kept} {kept}]"));
    assert_eq!(names(desk, "y"), ["r", &kept]);
    ["x", "z"].into_iter().for_each(|name| lives(desk, name, 20_000));
    lives(desk, "y", 20_001);
    // No command with this token has an effect any more, except that a repeated release may shorten
    // the time.
    let before = sharers(desk, "y", "");
    assert_eq!((claim.extend(desk), claim.release(desk)), ("0".to_owned(), "0".to_owned()));
    assert_eq!(claim.living(60_000).keep(desk), "0");
    assert_eq!(sharers(desk, "y", ""), before);
    lives(desk, "x", 20_000);
    assert_eq!(claim.living(5_000).keep(desk), "0");
    lives(desk, "x", 5_000);
    lives(desk, "y", 5_001);
    assert_eq!(claim.living(1_000).keep(desk), "0");
    lives(desk, "y", 3_001);
    assert_eq!(Claim::read("s", &["y"]).living(500).acquire(desk), "1");

    desk.ask(&["FLUSHALL"]);
    desk.ask(&["SET", "y", &full("t"), "PX", "10000"]);
    assert_eq!(Claim::read("t", &["y"]).living(20_000).keep(desk), "1", "it has not been told yet");
    assert_eq!(desk.ask(&["GET", "y"]), kept);
    for foreign in [["SET", "x", "other"], ["SET", "y", "other"], ["RPUSH", "y", "other"]] {
        desk.ask(&["FLUSHALL"]);
        desk.ask(&foreign);
        let before = survey(desk);
        assert_eq!(claim.keep(desk), "0");
        assert_eq!(survey(desk), before);
    }
}
