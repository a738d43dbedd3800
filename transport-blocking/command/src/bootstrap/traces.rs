//! What a master shows of earlier use: keys of Quorlock beside those of locks. Asking changes
//! nothing.

use std::time::{Duration, Instant};

use quorlock_core::{Cause, Endpoint, Fleet, Security, ServerError};

use crate::asking::{self, Conversation, Found, Info, Marker, Reply, words};

/// How long all questions to one master may take.
pub(super) const WITHIN: Duration = Duration::from_secs(8);
/// How many keys a master looks at for one answer. A page may have some more, but far fewer than
/// the elements of the longest answer that is read.
const PAGE: &str = "200";
/// The most pages that are asked for: some 400,000 keys, in about a second.
const MOST_PAGES: usize = 2_000;

/// What a master shows of earlier use.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Traces {
    /// It votes already, so it was not looked through.
    Votes,
    /// It has this key.
    Key(Vec<u8>),
    /// It has none.
    Nothing,
    /// It refused to be looked through.
    Denied(ServerError),
    /// There is none among the first keys.
    TooMany,
}

/// Looks at a master.
pub(super) fn look(
    master: &Endpoint,
    security: Option<&dyn Security>,
    ends: Instant,
) -> Result<Traces, Cause> {
    let Found { mut conversation, .. } = asking::find(master, security, "quorlock-bootstrap", ends)?;
    let marker_key = master.key_of(Fleet::MARKER.as_bytes()).into_owned();
    let marker = vec![b"GET".to_vec(), marker_key.clone()];
    let answers = conversation.ask_all(&[words(&["INFO", "replication"]), marker, words(&["TIME"])])?;
    let [info, marker, time] = <[Reply; 3]>::try_from(answers).map_err(|_| Cause::UnexpectedReply)?;
    let info = info.text().map(|info| Info::read(&info));
    let replication_id = info.as_ref().and_then(|info| info.replication_id.as_deref());
    if Marker::read(&marker, replication_id, &time).mark().is_some_and(|mark| mark.votes()) {
        return Ok(Traces::Votes);
    }
    // Tags have no character that is special in a pattern.
    let pattern = [&master.key_of(b"quorlock:"), &b"*"[..]].concat();
    find(&mut conversation, &pattern, &marker_key)
}

/// Looks for a key other than the marker. A server that loses its data loses that of all
/// applications, so the keys of any prefix count.
fn find(master: &mut Conversation, pattern: &[u8], marker: &[u8]) -> Result<Traces, Cause> {
    let mut cursor = b"0".to_vec();
    for _ in 0..MOST_PAGES {
        let mut scan = words(&["SCAN"]);
        scan.extend([cursor, b"MATCH".to_vec(), pattern.to_vec(), b"COUNT".to_vec(), PAGE.into()]);
        let answer = master.ask(scan)?;
        if let Reply::Error(error) = answer {
            return Ok(Traces::Denied(error));
        }
        let Some([Reply::Text(next), Reply::Array(keys)]) = answer.elements() else {
            return Err(Cause::UnexpectedReply);
        };
        let found = keys.iter().find_map(|key| match key {
            Reply::Text(key) if key != marker => Some(key.clone()),
            _ => None,
        });
        if let Some(key) = found {
            return Ok(Traces::Key(key));
        }
        if next == b"0" {
            return Ok(Traces::Nothing);
        }
        cursor = next.clone();
    }
    Ok(Traces::TooMany)
}

/// What a key of Quorlock is, for messages.
pub(super) fn kind(key: &[u8]) -> &'static str {
    let text = String::from_utf8_lossy(key);
    let begins = |word: &str| text.split_once("quorlock:").is_some_and(|(_, rest)| rest.starts_with(word));
    match () {
        () if begins("fence") => "a fencing counter",
        () if begins("seat") => "a permit",
        () if ["queue", "place"].into_iter().any(begins) => "a queue",
        () if begins("want") => "a waiting writer",
        () => "a lock",
    }
}

#[cfg(test)]
mod tests {
    use quorlock_core::Resource;

    use super::*;

    #[test]
    fn the_kind_of_every_key_is_named() {
        for (name, tag) in [("job", ""), ("{a}:b", ""), ("job", "{q0}")] {
            let job = Resource::new(name).unwrap();
            for (key, said) in [
                (job.counter_key(), "a fencing counter"),
                (job.seat_key(1), "a permit"),
                (job.want_key(), "a waiting writer"),
                (b"quorlock:queue/{job}".to_vec(), "a queue"),
                (b"quorlock:job".to_vec(), "a lock"),
            ] {
                assert_eq!(kind(&[tag.as_bytes(), &key].concat()), said);
            }
        }
    }
}
