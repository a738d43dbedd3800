//! Tests of the sockets, as a client sees them. The answers are the model's, and tested there.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use quorlock_core::front::Released;
use quorlock_core::{Cause, MasterState};

use super::server::MAX_CLIENTS;
use super::*;

/// Far longer than anything takes that works.
const LONG: Duration = Duration::from_secs(30);

fn connect(master: &Master) -> TcpStream {
    let stream = TcpStream::connect(master.address()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.set_write_timeout(Some(LONG)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Reads exactly as much as is expected.
#[track_caller]
fn expect(stream: &mut TcpStream, expected: &str) {
    let mut reply = vec![0; expected.len()];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(String::from_utf8_lossy(&reply), expected);
}

#[track_caller]
fn ask(stream: &mut TcpStream, request: &str, expected: &str) {
    stream.write_all(request.as_bytes()).unwrap();
    expect(stream, expected);
}

/// Whether the other end is gone: with an end or a reset, after any other bytes.
fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = [0; 4096];
    loop {
        match stream.read(&mut rest) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    }
}

#[track_caller]
fn eventually(mut holds: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + LONG;
    while !holds() {
        assert!(std::time::Instant::now() < deadline, "not within {LONG:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn commands_are_answered_in_any_split_and_in_order() {
    let master = Master::start().unwrap();
    let mut client = connect(&master);
    let commands =
        "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\n\r\n\r\nGET a\r\nPING\n*2\r\n$4\r\nECHO\r\n$0\r\n\r\n";
    let replies = "+OK\r\n$2\r\n\r\n\r\n+PONG\r\n$0\r\n\r\n";
    for byte in commands.as_bytes() {
        client.write_all(&[*byte]).unwrap();
    }
    expect(&mut client, replies);
    ask(&mut client, commands, replies);
    assert_eq!((master.executed(CommandKind::Set), master.executed(CommandKind::Get)), (2, 2));
    assert_eq!(master.executed(CommandKind::Extend), 0);
}

#[test]
fn a_pipeline_of_any_length_is_answered_while_it_is_read() {
    let master = Master::start().unwrap();
    let mut client = connect(&master);
    let mut writer = client.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..100 {
                writer.write_all(&b"PING\r\n".repeat(1000)).unwrap();
            }
        });
        for _ in 0..100 {
            expect(&mut client, &"+PONG\r\n".repeat(1000));
        }
    });
}

#[test]
fn invalid_input_gets_an_error_and_ends_only_its_connection() {
    let master = Master::start().unwrap();
    let mut other = connect(&master);
    ask(&mut other, "PING\r\n", "+PONG\r\n");
    for (bytes, reply) in [
        (&b"*1\r\n$-7\r\n"[..], "-ERR Protocol error: invalid bulk length\r\n"),
        (b"*1\r\n:1\r\n", "-ERR Protocol error: expected '$', got ':'\r\n"),
        (b"*99999999\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
        (b"\"\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"),
        (b"QUIT\r\n", "+OK\r\n"),
        (b"POST / HTTP/1.1\r\n", ""),
    ] {
        let mut client = connect(&master);
        client.write_all(bytes).unwrap();
        expect(&mut client, reply);
        assert!(is_closed(&mut client), "{bytes:?}");
    }
    let mut client = connect(&master);
    ask(&mut client, "\0\r\n\r\n\u{1}\r\n", "-ERR unknown command '\u{1}', with args beginning with: \r\n");
    ask(&mut other, "PING\r\n", "+PONG\r\n");
}

#[test]
fn an_endless_command_is_given_up() {
    let master = Master::start().unwrap();
    for start in ["*2\r\n$4\r\nECHO\r\n$1000000000\r\n", "", "*"] {
        let mut client = connect(&master);
        let mut written = client.write_all(start.as_bytes());
        for _ in 0..1000 {
            written = written.and_then(|()| client.write_all(&[b'1'; 16 << 10]));
        }
        assert!(written.is_err(), "{start:?}: 16 MiB were taken");
    }
    eventually(|| master.clients().is_empty());
}

#[test]
fn nothing_more_is_executed_for_a_client_that_does_not_read() {
    let master = Master::start().unwrap();
    let mut greedy = connect(&master);
    let value = "x".repeat(500_000);
    ask(&mut greedy, &format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$500000\r\n{value}\r\n"), "+OK\r\n");
    // Half a gigabyte of replies, which no socket takes.
    let asked = 1000;
    greedy.write_all("GET a\r\n".repeat(asked).as_bytes()).unwrap();

    let mut other = connect(&master);
    eventually(|| master.executed(CommandKind::Get) > 0);
    let mut before = 0;
    eventually(|| {
        ask(&mut other, "PING\r\n", "+PONG\r\n");
        let executed = master.executed(CommandKind::Get);
        // It makes no progress while another one is served.
        std::mem::replace(&mut before, executed) == executed
    });
    assert!(before < 100, "{before} replies of 500 kB were made without a reader");

    // As soon as it reads, everything is answered.
    let reply = format!("$500000\r\n{value}\r\n");
    for _ in 0..asked {
        expect(&mut greedy, &reply);
    }
    assert_eq!(master.executed(CommandKind::Get), asked as u64);
}

#[test]
fn hundreds_of_connections_are_served_and_one_too_many_is_refused() {
    let master = Master::start().unwrap();
    let mut clients: Vec<_> = (0..MAX_CLIENTS).map(|_| connect(&master)).collect();
    for client in &mut clients {
        client.write_all(b"PING\r\n").unwrap();
    }
    for client in &mut clients {
        expect(client, "+PONG\r\n");
    }
    assert_eq!(master.clients().len(), MAX_CLIENTS);

    let mut beyond = connect(&master);
    expect(&mut beyond, "-ERR max number of clients reached\r\n");
    assert!(is_closed(&mut beyond));
    drop(clients);
    eventually(|| master.clients().is_empty());
    ask(&mut connect(&master), "PING\r\n", "+PONG\r\n");
}

#[test]
fn requests_sent_before_a_connection_ends_are_answered() {
    let master = Master::start().unwrap();
    let mut client = connect(&master);
    client.write_all(b"PING\r\nPING\r\nPI").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    expect(&mut client, "+PONG\r\n+PONG\r\n");
    assert!(is_closed(&mut client));
    eventually(|| master.clients().is_empty());
}

#[test]
fn a_paused_master_executes_pending_requests_when_it_continues() {
    let master = Master::start().unwrap();
    let mut client = connect(&master);
    ask(&mut client, "PING\r\n", "+PONG\r\n");
    master.pause();
    client.write_all(b"SET a b\r\n").unwrap();
    let mut late = connect(&master);
    late.write_all(b"GET a\r\n").unwrap();
    assert_eq!(master.executed(CommandKind::Set), 0);
    assert!(master.model(|model| model.value(0, b"a", now()).is_none()));

    master.resume();

    expect(&mut client, "+OK\r\n");
    eventually(|| master.executed(CommandKind::Get) == 1);
    ask(&mut late, "GET a\r\n", "$");
}

#[test]
fn a_stopped_master_is_gone_and_comes_back_at_its_address() {
    let master = Master::start().unwrap();
    let address = master.address();
    for keep in [Keep::Everything, Keep::Nothing, Keep::Half] {
        let mut client = connect(&master);
        ask(&mut client, "FLUSHALL\r\nSET a 1\r\nSET b 1\r\n", "+OK\r\n+OK\r\n+OK\r\n");
        let before = master.model(|model| model.run_id().to_owned());
        // A hung master stops as well, and is not hung after its restart.
        master.pause();
        master.stop();
        master.pause();
        assert!(is_closed(&mut client));
        assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);

        master.restart(keep).unwrap();

        let kept = match keep {
            Keep::Everything => 2,
            Keep::Half => 1,
            Keep::Nothing => 0,
        };
        assert_eq!(master.address(), address);
        ask(&mut connect(&master), "DBSIZE\r\n", &format!(":{kept}\r\n"));
        assert_ne!(master.model(|model| model.run_id().to_owned()), before);
    }
    // Also a running one with clients.
    let mut client = connect(&master);
    ask(&mut client, "SET a 1\r\n", "+OK\r\n");
    master.restart(Keep::Nothing).unwrap();
    assert!(is_closed(&mut client));
    ask(&mut connect(&master), "EXISTS a\r\n", ":0\r\n");
}

#[test]
fn dropping_ends_the_thread_and_frees_the_port() {
    for how in 0..3 {
        let master = Master::start().unwrap();
        let address = master.address();
        let mut client = connect(&master);
        ask(&mut client, "PING\r\n", "+PONG\r\n");
        match how {
            0 => {}
            1 => master.pause(),
            _ => master.stop(),
        }
        let life = master.life();
        drop(master);
        assert!(life.upgrade().is_none(), "the thread has not ended");
        assert!(is_closed(&mut client));
        eventually(|| TcpListener::bind(address).is_ok());
    }
}

#[test]
fn addresses_in_use_and_addresses_for_others_are_refused() {
    let master = Master::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    assert_eq!(Master::bind(master.address()).unwrap_err().kind(), ErrorKind::AddrInUse);
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let error = Master::bind(address.parse().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{address}");
    }
    assert!(Masters::start(0).unwrap().config().is_err());
    let masters = Masters::start(2).unwrap();
    assert_ne!(
        masters[0].model(|model| model.run_id().to_owned()),
        masters[1].model(|model| model.run_id().to_owned())
    );
}

#[test]
fn a_closure_that_panics_leaves_a_master_that_works() {
    let master = Master::start().unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        master.model(|_| std::panic::resume_unwind(Box::new("on purpose")));
    }));
    assert!(panicked.is_err());
    ask(&mut connect(&master), "PING\r\n", "+PONG\r\n");
}

#[test]
fn debug_shows_no_password() {
    let master = Master::start().unwrap();
    master.model(|model| model.set_password(Some("hunter2")));
    assert!(!format!("{master:?}").contains("hunter2"));
    ask(&mut connect(&master), "PING\r\n", "-NOAUTH Authentication required.\r\n");
}

/// A connection that is notified when a key changes that it has read.
fn watch(master: &Master) -> TcpStream {
    let mut stream = connect(master);
    stream.write_all(b"HELLO 3\r\nCLIENT TRACKING ON NOLOOP\r\nPING\r\n").unwrap();
    let mut heard = Vec::new();
    while !heard.ends_with(b"+OK\r\n+PONG\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        heard.extend(byte);
    }
    stream
}

const TOLD: &str = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n";

#[test]
fn an_idle_client_is_notified_when_a_key_that_it_has_read_changes() {
    let master = Master::start().unwrap();
    let (mut reader, mut writer) = (watch(&master), watch(&master));
    for change in ["SET a 1\r\n", "SET a 2 PX 50000\r\n"] {
        ask(&mut reader, "PTTL a\r\n", ":-");
        reader.read_exact(&mut [0; 3]).unwrap();
        ask(&mut writer, change, "+OK\r\n");
        expect(&mut reader, TOLD);
    }
    // Changes without a connection are notified as well.
    ask(&mut reader, "GET a\r\n", "$1\r\n2\r\n");
    assert!(master.model(|model| model.remove(0, b"a", now())));
    expect(&mut reader, TOLD);
}

#[test]
fn replies_and_pushes_come_in_the_order_of_what_has_happened() {
    let master = Master::start().unwrap();
    // The client that came first is served first.
    let (mut writer, mut reader) = (watch(&master), watch(&master));
    ask(&mut reader, "SET a 1\r\nGET a\r\n", "+OK\r\n$1\r\n1\r\n");
    master.pause();
    writer.write_all(b"SET a 2\r\n").unwrap();
    reader.write_all(b"GET a\r\nSET a 3\r\n").unwrap();
    master.resume();
    expect(&mut writer, "+OK\r\n");
    expect(&mut reader, &format!("{TOLD}$1\r\n2\r\n+OK\r\n"));
    ask(&mut reader, "PING\r\n", "+PONG\r\n");
}

#[test]
fn the_expiry_of_a_key_is_notified_without_a_request() {
    let master = Master::start().unwrap();
    let mut reader = watch(&master);
    for life in [1, 30, 120] {
        let begun = std::time::Instant::now();
        ask(&mut reader, &format!("SET a 1 PX {life}\r\nGET a\r\n"), "+OK\r\n$1\r\n1\r\n");
        expect(&mut reader, TOLD);
        assert!(begun.elapsed() + Duration::from_millis(1) >= Duration::from_millis(life));
    }
    // A promotion lets it delete what ended before.
    master.model(|model| model.hold(0, b"a", b"1", Some(now() + Duration::from_millis(50))));
    ask(&mut reader, "GET a\r\n", "$1\r\n1\r\n");
    master.model(|model| model.set_replica(true));
    eventually(|| master.model(|model| model.value(0, b"a", now()).is_none()));
    ask(&mut reader, "GET a\r\n", "_\r\n");
    master.model(|model| model.set_replica(false));
    expect(&mut reader, TOLD);
}

#[test]
fn a_client_that_does_not_read_its_pushes_is_disconnected() {
    let master = Master::start().unwrap();
    let (mut reader, mut writer) = (watch(&master), connect(&master));
    eventually(|| {
        ask(&mut writer, &"FLUSHALL\r\n".repeat(2_000), &"+OK\r\n".repeat(2_000));
        master.clients().len() == 1
    });
    assert!(is_closed(&mut reader));
}

#[test]
fn a_locker_works_with_embedded_masters() {
    let masters = Masters::start(3).unwrap();
    let locker = quorlock_blocking::open(masters.config().unwrap()).unwrap();
    let guard = locker.lock("job").wait().unwrap();
    let token = guard.token().expose().into_bytes();
    let holding = || {
        let holds = |master: &&Master| {
            master.model(|model| model.value(0, b"job", now()).is_some_and(|value| value == token))
        };
        masters.iter().filter(holds).count()
    };
    eventually(|| holding() == 3);
    masters[2].stop();
    eventually(|| matches!(locker.masters()[2].1, MasterState::Down(Cause::Closed | Cause::Connect(_))));
    assert_eq!(guard.release().wait(), Ok(Released::Freed));
    assert_eq!(holding(), 1, "the one that is stopped keeps the key until its end");
    masters[2].restart(Keep::Everything).unwrap();
    // The release is still owed to this master.
    eventually(|| holding() == 0);
}
