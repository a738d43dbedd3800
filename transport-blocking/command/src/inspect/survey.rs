//! What each master says about a lock, and about itself. Nothing is changed by asking.

use std::time::Duration;

use quorlock_blocking::Token;

use quorlock_core::{Cause, Endpoint, Fleet, ServerError};

use super::conversation::{Conversation, Reply};
use super::{Answer, each};

/// What one master said.
pub(crate) struct Said {
    /// The server's kind and version, where it tells them.
    pub(crate) server: Option<(String, String)>,
    /// `master`, or what it is instead.
    pub(crate) role: Option<String>,
    /// How many replicas it has.
    pub(crate) replicas: u64,
    /// Since its start.
    pub(crate) uptime: Option<Duration>,
    /// Its clock, since 1970.
    pub(crate) clock: Option<Duration>,
    /// New at every start of the server.
    run_id: Option<String>,
    /// What it has at the lock's name.
    pub(crate) key: Key,
    /// Whether it votes.
    pub(crate) standing: Standing,
    marker: Marker,
}

/// What a master has at the lock's name.
pub(crate) enum Key {
    /// Nothing.
    Free,
    /// Somebody's token.
    Held {
        /// The number of its holder, equal where one holder has several masters. Tokens are never told.
        holder: usize,
        /// How long it lives; `None` if it never ends.
        left: Option<Duration>,
    },
    /// Something that is no string, and so no lock.
    OtherType,
}

/// Whether a master votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It does, or no restart guard is in use.
    Votes,
    /// It is under the restart guard, and will not vote for so long.
    Quarantined(Duration),
    /// It lost its data and nobody has noticed yet: from the next request under the restart guard on it will not vote for so long.
    Unnoticed(Duration),
    /// It is a replica.
    Replica,
    /// It is the server that another address, of the master with this place, leads to.
    SameAs(usize),
}

impl Said {
    /// Whether it has replicas although clients use the restart guard, which does not cover their promotion.
    pub(crate) fn has_undeclared_replicas(&self) -> bool {
        let is_guarded = matches!(self.marker, Marker::Present { .. });
        is_guarded && self.replicas > 0 && self.standing != Standing::Replica
    }
}

/// The restart guard's marker.
enum Marker {
    /// There is none.
    Absent,
    /// It may not be read, or the server does not tell what it takes to judge it.
    Unknown,
    Present {
        /// Whether it was written in this life of the server.
        is_own: bool,
        /// For how long the master does not vote yet.
        left: Duration,
        /// The longest TTL of the clients under the guard.
        longest: Duration,
    },
}

/// What all masters said.
pub(crate) struct Survey {
    /// In the masters' order.
    pub(crate) answers: Vec<Answer<Said>>,
    /// The number of the holder that has our token.
    pub(crate) ours: Option<usize>,
}

/// Asks all masters about this key. `token` is ours, if we may hold the lock.
pub(crate) fn survey(masters: &[Endpoint], key: &[u8], token: Option<Token>) -> Survey {
    let key = key.to_vec();
    let found = each(masters, move |master| ask(master, &key));
    let mut tokens: Vec<Vec<u8>> = Vec::new();
    let mut answers: Vec<Answer<Said>> = Vec::new();
    for answer in found {
        answers.push(answer.map(|(mut said, token)| {
            if let (Key::Held { holder, .. }, Some(token)) = (&mut said.key, token) {
                *holder = tokens.iter().position(|known| *known == token).unwrap_or(tokens.len());
                if *holder == tokens.len() {
                    tokens.push(token);
                }
            }
            if let Some(run_id) = &said.run_id {
                let is_same = |other: &Answer<Said>| matches!(other, Ok(other) if other.run_id.as_ref() == Some(run_id));
                if let Some(other) = answers.iter().position(is_same) {
                    said.standing = Standing::SameAs(other);
                }
            }
            said
        }));
    }
    look_for_lost_markers(&mut answers);
    let ours = token.and_then(|token| tokens.iter().position(|known| *known == token.to_hex()));
    Survey { answers, ours }
}

/// A master without a marker among others that have one has lost it.
fn look_for_lost_markers(answers: &mut [Answer<Said>]) {
    let longest = |said: &Said| match said.marker {
        Marker::Present { longest, .. } => Some(longest),
        Marker::Absent | Marker::Unknown => None,
    };
    let Some(of_all) = answers.iter().flatten().filter_map(longest).max() else { return };
    for said in answers.iter_mut().flatten().filter(|said| said.standing == Standing::Votes) {
        said.standing = match said.marker {
            Marker::Present { is_own: false, longest, .. } => Standing::Unnoticed(longest),
            Marker::Present { left, .. } if !left.is_zero() => Standing::Quarantined(left),
            Marker::Absent => Standing::Unnoticed(of_all),
            Marker::Present { .. } | Marker::Unknown => Standing::Votes,
        };
    }
}

/// What this master says, and the token that it has.
fn ask(master: &Endpoint, key: &[u8]) -> Answer<(Said, Option<Vec<u8>>)> {
    let (mut master, hello) = Conversation::open(master, "quorlock-status")?;
    master.send(&[
        &[b"INFO", b"server"],
        &[b"INFO", b"replication"],
        &[b"TIME"],
        &[b"GET", Fleet::MARKER.as_bytes()],
        &[b"GET", key],
        &[b"PTTL", key],
    ])?;
    let [server, replication, time, marker] =
        [master.answer()?, master.answer()?, master.answer()?, master.answer()?];
    let (value, life) = (master.answer()?, master.answer()?);
    let (key, token) = read_key(value, &life)?;
    let told = |name: &str| text(hello.as_ref()?.field(name)?);
    let kind = field(&server, "server_name").or_else(|| told("server")).unwrap_or_else(|| "redis".to_owned());
    // Valkey tells the version of Redis that it is compatible with first.
    let version = field(&server, &format!("{kind}_version"))
        .or_else(|| field(&server, "redis_version"))
        .or_else(|| told("version"));
    let role = field(&replication, "role").or_else(|| told("role"));
    let is_replica = role.as_deref().is_some_and(|role| role != "master");
    let replicas = field(&replication, "connected_slaves").and_then(|replicas| replicas.parse().ok());
    let clock = read_clock(&time);
    let said = Said {
        server: version.map(|version| (kind, version)),
        role,
        replicas: replicas.unwrap_or(0),
        uptime: field(&server, "uptime_in_seconds")
            .and_then(|seconds| seconds.parse().ok())
            .map(Duration::from_secs),
        clock,
        run_id: field(&server, "run_id"),
        key,
        standing: if is_replica { Standing::Replica } else { Standing::Votes },
        marker: read_marker(&marker, field(&replication, "master_replid"), clock),
    };
    Ok((said, token))
}

fn read_key(value: Reply, life: &Reply) -> Answer<(Key, Option<Vec<u8>>)> {
    Ok(match (value, life) {
        // It may end between the two.
        (Reply::Null, _) | (Reply::Text(_), Reply::Integer(-2)) => (Key::Free, None),
        (Reply::Text(token), Reply::Integer(-1)) => (Key::Held { holder: 0, left: None }, Some(token)),
        (Reply::Text(token), Reply::Integer(millis)) => {
            let left = Duration::from_millis(u64::try_from(*millis).unwrap_or(0));
            (Key::Held { holder: 0, left: Some(left) }, Some(token))
        }
        (Reply::Error(ServerError::WrongType), _) => (Key::OtherType, None),
        (Reply::Error(error), _) => return Err(Cause::Server(error)),
        (_, Reply::Error(error)) => return Err(Cause::Server(*error)),
        _ => return Err(Cause::UnexpectedReply),
    })
}

fn read_clock(time: &Reply) -> Option<Duration> {
    let Reply::Array(parts) = time else { return None };
    let [seconds, micros] = parts.as_slice() else { return None };
    let number = |part: &Reply| text(part)?.parse::<u64>().ok();
    Some(Duration::from_secs(number(seconds)?) + Duration::from_micros(number(micros)?))
}

fn read_marker(marker: &Reply, replication_id: Option<String>, clock: Option<Duration>) -> Marker {
    if matches!(marker, Reply::Null) {
        return Marker::Absent;
    }
    let read = || {
        let marker = text(marker)?;
        let (clock, replication_id) = (clock?, replication_id?);
        let mut parts = marker.split(' ');
        let id = parts.next()?;
        let mut millis = || parts.next().and_then(|part| part.parse().ok()).map(Duration::from_millis);
        let (born, opens, longest) = (millis()?, millis()?, millis()?);
        let is_own = id == replication_id && born <= clock;
        Some(Marker::Present { is_own, left: opens.saturating_sub(clock), longest })
    };
    read().unwrap_or(Marker::Unknown)
}

fn text(reply: &Reply) -> Option<String> {
    reply.text().map(|text| String::from_utf8_lossy(text).into_owned())
}

/// The value of `name:value` in an answer to INFO.
fn field(info: &Reply, name: &str) -> Option<String> {
    let info = text(info)?;
    info.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim_end().to_owned()))
}

#[cfg(test)]
impl Said {
    /// A master that says so.
    pub(super) fn of(key: Key, standing: Standing) -> Self {
        Self {
            server: None,
            role: None,
            replicas: 0,
            uptime: None,
            clock: None,
            run_id: None,
            key,
            standing,
            marker: Marker::Absent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_counts_in_the_life_of_the_server_that_wrote_it() {
        let seconds = Duration::from_secs;
        let read = |marker: &str, clock| {
            let marker = Reply::Text(marker.as_bytes().to_vec());
            match read_marker(&marker, Some("ab12".to_owned()), clock) {
                Marker::Present { is_own, left, longest } => Some((is_own, left, longest)),
                Marker::Absent | Marker::Unknown => None,
            }
        };
        let marker = "ab12 5000 65000 60000 3";
        assert_eq!(read(marker, Some(seconds(25))), Some((true, seconds(40), seconds(60))));
        assert_eq!(read(marker, Some(seconds(70))), Some((true, Duration::ZERO, seconds(60))));
        // From a former life, or from a time that has not come yet.
        assert_eq!(read("cd34 5000 5000 60000 3", Some(seconds(70))).map(|read| read.0), Some(false));
        assert_eq!(read(marker, Some(seconds(4))).map(|read| read.0), Some(false));
        assert_eq!(read(marker, None), None);
        for strange in ["", "ab12", "ab12 x y z 3"] {
            assert_eq!(read(strange, Some(seconds(1))), None);
        }
    }

    #[test]
    fn who_lost_the_marker_that_others_have_is_found() {
        let longest = Duration::from_secs(60);
        let with = |marker| Said { marker, ..Said::of(Key::Free, Standing::Votes) };
        let present =
            |is_own, left| with(Marker::Present { is_own, left: Duration::from_secs(left), longest });
        let standings = |answers: Vec<Said>| {
            let mut answers: Vec<_> = answers.into_iter().map(Ok).collect();
            look_for_lost_markers(&mut answers);
            answers.into_iter().flatten().map(|said| said.standing).collect::<Vec<_>>()
        };
        assert_eq!(standings(vec![with(Marker::Absent), with(Marker::Absent)]), [Standing::Votes; 2]);
        assert_eq!(
            standings(vec![
                present(true, 0),
                present(true, 7),
                present(false, 0),
                with(Marker::Absent),
                with(Marker::Unknown)
            ]),
            [
                Standing::Votes,
                Standing::Quarantined(Duration::from_secs(7)),
                Standing::Unnoticed(longest),
                Standing::Unnoticed(longest),
                Standing::Votes,
            ]
        );
    }
}
