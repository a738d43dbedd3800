//! Asking masters about a lock, and deleting its keys without holding it.
//!
//! Rules of this room: its tasks know answers and orders, like a lock, and no connections. Each
//! asks all masters and waits for all of them, within the connections' timeouts; a late answer,
//! while others are outstanding, replaces a master's silence. They never learn a token: masters
//! compare tokens, and return fingerprints.

mod clearing;
mod verdict;

use std::sync::Arc;

pub(crate) use self::clearing::Clearance;
use self::verdict::Told;
use crate::lock::Effects;
use crate::protocol::{
    Action, Answer, Cause, Claim, Event, Fleet, Inspection, KeyState, LockId, MasterAnswer, MasterId,
    MasterSet, PermitsAnswer, Request, Resource, Said, SaidKey, SemaphoreInspection, Standing, Ticket, Token,
};

/// Asks all masters for the content of a lock's key, or of the keys of a semaphore's permits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Inquiry {
    id: LockId,
    subject: Subject,
    /// Each master's answer, or why there is none; empty once the outcome has been reported.
    heard: Vec<Option<Result<Box<Said>, Cause>>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Subject {
    Lock(Resource),
    Semaphore { name: Resource, permits: u16 },
}

/// The restart guard's marker: every inspection reports it.
const MARKER: &[u8] = Fleet::MARKER.as_bytes();

/// There is one round only.
const ROUND: u32 = 0;

impl Inquiry {
    /// An inspection of a lock. `tokens` are ours.
    pub(crate) fn of_lock(
        id: LockId,
        resource: &Resource,
        tokens: &[Token],
        effects: &mut Effects<'_>,
    ) -> Self {
        let names: [&[u8]; 2] = [MARKER, &resource.want_key()];
        let claim = Claim::asking(std::slice::from_ref(resource), &joined(tokens), &names);
        Self::begin(id, Subject::Lock(resource.clone()), claim, effects)
    }

    /// An inspection of a semaphore's permits. `tokens` are ours.
    pub(crate) fn of_semaphore(
        id: LockId,
        name: &Resource,
        permits: u16,
        tokens: &[Token],
        effects: &mut Effects<'_>,
    ) -> Self {
        let seats: Vec<_> = (0..permits).map(|index| name.seat(index.into())).collect();
        let claim = Claim::asking(&seats, &joined(tokens), &[MARKER]);
        Self::begin(id, Subject::Semaphore { name: name.clone(), permits }, claim, effects)
    }

    fn begin(id: LockId, subject: Subject, claim: Claim, effects: &mut Effects<'_>) -> Self {
        let masters = effects.config.masters.len();
        let ticket = Some(Ticket { lock: id, round: ROUND });
        let request = Request::new(ticket, Action::Inspect, claim, effects.config.ttl);
        effects.order(MasterSet::all(masters), request);
        Self { id, subject, heard: vec![None; masters] }
    }

    /// A master has answered.
    pub(crate) fn told(&mut self, master: MasterId, said: Box<Said>, effects: &mut Effects<'_>) {
        self.hear(master, Ok(said), effects);
    }

    /// A master gave no answer, or refused.
    pub(crate) fn answer(&mut self, master: MasterId, answer: Answer, effects: &mut Effects<'_>) {
        let Answer::Failed { cause, .. } = answer else {
            debug_assert!(false, "a master that is asked about a lock tells, or fails");
            return;
        };
        self.hear(master, Err(cause), effects);
    }

    fn hear(&mut self, master: MasterId, heard: Result<Box<Said>, Cause>, effects: &mut Effects<'_>) {
        // Answers are ignored once the outcome has been reported.
        let Some(place) = self.heard.get_mut(master.index()) else { return };
        *place = Some(heard);
        if self.heard.contains(&None) {
            return;
        }
        let heard: Vec<_> = std::mem::take(&mut self.heard).into_iter().flatten().collect();
        effects.events.push_back(self.outcome(heard, effects));
    }

    /// The outcome of the answers.
    fn outcome(&self, heard: Vec<Result<Box<Said>, Cause>>, effects: &Effects<'_>) -> Event {
        let (quorum, masters) = (effects.config.quorum, Arc::clone(&effects.config.masters));
        let markers: Vec<_> = heard.iter().flatten().map(|said| said.marker).collect();
        let mut standings = verdict::standings(&markers).into_iter();
        let heard = heard.into_iter().map(|heard| {
            let said = heard?;
            Ok(Heard { said, standing: standings.next().unwrap_or(Standing::Votes) })
        });
        let heard: Vec<Result<Heard, Cause>> = heard.collect();
        let at = |place| {
            let told: Vec<_> = heard.iter().map(|heard| heard.as_ref().ok().map(|it| it.at(place))).collect();
            verdict::of(&told, quorum)
        };
        match &self.subject {
            Subject::Lock(resource) => {
                let (verdict, keys) = at(0);
                let answers = heard.iter().zip(keys);
                let answers = answers.map(|(heard, key)| match heard {
                    Ok(heard) => Ok(heard.of_lock(key.unwrap_or(KeyState::Free))),
                    Err(cause) => Err(*cause),
                });
                let (resource, answers) = (resource.clone(), answers.collect());
                let inspection = Box::new(Inspection { resource, masters, quorum, answers, verdict });
                Event::Inspected { lock: self.id, inspection }
            }
            Subject::Semaphore { name, permits } => {
                let mut states = Vec::new();
                let mut answers: Vec<_> = heard
                    .iter()
                    .map(|heard| heard.as_ref().map(Heard::of_semaphore).map_err(|cause| *cause))
                    .collect();
                for index in 0..*permits {
                    let (verdict, keys) = at(index.into());
                    states.push(verdict.state);
                    for (answer, key) in answers.iter_mut().zip(keys) {
                        let key = key.filter(|key| *key != KeyState::Free);
                        if let (Ok(answer), Some(key)) = (answer, key) {
                            answer.keys.push((index.into(), key));
                        }
                    }
                }
                let name = name.clone();
                let inspection = Box::new(SemaphoreInspection { name, masters, quorum, answers, states });
                Event::SemaphoreInspected { lock: self.id, inspection }
            }
        }
    }
}

/// A master's answer.
struct Heard {
    said: Box<Said>,
    standing: Standing,
}

impl Heard {
    /// Its answer about one of the keys.
    fn at(&self, place: usize) -> Told<'_> {
        let keys = &self.said.keys;
        let key = keys.binary_search_by_key(&place, |(place, _)| *place);
        (key.ok().and_then(|found| keys.get(found)).map(|(_, key)| key), self.standing)
    }

    fn of_lock(&self, key: KeyState) -> MasterAnswer {
        let group = match self.at(0).0 {
            Some(SaidKey::Shared(sharing)) => Some(sharing.group.clone()),
            _ => None,
        };
        let Said { server, marker, .. } = &*self.said;
        MasterAnswer { key, group, standing: self.standing, server: server.clone(), marker: *marker }
    }

    /// Its answer about a semaphore, to which the keys of permits are added later.
    fn of_semaphore(&self) -> PermitsAnswer {
        let Said { server, marker, .. } = &*self.said;
        PermitsAnswer { keys: Vec::new(), standing: self.standing, server: server.clone(), marker: *marker }
    }
}

/// Tokens in the script's format.
fn joined(tokens: &[Token]) -> Vec<u8> {
    let tokens: Vec<_> = tokens.iter().map(|token| token.to_hex()).collect();
    tokens.join(&b' ')
}
