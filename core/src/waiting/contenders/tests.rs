use std::ops::Range;

use super::super::pace::REMEMBERED;
use super::*;
use crate::protocol::Ttl;

fn wanted(name: &str) -> Acquire {
    Acquire::new(Resource::new(name).unwrap(), Ttl::new(Duration::from_secs(10)).unwrap())
}

fn comes(contenders: &mut Contenders, name: &str, now: Instant) -> LockId {
    let id = LockId { index: 0, generation: 0 };
    let entry = contenders.enter(&wanted(name), id, |_| true, &mut Jitter::new(1), now);
    assert!(matches!(entry, Entry::Front(_)), "{entry:?}");
    id
}

/// For each of these resources, a caller is granted a lock and releases it at once.
fn come_and_go(contenders: &mut Contenders, names: Range<usize>, now: Instant) {
    for name in names {
        let name = name.to_string();
        let id = comes(contenders, &name, now);
        let grant = Some(Grant { asked_at: now, at: now, was_refused: false });
        let let_go = LetGo { id, targets: wanted(&name).targets, grant, bid: None, place: None };
        contenders.let_go(&Resource::new(&name).unwrap(), &let_go, now);
    }
}

#[test]
fn resources_that_are_no_longer_wanted_are_remembered_for_a_second_and_then_forgotten() {
    let mut contenders = Contenders::new(Duration::from_millis(150));
    let now = Instant::ORIGIN;
    let id = comes(&mut contenders, "held", now);
    come_and_go(&mut contenders, 0..3 * KEPT, now);
    assert_eq!(contenders.by_resource.len(), 3 * KEPT + 1);
    come_and_go(&mut contenders, 3 * KEPT..6 * KEPT, now + REMEMBERED);
    assert_eq!(contenders.by_resource.len(), 3 * KEPT + 1);
    let in_front: Vec<_> = contenders.all_in_front().map(|(name, id)| (name.to_string(), id)).collect();
    assert_eq!(in_front, [("held".to_owned(), id)], "a resource that is held is never forgotten");
}
