//! The state of a lock according to the masters' answers.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::protocol::{
    Group, Holder, Holding, KeyState, LockState, Marker, Quorum, SaidHolder, SaidKey, Sharing, Standing,
    Verdict,
};

/// The content of a key on one master, and whether it votes.
pub(super) type Told<'a> = (Option<&'a SaidKey>, Standing);

/// Whether each of these masters votes: one without a marker among others that have one has lost
/// it.
pub(super) fn standings(markers: &[Marker]) -> Vec<Standing> {
    let longest = |marker: &Marker| match marker {
        Marker::Present { longest, .. } => Some(*longest),
        Marker::Absent | Marker::Unknown => None,
    };
    let of_all = markers.iter().filter_map(longest).max();
    let standing = |marker: &Marker| match (of_all, *marker) {
        (Some(_), Marker::Present { is_own: false, longest, .. }) => {
            Standing::Unnoticed { quarantine: longest }
        }
        (Some(_), Marker::Present { left, .. }) if !left.is_zero() => {
            Standing::Quarantined { remaining: left }
        }
        (Some(quarantine), Marker::Absent) => Standing::Unnoticed { quarantine },
        _ => Standing::Votes,
    };
    markers.iter().map(standing).collect()
}

/// The remaining life of a key or an entry; one that never expires sorts last.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Life(bool, Duration);

impl Life {
    fn of(remaining: Option<Duration>) -> Self {
        Self(remaining.is_none(), remaining.unwrap_or_default())
    }

    fn remaining(self) -> Option<Duration> {
        (!self.0).then_some(self.1)
    }
}

/// The time after which fewer than a quorum are left.
fn last_of_quorum(lives: &mut [Life], quorum: Quorum) -> Option<Life> {
    lives.sort_unstable();
    lives.len().checked_sub(quorum.needed()).and_then(|place| lives.get(place)).copied()
}

/// One token, with the lives of its keys and of its sharers' entries.
struct Known {
    holder: Holder,
    alone: Vec<Life>,
    shared: Vec<Life>,
}

impl Known {
    fn on(&self) -> usize {
        self.alone.len() + self.shared.len()
    }
}

/// The tokens in the answers about one key, in the order of the masters.
#[derive(Default)]
struct AllKnown {
    numbers: BTreeMap<u64, usize>,
    known: Vec<Known>,
}

impl AllKnown {
    fn note(&mut self, said: &SaidHolder, is_shared: bool) -> Holder {
        let number = *self.numbers.entry(said.fingerprint).or_insert(self.known.len());
        let holder = Holder { number, fingerprint: said.fingerprint, is_ours: said.is_ours };
        if number == self.known.len() {
            self.known.push(Known { holder, alone: Vec::new(), shared: Vec::new() });
        }
        if let Some(known) = self.known.get_mut(number) {
            let lives = if is_shared { &mut known.shared } else { &mut known.alone };
            lives.push(Life::of(said.remaining));
        }
        holder
    }
}

/// A group that has keys, with the number of masters that report its sharers.
struct Sharers {
    group: Group,
    lives: Vec<Life>,
    telling: usize,
}

/// The state of one key, counted over all masters, and each master's content. `None` is a master
/// without an answer.
pub(super) fn of(told: &[Option<Told<'_>>], quorum: Quorum) -> (Verdict, Vec<Option<KeyState>>) {
    let (mut all, mut groups): (_, Vec<Sharers>) = (AllKnown::default(), Vec::new());
    let (mut free, mut other_type, mut wanted_on) = (0, 0, 0);
    let mut state = |(key, standing): Told<'_>| match key {
        None => {
            // A key that a master has forgotten may still be held elsewhere.
            free += usize::from(standing == Standing::Votes);
            KeyState::Free
        }
        // The key exists, so no other client gets it, even if the master does not vote now.
        Some(SaidKey::Held(said)) => {
            KeyState::Held { holder: all.note(said, false), remaining: said.remaining }
        }
        Some(SaidKey::Shared(sharing)) => {
            let place = groups.iter().position(|known| known.group == sharing.group);
            let place = place.unwrap_or_else(|| {
                groups.push(Sharers { group: sharing.group.clone(), lives: Vec::new(), telling: 0 });
                groups.len() - 1
            });
            let sharers = sharing.sharers.as_deref();
            if let Some(known) = groups.get_mut(place) {
                known.lives.push(Life::of(sharing.remaining));
                known.telling += usize::from(sharers.is_some());
            }
            wanted_on += usize::from(sharing.wanted.is_some());
            let mut ours = 0;
            for sharer in sharers.unwrap_or_default() {
                ours += usize::from(all.note(sharer, true).is_ours);
            }
            let (remaining, wanted) = (sharing.remaining, sharing.wanted);
            KeyState::Shared { sharers: sharers.map(<[_]>::len), ours, remaining, wanted }
        }
        Some(SaidKey::OtherType) => {
            other_type += 1;
            KeyState::OtherType
        }
    };
    let states: Vec<_> = told.iter().map(|told| told.map(&mut state)).collect();
    let alone: usize = all.known.iter().map(|known| known.alone.len()).sum();
    let shared: usize = groups.iter().map(|group| group.lives.len()).sum();
    let answered = alone + shared + free + other_type;
    let silent = quorum.masters().saturating_sub(answered);
    let of_keys = |lives: fn(&Known) -> &Vec<Life>| -> Vec<_> {
        let counted = all.known.iter().map(|known| (known.holder, lives(known).len()));
        counted.filter(|(_, on)| *on > 0).collect()
    };
    let (holders, sharers) = (of_keys(|known| &known.alone), of_keys(|known| &known.shared));
    let state = held(&mut all.known, quorum)
        .or_else(|| sharing(&mut all.known, &mut groups, wanted_on, quorum))
        .unwrap_or_else(|| {
            let most = all.known.iter().map(Known::on).max().unwrap_or(0);
            let hidden = groups.iter().map(|group| group.lives.len() - group.telling).max().unwrap_or(0);
            if free >= quorum.needed() {
                LockState::Free
            } else if most.max(free) + hidden + silent < quorum.needed() {
                LockState::Split
            } else {
                LockState::Unknown
            }
        });
    let groups = groups.into_iter().map(|known| (known.group, known.lives.len())).collect();
    (Verdict { state, answered, free, holders, sharers, groups, other_type }, states)
}

/// The holder that has it alone, if there is one.
fn held(known: &mut [Known], quorum: Quorum) -> Option<LockState> {
    known.iter_mut().find_map(|known| {
        let left = last_of_quorum(&mut known.alone, quorum)?;
        let (holder, on) = (known.holder, known.alone.len());
        Some(LockState::Held(Holding { holder, on, remaining: left.remaining() }))
    })
}

/// The sharers, if it is shared. A downgraded lock may still be exclusive on masters that do not
/// know of the downgrade yet; it is shared as soon as one does.
fn sharing(
    known: &mut [Known],
    groups: &mut [Sharers],
    wanted_on: usize,
    quorum: Quorum,
) -> Option<LockState> {
    let largest = groups.iter_mut().max_by_key(|group| group.lives.len())?;
    let on = largest.lives.len();
    let (mut sharers, mut ours, mut last) = (0, 0, None);
    for known in known.iter_mut().filter(|known| !known.shared.is_empty()) {
        let mut lives = [known.alone.as_slice(), &known.shared].concat();
        if let Some(left) = last_of_quorum(&mut lives, quorum) {
            sharers += 1;
            ours += usize::from(known.holder.is_ours);
            last = last.max(Some(left));
        }
    }
    let (sharers, left) = match last {
        Some(left) => (Some(sharers), left),
        None if largest.telling < quorum.needed() => (None, last_of_quorum(&mut largest.lives, quorum)?),
        None => return None,
    };
    Some(LockState::Shared(Sharing { sharers, ours, on, remaining: left.remaining(), wanted_on }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::SaidSharing;

    fn seconds(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    fn token(letter: u8, remaining: Option<Duration>) -> SaidHolder {
        SaidHolder { fingerprint: letter.into(), remaining, is_ours: letter == b'o' }
    }

    /// The verdict on masters with these letters: a holder's letter for its key, `.` for none, `?`
    /// for silence, `q` for a quarantine, `x` for another type. The first of a holder's keys lives
    /// for a second, the next for two, and so on.
    fn verdict(masters: &str) -> Verdict {
        let mut lives = [0; 3];
        let keys = masters.bytes().map(|letter| match letter {
            b'?' => None,
            b'.' | b'q' => Some(None),
            b'x' => Some(Some(SaidKey::OtherType)),
            _ => {
                let life = &mut lives[usize::from(letter - b'a')];
                *life += 1;
                Some(Some(SaidKey::Held(token(letter, seconds(*life)))))
            }
        });
        let keys: Vec<_> = keys.collect();
        let standing = |letter| match letter {
            b'q' => Standing::Quarantined { remaining: Duration::from_secs(1) },
            _ => Standing::Votes,
        };
        let told = keys.iter().zip(masters.bytes());
        let told: Vec<_> =
            told.map(|(key, letter)| key.as_ref().map(|key| (key.as_ref(), standing(letter)))).collect();
        of(&told, Quorum::of(masters.len()).unwrap()).0
    }

    /// The state of a lock that readers share: a master's letters are its readers, one of which may
    /// be `o`, ours; the first lives for a second, the next for two. `*` are readers that it does
    /// not name, `!` is a waiting writer's mark, an upper-case letter is the key of that token
    /// alone, and `-` is no key.
    fn shared(masters: &[&str]) -> LockState {
        of_shared(masters).0.state
    }

    fn of_shared(masters: &[&str]) -> (Verdict, Vec<Option<KeyState>>) {
        let key = |letters: &&str| {
            if *letters == "-" {
                return None;
            }
            if let [letter @ b'A'..=b'Z'] = letters.as_bytes() {
                return Some(SaidKey::Held(token(letter.to_ascii_lowercase(), seconds(1))));
            }
            let readers: Vec<_> = letters.bytes().filter(u8::is_ascii_lowercase).zip(1..).collect();
            let readers: Vec<_> =
                readers.iter().map(|(letter, life)| token(*letter, seconds(*life))).collect();
            Some(SaidKey::Shared(Box::new(SaidSharing {
                group: Group::READERS,
                remaining: seconds(9),
                wanted: letters.contains('!').then_some(Duration::from_secs(1)),
                sharers: (!letters.contains('*')).then_some(readers),
            })))
        };
        let keys: Vec<_> = masters.iter().map(key).collect();
        let told: Vec<_> = keys.iter().map(|key| Some((key.as_ref(), Standing::Votes))).collect();
        of(&told, Quorum::of(masters.len()).unwrap())
    }

    /// The number of sharers, the number of masters with a key, how long the last one has it, and
    /// the number of masters with a mark.
    fn sharing(masters: &[&str]) -> (Option<usize>, usize, Option<Duration>, usize) {
        match shared(masters) {
            LockState::Shared(sharing) => (sharing.sharers, sharing.on, sharing.remaining, sharing.wanted_on),
            state => panic!("{masters:?}: {state:?}"),
        }
    }

    #[test]
    fn readers_count_where_a_quorum_has_each_of_them() {
        // b lives for two seconds on two masters.
        assert_eq!(sharing(&["ab", "ab", "a"]), (Some(2), 3, seconds(2), 0));
        assert_eq!(sharing(&["ab!", "a", "ca!"]), (Some(1), 3, seconds(1), 2));
        assert_eq!(shared(&["a", "b", "c"]), LockState::Split);
        assert_eq!(shared(&["a", "-", "-"]), LockState::Free);
        assert!(matches!(shared(&["ao", "o", "-"]), LockState::Shared(Sharing { ours: 1, .. })));
        assert!(matches!(shared(&["a", "ao", "a"]), LockState::Shared(Sharing { ours: 0, .. })));
    }

    #[test]
    fn each_masters_state_has_the_number_of_readers_that_are_ours() {
        let (_, states) = of_shared(&["ab", "ao", "*", "o"]);
        let ours = states.iter().map(|state| match state {
            Some(KeyState::Shared { ours, .. }) => *ours,
            state => panic!("{state:?}"),
        });
        assert!(ours.eq([0, 1, 0, 1]));
    }

    #[test]
    fn readers_that_are_not_listed_still_count_as_holders() {
        assert_eq!(sharing(&["*", "*", "-"]), (None, 2, seconds(9), 0));
        assert_eq!(sharing(&["a", "*", "-"]), (None, 2, seconds(9), 0));
        assert_eq!(sharing(&["ab", "ab", "*"]), (Some(2), 3, seconds(2), 0));
        assert_eq!(shared(&["a", "b", "*"]), LockState::Unknown);
    }

    #[test]
    fn a_writer_that_was_downgraded_counts_on_masters_that_do_not_know_it_yet() {
        assert_eq!(sharing(&["a", "A", "-"]), (Some(1), 1, seconds(1), 0));
        assert!(matches!(shared(&["A", "A", "a"]), LockState::Held(_)));
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
    fn a_quorum_decides_between_held_and_free() {
        // It is held while the third of four keys lives.
        assert_eq!(held("aaaa."), Some((0, 4, 2)));
        assert_eq!(held("abb"), Some((1, 2, 1)));
        assert_eq!(held("baa"), Some((1, 2, 1)), "holders are numbered as they are met");
        for masters in ["...", "a..", ".?.", "ab...", "q.."] {
            assert_eq!(verdict(masters).state, LockState::Free, "{masters}");
        }
    }

    #[test]
    fn a_lock_is_split_only_if_no_client_can_have_a_quorum() {
        for masters in ["ab.", "abc", "aabb.", "xx.", "abx", "aabc."] {
            assert_eq!(verdict(masters).state, LockState::Split, "{masters}");
        }
        for masters in ["a.?", "a?q", "ab?", "??.", "aabb?", "aq.", "???"] {
            assert_eq!(verdict(masters).state, LockState::Unknown, "{masters}");
        }
    }

    #[test]
    fn one_key_without_an_expiry_does_not_make_the_lock_endless() {
        let left = |lives: [Option<Duration>; 3]| {
            let keys = lives.map(|remaining| SaidKey::Held(token(7, remaining)));
            let told = keys.each_ref().map(|key| Some((Some(key), Standing::Votes)));
            match of(&told, Quorum::of(3).unwrap()).0.state {
                LockState::Held(holding) => holding.remaining,
                state => panic!("{state:?}"),
            }
        };
        let second = seconds(1);
        assert_eq!(left([None, second, second]), second);
        assert_eq!(left([None, None, second]), None);
    }

    #[test]
    fn a_master_that_lost_the_marker_that_others_have_is_found() {
        let longest = Duration::from_secs(60);
        let present = |is_own, left| Marker::Present {
            is_own,
            left: Duration::from_secs(left),
            longest,
            replicas: None,
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
