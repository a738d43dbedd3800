//! Time, and the messages between machines and masters.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::time::Duration;

use quorlock_core::{Cause, Instant, IoFault, Output};
use quorlock_sim::Session;

use super::master::{instant, wall_clock};
use super::{Flow, Link, Reach, Stage, World};

impl World {
    /// Everything that happens at this very instant, without any time passing.
    pub fn pump(&mut self) {
        let mut steps = 0;
        while self.step() {
            steps += 1;
            assert!(steps < 10_000, "this instant never ends");
        }
    }

    pub fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.pump();
            let Some(next) = self.next_instant().filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            self.pump();
            self.wake_the_due();
        }
        self.now = end;
        self.pump();
    }

    /// Jumps to the next event; false if there is none.
    pub fn jump(&mut self) -> bool {
        self.pump();
        let Some(next) = self.next_instant() else { return false };
        self.now = self.now.max(next);
        self.pump();
        self.wake_the_due();
        self.pump();
        true
    }

    /// Like [`World::jump`], but not beyond `end`; false when it is there.
    pub fn jump_until(&mut self, end: Instant) -> bool {
        if self.next_instant().is_some_and(|next| next <= end) {
            return self.jump();
        }
        self.now = end;
        false
    }

    /// Lets time pass in which the machine is not woken and nothing is delivered, as in a suspended
    /// process.
    pub fn suspend(&mut self, span: Duration) {
        self.now = self.now + span;
        self.note("resumes");
    }

    /// Tells the machines the time although nothing is due.
    pub fn wake_the_due(&mut self) {
        for node in 0..self.nodes.len() {
            if self.woken_at(node).is_some_and(|at| at <= self.now) {
                self.note(format!("n{node} wakes"));
                self.nodes[node].wakes += 1;
                assert!(self.nodes[node].wakes < 5_000, "it spins");
                self.nodes[node].machine.time_passed(self.now);
                self.drain(node);
            }
        }
    }

    /// When this machine is woken, if it has asked for that.
    fn woken_at(&self, node: usize) -> Option<Instant> {
        let at = self.nodes[node].wake?.at + self.timers_are_late_by;
        let grain = self.timers_have_a_grain_of;
        if grain.is_zero() {
            return Some(at);
        }
        let tick = grain * 3 * u32::try_from(node).unwrap() / 10;
        let before = at.since(Instant::ORIGIN + tick).as_nanos() % grain.as_nanos();
        let before = Duration::from_nanos(u64::try_from(before).unwrap());
        Some(if before.is_zero() { at } else { at + (grain - before) })
    }

    fn next_instant(&self) -> Option<Instant> {
        let wakes = (0..self.nodes.len()).filter_map(|node| self.woken_at(node));
        let replies = self.nodes.iter().flat_map(|node| {
            node.links.iter().zip(&self.masters).filter(|(_, master)| master.flow == Flow::Free).flat_map(
                |(links, _)| {
                    let standing = links.iter().filter(|link| link.stage == Stage::Stands);
                    standing.filter_map(|link| link.replies.front().map(|(at, _)| *at))
                },
            )
        });
        let ends = self.masters.iter().filter_map(|master| master.server.next_end()).map(instant);
        wakes.chain(replies).chain(ends).min()
    }

    fn step(&mut self) -> bool {
        let mut moved = false;
        (0..self.masters.len()).for_each(|master| self.push_news(master));
        for node in 0..self.nodes.len() {
            for master in 0..self.masters.len() {
                for place in 0..self.nodes[node].links[master].len() {
                    moved |= self.connect(node, master, place);
                    moved |= self.execute(node, master, place);
                    if self.masters[master].flow == Flow::Free {
                        moved |= self.deliver_due(node, master, place);
                    }
                }
            }
        }
        moved
    }

    fn connect(&mut self, node: usize, master: usize, place: usize) -> bool {
        let reach = self.masters[master].reach;
        let link = &mut self.nodes[node].links[master][place];
        if link.stage != Stage::Asked || reach == Reach::Ignores {
            return false;
        }
        let (id, generation) = (self.ids[master], link.generation);
        link.stage = if reach == Reach::Accepts { Stage::Stands } else { Stage::Gone };
        self.note(format!("n{node} m{master}.{generation} {reach:?}"));
        let machine = &mut self.nodes[node].machine;
        if reach == Reach::Accepts {
            machine.connected(id, generation, self.now);
        } else {
            machine.closed(
                id,
                generation,
                Cause::Connect(IoFault::new(ErrorKind::ConnectionRefused)),
                self.now,
            );
        }
        self.drain(node);
        true
    }

    /// The server reads and executes, also what came on a connection that is closed by now.
    fn execute(&mut self, node: usize, master: usize, place: usize) -> bool {
        let is_read = matches!(self.masters[master].flow, Flow::Free | Flow::RepliesHeld);
        is_read && self.read_all(node, master, place)
    }

    /// A stopped server reads what came from one machine and nothing else.
    pub fn serve(&mut self, node: usize, master: usize) {
        for place in 0..self.nodes[node].links[master].len() {
            self.read_all(node, master, place);
        }
    }

    fn read_all(&mut self, node: usize, master: usize, place: usize) -> bool {
        let server = &mut self.masters[master];
        let link = &mut self.nodes[node].links[master][place];
        let mut notes = Vec::new();
        link.session.feed(&std::mem::take(&mut link.unread));
        while let Some(command) = server.server.next_command(&mut link.session).unwrap() {
            let reply = server.execute(&mut link.session, &command, self.now);
            let (_, name, token) = server.executed.last().unwrap();
            let token = token.get(..6).unwrap_or_default();
            let text: String = reply.escape_ascii().map(char::from).take(40).collect();
            notes.push(format!("n{node} m{master}.{} {name} {token} -> {text}", link.generation));
            let delay = varied(server.delay, &mut self.delays_vary);
            link.replies.push_back((self.now + delay, reply));
        }
        let moved = !notes.is_empty();
        self.push_news(master);
        for note in notes {
            self.note(note);
        }
        moved
    }

    /// The pushes of a server.
    fn push_news(&mut self, master: usize) {
        let server = &mut self.masters[master];
        server.server.remove_ended(wall_clock(self.now));
        for push in server.server.take_pushes().filter(|_| !server.loses_pushes) {
            let links = self.nodes.iter_mut().flat_map(|node| &mut node.links[master]);
            if let Some(link) = links.into_iter().find(|link| link.session.id() == push.session) {
                let due = self.now + varied(server.delay, &mut self.delays_vary);
                link.replies.push_back((due, push.bytes));
            }
        }
    }

    fn deliver_due(&mut self, node: usize, master: usize, place: usize) -> bool {
        let link = &mut self.nodes[node].links[master][place];
        if link.stage != Stage::Stands || link.replies.front().is_none_or(|(at, _)| *at > self.now) {
            return false;
        }
        let (_, reply) = link.replies.pop_front().unwrap();
        let generation = link.generation;
        self.receive(node, master, generation, &reply);
        true
    }

    fn receive(&mut self, node: usize, master: usize, generation: u32, bytes: &[u8]) {
        self.note(format!("n{node} m{master}.{generation} hears"));
        self.nodes[node].machine.received(self.ids[master], generation, bytes, self.now);
        self.drain(node);
    }

    /// Delivers the next reply that is held back on the present connection; false if there is none.
    pub fn deliver(&mut self, node: usize, master: usize) -> bool {
        for place in 0..self.nodes[node].links[master].len() {
            self.execute(node, master, place);
        }
        let Some(link) = self.nodes[node].links[master].last_mut() else { return false };
        let generation = link.generation;
        let Some((_, reply)) = link.replies.pop_front() else { return false };
        self.receive(node, master, generation, &reply);
        true
    }

    /// Bytes that no script of a server made.
    pub fn inject(&mut self, master: usize, bytes: &[u8]) {
        self.inject_to(0, master, bytes);
    }

    pub fn inject_to(&mut self, node: usize, master: usize, bytes: &[u8]) {
        let generation = self.nodes[node].links[master].last().unwrap().generation;
        self.receive(node, master, generation, bytes);
    }

    pub fn generation(&self, master: usize) -> u32 {
        self.nodes[0].links[master].last().unwrap().generation
    }

    /// The connection ends: what the server has not read is gone.
    pub fn cut(&mut self, node: usize, master: usize) {
        let id = self.ids[master];
        let link = self.nodes[node].links[master].last_mut().unwrap();
        link.unread.clear();
        link.replies.clear();
        link.stage = Stage::Gone;
        let generation = link.generation;
        self.note(format!("n{node} m{master}.{generation} is cut"));
        self.nodes[node].machine.closed(id, generation, Cause::Closed, self.now);
        self.drain(node);
    }

    pub fn cut_if_it_is_open(&mut self, node: usize, master: usize) {
        if self.nodes[node].links[master].last().is_some_and(|link| link.stage == Stage::Stands) {
            self.cut(node, master);
        }
    }

    pub fn drain(&mut self, node: usize) {
        loop {
            let this = &mut self.nodes[node];
            let line = match this.machine.poll_output() {
                Output::Connect { master, generation, .. } => {
                    let master = master.index();
                    this.opened[master] += 1;
                    let stage = Stage::Asked;
                    let (unread, replies) = (Vec::new(), VecDeque::new());
                    let session = Session::default();
                    this.links[master].push(Link { generation, stage, session, unread, replies });
                    format!("n{node} m{master}.{generation} connect")
                }
                Output::Write { master, generation, bytes } => {
                    let master = master.index();
                    this.written.extend_from_slice(bytes);
                    this.writes[master] += 1;
                    let link =
                        this.links[master].iter_mut().find(|link| link.generation == generation).unwrap();
                    assert_ne!(link.stage, Stage::Asked, "a write before the connection is open");
                    let vanishes = self.masters[master].flow == Flow::BlackHole
                        || self.dead.contains(&(master, generation));
                    if link.stage == Stage::Stands && !vanishes {
                        link.unread.extend_from_slice(bytes);
                    }
                    continue;
                }
                Output::Close { master, generation } => {
                    let master = master.index();
                    for link in this.links[master].iter_mut().filter(|link| link.generation == generation) {
                        link.stage = Stage::Gone;
                        link.replies.clear();
                    }
                    format!("n{node} m{master}.{generation} close")
                }
                Output::Event(event) => {
                    let line = format!("n{node} {event:?}");
                    this.events.push_back((self.now, event));
                    line
                }
                Output::Wake(wake) => {
                    this.wake = wake;
                    return;
                }
            };
            self.note(line);
        }
    }
}

/// A delay, as [`World::delays_vary`] says.
fn varied(delay: Duration, state: &mut u64) -> Duration {
    if *state == 0 {
        return delay;
    }
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    let percent = if *state % 20 == 0 { 300 } else { 70 + (*state >> 8) % 61 };
    delay * u32::try_from(percent).unwrap() / 100
}
