//! Every fault of the proxy, seen from both of its sides.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use quorlock_tests::{
    Cut, Direction, FakeMaster, FaultProxy, RawClient, RedisServer, Value, behaviour, eventually_equals,
    master,
};

const SOON: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_millis(60);
const DELAY: Duration = Duration::from_millis(80);

#[test]
fn a_proxy_without_faults_passes_everything_on() {
    let (server, proxy) = world();
    let mut client = RawClient::connect(proxy.address());
    // As much as an embedded master reads at once, and more than any buffer in between.
    let big = "x".repeat(1_000_000);

    for _ in 0..8 {
        assert!(client.command(&["SET", "big", &big]).is_ok());
        assert_eq!(client.command(&["GET", "big"]).text(), Some(big.as_str()));
    }

    assert_eq!((proxy.accepted(), proxy.connections(), server.connected_clients()), (1, 1, 1));
    drop(client);
    eventually_equals(SOON, "the server has seen the end", 0, || server.connected_clients());
    assert_eq!((proxy.accepted(), proxy.connections()), (1, 0));
}

#[test]
fn delayed_requests_are_pipelined_and_keep_their_order() {
    let (server, proxy) = world();
    let mut client = RawClient::connect(proxy.address());
    proxy.delay(Direction::Both, DELAY);
    let start = Instant::now();

    for _ in 0..10 {
        client.send(b"*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n").unwrap();
    }
    let replies: Vec<_> = (0..10).map(|_| client.receive().unwrap()).collect();

    assert_eq!(replies, (1..=10).map(Value::Int).collect::<Vec<_>>());
    let elapsed = start.elapsed();
    assert!(elapsed >= 2 * DELAY, "{elapsed:?}");
    assert!(elapsed < 15 * DELAY, "one after the other: {elapsed:?}");
    assert_eq!(server.get("n").as_deref(), Some("10"));
}

#[test]
fn a_delay_may_hold_in_one_direction_only() {
    let (server, proxy) = world();
    let mut client = RawClient::connect(proxy.address());
    client.set_timeout(SILENCE).unwrap();
    proxy.delay(Direction::ToClient, SOON);

    assert!(client.try_command(&["SET", "job", "token"]).is_err());
    eventually_equals(SOON, "it is executed", Some("token".to_owned()), || server.get("job"));

    proxy.heal();
    client.set_timeout(SOON).unwrap();
    assert!(client.receive().unwrap().is_ok());
}

#[test]
fn the_end_of_a_connection_is_delayed_like_its_bytes() {
    let (server, proxy) = world();
    let mut client = RawClient::connect(proxy.address());
    client.command(&["PING"]);
    proxy.delay(Direction::ToServer, SOON);

    drop(client);

    eventually_equals(SOON, "the proxy has seen the end", 0, || proxy.connections());
    assert_eq!(server.connected_clients(), 1);
    proxy.heal();
    eventually_equals(SOON, "the server has seen the end", 0, || server.connected_clients());
}

#[test]
fn split_bytes_arrive_one_by_one_and_complete() {
    let (server, proxy) = world();
    let mut client = RawClient::connect(proxy.address());
    proxy.split_bytes(Direction::Both);

    assert!(client.command(&["SET", "job", &"token".repeat(100)]).is_ok());

    assert_eq!(client.command(&["GET", "job"]).text(), server.get("job").as_deref());
}

#[test]
fn split_bytes_are_seen_in_many_reads() {
    let fake = FakeMaster::start(behaviour::says(vec![b'x'; 1_000]));
    let proxy = FaultProxy::start(fake.address());
    proxy.split_bytes(Direction::ToClient);
    let mut stream = TcpStream::connect(proxy.address()).unwrap();

    let (mut reads, mut heard) = (0, 0);
    while heard < 1_000 {
        heard += stream.read(&mut [0; 1_000]).unwrap();
        reads += 1;
    }

    assert!(reads > 10, "{reads} reads");
}

#[test]
fn coalesced_replies_arrive_in_one_piece() {
    let (_server, proxy) = world();
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    proxy.coalesce(Direction::ToClient, 4 * DELAY);

    for _ in 0..5 {
        proxy.inject(Direction::ToClient, b"+PONG\r\n");
    }
    let mut heard = [0; 1_000];
    let length = stream.read(&mut heard).unwrap();

    assert_eq!(heard[..length], *b"+PONG\r\n".repeat(5));
}

#[test]
fn a_stalled_line_delivers_everything_once_it_is_healed() {
    let (server, proxy) = world();
    let mut client = RawClient::connect(proxy.address());
    client.set_timeout(SILENCE).unwrap();
    proxy.stall(Direction::ToServer);

    assert!(client.try_command(&["SET", "job", "token"]).is_err());
    assert!(!server.exists("job"));

    proxy.heal();
    client.set_timeout(SOON).unwrap();
    assert!(client.receive().unwrap().is_ok());
    assert!(server.exists("job"));
}

#[test]
fn a_black_hole_for_requests_swallows_them_and_hides_new_connections() {
    let (server, proxy) = world();
    let mut old = RawClient::connect(proxy.address());
    let mut idle = RawClient::connect(proxy.address());
    for client in [&mut old, &mut idle] {
        client.command(&["PING"]);
    }
    proxy.black_hole(Direction::ToServer);
    let mut new = RawClient::connect(proxy.address());
    for client in [&mut old, &mut new] {
        client.set_timeout(SILENCE).unwrap();
    }

    assert!(is_silence(&old.try_command(&["SET", "job", "token"]).unwrap_err()));
    assert!(is_silence(&new.try_command(&["SET", "job", "token"]).unwrap_err()));
    assert_eq!((proxy.connections(), server.connected_clients()), (3, 2));

    proxy.heal();
    assert!(is_silence(&old.try_command(&["PING"]).unwrap_err()), "what lost bytes stays mute");
    assert_eq!(idle.command(&["PING"]).text(), Some("PONG"), "a connection without a loss continues");
    assert_eq!(RawClient::connect(proxy.address()).command(&["PING"]).text(), Some("PONG"));
    assert!(!server.exists("job"));
}

#[test]
fn a_black_hole_for_replies_lets_requests_be_executed() {
    let (server, proxy) = world();
    proxy.black_hole(Direction::ToClient);
    let mut client = RawClient::connect(proxy.address());
    client.set_timeout(SILENCE).unwrap();

    assert!(is_silence(&client.try_command(&["SET", "job", "token"]).unwrap_err()));

    eventually_equals(SOON, "it is executed", Some("token".to_owned()), || server.get("job"));
}

#[test]
fn a_black_hole_swallows_the_end_of_a_connection_until_it_is_healed() {
    let (server, proxy) = world();
    let mut client = RawClient::connect(proxy.address());
    client.command(&["PING"]);
    proxy.black_hole(Direction::Both);

    drop(client);

    eventually_equals(SOON, "the proxy has seen the end", 0, || proxy.connections());
    assert_eq!(server.connected_clients(), 1);
    proxy.heal();
    eventually_equals(SOON, "the server is told", 0, || server.connected_clients());
}

#[test]
fn a_half_open_connection_is_silent_while_new_ones_work() {
    let (server, proxy) = world();
    let mut client = RawClient::connect(proxy.address());
    client.command(&["PING"]);
    client.set_timeout(SILENCE).unwrap();

    proxy.half_open();

    assert!(is_silence(&client.try_command(&["PING"]).unwrap_err()));
    eventually_equals(SOON, "the server has lost its client", 0, || server.connected_clients());
    assert_eq!(proxy.connections(), 1);
    assert_eq!(RawClient::connect(proxy.address()).command(&["PING"]).text(), Some("PONG"));
    drop(client);
    eventually_equals(SOON, "the proxy has seen the end", 0, || proxy.connections());
}

#[test]
fn a_cut_ends_open_connections_in_order_or_by_a_reset_and_new_ones_work() {
    let (server, proxy) = world();
    for (how, seen) in [(Cut::Fin, ErrorKind::UnexpectedEof), (Cut::Reset, ErrorKind::ConnectionReset)] {
        let mut client = RawClient::connect(proxy.address());
        client.command(&["PING"]);

        proxy.cut(how);

        assert_eq!(client.receive().unwrap_err().kind(), seen);
        assert_eq!(proxy.connections(), 0);
        eventually_equals(SOON, "the server has seen it too", 0, || server.connected_clients());
    }
    // A connection is cut even if the proxy has not yet had the time to accept it.
    let mut client = RawClient::connect(proxy.address());
    proxy.cut(Cut::Reset);
    assert_eq!(client.receive().unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(RawClient::connect(proxy.address()).command(&["PING"]).text(), Some("PONG"));
}

#[test]
fn refused_and_hung_up_connections_leave_open_ones_alone() {
    let (_server, proxy) = world();
    let mut open = RawClient::connect(proxy.address());
    open.command(&["PING"]);

    proxy.refuse(true);
    let refused = RawClient::try_connect(proxy.address()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    proxy.refuse(false);
    proxy.hang_up(true);
    assert!(RawClient::connect(proxy.address()).receive().is_err());
    assert_eq!(open.command(&["PING"]).text(), Some("PONG"));
    proxy.refuse(true);
    proxy.heal();

    assert_eq!(RawClient::connect(proxy.address()).command(&["PING"]).text(), Some("PONG"));
}

#[test]
fn injected_bytes_arrive_behind_those_under_way() {
    let (server, proxy) = world();
    let mut client = RawClient::connect(proxy.address());
    client.command(&["PING"]);

    proxy.inject(Direction::ToClient, b"+surprise\r\n");
    proxy.inject(Direction::ToServer, b"SET job injected\r\n");

    assert_eq!(client.receive().unwrap().text(), Some("surprise"));
    assert!(client.receive().unwrap().is_ok());
    assert_eq!(server.get("job").as_deref(), Some("injected"));
}

#[test]
fn new_connections_go_to_another_server_on_request() {
    let (_server, proxy) = world();
    let other = master();
    other.set_nx("job", "other");
    let mut old = RawClient::connect(proxy.address());
    old.command(&["PING"]);

    proxy.set_upstream(other.address());

    assert!(old.command(&["GET", "job"]).is_nil());
    assert_eq!(RawClient::connect(proxy.address()).command(&["GET", "job"]).text(), Some("other"));
}

#[test]
fn a_killed_server_ends_its_connections_through_the_proxy_and_serves_again_after_its_restart() {
    let (server, proxy) = world();
    let mut client = RawClient::connect(proxy.address());
    client.command(&["PING"]);

    server.kill();

    assert!(client.receive().is_err());
    assert!(RawClient::connect(proxy.address()).receive().is_err());
    server.restart();
    assert_eq!(RawClient::connect(proxy.address()).command(&["PING"]).text(), Some("PONG"));
}

#[test]
fn a_server_that_reads_nothing_holds_back_the_client() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let proxy = FaultProxy::start(listener.local_addr().unwrap());
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    stream.set_write_timeout(Some(5 * SILENCE)).unwrap();

    let sent = stream.write_all(&vec![0; 64 << 20]);

    assert!(is_silence(&sent.unwrap_err()));
}

#[test]
fn dropping_a_proxy_closes_open_connections_under_any_fault() {
    let (server, proxy) = world();
    let mut client = RawClient::connect(proxy.address());
    client.command(&["PING"]);
    proxy.stall(Direction::Both);
    client.send(b"PING\r\n").unwrap();
    let address = proxy.address();

    drop(proxy);

    assert_eq!(RawClient::try_connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert!(!is_silence(&client.receive().unwrap_err()));
    eventually_equals(SOON, "the server has seen the end", 0, || server.connected_clients());
}

#[test]
fn the_end_of_a_connection_may_arrive_later_than_what_was_sent_before_it() {
    let (server, proxy) = world();
    let mut client = RawClient::connect(proxy.address());
    client.command(&["PING"]);
    proxy.stall(Direction::ToServer);
    client.send(b"*3\r\n$3\r\nSET\r\n$3\r\njob\r\n$5\r\ntoken\r\n").unwrap();
    drop(client);
    eventually_equals(SOON, "the proxy has seen the end", 0, || proxy.connections());
    assert!(!server.exists("job"));

    proxy.resume_without_ends(Direction::ToServer);

    eventually_equals(SOON, "it is executed", Some("token".to_owned()), || server.get("job"));
    assert_eq!(server.connected_clients(), 1);
    proxy.heal();
    eventually_equals(SOON, "the server has seen the end", 0, || server.connected_clients());
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_proxy_can_confirm_writes_for_missing_replicas() {
    let server = RedisServer::start();
    let proxy = FaultProxy::start(server.address());
    let mut asked = RawClient::connect(proxy.address());
    proxy.confirm_for_replicas();
    let mut told = RawClient::connect(proxy.address());

    assert_eq!(asked.command(&["WAIT", "2", "10"]), Value::Int(0));
    assert_eq!(told.command(&["WAIT", "2", "10"]), Value::Int(2));
    assert!(told.command(&["SET", "job", "token"]).is_ok());
    assert_eq!(told.command(&["GET", "job"]).text(), Some("token"));
}

fn world() -> (RedisServer, FaultProxy) {
    let server = master();
    let proxy = FaultProxy::start(server.address());
    (server, proxy)
}

fn is_silence(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
