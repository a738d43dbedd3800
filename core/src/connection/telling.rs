//! The reply to an inspection: a master's report about a lock's key and itself. It is the only
//! reply that is more than a vote.

use std::time::Duration;

use super::{Answers, Connection};
use crate::protocol::{
    Answer, Cause, Fate, Fleet, Group, Marker, Request, Said, SaidHolder, SaidKey, SaidSharing, ServerFacts,
    Ttl,
};
use crate::time::Instant;
use crate::wire::{Reply, ServerError};

impl Connection {
    /// The reply to an inspection. Anything that the script never answers ends the connection.
    pub(super) fn told(
        &mut self,
        request: &Request,
        reply: &Reply<'_>,
        now: Instant,
        answers: &mut Answers,
    ) -> Result<(), Cause> {
        let failed = |cause, fate| Answer::Failed { cause, fate, stale: false };
        match reply {
            Reply::Error(text) => {
                let cause = self.cause_of(ServerError::classify(text));
                answers.answer(self.id, request, failed(cause, Fate::NotSent));
                if let Cause::Cluster(fault) = cause {
                    self.misplaced(fault, text, now);
                }
            }
            Reply::Array(fields) => match read(fields) {
                Some(said) => answers.report(self.id, request, said),
                None => {
                    let cause = Cause::UnexpectedReply;
                    answers.answer(self.id, request, failed(cause, Fate::NotSent));
                    return Err(cause);
                }
            },
            _ => {
                let cause = Cause::UnexpectedReply;
                answers.answer(self.id, request, failed(cause, Fate::NotSent));
                return Err(cause);
            }
        }
        self.prove();
        Ok(())
    }
}

fn read(fields: &[Reply<'_>]) -> Option<Said> {
    let [
        Reply::Bulk(keys),
        Reply::Bulk(sharers),
        Reply::Bulk(group),
        Reply::Integer(wanted),
        Reply::Bulk(seconds),
        Reply::Bulk(micros),
        Reply::Bulk(marker),
        Reply::Bulk(server),
        Reply::Bulk(replication),
    ] = fields
    else {
        return None;
    };
    let sharing = |key: SaidHolder| {
        let is_told = *sharers != b"denied";
        let sharers = lines(sharers).filter(|_| is_told).map(read_holder).collect::<Option<_>>()?;
        Some(SaidKey::Shared(Box::new(SaidSharing {
            group: if group.is_empty() { Group::READERS } else { Group::new(group).ok()? },
            remaining: key.remaining,
            wanted: u64::try_from(*wanted).ok().map(Duration::from_millis),
            sharers: is_told.then_some(sharers),
        })))
    };
    let key = |line| {
        let (place, what) = split(line)?;
        let place = std::str::from_utf8(place).ok()?.parse::<usize>().ok()?.checked_sub(1)?;
        let key = match split(what) {
            Some((b"held", holder)) => SaidKey::Held(read_holder(holder)?),
            Some((b"shared", holder)) => sharing(read_holder(holder)?)?,
            None if what == b"other" => SaidKey::OtherType,
            _ => return None,
        };
        Some((place, key))
    };
    let clock = read_clock(seconds, micros);
    Some(Said {
        keys: lines(keys).map(key).collect::<Option<_>>()?,
        server: read_server(server, replication, clock),
        marker: read_marker(marker, field(replication, "master_replid"), clock),
    })
}

/// `0123456789abcdef 600 1`: digits of a digest, milliseconds, and whether it is ours.
fn read_holder(line: &[u8]) -> Option<SaidHolder> {
    let (digits, rest) = split(line)?;
    let (millis, ours) = split(rest)?;
    let millis = std::str::from_utf8(millis).ok()?.parse::<i64>().ok()?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 16)?;
    Some(SaidHolder {
        fingerprint: u64::from_str_radix(digits, 16).ok()?,
        // A key with the PTTL -1 never expires (Redis command page of PTTL). It cannot be -2: the
        // script reads the key and its PTTL at one instant.
        remaining: u64::try_from(millis).ok().map(Duration::from_millis),
        is_ours: ours == b"1",
    })
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// The text before the first space, and the text after it.
fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    Some((line.get(..space)?, line.get(space + 1..)?))
}

fn read_clock(seconds: &[u8], micros: &[u8]) -> Option<Duration> {
    let number = |digits| std::str::from_utf8(digits).ok()?.parse::<u64>().ok();
    Duration::from_secs(number(seconds)?).checked_add(Duration::from_micros(number(micros)?))
}

fn read_server(server: &[u8], replication: &[u8], clock: Option<Duration>) -> ServerFacts {
    let text = |name: &str| field(server, name).map(str::to_owned);
    let kind = (!server.is_empty()).then(|| text("server_name").unwrap_or_else(|| "redis".to_owned()));
    // Valkey first reports the version of Redis that it is compatible with.
    let own_version = kind.as_deref().and_then(|kind| text(&format!("{kind}_version")));
    ServerFacts {
        version: own_version.or_else(|| text("redis_version")),
        kind,
        role: field(replication, "role").map(str::to_owned),
        replicas: field(replication, "connected_slaves").and_then(|replicas| replicas.parse().ok()),
        uptime: field(server, "uptime_in_seconds")
            .and_then(|uptime| uptime.parse().ok())
            .map(Duration::from_secs),
        clock,
    }
}

fn read_marker(marker: &[u8], replication_id: Option<&str>, clock: Option<Duration>) -> Marker {
    if marker.is_empty() {
        return Marker::Absent;
    }
    let read = || {
        let (clock, replication_id) = (clock?, replication_id?);
        let mut parts = std::str::from_utf8(marker).ok()?.split(' ');
        let id = parts.next()?;
        let mut millis = || parts.next().and_then(|part| part.parse().ok()).map(Duration::from_millis);
        let (born, opens, longest) = (millis()?, millis()?, millis()?);
        let is_own = id == replication_id && born <= clock;
        let fleet = Fleet::of_marker(Ttl::new(longest).ok()?, parts.next()?.parse().ok()?);
        let left = opens.saturating_sub(clock);
        Some(Marker::Present { is_own, left, longest, replicas: fleet.replicas })
    };
    read().unwrap_or(Marker::Unknown)
}

/// The value of `name:value` in an answer to INFO.
fn field<'a>(info: &'a [u8], name: &str) -> Option<&'a str> {
    let mut lines = info.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b":"))?;
    std::str::from_utf8(value).ok().map(str::trim_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_counts_only_until_the_restart_of_the_server_that_wrote_it() {
        let seconds = Duration::from_secs;
        let read = |marker: &str, clock| match read_marker(marker.as_bytes(), Some("ab12"), clock) {
            Marker::Present { is_own, left, longest, .. } => Some((is_own, left, longest)),
            Marker::Absent | Marker::Unknown => None,
        };
        let marker = "ab12 5000 65000 60000 3";
        assert_eq!(read(marker, Some(seconds(25))), Some((true, seconds(40), seconds(60))));
        assert_eq!(read(marker, Some(seconds(70))), Some((true, Duration::ZERO, seconds(60))));
        // From before a restart, or from the future.
        assert_eq!(read("cd34 5000 5000 60000 3", Some(seconds(70))).map(|read| read.0), Some(false));
        assert_eq!(read(marker, Some(seconds(4))).map(|read| read.0), Some(false));
        assert_eq!(read(marker, None), None);
        for strange in ["ab12", "ab12 x y z 3", "denied"] {
            assert_eq!(read_marker(strange.as_bytes(), Some("ab12"), Some(seconds(1))), Marker::Unknown);
        }
        assert_eq!(read_marker(b"", Some("ab12"), Some(seconds(1))), Marker::Absent);
    }

    /// An answer about these keys, the first one's sharers, their group and its mark, and nothing
    /// about the server.
    fn said(keys: &'static str, sharers: &'static str, group: &'static str, wanted: i64) -> Option<Said> {
        let bulk = |text: &'static str| Reply::Bulk(text.as_bytes());
        let rest = ["", "", "denied", "", ""].map(bulk);
        let about = [bulk(keys), bulk(sharers), bulk(group), Reply::Integer(wanted)];
        read(&[about.as_slice(), &rest].concat())
    }

    const ONE: SaidHolder = SaidHolder { fingerprint: 0x0123_4567_89ab_cdef, remaining: None, is_ours: true };

    #[test]
    fn the_key_is_reported_even_if_server_facts_and_marker_are_denied() {
        let told = said("1 held 0123456789abcdef -1 1", "", "", -2).unwrap();
        assert_eq!(told.keys, [(0, SaidKey::Held(ONE))]);
        assert_eq!((told.server, told.marker), (ServerFacts::default(), Marker::Unknown));
        assert_eq!(said("", "", "", -2).unwrap().keys, []);
        for strange in ["1 held", "1 held 01 5 0", "0 other", "x other", "1 other thing", "1 shared x", "1"] {
            assert_eq!(said(strange, "", "", -2), None, "{strange}");
        }
    }

    #[test]
    fn several_keys_are_reported_by_their_index() {
        let told = said("2 held 0123456789abcdef 600 0\n4 other", "", "", -2).unwrap();
        let remaining = Some(Duration::from_millis(600));
        let holder = SaidHolder { remaining, is_ours: false, ..ONE };
        assert_eq!(told.keys, [(1, SaidKey::Held(holder)), (3, SaidKey::OtherType)]);
    }

    #[test]
    fn the_sharers_of_a_key_are_reported_with_their_remaining_times() {
        let key = "1 shared 0ee54c81939df725 601 0";
        let sharing = |sharers, group, wanted| match said(key, sharers, group, wanted)?.keys.pop() {
            Some((0, SaidKey::Shared(sharing))) => Some(*sharing),
            key => panic!("{key:?}"),
        };
        let told = sharing("0123456789abcdef 600 1\n0123456789abcdee 5 0", "job:42", 900).unwrap();
        let millis = |millis| Some(Duration::from_millis(millis));
        assert_eq!(
            (told.remaining, told.wanted, told.group.name()),
            (millis(601), millis(900), &b"job:42"[..])
        );
        let first = SaidHolder { remaining: millis(600), ..ONE };
        let second = SaidHolder { fingerprint: ONE.fingerprint - 1, remaining: millis(5), is_ours: false };
        assert_eq!(told.sharers, Some(vec![first, second]));
        let denied = sharing("denied", "", -2).unwrap();
        assert_eq!((denied.sharers, denied.wanted, denied.group), (None, None, Group::READERS));
        assert_eq!(sharing("", "", -2).unwrap().sharers, Some(Vec::new()));
        assert_eq!(said(key, "x", "", -2), None);
    }

    #[test]
    fn kind_version_role_and_clock_are_read_from_the_reply_of_a_server() {
        let info = b"# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.0.1\r\nuptime_in_seconds:61\r\n";
        let replication = b"role:master\r\nconnected_slaves:2\r\n";
        let facts = read_server(info, replication, read_clock(b"3", b"500000"));
        assert_eq!((facts.kind.as_deref(), facts.version.as_deref()), (Some("valkey"), Some("9.0.1")));
        assert_eq!((facts.role.as_deref(), facts.replicas), (Some("master"), Some(2)));
        let seconds = |seconds| Some(Duration::from_secs_f64(seconds));
        assert_eq!((facts.uptime, facts.clock), (seconds(61.0), seconds(3.5)));
        assert_eq!(read_clock(b"", b""), None);
    }
}
