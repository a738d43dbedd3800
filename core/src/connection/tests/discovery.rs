//! A master that is discovered by asking sentinels.

use super::*;
use crate::protocol::{IoFault, SentinelFault};
use crate::wire::{Script, ServerError};

/// A connection whose opening was requested, and its driver's tasks.
pub(super) struct Guided(pub(super) Alone);

impl Guided {
    pub(super) fn new(url: &str) -> Self {
        Self::of(Self::unguarded(url).restart_guard(ms(20_000)))
    }

    /// Settings without the restart guard.
    pub(super) fn unguarded(url: &str) -> ConfigBuilder {
        let settings = Config::builder([url]).request_timeout(ms(50)).connect_timeout(ms(100));
        settings.reconnect_delay(ms(10)..=ms(1000)).ttl(ms(10_000))
    }

    pub(super) fn of(settings: ConfigBuilder) -> Self {
        let config = settings.build().unwrap();
        let id = config.master_ids().next().unwrap();
        let now = Instant::from_nanos(1);
        let connection = Connection::new(Arc::new(config), id, Jitter::new(1), now);
        Self(Alone { connection, answers: Answers::default(), now })
    }

    fn of_two() -> Self {
        Self::new("redis+sentinel://a,b/m?failover=durable")
    }

    /// The driver's tasks, until there are no more: a write only as its command's name.
    pub(super) fn told(&mut self) -> Vec<String> {
        let mut bytes = Vec::new();
        let next = || self.0.connection.next_task(&mut bytes, None).map(|task| (task, bytes.clone()));
        let tasks: Vec<_> = std::iter::from_fn(next).collect();
        let text = |(task, bytes): (DriverTask, Vec<u8>)| match task {
            DriverTask::Write { .. } => {
                let text = String::from_utf8(bytes.to_vec()).unwrap();
                let words = text.split("\r\n").filter(|line| !line.starts_with(['*', '$']));
                words.collect::<Vec<_>>().join(" ").trim().to_owned()
            }
            DriverTask::Close { generation } => format!("close {generation}"),
            DriverTask::Open { generation, address } => format!("open {generation} {address}"),
        };
        tasks.into_iter().map(text).collect()
    }

    pub(super) fn stands(&mut self) {
        let Alone { connection, now, .. } = &mut self.0;
        connection.connected(connection.generation, None, *now);
    }

    pub(super) fn fails(&mut self, cause: Cause) {
        let Alone { connection, answers, now } = &mut self.0;
        connection.closed(connection.generation, cause, *now, answers);
    }

    /// The sentinel that is connected names this server, and knows no other sentinels.
    pub(super) fn named(&mut self, port: &str) {
        self.stands();
        assert_eq!(self.told(), [ASKED]);
        self.0.hear(format!("*2\r\n$1\r\ns\r\n${}\r\n{port}\r\n*0\r\n", port.len()).as_bytes());
    }

    /// The server that is connected is a primary.
    fn greets(&mut self) {
        self.stands();
        assert!(self.told()[0].starts_with("HELLO 3"));
        self.0.hear(&guarded_greeting());
    }

    pub(super) fn fault(&self) -> Option<Cause> {
        self.0.connection.fault()
    }
}

const ASKED: &str = "SENTINEL GET-MASTER-ADDR-BY-NAME m SENTINEL SENTINELS m";

/// All replies of a handshake under the restart guard.
pub(super) fn guarded_greeting() -> Vec<u8> {
    greeting_with(&crate::wire::ACQUIRE_GUARDED, &crate::wire::EXTEND_GUARDED)
}

/// The same if these scripts are loaded for requests and for extensions.
pub(super) fn greeting_with(acquire: &Script, extend: &Script) -> Vec<u8> {
    let replies = greeting_until_the_scripts(RELEASE.sha1_hex);
    let replies = replies.replace(crate::wire::EXTEND.sha1_hex, extend.sha1_hex);
    format!("{replies}$40\r\n{}\r\n$0\r\n\r\n", acquire.sha1_hex).into_bytes()
}

#[test]
fn a_sentinel_is_asked_and_the_server_that_it_names_is_greeted() {
    let mut guided = Guided::of_two();
    assert_eq!(guided.told(), ["open 1 a:26379"]);
    guided.named("7");
    assert_eq!(guided.told(), ["close 1", "open 2 s:7"]);
    guided.greets();
    // The marker is checked last.
    assert_eq!(guided.told().len(), 1);
    guided.0.hear(b":1\r\n");
    assert!(guided.0.connection.is_ready());

    // After a loss in service the search starts again: another server may have become the primary.
    guided.0.submit(Action::Acquire, 1);
    guided.told();
    guided.0.hear(b":1\r\n");
    guided.fails(Cause::Closed);
    assert_eq!(guided.told(), ["close 2", "open 3 a:26379"]);
}

#[test]
fn the_next_sentinel_is_asked_if_one_does_not_know_the_group_or_is_down() {
    let mut guided = Guided::of_two();
    guided.told();
    guided.0.submit(Action::Acquire, 1);
    guided.stands();
    guided.told();
    guided.0.hear(b"*-1\r\n");
    assert_eq!(guided.told(), ["close 1", "open 2 b:26379"]);
    // The request waits for the answer of the next sentinel.
    assert_eq!((guided.fault(), guided.0.answered().len()), (None, 0));

    guided.fails(Cause::Connect(IoFault::new(std::io::ErrorKind::ConnectionRefused)));
    // All have been asked: the fault is reported, and after a pause they are asked again.
    assert!(matches!(guided.fault(), Some(Cause::Connect(_))));
    assert_eq!((guided.told(), guided.0.answered().len()), (vec!["close 2".to_owned()], 1));
    guided.0.pass(ms(13));
    assert_eq!(guided.told(), ["open 3 a:26379"]);
}

#[test]
fn one_sentinel_without_the_group_does_not_hide_that_the_primary_is_down() {
    let mut guided = Guided::of_two();
    guided.told();
    guided.named("7");
    guided.told();
    guided.fails(Cause::Connect(IoFault::new(std::io::ErrorKind::ConnectionRefused)));
    guided.told();
    guided.stands();
    guided.told();
    guided.0.hear(b"*-1\r\n");
    assert!(matches!(guided.fault(), Some(Cause::Connect(_))));
}

#[test]
fn errors_of_a_search_are_forgotten_once_it_has_found_the_primary() {
    let mut guided = Guided::of_two();
    guided.told();
    guided.fails(Cause::Connect(IoFault::new(std::io::ErrorKind::ConnectionRefused)));
    guided.told();
    guided.named("7");
    guided.told();
    guided.greets();
    guided.told();
    guided.0.hear(b":1\r\n");
    let Alone { connection, answers, now } = &mut guided.0;
    let other = MasterId::all(2).last().unwrap();
    connection.lose(Cause::SameServer { other }, *now, answers);
    assert_eq!(guided.fault(), Some(Cause::SameServer { other }));
}

#[test]
fn the_places_of_the_url_are_asked_in_turn_beginning_behind_the_one_that_failed() {
    let mut guided = Guided::new("redis+sentinel://a,b,c/m?failover=durable");
    guided.told();
    guided.fails(Cause::UnknownHost);
    assert_eq!(guided.told(), ["close 1", "open 2 b:26379"]);
    guided.named("7");
    guided.told();
    guided.greets();
    guided.told();
    guided.0.hear(b":1\r\n");
    guided.0.submit(Action::Acquire, 1);
    guided.told();
    guided.0.hear(b":1\r\n");
    guided.fails(Cause::Closed);
    // The sentinel that has worked is the first to be asked.
    for opened in ["open 4 b:26379", "open 5 c:26379", "open 6 a:26379"] {
        assert_eq!(guided.told()[1], opened);
        guided.fails(Cause::UnknownHost);
    }
    assert_eq!(guided.told(), ["close 6"]);
    guided.0.pass(ms(2_000));
    assert_eq!(guided.told(), ["open 7 b:26379"]);
}

#[test]
fn a_silent_sentinel_leaves_time_for_the_next_one() {
    let mut guided = Guided::of_two();
    guided.told();
    guided.0.submit(Action::Acquire, 1);
    guided.stands();
    guided.told();
    guided.0.pass(ms(49));
    assert_eq!(guided.told(), [""; 0]);
    guided.0.pass(ms(1));
    assert_eq!(guided.told(), ["close 1", "open 2 b:26379"]);
    guided.named("7");
    assert_eq!(guided.told(), ["close 2", "open 3 s:7"]);
    assert_eq!((guided.fault(), guided.0.answered().len()), (None, 0));
    // The request waits no longer than for any other master.
    guided.0.pass(ms(50));
    assert_eq!(failed(guided.0.answered()[0]).unwrap().1, Fate::NotSent);
    assert_eq!(guided.fault(), Some(Cause::NoConnection { waited: ms(100) }));
    // Opening the connection to the server has a limit of its own. After it the search asks whether
    // another server has become the primary.
    guided.0.pass(ms(49));
    assert_eq!(guided.told(), [""; 0]);
    guided.0.pass(ms(1));
    assert_eq!(guided.told(), ["close 3", "open 4 a:26379"]);
}

#[test]
fn silent_sentinels_are_asked_at_a_bounded_rate() {
    let mut guided = Guided::of_two();
    guided.told();
    let mut openings = 0;
    for _ in 0..600 {
        guided.0.pass(ms(100));
        openings += guided.told().iter().filter(|told| told.starts_with("open")).count();
    }
    // A minute of openings at 400 ms each, with shorter ones at the beginning.
    assert!((100..160).contains(&openings), "{openings}");
}

#[test]
fn learned_sentinels_are_asked_too_when_all_are_silent() {
    let mut guided = Guided::new("redis+sentinel://a/m?failover=durable");
    guided.told();
    guided.stands();
    guided.told();
    guided.0.hear(format!("*2\r\n$1\r\ns\r\n$1\r\n7\r\n*1\r\n{}", listed(1)).as_bytes());
    let mut opened = Vec::new();
    for _ in 0..100 {
        guided.0.pass(ms(100));
        opened.extend(guided.told().into_iter().filter(|told| told.starts_with("open")));
    }
    let late = &opened[opened.len() / 2..];
    let of = |address: &str| late.iter().filter(|told| told.ends_with(address)).count();
    assert!(of(" a:26379") > 2 && of(" x:1") > 2, "{opened:?}");
}

#[test]
fn a_sentinel_that_names_a_replica_is_not_believed() {
    let mut guided = Guided::of_two();
    guided.told();
    guided.named("7");
    guided.told();
    guided.stands();
    guided.told();
    guided.0.hear(b"%1\r\n$4\r\nrole\r\n$7\r\nreplica\r\n");
    assert_eq!(guided.told(), ["close 2", "open 3 b:26379"]);
    guided.named("7");
    guided.told();
    guided.stands();
    guided.told();
    guided.0.hear(b"%1\r\n$4\r\nrole\r\n$7\r\nreplica\r\n");
    // The sentinel is soon asked again: a failover is under way.
    assert_eq!(guided.fault(), Some(Cause::Replica));
    guided.told();
    guided.0.pass(ms(13));
    assert_eq!(guided.told(), ["open 5 a:26379"]);
}

#[test]
fn sentinels_that_another_sentinel_lists_are_asked_too() {
    let mut guided = Guided::new("redis+sentinel://a/m?failover=durable");
    guided.told();
    guided.stands();
    guided.told();
    guided.0.hear(b"*2\r\n$1\r\ns\r\n$1\r\n7\r\n");
    guided
        .0
        .hear(b"*2\r\n*4\r\n$2\r\nip\r\n$3\r\n::1\r\n$4\r\nport\r\n$1\r\n9\r\n*2\r\n$2\r\nip\r\n$1\r\nx\r\n");
    assert_eq!(guided.told(), ["close 1", "open 2 s:7"]);
    guided.fails(Cause::Connect(IoFault::new(std::io::ErrorKind::ConnectionRefused)));
    assert_eq!(guided.told(), ["close 2", "open 3 [::1]:9"]);
}

#[test]
fn a_sentinel_that_another_one_does_not_reach_is_not_learned() {
    let fields = |port: &str, flags: &str| {
        let texts = ["ip", "x", "port", port, "flags", flags];
        texts.map(|text| format!("${}\r\n{text}\r\n", text.len())).concat()
    };
    let listed = [("4", "s_down,sentinel,disconnected"), ("5", "sentinel,disconnected"), ("6", "sentinel")];
    let listed = listed.map(|(port, flags)| format!("*6\r\n{}", fields(port, flags))).concat();
    let mut guided = Guided::new("redis+sentinel://a/m?failover=durable");
    guided.told();
    guided.stands();
    guided.told();
    guided.0.hear(format!("*2\r\n$1\r\ns\r\n$1\r\n7\r\n*3\r\n{listed}").as_bytes());
    guided.told();
    guided.fails(Cause::Connect(IoFault::new(std::io::ErrorKind::ConnectionRefused)));
    assert_eq!(guided.told(), ["close 2", "open 3 x:6"]);
}

/// The fields of a sentinel in the list of another.
fn listed(port: usize) -> String {
    let port = port.to_string();
    let texts = ["ip", "x", "port", &port].map(|text| format!("${}\r\n{text}\r\n", text.len()));
    format!("*4\r\n{}", texts.concat())
}

#[test]
fn learned_sentinels_that_did_not_help_are_replaced_by_others() {
    let refused = || Cause::Connect(IoFault::new(std::io::ErrorKind::ConnectionRefused));
    let mut guided = Guided::new("redis+sentinel://a/m?failover=durable");
    guided.told();
    let tells = |guided: &mut Guided, ports: std::ops::Range<usize>| {
        guided.stands();
        guided.told();
        let many = ports.len();
        let all: String = ports.map(listed).collect();
        guided.0.hear(format!("*2\r\n$1\r\ns\r\n$1\r\n7\r\n*{many}\r\n{all}").as_bytes());
        assert!(guided.told()[1].ends_with(" s:7"));
        guided.fails(refused());
        guided.told()
    };
    // More sentinels than are kept.
    assert_eq!(tells(&mut guided, 1..41), ["close 2", "open 3 x:1"]);
    guided.fails(refused());
    assert_eq!(guided.told(), ["close 3", "open 4 x:2"]);
    // The first sentinel is unreachable, and is replaced by another one, which is asked after the
    // next pause: places that keep naming others are not followed without a pause.
    let told = tells(&mut guided, 101..102);
    assert!(told[1].ends_with(" x:3"), "{told:?}");
    let mut asked = Vec::new();
    for _ in 0..100 {
        guided.fails(refused());
        asked.extend(guided.told());
        guided.0.pass(ms(13));
        asked.extend(guided.told());
    }
    assert!(asked.iter().any(|told| told.ends_with(" x:101")), "{asked:?}");
    // The URL's sentinel and 31 learned ones are kept.
    assert!(asked.iter().any(|told| told.ends_with(" x:31")), "{asked:?}");
    assert!(!asked.iter().any(|told| told.ends_with(" x:32")), "{asked:?}");
}

#[test]
fn each_fault_of_a_sentinel_is_reported_with_its_cause() {
    let one = "redis+sentinel://a/m?failover=durable&sentinel-user=u&sentinel-pass=w";
    for (replies, fault) in [
        ("+OK\r\n*-1\r\n", SentinelFault::UnknownGroup),
        ("-WRONGPASS invalid\r\n", SentinelFault::Refused(ServerError::WrongPass)),
        ("+OK\r\n-ERR unknown command 'SENTINEL'\r\n", SentinelFault::NotASentinel),
    ] {
        let mut guided = Guided::new(one);
        guided.told();
        guided.stands();
        assert_eq!(guided.told(), [format!("AUTH u w {ASKED}")]);
        guided.0.hear(replies.as_bytes());
        assert_eq!(guided.fault(), Some(Cause::Sentinel(fault)));
        assert!(fault.is_configuration());
    }
    // Replies that do not answer the question.
    for replies in
        ["*1\r\n$1\r\ns\r\n", "*2\r\n$1\r\n \r\n$1\r\n7\r\n", "+OK\r\n", ":1\r\n", "*2\r\n$1\r\ns\r\n:7\r\n"]
    {
        let mut guided = Guided::new("redis+sentinel://a/m?failover=durable");
        guided.told();
        guided.stands();
        guided.0.hear(replies.as_bytes());
        assert_eq!(guided.fault(), Some(Cause::UnexpectedReply), "{replies:?}");
    }
}

#[test]
fn a_primary_that_has_become_read_only_is_disconnected() {
    let mut guided = Guided::of_two();
    guided.told();
    guided.named("7");
    guided.told();
    guided.greets();
    guided.told();
    guided.0.hear(b":1\r\n");
    guided.0.submit(Action::Acquire, 1);
    guided.told();
    guided.0.hear(b"-READONLY You can't write against a read only replica.\r\n");
    let readonly = Cause::Server(ServerError::ReadOnly);
    assert_eq!(failed(guided.0.answered()[0]), Some((readonly, Fate::Unknown)));
    assert_eq!(guided.told(), ["close 2"]);
    guided.0.pass(ms(13));
    assert_eq!(guided.told(), ["open 3 a:26379"]);
}

#[test]
fn a_sentinel_behind_a_url_of_a_server_is_a_configuration_error() {
    // A sentinel reports no role.
    let hello = b"%1\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n";
    let fault = Cause::Sentinel(SentinelFault::IsSentinel);
    for url in ["redis://a", "redis+cluster://a:1?tag=q0&failover=durable"] {
        let mut guided = Guided::new(url);
        guided.told();
        guided.stands();
        guided.0.hear(hello);
        assert_eq!(guided.fault(), Some(fault), "{url}");
    }
    assert!(fault.is_configuration());
}
