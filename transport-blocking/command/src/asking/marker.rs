//! The marker of the restart guard, and the clock by which it is read.

use std::time::Duration;

use quorlock_core::{Fleet, Ttl};

use super::Reply;

/// The restart guard's marker on one master.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    /// There is none.
    Absent,
    /// It may not be read.
    Unknown,
    Present(Mark),
}

/// A marker that was read. Its times are those of the master's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Whether it was written since the last start of the server. Otherwise the next client that
    /// asks the master writes another one.
    pub(crate) is_own: bool,
    /// When it was written: the quarantine began then. Since 1970.
    pub(crate) born: Duration,
    /// When the master votes. Since 1970.
    pub(crate) opens: Duration,
    /// The master's time when it was read. Since 1970.
    pub(crate) now: Duration,
    /// What the clients agree on.
    pub(crate) fleet: Fleet,
}

impl Marker {
    /// Reads the answers to GET of the marker and to TIME.
    pub(crate) fn read(marker: &Reply, replication_id: Option<&str>, time: &Reply) -> Self {
        if *marker == Reply::Null {
            return Self::Absent;
        }
        let read = || {
            let marker = marker.text()?;
            let (now, replication_id) = (since_1970(time)?, replication_id?);
            let mut parts = marker.split(' ');
            let id = parts.next()?;
            let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok());
            let [born, opens, longest, marked] = [number()?, number()?, number()?, number()?];
            let [born, opens, longest] = [born, opens, longest].map(Duration::from_millis);
            let fleet = Fleet::of_marker(Ttl::new(longest).ok()?, u32::try_from(marked).ok()?);
            let is_own = id == replication_id && born <= now;
            Some(Self::Present(Mark { is_own, born, opens, now, fleet }))
        };
        read().unwrap_or(Self::Unknown)
    }

    /// The marker, if there is one that can be read.
    pub(crate) fn mark(&self) -> Option<&Mark> {
        match self {
            Self::Present(mark) => Some(mark),
            Self::Absent | Self::Unknown => None,
        }
    }
}

impl Mark {
    /// The longest TTL of the clients under the guard.
    pub(crate) fn longest(&self) -> Duration {
        self.fleet.longest_ttl.as_duration()
    }

    /// Whether the master votes.
    pub(crate) fn votes(&self) -> bool {
        self.is_own && self.opens <= self.now
    }
}

/// The answer to TIME, which consists of whole seconds, and microseconds.
pub(crate) fn since_1970(answer: &Reply) -> Option<Duration> {
    let [seconds, micros] = answer.elements()? else { return None };
    let number = |part: &Reply| part.text()?.parse::<u32>().ok();
    Some(Duration::from_secs(number(seconds)?.into()) + Duration::from_micros(number(micros)?.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Reply {
        Reply::Text(text.as_bytes().to_vec())
    }

    fn time(seconds: u64) -> Reply {
        Reply::Array(vec![text(&seconds.to_string()), text("500000")])
    }

    #[test]
    fn a_marker_counts_only_until_the_restart_of_the_server_that_wrote_it() {
        let read = |marker: &str, id, clock| Marker::read(&text(marker), id, &time(clock));
        let marker = "ab12 5000 65000 60000 2003";
        let mark = |id, clock| match read(marker, Some(id), clock) {
            Marker::Present(mark) => mark,
            other => panic!("{other:?}"),
        };
        let seen = mark("ab12", 25);
        assert_eq!((seen.is_own, seen.votes(), seen.longest()), (true, false, Duration::from_secs(60)));
        assert_eq!((seen.fleet.masters, seen.fleet.replicas), (3, Some(1)));
        assert_eq!((seen.born, seen.opens), (Duration::from_secs(5), Duration::from_secs(65)));
        assert!(mark("ab12", 65).votes());
        // From before a restart, or from the future.
        assert!(!mark("cd34", 65).is_own && !mark("cd34", 65).votes());
        assert!(!mark("ab12", 4).is_own);
        assert_eq!(read(marker, None, 25), Marker::Unknown);
        for strange in ["", "ab12", "ab12 x y z 3", "ab12 1 1 1"] {
            assert_eq!(read(strange, Some("ab12"), 25), Marker::Unknown);
        }
        assert_eq!(Marker::read(&Reply::Null, Some("ab12"), &Reply::Null), Marker::Absent);
        assert_eq!(Marker::read(&text(marker), Some("ab12"), &Reply::Null), Marker::Unknown);
    }

    #[test]
    fn an_invalid_answer_to_time_is_not_read() {
        assert_eq!(since_1970(&time(12)), Some(Duration::from_millis(12_500)));
        for strange in [Reply::Null, Reply::Array(vec![text("12")]), Reply::Array(vec![text("x"), text("1")])]
        {
            assert_eq!(since_1970(&strange), None);
        }
    }
}
