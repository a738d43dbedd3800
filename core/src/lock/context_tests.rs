use super::*;
use crate::protocol::Cause;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

struct NotAsked;

impl Entropy for NotAsked {
    fn fill(&mut self, _: &mut [u8]) -> Result<(), EntropyFailed> {
        panic!("these tests choose the token")
    }
}

/// The vote of a quarantined master that has extended the token, after this time, if it last said
/// yes to a request for a second. `discount` changes what is known of it in between.
fn vote_in_quarantine(discount: impl Fn(&mut Keys, MasterId), after: Duration) -> Vote {
    let masters = ["redis://a", "redis://b", "redis://c"];
    let config = Config::builder(masters).ttl(ms(1_000)).restart_guard(ms(5_000)).build().unwrap();
    let master = config.master_ids().next().unwrap();
    let ttl = Ttl::new(ms(1_000)).unwrap();
    let asked_at = Instant::ORIGIN + ms(1_000);
    let wanted = Acquire::new(Resource::new("x").unwrap(), ttl);
    let mut base = Base::new(LockId { index: 0, generation: 0 }, &wanted, asked_at);
    let mut keys = Keys::new(&base, Token::from_bytes([1; Token::BYTES]), MasterSet::all(masters.len()));
    let mut effects = Effects {
        now: asked_at + ms(10),
        config: &config,
        entropy: &mut NotAsked,
        jitter: &mut Jitter::new(1),
        orders: &mut VecDeque::new(),
        events: &mut VecDeque::new(),
        ranks: &[],
        without_queue: MasterSet::EMPTY,
    };
    Context { base: &mut base, keys: &mut keys, effects: &mut effects }.kept(master, ttl, asked_at);
    discount(&mut keys, master);
    effects.now = asked_at + after;
    let answer = Answer::OursInQuarantine { remaining: ms(4_000) };
    Context { base: &mut base, keys: &mut keys, effects: &mut effects }.holder_vote(master, answer)
}

/// The masters' clocks may be ahead: a key that lives for a second may be gone 12 ms before that.
#[test]
fn a_quarantined_master_counts_for_the_ttl_less_drift() {
    for (after, counts) in [(ms(0), true), (ms(987), true), (ms(988), false), (ms(1_000), false)] {
        let vote = vote_in_quarantine(|_, _| {}, after);
        assert_eq!(vote == Vote::Granted, counts, "after {after:?}: {vote:?}");
    }
}

/// Connections keep answers in order, so no order of answers leads here today. The lock itself does
/// not rely on that: a master that no longer counts does not count in its quarantine either.
#[test]
fn a_master_that_does_not_count_as_a_holder_does_not_count_in_its_quarantine_either() {
    let is_quarantined = |vote: Vote| matches!(vote, Vote::Failed(Cause::Quarantined { .. }));
    let released = vote_in_quarantine(|keys, master| keys.forsaken.insert(master), ms(20));
    assert!(is_quarantined(released), "a release may follow the token: {released:?}");
    let restored = vote_in_quarantine(|keys, master| keys.unproven.insert(master), ms(20));
    assert!(is_quarantined(restored), "it has not confirmed that the token was restored: {restored:?}");
    let refused = vote_in_quarantine(|keys, master| keys.reached.remove(master), ms(20));
    assert!(is_quarantined(refused), "it refused the token: {refused:?}");
}
