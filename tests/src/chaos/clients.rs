//! The clients of a run: processes, each of which is replaced when it is killed.

use std::io;

use super::client::Orders;
use super::history::Writer;
use super::process::{ClientProcess, Program};
use crate::random::Random;
use crate::transport::Transport;

#[derive(Debug)]
pub(crate) struct Clients {
    program: Program,
    /// The settings of all clients, except those of a single one. The name is what all names begin
    /// with.
    orders: Orders,
    random: Random,
    processes: Vec<ClientProcess>,
    started: usize,
}

impl Clients {
    pub(crate) fn start(program: Program, orders: Orders, count: usize, random: Random) -> io::Result<Self> {
        let mut clients = Self { program, orders, random, processes: Vec::new(), started: 0 };
        for place in 0..count {
            let process = clients.another(place)?;
            clients.processes.push(process);
        }
        Ok(clients)
    }

    fn another(&mut self, place: usize) -> io::Result<ClientProcess> {
        self.started += 1;
        let orders = Orders {
            name: format!("{}{}.{}", self.orders.name, place + 1, self.started),
            seed: self.random.number(),
            transport: self.random.of(Transport::NAMES).to_owned(),
            ..self.orders.clone()
        };
        ClientProcess::start(&self.program, &orders)
    }

    pub(crate) fn len(&self) -> usize {
        self.processes.len()
    }

    pub(crate) fn pause(&self, place: usize, history: &Writer) {
        self.processes[place].pause(history);
    }

    pub(crate) fn resume(&self, place: usize, history: &Writer) {
        self.processes[place].resume(history);
    }

    /// Sets the masters of clients that are started from now on.
    pub(crate) fn set_masters(&mut self, masters: Vec<String>) {
        self.orders.masters = masters;
    }

    /// The names of the clients.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.processes.iter().map(ClientProcess::name)
    }

    /// Kills a client and starts another in its place.
    pub(crate) fn replace(&mut self, place: usize) -> io::Result<()> {
        let another = self.another(place)?;
        self.processes[place] = another;
        Ok(())
    }

    pub(crate) fn assert_alive(&mut self) -> io::Result<()> {
        self.processes.iter_mut().try_for_each(ClientProcess::assert_alive)
    }
}
