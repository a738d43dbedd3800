//! One state of a group, without what makes no difference.

use super::{CLIENTS, Tick};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Data {
    /// The client that has the key, and when it ends.
    pub(super) key: Option<(u8, Tick)>,
    /// The replication id in the marker, and from when on the server votes.
    pub(super) marker: Option<(u8, Tick)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub(super) follows: Option<u8>,
    pub(super) id: u8,
    pub(super) data: Data,
    pub(super) links: Vec<Link>,
}

/// A replica, as its primary sees it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Link {
    pub(super) replica: u8,
    /// The changes that it has not applied yet.
    pub(super) stream: Vec<Data>,
    /// How many writes are behind the last acknowledgement that the primary has read.
    pub(super) unheard: u8,
    /// Whether it has stopped following, which the primary reads last.
    pub(super) ended: bool,
    /// How many writes it had not acknowledged when it stopped.
    pub(super) lost: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Request {
    pub(super) extends: bool,
    pub(super) server: u8,
    pub(super) asked: Tick,
    /// How many writes the server has made since the script said yes.
    pub(super) since: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Client {
    pub(super) request: Option<Request>,
    pub(super) valid_until: Tick,
    pub(super) extended: u8,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) now: Tick,
    pub(super) ids: u8,
    pub(super) promotions: u8,
    pub(super) changes: u8,
    pub(super) restarts: u8,
    pub(super) servers: Vec<Server>,
    pub(super) clients: [Client; CLIENTS],
}

impl Link {
    pub(super) fn to(replica: u8) -> Self {
        Self { replica, stream: Vec::new(), unheard: 0, ended: false, lost: 0 }
    }

    /// How many writes are behind the last acknowledgement that the replica has sent.
    pub(super) fn unsent(&self) -> u8 {
        if self.ended { self.lost } else { u8::try_from(self.stream.len()).unwrap_or(u8::MAX) }
    }
}

impl State {
    pub(super) fn server(&self, server: u8) -> &Server {
        self.servers.get(usize::from(server)).expect("a server of the group")
    }

    pub(super) fn server_mut(&mut self, server: u8) -> &mut Server {
        self.servers.get_mut(usize::from(server)).expect("a server of the group")
    }

    /// A server has made a write: sends it to the replicas.
    pub(super) fn replicate(&mut self, server: u8) {
        let it = self.server_mut(server);
        let data = it.data;
        for link in &mut it.links {
            link.unheard += 1;
            if link.ended {
                link.lost += 1;
            } else {
                link.stream.push(data);
            }
        }
        for request in self.clients.iter_mut().filter_map(|client| client.request.as_mut()) {
            request.since += u8::from(request.server == server);
        }
    }

    /// Forgets what makes no difference any more.
    pub(super) fn tidy(&mut self) {
        let now = self.now;
        let tidy = |data: &mut Data| {
            data.key = data.key.filter(|(_, end)| *end > now);
            data.marker = data.marker.map(|(id, opens)| (id, if opens > now { opens } else { 0 }));
        };
        let asked = self.clients.map(|client| client.request.map(|request| request.server));
        for (number, server) in (0..).zip(&mut self.servers) {
            tidy(&mut server.data);
            for link in &mut server.links {
                link.stream.iter_mut().for_each(tidy);
                if !asked.contains(&Some(number)) {
                    // No client waits for writes that are acknowledged by now.
                    link.unheard = link.unsent();
                }
            }
        }
        for client in &mut self.clients {
            client.valid_until = if client.valid_until > now { client.valid_until } else { 0 };
        }
    }

    pub(super) fn client(&mut self, client: usize) -> &mut Client {
        self.clients.get_mut(client).expect("there are two clients")
    }

    pub(super) fn link(&mut self, server: usize, link: usize) -> Option<&mut Link> {
        self.servers.get_mut(server)?.links.get_mut(link)
    }

    pub(super) fn new_id(&mut self) -> u8 {
        self.ids += 1;
        self.ids - 1
    }

    /// A server ends its role. The servers that it followed read that later, and its waiting
    /// clients get an error at once.
    pub(super) fn leave(&mut self, server: u8) {
        for link in self.servers.iter_mut().flat_map(|it| &mut it.links).filter(|it| it.replica == server) {
            if !link.ended {
                link.lost = link.unsent();
                link.ended = true;
                link.stream.clear();
            }
        }
        self.server_mut(server).links.clear();
        for client in &mut self.clients {
            client.request = client.request.filter(|it| it.server != server);
        }
    }
}
