//! What the masters' answers amount to.

use std::time::Duration;

use quorlock_blocking::Quorum;

use super::{Answer, Key, Said, Standing};

/// How a lock stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// One holder has it on a quorum of masters.
    Held {
        /// Which.
        holder: usize,
        /// On how many masters.
        on: usize,
        /// How long it has a quorum, unless it is renewed or released; `None` if it never ends.
        left: Option<Duration>,
    },
    /// Nobody has it on a quorum of masters, and a quorum would grant it.
    Free,
    /// Masters disagree: nobody has a quorum, and as they stand nobody can get one.
    Split,
    /// It depends on masters that did not answer.
    Unknown,
}

/// What the masters' answers amount to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) state: State,
    pub(crate) quorum: Quorum,
    /// How many masters told what counts.
    pub(crate) answered: usize,
    /// How many would grant it.
    pub(crate) free: usize,
    /// On how many masters each holder has it.
    pub(crate) held: Vec<usize>,
    /// How many have something else there.
    pub(crate) other_type: usize,
}

impl Verdict {
    pub(crate) fn of(answers: &[Answer<Said>], quorum: Quorum) -> Self {
        // For each holder, how long each of its keys lives; what never ends comes last.
        let mut lives: Vec<Vec<(bool, Duration)>> = Vec::new();
        let (mut free, mut other_type) = (0, 0);
        for said in answers.iter().flatten() {
            let has_vote = !matches!(said.standing, Standing::Replica | Standing::SameAs(_));
            match said.key {
                // A key is there although the master would not vote now: nobody else gets it.
                Key::Held { holder, left } if has_vote => {
                    lives.resize(lives.len().max(holder + 1), Vec::new());
                    if let Some(lives) = lives.get_mut(holder) {
                        lives.push((left.is_none(), left.unwrap_or_default()));
                    }
                }
                // What a master has forgotten may be held all the same.
                Key::Free if said.standing == Standing::Votes => free += 1,
                Key::OtherType if has_vote => other_type += 1,
                _ => {}
            }
        }
        let held: Vec<usize> = lives.iter().map(Vec::len).collect();
        let answered = held.iter().sum::<usize>() + free + other_type;
        let silent = quorum.masters() - answered.min(quorum.masters());
        let most = lives.iter().enumerate().max_by_key(|(_, lives)| lives.len());
        let (holder, most) = most.map_or((0, &[][..]), |(holder, lives)| (holder, lives.as_slice()));
        let state = if most.len() >= quorum.needed() {
            let mut lives = most.to_vec();
            lives.sort_unstable();
            // Once this one ends, fewer than a quorum are left.
            let last = lives.get(lives.len() - quorum.needed()).copied().unwrap_or_default();
            State::Held { holder, on: most.len(), left: if last.0 { None } else { Some(last.1) } }
        } else if free >= quorum.needed() {
            State::Free
        } else if most.len() + silent < quorum.needed() && free + silent < quorum.needed() {
            State::Split
        } else {
            State::Unknown
        };
        Self { state, quorum, answered, free, held, other_type }
    }
}
