//! What a lock orders, without connections: a test chooses each master's answer.

use std::collections::VecDeque;

use super::*;
use crate::jitter::Jitter;
use crate::protocol::{Action, Config, Entropy, EntropyFailed, FencingToken, QueuePlace, Request, Resource};

/// Random bytes of which no two draws are equal.
struct Counting(u8);

impl Entropy for Counting {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        self.0 += 1;
        bytes.fill(self.0);
        Ok(())
    }
}

/// One lock, with all that it has ordered since a test last looked.
pub(super) struct Bench {
    config: Config,
    entropy: Counting,
    jitter: Jitter,
    orders: VecDeque<Order>,
    events: VecDeque<Event>,
    ranks: Vec<Option<u64>>,
    without_queue: MasterSet,
    now: Instant,
    pub(super) lock: Lock,
}

impl Bench {
    pub(super) fn new(masters: usize, wanted: impl FnOnce(&Config) -> Acquire) -> Self {
        let urls = ["redis://a", "redis://b", "redis://c", "redis://d", "redis://e"];
        let config = Config::new(urls.into_iter().take(masters)).unwrap();
        let id = LockId { index: 0, generation: 0 };
        Self {
            lock: Lock::queued(id, &wanted(&config), Instant::ORIGIN),
            entropy: Counting(0),
            jitter: Jitter::new(1),
            orders: VecDeque::new(),
            events: VecDeque::new(),
            ranks: (0..masters as u64).map(Some).collect(),
            without_queue: MasterSet::EMPTY,
            now: Instant::ORIGIN,
            config,
        }
    }

    fn of(masters: usize, fair: bool) -> Self {
        Self::new(masters, |config| Acquire { fair, ..Acquire::new(Resource::new("x").unwrap(), config.ttl) })
    }

    pub(super) fn master(&self, place: usize) -> MasterId {
        self.config.master_ids().nth(place).unwrap()
    }

    pub(super) fn set(&self, places: &[usize]) -> MasterSet {
        let mut set = MasterSet::EMPTY;
        places.iter().for_each(|place| set.insert(self.master(*place)));
        set
    }

    pub(super) fn with<R>(&mut self, change: impl FnOnce(&mut Lock, &mut Effects<'_>) -> R) -> R {
        let mut effects = Effects {
            now: self.now,
            config: &self.config,
            entropy: &mut self.entropy,
            jitter: &mut self.jitter,
            orders: &mut self.orders,
            events: &mut self.events,
            ranks: &self.ranks,
            without_queue: self.without_queue,
        };
        change(&mut self.lock, &mut effects)
    }

    /// Changes what the present phase works with.
    pub(super) fn inside<R>(&mut self, change: impl FnOnce(&mut Context<'_, '_>) -> R) -> R {
        self.with(|lock, effects| {
            let Lock { base, stage: Stage::Asked(keys, _) } = lock else { panic!("no master was asked") };
            change(&mut Context { base, keys, effects })
        })
    }

    pub(super) fn orders(&mut self) -> Vec<Order> {
        self.orders.drain(..).collect()
    }

    /// The only request since a test last looked, and its masters.
    fn only_order(&mut self) -> (MasterSet, Request) {
        let mut orders = self.orders();
        assert_eq!(orders.len(), 1, "{orders:?}");
        let Order { to, request } = orders.remove(0);
        (to, request)
    }

    /// What it asks all masters for in another attempt.
    fn attempt(&mut self) -> Request {
        self.with(|lock, effects| lock.attempt(Attempt::default(), effects)).unwrap();
        let all = MasterSet::all(self.config.masters.len());
        let (to, request) = self.only_order();
        assert_eq!((to, request.action), (all, Action::Acquire));
        request
    }

    fn answer(&mut self, place: usize, to: &Request, answer: Answer) {
        let (master, round) = (self.master(place), to.ticket.unwrap().round);
        let _report = self.with(|lock, effects| lock.answer(master, round, answer, effects));
    }
}

/// The place has this number, and is behind another.
fn queued(number: u64) -> Answer {
    let number = FencingToken::new(number).unwrap();
    Answer::Queued { number, ahead: None, is_first: false, watched: true }
}

fn number_in(request: &Request) -> (Option<u64>, bool) {
    (request.fence.map(FencingToken::get), request.insists)
}

#[test]
fn requests_about_a_place_carry_its_number_and_insist_on_it_once_a_quorum_has_it() {
    let mut bench = Bench::of(3, true);
    let first = bench.attempt();
    assert_eq!(number_in(&first), (None, false));
    for (master, number) in [6, 1, 1].into_iter().enumerate() {
        bench.answer(master, &first, queued(number));
    }
    bench.with(|lock, effects| lock.agree_on_number(effects));
    let (to, raise) = bench.only_order();
    assert_eq!((to, raise.action, number_in(&raise)), (bench.set(&[1, 2]), Action::Stay, (Some(6), false)));
    assert!(raise.watch, "its masters notify it when its turn comes");
    assert!(!bench.lock.has_its_number());

    let second = bench.attempt();
    assert_eq!(number_in(&second), (Some(6), false), "one master alone has it");
    (0..3).for_each(|master| bench.answer(master, &second, queued(6)));
    bench.with(|lock, effects| lock.agree_on_number(effects));
    assert_eq!(bench.orders(), []);
    assert!(bench.lock.has_its_number());
    assert_eq!(number_in(&bench.attempt()), (Some(6), true));
}

#[test]
fn a_lock_that_left_the_queue_gets_no_place_and_no_earlier_number_until_it_enters_anew() {
    let mut bench = Bench::of(3, true);
    let first = bench.attempt();
    (0..3).for_each(|master| bench.answer(master, &first, queued(6)));
    bench.with(Lock::leave_queue);
    bench.orders();
    // A late answer is about the place that it has left.
    bench.answer(0, &first, queued(9));
    for is_in_queue in [false, true] {
        if is_in_queue {
            bench.with(|lock, effects| assert!(lock.enter_anew(MasterSet::all(3), effects)));
        }
        let request = bench.attempt();
        assert_eq!(bench.lock.queue_place().is_some(), is_in_queue);
        assert_eq!(number_in(&request), (None, false));
    }
}

#[test]
fn a_lock_enters_the_queue_anew_if_a_quorum_keeps_places() {
    // Masters that have answered, and that keep no places.
    for (answered, without, enters) in [
        (&[0, 1, 2][..], &[][..], true),
        (&[0, 1], &[], true),
        (&[0], &[], false),
        (&[0, 1, 2], &[0], true),
        (&[0, 1], &[0], false),
        (&[0, 1], &[2], true),
        (&[0, 1, 2], &[0, 1], false),
    ] {
        let mut bench = Bench::of(3, true);
        bench.attempt();
        bench.with(Lock::leave_queue);
        bench.orders();
        let answered = bench.set(answered);
        bench.without_queue = bench.set(without);
        let enters_anew = bench.with(|lock, effects| lock.enter_anew(answered, effects));
        assert_eq!(enters_anew, enters, "{answered:?}, {without:?}");
        bench.attempt();
        assert_eq!(bench.lock.queue_place().is_some(), enters, "{answered:?}, {without:?}");
    }
}

#[test]
fn a_turn_fits_the_time_in_which_a_quorum_first_answered() {
    let answers_at = |times: [(usize, u64); 3]| {
        let mut bench = Bench::of(3, true);
        let request = bench.attempt();
        for (master, millis) in times {
            bench.now = Instant::ORIGIN + Duration::from_millis(millis);
            bench.answer(master, &request, queued(6));
        }
        bench.attempt().turn
    };
    let turn = |millis| Some(QueuePlace::turn_after(Duration::from_millis(millis), Duration::ZERO));
    assert_eq!(answers_at([(0, 1), (1, 30), (2, 90)]), turn(30));
    // One that answers again says nothing about the others.
    assert_eq!(answers_at([(0, 1), (1, 30), (1, 90)]), turn(30));
    assert_eq!(answers_at([(0, 1), (0, 30), (1, 90)]), turn(90));
}

#[test]
fn a_lock_has_its_turn_if_a_quorum_that_is_free_has_told_it_in_time() {
    let settled = [6; 3];
    // The numbers that masters gave, within how many milliseconds, which masters told it of its
    // turn and when, which of them are free, and the time.
    for (numbers, within, told, free, at, has) in [
        (settled, 10, &[(0, 20), (1, 21)][..], &[0, 1][..], 30, true),
        (settled, 10, &[(0, 20)], &[0, 1, 2], 30, false),
        (settled, 10, &[(0, 20), (1, 21)], &[0, 2], 30, false),
        ([6, 1, 1], 10, &[(0, 20), (1, 21)], &[0, 1], 30, false),
        // Half of a turn of 50 ms since the first one.
        (settled, 10, &[(0, 20), (1, 44)], &[0, 1], 44, true),
        (settled, 10, &[(0, 20), (1, 45)], &[0, 1], 45, false),
        // Four rounds are the longest turn, or shorter.
        (settled, 49, &[(0, 60), (1, 60)], &[0, 1], 70, true),
        (settled, 50, &[(0, 60), (1, 60)], &[0, 1], 70, false),
        // The place may have ended.
        (settled, 10, &[(0, 999), (1, 999)], &[0, 1], 999, true),
        (settled, 10, &[(0, 999), (1, 999)], &[0, 1], 1_000, false),
    ] {
        let mut bench = Bench::of(3, true);
        let request = bench.attempt();
        bench.now = Instant::ORIGIN + Duration::from_millis(within);
        numbers.into_iter().enumerate().for_each(|(at, number)| bench.answer(at, &request, queued(number)));
        bench.with(|lock, effects| lock.agree_on_number(effects));
        for &(place, millis) in told {
            let master = bench.master(place);
            bench.lock.told_of_turn(master, Instant::ORIGIN + Duration::from_millis(millis));
        }
        bench.now = Instant::ORIGIN + Duration::from_millis(at);
        let free = bench.set(free);
        let has_its_turn = bench.with(|lock, effects| lock.has_its_turn(free, effects));
        assert_eq!(has_its_turn, has, "{numbers:?} {within} {told:?} {free:?} {at}");
    }
}

#[test]
fn a_lost_round_of_a_fair_lock_ends_early_only_if_a_quorum_may_grant_the_next_one() {
    // Masters that refuse, that grant, and on which the key is free then.
    for (refuse, grant, free, ends) in [
        (&[0, 1, 2][..], &[][..], &[][..], false),
        (&[0, 1, 2], &[], &[0, 1], false),
        // The fourth has not answered.
        (&[0, 1, 2], &[], &[0, 1, 3], false),
        (&[0, 1, 2], &[], &[0, 1, 2], true),
        (&[0, 1, 2], &[3], &[0, 1], true),
        // It is not lost yet.
        (&[0, 1], &[2], &[0, 1], false),
    ] {
        let mut bench = Bench::of(5, true);
        let round = bench.attempt();
        refuse.iter().for_each(|master| bench.answer(*master, &round, queued(1)));
        grant.iter().for_each(|master| bench.answer(*master, &round, Answer::Yes));
        let set = bench.set(free);
        let report = bench.with(|lock, effects| lock.freed(set, effects));
        let is_lost = matches!(report, Report::RoundLost(_));
        assert_eq!(is_lost, ends, "{refuse:?} refuse, {grant:?} grant, {free:?} are free: {report:?}");
    }
}

#[test]
fn a_lock_that_others_may_want_is_released_on_the_first_master_before_the_others() {
    for (are_wary, is_contended) in
        [([false, false], false), ([true, false], true), ([false, true], true), ([true, true], true)]
    {
        let mut bench = Bench::of(3, false);
        for is_wary in are_wary {
            let attempt = Attempt { is_wary, ..Attempt::default() };
            bench.with(|lock, effects| lock.attempt(attempt, effects)).unwrap();
        }
        let Order { request, .. } = bench.orders().pop().unwrap();
        (0..3).for_each(|master| bench.answer(master, &request, Answer::Yes));
        bench.with(Lock::take).0.unwrap();
        let first = bench.with(|lock, effects| effects.first_master(lock.targets())).unwrap();
        bench.with(Lock::release);
        let all = MasterSet::all(3);
        let expected = match is_contended {
            true => vec![MasterSet::only(first), all.without(MasterSet::only(first))],
            false => vec![all],
        };
        let released: Vec<_> = bench.orders().into_iter().map(|order| order.to).collect();
        assert_eq!(released, expected, "{are_wary:?}");
    }
}

#[test]
fn each_master_is_the_first_one_for_some_resources() {
    let mut bench = Bench::of(3, false);
    let mut first = [0; 3];
    for number in 0..60 {
        let targets = Targets::from(Resource::new(format!("job:{number}")).unwrap());
        first[bench.with(|_, effects| effects.first_master(&targets)).unwrap().index()] += 1;
    }
    assert!(first.iter().all(|resources| *resources >= 10), "{first:?}");
}
