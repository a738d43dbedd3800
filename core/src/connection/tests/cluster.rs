//! A master that is the owner of a slot in a cluster.

use super::discovery::Guided;
use super::*;
use crate::connection::News;
use crate::protocol::{ClusterFault, IoFault};
use crate::wire::ServerError;

const URL: &str = "redis+cluster://a:1,b:2?tag=q0&failover=durable";

/// The answers to HELLO and to the question for the owner.
fn says(role: &str, owner: &str) -> String {
    format!("%2\r\n$4\r\nmode\r\n$7\r\ncluster\r\n$4\r\nrole\r\n${}\r\n{role}\r\n{owner}\r\n", role.len())
}

/// The rest of a greeting under the restart guard.
fn rest() -> String {
    let mut replies = "$0\r\n\r\n$0\r\n\r\n+OK\r\n+OK\r\n*0\r\n-NOSCRIPT x\r\n".to_owned();
    for sha in [RELEASE, crate::wire::EXTEND_GUARDED, UNDO, crate::wire::ACQUIRE_GUARDED]
        .map(|script| script.sha1_hex)
    {
        replies += &format!("$40\r\n{sha}\r\n");
    }
    replies + "$0\r\n\r\n"
}

/// The rest of a greeting without the restart guard.
fn unguarded_rest() -> String {
    let replies = String::from_utf8(greeting(RELEASE.sha1_hex)).unwrap();
    replies.strip_prefix("%1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n").unwrap().to_owned()
}

fn cause(answer: Answer) -> Option<(ClusterFault, Fate)> {
    match failed(answer)? {
        (Cause::Cluster(fault), fate) => Some((fault, fate)),
        _ => None,
    }
}

impl Guided {
    /// Connects a node that gives this answer to the question for the owner.
    fn node(&mut self, role: &str, owner: &str) {
        self.stands();
        let told = self.told().join(" ");
        assert!(told.starts_with("HELLO 3 GET {q0} INFO server"), "{told}");
        self.0.hear((says(role, owner) + &rest()).as_bytes());
    }

    /// The owner of the slot, which votes.
    fn owner(&mut self) {
        self.node("master", "_");
        let told = self.told().join(" ");
        assert!(told.contains(" 1 {q0}quorlock:restart-guard "), "{told}");
        self.0.hear(b":1\r\n");
        assert!(self.0.connection.is_ready());
    }
}

fn in_service() -> Guided {
    let mut guided = Guided::new(URL);
    assert_eq!(guided.told(), ["open 1 a:1"]);
    guided.owner();
    guided
}

#[test]
fn nodes_that_do_not_own_the_slot_redirect_to_its_owner() {
    let mut guided = Guided::new(URL);
    guided.told();
    guided.0.submit(Action::Acquire, 1);
    guided.node("master", "-MOVED 3387 c:3");
    assert_eq!(guided.told(), ["close 1", "open 2 c:3"]);
    // A replica names the owner, too. A name without a host is another port of the same host.
    guided.node("replica", "-MOVED 3387 :4");
    assert_eq!(guided.told(), ["close 2", "open 3 c:4"]);
    guided.owner();
    assert!(guided.told()[0].contains(" {q0}r {q0}quorlock:restart-guard "));
    assert_eq!((guided.fault(), guided.0.answered().len()), (None, 0));

    // The next search begins with the last owner, and continues with the others.
    guided.0.hear(b":1\r\n");
    guided.fails(Cause::Closed);
    assert_eq!(guided.told(), ["close 3", "open 4 c:4"]);
    guided.fails(Cause::Connect(IoFault::new(std::io::ErrorKind::ConnectionRefused)));
    assert_eq!(guided.told(), ["close 4", "open 5 a:1"]);
}

#[test]
fn a_node_without_the_command_that_finds_the_owner_is_told_so() {
    let mut guided = Guided::new("redis+cluster://a:1?tag=q0&failover=durable");
    guided.told();
    guided.stands();
    guided.told();
    guided.0.hear(says("master", "-ERR unknown command 'GET', with args beginning with: '{q0}' ").as_bytes());
    assert_eq!(guided.fault(), Some(Cause::LacksCommand("GET")));
}

fn refused() -> Cause {
    Cause::Connect(IoFault::new(std::io::ErrorKind::ConnectionRefused))
}

/// The owner, c, is lost. Two other nodes are from the URL, and one was learned.
fn lost() -> Guided {
    let mut guided = Guided::new(URL);
    guided.told();
    for (owner, opened) in [("c:3", "open 2 c:3"), ("d:4", "open 3 d:4"), ("c:3", "open 4 c:3")] {
        guided.node("master", &format!("-MOVED 3387 {owner}"));
        assert_eq!(guided.told()[1], opened);
    }
    guided.owner();
    guided.0.submit(Action::Acquire, 1);
    guided.told();
    guided.0.hear(b":1\r\n");
    guided.fails(Cause::Closed);
    guided
}

#[test]
fn a_learned_node_that_redirects_to_a_dead_one_is_asked_once_before_a_pause() {
    let mut guided = lost();
    assert_eq!(guided.told()[1], "open 5 c:3");
    guided.node("master", "-MOVED 3387 d:4");
    for opened in ["open 6 d:4", "open 7 a:1", "open 8 b:2"] {
        assert_eq!(guided.told()[1], opened);
        guided.fails(refused());
    }
    assert_eq!(guided.told(), ["close 8"]);
}

#[test]
fn nodes_of_the_url_are_asked_before_those_that_were_learned() {
    let mut guided = lost();
    for opened in ["open 5 c:3", "open 6 a:1", "open 7 b:2", "open 8 d:4"] {
        assert_eq!(guided.told()[1], opened);
        assert_eq!(guided.fault(), None);
        guided.fails(refused());
    }
    assert_eq!(guided.told(), ["close 8"]);
    assert!(guided.fault().is_some());
    guided.0.pass(ms(20));
    assert_eq!(guided.told(), ["open 9 a:1"]);
}

#[test]
fn nodes_that_redirect_to_each_other_are_not_followed_forever() {
    let mut guided = Guided::new(URL);
    guided.told();
    let mut opened = 1;
    while guided.fault().is_none() {
        guided.node("master", if opened % 2 == 0 { "-MOVED 3387 a:1" } else { "-MOVED 3387 b:2" });
        opened += 1;
        guided.told();
        assert!(opened < 20);
    }
    // Both places of the URL have been asked by then.
    assert_eq!(guided.fault(), Some(Cause::Cluster(ClusterFault::NoOwner)));
    assert_eq!(opened, 7);
    assert!(!ClusterFault::NoOwner.is_configuration());
}

#[test]
fn a_slot_that_has_moved_costs_one_connection() {
    let mut guided = in_service();
    for number in 1..=3 {
        guided.0.submit(if number == 2 { Action::Release } else { Action::Acquire }, number);
    }
    guided.told();
    guided.0.hear(b"-MOVED 3387 c:3\r\n");
    // Earlier requests are still answered. New ones wait.
    guided.0.submit(Action::Acquire, 4);
    assert_eq!(guided.told(), [""; 0]);
    guided.0.hear(b"-MOVED 3387 c:3\r\n-MOVED 3387 c:3\r\n");
    let answered: Vec<_> = guided.0.answered().into_iter().filter_map(cause).collect();
    assert_eq!(answered, [(ClusterFault::Moved, Fate::NotSent); 3]);
    assert_eq!(guided.told(), ["close 1", "open 2 c:3"]);
    guided.owner();
    // The release that was owed, and the request that waited.
    assert_eq!(guided.told().join(" ").matches("{q0}r ").count(), 2);
    assert_eq!(guided.fault(), None);
}

#[test]
fn a_slot_that_is_being_moved_gives_no_vote_and_its_source_forgets_the_marker() {
    let mut guided = in_service();
    for (text, number) in
        [("ASK 3387 c:3", 1), ("TRYAGAIN Multiple keys request during rehashing of slot", 2)]
    {
        guided.0.submit(Action::Acquire, number);
        guided.told();
        guided.0.hear(format!("-{text}\r\n").as_bytes());
        assert_eq!(cause(guided.0.answered()[0]), Some((ClusterFault::SlotIsMoving, Fate::NotSent)));
        assert_eq!(guided.told(), ["DEL {q0}quorlock:restart-guard"]);
        guided.0.hear(b":0\r\n");
    }
    assert!(guided.0.connection.is_ready());

    // A release is owed until the slot has its owner again.
    guided.0.submit(Action::Release, 1);
    guided.told();
    guided.0.hear(b"-ASK 3387 c:3\r\n");
    assert_eq!(guided.told(), ["DEL {q0}quorlock:restart-guard"]);
    guided.0.hear(b"-ASK 3387 c:3\r\n");
    guided.0.pass(ms(1000));
    assert!(guided.told()[0].ends_with(&"01".repeat(20)));
    guided.0.hear(b"-MOVED 3387 c:3\r\n");
    assert_eq!(guided.told(), ["close 1", "open 2 c:3"]);
    guided.owner();
    assert!(guided.told()[0].ends_with(&"01".repeat(20)));
}

#[test]
fn the_source_of_a_move_is_greeted_and_forgets_the_marker() {
    let mut guided = Guided::new(URL);
    guided.told();
    guided.node("master", "-ASK 3387 c:3");
    assert_eq!(guided.told(), ["DEL {q0}quorlock:restart-guard"]);
    guided.0.hear(b":1\r\n");
    assert!(guided.told()[0].starts_with("EVAL "));
    guided.0.hear(b"-ASK 3387 c:3\r\n");
    assert!(guided.0.connection.is_ready());
}

#[test]
fn an_error_that_says_nothing_about_the_slot_is_reported_as_it_is_and_the_marker_stays() {
    for text in ["ERR something else", "STRANGE error", "MISCONF Errors writing to the AOF file"] {
        let mut guided = in_service();
        guided.0.submit(Action::Acquire, 1);
        guided.told();
        guided.0.hear(format!("-{text}\r\n").as_bytes());
        let cause = Cause::Server(ServerError::classify(text.as_bytes()));
        assert_eq!(failed(guided.0.answered()[0]), Some((cause, Fate::Unknown)));
        assert_eq!(guided.told(), [""; 0], "{text}");
        assert!(guided.0.connection.is_ready());
    }
}

#[test]
fn a_marker_is_not_deleted_without_the_restart_guard_or_on_a_connection_that_is_left() {
    // Without the guard, the marker belongs to other clients.
    let mut guided = Guided::of(Guided::unguarded(URL));
    guided.told();
    guided.stands();
    guided.told();
    guided.0.hear((says("master", "-ASK 3387 c:3") + &unguarded_rest()).as_bytes());
    assert!(guided.0.connection.is_ready());
    assert_eq!(guided.told(), [""; 0]);
    guided.0.submit(Action::Acquire, 1);
    guided.told();
    guided.0.hear(b"-ASK 3387 c:3\r\n");
    assert_eq!(cause(guided.0.answered()[0]), Some((ClusterFault::SlotIsMoving, Fate::NotSent)));
    assert_eq!(guided.told(), [""; 0]);

    let mut guided = in_service();
    (1..=3).for_each(|number| guided.0.submit(Action::Acquire, number));
    guided.told();
    guided.0.hear(b"-MOVED 3387 c:3\r\n-ASK 3387 c:3\r\n");
    assert_eq!(guided.told(), [""; 0]);
    guided.0.hear(b"-ASK 3387 c:3\r\n");
    assert_eq!(guided.told(), ["close 1", "open 2 c:3"]);
}

#[test]
fn the_rest_of_a_greeting_by_a_node_that_is_not_the_owner_does_not_count() {
    let mut guided = Guided::of(Guided::unguarded(URL));
    guided.told();
    guided.0.submit(Action::Acquire, 1);
    guided.stands();
    guided.told();
    guided.0.hear((says("master", "-MOVED 3387 c:3") + &unguarded_rest()).as_bytes());
    assert_eq!(guided.told(), ["close 1", "open 2 c:3"]);
    assert_eq!((guided.fault(), guided.0.answered()), (None, vec![]));
    assert!(!guided.0.connection.is_ready());
}

#[test]
fn the_answer_to_the_question_for_the_owner_decides_whether_the_node_votes() {
    let server = |error| Some(Cause::Server(error));
    for (role, owner, fault) in [
        ("master", "$1\r\nx", None),
        // The key that has the name of the tag may be of any type.
        ("master", "-WRONGTYPE Operation against a key holding the wrong kind of value", None),
        ("master", "-NOPERM No permissions to access a key", server(ServerError::NoPerm)),
        ("master", "-LOADING Redis is loading the dataset in memory", server(ServerError::Loading)),
        // Nothing else may report the role: INFO may be denied.
        ("replica", "_", Some(Cause::Replica)),
    ] {
        let mut guided = Guided::new("redis+cluster://a:1?tag=q0&failover=durable");
        guided.told();
        guided.node(role, owner);
        guided.told();
        guided.0.hear(b":1\r\n");
        assert_eq!(guided.fault(), fault, "{role}, {owner}");
        assert_eq!(guided.0.connection.is_ready(), fault.is_none(), "{role}, {owner}");
    }
}

#[test]
fn after_clusterdown_the_other_nodes_are_asked_and_soon_all_again() {
    let mut guided = in_service();
    guided.0.submit(Action::Acquire, 1);
    guided.told();
    guided.0.hear(b"-CLUSTERDOWN The cluster is down\r\n");
    // The owner was found just now: it is not left for each request that it does not serve.
    assert_eq!((guided.told(), guided.0.answered().len()), (Vec::new(), 1));
    guided.0.now = guided.0.now + ms(1000);
    guided.0.submit(Action::Acquire, 2);
    guided.told();
    guided.0.hear(b"-CLUSTERDOWN The cluster is down\r\n");
    assert_eq!(cause(guided.0.answered()[0]), Some((ClusterFault::Down, Fate::NotSent)));
    assert_eq!(guided.told(), ["close 1", "open 2 a:1"]);
    guided.node("master", "-CLUSTERDOWN Hash slot not served");
    assert_eq!(guided.told(), ["close 2", "open 3 b:2"]);
    guided.node("master", "-CLUSTERDOWN Hash slot not served");
    assert_eq!(guided.fault(), Some(Cause::Cluster(ClusterFault::Down)));
    guided.told();
    guided.0.pass(ms(13));
    assert_eq!(guided.told(), ["open 4 a:1"]);
}

#[test]
fn an_owner_without_its_replicas_is_left_for_a_moment_to_ask_another_node() {
    let mut guided = Guided::new("redis+cluster://a:1,b:2?tag=q0&replicas=1");
    guided.told();
    guided.stands();
    guided.told();
    let plain = [crate::wire::EXTEND_GUARDED.sha1_hex, crate::wire::ACQUIRE_GUARDED.sha1_hex];
    let replicated = [crate::wire::EXTEND_REPLICATED.sha1_hex, crate::wire::ACQUIRE_REPLICATED.sha1_hex];
    let rest = plain.iter().zip(replicated).fold(rest(), |rest, (one, other)| rest.replace(one, other));
    guided.0.hear((says("master", "_") + &rest).as_bytes());
    guided.told();
    let alone = b"*3\r\n$5\r\nalone\r\n:0\r\n:0\r\n";
    guided.0.hear(alone);
    assert!(guided.0.connection.is_ready());
    guided.0.now = guided.0.now + ms(1000);
    guided.0.submit(Action::Acquire, 1);
    guided.told();
    guided.0.hear(alone);
    assert_eq!(guided.told(), ["close 1", "open 2 b:2"]);
}

#[test]
fn notifications_of_the_owner_name_the_key_without_the_tag() {
    let mut guided = in_service();
    guided.0.hear(b">2\r\n$10\r\ninvalidate\r\n*2\r\n$5\r\n{q0}r\r\n$5\r\n{q1}r\r\n");
    let told = guided.0.answers.next().map(|(_, upward)| upward);
    assert!(matches!(told, Some(Upward::News(News::Changed(key))) if key == "r"));
    assert!(guided.0.answers.next().is_none());
}

#[test]
fn parting_releases_to_a_silent_owner_name_keys_with_the_tag() {
    let mut guided = in_service();
    guided.0.submit(Action::Acquire, 1);
    guided.told();
    guided.0.pass(ms(50));
    let told = guided.told();
    assert!(told[0].contains(" 1 {q0}r "), "{told:?}");
    assert_eq!(told[1..], ["close 1", "open 2 a:1"]);
}

#[test]
fn a_url_with_a_tag_is_an_error_if_the_server_reports_another_mode() {
    let hello = |mode: &str| {
        let mode = format!("$4\r\nmode\r\n${}\r\n{mode}\r\n", mode.len());
        format!("%2\r\n{mode}$4\r\nrole\r\n$6\r\nmaster\r\n")
    };
    let greeted = |hello: &str| {
        let mut guided = Guided::new("redis+cluster://a:1?tag=q0&failover=durable");
        guided.told();
        guided.stands();
        guided.told();
        guided.0.hear(hello.as_bytes());
        guided.fault()
    };
    let fault = Cause::Cluster(ClusterFault::IsNoNode);
    assert_eq!(greeted(&hello("standalone")), Some(fault));
    assert!(fault.is_configuration());
    assert_eq!(fault.to_string(), "is not a node of a cluster: write redis://host:port without a tag");
    assert_eq!(greeted(&hello("cluster")), None);
    // A server that does not report its mode, or does not know HELLO, is trusted.
    assert_eq!(greeted("%1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"), None);
    assert_eq!(greeted("-ERR unknown command 'HELLO'\r\n"), None);
}

#[test]
fn a_cluster_node_behind_a_plain_url_is_a_configuration_error() {
    let mut alone = Alone::greeting(one());
    alone.hear(says("master", "_").as_bytes());
    let fault = Cause::Cluster(ClusterFault::IsNode);
    assert_eq!(alone.connection.fault(), Some(fault));
    assert!(fault.is_configuration());
    assert_eq!(fault.to_string(), "is a node of a cluster: write redis+cluster://host:port/?tag=q0");
}
