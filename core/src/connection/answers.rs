//! What connections tell the machine.

use std::collections::VecDeque;

use super::News;
use crate::protocol::{Answer, MasterId, Request, Said, Ticket};

/// Room for so many answers is kept when all have been taken; more is given back.
const KEPT_ANSWERS: usize = 256;

/// What is on its way up, in the order in which it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers(VecDeque<(MasterId, Upward)>);

/// One thing that a connection tells.
#[derive(Clone, Debug)]
pub(crate) enum Upward {
    Answer(Ticket, Answer),
    /// What a master tells to somebody who only asks.
    Told(Ticket, Box<Said>),
    News(News),
}

impl Answers {
    #[inline]
    pub(super) fn answer(&mut self, master: MasterId, ticket: Ticket, answer: Answer) {
        self.0.push_back((master, Upward::Answer(ticket, answer)));
    }

    /// The answer to a request, if anything waits for it.
    #[inline]
    pub(super) fn answer_to(&mut self, master: MasterId, request: &Request, answer: Answer) {
        if let Some(ticket) = request.ticket {
            self.answer(master, ticket, answer);
        }
    }

    /// What a master says to an inspection.
    pub(super) fn report_to(&mut self, master: MasterId, request: &Request, said: Said) {
        if let Some(ticket) = request.ticket {
            self.0.push_back((master, Upward::Told(ticket, Box::new(said))));
        }
    }

    pub(crate) fn tell(&mut self, master: MasterId, news: News) {
        self.0.push_back((master, Upward::News(news)));
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<(MasterId, Upward)> {
        let next = self.0.pop_front();
        if next.is_none() {
            self.0.shrink_to(KEPT_ANSWERS);
        }
        next
    }
}
