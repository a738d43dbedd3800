//! Every master's answer in the round that decided a command.

use std::fmt;
use std::sync::Arc;

use super::units::{ENDLESS, Span};
use super::{Cause, Quorum, Resource, Sentinel, Tally, Targets, Vote};
use crate::endpoint::Endpoint;
use crate::wire::ServerError;

/// A key that is not a string, without its name.
const FOREIGN: Cause = Cause::Server(ServerError::WrongType);

const OTHER_TYPE: &str = "holds something that is not a lock (WRONGTYPE)";

/// What to do if the callers ahead include the one that waits.
const NESTED: &str = "code that asks again for a lock that it holds needs an `Owner`";

/// Every master's answer in the round that decided a command.
#[derive(Clone, PartialEq, Eq)]
pub struct Ballot {
    pub(crate) targets: Targets,
    pub(crate) masters: Arc<[Endpoint]>,
    /// Requests that give up together share them; `None` if no master was asked.
    pub(crate) votes: Option<Arc<[Vote]>>,
    pub(crate) attempts: u32,
    pub(crate) callers_ahead: usize,
}

impl Ballot {
    /// Returns what was requested.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// Returns the requested resource; of several the first, in the order of their keys.
    pub fn resource(&self) -> &Resource {
        self.targets.first()
    }

    /// Returns each master with its vote, in the order of the configuration.
    pub fn votes(&self) -> impl Iterator<Item = (&Endpoint, Vote)> {
        self.masters.iter().zip(self.cast().iter().copied().chain(std::iter::repeat(Vote::NotAsked)))
    }

    /// Returns the number of masters that granted.
    pub fn granted(&self) -> usize {
        self.tally().granted()
    }

    /// Returns the number of votes that were needed.
    pub fn needed(&self) -> usize {
        Quorum::of(self.masters.len()).map_or(1, Quorum::needed)
    }

    /// Returns the number of attempts that were made. Additional rounds after a split vote do not
    /// count, nor do requests that only mark what a writer waits for.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    pub(crate) fn tally(&self) -> Tally {
        Tally::of(self.cast())
    }

    pub(super) fn cast(&self) -> &[Vote] {
        self.votes.as_deref().unwrap_or_default()
    }

    /// How a master that refused describes the present holder.
    fn held_by(&self, holder: Option<u64>) -> &'static str {
        match holder {
            Some(Sentinel::HOLDER) => "shared by others",
            Some(Sentinel::WANTED) if self.targets.is_permit() => {
                "permits kept for one that has waited for longer"
            }
            Some(Sentinel::WANTED) => "kept for a waiting writer",
            _ if self.targets.as_permit().is_some() => "permits held by others",
            _ => "held by another",
        }
    }

    /// The target whose key is not a string, if the master named it.
    fn other_type(&self, cause: Cause) -> Option<&Resource> {
        let Cause::OtherType { target } = cause else { return None };
        self.targets.written_first().nth(target.into()).map(|(resource, _)| resource)
    }

    /// Returns how many callers of this process hold the lock or requested it earlier, if that
    /// decided the request; zero if the masters' votes did.
    pub fn callers_ahead(&self) -> usize {
        self.callers_ahead
    }
}

impl fmt::Display for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.callers_ahead {
            0 => {}
            1 => return write!(f, "another caller in this process holds it or asked for it first; {NESTED}"),
            ahead => {
                return write!(
                    f,
                    "{ahead} other callers in this process hold it or asked for it first; {NESTED}"
                );
            }
        }
        write!(f, "{} of {} votes, {} needed (", self.granted(), self.masters.len(), self.needed())?;
        for (place, (name, vote)) in self.votes().enumerate() {
            write!(f, "{}{name} ", if place == 0 { "" } else { ", " })?;
            match vote {
                Vote::Outstanding => f.write_str("not waited for"),
                Vote::NotAsked => f.write_str("not asked"),
                Vote::Granted => f.write_str("granted"),
                Vote::HeldByAnother { remaining, holder } => {
                    f.write_str(self.held_by(holder))?;
                    match remaining {
                        Some(remaining) => write!(f, " for {}", Span(remaining)),
                        None => f.write_str(if vote.never_ends() { " (never expires)" } else { "" }),
                    }
                }
                Vote::NotHeld => f.write_str("no longer holds it"),
                Vote::Failed(cause) => match (cause, self.other_type(cause)) {
                    (_, Some(target)) => write!(f, "the key of {target} {OTHER_TYPE}"),
                    (FOREIGN, None) if self.targets.iter().len() > 1 => {
                        write!(f, "the key or counter of one of several {OTHER_TYPE}")
                    }
                    (cause, None) => cause.describe(Some(name), &self.masters, f),
                },
            }?;
        }
        f.write_str(")")?;
        if self.cast().iter().any(|vote| vote.never_ends()) { write!(f, "; {ENDLESS}") } else { Ok(()) }
    }
}

impl fmt::Debug for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ballot({}: {self}, attempt {})", self.targets, self.attempts)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::protocol::Target;

    #[test]
    fn a_refusal_describes_how_other_clients_hold_the_resource() {
        let name = || Resource::new("job").unwrap();
        let said = |targets: Targets, remaining, holder| {
            let masters = ["redis://a"].map(|url| url.parse().unwrap()).into();
            let votes = Some([Vote::HeldByAnother { remaining, holder }].into());
            Ballot { targets, masters, votes, attempts: 1, callers_ahead: 0 }.to_string()
        };
        let second = Some(Duration::from_secs(1));
        for (targets, remaining, holder, says) in [
            (name().into(), second, Some(7), "held by another for 1 s"),
            (name().into(), None, None, "held by another"),
            (name().into(), second, Some(Sentinel::HOLDER), "shared by others for 1 s"),
            (name().into(), second, Some(Sentinel::WANTED), "kept for a waiting writer for 1 s"),
            (Targets::permit(name(), 4).unwrap(), second, Some(7), "permits held by others for 1 s"),
            (
                Targets::permit(name(), 4).unwrap(),
                second,
                Some(Sentinel::WANTED),
                "permits kept for one that has waited for longer for 1 s",
            ),
        ] {
            let said = said(targets, remaining, holder);
            assert_eq!(said, format!("0 of 1 votes, 1 needed (a:6379 {says})"));
        }
        let never = "; Quorlock sets no key that never expires: if no client holds the lock, delete it with `quorlock force-release`";
        for (targets, says) in [
            (name().into(), "held by another"),
            (Targets::permit(name(), 4).unwrap(), "permits held by others"),
        ] {
            let said = said(targets, None, Some(7));
            assert_eq!(said, format!("0 of 1 votes, 1 needed (a:6379 {says} (never expires)){never}"));
        }
    }

    #[test]
    fn a_key_of_a_foreign_type_is_named() {
        let said = |targets: Targets, cause| {
            let masters = ["redis://a"].map(|url| url.parse().unwrap()).into();
            let votes = Some([Vote::Failed(cause)].into());
            Ballot { targets, masters, votes, attempts: 1, callers_ahead: 0 }.to_string()
        };
        let of = |names: &[&str]| Targets::new("", names.iter().map(Target::write)).unwrap();
        assert_eq!(
            said(of(&["job"]), FOREIGN),
            "0 of 1 votes, 1 needed (a:6379 the key holds something that is not a lock (WRONGTYPE))"
        );
        assert_eq!(
            said(of(&["job", "other"]), FOREIGN),
            "0 of 1 votes, 1 needed (a:6379 the key or counter of one of several holds something that is not a lock (WRONGTYPE))"
        );
        let mixed = [Target::read("a"), Target::write("b"), Target::read("c"), Target::write("d")];
        for (target, name) in [(0, "b"), (1, "d"), (2, "a"), (3, "c")] {
            let said = said(Targets::new("", mixed.clone()).unwrap(), Cause::OtherType { target });
            assert!(said.contains(&format!("(a:6379 the key of {name} holds something")), "{said}");
        }
    }

    #[test]
    fn a_ballot_tells_each_vote_and_how_many_were_needed() {
        let masters = ["redis://a", "redis://b", "redis://c", "redis://d"].map(|url| url.parse().unwrap());
        let ballot = Ballot {
            targets: Resource::new("job").unwrap().into(),
            masters: masters.into(),
            votes: Some([Vote::Granted, Vote::NotHeld, Vote::Outstanding, Vote::NotAsked].into()),
            attempts: 3,
            callers_ahead: 0,
        };
        assert_eq!((ballot.granted(), ballot.needed(), ballot.attempts()), (1, 3, 3));
        assert_eq!(ballot.resource().to_string(), "job");
        assert_eq!(ballot.votes().count(), 4);
        assert_eq!(
            ballot.to_string(),
            "1 of 4 votes, 3 needed (a:6379 granted, b:6379 no longer holds it, c:6379 not waited for, d:6379 not asked)"
        );
        let ballot = Ballot { votes: None, ..ballot };
        assert_eq!(ballot.to_string().matches("not asked").count(), 4);
    }
}
