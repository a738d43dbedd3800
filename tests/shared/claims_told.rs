//! What an inspection reports, and which holders of a key can be named to delete it.

use super::*;

/// The words of a FORCE RELEASE for the holder with this digest.
fn force_release(digest: &str) -> Vec<String> {
    called(CommandKind::ForceRelease, vec!["x".to_owned()], vec![digest[..16].to_owned()])
}

/// Both scripts read a bounded part of a value, however many share it.
pub(crate) fn the_first_thousand_sharers_are_told_and_can_be_named(desk: &mut impl Desk) {
    let name = |number: usize| format!("r{number}");
    let entry = |number| format!("{:016}:{}", 99_999_999_990_000 + number, full(&name(number)));
    let entries: String = (0..1_001).map(entry).collect();
    let free = format!("{:016}:{}", 0, full(""));
    let value = format!("{}{free}{entries}", sentinel(""));
    desk.ask(&["SET", "x", &value, "PX", "60000"]);
    let [want, marker] = [key("want", "x"), "quorlock:restart-guard".to_owned()];
    let inspect = called(CommandKind::Inspect, vec!["x".to_owned()], vec![full("r1"), marker, want]);
    let told = asked(desk, &inspect);
    let is_told = |number| told.contains(&digest(&name(number))[..16]);
    assert_eq!([0, 999, 1_000].map(is_told), [true, true, false]);

    let last = asked(desk, &force_release(&digest("another")));
    super::is_told(&last, &digest(&name(999)));
    // A free entry has no holder.
    for other in ["", &name(1_000)] {
        super::is_told(&asked(desk, &force_release(&digest(other))), &digest(&name(999)));
    }
    assert_eq!(desk.ask(&["EXISTS", "x"]), "1");
    assert_eq!(asked(desk, &force_release(&digest(&name(999)))), "1");
    assert_eq!(desk.ask(&["EXISTS", "x"]), "0");
}

/// Another client's value may be longer than a token, and is no list of sharers.
pub(crate) fn a_long_value_of_another_client_is_named_as_a_whole(desk: &mut impl Desk) {
    desk.ask(&["SET", "x", &"z".repeat(300), "PX", "60000"]);
    let named = sha1_smol::Sha1::from("z".repeat(64)).digest().to_string();
    is_told(&asked(desk, &force_release(&digest("another"))), &named);
    assert_eq!(asked(desk, &force_release(&named)), "1");
    assert_eq!(desk.ask(&["EXISTS", "x"]), "0");
}
