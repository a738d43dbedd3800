//! Votes of a master with replicas: a `Yes` counts when all of its replicas have confirmed it.
//!
//! One `WAIT` follows the voting requests of each write. Its answer is the number of replicas that
//! have applied everything that this connection requested before. A `Yes` is held until that answer
//! comes. If fewer replicas than declared have applied it, the request counts as unanswered: a
//! failover may lose its effect.
//!
//! Of the rule for a vote: no yes of a server that takes this one's seat, or that has had it.
//!
//! An acknowledgement cannot be older than what it acknowledges, and a promoted replica sends none
//! to its former primary. So any server that is promoted later knows every vote that has counted.
//! This does not depend on a clock, a lag or a pause.

use super::{Answers, Connection};
use crate::protocol::{Action, Answer, Cause, Fate, Request};
use crate::time::Instant;
use crate::wire::{self, Decimal, Reply, ServerError};

/// The replicas' time for an acknowledgement, as a fraction (1/n) of `request_timeout`. A server
/// checks for expired waits when something happens, or in its cron of 100 ms: with the default of
/// 200 ms it gives up after 50 to 150 ms. With a half the answer came after 201 ms on Redis 7.0.15,
/// and the connection was given up as silent.
const PART: u32 = 4;

impl Connection {
    /// How many replicas must confirm a vote, if the URL declares that.
    #[inline]
    pub(super) fn declared(&self) -> Option<u32> {
        self.fleet?.replicas.map(u32::from)
    }

    /// Whether votes are followed by a `WAIT`.
    #[inline]
    pub(super) fn has_replicas(&self) -> bool {
        self.declared() > Some(0)
    }

    /// A request was appended to those that will be written.
    #[inline]
    pub(super) fn expect_vote(&mut self, action: Action, at: Instant) {
        // While replicas are missing, the wait would last its whole time and delay the requests
        // behind it. Then it is sent only once a script answers `Yes`.
        if action.votes() && !self.alone {
            self.flight.unconfirmed = Some(at);
        }
    }

    /// Appends a `WAIT` for votes of which the newest was sent at this instant.
    #[cold]
    pub(super) fn have_votes_confirmed(&mut self, at: Instant) {
        self.flight.unconfirmed = None;
        let limit = u64::try_from((self.config.request_timeout / PART).as_millis()).unwrap_or(u64::MAX);
        // Zero would mean no limit.
        let [replicas, limit] = [self.declared().unwrap_or(0).into(), limit.max(1)].map(Decimal::new);
        let before = self.outbound.len();
        wire::encode(&mut self.outbound, &[b"WAIT", replicas.as_bytes(), limit.as_bytes()]);
        self.await_own(Action::Confirm, before, at);
    }

    /// Whether an answer is a vote that replicas have yet to confirm.
    #[inline]
    pub(super) fn must_be_confirmed(&mut self, request: &Request, answer: Answer) -> bool {
        if self.declared().is_none() || !request.action.votes() {
            return false;
        }
        match answer {
            Answer::Yes | Answer::OursInQuarantine { .. } | Answer::Counted(_) | Answer::Seats { .. } => {
                let has_replicas = self.has_replicas();
                // Their confirmation shows it; without any, the yes does.
                self.alone &= has_replicas;
                has_replicas
            }
            Answer::Failed { cause: Cause::Alone { .. }, .. } => {
                self.alone = true;
                false
            }
            Answer::Failed { .. } | Answer::No | Answer::Holder { .. } | Answer::Queued { .. } => false,
        }
    }

    /// The answer to a `WAIT`, and so to the votes before it.
    pub(super) fn confirmed(&mut self, reply: &Reply<'_>, answers: &mut Answers) -> Result<(), Cause> {
        let declared = self.declared().unwrap_or(0);
        let failure = match reply {
            Reply::Integer(replicas) => {
                let confirmed = u32::try_from(*replicas).unwrap_or(0);
                (confirmed < declared).then_some(Cause::Unconfirmed { confirmed, declared })
            }
            Reply::Error(text) => Some(Cause::Server(ServerError::classify(text))),
            _ => return Err(Cause::UnexpectedReply),
        };
        // A server processes waits one after the other. On a busy connection they would queue up
        // for as long as a replica hangs, and the releases behind them would wait, too.
        self.alone = matches!(failure, Some(Cause::Unconfirmed { .. }));
        for (request, answer) in self.flight.take_held() {
            let answer = match failure {
                Some(cause) => Answer::Failed { cause, fate: Fate::Unknown, stale: false },
                None => answer,
            };
            answers.answer(self.id, &request, answer);
        }
        self.prove();
        Ok(())
    }
}
