//! A worker of the floor: one lock that is taken repeatedly.

use crate::client::{TTL, resource};

/// How many digits a token has.
const DIGITS: usize = 20;

/// A worker. Its commands are created once; only the token in them is replaced each time.
pub(super) struct Worker {
    acquire: Vec<u8>,
    release: Vec<u8>,
    /// Where the token begins in the command that acquires. The command that releases ends with the
    /// token.
    token: usize,
    /// Even while it acquires, odd while it releases.
    phase: u64,
    votes: usize,
}

impl Worker {
    /// Creates a worker with its own key. `release` is the SHA-1 of the script that releases.
    pub(super) fn new(number: usize, release: &str) -> Self {
        let key = resource(number);
        let token = "0".repeat(DIGITS);
        let acquire = command(&["SET", &key, &token, "NX", "PX", &TTL.as_millis().to_string()]);
        let release = command(&["EVALSHA", release, "1", &key, &token]);
        let place = command(&["SET", &key]).len() + format!("${DIGITS}\r\n").len();
        Self { acquire, release, token: place, phase: 0, votes: 0 }
    }

    pub(super) fn phase(&self) -> u64 {
        self.phase
    }

    /// Whether the majority that was just reached granted the lock, rather than released it.
    pub(super) fn is_granted(&self) -> bool {
        self.phase % 2 == 0
    }

    pub(super) fn acquire(&self) -> &[u8] {
        &self.acquire
    }

    pub(super) fn release(&self) -> &[u8] {
        &self.release
    }

    /// Counts a vote. Returns true for the vote that completes the majority.
    pub(super) fn has_majority(&mut self, phase: u64, majority: usize) -> bool {
        if phase != self.phase {
            return false;
        }
        self.votes += 1;
        self.votes == majority
    }

    /// Begins the next phase, and returns it.
    pub(super) fn next(&mut self) -> u64 {
        self.votes = 0;
        self.phase += 1;
        self.phase
    }

    /// Writes another token into both commands.
    pub(super) fn draw(&mut self, mut token: u64) {
        let mut digits = [b'0'; DIGITS];
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + u8::try_from(token % 10).unwrap_or_default();
            token /= 10;
        }
        let ending = self.release.len() - DIGITS - 2;
        for (command, place) in [(&mut self.acquire, self.token), (&mut self.release, ending)] {
            if let Some(token) = command.get_mut(place..place + DIGITS) {
                token.copy_from_slice(&digits);
            }
        }
    }
}

/// A command as it is sent.
pub(super) fn command(words: &[&str]) -> Vec<u8> {
    let header = format!("*{}\r\n", words.len());
    words.iter().fold(header, |bytes, word| bytes + &format!("${}\r\n{word}\r\n", word.len())).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_commands_contain_the_token() {
        let mut worker = Worker::new(7, "sha");
        worker.draw(1_234);
        let token = "00000000000000001234";
        let key = resource(7);
        assert_eq!(worker.acquire(), command(&["SET", &key, token, "NX", "PX", "10000"]));
        assert_eq!(worker.release(), command(&["EVALSHA", "sha", "1", &key, token]));
    }

    #[test]
    fn only_votes_of_this_phase_count_and_the_majority_is_reported_once() {
        let mut worker = Worker::new(0, "sha");
        assert!(worker.is_granted());
        assert_eq!([0, 0, 0].map(|phase| worker.has_majority(phase, 2)), [false, true, false]);
        assert_eq!(worker.next(), 1);
        assert!(!worker.is_granted());
        assert_eq!([0, 1, 1].map(|phase| worker.has_majority(phase, 2)), [false, false, true]);
    }
}
