//! The requests on their way on one connection, in the order of their replies.

use std::collections::VecDeque;
use std::time::Duration;

use super::request::{Action, Request, ScriptForm};
use crate::time::Instant;

/// One request on its way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Sent {
    pub(crate) request: Request,
    pub(crate) at: Instant,
    pub(crate) form: ScriptForm,
    bytes: usize,
}

/// Requests whose replies have not come, oldest first.
///
/// Replies come strictly in order, so a late reply finds its own request and nothing else. The first `overdue` of them have
/// been reported as unanswered already and stay only to be matched.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Flight {
    sent: VecDeque<Sent>,
    overdue: usize,
    bytes: usize,
}

impl Flight {
    pub(crate) fn push(&mut self, request: Request, form: ScriptForm, at: Instant, bytes: usize) {
        self.bytes += bytes;
        self.sent.push_back(Sent { request, at, form, bytes });
    }

    /// Takes the request that the next reply belongs to.
    pub(crate) fn pop(&mut self) -> Option<Sent> {
        let sent = self.sent.pop_front()?;
        self.bytes -= sent.bytes;
        self.overdue = self.overdue.saturating_sub(1);
        Some(sent)
    }

    pub(crate) fn requests(&self) -> usize {
        self.sent.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub(crate) fn has_overdue(&self) -> bool {
        self.overdue > 0
    }

    /// When the oldest request was sent that has not been reported as unanswered.
    pub(crate) fn oldest_awaited(&self) -> Option<Instant> {
        self.sent.get(self.overdue).map(|sent| sent.at)
    }

    /// When the oldest request of all was sent.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.sent.front().map(|sent| sent.at)
    }

    /// Reports the next request that has waited for `limit`, once.
    pub(crate) fn next_overdue(&mut self, limit: Duration, now: Instant) -> Option<&Sent> {
        let sent = self.sent.get(self.overdue).filter(|sent| now >= sent.at + limit)?;
        self.overdue += 1;
        Some(sent)
    }

    /// The acquisitions without a reply that no release follows yet.
    pub(crate) fn unreleased_acquisitions(&self) -> impl Iterator<Item = &Request> {
        let released: std::collections::HashSet<_> = self
            .sent
            .iter()
            .filter(|sent| sent.request.action.clears())
            .filter_map(|sent| sent.request.ticket.map(|ticket| (ticket.lock, &sent.request.claim)))
            .collect();
        self.sent.iter().map(|sent| &sent.request).filter(move |request| {
            request.action == Action::Acquire
                && request.ticket.is_none_or(|ticket| !released.contains(&(ticket.lock, &request.claim)))
        })
    }

    /// Ends the flight: every request, and whether it has been reported as unanswered already.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (Sent, bool)> + use<> {
        let overdue = std::mem::take(&mut self.overdue);
        self.bytes = 0;
        std::mem::take(&mut self.sent)
            .into_iter()
            .enumerate()
            .map(move |(place, sent)| (sent, place < overdue))
    }
}
