//! Answers that come late, twice or to another request, and whether they count.

use quorlock_core::{Event, ExtendError, LossCause, ReleaseOutcome, Vote};

use super::world::{Flow, KEY, Reach, World, ms, one_try, wanted};

#[test]
fn an_answer_to_an_extension_is_not_an_answer_to_the_release_after_it() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    world.each(|master| master.flow = Flow::RepliesHeld);
    let extension = world.extend(lock, ms(10_000));
    world.pump();
    world.each(|master| master.forget_keys());
    world.release(lock);
    for master in 0..3 {
        world.deliver(0, master);
    }
    let result = Err(ExtendError::Lost(LossCause::Released));
    assert_eq!(world.events_now(), [Event::Extended { lock, extension, result }]);
    for master in 0..3 {
        world.deliver(0, master);
    }
    assert_eq!(world.events_now(), [Event::Released { lock, outcome: ReleaseOutcome::NotOurs }]);
}

#[test]
fn a_release_that_could_not_be_sent_is_answered_once_and_not_again_when_it_is() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    world.masters[1].flow = Flow::Stopped;
    world.masters[2].reach = Reach::Refuses;
    world.cut(0, 2);
    world.pump();
    world.release(lock);
    world.masters[2].reach = Reach::Accepts;
    let Event::Released { outcome: ReleaseOutcome::Unknown(ballot), .. } = world.next_event() else {
        panic!("two masters of three did not answer");
    };
    let votes: Vec<_> = ballot.votes().map(|(_, vote)| vote).collect();
    assert!(matches!(votes[..], [Vote::Granted, Vote::Failed(_), Vote::Failed(_)]), "{votes:?}");
    assert_eq!(world.masters[2].count("RELEASE"), 1, "and yet it has been sent");
}

#[test]
fn a_release_follows_the_acquisition_to_a_master_that_has_not_answered_it_yet() {
    let mut world = World::of(3);
    world.masters[2].flow = Flow::Stopped;
    let lock = world.hold(&one_try());
    let token = world.expose(lock);
    world.release(lock);
    world.masters[2].flow = Flow::Free;
    world.pump();
    assert_eq!(world.masters[2].tokens("SET"), [token.as_str()]);
    assert_eq!(world.masters[2].tokens("RELEASE"), [token.as_str()]);
    assert!(world.holders().is_empty());
}

#[test]
fn the_release_owed_after_a_lost_round_does_not_read_the_key() {
    // No caller waits for the holder of the key any more, so it is not read.
    let mut world = World::of(3);
    for master in 0..2 {
        world.masters[master].hold_by_another(KEY, None);
    }
    world.each(|master| master.flow = Flow::RepliesHeld);
    world.acquire(&one_try());
    world.deliver(0, 2);
    world.masters[2].reach = Reach::Refuses;
    world.cut(0, 2);
    world.pump();
    world.each(|master| master.flow = Flow::Free);
    world.refusal();
    world.masters[2].reach = Reach::Accepts;
    world.pass(ms(100));
    assert_eq!((world.masters[2].count("UNDO"), world.masters[2].count("RELEASE")), (0, 1));
    assert_eq!(world.masters[2].value(KEY, world.now), None);
}

#[test]
fn an_answer_to_one_extension_does_not_answer_another_one_under_way() {
    let mut world = World::of(3);
    let lock = world.hold(&wanted(ms(10_000)));
    world.each(|master| master.flow = Flow::RepliesHeld);
    let sent = world.now;
    let first = world.extend(lock, ms(20_000));
    world.extend(lock, ms(60_000));
    for master in 0..2 {
        world.deliver(0, master);
    }
    let told: Vec<_> = world.nodes[0].events.drain(..).map(|(_, event)| event).collect();
    let result = Ok(sent + ms(20_000 - 202));
    assert_eq!(told, [Event::Extended { lock, extension: first, result }]);
}
