//! Every table of answers to an extension and to a release, in every order: the reported outcome,
//! and the answer that decides it.

use std::collections::BTreeSet;

use quorlock_core::{Event, ExtendError, LockId, LossCause, ReleaseOutcome};

use super::votes::{Says, orders, table};
use super::world::{Flow, World, ms, wanted};

/// Tables of up to three masters in every order, and those of four and five in two orders.
fn each(play: impl Fn(&World, LockId, &[Says], &[usize])) {
    for masters in 1..=5 {
        let mut ready = World::of(masters);
        let lock = ready.hold(&wanted(ms(10_000)));
        let orders = match masters {
            1..=3 => orders(masters),
            _ => vec![(0..masters).collect(), (0..masters).rev().collect()],
        };
        for number in 0..4usize.pow(u32::try_from(masters).unwrap()) {
            let table = table(number, masters);
            let mut played = BTreeSet::new();
            for order in &orders {
                let answering = order.iter().copied().filter(|&master| table[master] != Says::Nothing);
                let order: Vec<_> = answering.collect();
                if played.insert(order.clone()) {
                    play(&ready, lock, &table, &order);
                }
            }
        }
    }
}

/// Masters that answer `command` as the table says once their replies are delivered.
fn prepare(world: &mut World, table: &[Says], command: &'static str) {
    for (master, says) in world.masters.iter_mut().zip(table) {
        master.flow = if *says == Says::Nothing { Flow::Stopped } else { Flow::RepliesHeld };
        match says {
            Says::Held => master.forget_keys(),
            Says::Error => master.fails(command, "LOADING Redis is loading the dataset in memory"),
            Says::Granted | Says::Nothing => {}
        }
    }
}

/// The answers so far.
#[derive(Clone, Copy)]
struct Heard {
    masters: usize,
    ours: usize,
    not_ours: usize,
    outstanding: usize,
}

impl Heard {
    fn nothing(masters: usize) -> Self {
        Self { masters, ours: 0, not_ours: 0, outstanding: masters }
    }

    fn hear(&mut self, says: Says) {
        self.ours += usize::from(says == Says::Granted);
        self.not_ours += usize::from(says == Says::Held);
        self.outstanding -= 1;
    }

    fn is_quorum(self, votes: usize) -> bool {
        2 * votes > self.masters
    }

    /// The masters that may still hold it are not a quorum.
    fn is_gone(self) -> bool {
        !self.is_quorum(self.masters - self.not_ours)
    }

    fn may_be_gone(self) -> bool {
        !self.is_quorum(self.masters - self.not_ours - self.outstanding)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Extended,
    NoQuorum,
    Lost,
    StillOurs,
    NotOurs,
    Unknown,
}

fn told(world: &mut World) -> Vec<Told> {
    let events = world.nodes[0].events.drain(..);
    events
        .filter_map(|(_, event)| match event {
            Event::Extended { result: Ok(_), .. } => Some(Told::Extended),
            Event::Extended { result: Err(ExtendError::NoQuorum(_)), .. } => Some(Told::NoQuorum),
            Event::Extended { result: Err(ExtendError::Lost(_)), .. } => None,
            Event::Lost { cause: LossCause::NotHeld, .. } => Some(Told::Lost),
            Event::Released { outcome: ReleaseOutcome::StillOurs, .. } => Some(Told::StillOurs),
            Event::Released { outcome: ReleaseOutcome::NotOurs, .. } => Some(Told::NotOurs),
            Event::Released { outcome: ReleaseOutcome::Unknown(_), .. } => Some(Told::Unknown),
            event => panic!("{event:?}"),
        })
        .collect()
}

#[test]
fn every_table_of_answers_to_a_release_ends_it_at_the_answer_that_decides() {
    each(|ready, lock, table, order| {
        let mut world = ready.clone();
        prepare(&mut world, table, "RELEASE");
        world.release(lock);
        let mut heard = Heard::nothing(table.len());
        let mut last = None;
        for &master in order {
            world.deliver(0, master);
            heard.hear(table[master]);
            let expected = match last {
                Some(_) => None,
                None if heard.is_quorum(heard.ours) => Some(Told::StillOurs),
                None if heard.is_gone() => Some(Told::NotOurs),
                None if !heard.is_quorum(heard.ours + heard.outstanding) && !heard.may_be_gone() => {
                    Some(Told::Unknown)
                }
                None => None,
            };
            last = expected.or(last);
            assert_eq!(told(&mut world), Vec::from_iter(expected), "{table:?} {order:?} at m{master}");
        }
        world.pass(ms(60));
        let expected = last.is_none().then_some(Told::Unknown);
        assert_eq!(told(&mut world), Vec::from_iter(expected), "{table:?} {order:?} at the timeout");
    });
}

#[test]
fn every_table_of_answers_to_an_extension_ends_it_at_the_answer_that_decides() {
    each(|ready, lock, table, order| {
        let mut world = ready.clone();
        prepare(&mut world, table, "EXTEND");
        world.extend(lock, ms(10_000));
        let mut heard = Heard::nothing(table.len());
        let mut last = None;
        for &master in order {
            world.deliver(0, master);
            heard.hear(table[master]);
            let expected = match last {
                Some(Told::Extended | Told::Lost) => None,
                _ if heard.is_gone() => Some(Told::Lost),
                // The extension has failed: further answers only matter for a loss.
                Some(_) => None,
                None if heard.is_quorum(heard.ours) => Some(Told::Extended),
                None if !heard.is_quorum(heard.ours + heard.outstanding) => Some(Told::NoQuorum),
                None => None,
            };
            last = expected.or(last);
            assert_eq!(told(&mut world), Vec::from_iter(expected), "{table:?} {order:?} at m{master}");
        }
        world.pass(ms(60));
        let expected = last.is_none().then_some(Told::NoQuorum);
        assert_eq!(told(&mut world), Vec::from_iter(expected), "{table:?} {order:?} at the timeout");
    });
}
