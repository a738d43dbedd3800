//! Whatever becomes of the connection: each request is answered in time, and no acquisition is
//! written behind its release.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Acquire,
    /// Releases one of the locks requested so far.
    Release(u8),
    Pass(u64),
    /// The master answers its oldest command.
    Reply,
    /// The requested connection opens and greets.
    Connect,
    /// The connection, or its opening, ends.
    End,
    /// Another connection is to replace this one.
    Renew,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Acquire),
        3 => any::<u8>().prop_map(Step::Release),
        4 => (1_u64..30).prop_map(Step::Pass),
        4 => Just(Step::Reply),
        3 => Just(Step::Connect),
        1 => Just(Step::End),
        1 => Just(Step::Renew),
    ];
    prop::collection::vec(step, 1..80)
}

const REQUEST: Duration = ms(50);
const CONNECT: Duration = ms(100);
/// A connection that drains, is closed, opens twice, and is silent.
const LONGEST: Duration = ms(50 + 2 * 100 + 50);
/// How often time passes.
const TICK: Duration = ms(5);

struct Watched {
    alone: Alone,
    /// When each acquisition was submitted, in the order of their numbers, until it is answered.
    open: Vec<Option<Instant>>,
    /// Whether each acquisition was submitted to be released, and whether that was written.
    is_released: Vec<bool>,
    release_written: Vec<bool>,
    /// The commands on the present connection, and whether they set a key.
    unanswered: VecDeque<bool>,
}

impl Watched {
    fn take_step(&mut self, step: Step) {
        let Alone { connection, answers, now } = &mut self.alone;
        match step {
            Step::Acquire if self.open.len() < 200 => {
                let number = u8::try_from(self.open.len()).unwrap();
                self.open.push(Some(*now));
                self.is_released.push(false);
                self.release_written.push(false);
                self.alone.submit(Action::Acquire, number);
            }
            Step::Release(of) if !self.open.is_empty() => {
                let number = usize::from(of) % self.open.len();
                if !std::mem::replace(&mut self.is_released[number], true) {
                    let release = request(Action::Release, u8::try_from(number).unwrap());
                    // Nobody waits any longer for the answer to this acquisition.
                    self.open[number] = None;
                    let release = Request { ticket: None, ..release };
                    connection.submit(&release, &mut Wording::default(), *now, answers);
                }
            }
            Step::Acquire | Step::Release(_) => {}
            Step::Pass(span) => {
                let end = *now + ms(span);
                while self.alone.now < end {
                    self.alone.pass(TICK);
                    self.look();
                }
            }
            Step::Reply => {
                if let (State::Ready | State::Draining { .. }, Some(sets)) =
                    (&connection.state, self.unanswered.pop_front())
                {
                    self.alone.hear(if sets { b"+OK\r\n" } else { b":1\r\n" });
                }
            }
            Step::Connect => {
                if let State::Opening { .. } = connection.state {
                    let generation = connection.generation;
                    connection.connected(generation, None, *now);
                    self.look();
                    self.unanswered.clear();
                    self.alone.hear(&greeting(RELEASE.sha1_hex));
                }
            }
            Step::End => {
                let generation = connection.generation;
                connection.closed(generation, Cause::Closed, *now, answers);
            }
            Step::Renew => {
                let generation = connection.generation;
                connection.renew(generation, *now, answers);
            }
        }
        self.look();
    }

    /// Reads what was answered and written.
    fn look(&mut self) {
        while let Some((_, upward)) = self.alone.answers.next() {
            if let Some((ticket, _)) = as_answer(&upward) {
                self.open[ticket.round as usize] = None;
            }
        }
        while self.alone.connection.has_task() {
            let mut bytes = Vec::new();
            self.alone.connection.next_task(&mut bytes, None);
            self.read(&String::from_utf8(bytes).unwrap());
        }
        let now = self.alone.now;
        for (number, since) in self.open.iter().enumerate() {
            let waits = since.map(|since| now.since(since));
            assert!(waits.is_none_or(|waits| waits <= LONGEST + TICK), "{number} is not answered");
        }
    }

    fn read(&mut self, written: &str) {
        let mut commands = BTreeMap::new();
        for number in 0..self.open.len() {
            let digits = format!("{number:02x}").repeat(Token::BYTES);
            let set = format!("SET\r\n$1\r\nr\r\n$40\r\n{digits}");
            for (place, _) in written.match_indices(&digits) {
                let sets = written[..place + digits.len()].ends_with(&set);
                commands.insert(place, sets);
                if sets {
                    assert!(!self.release_written[number], "acquisition {number} follows its release");
                } else {
                    self.release_written[number] = true;
                }
            }
        }
        self.unanswered.extend(commands.into_values());
    }
}

proptest! {
    #[test]
    fn each_request_is_answered_in_time_and_no_acquisition_follows_its_release(steps in steps()) {
        let settings = Config::builder(["redis://a"]).request_timeout(REQUEST).connect_timeout(CONNECT);
        let alone = Alone::ready(settings);
        let (open, is_released, release_written) = (Vec::new(), Vec::new(), Vec::new());
        let mut watched = Watched { alone, open, is_released, release_written, unanswered: VecDeque::new() };
        steps.into_iter().for_each(|step| watched.take_step(step));
        watched.take_step(Step::Pass(1_000));
    }
}
