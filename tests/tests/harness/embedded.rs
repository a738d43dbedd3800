//! Embedded masters behave like real servers in the harness.

use std::time::Duration;

use quorlock_tests::{
    Calls, RawClient, RedisServer, ServerOptions, eventually, eventually_equals, master, masters,
};

const SOON: Duration = Duration::from_secs(10);

fn start() -> RedisServer {
    ServerOptions::new().start_embedded()
}

#[test]
fn a_test_reads_keys_without_being_counted_as_a_client() {
    let server = start();
    let mut client = RawClient::connect(server.address());

    assert!(server.set_nx("job", "a") && !server.set_nx("job", "b"));
    assert_eq!(client.command(&["GET", "job"]).text(), Some("a"));
    assert_eq!((server.get("job").as_deref(), server.pttl("job")), (Some("a"), -1));
    assert!(server.command(&["NONSENSE"]).error().is_some());
    assert_eq!(server.calls(Calls::Set), 0);
    assert!(client.command(&["SET", "job", "b"]).is_ok() && server.del("job") && !server.exists("job"));
    assert_eq!(server.calls(Calls::Set), 1);
}

#[test]
fn a_stopped_master_takes_bytes_and_executes_them_once_it_is_continued() {
    let server = start();
    let mut client = RawClient::connect(server.address());
    server.stop();
    client.send(b"SET job token\r\n").unwrap();
    assert!(server.is_running());
    assert_eq!(server.calls(Calls::Set), 0);
    server.cont();
    eventually_equals(SOON, "the key is set", Some("token".to_owned()), || server.get("job"));
    assert!(client.receive().unwrap().is_ok());
}

#[test]
fn a_killed_master_refuses_and_comes_back_on_its_port_with_what_it_persists() {
    for (options, kept) in [(ServerOptions::new(), false), (ServerOptions::new().append_only(), true)] {
        let server = options.start_embedded();
        server.set_nx("job", "token");
        server.stop();
        server.kill();
        assert!(!server.is_running());
        assert!(RawClient::try_connect(server.address()).is_err());
        server.kill();
        server.restart();
        assert!(server.is_running());
        assert_eq!(server.exists("job"), kept);
        server.shutdown();
        assert!(!server.is_running());
    }
}

#[test]
fn passwords_roles_and_errors_are_those_of_a_real_server() {
    let primary = ServerOptions::new().password("p@ss").start_embedded();
    let mut client = RawClient::connect(primary.address());
    assert!(client.command(&["PING"]).error().unwrap().starts_with("NOAUTH"));
    assert!(client.command(&["AUTH", "p@ss"]).is_ok());
    assert_eq!(primary.url(), format!("redis://:p%40ss@127.0.0.1:{}", primary.port()));
    assert!(primary.set_nx("job", "token"));
    assert!(primary.client().unwrap().command(&["GET", "job"]).text() == Some("token"));

    let replica = ServerOptions::new().replica_of(&primary).start_embedded();
    let refused = |server: &RedisServer| {
        let reply = server.command(&["SET", "job", "x"]);
        reply.error().map(|error| error.split(' ').next().unwrap().to_owned())
    };
    assert_eq!(refused(&replica).as_deref(), Some("READONLY"));
    replica.become_master();
    assert_eq!(refused(&replica), None);
    replica.become_replica_of(&primary);
    assert_eq!(refused(&replica).as_deref(), Some("READONLY"));
    assert_eq!(refused(&ServerOptions::new().max_memory("1").start_embedded()).as_deref(), Some("OOM"));
    let server = start();
    server.need_replicas();
    assert_eq!(refused(&server).as_deref(), Some("NOREPLICAS"));
    server.be_busy();
    assert_eq!(refused(&server).as_deref(), Some("BUSY"));
    let old = ServerOptions::new().without_hello().start_embedded();
    assert!(old.command(&["HELLO"]).error().is_some());
}

#[test]
fn clients_are_counted_and_named() {
    let server = start();
    let mut clients: Vec<_> = (0..3).map(|_| RawClient::connect(server.address())).collect();
    assert!(clients[0].command(&["CLIENT", "SETNAME", "one"]).is_ok());
    eventually(SOON, "the server has accepted all", || server.connected_clients() == 3);
    assert!(server.client_names().contains(&"one".to_owned()));
    clients.clear();
    eventually_equals(SOON, "the server has seen the end", 0, || server.connected_clients());
}

#[test]
fn features_of_real_servers_are_not_options_of_an_embedded_master() {
    for options in [
        ServerOptions::new().unix_socket(),
        ServerOptions::new().config("maxclients 5"),
        ServerOptions::new().arg("--maxclients").arg("5"),
        ServerOptions::new().acl_user("app on"),
    ] {
        let start = std::panic::AssertUnwindSafe(|| options.start_embedded());
        assert!(std::panic::catch_unwind(start).is_err());
    }
}

#[test]
fn one_master_and_several_others_are_independent() {
    let (one, several) = (master(), masters(2));
    assert!(one.set_nx("job", "token"));
    assert_eq!((one.exists("job"), several.holding("job")), (true, 0));
}
