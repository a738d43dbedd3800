use std::collections::BTreeSet;

use super::*;
use crate::lock::Attempt;
use crate::lock::tests::Bench;
use crate::protocol::Acquire;

/// A lock that has asked one master to assign `take` of `of` permits.
fn asking(take: u32, of: u32, fenced: bool) -> (Bench, MasterId) {
    let mut bench = Bench::new(3, |config| {
        let permits = config.permits_at_once("gpu", of, take).unwrap();
        Acquire { fenced, ..Acquire::new(permits, config.ttl) }
    });
    bench.with(|lock, effects| lock.attempt(Attempt::default(), effects)).unwrap();
    let orders = bench.orders();
    let [first] = (0..3).filter(|place| orders[0].to.contains(bench.master(*place))).collect::<Vec<_>>()[..]
    else {
        panic!("{orders:?}")
    };
    let first = bench.master(first);
    (bench, first)
}

fn choose(cx: &mut Context<'_, '_>, seats: Seats) {
    cx.keys.seating.as_mut().unwrap().chosen = Some(seats);
}

fn held(holder: u64, seconds: Option<u64>, watched: bool) -> Answer {
    Answer::Holder { holder, remaining: seconds.map(Duration::from_secs), watched }
}

const ASKING: Asking = Asking { round: 1, watch: false, waited: None, is_open: true };

#[test]
fn the_next_attempt_begins_behind_the_refused_seat_and_after_a_turn_of_all_masters_anywhere() {
    let (mut bench, _) = asking(1, 8, false);
    bench.inside(|cx| {
        choose(cx, Seats::new(3, 8, 1).unwrap());
        for attempts in 1..=3 {
            cx.base.attempts = attempts;
            cx.skip_seats();
            assert_eq!(cx.base.seat_from, 4, "after attempt {attempts}");
        }
        cx.base.attempts = 4;
        let mut begins = || {
            cx.skip_seats();
            cx.base.seat_from
        };
        let begins: BTreeSet<_> = (0..200).map(|_| begins()).collect();
        assert!(begins.iter().copied().eq(0..8), "{begins:?}");
    });
}

#[test]
fn no_window_has_more_seats_than_it_needs_for_those_that_it_deals_with() {
    for (of, take) in (1..=200).flat_map(|of| [1, 2, 49, 50, 64].map(|take| (of, take))) {
        let Some(take) = Some(take).filter(|take| *take <= of) else { continue };
        let (mut bench, master) = asking(take.into(), of.into(), false);
        bench.inside(|cx| {
            let seating = cx.keys.seating.as_ref().unwrap();
            let (mut last, mut dealt_with) = (None, 0);
            while let Some(window) = seating.window_after(last.as_ref(), master, cx.keys.token, false) {
                dealt_with += window.step;
                let needed = (window.step + take - 1).min(Seats::MOST).min(of);
                assert_eq!(window.length, needed, "{take} of {of}: {window:?}");
                last = Some(window);
            }
            assert_eq!(dealt_with, of);
        });
    }
}

#[test]
fn a_fenced_permit_that_is_assigned_without_a_number_is_not_ours() {
    for fenced in [false, true] {
        let (mut bench, first) = asking(1, 4, fenced);
        let seats = Answer::Seats { places: 1, number: None };
        let Said::All(answer) = bench.inside(|cx| cx.chosen_by(first, seats, ASKING)) else { panic!() };
        let is_wrong = matches!(answer, Answer::Failed { cause: Cause::UnexpectedReply, .. });
        assert_eq!((is_wrong, answer == Answer::Yes), (fenced, !fenced), "{answer:?}");
    }
}

#[test]
fn a_master_that_refused_a_window_is_asked_for_the_chosen_seats_only_in_an_open_round() {
    for is_open in [true, false] {
        let (mut bench, first) = asking(1, 4, false);
        let refusal = held(7, None, true);
        let said = bench.inside(|cx| {
            choose(cx, Seats::new(0, 4, 1).unwrap());
            cx.chosen_by(first, refusal, Asking { is_open, ..ASKING })
        });
        assert_eq!(matches!(said, Said::Some(_)), is_open);
        assert_eq!(bench.orders().len(), usize::from(is_open));
    }
}

#[test]
fn the_refusals_of_two_windows_name_the_seat_that_ends_first_or_is_kept_for_a_longer_waiter() {
    let wanted = Sentinel::WANTED;
    for (earlier, later, expected) in [
        (held(1, Some(3), true), held(2, Some(5), true), held(1, Some(3), true)),
        (held(1, Some(5), true), held(2, Some(3), true), held(2, Some(3), true)),
        (held(1, None, true), held(2, Some(3), true), held(2, Some(3), true)),
        (held(1, Some(3), true), held(2, None, true), held(1, Some(3), true)),
        (held(1, Some(3), true), held(wanted, Some(5), true), held(wanted, Some(5), true)),
        (held(wanted, Some(5), true), held(2, Some(3), true), held(wanted, Some(5), true)),
        // It is notified of both, or must ask.
        (held(1, Some(3), false), held(2, Some(5), true), held(1, Some(3), false)),
        (held(1, Some(3), true), held(2, Some(5), false), held(1, Some(3), false)),
        // Only a refusal has another one behind it.
        (held(1, Some(3), true), Answer::No, Answer::No),
    ] {
        assert_eq!(of_both_windows(earlier, later), expected, "{earlier:?}, {later:?}");
    }
}
