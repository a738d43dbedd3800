//! Real servers start, are stopped, die, come back and are gone in the end.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::time::Duration;

use quorlock_tests::{RawClient, RedisServer, ServerOptions, Value, eventually, eventually_equals, masters};
use rustix::process::{Pid, test_kill_process};

const SOON: Duration = Duration::from_secs(10);

#[test]
fn three_masters_start_at_once_and_are_independent() {
    let fleet = masters(3);

    assert!(fleet[1].set_nx("job", "token"));

    assert_eq!(fleet.get("job"), [None, Some("token".to_owned()), None]);
    assert_eq!(fleet.holding("job"), 1);
    let mut urls = fleet.urls();
    urls.dedup();
    assert_eq!(urls.len(), 3);
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_test_reads_the_keys_that_the_server_holds() {
    let server = RedisServer::start();

    assert!(server.set_nx("job", "a"));
    assert!(!server.set_nx("job", "b"));
    assert_eq!(server.get("job").as_deref(), Some("a"));
    assert_eq!(server.pttl("job"), -1);
    assert!(server.command(&["PEXPIRE", "job", "60000"]).int() == Some(1));
    assert!((1..=60_000).contains(&server.pttl("job")));
    assert!(server.del("job"));
    assert!(!server.del("job"));
    assert_eq!(server.pttl("job"), -2);
    assert_eq!(server.command(&["MGET", "job", "job"]), Value::Array(vec![Value::Nil, Value::Nil]));
    assert!(
        server.command(&["NONSENSE"]).error().is_some_and(|error| error.starts_with("ERR unknown command"))
    );
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_stopped_server_takes_bytes_and_executes_them_once_it_is_continued() {
    let server = RedisServer::start();
    let mut client = RawClient::connect(server.address());
    client.set_timeout(Duration::from_millis(50)).unwrap();

    server.stop();

    assert!(client.try_command(&["SET", "job", "token"]).is_err());
    assert!(server.is_running());
    server.cont();
    eventually_equals(SOON, "the key is set", Some("token".to_owned()), || server.get("job"));
    assert!(client.receive().unwrap().is_ok());
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_killed_server_refuses_and_comes_back_empty_on_its_port() {
    let server = RedisServer::start();
    server.set_nx("job", "token");
    let port = server.port();

    server.kill();
    assert!(!server.is_running());
    assert!(RawClient::try_connect(server.address()).is_err());
    server.kill();
    server.restart();

    assert_eq!(server.port(), port);
    assert_eq!(server.get("job"), None);
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_stopped_server_can_be_restarted() {
    let server = RedisServer::start();
    let before = server.pid();
    server.stop();

    server.restart();

    assert_ne!(server.pid(), before);
    assert!(server.set_nx("job", "token"));
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn an_append_only_server_comes_back_with_its_keys() {
    let server = ServerOptions::new().append_only().start();
    server.set_nx("job", "token");

    server.restart();
    assert_eq!(server.get("job").as_deref(), Some("token"));
    server.shutdown();
    assert!(!server.is_running());
    server.restart();

    assert_eq!(server.get("job").as_deref(), Some("token"));
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn dropping_a_server_leaves_no_process_even_when_it_is_stopped() {
    let running = RedisServer::start();
    let stopped = RedisServer::start();
    let pids = [running.pid().unwrap(), stopped.pid().unwrap()];
    stopped.stop();

    drop((running, stopped));

    assert!(!pids.into_iter().any(process_exists));
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_server_is_gone_when_the_test_process_is_killed() {
    if !Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "true"])
        .status()
        .is_ok_and(|status| status.success())
    {
        eprintln!("skipped: there is no setpriv on this machine");
        return;
    }
    // A process that is killed cannot remove its directories.
    let directory = tempfile::tempdir().unwrap();
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "servers::holds_a_server_until_this_process_is_killed", "--ignored", "--nocapture"])
        .env("TMPDIR", directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let pid = lines.find_map(|line| line.unwrap().split_once("server process ")?.1.parse().ok()).unwrap();
    assert!(process_exists(pid));

    process.kill().unwrap();
    process.wait().unwrap();

    // The process that adopts the dead server may reap it late, or never.
    eventually(SOON, "the server has died with its test", || !process_exists(pid) || is_zombie(pid));
}

#[test]
#[ignore = "the other half of a_server_is_gone_when_the_test_process_is_killed"]
fn holds_a_server_until_this_process_is_killed() {
    let server = std::thread::spawn(RedisServer::start).join().unwrap();
    println!("server process {}", server.pid().unwrap());
    // This also ends when the test that started this process is gone.
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn the_url_of_a_server_has_its_password_and_other_clients_need_it() {
    let server = ServerOptions::new().password("p@ss \"word").start();
    let mut client = RawClient::connect(server.address());

    assert!(client.command(&["PING"]).error().unwrap().starts_with("NOAUTH"));
    assert!(client.command(&["AUTH", "p@ss \"word"]).is_ok());
    assert_eq!(client.command(&["PING"]).text(), Some("PONG"));
    assert_eq!(server.url(), format!("redis://:p%40ss%20%22word@127.0.0.1:{}", server.port()));
    assert!(server.set_nx("job", "token"));
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn an_acl_user_may_do_what_its_rules_say() {
    let server = ServerOptions::new().acl_user("app on >secret ~lock:* +set").start();
    let mut client = RawClient::connect(server.address());

    assert!(client.command(&["AUTH", "app", "secret"]).is_ok());
    assert!(client.command(&["SET", "lock:job", "token"]).is_ok());
    assert!(client.command(&["SET", "job", "token"]).error().unwrap().starts_with("NOPERM"));
    assert!(client.command(&["GET", "lock:job"]).error().unwrap().starts_with("NOPERM"));
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_server_with_a_unix_socket_listens_on_it() {
    let server = ServerOptions::new().unix_socket().start();
    let url = server.unix_url();

    assert!(UnixStream::connect(url.strip_prefix("unix://").unwrap()).is_ok());
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_server_out_of_memory_refuses_writes() {
    let server = ServerOptions::new().max_memory("1").start();

    assert!(server.command(&["SET", "job", "token"]).error().unwrap().starts_with("OOM"));
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_replica_follows_its_primary_and_stays_read_only() {
    let primary = ServerOptions::new().password("secret").start();
    let replica = ServerOptions::new().replica_of(&primary).start();

    primary.set_nx("job", "token");

    eventually_equals(SOON, "the key is replicated", Some("token".to_owned()), || replica.get("job"));
    assert!(replica.command(&["SET", "job", "x"]).error().unwrap().starts_with("READONLY"));
    assert_eq!(primary.connected_clients(), 0);
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn the_connection_of_the_harness_is_not_counted_as_a_client() {
    let server = RedisServer::start();
    let mut clients: Vec<_> = (0..3).map(|_| RawClient::connect(server.address())).collect();
    for client in &mut clients {
        client.command(&["PING"]);
    }

    assert_eq!(server.connected_clients(), 3);
    clients.pop();

    eventually_equals(SOON, "the server has seen the end", 2, || server.connected_clients());
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_server_that_does_not_start_says_why() {
    let options = ServerOptions::new().config("no-such-directive yes");

    let panic = catch_unwind(AssertUnwindSafe(|| options.start())).unwrap_err();

    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("no-such-directive"), "{text}");
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn an_argument_wins_over_the_configuration_file() {
    let server = ServerOptions::new().config("maxclients 50").arg("--maxclients").arg("60").start();

    let answer = server.command(&["CONFIG", "GET", "maxclients"]);

    assert_eq!(answer.array().unwrap()[1].text(), Some("60"));
}

fn process_exists(pid: u32) -> bool {
    test_kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap()).is_ok()
}

fn is_zombie(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}
