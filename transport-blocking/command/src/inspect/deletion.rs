//! Deleting a lock's key, whoever holds it.

use quorlock_core::{Cause, Endpoint, RELEASE_SCRIPT, ServerError};

use super::conversation::{Conversation, Reply};
use super::{Answer, each};

/// How often a key is read again because another token stood there when it was to be deleted.
const TRIES: usize = 8;

/// What became of a key on one master.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deletion {
    /// It is deleted.
    Deleted,
    /// There was none.
    Absent,
    /// It is no string, and so no lock, and still there.
    OtherType,
    /// Whoever held it was followed by others again and again.
    Contended,
}

/// Deletes this key on all masters.
pub(crate) fn delete(masters: &[Endpoint], key: &[u8]) -> Vec<Answer<Deletion>> {
    let key = key.to_vec();
    each(masters, move |master| {
        let (mut master, _) = Conversation::open(master, "quorlock-force-release")?;
        for _ in 0..TRIES {
            let token = match master.ask(&[b"GET", &key])? {
                Reply::Null => return Ok(Deletion::Absent),
                Reply::Text(token) => token,
                Reply::Error(ServerError::WrongType) => return Ok(Deletion::OtherType),
                Reply::Error(error) => return Err(Cause::Server(error)),
                _ => return Err(Cause::UnexpectedReply),
            };
            // A plain DEL would delete whatever somebody has put there since.
            match master.ask(&[b"EVAL", RELEASE_SCRIPT.as_bytes(), b"1", &key, &token])? {
                Reply::Integer(1) => return Ok(Deletion::Deleted),
                Reply::Integer(0) => {}
                Reply::Error(error) => return Err(Cause::Server(error)),
                _ => return Err(Cause::UnexpectedReply),
            }
        }
        Ok(Deletion::Contended)
    })
}
