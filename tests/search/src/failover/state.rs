//! One state of the group and its clients, and the states that can follow it.

use std::collections::VecDeque;

use quorlock_sim::{Command, CommandKind, Flow, Session};

use super::client::Effect;
use super::servers::Server;
use super::{Book, CLIENTS, Failover, Input, SERVERS, Step};

/// A client, and its connection.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Seat {
    pub(super) node: usize,
    /// The server at the other end.
    at: Option<usize>,
    session: Session,
    /// A `WAIT` that has no answer yet.
    waiting: Option<Command>,
    asked: u8,
    extended: u8,
    moved: u8,
}

#[derive(Clone, Hash)]
pub(super) struct State {
    tick: u8,
    servers: [Server; SERVERS],
    pub(super) clients: [Seat; CLIENTS],
    changes: u8,
}

impl State {
    pub(super) fn new(failover: &Failover) -> Self {
        let clients = std::array::from_fn(|node| Seat {
            node,
            at: None,
            session: Session::new(),
            waiting: None,
            asked: 0,
            extended: 0,
            moved: 0,
        });
        Self { tick: 0, servers: Server::group(failover), clients, changes: 0 }
    }

    /// All possible next steps.
    pub(super) fn steps(&self, failover: &Failover, book: &Book) -> Vec<Step> {
        let mut steps = Vec::new();
        let bounds = failover.attempts.iter().zip(&failover.extensions).zip(&failover.moves);
        for ((client, seat), ((attempts, extensions), moves)) in self.clients.iter().enumerate().zip(bounds) {
            if seat.moved < *moves {
                let servers = (0..SERVERS).filter(|server| seat.at != Some(*server));
                steps.extend(servers.map(|server| Step::Move { client, server }));
            }
            if seat.waiting.is_some() {
                steps.push(Step::Answer { client });
            } else if seat.at.is_some() {
                if seat.asked < *attempts && book.is_free(seat.node) {
                    steps.push(Step::Ask { client });
                }
                if seat.extended < *extensions && book.may_extend(seat.node) {
                    steps.push(Step::Extend { client });
                }
            }
        }
        for (server, it) in self.servers.iter().enumerate() {
            if let Some(link) = &it.link {
                if !link.stream.is_empty() {
                    steps.push(Step::Apply { server });
                }
                if link.unread.is_some() {
                    steps.push(Step::Hear { server });
                } else if link.ended {
                    steps.push(Step::Drop { server });
                }
            }
            if it.model.is_replica() {
                steps.push(Step::Promote { server });
            } else if self.changes < failover.changes
                && self.servers.iter().all(|server| !server.model.is_replica())
                && server == 0
            {
                steps.push(Step::Follow { server });
            }
        }
        if self.tick < failover.horizon {
            steps.push(Step::Tick);
        }
        steps
    }

    pub(super) fn take(&mut self, step: Step, book: &mut Book) {
        match step {
            Step::Move { client, server } => {
                self.tell(client, Input::Closed, book);
                let Some(seat) = self.clients.get_mut(client) else { return };
                (seat.at, seat.session, seat.waiting) = (Some(server), Session::new(), None);
                seat.moved += 1;
                self.tell(client, Input::Connected, book);
            }
            Step::Ask { client } => {
                self.clients.get_mut(client).into_iter().for_each(|seat| seat.asked += 1);
                self.tell(client, Input::Ask, book);
            }
            Step::Extend { client } => {
                self.clients.get_mut(client).into_iter().for_each(|seat| seat.extended += 1);
                self.tell(client, Input::Extend, book);
            }
            Step::Answer { client } => {
                let replies = self.serve(client, true);
                self.tell(client, Input::Received(replies), book);
            }
            Step::Apply { server } => {
                let [first, second] = &mut self.servers;
                let (primary, replica) = if server == 0 { (first, second) } else { (second, first) };
                let Some(link) = &mut primary.link else { return };
                let changes = link.stream.remove(0);
                replica.model().apply(&changes);
                link.unread = Some(changes.offset());
            }
            Step::Hear { server } => {
                let tick = self.tick;
                self.servers.get_mut(server).into_iter().for_each(|server| server.hear(tick));
            }
            Step::Drop { server } => {
                self.servers.get_mut(server).into_iter().for_each(Server::lose_replica);
            }
            Step::Promote { server } => {
                for (number, it) in self.servers.iter_mut().enumerate() {
                    if number == server {
                        it.model().promote();
                    } else if let Some(link) = &mut it.link {
                        link.ended = true;
                        link.stream.clear();
                    }
                }
            }
            Step::Follow { server } => {
                self.changes += 1;
                let [first, second] = &mut self.servers;
                let (follower, primary) = if server == 0 { (first, second) } else { (second, first) };
                primary.take_in(follower, self.tick);
                for client in 0..CLIENTS {
                    let seat = self.clients.get(client);
                    if seat.is_some_and(|seat| seat.at == Some(server) && seat.waiting.is_some()) {
                        self.disconnect(client);
                        self.tell(client, Input::Closed, book);
                    }
                }
            }
            Step::Tick => {
                self.tick += 1;
                let tick = self.tick;
                self.servers.iter_mut().for_each(|server| server.refresh(tick));
                (0..CLIENTS).for_each(|client| self.tell(client, Input::Tick, book));
            }
        }
    }

    fn disconnect(&mut self, client: usize) {
        let Some(seat) = self.clients.get_mut(client) else { return };
        (seat.at, seat.session, seat.waiting) = (None, Session::new(), None);
    }

    /// An input for a client's machine, and everything that follows from it at once.
    fn tell(&mut self, client: usize, input: Input, book: &mut Book) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let Some(seat) = self.clients.get_mut(client) else { return };
            let (node, effects) = book.react(seat.node, input);
            seat.node = node;
            for effect in effects.iter() {
                match effect {
                    Effect::Close => self.disconnect(client),
                    Effect::Write(bytes) => {
                        let Some(seat) = self.clients.get_mut(client) else { return };
                        seat.session.feed(bytes);
                        let replies = self.serve(client, false);
                        if !replies.is_empty() {
                            inputs.push_back(Input::Received(replies));
                        }
                    }
                }
            }
        }
    }

    /// The server executes what it has read from a client, up to a `WAIT`. With `ends`, the `WAIT`
    /// that it is executing ends now, whether or not the replica has confirmed.
    fn serve(&mut self, client: usize, ends: bool) -> Vec<u8> {
        let mut replies = Vec::new();
        let tick = self.tick;
        let Some(seat) = self.clients.get_mut(client) else { return replies };
        let Some(server) = seat.at.and_then(|at| self.servers.get_mut(at)) else { return replies };
        let mut next = if ends { seat.waiting.take() } else { None };
        if seat.waiting.is_some() {
            return replies;
        }
        let clock = server.clock(tick);
        loop {
            let is_over = next.is_some();
            let command = next.take().or_else(|| seat.session.next_command().expect("a command"));
            let Some(command) = command else { break };
            if command.kind() == CommandKind::Wait && !is_over {
                seat.waiting = Some(command);
                break;
            }
            let flow = server.model().execute(&mut seat.session, &command, clock, &mut replies);
            drop(server.model().take_pushes());
            assert!(matches!(flow, Flow::Open), "no server closes a connection here");
        }
        server.replicate();
        replies
    }
}
