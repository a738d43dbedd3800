use super::*;

const NOW: Instant = Instant::ORIGIN;

fn first() -> MasterId {
    MasterId::all(3).next().unwrap()
}

fn waiting() -> Waiting {
    Waiting {
        votes: Arc::new([Vote::Outstanding; 3]),
        awaited: MasterSet::EMPTY,
        retry_at: Some(NOW),
        poll_at: NOW,
        refused_first: Some(first()),
        listens: false,
    }
}

#[test]
fn the_next_lock_continues_a_wait_for_a_rival_unless_the_rival_is_ahead_in_the_masters_queues() {
    let met = Bid { met_others: Some(NOW), plan: Plan::Waiting(waiting()), ..Bid::default() };
    let has_no_retry = Plan::Waiting(Waiting { retry_at: None, ..waiting() });
    let cases = [
        (met.clone(), true),
        (Bid { met_others: None, ..met.clone() }, false),
        (Bid { renews_at: Some(NOW), ..met.clone() }, false),
        (Bid { plan: Plan::Pause { until: NOW }, ..met.clone() }, false),
        (Bid { plan: has_no_retry, ..met }, false),
    ];
    for (bid, is_worth_keeping) in cases {
        assert_eq!(bid.is_worth_keeping(), is_worth_keeping, "{bid:?}");
    }
}

#[test]
fn the_next_lock_does_not_wait_for_the_answer_to_a_read_of_the_one_before_it() {
    let plan = Plan::Waiting(Waiting { listens: true, ..waiting() });
    let bid = Bid { met_others: Some(NOW), plan, ..Bid::default() };
    assert!(bid.is_to_hear_from(first()));
    let next = bid.passed_on(Start::default(), LetsPass::default(), NOW);
    assert!(!next.is_to_hear_from(first()));
}

/// Otherwise the exhaustive search would take bids that act differently for one.
#[cfg(feature = "internals")]
#[test]
fn a_bid_that_forgets_its_queue_keeps_what_its_lock_may_still_act_on() {
    let votes: Arc<[Vote]> = Arc::new([Vote::NotAsked; 3]);
    let full = || Bid {
        came_at: Some(NOW),
        is_wary: true,
        passed_over: 3,
        asked_at: NOW + Duration::from_secs(1),
        renews_at: Some(NOW),
        repeated: MasterSet::only(first()),
        masters: Masters::unknown(3),
        last_votes: Some(Arc::clone(&votes)),
        plan: Plan::Waiting(waiting()),
        ..Bid::default()
    };
    let always = || Bid { is_wary: true, repeated: full().repeated, ..Bid::default() };
    let waits = || Bid { masters: full().masters, plan: full().plan, ..always() };
    let cases = [
        (false, false, Bid { last_votes: full().last_votes, ..waits() }),
        (false, true, Bid { asked_at: full().asked_at, renews_at: full().renews_at, ..waits() }),
        (true, false, Bid { last_votes: full().last_votes, ..always() }),
        (true, true, always()),
    ];
    for (is_held, is_fair, kept) in cases {
        let mut bid = full();
        bid.forget_its_queue(is_held, is_fair);
        assert_eq!(bid, kept, "held: {is_held}, fair: {is_fair}");
    }
}
