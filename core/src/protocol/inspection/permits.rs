//! The masters' answers about a semaphore's permits.

use std::fmt;
use std::sync::Arc;

use super::{Cause, KeyState, LockState, Marker, Quorum, Resource, ServerFacts, Standing};
use crate::endpoint::Endpoint;

/// The masters' answers about a semaphore, and the resulting states: the answer of
/// [`Semaphore::inspect`](crate::front::Semaphore::inspect).
///
/// Each answer is a snapshot: it is for people, for tests and for metrics. To hold a permit, take
/// one. Each permit is its own lock, and so has its own [`LockState`]. Clients with a larger number
/// of permits may hold permits that this semaphore does not have; those are not included.
///
/// It displays as one sentence, such as `permits 0 and 2 of 4 held`. No token is in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SemaphoreInspection {
    pub(crate) name: Resource,
    pub(crate) masters: Arc<[Endpoint]>,
    pub(crate) quorum: Quorum,
    pub(crate) answers: Vec<Result<PermitsAnswer, Cause>>,
    /// Each permit's state, by its index.
    pub(crate) states: Vec<LockState>,
}

/// One master's answer about a semaphore and itself.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PermitsAnswer {
    /// The content of the permits' keys that exist, in the order of their indices. The letters of
    /// holders begin again with `a` for each permit.
    pub keys: Vec<(u32, KeyState)>,
    /// Whether the master votes.
    pub standing: Standing,
    /// What the server reports about itself.
    pub server: ServerFacts,
    pub(crate) marker: Marker,
}

impl PermitsAnswer {
    /// Returns whether the master has replicas that the clients' URLs do not declare although the
    /// clients use the restart guard: the guard alone does not cover a promotion.
    pub fn has_undeclared_replicas(&self) -> bool {
        self.marker.declares_none_of(&self.server)
    }
}

impl SemaphoreInspection {
    /// Returns the semaphore that was asked about.
    pub fn name(&self) -> &Resource {
        &self.name
    }

    /// Returns how many permits there are.
    pub fn permits(&self) -> u32 {
        u32::try_from(self.states.len()).unwrap_or(u32::MAX)
    }

    /// Returns each permit's index and its state according to the answers.
    pub fn states(&self) -> impl Iterator<Item = (u32, LockState)> {
        (0..).zip(self.states.iter().copied())
    }

    /// Returns the permits that have a holder on a quorum of masters: each one's index, holder and
    /// remaining time.
    pub fn held(&self) -> impl Iterator<Item = (u32, super::Holding)> {
        self.states().filter_map(|(index, state)| match state {
            LockState::Held(holding) => Some((index, holding)),
            _ => None,
        })
    }

    /// Returns the indices of the permits that a quorum of masters would grant.
    pub fn free(&self) -> impl Iterator<Item = u32> {
        self.states().filter_map(|(index, state)| (state == LockState::Free).then_some(index))
    }

    /// Returns the indices of the permits that are held with a token of ours: that of a permit of
    /// the locker, or one that was passed to the request.
    pub fn ours(&self) -> impl Iterator<Item = u32> {
        self.held().filter_map(|(index, holding)| holding.holder.is_ours().then_some(index))
    }

    /// Returns the quorum that decides.
    pub fn quorum(&self) -> Quorum {
        self.quorum
    }

    /// Returns the number of masters that answered.
    pub fn answered(&self) -> usize {
        self.answers.iter().flatten().count()
    }

    /// Returns each master with its answer, or why it has no vote, in the order of the
    /// configuration.
    pub fn masters(&self) -> impl Iterator<Item = (&Endpoint, Result<&PermitsAnswer, Cause>)> {
        let answers = self.answers.iter().map(|answer| answer.as_ref().map_err(|cause| *cause));
        self.masters.iter().zip(answers)
    }
}

impl fmt::Display for SemaphoreInspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = self.permits();
        let (all, needed, answered) = (self.quorum.masters(), self.quorum.needed(), self.answered());
        if answered < needed {
            return write!(
                f,
                "not known: {answered} of {all} masters gave a usable answer (quorum {needed})"
            );
        }
        let held: Vec<_> = self.held().map(|(index, _)| index).collect();
        match held.len() {
            0 => write!(f, "none of {of} permits held")?,
            1 => write!(f, "permit {} of {of} held", Indices(&held))?,
            _ => write!(f, "permits {} of {of} held", Indices(&held))?,
        }
        let those = |wanted| -> Vec<_> {
            self.states().filter(|(_, state)| *state == wanted).map(|(index, _)| index).collect()
        };
        let rest = [
            ("ours: ", self.ours().collect(), ""),
            ("", those(LockState::Split), " split"),
            ("", those(LockState::Unknown), " not known"),
        ];
        for (before, indices, behind) in rest.into_iter().filter(|(_, indices, _)| !indices.is_empty()) {
            write!(f, "; {before}{}{behind}", Indices(&indices))?;
        }
        Ok(())
    }
}

/// Prints indices in rising order: `0`, `0 and 2`, `0, 2 and 3`, `0 to 5 and 7`.
struct Indices<'a>(&'a [u32]);

impl fmt::Display for Indices<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Two consecutive ones are printed as two, not as a range.
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for run in self.0.chunk_by(|index, next| index + 1 == *next) {
            match run {
                [first, _, .., last] => runs.push((*first, *last)),
                few => runs.extend(few.iter().map(|index| (*index, *index))),
            }
        }
        let last = runs.len().saturating_sub(1);
        for (place, (first, end)) in runs.into_iter().enumerate() {
            f.write_str(match place {
                0 => "",
                _ if place == last => " and ",
                _ => ", ",
            })?;
            write!(f, "{first}")?;
            if end > first {
                write!(f, " to {end}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quorum_of_answers_is_needed_to_say_what_is_held() {
        let names = ["redis://a", "redis://b", "redis://c"];
        let masters: Vec<Endpoint> = names.iter().map(|name| name.parse().unwrap()).collect();
        let said = |answered: usize| {
            let (standing, server) = (Standing::Votes, ServerFacts::default());
            let answer = PermitsAnswer { keys: Vec::new(), standing, server, marker: Marker::Absent };
            let heard = std::iter::repeat_n(Ok(answer), answered);
            let answers = heard.chain(std::iter::repeat(Err(Cause::Closed))).take(3).collect();
            let (name, states) = (Resource::new("gpu").unwrap(), vec![LockState::Free; 4]);
            let (masters, quorum) = (masters.clone().into(), Quorum::of(3).unwrap());
            SemaphoreInspection { name, masters, quorum, answers, states }.to_string()
        };
        assert_eq!(said(1), "not known: 1 of 3 masters gave a usable answer (quorum 2)");
        assert_eq!([2, 3].map(said), ["none of 4 permits held"; 2]);
    }

    #[test]
    fn consecutive_indices_are_printed_as_ranges() {
        let said = |indices: &[u32]| Indices(indices).to_string();
        assert_eq!(said(&[]), "");
        assert_eq!(
            [&[0][..], &[0, 2], &[0, 1], &[1, 3, 5]].map(said),
            ["0", "0 and 2", "0 and 1", "1, 3 and 5"]
        );
        assert_eq!(said(&[0, 1, 2]), "0 to 2");
        assert_eq!(said(&[0, 1, 2, 4, 6, 7]), "0 to 2, 4, 6 and 7");
    }
}
