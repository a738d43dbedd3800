//! The machine alone.

use std::time::Duration;

use quorlock_core::{
    Acquire, Entropy, EntropyFailed, Event, Instant, LockId, Machine, MasterId, Output, Resource, Ttl,
};

use crate::Pairs;
use crate::masters::{GRANTED, Masters, RELEASED};

/// Consecutive numbers as tokens: the cost of random bytes is not the machine's.
struct Counter(u64);

impl Entropy for Counter {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyFailed> {
        self.0 += 1;
        bytes.iter_mut().zip(self.0.to_le_bytes()).for_each(|(byte, part)| *byte = part);
        Ok(())
    }
}

pub(crate) struct ByHand {
    machine: Machine<Counter>,
    masters: Vec<(MasterId, u32)>,
    wanted: Vec<Acquire>,
    locks: Vec<LockId>,
    replies: Vec<u8>,
    now: Instant,
}

impl ByHand {
    pub(crate) fn new(number: usize, at_once: usize) -> Self {
        let now = Instant::ORIGIN;
        let mut machine = Machine::new(Masters::config(number), Counter(0), now);
        let mut servers = Masters::new(number);
        let mut masters = Vec::new();
        loop {
            let mut connected = Vec::new();
            let mut received = Vec::new();
            loop {
                match machine.poll_output() {
                    Output::Connect { master, generation, .. } => connected.push((master, generation)),
                    Output::Write { master, generation, bytes } => {
                        received.push((master, generation, servers.greet(master.index(), bytes)));
                    }
                    Output::Wake(_) => break,
                    Output::Close { .. } | Output::Event(_) => {}
                }
            }
            if connected.is_empty() && received.is_empty() {
                break;
            }
            for &(master, generation) in &connected {
                machine.connected(master, generation, now);
            }
            masters.append(&mut connected);
            for (master, generation, bytes) in received {
                machine.received(master, generation, &bytes, now);
            }
        }
        let ttl = Ttl::new(Duration::from_secs(10)).expect("a TTL");
        let resource = |number| Resource::new(format!("resource:{number}")).expect("a name");
        let wanted = (0..at_once).map(|number| Acquire::new(resource(number), ttl)).collect();
        Self { machine, masters, wanted, locks: Vec::new(), replies: Vec::new(), now }
    }

    /// Takes all outputs, and returns how many of them were events. There is nothing to carry out.
    fn drain(&mut self) -> usize {
        let mut events = 0;
        loop {
            match self.machine.poll_output() {
                Output::Event(event) => {
                    assert!(matches!(event, Event::Granted { .. } | Event::Released { .. }));
                    events += 1;
                }
                Output::Write { .. } => {}
                Output::Connect { .. } | Output::Close { .. } => unreachable!("no connection ends"),
                Output::Wake(_) => return events,
            }
        }
    }

    /// Every master answers whatever it was asked.
    fn answer(&mut self, reply: &[u8]) {
        self.now = self.now + Duration::from_micros(20);
        self.replies.clear();
        (0..self.wanted.len()).for_each(|_| self.replies.extend_from_slice(reply));
        for &(master, generation) in &self.masters {
            self.machine.received(master, generation, &self.replies, self.now);
        }
        self.machine.time_passed(self.now);
        assert_eq!(self.drain(), self.wanted.len());
    }
}

impl Pairs for ByHand {
    fn run(&mut self, pairs: usize) {
        for _ in 0..pairs / self.wanted.len() {
            self.locks.clear();
            for wanted in &self.wanted {
                self.locks.push(self.machine.acquire(wanted, self.now).expect("there is room"));
            }
            self.drain();
            self.answer(GRANTED);
            for lock in &self.locks {
                assert!(self.machine.take(*lock, self.now).is_some());
                self.machine.release(*lock, self.now);
            }
            self.drain();
            self.answer(RELEASED);
        }
    }
}
