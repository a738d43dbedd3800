//! The floor of locks that are held: the same number of renewals, in turns of a millisecond.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::socket::Asked;
use super::worker::command;
use super::{Raw, load};

const EXTEND: &str = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end";
/// Commands that are due within this time are sent together.
const TURN: Duration = Duration::from_millis(1);
/// How many locks are taken in one write.
const STEP: usize = 100;

/// The command that renews each lock.
pub(crate) struct Renewals(Vec<Vec<u8>>);

impl Raw {
    /// Takes `locks` locks, and returns the commands that renew them.
    pub(crate) fn hold(&mut self, addresses: &[SocketAddr], locks: usize, ttl: Duration) -> Renewals {
        let mut renewals = Vec::with_capacity(locks);
        let extend = load(addresses, EXTEND);
        let ttl = ttl.as_millis().to_string();
        for number in 0..locks {
            let (key, token) = (format!("held-{number}"), number.to_string());
            let acquire = command(&["SET", &key, &token, "NX", "PX", &ttl]);
            self.send(Asked { worker: number, phase: 0 }, &acquire);
            renewals.push(command(&["EVALSHA", &extend, "1", &key, &token, &ttl]));
            if number % STEP == 0 {
                while self.turn(None) {}
            }
        }
        while self.turn(None) {}
        Renewals(renewals)
    }

    /// Renews each lock once in each period, evenly spread.
    pub(crate) fn renew(&mut self, Renewals(renewals): &Renewals, period: Duration, span: Duration) {
        let pause = period / u32::try_from(renewals.len()).expect("as many locks as there are");
        let begin = Instant::now();
        let mut due = begin;
        for (number, renewal) in renewals.iter().enumerate().cycle() {
            while due.saturating_duration_since(Instant::now()) > Duration::ZERO {
                self.turn(Some(TURN));
            }
            if begin.elapsed() > span {
                break;
            }
            self.send(Asked { worker: number, phase: 1 }, renewal);
            due += pause;
        }
        while self.turn(None) {}
    }
}
