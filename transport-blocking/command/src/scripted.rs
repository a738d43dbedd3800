//! Locks whose behaviour a test sets.

use std::cell::Cell;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::ending::Refusal;
use crate::waiting::{Hold, Lock, Released, Standing};

/// Longer than any test.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// A lock that is granted at once, and a record of its use.
#[derive(Clone)]
pub(crate) struct Scripted {
    pub(crate) acquired: Instant,
    pub(crate) validity: Duration,
    pub(crate) lost_after: Option<Duration>,
    pub(crate) still_ours: Option<bool>,
    pub(crate) fence: Option<u64>,
    pub(crate) permit: Option<u32>,
    pub(crate) renewing: Rc<Cell<bool>>,
    pub(crate) released: Rc<Cell<bool>>,
    pub(crate) at_least: Rc<Cell<Option<Duration>>>,
    pub(crate) handed_over: Rc<Cell<bool>>,
}

impl Scripted {
    pub(crate) fn new(validity: Duration) -> Self {
        Self {
            acquired: Instant::now(),
            validity,
            lost_after: None,
            still_ours: Some(true),
            fence: None,
            permit: None,
            renewing: Rc::new(Cell::new(true)),
            released: Rc::new(Cell::new(false)),
            at_least: Rc::new(Cell::new(None)),
            handed_over: Rc::new(Cell::new(false)),
        }
    }
}

impl Lock for Scripted {
    type Hold = Self;

    fn poll(&mut self) -> Poll<Result<Self, Refusal>> {
        self.acquired = Instant::now();
        Poll::Ready(Ok(self.clone()))
    }

    fn give_up(self) {}
}

impl Hold for Scripted {
    fn token(&self) -> String {
        "00ff".to_owned()
    }

    fn proof(&self) -> String {
        self.token()
    }

    fn fence(&self) -> Option<u64> {
        self.fence
    }

    fn permit(&self) -> Option<u32> {
        self.permit
    }

    fn standing(&mut self) -> Standing {
        let age = self.acquired.elapsed();
        Standing {
            lost: self.lost_after.is_some_and(|after| age >= after),
            remaining: self.validity.saturating_sub(age),
        }
    }

    fn stop_renewal(&self) {
        self.renewing.set(false);
    }

    fn hand_over(mut self) -> Result<(), String> {
        if self.standing().lost {
            return Err("lost".to_owned());
        }
        self.handed_over.set(true);
        Ok(())
    }

    fn release(self, at_least: Option<Duration>) -> Released {
        self.released.set(true);
        self.at_least.set(at_least);
        match self.still_ours {
            Some(true) => at_least.map_or(Released::Ours, Released::Kept),
            Some(false) => Released::NotOurs("not ours".to_owned()),
            None => Released::Unknown("unknown".to_owned()),
        }
    }
}

/// Fails as configured.
pub(crate) struct Refusing(pub(crate) Option<Refusal>);

impl Lock for Refusing {
    type Hold = Scripted;

    fn poll(&mut self) -> Poll<Result<Scripted, Refusal>> {
        self.0.take().map_or(Poll::Pending, |refusal| Poll::Ready(Err(refusal)))
    }

    fn give_up(self) {}
}
