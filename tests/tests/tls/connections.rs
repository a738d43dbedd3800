//! Connections over TLS: their beginning, their end, and bytes that come in pieces.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quorlock_blocking::{Config, MasterState};
use quorlock_core::{Cause, ChannelState, Endpoint, Security};
use quorlock_tests::{Certificates, Fleet, ServerOptions, eventually};
use quorlock_tls::Tls;
use quorlock_tls::rustls::crypto::ring;
use quorlock_tls::rustls::pki_types::pem::PemObject;
use quorlock_tls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use quorlock_tls::rustls::{
    CipherSuiteCommon, ClientConfig, RootCertStore, ServerConfig, ServerConnection, SupportedCipherSuite,
    Tls12CipherSuite,
};

use super::certificates::end_connections;
use super::faults::{cacert, url};

const SOON: Duration = Duration::from_secs(20);

fn fleet() -> Fleet {
    Fleet::start(3, |options, _| options.tls(Certificates::shared(), "no"))
}

fn urls(masters: &Fleet) -> Vec<String> {
    masters.iter().map(|master| url(master, &cacert(Certificates::shared()))).collect()
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_server_that_hangs_in_the_handshake_delays_no_caller() {
    let masters = fleet();
    masters[1].stop();
    let config = Config::builder(urls(&masters)).connect_timeout(Duration::from_millis(250)).build().unwrap();
    let locker = quorlock_blocking::open(config).unwrap();
    let start = Instant::now();
    let guard = locker.lock("job").wait().unwrap();
    assert!(guard.is_valid() && start.elapsed() < SOON / 4, "{:?}", start.elapsed());
    eventually(SOON, "it is told", || {
        matches!(locker.masters()[1].1, MasterState::Down(Cause::NoHandshake { .. }))
    });
    masters[1].cont();
    eventually(SOON, "it votes when it continues", || {
        matches!(locker.masters()[1].1, MasterState::Ready { .. })
    });
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn connections_that_the_server_ends_are_opened_again() {
    let masters = fleet();
    let locker = quorlock_blocking::open(Config::new(urls(&masters)).unwrap()).unwrap();
    let guard = locker.lock("job").renew().wait().unwrap();
    for _ in 0..5 {
        masters.iter().for_each(end_connections);
        locker.lock("other").wait().unwrap().release().wait().unwrap();
    }
    assert!(guard.is_valid());
    let ready = |(_, state): &(_, MasterState)| matches!(state, MasterState::Ready { .. });
    eventually(SOON, "all masters vote", || locker.masters().iter().all(ready));
}

/// Connects, waits for an answer to a PING, and returns how many bytes the server sent until the
/// handshake was done.
fn bytes_of_a_handshake(tls: &Tls, endpoint: &Endpoint, address: SocketAddr) -> usize {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    let mut channel = tls.channel(endpoint, endpoint.address()).unwrap();
    let (mut plain, mut reply, mut came, mut counted) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut is_established = false;
    while !plain.ends_with(b"PONG\r\n") {
        let state = channel.open(&came, &mut plain, &mut reply).unwrap();
        if !is_established {
            counted += came.len();
        }
        if state == ChannelState::Established && !is_established {
            is_established = true;
            channel.seal(b"PING\r\n", &mut reply).unwrap();
        }
        socket.write_all(&reply).unwrap();
        reply.clear();
        came.resize(4096, 0);
        let bytes = socket.read(&mut came).unwrap();
        assert!(bytes > 0, "the server has ended the connection");
        came.truncate(bytes);
        if is_established {
            channel.open(&came, &mut plain, &mut reply).unwrap();
            came.clear();
        }
    }
    counted
}

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_session_is_resumed_at_the_next_connection() {
    for protocols in ["TLSv1.3", "TLSv1.2"] {
        let certificates = Certificates::shared();
        let options = ServerOptions::new().config(&format!("tls-protocols {protocols}"));
        let server = options.tls(certificates, "no").start();
        let endpoint: Endpoint = url(&server, &cacert(certificates)).parse().unwrap();
        let handshake = |tls: &Tls| bytes_of_a_handshake(tls, &endpoint, server.address());
        let tls = Tls::system();
        let (whole, resumed, of_another) = (handshake(&tls), handshake(&tls), handshake(&Tls::system()));
        // When a session is resumed, the certificate is not sent again.
        assert!(resumed + 300 < whole, "{protocols}: {whole}, then {resumed}");
        assert!(resumed + 300 < of_another, "{protocols}: {resumed}, {of_another} with its own sessions");
    }
}

/// How many records one set of TLS 1.2 keys may encrypt in this test. At this limit rustls drops
/// messages without an error.
const MOST_RECORDS: u64 = 64;

#[test]
#[cfg_attr(no_real_server, ignore = "left to real servers: there is no redis-server on PATH")]
fn a_connection_over_tls_1_2_is_replaced_before_its_keys_are_used_up() {
    let masters = Fleet::start(3, |options, _| {
        options.config("tls-protocols TLSv1.2").tls(Certificates::shared(), "no")
    });
    let mut provider = ring::default_provider();
    provider.cipher_suites.retain_mut(|suite| {
        let SupportedCipherSuite::Tls12(usual) = *suite else { return false };
        let common = CipherSuiteCommon { confidentiality_limit: MOST_RECORDS, ..copy(&usual.common) };
        let short = Tls12CipherSuite { common, ..*usual };
        *suite = SupportedCipherSuite::Tls12(Box::leak(Box::new(short)));
        true
    });
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(Certificates::shared().root()).unwrap()).unwrap();
    let tls = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let urls = masters.iter().map(|master| format!("rediss://{}", master.address()));
    let config = Config::builder(urls).tls(Tls::from(Arc::new(tls))).build().unwrap();
    let locker = quorlock_blocking::open(config).unwrap();
    let guard = locker.lock("held").renew().wait().unwrap();
    for _ in 0..300 {
        locker.lock("job").attempts(1).wait().unwrap().release().wait().unwrap();
    }
    assert!(guard.is_valid());
    let report = locker.report();
    for master in &report.masters {
        assert!(master.reconnects > 300 / MOST_RECORDS, "{report:?}");
    }
}

fn copy(common: &CipherSuiteCommon) -> CipherSuiteCommon {
    CipherSuiteCommon { suite: common.suite, hash_provider: common.hash_provider, confidentiality_limit: 0 }
}

/// A channel of ours and a server's connection, between which the test moves the bytes.
struct Pair {
    channel: Box<dyn quorlock_core::Channel>,
    server: ServerConnection,
}

impl Pair {
    fn new() -> Self {
        let certificates = Certificates::shared();
        let endpoint: Endpoint = format!("rediss://localhost?{}", cacert(certificates)).parse().unwrap();
        let channel = Tls::system().channel(&endpoint, endpoint.address()).unwrap();
        let chain = vec![CertificateDer::from_pem_file(certificates.certificate()).unwrap()];
        let key = PrivateKeyDer::from_pem_file(certificates.key()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        Self { channel, server: ServerConnection::new(Arc::new(config)).unwrap() }
    }

    /// Passes these bytes to the server, and returns its answer.
    fn serve(&mut self, mut bytes: &[u8]) -> Vec<u8> {
        while !bytes.is_empty() {
            self.server.read_tls(&mut bytes).unwrap();
            self.server.process_new_packets().unwrap();
        }
        let mut said = Vec::new();
        while self.server.wants_write() {
            self.server.write_tls(&mut said).unwrap();
        }
        said
    }
}

#[test]
fn tls_bytes_give_the_same_result_in_any_pieces() {
    let whole = run(usize::MAX);
    assert_eq!(whole.1, b"+OK\r\n:1\r\n");
    for size in [1, 2, 3, 7, 64, 500] {
        assert_eq!(run(size), whole, "in pieces of {size}");
    }

    /// The states in their order, without repetitions, and what was decrypted.
    fn run(size: usize) -> (Vec<ChannelState>, Vec<u8>) {
        let (mut pair, mut states, mut plain) = (Pair::new(), vec![ChannelState::Opening], Vec::new());
        let mut said = Vec::new();
        pair.channel.open(&[], &mut plain, &mut said).unwrap();
        let mut is_greeted = false;
        loop {
            let mut bytes = pair.serve(&said);
            said.clear();
            if bytes.is_empty() && !is_greeted && !pair.server.is_handshaking() {
                is_greeted = true;
                pair.server.writer().write_all(b"+OK\r\n").unwrap();
                pair.server.writer().write_all(b":1\r\n").unwrap();
                pair.server.send_close_notify();
                bytes = pair.serve(&[]);
            }
            if bytes.is_empty() {
                return (states, plain);
            }
            for piece in bytes.chunks(size.min(bytes.len())) {
                let state = pair.channel.open(piece, &mut plain, &mut said).unwrap();
                if states.last() != Some(&state) {
                    states.push(state);
                }
            }
        }
    }
}
