//! The texts of causes, and what they count as.

use super::*;

#[test]
fn each_cause_describes_what_failed() {
    struct Said<'a>(Cause, &'a Endpoint);
    impl fmt::Display for Said<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.describe(Some(self.1), std::slice::from_ref(self.1), f)
        }
    }
    let master: Endpoint = "redis://a?password-file=/run/x".parse().unwrap();
    let waited = Duration::from_millis(50);
    let [first, second] = [0, 1].map(|place| MasterId::all(2).nth(place).unwrap());
    for (cause, said) in [
        (Cause::NoAnswer { waited }, "no answer in 50 ms"),
        (Cause::NoConnection { waited }, "no connection in 50 ms"),
        (Cause::Connect(IoFault::new(io::ErrorKind::ConnectionRefused)), "connection refused"),
        (Cause::Connect(IoFault::new(io::ErrorKind::NotFound)), "no such socket"),
        (Cause::Connect(IoFault::new(io::ErrorKind::TimedOut)), "no connection: timed out"),
        (Cause::ConnectorPanicked, "no connection: its connector panicked"),
        (Cause::UnknownHost, "host name not found"),
        (
            Cause::Tls(TlsFault::Expired),
            "its certificate has expired: renew it on the server, and compare the clocks",
        ),
        (Cause::Sentinel(SentinelFault::UnknownGroup), "its sentinels know no group of this name"),
        (Cause::Closed, "connection closed"),
        (
            Cause::HungUp,
            "closed before any answer: is this a TLS port (use rediss://), or a proxy that hides the server?",
        ),
        (Cause::Server(ServerError::Oom), "is out of memory (OOM)"),
        (Cause::Server(ServerError::NoAuth), "needs a password (NOAUTH): put it in the URL"),
        (
            Cause::Server(ServerError::NoPerm),
            "user lacks a permission (NOPERM): `quorlock doctor` lists what is missing",
        ),
        (Cause::Garbage(WireFault::Streamed), "does not speak Redis's protocol: a value of unknown length"),
        (Cause::UnexpectedReply, "does not speak Redis's protocol: an answer that was not asked for"),
        (
            Cause::LacksCommand("DEL"),
            "does not know the command DEL, which this lock needs: do not rename or remove it",
        ),
        (
            Cause::UnaskedMessages,
            "sent too many messages that were not asked for: is this a Redis or Valkey server, without something in between?",
        ),
        (
            Cause::OtherType { target: 1 },
            "the key of target 2 holds something that is not a lock (WRONGTYPE)",
        ),
        (Cause::Replica, "is a replica, and only masters vote"),
        (Cause::SameServer { other: first }, "is the same server as a:6379"),
        (Cause::SameServer { other: second }, "is the same server as another address"),
        (
            Cause::SharedServer { other: second },
            "its tag is on the same server as another one, which has one vote: `quorlock cluster-plan` finds tags on different servers",
        ),
        (Cause::TooManyInFlight, "not asked: too many requests in flight"),
        (Cause::Alone { following: 1, connected: 1, declared: 2 }, "replicas that follow it: 1 of 2"),
        (
            Cause::Alone { following: 3, connected: 3, declared: 2 },
            "has 3 replicas, and its URL says replicas=2: give all clients the number of all replicas",
        ),
        (
            Cause::Alone { following: 0, connected: 1, declared: 0 },
            "has 1 replica, and its URL says replicas=0: give all clients the number of all replicas",
        ),
        (Cause::Unconfirmed { confirmed: 0, declared: 1 }, "replicas that confirmed it in time: 0 of 1"),
        (Cause::NoLogin(Unavailable::EmptyFile), "no login: the password file /run/x is empty"),
        (Cause::NoLogin(Unavailable::Because("no token yet")), "no login: no token yet"),
        (
            Cause::LoginRefused(ServerError::WrongPass),
            "refused the login: wrong user or password (WRONGPASS); trying again with a new one",
        ),
    ] {
        assert_eq!(Said(cause, &master).to_string(), said);
        let names_a_file = cause == Cause::NoLogin(Unavailable::EmptyFile);
        let names_another = matches!(cause, Cause::SameServer { .. });
        if !names_another {
            assert_eq!(cause.at(&master).to_string(), said);
        }
        if !names_a_file && !names_another {
            assert_eq!(cause.to_string(), said);
        }
    }
}

#[test]
fn causes_that_a_person_has_to_fix_count_as_configuration() {
    let other = MasterId::all(1).next().unwrap();
    assert!(Cause::SameServer { other }.is_configuration());
    assert!(Cause::Server(ServerError::NoAuth).is_configuration());
    assert!(!Cause::Server(ServerError::Oom).is_configuration());
    assert!(!Cause::LoginRefused(ServerError::WrongPass).is_configuration());
    assert!(!Cause::Closed.is_configuration() && !Cause::Replica.is_configuration());
    for (fault, is_configuration) in [(TlsFault::Expired, true), (TlsFault::Other, false)] {
        assert_eq!(Cause::Tls(fault).is_configuration(), is_configuration, "{fault:?}");
    }
    for (fault, is_configuration) in [
        (SentinelFault::UnknownGroup, true),
        (SentinelFault::Refused(ServerError::NoAuth), true),
        (SentinelFault::Refused(ServerError::Oom), false),
    ] {
        assert_eq!(Cause::Sentinel(fault).is_configuration(), is_configuration, "{fault:?}");
    }
}

#[test]
fn a_connection_closed_by_the_peer_is_distinguished_from_a_system_error() {
    let cause = |kind: io::ErrorKind| Cause::from(&io::Error::from(kind));
    for gone in [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe, io::ErrorKind::UnexpectedEof] {
        assert_eq!(cause(gone), Cause::Closed);
    }
    let kind = io::ErrorKind::ConnectionRefused;
    assert_eq!(cause(kind), Cause::Connect(IoFault::new(kind)));
    let panicked = io::Error::other(Panicked);
    assert_eq!(Cause::from(&panicked), Cause::ConnectorPanicked);
    assert_eq!(panicked.to_string(), Cause::ConnectorPanicked.to_string());
    let other = io::Error::other("anything else");
    assert_eq!(Cause::from(&other), Cause::Connect(IoFault::new(io::ErrorKind::Other)));
}

#[test]
fn a_system_error_without_a_kind_of_its_own_keeps_the_text_of_the_system() {
    let too_many_files = io::Error::from_raw_os_error(24);
    let text = too_many_files.to_string();
    assert_ne!(text, "uncategorized error");
    assert_eq!(Cause::from(&too_many_files).to_string(), format!("no connection: {text}"));
    assert_eq!(Cause::unresolved(&too_many_files), Cause::from(&too_many_files));
    let no_such_name = io::Error::other("failed to lookup address information");
    assert_eq!(Cause::unresolved(&no_such_name), Cause::UnknownHost);
    let unreadable = Unavailable::Unreadable(IoFault::from(&too_many_files));
    assert_eq!(unreadable.to_string(), format!("no login: the password file cannot be read: {text}"));
}
