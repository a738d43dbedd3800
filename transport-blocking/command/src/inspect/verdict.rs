//! What the masters' answers amount to.

use std::time::Duration;

use quorlock_core::Quorum;

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

#[cfg(test)]
mod tests {
    use quorlock_blocking::Config;
    use quorlock_core::Cause;

    use super::*;

    /// What masters with these letters amount to: a holder's letter for its key, `.` for none, `?` for silence, `q` for a quarantine, `r` for a
    /// replica without the key, `x` for another type. The first of a holder's keys lives for a second, the next for two, and so on.
    fn verdict(masters: &str) -> Verdict {
        let config = Config::new((0..masters.len()).map(|place| format!("redis://m{place}"))).unwrap();
        let mut lives = [0, 0, 0];
        let answers: Vec<Answer<Said>> = masters
            .bytes()
            .map(|letter| {
                Ok(match letter {
                    b'?' => return Err(Cause::Closed),
                    b'.' => Said::of(Key::Free, Standing::Votes),
                    b'q' => Said::of(Key::Free, Standing::Quarantined(Duration::from_secs(1))),
                    b'r' => Said::of(Key::Free, Standing::Replica),
                    b'x' => Said::of(Key::OtherType, Standing::Votes),
                    _ => {
                        let holder = usize::from(letter - b'a');
                        lives[holder] += 1;
                        let left = Some(Duration::from_secs(lives[holder]));
                        Said::of(Key::Held { holder, left }, Standing::Votes)
                    }
                })
            })
            .collect();
        Verdict::of(&answers, config.quorum())
    }

    #[test]
    fn a_quorum_decides() {
        // It is held while the third of four keys lives.
        let left = Some(Duration::from_secs(2));
        assert_eq!(verdict("aaaa.").state, State::Held { holder: 0, on: 4, left });
        assert_eq!(
            verdict("abb").state,
            State::Held { holder: 1, on: 2, left: Some(Duration::from_secs(1)) }
        );
        for masters in ["...", "a..", ".?.", "ab...", "q.."] {
            assert_eq!(verdict(masters).state, State::Free, "{masters}");
        }
    }

    #[test]
    fn nobody_has_a_quorum_only_where_nobody_can_have_one() {
        for masters in ["ab.", "abc", "aabb.", "xx.", "abx", "aabc."] {
            assert_eq!(verdict(masters).state, State::Split, "{masters}");
        }
        for masters in ["a.?", "a?q", "ab?", "??.", "aabb?", "aq.", "arr", "???"] {
            assert_eq!(verdict(masters).state, State::Unknown, "{masters}");
        }
    }

    #[test]
    fn one_key_that_never_ends_does_not_make_a_quorum_that_never_ends() {
        let config = Config::new(["redis://a", "redis://b", "redis://c"]).unwrap();
        let key = |left| Ok(Said::of(Key::Held { holder: 0, left }, Standing::Votes));
        let second = Some(Duration::from_secs(1));
        let left = |lives: [Option<Duration>; 3]| match Verdict::of(&lives.map(key), config.quorum()).state {
            State::Held { left, .. } => left,
            state => panic!("{state:?}"),
        };
        assert_eq!(left([None, second, second]), second);
        assert_eq!(left([None, None, second]), None);
    }
}
