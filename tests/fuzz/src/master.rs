//! The model master, with two clients that send it anything.
//!
//! An input is a list of operations. Each consists of a number that says which connection sends and
//! how the bytes are split, another that says how much time has passed, and the bytes.

use std::time::Duration;

use quorlock_sim::{Flow, Master, Session};

use super::input::{expanded, operations, pieces};

/// The longest reply with fixed contents (INFO, CONFIG GET). Other replies only echo what was sent.
const MAX_FIXED_REPLY_BYTES: usize = 16 * 1024;

/// Panics if the master sends too much, or if its replies depend on how the bytes were split.
/// Returns the number of bytes.
pub(crate) fn run(input: &[u8]) -> usize {
    let (mut whole, mut split) = (Server::new(), Server::new());
    let (mut now, mut received) = (Duration::from_secs(1_700_000_000), 0);
    for mut operation in operations(input) {
        let number = operation.byte();
        let client = usize::from(number >> 7);
        let time = operation.byte();
        now += Duration::from_millis(u64::from(time & 31) << [0, 3, 10, 20][usize::from(time >> 6)]);
        let bytes = expanded(operation.rest());
        received += bytes.len();
        let before = whole.master.executed();
        let replies = whole.serve(client, &bytes, now, 7);
        let commands = usize::try_from(whole.master.executed() - before).unwrap_or(usize::MAX);
        // Every command may read the same value again, and no value is longer than what was sent
        // before.
        let limit = (commands + 1).saturating_mul(MAX_FIXED_REPLY_BYTES + 2 * received);
        assert!(replies.len() <= limit, "{} bytes for {commands} commands", replies.len());
        assert!(
            split.serve(client, &bytes, now, number) == replies,
            "the replies know how the bytes were split"
        );
        assert!(split == whole, "the master knows how the bytes were split");
        for held in whole.master.keys(now) {
            assert!(held.expires_at.is_none_or(|end| end >= now.saturating_sub(Duration::from_millis(1))));
        }
    }
    received
}

struct Server {
    master: Master,
    clients: [(Session, Flow); 2],
}

impl Server {
    fn new() -> Self {
        Self { master: Master::new(1), clients: [(); 2].map(|()| (Session::new(), Flow::Open)) }
    }

    /// Serves a client's bytes. A client whose connection was closed comes back over another one.
    fn serve(&mut self, client: usize, bytes: &[u8], now: Duration, number: u8) -> Vec<u8> {
        let (session, flow) = &mut self.clients[client];
        if *flow == Flow::Close {
            *session = self.master.accept();
            *flow = Flow::Open;
        }
        let mut replies = Vec::new();
        for piece in pieces(bytes.len(), number) {
            *flow = self.master.serve(session, &bytes[piece], now, &mut replies);
            if *flow == Flow::Close {
                return replies;
            }
        }
        assert!(session.unread_bytes() <= bytes.len() + Session::MAX_COMMAND_BYTES);
        replies
    }
}

impl PartialEq for Server {
    /// What a closed connection has not read makes no difference.
    fn eq(&self, other: &Self) -> bool {
        let clients = self.clients.iter().zip(&other.clients);
        self.master == other.master
            && clients.into_iter().all(|((session, flow), (other, other_flow))| {
                let is_same = session.unread_bytes() == other.unread_bytes()
                    && session.database() == other.database()
                    && session.name() == other.name()
                    && session.is_resp3() == other.is_resp3();
                flow == other_flow && (*flow == Flow::Close || is_same)
            })
    }
}
