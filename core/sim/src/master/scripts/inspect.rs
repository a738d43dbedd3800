//! The scripts of somebody who asks about a lock, or deletes its key whoever holds it.

use super::Body;
use crate::master::info;
use crate::master::reply::{Failure, WRONG_TYPE};

/// The key under which a master keeps the restart guard's marker.
const MARKER: &[u8] = b"quorlock:restart-guard";

impl Body<'_, '_> {
    pub(super) fn inspect(&mut self) -> Result<(), Failure> {
        let (kind, held) = match self.get(self.key(1)) {
            Ok(None) => ("free", None),
            Ok(Some(held)) => ("held", Some(held)),
            Err(error) if error == WRONG_TYPE => ("other", None),
            Err(error) => return Err(error),
        };
        let left = if held.is_some() { self.pttl() } else { -2 };
        let token = held.as_deref().filter(|held| held.len() == TOKEN_DIGITS);
        let Some(tokens) = self.value(1).or(token.is_none().then_some(b"")) else {
            let what = "bad argument #1 to 'find' (string expected, got nil)";
            return Err(self.stopped("string.find(ARGV[1]", what));
        };
        let is_ours = token.is_some_and(|token| tokens.windows(TOKEN_DIGITS).any(|ours| ours == token));
        let clock = self.clock();
        let marker = match self.get(Some(MARKER)) {
            Ok(marker) => marker.unwrap_or_default(),
            Err(_) => b"denied".to_vec(),
        };
        let [server, replication] =
            ["server", "replication"].map(|section| info::text(self.call, &[section]));
        let reply = &mut self.call.reply;
        reply.array(9);
        reply.bulk(kind.as_bytes());
        reply.bulk(held.as_deref().map(super::plain::digest).unwrap_or_default().as_bytes());
        reply.integer(left);
        reply.integer(is_ours.into());
        reply.bulk((clock / 1000).to_string().as_bytes());
        reply.bulk((clock % 1000 * 1000).to_string().as_bytes());
        reply.bulk(&marker);
        reply.bulk(server.as_bytes());
        reply.bulk(replication.as_bytes());
        Ok(())
    }

    pub(super) fn force_release(&mut self) -> Result<(), Failure> {
        let Some(held) = self.get(self.key(1))? else { return self.number(0.0) };
        let digest = super::plain::digest(&held);
        if digest.as_bytes().get(..FINGERPRINT_DIGITS) == self.value(1) {
            return self.delete();
        }
        self.tell_holder(&held);
        Ok(())
    }
}

const TOKEN_DIGITS: usize = 40;
const FINGERPRINT_DIGITS: usize = 16;
