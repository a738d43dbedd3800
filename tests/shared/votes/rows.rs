//! The requests whose answers a client counts.

use quorlock_core::{Acquire, Config, Target, Targets, Ttl};

use super::{History, LONGEST, OURS};

/// What is locked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Form {
    Plain,
    Fenced,
    Batch,
    FencedBatch,
    Read,
    Mixed,
    Permit,
    FencedPermit,
    Fair,
}

impl Form {
    const ALL: [Self; 9] = [
        Self::Plain,
        Self::Fenced,
        Self::Batch,
        Self::FencedBatch,
        Self::Read,
        Self::Mixed,
        Self::Permit,
        Self::FencedPermit,
        Self::Fair,
    ];

    pub(super) fn is_fenced(self) -> bool {
        matches!(self, Self::Fenced | Self::FencedBatch | Self::FencedPermit)
    }
}

/// What is asked of the seat, in this order: requests for locks that are held come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Ask {
    /// The seat granted the lock before, and raises its counter now. It comes first, because its
    /// lock was asked for before the history, and waits only for the rest of its time.
    Raise,
    Extend,
    /// The key is restored, and then extended.
    Heal,
    /// The lock is released, and its keys stay.
    Keep,
    /// A writer becomes a reader.
    Downgrade,
    /// Whether an inspection says that the lock is ours.
    Inspect,
    /// Another process resumes the lock.
    Resume,
    Acquire,
}

impl Ask {
    const ALL: [Self; 8] = [
        Self::Extend,
        Self::Heal,
        Self::Keep,
        Self::Downgrade,
        Self::Inspect,
        Self::Raise,
        Self::Resume,
        Self::Acquire,
    ];
}

/// Who had the vote of the seat before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Prior {
    Ours,
    Rivals,
}

/// One request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Row {
    pub ask: Ask,
    pub prior: Prior,
    pub form: Form,
}

impl Row {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let forms = |ask: Ask| Form::ALL.into_iter().filter(move |form| is_asked(ask, *form));
        let pairs = Ask::ALL.into_iter().flat_map(move |ask| forms(ask).map(move |form| (ask, form)));
        let rows =
            pairs.flat_map(|(ask, form)| [Prior::Ours, Prior::Rivals].map(|prior| Self { ask, form, prior }));
        rows.filter(|row| match row.ask {
            // It must be lost on the seat.
            Ask::Heal => row.prior == Prior::Rivals,
            // It had the vote of the seat in the same round.
            Ask::Raise => row.prior == Prior::Ours,
            _ => true,
        })
    }

    /// Whether there is something to ask for after this history.
    pub(super) fn is_asked_after(self, history: History) -> bool {
        if history.outlives_the_quarantine() {
            // All locks of before have ended.
            return self.ask == Ask::Acquire;
        }
        self.ask != Ask::Raise || !history.shares_a_server()
    }

    /// Whether our lock is held by the first two seats.
    pub(super) fn is_held_by_others(self) -> bool {
        self.prior == Prior::Rivals && !matches!(self.ask, Ask::Acquire | Ask::Resume)
    }

    /// No name is the beginning of another one.
    pub(super) fn name(self) -> String {
        format!("{:?}:{:?}:{:?}.", self.prior, self.ask, self.form)
    }

    /// Whether the key holds its lock.
    pub(super) fn is_held_at(self, key: &str) -> bool {
        let is_seat = key.contains("quorlock:seat:0") && !key.contains("quorlock:fence");
        (is_seat || !key.contains("quorlock:")) && key.contains(&self.name())
    }

    pub(super) fn targets(self, config: &Config) -> Targets {
        let (name, second) = (self.name(), format!("{}second", self.name()));
        match self.form {
            Form::Plain | Form::Fenced | Form::Fair => config.resource(name).unwrap().into(),
            Form::Batch | Form::FencedBatch => {
                config.targets([Target::write(name), Target::write(second)]).unwrap()
            }
            Form::Read => config.targets([Target::read(name)]).unwrap(),
            Form::Mixed => config.targets([Target::write(name), Target::read(second)]).unwrap(),
            Form::Permit | Form::FencedPermit => config.permits(name, 1).unwrap(),
        }
    }

    /// Our request for the lock.
    pub(super) fn ours(self, config: &Config) -> Acquire {
        Acquire {
            attempts: Some(1),
            fenced: self.form.is_fenced(),
            fair: self.form == Form::Fair,
            healing: self.ask == Ask::Heal,
            ..Acquire::new(self.targets(config), Ttl::new(OURS).unwrap())
        }
    }

    /// A conflicting request.
    pub(super) fn rivals(self, config: &Config) -> Acquire {
        let targets = match self.form {
            Form::Permit | Form::FencedPermit => self.targets(config),
            _ => config.resource(self.name()).unwrap().into(),
        };
        Acquire { attempts: Some(1), ..Acquire::new(targets, Ttl::new(LONGEST).unwrap()) }
    }
}

fn is_asked(ask: Ask, form: Form) -> bool {
    match ask {
        Ask::Raise => matches!(form, Form::Fenced | Form::FencedBatch),
        Ask::Downgrade => matches!(form, Form::Plain | Form::Fenced),
        Ask::Inspect => form == Form::Plain,
        _ => true,
    }
}
