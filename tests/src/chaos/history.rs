//! The history of a run, as lines of text: each process appends its records, with the time of a
//! clock that all processes of the machine share.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;

use super::sought::Sought;

/// Nanoseconds of the machine's monotonic clock, on Linux the one that the transports read too.
pub fn now() -> u64 {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(clock);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

/// One attempt of one client's process.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Seeker {
    /// The process.
    pub client: String,
    /// Which of its attempts.
    pub attempt: u64,
}

/// An event with its time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// See [`now`].
    pub at: u64,
    /// What happened.
    pub what: What,
}

/// An event. The time is read *before* anything begins or is requested, and *after* anything has
/// ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// The faults begin.
    Began,
    /// The faults are over.
    Over,
    /// An attempt begins.
    Seeks {
        /// The attempt.
        by: Seeker,
        /// What is to be locked.
        sought: Sought,
    },
    /// The caller has received the guard.
    Granted {
        /// The attempt.
        by: Seeker,
        /// The fencing token, if one was asked for.
        token: Option<u64>,
        /// The TTL in milliseconds.
        ttl: u64,
        /// Whether it is renewed.
        renewed: bool,
        /// The index of the permit, if it is one.
        permit: Option<u64>,
    },
    /// The guard is downgraded to a reader.
    Downgraded {
        /// The attempt.
        by: Seeker,
    },
    /// A guard that was handed over has been resumed by the same client.
    Resumed {
        /// The attempt.
        by: Seeker,
        /// The fencing token that was handed over with it.
        token: Option<u64>,
    },
    /// A guard that another client handed over has been resumed.
    Received {
        /// The attempt that resumed it.
        by: Seeker,
        /// The attempt that handed it over.
        from: Seeker,
        /// The fencing token that was handed over with it.
        token: Option<u64>,
        /// The TTL in milliseconds.
        ttl: u64,
        /// Whether it is renewed from now on.
        renewed: bool,
    },
    /// The guard has been extended.
    Extended {
        /// The attempt.
        by: Seeker,
        /// By how many milliseconds from the request on, which was before this instant.
        ttl: u64,
    },
    /// The attempt has failed.
    Refused {
        /// The attempt.
        by: Seeker,
        /// The error.
        why: String,
    },
    /// The guard was checked after this instant, and was valid.
    Valid {
        /// The attempt.
        by: Seeker,
    },
    /// The holder has released the lock or found that it was lost.
    Ended {
        /// The attempt.
        by: Seeker,
        /// How it ended.
        how: String,
    },
    /// The store was asked to write.
    Write {
        /// The client.
        by: Seeker,
        /// The resource.
        resource: String,
        /// The fencing token of the request.
        token: u64,
        /// Whether the store accepted it.
        accepted: bool,
    },
    /// A client's process is stopped.
    Paused {
        /// Which.
        client: String,
    },
    /// A client's process is about to continue.
    Continued {
        /// Which.
        client: String,
    },
    /// Something was done to the masters or the clients.
    Fault {
        /// The kind of fault.
        kind: String,
        /// Its target and other details.
        detail: String,
    },
}

impl fmt::Display for Seeker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.client, self.attempt)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.at)?;
        let number = |token: &Option<u64>| token.map_or_else(|| "-".to_owned(), |token| token.to_string());
        let manner = |renewed: &bool| if *renewed { "renewed" } else { "fixed" };
        match &self.what {
            What::Began => f.write_str("began"),
            What::Over => f.write_str("over"),
            What::Seeks { by, sought } => write!(f, "seeks {by} {sought}"),
            What::Granted { by, token, ttl, renewed, permit } => {
                write!(f, "granted {by} {} {ttl} {}", number(token), manner(renewed))?;
                permit.map_or(Ok(()), |permit| write!(f, " {permit}"))
            }
            What::Downgraded { by } => write!(f, "downgraded {by}"),
            What::Resumed { by, token } => write!(f, "resumed {by} {}", number(token)),
            What::Received { by, from, token, ttl, renewed } => {
                write!(f, "received {by} {from} {} {ttl} {}", number(token), manner(renewed))
            }
            What::Extended { by, ttl } => write!(f, "extended {by} {ttl}"),
            What::Refused { by, why } => write!(f, "refused {by} {why}"),
            What::Valid { by } => write!(f, "valid {by}"),
            What::Ended { by, how } => write!(f, "ended {by} {how}"),
            What::Write { by, resource, token, accepted } => {
                let verdict = if *accepted { "accepted" } else { "rejected" };
                write!(f, "{verdict} {by} {resource} {token}")
            }
            What::Paused { client } => write!(f, "paused {client}"),
            What::Continued { client } => write!(f, "continued {client}"),
            What::Fault { kind, detail } => write!(f, "fault {kind} {detail}"),
        }
    }
}

impl FromStr for Seeker {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (client, attempt) = text.split_once('#').ok_or_else(|| format!("no client's attempt: {text}"))?;
        Ok(Self { client: client.to_owned(), attempt: parse(attempt)? })
    }
}

impl FromStr for Event {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = Words(line);
        let at = parse(words.next()?)?;
        let kind = words.next()?;
        let what = match kind {
            "began" => What::Began,
            "over" => What::Over,
            "seeks" => What::Seeks { by: words.next()?.parse()?, sought: words.next()?.parse()? },
            "granted" => What::Granted {
                by: words.next()?.parse()?,
                token: number(words.next()?)?,
                ttl: parse(words.next()?)?,
                renewed: words.next()? == "renewed",
                permit: words.next().ok().map(parse).transpose()?,
            },
            "downgraded" => What::Downgraded { by: words.next()?.parse()? },
            "resumed" => What::Resumed { by: words.next()?.parse()?, token: number(words.next()?)? },
            "received" => What::Received {
                by: words.next()?.parse()?,
                from: words.next()?.parse()?,
                token: number(words.next()?)?,
                ttl: parse(words.next()?)?,
                renewed: words.next()? == "renewed",
            },
            "extended" => What::Extended { by: words.next()?.parse()?, ttl: parse(words.next()?)? },
            "refused" => What::Refused { by: words.next()?.parse()?, why: words.rest() },
            "valid" => What::Valid { by: words.next()?.parse()? },
            "ended" => What::Ended { by: words.next()?.parse()?, how: words.rest() },
            "accepted" | "rejected" => What::Write {
                by: words.next()?.parse()?,
                resource: words.next()?.to_owned(),
                token: parse(words.next()?)?,
                accepted: kind == "accepted",
            },
            "paused" => What::Paused { client: words.next()?.to_owned() },
            "continued" => What::Continued { client: words.next()?.to_owned() },
            "fault" => What::Fault { kind: words.next()?.to_owned(), detail: words.rest() },
            _ => return Err(format!("nothing is called {kind}")),
        };
        Ok(Self { at, what })
    }
}

struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    fn next(&mut self) -> Result<&'a str, String> {
        let (word, rest) = self.0.split_once(' ').unwrap_or((self.0, ""));
        self.0 = rest;
        if word.is_empty() { Err("the line is too short".to_owned()) } else { Ok(word) }
    }

    fn rest(self) -> String {
        self.0.to_owned()
    }
}

fn parse(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("no number: {word}"))
}

fn number(word: &str) -> Result<Option<u64>, String> {
    if word == "-" { Ok(None) } else { parse(word).map(Some) }
}

/// The file to which all processes append.
#[derive(Debug)]
pub struct Writer(File);

impl Writer {
    /// Opens the history, which may be there already.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        File::options().create(true).append(true).open(path).map(Self)
    }

    /// Appends an event at an instant. Each line is one system call, so that lines of several
    /// processes do not mix, and a killed process leaves no partial line.
    pub fn add(&self, at: u64, what: What) {
        let line = Event { at, what }.to_string().replace(['\r', '\n'], " ") + "\n";
        (&self.0).write_all(line.as_bytes()).expect("the history takes lines");
    }

    /// Appends what has happened now.
    pub fn note(&self, what: What) {
        self.add(now(), what);
    }
}

/// Reads a history.
///
/// # Errors
/// When the file cannot be read, or contains an invalid line, which is named.
pub fn read(path: &Path) -> io::Result<Vec<Event>> {
    let text = fs::read_to_string(path)?;
    let events = text.lines().enumerate().map(|(place, line)| {
        line.parse().map_err(|error| io::Error::other(format!("line {}: {error}: {line}", place + 1)))
    });
    events.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_history_is_read_as_it_was_written() {
        for line in [
            "1 began",
            "2 seeks 3.1#4 invoice",
            "2 seeks 3.1#4 invoice,report=read",
            "2 seeks 3.1#4 invoice=3",
            "3 granted 3.1#4 1763 900 renewed 2",
            "4 downgraded 3.1#4",
            "3 granted 3.1#4 1763 900 renewed",
            "3 granted 3.1#4 - 900 fixed",
            "4 resumed 3.1#4 1763",
            "4 received 4.1#2 3.1#4 1763 900 renewed",
            "4 received 4.1#2 3.1#4 - 900 fixed",
            "4 extended 3.1#4 1200",
            "5 refused 3.1#5 invoice not acquired: 1 of 5 votes",
            "6 valid 3.1#4",
            "7 ended 3.1#4 released",
            "8 accepted 3.1#4 invoice 1763",
            "9 rejected 3.1#4 invoice 1763",
            "10 paused 3.1",
            "11 continued 3.1",
            "12 fault flushed master 3",
            "13 over",
        ] {
            let event: Event = line.parse().unwrap();
            assert_eq!(event.to_string(), line);
        }
        assert!("1 seeks 1#1 a=b".parse::<Event>().is_err());
        assert!("1 seeks".parse::<Event>().is_err() && "x valid 1#1".parse::<Event>().is_err());
    }
}
