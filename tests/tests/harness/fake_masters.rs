//! Fake masters send the configured bytes to any client.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quorlock_tests::{FakeMaster, RawClient, Value, behaviour, eventually, eventually_equals};

const SOON: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_millis(50);
const MIB: usize = 1 << 20;

#[test]
fn a_fake_master_speaks_first() {
    let fake = FakeMaster::start(behaviour::says("-LOADING not yet\r\n"));

    let mut client = RawClient::connect(fake.address());

    assert_eq!(client.receive().unwrap(), Value::Error("LOADING not yet".to_owned()));
    assert_eq!((fake.accepted(), fake.connections()), (1, 1));
    // Bytes are counted after they are written, and may be received before.
    eventually_equals(SOON, "the bytes are counted", 18, || fake.bytes_taken());
    drop(client);
    eventually_equals(SOON, "the end is seen", 0, || fake.connections());
}

#[test]
fn a_fake_master_answers_what_it_hears_once() {
    let fake = FakeMaster::start(behaviour::answers(":7\r\n"));
    let mut client = RawClient::connect(fake.address());
    client.set_timeout(SILENCE).unwrap();

    assert!(client.receive().is_err());
    client.set_timeout(SOON).unwrap();
    assert_eq!(client.command(&["PING"]), Value::Int(7));
    client.set_timeout(SILENCE).unwrap();
    assert!(client.try_command(&["PING"]).is_err());
}

#[test]
fn a_fake_master_that_hangs_up_closes_every_connection() {
    let fake = FakeMaster::start(behaviour::hangs_up());

    for _ in 0..3 {
        assert!(RawClient::connect(fake.address()).receive().is_err());
    }

    assert_eq!(fake.accepted(), 3);
}

#[test]
fn an_endless_line_comes_until_its_limit() {
    let limit = 8 * MIB + 1;
    let fake = FakeMaster::start(behaviour::endless_line(limit));

    let heard = hear(&fake, limit + 1);

    assert_eq!(heard.first(), Some(&b'+'));
    assert!(!heard.contains(&b'\n'));
    eventually_equals(SOON, "the bytes are counted", heard.len() as u64, || fake.bytes_taken());
}

#[test]
fn a_peer_that_leaves_ends_an_endless_line() {
    let fake = FakeMaster::start(behaviour::endless_line(usize::MAX));

    hear(&fake, MIB);

    eventually_equals(SOON, "the behaviour ends", 0, || fake.connections());
}

#[test]
fn a_huge_bulk_string_is_announced_and_begun() {
    let fake = FakeMaster::start(behaviour::huge_bulk(u64::MAX, MIB));

    let heard = hear(&fake, MIB + 23);

    assert!(heard.starts_with(b"$18446744073709551615\r\nxxx"));
}

#[test]
fn nested_arrays_and_unsolicited_replies_come_complete() {
    let nested = FakeMaster::start(behaviour::nested_arrays(100_000));
    let unsolicited = FakeMaster::start(behaviour::unsolicited_ok(1_000));
    let endless = FakeMaster::start(behaviour::endless_ok(usize::MAX));

    assert!(hear(&nested, 400_004).ends_with(b"*1\r\n*1\r\n:1\r\n"));
    assert_eq!(hear(&unsolicited, 5_000), b"+OK\r\n".repeat(1_000));
    assert_eq!(hear(&endless, 5_000_000), b"+OK\r\n".repeat(1_000_000));
}

#[test]
fn a_behaviour_that_a_test_defines_gets_the_number_of_its_connection() {
    let fake = FakeMaster::start(|peer, number| {
        // Errors mean that the peer has gone.
        let _ = peer.hear().and_then(|_| write!(peer, ":{number}\r\n"));
    });

    let numbers: Vec<_> = (0..3).map(|_| RawClient::connect(fake.address()).command(&["PING"])).collect();

    assert_eq!(numbers, [Value::Int(0), Value::Int(1), Value::Int(2)]);
}

#[test]
fn dropping_a_fake_master_ends_behaviours_that_are_blocked() {
    static READER_ENDED: AtomicBool = AtomicBool::new(false);
    let silent = FakeMaster::start(|peer, _| {
        peer.listen_to_the_end();
        READER_ENDED.store(true, Ordering::SeqCst);
    });
    let loud = FakeMaster::start(behaviour::endless_line(usize::MAX));
    let _unheard = RawClient::connect(silent.address());
    let mut unread = TcpStream::connect(loud.address()).unwrap();
    unread.write_all(b"go").unwrap();
    eventually(SOON, "both connections are there", || silent.connections() == 1 && loud.bytes_taken() > 0);
    let address = loud.address();

    drop((silent, loud));

    assert!(READER_ENDED.load(Ordering::SeqCst));
    assert!(TcpStream::connect(address).is_err());
}

/// Sends something and receives `length` bytes.
fn hear(fake: &FakeMaster, length: usize) -> Vec<u8> {
    let mut stream = TcpStream::connect(fake.address()).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(b"*1\r\n$4\r\nPING\r\n").unwrap();
    let mut heard = vec![0; length];
    stream.read_exact(&mut heard).unwrap();
    heard
}
