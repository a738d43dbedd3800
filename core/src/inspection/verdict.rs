//! What the masters' answers amount to.

use std::time::Duration;

use crate::protocol::{
    Cause, Holder, Holding, KeyState, LockState, Marker, MasterAnswer, Quorum, Said, SaidKey, Standing,
    Verdict,
};

/// The answers with their holders numbered, in the order of the masters.
pub(super) fn answers(said: impl Iterator<Item = Result<Said, Cause>>) -> Vec<Result<MasterAnswer, Cause>> {
    let mut fingerprints: Vec<u64> = Vec::new();
    let answer = |said: Said| {
        let key = match said.key {
            SaidKey::Free => KeyState::Free,
            SaidKey::OtherType => KeyState::OtherType,
            SaidKey::Held { fingerprint, remaining, is_ours } => {
                let known = fingerprints.iter().position(|known| *known == fingerprint);
                let number = known.unwrap_or_else(|| {
                    fingerprints.push(fingerprint);
                    fingerprints.len() - 1
                });
                KeyState::Held { holder: Holder { number, fingerprint, is_ours }, remaining }
            }
        };
        MasterAnswer { key, standing: Standing::Votes, server: said.server, marker: said.marker }
    };
    let mut answer = answer;
    said.map(|said| said.map(&mut answer)).collect()
}

/// A master without a marker among others that have one has lost it.
pub(super) fn look_for_lost_markers(answers: &mut [Result<MasterAnswer, Cause>]) {
    let longest = |answer: &MasterAnswer| match answer.marker {
        Marker::Present { longest, .. } => Some(longest),
        Marker::Absent | Marker::Unknown => None,
    };
    let Some(of_all) = answers.iter().flatten().filter_map(longest).max() else { return };
    for answer in answers.iter_mut().flatten() {
        answer.standing = match answer.marker {
            Marker::Present { is_own: false, longest, .. } => Standing::Unnoticed { quarantine: longest },
            Marker::Present { left, .. } if !left.is_zero() => Standing::Quarantined { remaining: left },
            Marker::Absent => Standing::Unnoticed { quarantine: of_all },
            Marker::Present { .. } | Marker::Unknown => Standing::Votes,
        };
    }
}

/// What the answers amount to, counted over all masters.
pub(super) fn of(answers: &[Result<MasterAnswer, Cause>], quorum: Quorum) -> Verdict {
    // For each holder, how long each of its keys lives; what never ends comes last.
    let mut lives: Vec<(Holder, Vec<(bool, Duration)>)> = Vec::new();
    let (mut free, mut other_type) = (0, 0);
    for answer in answers.iter().flatten() {
        match answer.key {
            // A key is there although the master would not vote now: nobody else gets it.
            KeyState::Held { holder, remaining } => {
                let life = (remaining.is_none(), remaining.unwrap_or_default());
                match lives.iter_mut().find(|(known, _)| known.number == holder.number) {
                    Some((_, lives)) => lives.push(life),
                    None => lives.push((holder, vec![life])),
                }
            }
            // What a master has forgotten may be held all the same.
            KeyState::Free => free += usize::from(answer.standing == Standing::Votes),
            KeyState::OtherType => other_type += 1,
        }
    }
    let holders: Vec<_> = lives.iter().map(|(holder, lives)| (*holder, lives.len())).collect();
    let answered = holders.iter().map(|(_, on)| on).sum::<usize>() + free + other_type;
    let silent = quorum.masters().saturating_sub(answered);
    let most = lives.iter_mut().max_by_key(|(_, lives)| lives.len());
    let most_keys = most.as_ref().map_or(0, |(_, lives)| lives.len());
    let state = match most {
        Some((holder, lives)) if lives.len() >= quorum.needed() => {
            lives.sort_unstable();
            // Once this one ends, fewer than a quorum are left.
            let (is_endless, last) = lives.get(lives.len() - quorum.needed()).copied().unwrap_or_default();
            let remaining = (!is_endless).then_some(last);
            LockState::Held(Holding { holder: *holder, on: lives.len(), remaining })
        }
        _ if free >= quorum.needed() => LockState::Free,
        _ if most_keys + silent < quorum.needed() && free + silent < quorum.needed() => LockState::Split,
        _ => LockState::Unknown,
    };
    Verdict { state, answered, free, holders, other_type }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ServerFacts;

    fn said(key: SaidKey, marker: Marker) -> Said {
        Said { key, server: ServerFacts::default(), marker }
    }

    /// What masters with these letters amount to: a holder's letter for its key, `.` for none, `?`
    /// for silence, `q` for a quarantine, `x` for another type. The first of a holder's keys lives
    /// for a second, the next for two, and so on.
    fn verdict(masters: &str) -> Verdict {
        let second = Duration::from_secs(1);
        let mut lives = [0, 0, 0];
        let said = masters.bytes().map(|letter| match letter {
            b'?' => Err(Cause::Closed),
            b'.' => Ok(said(SaidKey::Free, Marker::Unknown)),
            b'q' => {
                let marker = Marker::Present { is_own: true, left: second, longest: second };
                Ok(said(SaidKey::Free, marker))
            }
            b'x' => Ok(said(SaidKey::OtherType, Marker::Unknown)),
            _ => {
                let holder = usize::from(letter - b'a');
                lives[holder] += 1;
                let (fingerprint, remaining) = (letter.into(), Some(second * lives[holder]));
                Ok(said(SaidKey::Held { fingerprint, remaining, is_ours: false }, Marker::Unknown))
            }
        });
        let mut answers = answers(said);
        look_for_lost_markers(&mut answers);
        of(&answers, Quorum::of(masters.len()).unwrap())
    }

    fn held(masters: &str) -> Option<(usize, usize, u64)> {
        match verdict(masters).state {
            LockState::Held(Holding { holder, on, remaining }) => {
                Some((holder.number, on, remaining.map_or(0, |left| left.as_secs())))
            }
            _ => None,
        }
    }

    #[test]
    fn a_quorum_decides() {
        // It is held while the third of four keys lives.
        assert_eq!(held("aaaa."), Some((0, 4, 2)));
        assert_eq!(held("abb"), Some((1, 2, 1)));
        assert_eq!(held("baa"), Some((1, 2, 1)), "holders are numbered as they are met");
        for masters in ["...", "a..", ".?.", "ab...", "q.."] {
            assert_eq!(verdict(masters).state, LockState::Free, "{masters}");
        }
    }

    #[test]
    fn nobody_has_a_quorum_only_where_nobody_can_have_one() {
        for masters in ["ab.", "abc", "aabb.", "xx.", "abx", "aabc."] {
            assert_eq!(verdict(masters).state, LockState::Split, "{masters}");
        }
        for masters in ["a.?", "a?q", "ab?", "??.", "aabb?", "aq.", "???"] {
            assert_eq!(verdict(masters).state, LockState::Unknown, "{masters}");
        }
    }

    #[test]
    fn one_key_that_never_ends_does_not_make_a_quorum_that_never_ends() {
        let second = Some(Duration::from_secs(1));
        let left = |lives: [Option<Duration>; 3]| {
            let key = |remaining| {
                let key = SaidKey::Held { fingerprint: 7, remaining, is_ours: true };
                Ok(said(key, Marker::Absent))
            };
            match of(&answers(lives.map(key).into_iter()), Quorum::of(3).unwrap()).state {
                LockState::Held(holding) => holding.remaining,
                state => panic!("{state:?}"),
            }
        };
        assert_eq!(left([None, second, second]), second);
        assert_eq!(left([None, None, second]), None);
    }

    #[test]
    fn a_master_that_lost_the_marker_that_others_have_is_found() {
        let longest = Duration::from_secs(60);
        let present = |is_own, left| Marker::Present { is_own, left: Duration::from_secs(left), longest };
        let standings = |markers: &[Marker]| {
            let mut answers = answers(markers.iter().map(|marker| Ok(said(SaidKey::Free, *marker))));
            look_for_lost_markers(&mut answers);
            answers.into_iter().flatten().map(|answer| answer.standing).collect::<Vec<_>>()
        };
        assert_eq!(standings(&[Marker::Absent, Marker::Absent]), [Standing::Votes; 2]);
        let markers =
            [present(true, 0), present(true, 7), present(false, 0), Marker::Absent, Marker::Unknown];
        assert_eq!(
            standings(&markers),
            [
                Standing::Votes,
                Standing::Quarantined { remaining: Duration::from_secs(7) },
                Standing::Unnoticed { quarantine: longest },
                Standing::Unnoticed { quarantine: longest },
                Standing::Votes,
            ]
        );
    }
}
